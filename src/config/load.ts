/** From a home folder and `--set` arguments to a configuration. */
import { join, resolve as resolvePath } from 'node:path'
import { parse, TomlError } from 'smol-toml'
import type { Configuration } from './catalogue.ts'
import { readDocument } from './document.ts'
import { ConfigurationFaults, describe, type Fault } from './fault.ts'
import { type Resolution, type ResolvedKey, resolve } from './resolve.ts'
import type { PlacedRow, Setting } from './setting.ts'
import { labelOf, readSource } from './source-file.ts'

export interface Loaded {
  readonly configuration: Configuration
  readonly warnings: readonly string[]
  readonly resolved: readonly ResolvedKey[]
}

/** Throws ConfigurationFaults. What the catalogue does not know is a warning here, because the file may be newer. */
export function loadConfiguration(home: string, sets: readonly string[], dataDir = join(home, 'data')): Loaded {
  const { faults, unknown, warnings, configuration, keys } = examine(home, sets, dataDir)
  if (faults.length > 0) throw new ConfigurationFaults(faults)
  const ignored = unknown.map(fault => `${describe(fault)}; it has no effect`)
  return { configuration, warnings: [...ignored, ...warnings.map(describe)], resolved: keys }
}

/** Everything there is to say about a configuration, good or bad. */
export function examine(home: string, sets: readonly string[], dataDir: string): Resolution {
  const properties = new Map([
    ['home', resolvePath(home)],
    ['data', resolvePath(dataDir)],
  ])
  const file = readFile(home)
  const overrides = sets.map(readSet)
  const faults = [...file.faults, ...overrides.flatMap(({ fault }) => fault ?? [])]
  const settings = [...file.settings, ...overrides.flatMap(({ setting }) => setting ?? [])]
  const resolution = resolve(settings, file.rows, properties)
  // Without its file every other fault would be about defaults.
  const all = file.unreadable ? faults : [...faults, ...resolution.faults].sort(inOrderOfTheFile)
  return { ...resolution, faults: all }
}

function inOrderOfTheFile(one: Fault, other: Fault): number {
  return one.where.localeCompare(other.where, 'en', { numeric: true })
}

interface FileSettings {
  readonly settings: readonly Setting[]
  readonly rows: readonly PlacedRow[]
  readonly faults: readonly Fault[]
  readonly unreadable: boolean
}

/** The file stands in the home itself or, as on the reference platform, in `repository/conf` below it. */
function readFile(home: string): FileSettings {
  const candidates = [join(home, 'deployment.toml'), join(home, 'repository', 'conf', 'deployment.toml')]
  for (const path of candidates) {
    const source = readSource(path)
    if (source === undefined) continue
    if (source.fault !== undefined) return { settings: [], rows: [], faults: [source.fault], unreadable: true }
    const document = readDocument(source.label, source.text)
    const { entries, faults } = document
    const settings = entries.map(entry => ({ ...entry, where: `${source.label}:${entry.line}`, otherwise: undefined }))
    const rows = document.rows.map(({ path, line }) => ({ path, where: `${source.label}:${line}` }))
    return { settings, rows, faults, unreadable: faults.length > 0 && entries.length === 0 }
  }
  const expected = `there is no deployment.toml in it, nor in ${join('repository', 'conf')} below it`
  const fault = { where: labelOf(home), key: '', given: '', expected, remedy: 'name the right folder with --home' }
  return { settings: [], rows: [], faults: [fault], unreadable: true }
}

interface Override {
  readonly setting?: Setting
  readonly fault?: Fault
}

/** `section.key=value`; the value is TOML where it parses as one value, and text otherwise. */
function readSet(argument: string): Override {
  const equals = argument.indexOf('=')
  if (equals <= 0) {
    // Shown without what may be a value: it could be a password.
    const expected = 'expected section.key=value'
    return { fault: { where: '--set', key: '', given: '', expected, remedy: 'for example --set server.offset=1' } }
  }
  const text = argument.slice(equals + 1)
  const path = argument.slice(0, equals).trim()
  return { setting: { path, value: readValue(text), otherwise: text, line: 0, table: '', where: '--set' } }
}

function readValue(text: string): unknown {
  // A line end would let a value bring further keys with it.
  if (/[\r\n]/.test(text)) return text
  try {
    return parse(`value = ${text}`, { integersAsBigInt: 'asNeeded' }).value
  } catch (error) {
    if (error instanceof TomlError) return text
    throw error
  }
}
