/**
 * The catalogue as a JSON Schema of `deployment.toml`, draft 7, for editors that complete and check while somebody
 * types. What it cannot say is left to `check`, and it says so.
 */
import { type AnySection, allKeys, type CatalogueKey, SECTIONS } from './catalogue.ts'
import { FREE_NAME, type JsonSchema, type Key, keyPath, NUMERAL } from './key.ts'
import { DURATION, MS_PER } from './kinds.ts'
import { numeralPattern, suffixedPattern } from './number-patterns.ts'
import { SECRETS } from './outside.ts'
import { defaultOf, inertNote } from './published.ts'

const REFERENCE = {
  description: 'Text with a reference in it, to another key, the environment, a file or a property.',
  type: 'string',
  pattern: '\\$(ref|conf|env|file|secret)?\\{[^{}]*\\}',
}
/** The one section whose keys are all the operator's own. */
const OPERATORS_SECRETS = {
  description: 'Texts in square brackets, "[text]", that $secret{name} refers to by their names.',
  type: 'object',
  additionalProperties: { type: 'string' },
}
const ABOUT = [
  'Derived from the catalogue of keys; `npm run reference` writes it anew. `check` judges more: rules across keys,',
  'what references come to, the inside of hosts, addresses, URLs and lists, and values behind the quoted name of a',
  'table. It asks for what a section must have only where the role of the node reads the section, and takes names of',
  'any kind that references lead to.',
].join(' ')
const TO_REFERENCE = { $ref: '#/definitions/reference' }

/** What may stand in one table of the file, or the value at its place. */
interface Place {
  /** By the next name of the path; FREE_NAME for any other. */
  readonly below: Map<string, Place>
  /** Keys further down whose names are joined by dots and quoted: `"http.socket.timeout" = 1`. */
  readonly quoted: Map<string, JsonSchema>
  section?: AnySection
  value?: JsonSchema
}

export function schemaPage(): string {
  const root = emptyPlace()
  for (const section of SECTIONS)
    for (const name of [section.name, ...section.otherNames]) placeSection(root, section, name)
  const shared: Shared = new Map()
  const definitions = Object.fromEntries(allKeys().map(key => [definitionName(key.path), definitionOf(key, shared)]))
  const { properties, ...table } = tableOf(root)
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'deployment.toml of Sluice',
    description: ABOUT,
    ...table,
    properties: { ...(properties as JsonSchema), [SECRETS]: OPERATORS_SECRETS },
    definitions: { reference: REFERENCE, ...Object.fromEntries(shared), ...definitions },
  }
  return `${printed(schema, 0, 0)}\n`
}

function emptyPlace(): Place {
  return { below: new Map(), quoted: new Map() }
}

function placeAt(place: Place, name: string): Place {
  const before = place.below.get(name)
  if (before !== undefined) return before
  const made = emptyPlace()
  place.below.set(name, made)
  return made
}

/** `name`: its own or another. */
function placeSection(root: Place, section: AnySection, name: string): void {
  const table = name === '' ? root : name.split('.').reduce(placeAt, root)
  if (table !== root) table.section = section
  for (const [key, { aliases }] of Object.entries(section.keys)) {
    const reference = { $ref: `#/definitions/${definitionName(keyPath(section.name, key))}` }
    for (const spelling of [key, ...aliases]) placeKey(table, spelling.split('.'), reference)
  }
}

function placeKey(table: Place, names: readonly string[], reference: JsonSchema): void {
  let place = table
  names.forEach((name, depth) => {
    if (depth < names.length - 1) place.quoted.set(names.slice(depth).join('.'), reference)
    place = placeAt(place, name)
  })
  place.value = reference
}

/** Free of what a reference within the document would have to escape. */
function definitionName(path: string): string {
  return path.replaceAll(FREE_NAME, 'NAME')
}

function schemaOf(place: Place): JsonSchema {
  if (place.below.size === 0 && place.section === undefined) return place.value ?? {}
  const table = tableOf(place)
  const { section } = place
  const described = section === undefined ? {} : { description: section.meaning }
  const written = section?.repeated === true ? rowsOf(section, table) : table
  return place.value === undefined ? { ...described, ...written } : { anyOf: [place.value, written] }
}

