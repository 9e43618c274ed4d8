/** Which table of the catalogue a path is about, and whether that one is written once or once per row. */
import { allKeys, SECTIONS } from './catalogue.ts'
import { FREE_NAME, keyPath } from './key.ts'
import { withoutPlaces } from './setting.ts'

// Keys above every header are in a section without a name, which no path can be said to lie in.
const SINGLE = SECTIONS.filter(({ name, repeated }) => name !== '' && !repeated).map(section => section.name)
const REPEATED = SECTIONS.filter(section => section.repeated).map(section => section.name)
export const TABLES: readonly string[] = [...SINGLE, ...REPEATED]

/** The repeated tables whose rows stand within those of another one. */
export function tablesIn(table: string): readonly string[] {
  return REPEATED.filter(name => name.startsWith(`${table}.`))
}

export function isSingle(table: string): boolean {
  return SINGLE.includes(table)
}

export function isRepeated(table: string): boolean {
  return REPEATED.includes(table)
}

/** The section, written once, that a path lies in; '' when there is none. */
export function sectionOf(path: string): string {
  return longest(SINGLE.filter(name => path.startsWith(`${name}.`)))
}

/** The repeated table a path is about, whatever places it names; '' when there is none. */
export function repeatedOf(path: string): string {
  const plain = withoutPlaces(path)
  return longest(REPEATED.filter(name => plain === name || plain.startsWith(`${name}.`)))
}

/** Tables may stand within tables: the innermost is meant. */
function longest(names: readonly string[]): string {
  return names.reduce((one, other) => (other.length > one.length ? other : one), '')
}

/** `a.b[0]` of `a.b[0].c`; '' when the path names no place of the table. */
export function rowOf(path: string, table: string): string {
  const ends = [...path.matchAll(/\]/g)].map(({ index }) => path.slice(0, index + 1))
  return ends.find(row => withoutPlaces(row) === table) ?? ''
}

export function bracketed(table: string): string {
  if (table === '') return 'the part above every header'
  return isRepeated(table) ? `[[${table}]]` : `[${table}]`
}

/** Sections, and groups of keys within them, each segment by segment. Many starts never ask. */
function groups(): readonly (readonly string[])[] {
  everyGroup ??= SECTIONS.flatMap(({ name, keys }) => [
    name.split('.'),
    ...Object.keys(keys).map(key => keyPath(name, key).split('.').slice(0, -1)),
  ])
  return everyGroup
}

let everyGroup: readonly (readonly string[])[] | undefined

type Aliases = ReadonlyMap<string, { readonly alias: string; readonly key: string }>

/** Other spellings of keys, without places, and how the catalogue spells them. */
function aliases(): Aliases {
  everyAlias ??= new Map(
    allKeys().flatMap(({ section, key, definition }) =>
      definition.aliases.map(alias => [keyPath(section, alias), { alias, key }] as const),
    ),
  )
  return everyAlias
}

let everyAlias: Aliases | undefined

const OTHER_NAMES = SECTIONS.flatMap(({ name, otherNames }) => otherNames.map(other => [other, name] as const))

/** A path as the catalogue spells it. */
export function canonical(path: string): string {
  const [other = '', name = ''] = OTHER_NAMES.find(([given]) => path.startsWith(`${given}.`)) ?? []
  const ours = name + path.slice(other.length)
  const { alias, key } = aliases().get(withoutPlaces(ours)) ?? { alias: '', key: '' }
  return `${ours.slice(0, ours.length - alias.length)}${key}`
}

/** Whether a header of this name, without places, can have keys of the catalogue below it. */
export function isKnownTable(table: string): boolean {
  const segments = canonical(`${table}.`).slice(0, -1).split('.')
  return groups().some(
    group =>
      group.length >= segments.length &&
      segments.every((segment, index) => group[index] === segment || group[index] === FREE_NAME),
  )
}
