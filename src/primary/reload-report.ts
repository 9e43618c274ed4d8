/** The report of a reload, which its requester gets as a whole, and the lines of the report that go to the log. */
import { abbreviatedList, type Diagnostic, diagnosticIdentity, formatDiagnostic } from '../config/diagnostics.ts'
import type { Log } from '../observe/log.ts'
import { plainText } from './plain-value.ts'
import type { KeyChange } from './configuration-diff.ts'
/** `all`: the whole home. `apis`: files of APIs and applications only. */
export type ReloadScope = 'all' | 'apis'

export interface ReloadReport {
  /** `refused`: nothing has changed. */
  readonly outcome: 'applied' | 'refused'
  /** As `orders/1.0.0`. */
  readonly apis: {
    readonly added: readonly string[]
    readonly changed: readonly string[]
    readonly removed: readonly string[]
    /** As they were, because their projects have errors now. */
    readonly kept: readonly string[]
  }
  /** By name: `fault`. */
  readonly sequences: {
    /** New and removed ones among them. */
    readonly changed: readonly string[]
    /** Their files have errors now: the sequence that was active, or the default, takes their place. */
    readonly kept: readonly string[]
  }
  /** Keys that have changed, with their new values. */
  readonly keys: readonly KeyChange[]
  /** Keys that have changed in the file and take a restart. */
  readonly restart: readonly KeyChange[]
  /** Why the reload was refused; otherwise the errors of single APIs and sequences. */
  readonly errors: readonly Diagnostic[]
  readonly warnings: readonly Diagnostic[]
  /** Threads that have not applied the reload, or not yet. */
  readonly failures: readonly string[]
}

export const NO_APIS_CHANGED: ReloadReport['apis'] = { added: [], changed: [], removed: [], kept: [] }
export const NO_SEQUENCES_CHANGED: ReloadReport['sequences'] = { changed: [], kept: [] }

/** Names in one line of the log; the others are counted. */
const NAMES_SHOWN = 20

/** `logged`: identities of diagnostics that the log has already. */
export function logReload(log: Log, report: ReloadReport, scope: ReloadScope, logged: ReadonlySet<string>): void {
  const { outcome, restart, errors, warnings, failures } = report
  const isNew = (diagnostic: Diagnostic): boolean => !logged.has(diagnosticIdentity(diagnostic))
  for (const warning of warnings.filter(isNew)) log.warn(formatDiagnostic(warning))
  // A watched file that changes repeats no error of the others; a requested reload repeats all.
  for (const error of errors) if (scope === 'all' || isNew(error)) log.error(formatDiagnostic(error))
  for (const change of restart) {
    const { running, wanted } = changeText(change)
    const fields = { KEY: change.key, RUNNING: running, WANTED: wanted, WHERE: change.where }
    log.warn(fields, 'a changed key takes a restart')
  }
  for (const CAUSE_OF_ERROR of failures) log.error({ CAUSE_OF_ERROR }, 'a thread has not applied the reload')
  if (outcome === 'refused') {
    log.error({ ERRORS: errors.length }, 'reload refused; nothing has changed')
    return
  }
  const fields = fieldsOf(report)
  // A file may be written without a change.
  const isUnchanged = scope === 'apis' && Object.keys(fields).length === 0
  log[isUnchanged ? 'debug' : 'info'](fields, scope === 'all' ? 'reloaded' : 'APIs reloaded')
}

/** Both values as text. */
export function changeText({ running, wanted, secret }: KeyChange): {
  readonly running: string
  readonly wanted: string
} {
  const text = (value: unknown): string => (value === null ? 'not there' : plainText(value, secret))
  return { running: text(running), wanted: text(wanted) }
}

function fieldsOf({ apis, sequences, keys, restart }: ReloadReport): Readonly<Record<string, string>> {
  const changes = keys.map(change => {
    const { running, wanted } = changeText(change)
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
  return { [field]: abbreviatedList(names, NAMES_SHOWN) }
}

export function identitiesOf(...diagnostics: readonly (readonly Diagnostic[])[]): ReadonlySet<string> {
  return new Set(diagnostics.flat().map(diagnosticIdentity))
}