function rowsOf({ otherForm }: AnySection, row: JsonSchema): JsonSchema {
  if (otherForm === '') return { type: 'array', items: row }
  const { required: _, ...ofNamed } = row
  // What is said of tables is nothing to an array, and the other way round.
  const table = otherForm === 'table' ? row : { additionalProperties: ofNamed }
  return { ...table, type: ['array', 'object'], items: row }
}

function tableOf(place: Place): JsonSchema {
  const { below, quoted, section } = place
  const named = [...below]
    .filter(([name]) => name !== FREE_NAME)
    .map(([name, inner]) => [name, schemaOf(inner)] as const)
  const joined = [...quoted].filter(([name]) => !name.includes(FREE_NAME))
  const free = [...quoted].filter(([name]) => name.includes(FREE_NAME))
  const patterns = [...free.map(([name, to]) => [`^${pattern(name)}$`, to] as const), ...tablesInQuotes(place)]
  const others = below.get(FREE_NAME)
  return {
    type: 'object',
    ...(section === undefined ? {} : needed(section, below)),
    properties: Object.fromEntries([...named, ...joined]),
    ...(patterns.length === 0 ? {} : { patternProperties: Object.fromEntries(patterns) }),
    additionalProperties: others === undefined ? false : schemaOf(others),
  }
}

/**
 * Names in quotes that lead to a table further down, or into another section. Those are known, and what stands behind
 * them is left to `check`: every value at every place that it may be written from would make a schema of megabytes.
 */
function tablesInQuotes(place: Place): readonly (readonly [pattern: string, of: JsonSchema])[] {
  return [...place.below].flatMap(([name, inner]) => {
    const tables: string[] = []
    const sections: string[] = []
    collectTables(inner, [], tables, sections)
    const start = `^${pattern(name)}`
    const [ends, ways] = [alternatives(tables.filter(table => table !== '')), alternatives(sections)]
    return [
      ...(ends === '' ? [] : [[`${start}${ends}$`, { type: ['object', 'array'] }] as const]),
      ...(sections.length === 0 ? [] : [[`${start}${ways}\\.`, {}] as const]),
    ]
  })
}

/** Of tables with their names below the first one; the keys of a section, and of those within it, are its own. */
function collectTables(place: Place, names: readonly string[], tables: string[], sections: string[]): void {
  const { below, section } = place
  if (below.size === 0 && section === undefined) return
  const name = names.map(each => `\\.${pattern(each)}`).join('')
  tables.push(name)
  if (section === undefined) for (const [next, inner] of below) collectTables(inner, [...names, next], tables, sections)
  else if (!section.repeated || section.otherForm !== '') sections.push(name)
}

/** '' for nothing but an empty one. */
function alternatives(patterns: readonly string[]): string {
  return patterns.join('') === '' ? '' : `(?:${patterns.join('|')})`
}

function pattern(name: string): string {
  return name.replaceAll('.', '\\.').replaceAll(FREE_NAME, '.+')
}

/** Keys that a row must set, and a section that has more in it than tables. */
function needed({ repeated, keys }: AnySection, below: Place['below']): JsonSchema {
  const names = Object.entries(keys)
    .filter(([name, { required, aliases }]) => required && aliases.length === 0 && below.has(name))
    .map(([name]) => name)
  if (names.length === 0) return {}
  if (repeated) return { required: names }
  const within = [...below].filter(([, { section }]) => section !== undefined).map(([name]) => pattern(name))
  const tables =
    within.length === 0 ? { maxProperties: 0 } : { propertyNames: { pattern: `^(?:${within.join('|')})(?:\\.|$)` } }
  return { anyOf: [{ required: names }, tables] }
}

function definitionOf({ definition }: CatalogueKey, shared: Shared): JsonSchema {
  const { secret, required, ceiling, follows, fallback } = definition
  const hasDefault = !secret && !required && ceiling === '' && follows === ''
  return {
    description: descriptionOf(definition),
    ...(hasDefault ? { default: fallback } : {}),
    ...(secret ? { examples: ['$env{NAME}'] } : {}),
    ...typesOf(definition, shared),
  }
}

