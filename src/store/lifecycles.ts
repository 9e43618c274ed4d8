/**
 * What became of APIs since their projects were written: a record for each whose state was changed while the gateway
 * ran. A record holds as long as the project declares what it declared then; once it declares something else, that is
 * the newer word. An API is the one of a record by its address, whatever its folder or name; where nobody has that
 * address any more, by name and version, so that another context or host opens no blocked API either.
 */
import type { LifecycleState } from '../config/api-definition.ts'

/** An API, as far as records are about it. */
export interface LivingApi {
  /** The first of its paths, under the hosts that it has to itself; no two have the same. */
  readonly address: string
  readonly name: string
  readonly version: string
  /** The state that its project declares. */
  readonly declared: LifecycleState
}

/** Times in milliseconds since 1970. `declared`: what the project declared when the API came into this state. */
export interface LifecycleRecord extends LivingApi {
  readonly state: LifecycleState
  readonly sinceMs: number
  /** When a deprecated API is meant to end; 0: nobody has said. */
  readonly sunsetMs: number
  /** Since when there is no such API; 0 while there is. */
  readonly absentSinceMs: number
}

/** By address. */
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

/** The end of the year 9999, in milliseconds since 1970: dates of HTTP have four digits for it (RFC 9110 5.6.7). */
export const MOMENT_MS_MAX = Date.UTC(10_000, 0, 1) - 1

export const NO_RECORDS: LifecycleRecords = new Map()

/** What the records come to for these APIs. */
export function settle(records: LifecycleRecords, apis: readonly LivingApi[], terms: Terms): Settled {
  const present = new Map(apis.map(api => [api.address, api]))
  const homeless = homelessIn(records, present)
  const held = new Map<string, LifecycleRecord>()
  const used = new Set<LifecycleRecord>()
  const overruled: LifecycleRecord[] = []
  for (const [address, api] of present) {
    const found = records.get(address) ?? homeless.get(nameOf(api))
    const isOverruled = found !== undefined && found.declared !== api.declared
    if (found !== undefined) used.add(found)
    if (isOverruled) overruled.push(found)
    const record = found === undefined || isOverruled ? firstSeen(api, terms) : seen(found, api)
    if (record !== undefined) held.set(address, record)
  }
  const absent = [...records.values()].filter(record => !used.has(record)).map(record => absentNow(record, terms))
  const isYoung = ({ absentSinceMs }: LifecycleRecord): boolean => terms.nowMs - absentSinceMs < ABSENT_MS_MAX
  const kept = new Set(absent.filter(isYoung).sort(laterFirst).slice(0, ABSENT_MAX))
  for (const record of kept) held.set(record.address, record)
  const isSame =
    held.size === records.size && [...held.values()].every(record => records.get(record.address) === record)
  const forgotten = absent.filter(record => !kept.has(record))
  return { records: isSame ? records : held, overruled, forgotten }
}

/** That API in that state from now on. */
export function changed(
  records: LifecycleRecords,
  { address, name, version, declared }: LivingApi,
  state: LifecycleState,
  { nowMs, sunsetMs }: { readonly nowMs: number; readonly sunsetMs: number },
): LifecycleRecords {
  const record = { address, name, version, state, sinceMs: nowMs, sunsetMs, declared, absentSinceMs: 0 }
  return new Map(records).set(address, record)
}

/** By name and version, of those whose address no API has. */
function homelessIn(
  records: LifecycleRecords,
  present: ReadonlyMap<string, LivingApi>,
): ReadonlyMap<string, LifecycleRecord> {
  const homeless = new Map<string, LifecycleRecord>()
  for (const record of records.values()) {
    if (present.has(record.address)) continue
    const other = homeless.get(nameOf(record))
    if (other === undefined || other.sinceMs < record.sinceMs) homeless.set(nameOf(record), record)
  }
  return homeless
}

/** The moment at which an API is first found deprecated must not move with each start. */
function firstSeen(api: LivingApi, { nowMs, sunsetAfterMs }: Terms): LifecycleRecord | undefined {
  const { address, name, version, declared } = api
  if (declared !== 'DEPRECATED') return undefined
  const sunsetMs = sunsetAfterMs === 0 ? 0 : nowMs + sunsetAfterMs
  return { address, name, version, state: declared, sinceMs: nowMs, sunsetMs, declared, absentSinceMs: 0 }
}

function seen(record: LifecycleRecord, { address, name, version }: LivingApi): LifecycleRecord {
  const isSame = record.address === address && nameOf(record) === nameOf({ name, version })
  return isSame && record.absentSinceMs === 0 ? record : { ...record, address, name, version, absentSinceMs: 0 }
}

function absentNow(record: LifecycleRecord, { nowMs }: Terms): LifecycleRecord {
  return record.absentSinceMs === 0 ? { ...record, absentSinceMs: nowMs } : record
}

function laterFirst(one: LifecycleRecord, other: LifecycleRecord): number {
  return other.absentSinceMs - one.absentSinceMs
}

function nameOf({ name, version }: Pick<LivingApi, 'name' | 'version'>): string {
  return JSON.stringify([name, version])
}
