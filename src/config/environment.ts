/**
 * Keys set by variables of the environment: `SLUICE_SET_SERVER_OFFSET=10`. A variable has the name of its key's path in
 * capitals, with each run of other characters as one `_`. They win over the file, and `--set` wins over them.
 */
import { allKeys } from './catalogue.ts'
import type { Fault } from './fault.ts'
import { nearest } from './nearest.ts'
import { readValue, type Setting } from './setting.ts'
import { isRepeated } from './tables.ts'

const PREFIX = 'SLUICE_SET_'

export function variableOf(path: string): string {
  return PREFIX + path.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')
}

interface FromEnvironment {
  readonly settings: readonly Setting[]
  /** Variables that stand for no key. */
  readonly unknown: readonly Fault[]
}

/**
 * `paths`: keys that can be set so, which are those of the catalogue and those that the file has. A name of the
 * operator's own cannot be told from capitals, nor opens a variable a row: both have to be in the file.
 */
export function readEnvironment(variables: NodeJS.ProcessEnv, paths: () => Iterable<string>): FromEnvironment {
  const set = Object.entries(variables).filter(([name]) => name.startsWith(PREFIX))
  // Most starts have none, and need not know what could be set.
  if (set.length === 0) return { settings: [], unknown: [] }
  const byVariable = Map.groupBy(new Set(paths()), variableOf)
  const settings: Setting[] = []
  const unknown: Fault[] = []
  for (const [name, text = ''] of set.sort(byName)) {
    const where = `environment ${name}`
    const [path, other] = byVariable.get(name) ?? []
    if (path !== undefined && other === undefined) {
      settings.push({ path, value: readValue(text), otherwise: text, line: 0, table: '', where })
      continue
    }
    const expected = path === undefined ? 'stands for no key' : `stands for ${path} as well as ${other}`
    const remedy = path === undefined ? guessFor(name, [...byVariable.keys()]) : 'set them by --set'
    unknown.push({ where, key: '', given: '', expected, remedy })
  }
  return { settings, unknown }
}

function byName([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  return one < other ? -1 : 1
}

function guessFor(name: string, known: readonly string[]): string {
  const isRow = allKeys().some(({ section, path }) => isRepeated(section) && isOfRow(name, section, path))
  if (isRow) return 'rows are opened in the file, and numbered from 0'
  const guess = nearest(name, known)
  return guess === '' ? '`explain` lists the keys' : `did you mean ${guess}?`
}

/** Of a row that the file does not have. */
function isOfRow(name: string, section: string, path: string): boolean {
  return (
    name.startsWith(`${variableOf(section)}_`) &&
    name.endsWith(variableOf(path.slice(section.length)).slice(PREFIX.length))
  )
}
