/**
 * What another configuration means for a gateway that runs: keys that are live take effect, the others keep the value
 * that runs and are named, inert ones are nobody's business. What comes of it is a mixture of both configurations, and
 * must keep the rules of the catalogue as well as they do. Rows of a repeated table stand or fall together.
 */
import { type Configuration, RULES, SECTIONS } from '../config/catalogue.ts'
import type { Fault } from '../config/fault.ts'
import { type Resolution, type ResolvedKey, shown } from '../config/resolve.ts'
import { withoutPlaces } from '../config/setting.ts'
import { plainValue } from './plain-value.ts'
import { changeSaid } from './reload-report.ts'

/** A key that has another value than it had. */
export interface KeyChange {
  readonly key: string
  /** Both are plain values, as of `explain --json`; null where it is not there, as for a row that is new. */
  readonly running: unknown
  readonly wanted: unknown
  /** Of both values only whether they are set. */
  readonly secret: boolean
  /** Where the wanted one is set; '' for a default. */
  readonly where: string
}

type Configured = Pick<Resolution, 'configuration' | 'keys'>

interface Comparison extends Configured {
  /** Live ones, which take effect. */
  readonly changed: readonly KeyChange[]
  /** Those that take effect after a restart. */
  readonly restart: readonly KeyChange[]
  /** Rules that the mixture would break. With any of these it must not be in force. */
  readonly faults: readonly Fault[]
}

/** One key in both. */
interface Pair {
  readonly path: string
  readonly before: ResolvedKey | undefined
  readonly after: ResolvedKey | undefined
  /** The repeated table it is of; '' for none. */
  readonly table: string
}

const TABLES = new Set(SECTIONS.filter(({ repeated }) => repeated).map(({ name }) => name))

/** `next` is without faults. */
export function compare(running: Configured, next: Configured): Comparison {
  const differing = pairsOf(running.keys, next.keys).filter(isDifferent)
  const stubborn = differing.filter(pair => !definitionOf(pair).isLive)
  const tables = new Set(stubborn.map(({ table }) => table).filter(table => table !== ''))
  const kept = new Set(differing.filter(pair => tables.has(pair.table) || !definitionOf(pair).isLive))
  const derived = derivedFrom(kept, differing)
  for (const pair of derived) kept.add(pair)
  const mixture = {
    configuration: mixtureOf(running.configuration, next.configuration, [...kept]),
    keys: keysOf(running.keys, next.keys, [...kept]),
  }
  // A default that only follows another key needs no mention beside it.
  const isSomebodys = ({ before, after }: Pair): boolean => isSet(before) || isSet(after)
  return {
    ...mixture,
    changed: differing.filter(pair => !kept.has(pair) && isSomebodys(pair)).map(changeOf),
    restart: [...kept].filter(pair => !derived.has(pair) || isSomebodys(pair)).map(changeOf),
    faults: brokenRules(mixture, [...kept]),
  }
}

function isSet(key: ResolvedKey | undefined): boolean {
  return key !== undefined && key.where !== ''
}

/** Keys whose default comes from one that is kept: its new value is not there yet. */
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

/** Whole paths of the keys that make a default. */
function sourcesOf({ after }: Pair): readonly string[] {
  if (after === undefined || isSet(after)) return []
  const { section, definition } = after
  const { ceiling, follows } = definition
  const followed = follows.startsWith('.') ? `${section}${follows}` : follows
  return [ceiling === '' ? '' : `${section}.${ceiling}`, followed].filter(path => path !== '')
}

function pairsOf(running: readonly ResolvedKey[], next: readonly ResolvedKey[]): readonly Pair[] {
  const before = new Map(running.map(key => [key.path, key]))
  const after = new Map(next.map(key => [key.path, key]))
  return [...new Set([...after.keys(), ...before.keys()])].map(path => {
    const { section } = (after.get(path) ?? before.get(path))!
    const table = withoutPlaces(section)
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
  const told = (key: ResolvedKey | undefined): unknown => (key === undefined ? null : plainValue(key.value, secret))
  return { key: path, running: told(before), wanted: told(after), secret, where: after?.where ?? '' }
}

type AnySections = Record<string, unknown>

/** The next configuration, with the running values of what is kept. */
function mixtureOf(running: Configuration, next: Configuration, kept: readonly Pair[]): Configuration {
  const mixture: AnySections = { ...next }
  for (const { before, after, table } of kept) {
    if (table !== '') {
      mixture[table] = (running as AnySections)[table]
      continue
    }
    const { section, key } = (before ?? after)!
    const { [key]: _, ...others } = mixture[section] as AnySections
    mixture[section] = before === undefined ? others : { ...others, [key]: before.value }
  }
  return mixture as Configuration
}

function keysOf(
  running: readonly ResolvedKey[],
  next: readonly ResolvedKey[],
  kept: readonly Pair[],
): readonly ResolvedKey[] {
  const paths = new Set(kept.map(({ path }) => path))
  const tables = new Set(kept.map(({ table }) => table).filter(table => table !== ''))
  const isKept = ({ path, section }: ResolvedKey): boolean => paths.has(path) || tables.has(withoutPlaces(section))
  return [...next.filter(key => !isKept(key)), ...running.filter(isKept)]
}

/** Each names what it would have to be restarted for. */
function brokenRules({ configuration, keys }: Configured, kept: readonly Pair[]): readonly Fault[] {
  return RULES.filter(rule => rule.severity === 'fault' && !holdsIn(configuration, rule)).map(rule => {
    const isAbout = (path: string): boolean => rule.keys.includes(withoutPlaces(path))
    const waiting = kept.filter(({ path }) => isAbout(path)).map(changeOf)
    const named = waiting.map(change => {
      const { running, wanted } = changeSaid(change)
      return `${change.key} = ${running}, and ${wanted} after a restart`
    })
    const about = keys.filter(({ path }) => isAbout(path))
    const culprit = about.find(({ path }) => !waiting.some(({ key }) => key === path)) ?? about[0]
    return {
      where: culprit?.where || 'default',
      key: culprit?.path ?? rule.keys[0]!,
      given: culprit === undefined ? '' : shown(culprit),
      expected: rule.must,
      remedy: `it takes a restart: beside it runs ${named.join(', and ')}`,
    }
  })
}

function holdsIn(configuration: Configuration, { repeats, holds }: (typeof RULES)[number]): boolean {
  if (repeats === '') return holds(configuration, 0)
  const rows = configuration[repeats as keyof Configuration] as unknown as readonly unknown[]
  return rows.every((_, row) => holds(configuration, row))
}
