/**
 * Compares the running configuration with a new one, key by key: live keys change at once, other keys keep their
 * running value and are reported, inert keys are ignored. The merged configuration must keep every rule of the
 * catalogue.
 */
import { type Configuration, RULES, SECTIONS } from '../config/catalogue.ts'
import type { Diagnostic } from '../config/diagnostics.ts'
import { type Resolution, type ResolvedKey, formatKeyValue } from '../config/resolve.ts'
import { withoutIndexes } from '../config/setting.ts'
import { plainValue } from './plain-value.ts'
import { changeText } from './reload-report.ts'

/** A key with another value than before. */
export interface KeyChange {
  readonly key: string
  /** Both values as `explain --json` has them; null: the key is not there, as in a row that is new. */
  readonly running: unknown
  readonly wanted: unknown
  /** The values say only whether they are set. */
  readonly secret: boolean
  /** Where the wanted value is set; '' for a default. */
  readonly where: string
}

type Configured = Pick<Resolution, 'configuration' | 'keys'>

interface ConfigurationDiff extends Configured {
  /** Live keys: they change at once. */
  readonly changed: readonly KeyChange[]
  /** Keys that change at the next restart. */
  readonly restart: readonly KeyChange[]
  /** Rules that the merged configuration breaks: with any of these it must not become active. */
  readonly errors: readonly Diagnostic[]
}

/** A key in both configurations. */
interface Pair {
  readonly path: string
  readonly before: ResolvedKey | undefined
  readonly after: ResolvedKey | undefined
  /** The repeated table that the key belongs to; '' for none. Its rows change together or not at all. */
  readonly table: string
}

const TABLES = new Set(SECTIONS.filter(({ repeated }) => repeated).map(({ name }) => name))

/** `next` has no errors. */
export function diffConfigurations(running: Configured, next: Configured): ConfigurationDiff {
  const differing = pairsOf(running.keys, next.keys).filter(isDifferent)
  const notLive = differing.filter(pair => !definitionOf(pair).isLive)
  const tables = new Set(notLive.map(({ table }) => table).filter(table => table !== ''))
  const kept = new Set(differing.filter(pair => tables.has(pair.table) || !definitionOf(pair).isLive))
  const derived = derivedFrom(kept, differing)
  for (const pair of derived) kept.add(pair)
  const merged = {
    configuration: merge(running.configuration, next.configuration, [...kept]),
    keys: keysOf(running.keys, next.keys, [...kept]),
  }
  // A default that follows another key needs no mention beside that key.
  const isConfigured = ({ before, after }: Pair): boolean => isSet(before) || isSet(after)
  return {
    ...merged,
    changed: differing.filter(pair => !kept.has(pair) && isConfigured(pair)).map(changeOf),
    restart: [...kept].filter(pair => !derived.has(pair) || isConfigured(pair)).map(changeOf),
    errors: brokenRules(merged, [...kept]),
  }
}

function isSet(key: ResolvedKey | undefined): boolean {
  return key !== undefined && key.where !== ''
}

/** Keys whose default comes from a kept key, whose new value is not active yet. */
function derivedFrom(kept: ReadonlySet<Pair>, differing: readonly Pair[]): ReadonlySet<Pair> {
  const waiting = new Set([...kept].map(({ path }) => path))
  const derived = new Set<Pair>()
  for (;;) {
    const more = differing.filter(pair => !derived.has(pair) && sourcesOf(pair).some(path => waiting.has(path)))
    if (more.length === 0) return derived
    for (const pair of more) {
      derived.add(pair)
      waiting.add(pair.path)
    }
  }
}

/** Paths of the keys that a default comes from. */
function sourcesOf({ after }: Pair): readonly string[] {
  if (after === undefined || isSet(after)) return []
  const { section, definition } = after
  const { cappedBy, follows } = definition
  const followed = follows.startsWith('.') ? `${section}${follows}` : follows
  return [cappedBy === '' ? '' : `${section}.${cappedBy}`, followed].filter(path => path !== '')
}

function pairsOf(running: readonly ResolvedKey[], next: readonly ResolvedKey[]): readonly Pair[] {
  const before = new Map(running.map(key => [key.path, key]))
  const after = new Map(next.map(key => [key.path, key]))
  return [...new Set([...after.keys(), ...before.keys()])].map(path => {
    const { section } = (after.get(path) ?? before.get(path))!
    const table = withoutIndexes(section)
    return { path, before: before.get(path), after: after.get(path), table: TABLES.has(table) ? table : '' }
  })
}

function definitionOf({ before, after }: Pair): ResolvedKey['definition'] {
  return (after ?? before)!.definition
}

function isDifferent(pair: Pair): boolean {
  const { before, after } = pair
  if (definitionOf(pair).inertReason !== '') return false
  return before === undefined || after === undefined || JSON.stringify(before.value) !== JSON.stringify(after.value)
}

function changeOf({ path, before, after }: Pair): KeyChange {
  const secret = [before, after].some(key => key?.secret)
  const plain = (key: ResolvedKey | undefined): unknown => (key === undefined ? null : plainValue(key.value, secret))
  return { key: path, running: plain(before), wanted: plain(after), secret, where: after?.where ?? '' }
}

type AnySections = Record<string, unknown>

/** The next configuration with the running values of the kept keys. */
function merge(running: Configuration, next: Configuration, kept: readonly Pair[]): Configuration {
  const merged: AnySections = { ...next }
  for (const { before, after, table } of kept) {
    if (table !== '') {
      merged[table] = (running as AnySections)[table]
      continue
    }
    const { section, key } = (before ?? after)!
    const { [key]: _, ...others } = merged[section] as AnySections
    merged[section] = before === undefined ? others : { ...others, [key]: before.value }
  }
  return merged as Configuration
}

function keysOf(
  running: readonly ResolvedKey[],
  next: readonly ResolvedKey[],
  kept: readonly Pair[],
): readonly ResolvedKey[] {
  const paths = new Set(kept.map(({ path }) => path))
  const tables = new Set(kept.map(({ table }) => table).filter(table => table !== ''))
  const isKept = ({ path, section }: ResolvedKey): boolean => paths.has(path) || tables.has(withoutIndexes(section))
  return [...next.filter(key => !isKept(key)), ...running.filter(isKept)]
}

/** Each broken rule names the keys that wait for a restart. */
function brokenRules({ configuration, keys }: Configured, kept: readonly Pair[]): readonly Diagnostic[] {
  return RULES.filter(rule => rule.severity === 'error' && !holdsIn(configuration, rule)).map(rule => {
    const isAbout = (path: string): boolean => rule.keys.includes(withoutIndexes(path))
    const waiting = kept.filter(({ path }) => isAbout(path)).map(changeOf)
    const named = waiting.map(change => {
      const { running, wanted } = changeText(change)
      return `${change.key} = ${running}, and ${wanted} after a restart`
    })
    const about = keys.filter(({ path }) => isAbout(path))
    const offender = about.find(({ path }) => !waiting.some(({ key }) => key === path)) ?? about[0]
    return {
      where: offender?.where || 'default',
      key: offender?.path ?? rule.keys[0]!,
      given: offender === undefined ? '' : formatKeyValue(offender),
      expected: rule.must,
      hint: `it takes a restart: beside it runs ${named.join(', and ')}`,
    }
  })
}

function holdsIn(configuration: Configuration, { repeats, holds }: (typeof RULES)[number]): boolean {
  if (repeats === '') return holds(configuration, 0)
  const rows = configuration[repeats as keyof Configuration] as unknown as readonly unknown[]
  return rows.every((_, row) => holds(configuration, row))
}
