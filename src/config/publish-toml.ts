/**
 * The catalogue as a `deployment.toml` with every key commented out at its default: an operator takes the `#` away in
 * front of what is to differ. What is acted on comes first.
 */
import { type AnySection, SECTIONS } from './catalogue.ts'
import { FREE_NAME, type Key, keyPath } from './key.ts'
import { defaultOf, inertNote } from './published.ts'

const HOW_TO = `#:schema ./deployment.schema.json
# Configuration of the gateway. Everything has a default, so this file says only what differs from it.
#
#   npm run sluice -- check                   is this file right? every fault, with its line
#   npm run sluice -- explain                 every value in effect, and where it was set
#   npm run sluice -- explain io_buffer_size  all about one key
#
# A line such as #offset = 0 is a key at its default: take the # away and write another value. Lines of the kind
# #[[section]] open a row, once for each row; take their # away with those of the keys below.
#
# Any value may hold $ref{section.key}, $env{NAME}, $file{PATH} and properties such as \${home}; passwords belong into
# one of them. In place of NAME and example choose names of your own. conf/reference.md has ranges, rules and types.
# Made by \`npm run reference\`, which leaves a file alone in which a key is set.
`

/** A name that an operator would choose. */
const CHOSEN = 'example'

type Keys = readonly (readonly [name: string, key: Key<unknown>])[]

export function tomlPage(): string {
  // Rows within rows stand with these, and behind them.
  const isIdle = (section: AnySection): boolean =>
    Object.values((around(section) ?? section).keys).every(key => key.inertReason !== '')
  // Below a header they would be keys of its table.
  const first = SECTIONS.filter(({ name }) => name === '').map(section => sectionPart(section, ''))
  const tables = SECTIONS.filter(({ name }) => name !== '')
  const inForce = tables.filter(section => !isIdle(section)).map(section => sectionPart(section, ''))
  const idle = Map.groupBy(tables.filter(isIdle), section => oneNote(around(section) ?? section))
  const inOrder = [...idle].sort(([one], [other]) => rankOf(one) - rankOf(other))
  const groups = inOrder.map(([note, sections]) => {
    const parts = sections.map(section => sectionPart(section, note))
    return `${title(note === '' ? 'Not acted on, for several reasons' : note)}\n${parts.join('\n')}`
  })
  return `${HOW_TO}\n${[...first, ...inForce].join('\n')}${groups.map(group => `\n${group}`).join('')}`
}

/** What may yet come, before what will not. */
function rankOf(note: string): number {
  if (note === '') return 2
  return note.startsWith('Not built yet') ? 0 : 1
}

function title(text: string): string {
  const rule = `# ${'-'.repeat(98)}\n`
  return `${rule}# ${text}.\n${rule}`
}

/** Why none of its keys is acted on; '' where there are several reasons. */
function oneNote({ keys }: AnySection): string {
  const notes = new Set(Object.values(keys).map(inertNote))
  return notes.size === 1 ? [...notes][0]! : ''
}

/** `said`: the note that stands above the section already. */
function sectionPart(section: AnySection, said: string): string {
  const { name, meaning, repeated, keys } = section
  const header = repeated ? `#[[${name}]]\n` : name === '' ? '' : `[${name}]\n`
  const groups = [...Map.groupBy(Object.entries(keys), ([, key]) => inertNote(key))].sort(
    ([one], [other]) => Number(one !== '') - Number(other !== ''),
  )
  const parts = groups.map(([note, group]) => {
    const heading = note === '' || note === said ? '' : `# ${note}.\n`
    return `${heading}${lines(name, group)}`
  })
  const outer = around(section)
  const place = outer === undefined ? '' : ` Within a row of [[${outer.name}]].`
  return `# ${meaning}${place}\n${header}${parts.join('')}`
}

/** The repeated table in whose rows a table stands; most stand in none. */
function around({ name }: AnySection): AnySection | undefined {
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

/** A table of which another section has keys too: dots would open it here, and TOML opens a table once. */
function isElsewhere(section: string, name: string): boolean {
  const path = keyPath(section, name)
  return SECTIONS.some(other => other.name.startsWith(`${section}.`) && path.startsWith(`${other.name}.`))
}

/** What an editor of the file most wants to know behind a value: its unit, what it does, what else it may be. */
function remark(key: Key<unknown>): string {
  const unit = key.unit === '' ? '' : `[${key.unit}] `
  const must = key.required ? 'Must be set. ' : ''
  const choices = key.kind === 'choice' ? ` One of ${key.range}.` : ''
  const named = Object.entries(key.named).map(([value, means]) => ` ${value}: ${means}.`)
  const least = key.ceiling === '' ? '' : ` Default: ${defaultOf(key)}.`
  return `${unit}${must}${key.meaning}${choices}${named.join('')}${least}`
}

/** The default or, where there is none to write down, a value of the kind. */
function sample(section: string, name: string, { secret, follows, required, fallback, read }: Key<unknown>): unknown {
  if (secret) return `$env{${keyPath(section, name).replace(/\W+/g, '_').toUpperCase()}}`
  if (follows !== '') return `$ref{${follows.startsWith('.') ? section : ''}${follows}}`
  if (!required) return fallback
  const samples = [
    fallback,
    [CHOSEN],
    CHOSEN,
    1,
    ...['https', 'wss', 'ws'].map(scheme => `${scheme}://host.example`),
    ...['tcp', 'ssl'].map(scheme => [`${scheme}://host.example:9000`]),
  ]
  return samples.find(value => read(value) !== undefined) ?? ''
}

function toml(value: unknown): string {
  return Array.isArray(value) ? `[${value.map(toml).join(', ')}]` : JSON.stringify(value)
}
