/** What a reload has come to: the answer to whoever asked for it, and what of it the log says. */
import { describe, type Fault, fewOf, substanceOf } from '../config/fault.ts'
import type { Log } from '../observe/log.ts'
import { plainSaid } from './plain-value.ts'
import type { KeyChange } from './reload-comparison.ts'

/** All of it, or the API files only. */
export type ReloadScope = 'all' | 'apis'

export interface ReloadAnswer {
  /** `refused`: everything is as it was. */
  readonly outcome: 'in force' | 'refused'
  /** As `orders/1.0.0`. */
  readonly apis: {
    readonly added: readonly string[]
    readonly changed: readonly string[]
    readonly removed: readonly string[]
    /** As they were, because their projects are faulty now. */
    readonly kept: readonly string[]
  }
  /** By name: `fault`. */
  readonly sequences: {
    /** Those that are new and gone among them. */
    readonly changed: readonly string[]
    /** Their own files are faulty now; what was in force, or a default, stands in. */
    readonly kept: readonly string[]
  }
  /** With the values that are in force now. */
  readonly keys: readonly KeyChange[]
  /** What is set and takes a restart. */
  readonly restart: readonly KeyChange[]
  /** Why it was refused; otherwise what is wrong with single APIs and sequences. */
  readonly faults: readonly Fault[]
  readonly warnings: readonly Fault[]
  /** What reactors could not take over, or not yet. */
  readonly failures: readonly string[]
}

export const NO_APIS_CHANGED: ReloadAnswer['apis'] = { added: [], changed: [], removed: [], kept: [] }
export const NO_SEQUENCES_CHANGED: ReloadAnswer['sequences'] = { changed: [], kept: [] }

/** So many names stand in one line of the log; the rest is counted. */
const NAMES_SHOWN = 20

/** `said`: of what is in the log already, and no news, the substance. */
export function logReload(log: Log, answer: ReloadAnswer, scope: ReloadScope, said: ReadonlySet<string>): void {
  const { outcome, restart, faults, warnings, failures } = answer
  // What nobody asked for is not repeated with every change of a file.
  const isNews = (fault: Fault): boolean => !said.has(substanceOf(fault))
  for (const warning of warnings.filter(isNews)) log.warn(describe(warning))
  for (const fault of faults) if (scope === 'all' || isNews(fault)) log.error(describe(fault))
  for (const change of restart) {
    const { running, wanted } = changeSaid(change)
    const fields = { KEY: change.key, RUNNING: running, WANTED: wanted, WHERE: change.where }
    log.warn(fields, 'a key has changed that takes a restart')
  }
  for (const CAUSE_OF_ERROR of failures) log.error({ CAUSE_OF_ERROR }, 'a reactor has not taken the reload')
  if (outcome === 'refused') {
    log.error({ FAULTS: faults.length }, 'reload refused; what was in force stays so')
    return
  }
  const fields = fieldsOf(answer)
  // A file that is written need not be another one.
  const isNothing = scope === 'apis' && Object.keys(fields).length === 0
  log[isNothing ? 'debug' : 'info'](fields, scope === 'all' ? 'reloaded' : 'APIs reloaded')
}

/** Both values in words. */
export function changeSaid({ running, wanted, secret }: KeyChange): {
  readonly running: string
  readonly wanted: string
} {
  const said = (value: unknown): string => (value === null ? 'not there' : plainSaid(value, secret))
  return { running: said(running), wanted: said(wanted) }
}

function fieldsOf({ apis, sequences, keys, restart }: ReloadAnswer): Readonly<Record<string, string>> {
  const changes = keys.map(change => {
    const { running, wanted } = changeSaid(change)
    return `${change.key}: ${running} -> ${wanted}`
  })
  const waiting = restart.map(({ key }) => key)
  return {
    ...named('APIS_ADDED', apis.added),
    ...named('APIS_CHANGED', apis.changed),
    ...named('APIS_REMOVED', apis.removed),
    ...named('APIS_KEPT', apis.kept),
    ...named('SEQUENCES_CHANGED', sequences.changed),
    ...named('SEQUENCES_KEPT', sequences.kept),
    ...named('KEYS_CHANGED', changes),
    ...named('KEYS_FOR_RESTART', waiting),
  }
}

function named(field: string, names: readonly string[]): Readonly<Record<string, string>> {
  if (names.length === 0) return {}
  return { [field]: fewOf(names, NAMES_SHOWN) }
}

/** What need not be said again. */
export function substancesOf(...said: readonly (readonly Fault[])[]): ReadonlySet<string> {
  return new Set(said.flat().map(substanceOf))
}
