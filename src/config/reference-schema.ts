/**
 * Generates a JSON Schema (draft 7) of `deployment.toml`, for completion and validation in editors. Its description
 * names what only `check` validates.
 */
import { type AnySection, allKeys, type CatalogueKey, SECTIONS } from './catalogue.ts'
import { FREE_NAME, type JsonSchema, type Key, keyPath, NUMERAL } from './key.ts'
import { DURATION, MS_PER } from './kinds.ts'
import { numeralPattern, suffixedPattern } from './number-patterns.ts'
import { SECRETS_SECTION } from './external-values.ts'
import { describeDefault, inertNote, requirementNote } from './key-description.ts'

const REFERENCE = {
  description: 'Text with a reference to another key, the environment, a file or a property.',
  type: 'string',
  pattern: '\\$(ref|conf|env|file|secret)?\\{[^{}]*\\}',
}
/** The section of the reference platform whose keys the operator names. */
const OPERATORS_SECRETS = {
  description: 'Texts in square brackets, "[text]", for references $secret{name}.',
  type: 'object',
  additionalProperties: { type: 'string' },
}
const ABOUT = [
  'Generated from the catalogue of keys by `npm run reference`. Only `check` validates rules across keys, the values',
  'of references, the syntax of hosts, addresses, URLs and list items, and values in tables with quoted names. `check`',
  'requires keys of a section only where the role of the node reads it, and accepts unknown keys that references use.',
].join(' ')
const TO_REFERENCE = { $ref: '#/definitions/reference' }

/** Keys and tables that may occur in one table of the file, or the value at its path. */
interface SchemaNode {
  /** By next segment of the path; FREE_NAME for any other name. */
  readonly below: Map<string, SchemaNode>
  /** Keys further down as quoted names with dots: `"http.socket.timeout" = 1`. */
  readonly quoted: Map<string, JsonSchema>
  section?: AnySection
  value?: JsonSchema
}

export function schemaPage(): string {
  const root = emptyNode()
  for (const section of SECTIONS)
    for (const name of [section.name, ...section.alternativeNames]) addSection(root, section, name)
  const shared: Shared = new Map()
  const definitions = Object.fromEntries(allKeys().map(key => [definitionName(key.path), definitionOf(key, shared)]))
  const { properties, ...table } = tableOf(root)
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'deployment.toml of Sluice',
    description: ABOUT,
    ...table,
    properties: { ...(properties as JsonSchema), [SECRETS_SECTION]: OPERATORS_SECRETS },
    definitions: { reference: REFERENCE, ...Object.fromEntries(shared), ...definitions },
  }
  return `${printed(schema, 0, 0)}\n`
}

function emptyNode(): SchemaNode {
  return { below: new Map(), quoted: new Map() }
}

function childNode(place: SchemaNode, name: string): SchemaNode {
  const before = place.below.get(name)
  if (before !== undefined) return before
  const made = emptyNode()
  place.below.set(name, made)
  return made
}

/** `name`: the name of the section or an alternative one. */
function addSection(root: SchemaNode, section: AnySection, name: string): void {
  const table = name === '' ? root : name.split('.').reduce(childNode, root)
  if (table !== root) table.section = section
  for (const [key, { aliases }] of Object.entries(section.keys)) {
    const reference = { $ref: `#/definitions/${definitionName(keyPath(section.name, key))}` }
    for (const spelling of [key, ...aliases]) addKey(table, spelling.split('.'), reference)
  }
}

function addKey(table: SchemaNode, names: readonly string[], reference: JsonSchema): void {
  let place = table
  names.forEach((name, depth) => {
    if (depth < names.length - 1) place.quoted.set(names.slice(depth).join('.'), reference)
    place = childNode(place, name)
  })
  place.value = reference
}

/** Without characters that a JSON pointer must escape. */
function definitionName(path: string): string {
  return path.replaceAll(FREE_NAME, 'NAME')
}

