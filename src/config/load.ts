/** Loads a configuration from a home folder, the environment and `--set` arguments. */
import { join, resolve as resolvePath } from 'node:path'
import { normalizeRows } from './array-of-tables.ts'
import type { Diagnostic } from './diagnostics.ts'
import { readDocument } from './document.ts'
import { readEnvironment } from './environment.ts'
import { settablePaths } from './key-instances.ts'
import { type Resolution, resolve } from './resolve.ts'
import { readValue, type Setting, type TableHeaders } from './setting.ts'
import { labelOf, readSource } from './source-file.ts'

const FILE_NAME = 'deployment.toml'

export interface Examination extends Resolution {
  /** The file could not be read, and every key has its default. */
  readonly unreadable: boolean
}

/** The configuration with all its errors and warnings. */
export function examine(home: string, sets: readonly string[], dataDir: string): Examination {
  const file = readFile(home)
  const overrides = sets.map(readSet)
  const errors = [...file.errors, ...overrides.flatMap(({ error }) => error ?? [])]
  const fromArguments = overrides.flatMap(({ setting }) => setting ?? [])
  const written = [...file.settings, ...fromArguments].map(({ path }) => path)
  const environment = readEnvironment(process.env, () => settablePaths(written, file.rows))
  const resolution = resolve([...file.settings, ...environment.settings, ...fromArguments], file, {
    home: resolvePath(home),
    data: resolvePath(dataDir),
    configuration: resolvePath(file.folder),
  })
  // Without the file, every other error would be about a default.
  if (file.unreadable) return { ...resolution, unreadable: true, errors: file.errors, unknown: [], warnings: [] }
  return {
    ...resolution,
    unreadable: false,
    errors: [...errors, ...resolution.errors].sort(byFileOrder),
    unknown: [...resolution.unknown, ...environment.unknown].sort(byFileOrder),
    warnings: [...file.warnings, ...resolution.warnings].sort(byFileOrder),
  }
}

/** Compares by line of `deployment.toml`; the environment, `--set`, defaults and other files follow in their order. */
export function byFileOrder(one: Diagnostic, other: Diagnostic): number {
  return lineOf(one) - lineOf(other)
}

const OTHER_ORIGINS = ['environment', '--set', 'default']
const LINE = new RegExp(`${RegExp.escape(FILE_NAME)}(?::(\\d+)(?::\\d+)?)?$`)

function lineOf({ where }: Diagnostic): number {
  const origin = OTHER_ORIGINS.findIndex(start => where.startsWith(start))
  if (origin >= 0) return Number.MAX_SAFE_INTEGER - OTHER_ORIGINS.length - 1 + origin
  const match = LINE.exec(where)
  return match === null ? Number.MAX_SAFE_INTEGER : Number(match[1] ?? 0)
}

interface ConfigurationFile extends TableHeaders {
  readonly settings: readonly Setting[]
  readonly errors: readonly Diagnostic[]
  readonly warnings: readonly Diagnostic[]
  readonly unreadable: boolean
  /** Base of relative paths. */
  readonly folder: string
}

const UNREADABLE_FILE = { settings: [], rows: [], tables: [], errors: [], warnings: [], unreadable: true }

/** The file stands in the home folder or, as on the reference platform, in `repository/conf` below it. */
function readFile(home: string): ConfigurationFile {
  const folders = [home, join(home, 'repository', 'conf')]
  const files = folders.flatMap(folder => {
    const source = readSource(join(folder, FILE_NAME))
    return source === undefined ? [] : [{ folder, source }]
  })
  const [first, second] = files
  if (first === undefined) {
    const expected = `there is no ${FILE_NAME} in it, nor in ${join('repository', 'conf')} below it`
    const error = {
      where: labelOf(home),
      key: '',
      given: '',
      expected,
      hint: 'name the right folder with --home, or make one with sluice init',
    }
    return { ...UNREADABLE_FILE, errors: [error], folder: home }
  }
  const { label, text, error } = first.source
  if (error !== undefined) return { ...UNREADABLE_FILE, errors: [error], folder: first.folder }
  const warnings = second === undefined ? [] : [notRead(second.source.label, label)]
  const { entries, errors, ...headers } = normalizeRows(readDocument(label, text))
  const located = ({ path, line }: { readonly path: string; readonly line: number }) => ({
    path,
    where: `${label}:${line}`,
  })
  return {
    settings: entries.map(entry => ({ ...entry, ...located(entry), alternative: undefined })),
    rows: headers.rows.map(located),
    tables: headers.tables.map(located),
    errors,
    warnings,
    unreadable: errors.length > 0 && entries.length === 0,
    folder: first.folder,
  }
}

function notRead(label: string, usedLabel: string): Diagnostic {
  return { where: label, key: '', given: '', expected: 'is not read', hint: `${usedLabel} is; keep one of them` }
}

interface Override {
  readonly setting?: Setting
  readonly error?: Diagnostic
}

/** `section.key=value`; the value is TOML where it parses as one value, and text otherwise. */
function readSet(argument: string): Override {
  const equals = argument.indexOf('=')
  if (equals <= 0) {
    // The argument is not quoted, because it could be a password.
    const expected = 'expected section.key=value'
    return { error: { where: '--set', key: '', given: '', expected, hint: 'for example --set server.offset=1' } }
  }
  const text = argument.slice(equals + 1)
  // Quotes in a path make no difference, as in a file.
  const path = argument.slice(0, equals).replaceAll(/["']/g, '').trim()
  return { setting: { path, value: readValue(text), alternative: text, line: 0, table: '', where: '--set' } }
}
