/**
 * Resolves every key to its value: its default, or what the file, the environment or `--set` gives, with references
 * followed. Keeps all settings of a key, and collects every error.
 */
import { type CatalogueKey, type Configuration, SECTIONS } from './catalogue.ts'
import type { Diagnostic } from './diagnostics.ts'
import { type KeyInstance, keyInstances } from './key-instances.ts'
import { keysWithoutEffect } from './keys-without-effect.ts'
import type { Folders } from './properties.ts'
import { ruleViolations } from './rule-violations.ts'
import { type Setting, type TableHeaders, withoutIndexes } from './setting.ts'
import { canonicalPath, tablesIn } from './tables.ts'
import { findUnknownKeys } from './unknown-keys.ts'
import { ValueResolver } from './value-resolver.ts'

export { formatKeyValue } from './rule-violations.ts'

export interface ResolvedKey extends CatalogueKey {
  readonly value: unknown
  /** Place of the effective setting; '' for a default. */
  readonly where: string
  /** All settings with their given values; the last one is effective. */
  readonly settings: readonly Setting[]
  /** The key is secret, or its value refers to a secret. */
  readonly secret: boolean
  /** The effective setting cannot be read, and `value` is the default. */
  readonly invalid: boolean
}

export interface Resolution {
  readonly keys: readonly ResolvedKey[]
  readonly errors: readonly Diagnostic[]
  /** Keys and sections that the catalogue does not have: warnings at a start, errors for `check`. */
  readonly unknown: readonly Diagnostic[]
  readonly warnings: readonly Diagnostic[]
  readonly configuration: Configuration
}

/** Later settings of a key win over earlier ones. */
export function resolve(settings: readonly Setting[], headers: TableHeaders, folders: Folders): Resolution {
  const { effective, errors: duplicates } = effectiveSettings(settings)
  const settingsOf = Map.groupBy(settings, setting => canonicalPath(setting.path))
  const instances = new Map(keyInstances([...effective.keys()], headers.rows).map(key => [key.path, key]))
  const rows = new Map(headers.rows.map(row => [row.path, row.where]))
  const values = new ValueResolver({ effective, instances, rows, folders })
  const keys = [...instances.values().map(key => resolvedKey(key, values, settingsOf.get(key.path) ?? NOT_SET))]
  const configuration = assembleConfiguration(keys)
  const violations = ruleViolations(keys, configuration, rows)
  const { misplaced, unknown } = findUnknownKeys({ ...headers, effective, instances, referenced: values.referenced })
  return {
    keys,
    errors: [...duplicates, ...values.errors, ...misplaced, ...violations.errors],
    unknown,
    warnings: [...keysWithoutEffect(keys), ...violations.warnings],
    configuration,
  }
}

/** By the catalogue's spelling. Two spellings of one key in a file are an error, because neither is preferred. */
function effectiveSettings(settings: readonly Setting[]): {
  readonly effective: ReadonlyMap<string, Setting>
  readonly errors: readonly Diagnostic[]
} {
  const effective = new Map<string, Setting>()
  const spellings = new Map<string, string>()
  const errors: Diagnostic[] = []
  for (const setting of settings) {
    const path = canonicalPath(setting.path)
    const before = effective.get(path)
    if (before !== undefined && before.line > 0 && setting.line > 0) {
      const hint = `it is already set as ${spellings.get(path)} (${before.where}); leave one of them out`
      errors.push({ where: setting.where, key: setting.path, given: '', expected: 'set twice', hint })
    }
    effective.set(path, { ...setting, path })
    spellings.set(path, setting.path)
  }
  return { effective, errors }
}

const NOT_SET: readonly Setting[] = []

function resolvedKey(instance: KeyInstance, values: ValueResolver, settings: readonly Setting[]): ResolvedKey {
  const { section, key, path, definition } = instance
  const { value, secret, invalid } = values.resolve(path)
  return {
    section,
    key,
    path,
    definition,
    value: invalid ? definition.defaultValue : value,
    where: settings.at(-1)?.where ?? '',
    settings,
    secret: secret || definition.secret,
    invalid,
  }
}

function assembleConfiguration(keys: readonly ResolvedKey[]): Configuration {
  const bySection = Map.groupBy(keys, key => key.section)
  const pathsOf = Map.groupBy(bySection.keys(), withoutIndexes)
  const rowsOf = (table: string, outer: string): readonly Values[] => {
    const rows = (pathsOf.get(table) ?? []).filter(row => row.startsWith(outer))
    return Object.freeze(rows.map(row => frozenValues(bySection.get(row)!, innerRows(table, row))))
  }
  const innerRows = (outer: string, row: string): readonly (readonly [string, unknown])[] =>
    tablesIn(outer).map(table => [table.slice(outer.length + 1), rowsOf(table, `${row}.`)])
  const sections = SECTIONS.map(({ name, repeated }) => {
    return [name, repeated ? rowsOf(name, '') : frozenValues(bySection.get(name) ?? [])]
  })
  return Object.freeze(Object.fromEntries(sections)) as Configuration
}

type Values = Readonly<Record<string, unknown>>

function frozenValues(keys: readonly ResolvedKey[], inner: readonly (readonly [string, unknown])[] = []): Values {
  const own = keys.map(({ key, value }) => [key, Object.freeze(value)] as const)
  return Object.freeze(Object.fromEntries([...own, ...inner]))
}