function schemaOf(place: SchemaNode): JsonSchema {
  if (place.below.size === 0 && place.section === undefined) return place.value ?? {}
  const table = tableOf(place)
  const { section } = place
  const described = section === undefined ? {} : { description: section.meaning }
  const written = section?.repeated === true ? rowsOf(section, table) : table
  return place.value === undefined ? { ...described, ...written } : { anyOf: [place.value, written] }
}

function rowsOf({ alternativeForm }: AnySection, row: JsonSchema): JsonSchema {
  if (alternativeForm === '') return { type: 'array', items: row }
  const { required: _, ...ofNamed } = row
  // Keywords for tables do not apply to arrays, nor the reverse.
  const table = alternativeForm === 'table' ? row : { additionalProperties: ofNamed }
  return { ...table, type: ['array', 'object'], items: row }
}

function tableOf(place: SchemaNode): JsonSchema {
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
 * Quoted names that lead to a table further down or into another section. Their values are left to `check`, because
 * every value at every path that reaches it would make a schema of megabytes.
 */
function tablesInQuotes(place: SchemaNode): readonly (readonly [pattern: string, of: JsonSchema])[] {
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

/** Collects patterns of nested table names; stops at a section, which has its own keys. */
function collectTables(place: SchemaNode, names: readonly string[], tables: string[], sections: string[]): void {
  const { below, section } = place
  if (below.size === 0 && section === undefined) return
  const name = names.map(each => `\\.${pattern(each)}`).join('')
  tables.push(name)
  if (section === undefined) for (const [next, inner] of below) collectTables(inner, [...names, next], tables, sections)
  else if (!section.repeated || section.alternativeForm !== '') sections.push(name)
}

/** '' for no pattern but the empty one. */
function alternatives(patterns: readonly string[]): string {
  return patterns.join('') === '' ? '' : `(?:${patterns.join('|')})`
}

function pattern(name: string): string {
  return name.replaceAll('.', '\\.').replaceAll(FREE_NAME, '.+')
}

/** Keys that a row must set, and that a section must set where it holds more than tables. */
function needed({ repeated, keys }: AnySection, below: SchemaNode['below']): JsonSchema {
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
  const { secret, required, cappedBy, follows, defaultValue } = definition
  const hasDefault = !secret && !required && cappedBy === '' && follows === ''
  return {
    description: descriptionOf(definition),
    ...(hasDefault ? { default: defaultValue } : {}),
    ...(secret ? { examples: ['$env{NAME}'] } : {}),
    ...typesOf(definition, shared),
  }
}

function descriptionOf(key: Key<unknown>): string {
  const { meaning, expects, aliases, inertReason, isLive } = key
  return [
    meaning,
    `Expected: ${expects}.`,
    `Default: ${describeDefault(key)}.`,
    aliases.length === 0 ? '' : `Also spelled ${aliases.join(', ')}.`,
    requirementNote(key) === '' ? '' : `${requirementNote(key)}.`,
    inertReason === '' ? `Takes effect ${isLive ? 'at a reload' : 'at a restart'}.` : `${inertNote(key)}.`,
  ]
    .filter(part => part !== '')
    .join(' ')
}

/** Shared definitions of the schema, by name. */
type Shared = Map<string, JsonSchema>

/** Narrows the pattern of a quoted number to the range of the alternative before it. */
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

/** The schema of the value, or a text with a reference where the value may not be any text. */
function typesOf(key: Key<unknown>, shared: Shared): JsonSchema {
  const plain = numbersAsText(flattened(key.schema), key, shared).map(orReferences)
  const alternatives = key.required ? plain.map(nonEmpty) : plain
  const takesAnyText = alternatives.some(
    ({ type, pattern }) => pattern === undefined && [type].flat().includes('string'),
  )
  if (!takesAnyText) return { anyOf: [...alternatives, TO_REFERENCE] }
  return alternatives.length === 1 ? alternatives[0]! : { anyOf: alternatives }
}

/** Accepts references as list items, where items may not be any text. */
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

/** JSON as the formatter of this repository writes it: on one line where it fits. `taken`: columns around it. */
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
