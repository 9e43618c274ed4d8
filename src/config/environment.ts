/**
 * Settings from environment variables: `SLUICE_SET_SERVER_OFFSET=10`. A variable is named like the path of its key, in
 * capitals, with each run of other characters as one `_`. Variables win over the file, and `--set` wins over them.
 */
import { allKeys } from './catalogue.ts'
import type { Diagnostic } from './diagnostics.ts'
import { nearest } from './nearest.ts'
import { readValue, type Setting } from './setting.ts'
import { isRepeated } from './tables.ts'

const PREFIX = 'SLUICE_SET_'

export function variableName(path: string): string {
  return PREFIX + path.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')
}

interface EnvironmentSettings {
  readonly settings: readonly Setting[]
  /** Variables that name no key. */
  readonly unknown: readonly Diagnostic[]
}

/**
 * `paths`: keys that a variable can set, those of the catalogue and those in the file. Names that the operator chose
 * and rows must be in the file, because capitals do not tell a name and a variable opens no row.
 */
export function readEnvironment(variables: NodeJS.ProcessEnv, paths: () => Iterable<string>): EnvironmentSettings {
  const set = Object.entries(variables).filter(([name]) => name.startsWith(PREFIX))
  // `paths` is costly, and most starts have no such variable.
  if (set.length === 0) return { settings: [], unknown: [] }
  const byVariable = Map.groupBy(new Set(paths()), variableName)
  const settings: Setting[] = []
  const unknown: Diagnostic[] = []
  for (const [name, text = ''] of set.sort(byName)) {
    const where = `environment ${name}`
    const [path, other] = byVariable.get(name) ?? []
    if (path !== undefined && other === undefined) {
      settings.push({ path, value: readValue(text), alternative: text, line: 0, table: '', where })
      continue
    }
    const expected = path === undefined ? 'names no key' : `names both ${path} and ${other}`
    const hint = path === undefined ? hintForVariable(name, [...byVariable.keys()]) : 'set them by --set'
    unknown.push({ where, key: '', given: '', expected, hint })
  }
  return { settings, unknown }
}

function byName([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  return one < other ? -1 : 1
}

function hintForVariable(name: string, known: readonly string[]): string {
  const isRow = allKeys().some(({ section, path }) => isRepeated(section) && isRowVariable(name, section, path))
  if (isRow) return 'rows are opened in the file, and numbered from 0'
  const guess = nearest(name, known)
  return guess === '' ? '`explain` lists the keys' : `did you mean ${guess}?`
}

/** True if a variable names a key of a row that the file does not have. */
function isRowVariable(name: string, section: string, path: string): boolean {
  return (
    name.startsWith(`${variableName(section)}_`) &&
    name.endsWith(variableName(path.slice(section.length)).slice(PREFIX.length))
  )
}
