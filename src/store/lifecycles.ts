/**
 * What became of APIs since their projects were written: a record for each whose state was changed while the gateway
 * ran. A record holds as long as the project declares what it declared then; once it declares something else, that is
 * the newer word. An API is the one of a record by its first path, whatever its folder or name; where nobody has that
 * path any more, by name and version, so that a context that is written differently opens no blocked API either.
 */
import type { ApiDefinition, LifecycleState } from '../config/api-definition.ts'
import { apiPaths } from '../config/api-paths.ts'

/** Times in milliseconds since 1970. */
export interface LifecycleRecord {
  /** The first path of the API. */
  readonly path: string
  readonly name: string
  readonly version: string
  readonly state: LifecycleState
  readonly sinceMs: number
  /** When a deprecated API is meant to end; 0: nobody has said. */
  readonly sunsetMs: number
  /** What the project declared when it came into this state. */
  readonly declared: LifecycleState
  /** Since when there is no such API; 0 while there is. */
  readonly absentSinceMs: number
}

/** By the first path of the API. */
export type LifecycleRecords = ReadonlyMap<string, LifecycleRecord>

interface Terms {
  readonly nowMs: number
  /** From deprecation to sunset where nobody says when; 0: none. */
  readonly sunsetAfterMs: number
}

export interface Settled {
  /** The same map where nothing is different. */
  readonly records: LifecycleRecords
  /** Projects have a newer word than these. */
  readonly overruled: readonly LifecycleRecord[]
  /** APIs that have been gone for too long, or of which there are too many. */
  readonly forgotten: readonly LifecycleRecord[]
}

/** An API that comes back from a repair or an archive is as it was left; one that never does is not kept for ever. */
const ABSENT_MS_MAX = 365 * 86_400_000
const ABSENT_MAX = 10_000

export const NO_RECORDS: LifecycleRecords = new Map()

/** What the records come to for these APIs. */
export function settle(records: LifecycleRecords, apis: readonly ApiDefinition[], terms: Terms): Settled {
  const present = new Map(apis.map(api => [pathOf(api), api]))
  const homeless = homelessIn(records, present)
  const held = new Map<string, LifecycleRecord>()
  const used = new Set<LifecycleRecord>()
  const overruled: LifecycleRecord[] = []
  for (const [path, api] of present) {
    const found = records.get(path) ?? homeless.get(identityOf(api))
    const isOverruled = found !== undefined && found.declared !== api.lifecycle
    if (found !== undefined) used.add(found)
    if (isOverruled) overruled.push(found)
    const record = found === undefined || isOverruled ? firstSeen(path, api, terms) : seen(found, path, api)
    if (record !== undefined) held.set(path, record)
  }
  const absent = [...records.values()].filter(record => !used.has(record)).map(record => absentNow(record, terms))
  const isYoung = ({ absentSinceMs }: LifecycleRecord): boolean => terms.nowMs - absentSinceMs < ABSENT_MS_MAX
  const kept = new Set(absent.filter(isYoung).sort(laterFirst).slice(0, ABSENT_MAX))
  for (const record of kept) held.set(record.path, record)
  const isSame = held.size === records.size && [...held.values()].every(record => records.get(record.path) === record)
  const forgotten = absent.filter(record => !kept.has(record))
  return { records: isSame ? records : held, overruled, forgotten }
}

/** That API in that state from now on. */
export function changed(
  records: LifecycleRecords,
  api: ApiDefinition,
  state: LifecycleState,
  { nowMs, sunsetMs }: { readonly nowMs: number; readonly sunsetMs: number },
): LifecycleRecords {
  const { name, version, lifecycle: declared } = api
  const path = pathOf(api)
  const record = { path, name, version, state, sinceMs: nowMs, sunsetMs, declared, absentSinceMs: 0 }
  return new Map(records).set(path, record)
}

/** By name and version, of those whose path no API has. */
function homelessIn(
  records: LifecycleRecords,
  present: ReadonlyMap<string, ApiDefinition>,
): ReadonlyMap<string, LifecycleRecord> {
  const homeless = new Map<string, LifecycleRecord>()
  for (const record of records.values()) {
    if (present.has(record.path)) continue
    const other = homeless.get(identityOf(record))
    if (other === undefined || other.sinceMs < record.sinceMs) homeless.set(identityOf(record), record)
  }
  return homeless
}

/** The moment at which an API is first found deprecated must not move with each start. */
function firstSeen(path: string, api: ApiDefinition, { nowMs, sunsetAfterMs }: Terms): LifecycleRecord | undefined {
  const { name, version, lifecycle: state } = api
  if (state !== 'DEPRECATED') return undefined
  const sunsetMs = sunsetAfterMs === 0 ? 0 : nowMs + sunsetAfterMs
  return { path, name, version, state, sinceMs: nowMs, sunsetMs, declared: state, absentSinceMs: 0 }
}

function seen(record: LifecycleRecord, path: string, { name, version }: ApiDefinition): LifecycleRecord {
  const isSame =
    record.path === path && record.name === name && record.version === version && record.absentSinceMs === 0
  return isSame ? record : { ...record, path, name, version, absentSinceMs: 0 }
}

function absentNow(record: LifecycleRecord, { nowMs }: Terms): LifecycleRecord {
  return record.absentSinceMs === 0 ? { ...record, absentSinceMs: nowMs } : record
}

function laterFirst(one: LifecycleRecord, other: LifecycleRecord): number {
  return other.absentSinceMs - one.absentSinceMs
}

function pathOf({ context, version, isDefaultVersion }: ApiDefinition): string {
  return apiPaths(context, version, isDefaultVersion)[0]!
}

function identityOf({ name, version }: { readonly name: string; readonly version: string }): string {
  return JSON.stringify([name, version])
}
