/** Maps paths to tables of the catalogue, and tells tables that are written once from repeated ones. */
import { allKeys, SECTIONS } from './catalogue.ts'
import { FREE_NAME, keyPath } from './key.ts'
import { withoutIndexes } from './setting.ts'

// The section above every header has no name, so no path begins with it.
const SINGLE = SECTIONS.filter(({ name, repeated }) => name !== '' && !repeated).map(section => section.name)
const REPEATED = SECTIONS.filter(section => section.repeated).map(section => section.name)
export const TABLE_NAMES: readonly string[] = [...SINGLE, ...REPEATED]

/** Repeated tables within the rows of another one. */
export function tablesIn(table: string): readonly string[] {
  return REPEATED.filter(name => name.startsWith(`${table}.`))
}

export function isSingle(table: string): boolean {
  return SINGLE.includes(table)
}

export function isRepeated(table: string): boolean {
  return REPEATED.includes(table)
}

/** The innermost section, written once, that contains a path; '' for none. */
export function sectionOf(path: string): string {
  return longest(SINGLE.filter(name => path.startsWith(`${name}.`)))
}

/** The innermost repeated table that a path names or lies in, indexes aside; '' for none. */
export function repeatedTableOf(path: string): string {
  const plain = withoutIndexes(path)
  return longest(REPEATED.filter(name => plain === name || plain.startsWith(`${name}.`)))
}

function longest(names: readonly string[]): string {
  return names.reduce((one, other) => (other.length > one.length ? other : one), '')
}

/** `a.b[0]` of `a.b[0].c`; '' for a path without an index of that table. */
export function rowOf(path: string, table: string): string {
  const ends = [...path.matchAll(/\]/g)].map(({ index }) => path.slice(0, index + 1))
  return ends.find(row => withoutIndexes(row) === table) ?? ''
}

/** A table as its header is written. */
export function headerText(table: string): string {
  if (table === '') return 'the part above every header'
  return isRepeated(table) ? `[[${table}]]` : `[${table}]`
}

let groupPaths: readonly (readonly string[])[] | undefined

/** Sections, and groups of keys within them, as lists of segments. Computed once, for the first unknown table. */
function groups(): readonly (readonly string[])[] {
  groupPaths ??= SECTIONS.flatMap(({ name, keys }) => [
    name.split('.'),
    ...Object.keys(keys).map(key => keyPath(name, key).split('.').slice(0, -1)),
  ])
  return groupPaths
}

type Aliases = ReadonlyMap<string, { readonly alias: string; readonly key: string }>

let aliasMap: Aliases | undefined

/** Path of an alias, without indexes -> the alias and the catalogue's name of the key. */
function aliases(): Aliases {
  aliasMap ??= new Map(
    allKeys().flatMap(({ section, key, definition }) =>
      definition.aliases.map(alias => [keyPath(section, alias), { alias, key }] as const),
    ),
  )
  return aliasMap
}

const ALTERNATIVE_NAMES = SECTIONS.flatMap(({ name, alternativeNames }) =>
  alternativeNames.map(alternative => [alternative, name] as const),
)

/** A path in the spelling of the catalogue. */
export function canonicalPath(path: string): string {
  const [alternative = '', name = ''] = ALTERNATIVE_NAMES.find(([given]) => path.startsWith(`${given}.`)) ?? []
  const renamed = name + path.slice(alternative.length)
  const { alias, key } = aliases().get(withoutIndexes(renamed)) ?? { alias: '', key: '' }
  return `${renamed.slice(0, renamed.length - alias.length)}${key}`
}

/** True if a header of this name, without indexes, can have keys of the catalogue below it. */
export function isKnownTable(table: string): boolean {
  const segments = canonicalPath(`${table}.`).slice(0, -1).split('.')
  return groups().some(
    group =>
      group.length >= segments.length &&
      segments.every((segment, index) => group[index] === segment || group[index] === FREE_NAME),
  )
}
