/** What is set and has no place in the catalogue: unknown keys and sections, tables and values one for the other. */
import { allKeys, type CatalogueKey } from './catalogue.ts'
import type { Fault } from './fault.ts'
import { FREE_NAME } from './key.ts'
import { nearest, nearOrRegrouped } from './nearest.ts'
import type { PresentKey } from './present-keys.ts'
import { type Headers, type PlacedTable, type Setting, withoutPlaces } from './setting.ts'
import { bracketed, isKnownTable, isRepeated, isSingle, repeatedOf, rowOf, sectionOf, TABLES } from './tables.ts'

interface Written extends Headers {
  /** By the catalogue's spelling of each path. */
  readonly winners: ReadonlyMap<string, Setting>
  /** By path. */
  readonly present: ReadonlyMap<string, PresentKey>
  /** Keys of any name that others refer to: those are of use. */
  readonly referred: ReadonlySet<string>
}

interface Strangers {
  /** Keys the catalogue has, written as what they are not. */
  readonly misplaced: readonly Fault[]
  readonly unknown: readonly Fault[]
}

export function strangersIn(written: Written): Strangers {
  const found = new Map<string, Fault>()
  const judged = new Set<string>()
  const blame = (fault: Fault | undefined, setting?: Setting): void => {
    if (fault === undefined) return
    if (setting !== undefined) judged.add(setting.path)
    if (!found.has(fault.key)) found.set(fault.key, fault)
  }
  const places = new Set(written.rows.map(row => row.path))
  const known = written.present
  const listed = written.rows.filter(row => listedAgainst(row) !== undefined)
  for (const row of listed) blame(listedAgainst(row))
  for (const row of written.rows) blame(outsideOfRows(row))
  for (const table of written.tables) {
    blame(unlistedAgainst(table.path, table.where, places))
    blame(tableForValue(table, known))
  }
  for (const setting of written.winners.values()) {
    const { path, where } = setting
    if (known.has(path)) continue
    if (listed.some(row => path.startsWith(`${row.path}.`))) judged.add(path)
    blame(unlistedAgainst(path, where, places), setting)
    blame(tableForValue(setting, known) ?? valueForTable(setting), setting)
    // `section = {}` is a section without keys.
    if (isEmptyTable(setting.value) && isKnownTable(withoutPlaces(path))) judged.add(path)
  }
  return { misplaced: [...found.values()], unknown: unknownOnes(written, known, judged) }
}

function listedAgainst({ where, path }: PlacedTable): Fault | undefined {
  const single = withoutPlaces(path)
  if (!path.endsWith(']') || isRepeated(single)) return undefined
  const isOurs = isSingle(single) || sectionOf(single) !== '' || repeatedOf(single) !== ''
  if (!isOurs || !isKnownTable(single)) return undefined
  const remedy = `write [${single}], not [[${single}]]`
  return { where, key: single, given: '', expected: 'cannot be repeated', remedy }
}

/** `[[a.b]]` where `[[a]]` is repeated as well, and no row of it stands above. */
function outsideOfRows({ where, path }: PlacedTable): Fault | undefined {
  const table = withoutPlaces(path)
  const outer = isRepeated(table) ? repeatedOf(table.slice(0, table.lastIndexOf('.'))) : ''
  if (outer === '' || rowOf(path, outer) !== '') return undefined
  const expected = `stands in no row of [[${outer}]]`
  return { where, key: table, given: '', expected, remedy: `write [[${outer}]] above it` }
}

function unlistedAgainst(path: string, where: string, places: ReadonlySet<string>): Fault | undefined {
  const table = repeatedOf(path)
  if (table === '') return undefined
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

/** `key.more = 1`, `key = { more = 1 }` or `[key]` where the key has a value of its own. */
function tableForValue({ path, where }: PlacedTable, known: ReadonlyMap<string, PresentKey>): Fault | undefined {
  const ends = [...path.matchAll(/\.|$/g)].map(({ index }) => path.slice(0, index))
  const key = known.get(ends.find(end => known.has(end)) ?? '')
  if (key === undefined) return undefined
  const expected = `expected ${key.definition.expects}`
  return { where, key: key.path, given: 'a table', expected, remedy: 'write one value behind an equals sign' }
}

/** `section = 1`, or a group of keys with a value. */
function valueForTable({ path, where, value }: Setting): Fault | undefined {
  const plain = withoutPlaces(path)
  if (!isKnownTable(plain) || isRepeated(plain)) return undefined
  const kind = isSingle(plain) ? 'a section' : 'a group of keys'
  if (isEmptyTable(value)) return undefined
  const given = Array.isArray(value) ? 'a list' : 'a value'
  return { where, key: path, given, expected: `is ${kind}`, remedy: `write [${plain}] above its keys` }
}

function isEmptyTable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}