function descriptionOf(key: Key<unknown>): string {
  const { meaning, expects, aliases, inertReason, isLive } = key
  return [
    meaning,
    `Expected: ${expects}.`,
    `Default: ${defaultOf(key)}.`,
    aliases.length === 0 ? '' : `Also spelled ${aliases.join(', ')}.`,
    inertReason === '' ? `Takes effect ${isLive ? 'at a reload' : 'at a restart'}.` : `${inertNote(key)}.`,
  ]
    .filter(part => part !== '')
    .join(' ')
}

/** Definitions that a key refers to, and what they are by name. */
type Shared = Map<string, JsonSchema>

/** Text for a number in the range of the alternative before it. */
function numbersAsText(
  alternatives: readonly JsonSchema[],
  { unit }: Key<unknown>,
  shared: Shared,
): readonly JsonSchema[] {
  return alternatives.map((alternative, index) => {
    const { minimum: from, maximum: to } = alternatives[index - 1] ?? {}
    if (typeof from !== 'number' || typeof to !== 'number') return alternative
    if (alternative.pattern === NUMERAL.source) {
      return sharedText(shared, `numeral.${from}-${to}`, numeralPattern(from, to))
    }
    if (alternative.pattern !== DURATION.source) return alternative
    const own = MS_PER[unit as keyof typeof MS_PER]
    const scales = Object.entries(MS_PER).map(([suffix, ms]) => [suffix, ms / own])
    const pattern = suffixedPattern(from, to, { '': 1, ...Object.fromEntries(scales) })
    return sharedText(shared, `duration.${unit}.${from}-${to}`, pattern)
  })
}

function sharedText(shared: Shared, name: string, pattern: string): JsonSchema {
  shared.set(name, { type: 'string', pattern })
  return { $ref: `#/definitions/${name}` }
}

/** The value itself or, where not every text will do anyway, a text with a reference in it. */
function typesOf(key: Key<unknown>, shared: Shared): JsonSchema {
  const plain = numbersAsText(flattened(key.schema), key, shared).map(orReferences)
  const alternatives = key.required ? plain.map(nonEmpty) : plain
  const takesAnyText = alternatives.some(
    ({ type, pattern }) => pattern === undefined && [type].flat().includes('string'),
  )
  if (!takesAnyText) return { anyOf: [...alternatives, TO_REFERENCE] }
  return alternatives.length === 1 ? alternatives[0]! : { anyOf: alternatives }
}

/** Of a list in which not every text will do. */
function orReferences(schema: JsonSchema): JsonSchema {
  const items = schema.items as JsonSchema | undefined
  return items?.pattern === undefined ? schema : { ...schema, items: { anyOf: [items, TO_REFERENCE] } }
}

function nonEmpty(schema: JsonSchema): JsonSchema {
  if (schema.type === 'array') return { ...schema, minItems: 1 }
  return schema.type === 'string' ? { ...schema, minLength: 1 } : schema
}

function flattened(schema: JsonSchema): readonly JsonSchema[] {
  return Array.isArray(schema.anyOf) ? schema.anyOf.flatMap(flattened) : [schema]
}

const WIDTH = 120

/** JSON as the formatter of this repository leaves it: on one line where it fits. `taken`: columns around it. */
function printed(value: unknown, indent: number, taken: number): string {
  const flat = onOneLine(value)
  if (taken + flat.length <= WIDTH || flat === '{}' || typeof value !== 'object' || value === null) return flat
  const inner = ' '.repeat(indent + 2)
  const isList = Array.isArray(value)
  const members = isList
    ? value.map(item => ['', item] as const)
    : Object.entries(value).map(([name, item]) => [`${JSON.stringify(name)}: `, item] as const)
  const items = members.map(([name, item], index) => {
    const comma = index < members.length - 1 ? ',' : ''
    return `${inner}${name}${printed(item, indent + 2, inner.length + name.length + comma.length)}${comma}\n`
  })
  const [open, close] = isList ? ['[', ']'] : ['{', '}']
  return `${open}\n${items.join('')}${' '.repeat(indent)}${close}`
}

function onOneLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(onOneLine).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${onOneLine(item)}`)
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`
}
