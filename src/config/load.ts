/** From a home folder and `--set` arguments to a configuration. */
import { join, resolve as resolvePath } from 'node:path'
import { readDocument } from './document.ts'
import type { Fault } from './fault.ts'
import { readEnvironment } from './environment.ts'
import { settablePaths } from './present-keys.ts'
import { inRows } from './row-forms.ts'
import { type Resolution, resolve } from './resolve.ts'
import { type Headers, readValue, type Setting } from './setting.ts'
import { labelOf, readSource } from './source-file.ts'

const FILE_NAME = 'deployment.toml'

export interface Examination extends Resolution {
  /** The file could not be read: what stands beside its faults are defaults. */
  readonly unreadable: boolean
}

/** Everything there is to say about a configuration, good or bad. */
export function examine(home: string, sets: readonly string[], dataDir: string): Examination {
  const file = readFile(home)
  const overrides = sets.map(readSet)
  const faults = [...file.faults, ...overrides.flatMap(({ fault }) => fault ?? [])]
  const last = overrides.flatMap(({ setting }) => setting ?? [])
  const written = [...file.settings, ...last].map(({ path }) => path)
  const outside = readEnvironment(process.env, () => settablePaths(written, file.rows))
  const resolution = resolve([...file.settings, ...outside.settings, ...last], file, {
    home: resolvePath(home),
    data: resolvePath(dataDir),
    folder: resolvePath(file.folder),
  })
  // Without its file every other fault would be about defaults.
  if (file.unreadable) return { ...resolution, unreadable: true, faults: file.faults, unknown: [], warnings: [] }
  return {
    ...resolution,
    unreadable: false,
    faults: [...faults, ...resolution.faults].sort(inOrderOfTheFile),
    unknown: [...resolution.unknown, ...outside.unknown].sort(inOrderOfTheFile),
    warnings: [...file.warnings, ...resolution.warnings].sort(inOrderOfTheFile),
  }
}

/** By the line of the configuration file; then the environment, `--set`, and other files, each as they come. */
export function inOrderOfTheFile(one: Fault, other: Fault): number {
  return lineOf(one) - lineOf(other)
}

const OUTSIDE = ['environment', '--set', 'default']
const LINE = new RegExp(`${RegExp.escape(FILE_NAME)}(?::(\\d+)(?::\\d+)?)?$`)

function lineOf({ where }: Fault): number {
  const outside = OUTSIDE.findIndex(start => where.startsWith(start))
  if (outside >= 0) return Number.MAX_SAFE_INTEGER - OUTSIDE.length - 1 + outside
  const ofFile = LINE.exec(where)
  return ofFile === null ? Number.MAX_SAFE_INTEGER : Number(ofFile[1] ?? 0)
}

interface FileSettings extends Headers {
  readonly settings: readonly Setting[]
  readonly faults: readonly Fault[]
  readonly warnings: readonly Fault[]
  readonly unreadable: boolean
  /** What relative paths start from. */
  readonly folder: string
}

const NOTHING = { settings: [], rows: [], tables: [], faults: [], warnings: [], unreadable: true }

/** The file stands in the home itself or, as on the reference platform, in `repository/conf` below it. */
function readFile(home: string): FileSettings {
  const folders = [home, join(home, 'repository', 'conf')]
  const there = folders.flatMap(folder => {
    const source = readSource(join(folder, FILE_NAME))
    return source === undefined ? [] : [{ folder, source }]
  })
  const [first, second] = there
  if (first === undefined) {
    const expected = `there is no ${FILE_NAME} in it, nor in ${join('repository', 'conf')} below it`
    const fault = { where: labelOf(home), key: '', given: '', expected, remedy: 'name the right folder with --home' }
    return { ...NOTHING, faults: [fault], folder: home }
  }
  const { label, text, fault } = first.source
  if (fault !== undefined) return { ...NOTHING, faults: [fault], folder: first.folder }
  const warnings = second === undefined ? [] : [ignored(second.source.label, label)]
  const { entries, faults, ...headers } = inRows(readDocument(label, text))
  const placed = ({ path, line }: { readonly path: string; readonly line: number }) => ({
    path,
    where: `${label}:${line}`,
  })
  return {
    settings: entries.map(entry => ({ ...entry, ...placed(entry), otherwise: undefined })),
    rows: headers.rows.map(placed),
    tables: headers.tables.map(placed),
    faults,
    warnings,
    unreadable: faults.length > 0 && entries.length === 0,
    folder: first.folder,
  }
}

function ignored(label: string, inForce: string): Fault {
  return { where: label, key: '', given: '', expected: 'is not read', remedy: `${inForce} is; keep one of them` }
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
  // As in a file, quotes make no difference to which key is meant.
  const path = argument.slice(0, equals).replaceAll(/["']/g, '').trim()
  return { setting: { path, value: readValue(text), otherwise: text, line: 0, table: '', where: '--set' } }
}