function unknownOnes(
  { winners, rows, tables, referred }: Written,
  known: ReadonlyMap<string, PresentKey>,
  judged: ReadonlySet<string>,
): readonly Fault[] {
  if (winners.size + rows.length + tables.length === 0) return []
  const sections = new Set(known.values().map(key => key.section))
  const headers = new Map([...tables, ...rows].map(({ path, where }) => [path, where]))
  const reported = new Set<string>()
  const faults: Fault[] = []
  for (const setting of winners.values()) {
    const { path } = setting
    if (known.has(path) || judged.has(path) || referred.has(path)) continue
    const repeated = repeatedOf(path)
    const section = repeated === '' ? sectionOf(path) : rowOf(path, repeated)
    const table = withoutPlaces(setting.table)
    if (section !== '' && sections.has(section)) faults.push(unknownKey(setting, section))
    else if (table === '') faults.push(unknownTopKey(setting))
    else if (isKnownTable(table)) faults.push(unknownKey(setting, setting.table))
    else if (!reported.has(table)) faults.push(unknownSection(headers.get(setting.table) ?? setting.where, table))
    reported.add(table)
  }
  const used = tablesOf(winners.values())
  // Headers with nothing below them.
  for (const [path, where] of headers) {
    const table = withoutPlaces(path)
    if (used.has(path) || isKnownTable(table) || known.has(path) || reported.has(table)) continue
    reported.add(table)
    faults.push(unknownSection(where, table))
  }
  return faults
}

/** Those in which something stands, and those around them. */
function tablesOf(settings: Iterable<Setting>): ReadonlySet<string> {
  const tables = new Set<string>()
  for (const { table } of settings) {
    let path = table
    while (!tables.has(path)) {
      tables.add(path)
      path = path.slice(0, Math.max(0, path.lastIndexOf('.')))
    }
  }
  return tables
}

function unknownKey({ where, path }: Setting, section: string): Fault {
  const table = withoutPlaces(section)
  const name = path.slice(section.length + 1)
  const guess = guessFor(name, table)
  const remedy = guess === '' ? `\`explain ${table}\` lists its keys` : guess
  return { where, key: path, given: '', expected: `unknown key in ${bracketed(table)}`, remedy }
}

function guessFor(name: string, table: string): string {
  const within = allKeys().filter(key => key.section === table)
  const own = within.map(({ key }) => key.replace(FREE_NAME, nameWithin(name, key)))
  const near = nearOrRegrouped(name, own)
  if (near !== '') return `did you mean ${near}?`
  const [home, ...others] = homesOf(name, table)
  if (home !== undefined && others.length === 0) {
    return `did you mean ${home.path}? It belongs in ${bracketed(home.section)}`
  }
  if (home !== undefined) return `it belongs in ${[home, ...others].map(key => bracketed(key.section)).join(' or ')}`
  const alike = nearest(name, own)
  return alike === '' ? '' : `did you mean ${alike}?`
}

/** So short a name is found in too many places to be worth a guess. */
const TELLING = 5

/** Of more sections that have it, none is worth naming. */
const MOST_HOMES = 2

/** Where a key of another section belongs: in the sections that are nearest of those that have it, and act on it. */
function homesOf(name: string, table: string): readonly CatalogueKey[] {
  const homes = allKeys().filter(({ key }) => key === name)
  const shared = homes.map(({ section }) => sharedSegments(section, table))
  const most = Math.max(0, ...shared)
  const near = homes.filter((_, index) => shared[index] === most)
  const actedOn = near.filter(({ definition }) => definition.inertReason === '')
  const found = actedOn.length > 0 ? actedOn : near
  const isTelling = name.length >= TELLING || (most > 0 && near.length === 1)
  return isTelling && found.length <= MOST_HOMES ? found : []
}

function sharedSegments(one: string, other: string): number {
  const segments = other.split('.')
  const differs = one.split('.').findIndex((segment, index) => segment !== segments[index])
  return differs < 0 ? segments.length : differs
}

/** The operator's own part of a key with a free name: it is not what is misspelt. */
function nameWithin(name: string, pattern: string): string {
  const place = pattern.split('.').indexOf(FREE_NAME)
  const segments = name.split('.')
  return pattern.endsWith(FREE_NAME) ? segments.slice(place).join('.') : (segments[place] ?? '')
}

/** Above the first header, or outside of the file. */
function unknownTopKey({ where, path, line }: Setting): Fault {
  const guess = nearest(
    path,
    allKeys().map(key => key.path),
  )
  const section = allKeys().find(key => key.path === guess)?.section ?? ''
  const elsewhere = section === '' || line === 0 ? '' : ` It belongs below ${bracketed(section)}`
  const remedy = guess === '' ? '`explain` lists the keys' : `did you mean ${guess}?${elsewhere}`
  return { where, key: path, given: '', expected: 'unknown key', remedy }
}

function unknownSection(where: string, name: string): Fault {
  const guess = nearest(name, TABLES)
  const remedy = guess === '' ? '`explain` lists the sections' : `did you mean ${bracketed(guess)}?`
  return { where, key: name, given: '', expected: 'unknown section', remedy }
}
