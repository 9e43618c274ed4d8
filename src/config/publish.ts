/** The catalogue as a page to read and as data for tools. Nothing is said here that the catalogue does not say. */
import { type AnySection, allKeys, RULES, SECTIONS } from './catalogue.ts'
import { variableOf } from './environment.ts'
import { type Key, keyPath, ROLES } from './key.ts'
import { PROPERTIES } from './properties.ts'
import { defaultOf, inertNote } from './published.ts'

const PREAMBLE = `# Configuration reference

Derived from \`src/config/catalogue\`; \`npm run reference\` writes it anew, with \`deployment.schema.json\` for
editors and \`deployment.toml\`, in which every key stands commented out at its default. \`sluice explain KEY\` says
what is in force.

## How values are written

Keys are set in \`deployment.toml\`, nested or quoted: \`[transport.passthru_http]\` with \`http.socket.timeout = 1\` or
with \`"http.socket.timeout" = 1\` is the same key. Flags may be written as text, lists as one text with commas,
durations as text with a unit (\`"30s"\`). \`<name>\` stands for a name of the operator's own.

A key can be overridden for one start, by a variable of the environment and, before that, by
\`--set section.key=value\`. The variable of a key has the name of its path in capitals, with \`_\` for each run of
other characters: \`${variableOf('transport.passthru_http.http.socket.timeout')}=1000\`. Rows are numbered from 0, and
opened in the file alone.

Any value, and any part of a text, may be a reference; \`$$\` writes a dollar sign before one that is meant as text:

| Reference | Stands for |
|---|---|
| \`$ref{section.key}\`, \`$conf{section.key}\` | the value in force of another key |
| \`$env{NAME}\` | a variable of the environment, which must be there |
| \`$file{PATH}\` | the content of a file, relative to the folder of \`deployment.toml\`; a secret |
| \`$secret{NAME}\` | \`NAME\` of the section \`[secrets]\`, where it is plain text in square brackets |
| \`\${property}\` | what is known when the gateway starts: |

`

const EFFECT = `
## How a section is read

*Effect* says when another value is in force: at a *reload* (SIGHUP, \`sluice reload\`), or at a *restart* only.
A key without one is *inert*: it is accepted and not acted on, for the reason that stands behind *Not built yet* or
*Not acted on*; setting it warns. A default that is the *same as* another key follows it until it is set. A key that
*must be set* is missed where another key of its section is set, or a row of it is opened; a header alone uses nothing.
Unless a section says so, nodes of every role read it
(\`server.server_role\`: ${ROLES.map(role => `\`${role}\``).join(', ')}); a node of the role \`default\` reads all.
`

export function referencePage(): string {
  const properties = PROPERTIES.map(({ name, meaning }) => [`\`\${${name}}\``, meaning])
  const known = table(['Property', 'Value'], properties)
  return `${PREAMBLE}${known}${EFFECT}\n${SECTIONS.map(sectionPart).join('\n')}`
}

function sectionPart(section: AnySection): string {
  const { name, meaning, repeated, otherNames, roles, keys } = section
  const notes = new Set(Object.values(keys).map(inertNote))
  const said = notes.size === 1 ? [...notes][0]! : ''
  const own = RULES.filter(rule => Object.keys(keys).some(key => rule.keys[0] === keyPath(name, key)))
  const rules = [...new Set(own.map(rule => rule.must))].map(must => `- ${escaped(must)}\n`)
  const remarks = [
    meaning,
    repeated ? `Written \`[[${name}]]\`, once per row${otherForm(section)}.` : '',
    otherNames.length === 0 ? '' : `Also named ${otherNames.map(other => `\`[${other}]\``).join(', ')}.`,
    roles.length === ROLES.length ? '' : `Roles: ${roles.join(', ')}.`,
    said === '' ? '' : `*${said}.*`,
  ]
  const rows = Object.entries(keys).map(([key, definition]) => row(key, definition, said))
  const listed = table(['Key', 'Type', 'Default', 'Unit', 'Range', 'Effect', 'Meaning'], rows)
  const list = rules.length === 0 ? '' : `\nRules:\n\n${rules.join('')}`
  const title = name === '' ? 'Above the first section' : name
  return `## ${title}\n\n${remarks.filter(remark => remark !== '').join(' ')}\n\n${listed}${list}`
}

function otherForm({ name, otherForm: form }: AnySection): string {
  if (form === '') return ''
  return form === 'table' ? `, or \`[${name}]\` for one` : `, or \`[${name}.NAME]\`, once per name`
}

/** `said`: the note that stands above the table already. */
function row(name: string, key: Key<unknown>, said: string): readonly string[] {
  const note = inertNote(key)
  const effect = note !== '' ? '' : key.isLive ? 'reload' : 'restart'
  const remarks = [
    key.meaning,
    key.aliases.length === 0 ? '' : `Also spelled ${key.aliases.map(alias => `\`${alias}\``).join(', ')}.`,
    note === '' || note === said ? '' : `*${note}.*`,
  ]
  const meaning = remarks.filter(remark => remark !== '').join(' ')
  return [`\`${name}\``, key.kind, defaultOf(key), key.unit, key.range, effect, meaning]
}

/** Columns in which nothing stands are left out. */
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

export function referenceJson(): string {
  const keys = allKeys().map(({ path, section, key, definition }) => ({
    path,
    section,
    key,
    type: definition.kind,
    default: definition.secret ? '' : definition.fallback,
    sameAs: definition.follows.startsWith('.') ? `${section}${definition.follows}` : definition.follows,
    required: definition.required,
    secret: definition.secret,
    unit: definition.unit,
    range: definition.range,
    aliases: definition.aliases,
    meaning: definition.meaning,
    reload: definition.isLive,
    inert: definition.inertReason,
  }))
  const sections = SECTIONS.map(({ name, meaning, repeated, roles }) => ({ name, meaning, repeated, roles }))
  const rules = RULES.map(({ keys: about, must, severity }) => ({ about, must, severity }))
  return `${JSON.stringify({ sections, keys, rules, properties: PROPERTIES }, null, 2)}\n`
}
