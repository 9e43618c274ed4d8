/**
 * Lifecycle records: the state of each API that was changed at run time. A record holds until the project declares
 * another state than at the time of the change; the project is then newer. A record belongs to the API at its address,
 * or else to the API of its name and version: no new folder, context or host opens a blocked API.
 */
import type { LifecycleState } from './api-definition.ts'

/** The state that the project of an API declares. */
export interface DeclaredState {
  /** Identity of the API (`apiIdentity`), unique. */
  readonly address: string
  readonly name: string
  readonly version: string
  readonly declared: LifecycleState
}

/** Times in milliseconds since 1970. `declared`: the state that the project declared at the time of the change. */
export interface LifecycleRecord extends DeclaredState {
  readonly state: LifecycleState
  readonly sinceMs: number
  /** Planned end of a deprecated API; 0 for none. */
  readonly sunsetMs: number
  /** Since when no project has this API; 0 while one has. */
  readonly absentSinceMs: number
}

/** By address. */
export type LifecycleRecords = ReadonlyMap<string, LifecycleRecord>

interface Clock {
  readonly nowMs: number
  /** Time from deprecation to sunset if the change named none; 0 for no sunset. */
  readonly sunsetAfterMs: number
}

export interface Reconciliation {
  /** The same map if nothing has changed. */
  readonly records: LifecycleRecords
  /** Dropped because the project declares a newer state. */
  readonly superseded: readonly LifecycleRecord[]
  /** Dropped because the API has been absent too long, or too many are absent. */
  readonly expired: readonly LifecycleRecord[]
}

/** An API that comes back within this time keeps its state. */
const ABSENT_MS_MAX = 365 * 86_400_000
const ABSENT_MAX = 10_000

/** End of the year 9999 in milliseconds since 1970: HTTP dates have years of four digits (RFC 9110 5.6.7). */
export const MOMENT_MS_MAX = Date.UTC(10_000, 0, 1) - 1

export const NO_RECORDS: LifecycleRecords = new Map()

/** Matches the records with the APIs that exist now. */
export function reconcile(records: LifecycleRecords, apis: readonly DeclaredState[], clock: Clock): Reconciliation {
  const present = new Map(apis.map(api => [api.address, api]))
  const movedByName = recordsWithoutApi(records, present)
  const held = new Map<string, LifecycleRecord>()
  const matched = new Set<LifecycleRecord>()
  const superseded: LifecycleRecord[] = []
  for (const [address, api] of present) {
    const match = records.get(address) ?? movedByName.get(nameKey(api))
    const isSuperseded = match !== undefined && match.declared !== api.declared
    if (match !== undefined) matched.add(match)
    if (isSuperseded) superseded.push(match)
    const record = match === undefined || isSuperseded ? firstRecord(api, clock) : presentRecord(match, api)
    if (record !== undefined) held.set(address, record)
  }
  const absent = [...records.values()].filter(record => !matched.has(record)).map(record => absentRecord(record, clock))
  const isRecent = ({ absentSinceMs }: LifecycleRecord): boolean => clock.nowMs - absentSinceMs < ABSENT_MS_MAX
  const kept = new Set(absent.filter(isRecent).sort(latestAbsentFirst).slice(0, ABSENT_MAX))
  for (const record of kept) held.set(record.address, record)
  const isSame =
    held.size === records.size && [...held.values()].every(record => records.get(record.address) === record)
  const expired = absent.filter(record => !kept.has(record))
  return { records: isSame ? records : held, superseded, expired }
}

/** The records with that API in that state from `nowMs` on. */
export function withState(
  records: LifecycleRecords,
  { address, name, version, declared }: DeclaredState,
  state: LifecycleState,
  { nowMs, sunsetMs }: { readonly nowMs: number; readonly sunsetMs: number },
): LifecycleRecords {
  const record = { address, name, version, state, sinceMs: nowMs, sunsetMs, declared, absentSinceMs: 0 }
  return new Map(records).set(address, record)
}

/** Records whose address no API has, the latest of each name and version. */
function recordsWithoutApi(
  records: LifecycleRecords,
  present: ReadonlyMap<string, DeclaredState>,
): ReadonlyMap<string, LifecycleRecord> {
  const byName = new Map<string, LifecycleRecord>()
  for (const record of records.values()) {
    if (present.has(record.address)) continue
    const other = byName.get(nameKey(record))
    if (other === undefined || other.sinceMs < record.sinceMs) byName.set(nameKey(record), record)
  }
  return byName
}

/** A record for an API that is declared DEPRECATED, so that no later start moves the time of its deprecation. */
function firstRecord(api: DeclaredState, { nowMs, sunsetAfterMs }: Clock): LifecycleRecord | undefined {
  const { address, name, version, declared } = api
  if (declared !== 'DEPRECATED') return undefined
  const sunsetMs = sunsetAfterMs === 0 ? 0 : nowMs + sunsetAfterMs
  return { address, name, version, state: declared, sinceMs: nowMs, sunsetMs, declared, absentSinceMs: 0 }
}

function presentRecord(record: LifecycleRecord, { address, name, version }: DeclaredState): LifecycleRecord {
  const isSame = record.address === address && nameKey(record) === nameKey({ name, version })
  return isSame && record.absentSinceMs === 0 ? record : { ...record, address, name, version, absentSinceMs: 0 }
}

function absentRecord(record: LifecycleRecord, { nowMs }: Clock): LifecycleRecord {
  return record.absentSinceMs === 0 ? { ...record, absentSinceMs: nowMs } : record
}

function latestAbsentFirst(one: LifecycleRecord, other: LifecycleRecord): number {
  return other.absentSinceMs - one.absentSinceMs
}

function nameKey({ name, version }: Pick<DeclaredState, 'name' | 'version'>): string {
  return JSON.stringify([name, version])
}
