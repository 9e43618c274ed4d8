/** What is set and has no place in the catalogue: unknown keys and sections, and tables repeated or not against it. */
import { allKeys, type CatalogueKey, SECTIONS } from './catalogue.ts'
import type { Fault } from './fault.ts'
import { FREE_NAME } from './key.ts'
import { nearest } from './nearest.ts'
import { type PlacedRow, type Setting, withoutPlaces } from './setting.ts'

const SINGLE = SECTIONS.filter(section => !section.repeated).map(section => section.name)
const REPEATED = SECTIONS.filter(section => section.repeated).map(section => section.name)

function sectionOf(path: string): string {
  return longest(SINGLE.filter(name => path.startsWith(`${name}.`)))
}

/** The repeated table a path is about, whatever places it names; '' when there is none. */
function repeatedOf(path: string): string {
  const plain = withoutPlaces(path)
  return longest(REPEATED.filter(name => plain === name || plain.startsWith(`${name}.`)))
}

/** Tables may stand within tables: the innermost is meant. */
function longest(names: readonly string[]): string {
  return names.reduce((one, other) => (other.length > one.length ? other : one), '')
}

/** `a.b[0]` of `a.b[0].c`; '' when the path names no place of the table. */
function rowOf(path: string, table: string): string {
  const ends = [...path.matchAll(/\]/g)].map(({ index }) => path.slice(0, index + 1))
  return ends.find(row => withoutPlaces(row) === table) ?? ''
}

/** Keys the catalogue has, under a header that makes them a list, or under one that makes no list of them. */
export function misplaced(winners: ReadonlyMap<string, Setting>, rows: readonly PlacedRow[]): readonly Fault[] {
  const places = new Set(rows.map(row => row.path))
  const found = new Map<string, Fault>()
  for (const setting of winners.values()) {
    const repeated = repeatedOf(setting.path)
    const fault = repeated === '' ? listedAgainst(setting) : unlistedAgainst(setting, repeated, places)
    if (fault !== undefined && !found.has(fault.key)) found.set(fault.key, fault)
  }
  return [...found.values()]
}

function listedAgainst({ where, table }: Setting): Fault | undefined {
  const single = withoutPlaces(table)
  if (single === table || (!SINGLE.includes(single) && sectionOf(single) === '')) return undefined
  const remedy = `write [${single}], not [[${single}]]`
  return { where, key: single, given: '', expected: 'cannot be repeated', remedy }
}

function unlistedAgainst({ where, path }: Setting, table: string, places: ReadonlySet<string>): Fault | undefined {
  const row = rowOf(path, table)
  if (places.has(row)) return undefined
  if (row !== '') {
    const expected = 'there is no such row'
    return { where, key: row, given: '', expected, remedy: `rows are opened in the file, each by [[${table}]]` }
  }
  const remedy =
    where === '--set' ? `name the row: ${table}[0] is the first` : `write [[${table}]] above the keys of each row`
  return { where, key: table, given: '', expected: 'is a list of rows', remedy }
}

/** Misplaced ones are not among them. */
export function unknownOnes(winners: ReadonlyMap<string, Setting>, present: readonly CatalogueKey[]): readonly Fault[] {
  const known = new Set(present.map(key => key.path))
  const sections = new Set(present.map(key => key.section))
  const reportedTables = new Set<string>()
  const faults: Fault[] = []
  for (const setting of winners.values()) {
    if (known.has(setting.path)) continue
    const repeated = repeatedOf(setting.path)
    const table = withoutPlaces(setting.table)
    const section = repeated === '' ? sectionOf(setting.path) : rowOf(setting.path, repeated)
    if (section !== '' && sections.has(section)) faults.push(unknownKey(setting, section))
    else if (repeated !== '' || sectionOf(`${table}.`) !== '') continue
    else if (table === '' || !reportedTables.has(table)) {
      reportedTables.add(table)
      faults.push(unknownSection(setting))
    }
  }
  return faults
}

function unknownKey({ where, path }: Setting, section: string): Fault {
  const table = withoutPlaces(section)
  const within = allKeys().filter(known => known.section === table)
  const name = path.slice(section.length + 1)
  // Where a name is free, it is not what is misspelt.
  const end = name.slice(name.lastIndexOf('.') + 1)
  const own = nearest(
    name,
    within.map(known => known.key.replace(FREE_NAME, end)),
  )
  const guess = own === '' ? (allKeys().find(known => known.path.endsWith(`.${name}`))?.path ?? '') : own
  const remedy = guess === '' ? `\`explain ${table}\` lists its keys` : `did you mean ${guess}?`
  return { where, key: path, given: '', expected: `unknown key in ${bracketed(table)}`, remedy }
}

function unknownSection({ where, path, table }: Setting): Fault {
  const isKey = table === ''
  const name = isKey ? path : withoutPlaces(table)
  const sections = [...SINGLE, ...REPEATED]
  const guess = nearest(name, isKey ? [...allKeys().map(key => key.path), ...sections] : sections)
  const remedy = guess === '' ? '`explain` lists the sections' : `did you mean ${isKey ? guess : bracketed(guess)}?`
  return { where, key: name, given: '', expected: isKey ? 'unknown key' : 'unknown section', remedy }
}

function bracketed(table: string): string {
  return REPEATED.includes(table) ? `[[${table}]]` : `[${table}]`
}
