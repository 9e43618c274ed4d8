/** Finds settings that have no place in the catalogue: unknown keys and sections, and tables written for values. */
import { allKeys, type CatalogueKey } from './catalogue.ts'
import type { Diagnostic } from './diagnostics.ts'
import { FREE_NAME } from './key.ts'
import type { KeyInstance } from './key-instances.ts'
import { nearest, nearestTypoOrRegrouped } from './nearest.ts'
import { type LocatedTable, type Setting, type TableHeaders, withoutIndexes } from './setting.ts'
import {
  headerText,
  isKnownTable,
  isRepeated,
  isSingle,
  repeatedTableOf,
  rowOf,
  sectionOf,
  TABLE_NAMES,
} from './tables.ts'

type Instances = ReadonlyMap<string, KeyInstance>

interface WrittenKeys extends TableHeaders {
  /** Effective settings by the catalogue's spelling of each path. */
  readonly effective: ReadonlyMap<string, Setting>
  /** By path. */
  readonly instances: Instances
  /** Paths that references read; unknown keys among them are in use. */
  readonly referenced: ReadonlySet<string>
}

interface UnknownKeys {
  /** Known names in the wrong form: a table for a value, a repeated table written once, and the like. */
  readonly misplaced: readonly Diagnostic[]
  readonly unknown: readonly Diagnostic[]
}

export function findUnknownKeys(written: WrittenKeys): UnknownKeys {
  const { rows, tables, effective, instances } = written
  const misplaced = new Map<string, Diagnostic>()
  const reported = new Set<string>()
  const report = (diagnostic: Diagnostic | undefined, setting?: Setting): void => {
    if (diagnostic === undefined) return
    if (setting !== undefined) reported.add(setting.path)
    if (!misplaced.has(diagnostic.key)) misplaced.set(diagnostic.key, diagnostic)
  }
  const rowPaths = new Set(rows.map(row => row.path))
  const wrongRows = rows.filter(row => repeatedSingleTable(row) !== undefined)
  for (const row of wrongRows) report(repeatedSingleTable(row))
  for (const row of rows) report(rowOutsideOfRow(row))
  for (const table of tables) {
    report(missingRow(table.path, table.where, rowPaths))
    report(tableForValue(table, instances))
  }
  for (const setting of effective.values()) {
    const { path, where } = setting
    if (instances.has(path)) continue
    if (wrongRows.some(row => path.startsWith(`${row.path}.`))) reported.add(path)
    report(missingRow(path, where, rowPaths), setting)
    report(tableForValue(setting, instances) ?? valueForTable(setting), setting)
    // `section = {}` is a section without keys.
    if (isTable(setting.value) && isKnownTable(withoutIndexes(path))) reported.add(path)
  }
  return { misplaced: [...misplaced.values()], unknown: unknownKeysAndSections(written, reported) }
}

/** `[[section]]` for a section that is written once. */
function repeatedSingleTable({ where, path }: LocatedTable): Diagnostic | undefined {
  const table = withoutIndexes(path)
  if (!path.endsWith(']') || isRepeated(table)) return undefined
  const isInSection = isSingle(table) || sectionOf(table) !== '' || repeatedTableOf(table) !== ''
  if (!isInSection || !isKnownTable(table)) return undefined
  const hint = `write [${table}], not [[${table}]]`
  return { where, key: table, given: '', expected: 'cannot be repeated', hint }
}

/** `[[a.b]]` without a row of the repeated table `[[a]]` above it. */
function rowOutsideOfRow({ where, path }: LocatedTable): Diagnostic | undefined {
  const table = withoutIndexes(path)
  const outer = isRepeated(table) ? repeatedTableOf(table.slice(0, table.lastIndexOf('.'))) : ''
  if (outer === '' || rowOf(path, outer) !== '') return undefined
  const expected = `stands in no row of [[${outer}]]`
  return { where, key: table, given: '', expected, hint: `write [[${outer}]] above it` }
}

/** A key or table of a repeated table that names no row, or one that the file does not open. */
function missingRow(path: string, where: string, rows: ReadonlySet<string>): Diagnostic | undefined {
  const table = repeatedTableOf(path)
  if (table === '') return undefined
  const row = rowOf(path, table)
  if (rows.has(row)) return undefined
  if (row !== '') {
    const expected = 'there is no such row'
    return { where, key: row, given: '', expected, hint: `rows are opened in the file, each by [[${table}]]` }
  }
  const hint =
    where === '--set' ? `name the row: ${table}[0] is the first` : `write [[${table}]] above the keys of each row`
  return { where, key: table, given: '', expected: 'is a list of rows', hint }
}

/** `key.more = 1`, `key = { more = 1 }` or `[key]` for a key that has a value. */
function tableForValue({ path, where }: LocatedTable, instances: Instances): Diagnostic | undefined {
  const prefixes = [...path.matchAll(/\.|$/g)].map(({ index }) => path.slice(0, index))
  const key = instances.get(prefixes.find(prefix => instances.has(prefix)) ?? '')
  if (key === undefined) return undefined
  const expected = `expected ${key.definition.expects}`
  return { where, key: key.path, given: 'a table', expected, hint: 'write one value after an equals sign' }
}

/** `section = 1`, or a value for a group of keys. */
function valueForTable({ path, where, value }: Setting): Diagnostic | undefined {
  const table = withoutIndexes(path)
  if (!isKnownTable(table) || isRepeated(table) || isTable(value)) return undefined
  const kind = isSingle(table) ? 'a section' : 'a group of keys'
  const given = Array.isArray(value) ? 'a list' : 'a value'
  return { where, key: path, given, expected: `is ${kind}`, hint: `write [${table}] above its keys` }
}

