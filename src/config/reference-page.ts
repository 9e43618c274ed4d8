/** Generates `conf/reference.md`, and the same data as JSON, from the catalogue alone. */
import { type AnySection, allKeys, RULES, SECTIONS } from './catalogue.ts'
import { conditionText } from './conditions.ts'
import { variableName } from './environment.ts'
import { type Key, keyPath, ROLES } from './key.ts'
import { PROPERTIES } from './properties.ts'
import { describeDefault, inertNote, requirementNote } from './key-description.ts'

const EXAMPLE_VARIABLE = variableName('transport.passthru_http.http.socket.timeout')

const PREAMBLE = `# Configuration reference

Generated from \`src/config/catalogue\` by \`npm run reference\`, together with \`deployment.schema.json\` for editors
and \`deployment.toml\`, which has every key commented out at its default. \`sluice explain KEY\` shows the effective
value of a key.

## How values are written

Keys are set in \`deployment.toml\`, nested or quoted: \`[transport.passthru_http]\` with \`http.socket.timeout = 1\` or
with \`"http.socket.timeout" = 1\` is the same key. Flags may be written as text, lists as one text with commas,
durations as text with a unit (\`"30s"\`). \`<name>\` stands for a name that the operator chooses.

An environment variable overrides a key for one start, and \`--set section.key=value\` overrides both. The variable of a
key is its path in capitals, with \`_\` for each run of other characters: \`${EXAMPLE_VARIABLE}=1000\`.
Rows are numbered from 0, and only the file opens them.

Any value, and any part of a text, may be a reference; \`$$\` writes a dollar sign that starts no reference:

| Reference | Value |
|---|---|
| \`$ref{section.key}\`, \`$conf{section.key}\` | the effective value of another key |
| \`$env{NAME}\` | an environment variable, which must exist |
| \`$file{PATH}\` | the content of a file, relative to the folder of \`deployment.toml\`; a secret |
| \`$secret{NAME}\` | \`NAME\` of the section \`[secrets]\`, which must be plain text in square brackets |
| \`\${property}\` | a fact that the gateway knows at its start: |

`

const EFFECT = `
## How a section is read

*Effect* says when a changed value takes effect: at a *reload* (SIGHUP, \`sluice reload\`), or only at a *restart*.
A key without an effect is *inert*: it is accepted and not acted on, for the reason after *Not built yet* or
*Not acted on*. *Acts when* names what a key depends on. Setting a key that has no effect gives a warning. A
default *same as* another key follows that key until it is set. A key that *must be set* is required where another
key of its section is set, or a row of it is opened; a header alone requires nothing.
Nodes of every role read a section, unless the section names its roles
(\`server.server_role\`: ${ROLES.map(role => `\`${role}\``).join(', ')}); the role \`default\` reads all.
`

export function referencePage(): string {
  const properties = PROPERTIES.map(({ name, meaning }) => [`\`\${${name}}\``, meaning])
  const known = table(['Property', 'Value'], properties)
  return `${PREAMBLE}${known}${EFFECT}\n${SECTIONS.map(sectionPart).join('\n')}`
}

function sectionPart(section: AnySection): string {
  const { name, meaning, repeated, alternativeNames, roles, keys } = section
  const notes = new Set(Object.values(keys).map(inertNote))
  const sectionNote = notes.size === 1 ? [...notes][0]! : ''
  const own = RULES.filter(rule => Object.keys(keys).some(key => rule.keys[0] === keyPath(name, key)))
  const rules = [...new Set(own.map(rule => rule.must))].map(must => `- ${escaped(must)}\n`)
  const remarks = [
    meaning,
    repeated ? `Written \`[[${name}]]\`, once per row${alternativeForm(section)}.` : '',
    alternativeNames.length === 0 ? '' : `Also named ${alternativeNames.map(other => `\`[${other}]\``).join(', ')}.`,
    roles.length === ROLES.length ? '' : `Roles: ${roles.join(', ')}.`,
    sectionNote === '' ? '' : `*${sectionNote}.*`,
  ]
  const rows = Object.entries(keys).map(([key, definition]) => row(key, definition, sectionNote))
  const listed = table(['Key', 'Type', 'Default', 'Unit', 'Range', 'Effect', 'Meaning'], rows)
  const list = rules.length === 0 ? '' : `\nRules:\n\n${rules.join('')}`
  const title = name === '' ? 'Above the first section' : name
  return `## ${title}\n\n${remarks.filter(remark => remark !== '').join(' ')}\n\n${listed}${list}`
}

function alternativeForm({ name, alternativeForm: form }: AnySection): string {
  if (form === '') return ''
  return form === 'table' ? `, or \`[${name}]\` for one` : `, or \`[${name}.NAME]\`, once per name`
}

/** `sectionNote`: the note above the table, which rows do not repeat. */
function row(name: string, key: Key<unknown>, sectionNote: string): readonly string[] {
  const note = inertNote(key)
  const condition = requirementNote(key, '`')
  const effect = note !== '' ? '' : key.isLive ? 'reload' : 'restart'
  const remarks = [
    key.meaning,
    key.aliases.length === 0 ? '' : `Also spelled ${key.aliases.map(alias => `\`${alias}\``).join(', ')}.`,
    condition === '' ? '' : `*${condition}.*`,
    note === '' || note === sectionNote ? '' : `*${note}.*`,
  ]
  const meaning = remarks.filter(remark => remark !== '').join(' ')
  return [`\`${name}\``, key.kind, describeDefault(key), key.unit, key.range, effect, meaning]
}

/** Leaves out empty columns. */
function table(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const used = heading.map((_, column) => rows.some(cells => cells[column] !== ''))
  const lines = [heading, heading.map(() => '---'), ...rows].map(
    cells =>
      `| ${cells
        .filter((_, column) => used[column])
        .map(escaped)
        .join(' | ')} |\n`,
  )
  return lines.join('')
}

function escaped(cell: string): string {
  return cell.replace(/\|/g, '\\|')
}

/** `key`: a whole path, or `.name` in the section. */
function wholePath(section: string, key: string): string {
  return key.startsWith('.') ? section + key : key
}

export function referenceJson(): string {
  const keys = allKeys().map(({ path, section, key, definition }) => ({
    path,
    section,
    key,
    type: definition.kind,
    default: definition.secret ? '' : definition.defaultValue,
    sameAs: wholePath(section, definition.follows),
    required: definition.required,
    secret: definition.secret,
    unit: definition.unit,
    range: definition.range,
    aliases: definition.aliases,
    meaning: definition.meaning,
    reload: definition.isLive,
    inert: definition.inertReason,
    actsWhen: definition.requirements.map(({ condition }) =>
      conditionText(condition, name => wholePath(section, name)),
    ),
  }))
  const sections = SECTIONS.map(({ name, meaning, repeated, roles }) => ({ name, meaning, repeated, roles }))
  const rules = RULES.map(({ keys: about, must, severity }) => ({ about, must, severity }))
  return `${JSON.stringify({ sections, keys, rules, properties: PROPERTIES }, null, 2)}\n`
}
