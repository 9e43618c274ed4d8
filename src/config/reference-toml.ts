/**
 * Generates a `deployment.toml` with every key commented out at its default; operators uncomment the keys to change.
 * Sections that are acted on come first.
 */
import { type AnySection, SECTIONS } from './catalogue.ts'
import { FREE_NAME, type Key, keyPath } from './key.ts'
import { describeDefault, inertNote, requirementNote } from './key-description.ts'

/** `program`: what the operator writes before a command. */
function howTo(program: string): string {
  const command = (words: string, does: string): string => `#   ${`${program} ${words}`.padEnd(40)}  ${does}\n`
  return `#:schema ./deployment.schema.json
# Configuration of the gateway. Every key has a default, so set only what must differ.
#
${command('check', 'checks this file; lists every error with its line')}\
${command('explain', 'every effective value, and where it is set')}\
${command('explain io_buffer_size', 'everything about one key')}\
${command('reference', 'every key with range, rules and type')}\
#
# A line such as #offset = 0 is a key at its default: remove the # and write another value. A line such as
# #[[section]] opens a row, once for each row; remove its # together with those of the keys below.
#
# Any value may hold $ref{section.key}, $env{NAME}, $file{PATH} and properties such as \${home}; put passwords into a
# variable or a file. Replace NAME and example by names of your own.
`
}

/** Stands for a name that the operator chooses. */
const CHOSEN = 'example'

type Keys = readonly (readonly [name: string, key: Key<unknown>])[]

export function tomlPage(program = 'npm run sluice --'): string {
  // Rows within rows are listed with the table around them.
  const isIdle = (section: AnySection): boolean =>
    Object.values((enclosingTable(section) ?? section).keys).every(key => key.inertReason !== '')
  // After a header they would be keys of its table.
  const first = SECTIONS.filter(({ name }) => name === '').map(section => sectionPart(section, ''))
  const tables = SECTIONS.filter(({ name }) => name !== '')
  const inForce = tables.filter(section => !isIdle(section)).map(section => sectionPart(section, ''))
  const idle = Map.groupBy(tables.filter(isIdle), section => commonNote(enclosingTable(section) ?? section))
  const inOrder = [...idle].sort(([one], [other]) => rankOf(one) - rankOf(other))
  const groups = inOrder.map(([note, sections]) => {
    const parts = sections.map(section => sectionPart(section, note))
    return `${title(note === '' ? 'Not acted on, for several reasons' : note)}\n${parts.join('\n')}`
  })
  return `${howTo(program)}\n${[...first, ...inForce].join('\n')}${groups.map(group => `\n${group}`).join('')}`
}

/** Features that are not built yet come before those that never will be. */
function rankOf(note: string): number {
  if (note === '') return 2
  return note.startsWith('Not built yet') ? 0 : 1
}

function title(text: string): string {
  const rule = `# ${'-'.repeat(98)}\n`
  return `${rule}# ${text}.\n${rule}`
}

/** The reason why no key of a section is acted on; '' for several reasons. */
function commonNote({ keys }: AnySection): string {
  const notes = new Set(Object.values(keys).map(inertNote))
  return notes.size === 1 ? [...notes][0]! : ''
}

/** `groupNote`: the note above a group of sections, which a section does not repeat. */
function sectionPart(section: AnySection, groupNote: string): string {
  const { name, meaning, repeated, keys } = section
  const header = repeated ? `#[[${name}]]\n` : name === '' ? '' : `[${name}]\n`
  const groups = [...Map.groupBy(Object.entries(keys), ([, key]) => inertNote(key))].sort(
    ([one], [other]) => Number(one !== '') - Number(other !== ''),
  )
  const parts = groups.map(([note, group]) => {
    const heading = note === '' || note === groupNote ? '' : `# ${note}.\n`
    return `${heading}${lines(name, group)}`
  })
  const outer = enclosingTable(section)
  const place = outer === undefined ? '' : ` Within a row of [[${outer.name}]].`
  return `# ${meaning}${place}\n${header}${parts.join('')}`
}

/** The repeated table around a table; undefined for most. */
function enclosingTable({ name }: AnySection): AnySection | undefined {
  return SECTIONS.find(outer => outer.repeated && name.startsWith(`${outer.name}.`))
}

const COMMENTS_AT = 56

function lines(section: string, keys: Keys): string {
  const written = keys.map(([name, key]) => [setting(section, name, key), key] as const)
  const width = Math.min(COMMENTS_AT, Math.max(...written.map(([line]) => line.length)))
  return written.map(([line, key]) => `${line.padEnd(width)}  # ${remark(key)}\n`).join('')
}

function setting(section: string, name: string, key: Key<unknown>): string {
  const spelled = name.replaceAll(FREE_NAME, CHOSEN)
  return `#${isElsewhere(section, name) ? JSON.stringify(spelled) : spelled} = ${toml(sample(section, name, key))}`
}

/** True if a dotted key would open a table that another section opens, which TOML forbids. */
function isElsewhere(section: string, name: string): boolean {
  const path = keyPath(section, name)
  return SECTIONS.some(other => other.name.startsWith(`${section}.`) && path.startsWith(`${other.name}.`))
}

/** The comment after a value: unit, meaning, choices and special values. */
function remark(key: Key<unknown>): string {
  const unit = key.unit === '' ? '' : `[${key.unit}] `
  const must = key.required ? 'Must be set. ' : ''
  const choices = key.kind === 'choice' ? ` One of ${key.range}.` : ''
  const named = Object.entries(key.specialValues).map(([value, means]) => ` ${value}: ${means}.`)
  const least = key.cappedBy === '' ? '' : ` Default: ${describeDefault(key)}.`
  const condition = requirementNote(key) === '' ? '' : ` ${requirementNote(key)}.`
  return `${unit}${must}${key.meaning}${choices}${named.join('')}${least}${condition}`
}

/** The default, or an example value for a key without one. */
function sample(
  section: string,
  name: string,
  { secret, follows, required, defaultValue, read }: Key<unknown>,
): unknown {
  if (secret) return `$env{${keyPath(section, name).replace(/\W+/g, '_').toUpperCase()}}`
  if (follows !== '') return `$ref{${follows.startsWith('.') ? section : ''}${follows}}`
  if (!required) return defaultValue
  const samples = [
    defaultValue,
    [CHOSEN],
    CHOSEN,
    `${CHOSEN}@${CHOSEN}.com`,
    1,
    ...['https', 'wss', 'ws'].map(scheme => `${scheme}://host.example`),
    ...['tcp', 'ssl'].map(scheme => [`${scheme}://host.example:9000`]),
  ]
  return samples.find(value => read(value) !== undefined) ?? ''
}

function toml(value: unknown): string {
  return Array.isArray(value) ? `[${value.map(toml).join(', ')}]` : JSON.stringify(value)
}