/** An entry with a table for a value holds an empty one, because every other has entries of its own. */
function isTable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}

/** `reported`: paths of settings with a diagnostic of their own. */
function unknownKeysAndSections(
  { effective, rows, tables, referenced, instances }: WrittenKeys,
  reported: ReadonlySet<string>,
): readonly Diagnostic[] {
  if (effective.size + rows.length + tables.length === 0) return []
  const sections = new Set(instances.values().map(key => key.section))
  const headers = new Map([...tables, ...rows].map(({ path, where }) => [path, where]))
  const reportedTables = new Set<string>()
  const unknown: Diagnostic[] = []
  for (const setting of effective.values()) {
    const { path } = setting
    if (instances.has(path) || reported.has(path) || referenced.has(path)) continue
    const repeated = repeatedTableOf(path)
    const section = repeated === '' ? sectionOf(path) : rowOf(path, repeated)
    const table = withoutIndexes(setting.table)
    if (section !== '' && sections.has(section)) unknown.push(unknownKey(setting, section))
    else if (table === '') unknown.push(unknownTopLevelKey(setting))
    else if (isKnownTable(table)) unknown.push(unknownKey(setting, setting.table))
    else if (!reportedTables.has(table)) {
      unknown.push(unknownSection(headers.get(setting.table) ?? setting.where, table))
    }
    reportedTables.add(table)
  }
  const used = tablesOf(effective.values())
  // Headers without keys below them.
  for (const [path, where] of headers) {
    const table = withoutIndexes(path)
    if (used.has(path) || isKnownTable(table) || instances.has(path) || reportedTables.has(table)) continue
    reportedTables.add(table)
    unknown.push(unknownSection(where, table))
  }
  return unknown
}

/** Tables that contain settings, and the tables around them. */
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

function unknownKey({ where, path }: Setting, section: string): Diagnostic {
  const table = withoutIndexes(section)
  const name = path.slice(section.length + 1)
  const guess = hintForName(name, table)
  const hint = guess === '' ? `\`explain ${table}\` lists its keys` : guess
  return { where, key: path, given: '', expected: `unknown key in ${headerText(table)}`, hint }
}

function hintForName(name: string, table: string): string {
  const within = allKeys().filter(key => key.section === table)
  const own = within.map(({ key }) => key.replace(FREE_NAME, operatorPart(name, key)))
  const near = nearestTypoOrRegrouped(name, own)
  if (near !== '') return `did you mean ${near}?`
  const [home, ...others] = keysElsewhere(name, table)
  if (home !== undefined && others.length === 0) {
    return `did you mean ${home.path}? It belongs in ${headerText(home.section)}`
  }
  if (home !== undefined) return `it belongs in ${[home, ...others].map(key => headerText(key.section)).join(' or ')}`
  const similar = nearest(name, own)
  return similar === '' ? '' : `did you mean ${similar}?`
}

/** A shorter name occurs in too many sections to guess one. */
const TELLING_LENGTH_MIN = 5

/** More sections than these are no help to the operator. */
const SECTIONS_NAMED_MAX = 2

/** Keys of that name in other sections: those nearest to the table, and of these the ones that are acted on. */
function keysElsewhere(name: string, table: string): readonly CatalogueKey[] {
  const homes = allKeys().filter(({ key }) => key === name)
  const shared = homes.map(({ section }) => sharedSegments(section, table))
  const most = Math.max(0, ...shared)
  const near = homes.filter((_, index) => shared[index] === most)
  const active = near.filter(({ definition }) => definition.inertReason === '')
  const found = active.length > 0 ? active : near
  const isTelling = name.length >= TELLING_LENGTH_MIN || (most > 0 && near.length === 1)
  return isTelling && found.length <= SECTIONS_NAMED_MAX ? found : []
}

/** How many leading segments two tables have in common. */
function sharedSegments(one: string, other: string): number {
  const segments = other.split('.')
  const difference = one.split('.').findIndex((segment, index) => segment !== segments[index])
  return difference < 0 ? segments.length : difference
}

/** The part of a name that the operator chose, which cannot be misspelt. `pattern`: a key with FREE_NAME. */
function operatorPart(name: string, pattern: string): string {
  const index = pattern.split('.').indexOf(FREE_NAME)
  const segments = name.split('.')
  return pattern.endsWith(FREE_NAME) ? segments.slice(index).join('.') : (segments[index] ?? '')
}

/** A key above the first header, or from outside the file. */
function unknownTopLevelKey({ where, path, line }: Setting): Diagnostic {
  const guess = nearest(
    path,
    allKeys().map(key => key.path),
  )
  const section = allKeys().find(key => key.path === guess)?.section ?? ''
  const place = section === '' || line === 0 ? '' : ` It belongs below ${headerText(section)}`
  const hint = guess === '' ? '`explain` lists the keys' : `did you mean ${guess}?${place}`
  return { where, key: path, given: '', expected: 'unknown key', hint }
}

function unknownSection(where: string, name: string): Diagnostic {
  const guess = nearest(name, TABLE_NAMES)
  const hint = guess === '' ? '`explain` lists the sections' : `did you mean ${headerText(guess)}?`
  return { where, key: name, given: '', expected: 'unknown section', hint }
}
