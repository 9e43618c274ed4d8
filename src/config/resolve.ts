/**
 * The value of every key: its default, or what the file, the environment or `--set` says, references followed.
 * Remembers which of them won, and collects every fault there is.
 */
import { type CatalogueKey, type Configuration, SECTIONS } from './catalogue.ts'
import type { Fault } from './fault.ts'
import { type PresentKey, presentKeys } from './present-keys.ts'
import type { Surroundings } from './properties.ts'
import { rulesBroken } from './rules-broken.ts'
import { type Headers, type Setting, withoutPlaces } from './setting.ts'
import { strangersIn } from './strangers.ts'
import { canonical, tablesIn } from './tables.ts'
import { ValueSearch } from './value-search.ts'
import { inertOnes } from './inert-keys.ts'

export { shown } from './rules-broken.ts'

export interface ResolvedKey extends CatalogueKey {
  readonly value: unknown
  /** '' where the default holds. */
  readonly where: string
  /** All that was set, unread; the last is the one in force. */
  readonly settings: readonly Setting[]
  /** The key is one, or its value refers to one. */
  readonly secret: boolean
  readonly faulty: boolean
}

export interface Resolution {
  readonly keys: readonly ResolvedKey[]
  readonly faults: readonly Fault[]
  /** Keys and sections that the catalogue does not have: warnings at start, faults under `check`. */
  readonly unknown: readonly Fault[]
  readonly warnings: readonly Fault[]
  readonly configuration: Configuration
}

/** Later settings of a key win over earlier ones. */
export function resolve(settings: readonly Setting[], headers: Headers, surroundings: Surroundings): Resolution {
  const { winners, faults: twice } = winnersOf(settings)
  const settingsOf = Map.groupBy(settings, setting => canonical(setting.path))
  const present = new Map(presentKeys([...winners.keys()], headers.rows).map(key => [key.path, key]))
  const rows = new Map(headers.rows.map(row => [row.path, row.where]))
  const values = new ValueSearch({ winners, present, rows, surroundings })
  const keys = [...present.values().map(key => resolved(key, values, settingsOf.get(key.path) ?? NOT_SET))]
  const configuration = assemble(keys)
  const broken = rulesBroken(keys, configuration, rows)
  const { misplaced, unknown } = strangersIn({ ...headers, winners, present, referred: values.referred })
  return {
    keys,
    faults: [...twice, ...values.faults, ...misplaced, ...broken.faults],
    unknown,
    warnings: [...inertOnes(keys), ...broken.warnings],
    configuration,
  }
}

/** By the catalogue's spelling. A key that one file sets under two spellings has no value that would be right. */
function winnersOf(settings: readonly Setting[]): {
  readonly winners: ReadonlyMap<string, Setting>
  readonly faults: readonly Fault[]
} {
  const winners = new Map<string, Setting>()
  const spelled = new Map<string, string>()
  const faults: Fault[] = []
  for (const setting of settings) {
    const path = canonical(setting.path)
    const before = winners.get(path)
    if (before !== undefined && before.line > 0 && setting.line > 0) {
      const remedy = `it is already set as ${spelled.get(path)} (${before.where}); leave one of them out`
      faults.push({ where: setting.where, key: setting.path, given: '', expected: 'set twice', remedy })
    }
    winners.set(path, { ...setting, path })
    spelled.set(path, setting.path)
  }
  return { winners, faults }
}

const NOT_SET: readonly Setting[] = []

function resolved(present: PresentKey, values: ValueSearch, settings: readonly Setting[]): ResolvedKey {
  const { section, key, path, definition } = present
  const { value, secret, faulty } = values.settle(path)
  return {
    section,
    key,
    path,
    definition,
    value: faulty ? definition.fallback : value,
    where: settings.at(-1)?.where ?? '',
    settings,
    secret: secret || definition.secret,
    faulty,
  }
}

function assemble(keys: readonly ResolvedKey[]): Configuration {
  const bySection = Map.groupBy(keys, key => key.section)
  const placesOf = Map.groupBy(bySection.keys(), withoutPlaces)
  const rowsOf = (name: string, outer: string): readonly Row[] => {
    const rows = (placesOf.get(name) ?? []).filter(row => row.startsWith(outer))
    return Object.freeze(rows.map(row => valuesOf(bySection.get(row)!, innerRows(name, row))))
  }
  const innerRows = (name: string, row: string): readonly (readonly [string, unknown])[] =>
    tablesIn(name).map(table => [table.slice(name.length + 1), rowsOf(table, `${row}.`)])
  const sections = SECTIONS.map(({ name, repeated }) => {
    return [name, repeated ? rowsOf(name, '') : valuesOf(bySection.get(name) ?? [])]
  })
  return Object.freeze(Object.fromEntries(sections)) as Configuration
}

type Row = Readonly<Record<string, unknown>>

function valuesOf(keys: readonly ResolvedKey[], inner: readonly (readonly [string, unknown])[] = []): Row {
  const own = keys.map(({ key, value }) => [key, Object.freeze(value)] as const)
  return Object.freeze(Object.fromEntries([...own, ...inner]))
}
