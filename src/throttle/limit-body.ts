/** Limits in the form of the reference platform: `defaultLimit` and `limit` of policies, and their units. */
import type { BodyPath, BodyReader } from './body-reader.ts'
import type { Quota, TimeUnit } from './policy.ts'

/** Written by the reference platform for a tier without a limit. */
const NO_LIMIT = 2_147_483_647
/** Largest limit; BYTES_MAX: of bytes, which a counter counts in larger units. */
const LIMIT_MAX = 2 ** 36 - 2
const BYTES_MAX = 2 ** 40 - 1
const UNITS_MAX = 100_000
const WINDOWS = ['tumbling', 'sliding'] as const

/** Spellings by unit; the first is that of the reference platform. */
const UNITS: Readonly<Record<TimeUnit, readonly string[]>> = {
  sec: ['sec', 'secs', 'second', 'seconds'],
  min: ['min', 'mins', 'minute', 'minutes'],
  hour: ['hours', 'hour'],
  day: ['days', 'day'],
  month: ['months', 'month'],
}

const BYTES: Readonly<Record<string, number>> = { KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3 }

const MEMBERS = {
  REQUESTCOUNTLIMIT: ['requestCount', ['timeUnit', 'unitTime', 'requestCount']],
  BANDWIDTHLIMIT: ['bandwidth', ['timeUnit', 'unitTime', 'dataAmount', 'dataUnit']],
  EVENTCOUNTLIMIT: ['eventCount', ['timeUnit', 'unitTime', 'eventCount']],
} as const
type LimitType = keyof typeof MEMBERS
const TYPES = Object.keys(MEMBERS) as readonly LimitType[]

const NAMES_OF_TYPES: Readonly<Record<Quota['type'], LimitType>> = {
  requests: 'REQUESTCOUNTLIMIT',
  bandwidth: 'BANDWIDTHLIMIT',
  events: 'EVENTCOUNTLIMIT',
}

/** The window of a policy, a member of our own; undefined after an error. */
export function readWindow(reader: BodyReader): Quota['window'] {
  return reader.choice(['window'], WINDOWS, 'tumbling')
}

/** The limit at `path`; null for no limit. After an error the result has no meaning. */
export function readLimit(reader: BodyReader, path: BodyPath, window: Quota['window']): Quota | null {
  if (!reader.map(path, ['type', 'requestCount', 'bandwidth', 'eventCount'])) return null
  const type = reader.choice([...path, 'type'], TYPES)
  const [member, names] = MEMBERS[type]
  const at = [...path, member]
  if (!reader.map(at, names)) return null
  const unit = readUnit(reader, [...at, 'timeUnit'], Object.keys(UNITS) as readonly TimeUnit[])
  const units = reader.integer([...at, 'unitTime'], 1, UNITS_MAX)
  const base = { unit, units, window }
  if (type === 'BANDWIDTHLIMIT') {
    const bytes = BYTES[reader.choice([...at, 'dataUnit'], Object.keys(BYTES))]!
    return {
      type: 'bandwidth',
      limit: reader.integer([...at, 'dataAmount'], 1, Math.floor(BYTES_MAX / bytes)) * bytes,
      ...base,
    }
  }
  const limit = reader.integer([...at, member], 1, LIMIT_MAX)
  if (type === 'EVENTCOUNTLIMIT') return { type: 'events', limit, ...base }
  return limit === NO_LIMIT ? null : { type: 'requests', limit, ...base }
}

export function readUnit(reader: BodyReader, path: BodyPath, units: readonly TimeUnit[]): TimeUnit {
  const spelling = reader.choice(
    path,
    units.flatMap(unit => UNITS[unit]),
  )
  return units.find(unit => UNITS[unit].includes(spelling)) ?? 'min'
}

export function limitBody(quota: Quota | null): Readonly<Record<string, unknown>> {
  if (quota === null) return limitBody({ type: 'requests', limit: NO_LIMIT, unit: 'min', units: 1, window: 'tumbling' })
  const { type, limit, units } = quota
  const name = NAMES_OF_TYPES[type]
  const window = { timeUnit: unitName(quota.unit), unitTime: units }
  if (type === 'bandwidth') return { type: name, bandwidth: { ...window, ...dataOf(limit) } }
  return type === 'events'
    ? { type: name, eventCount: { ...window, eventCount: limit } }
    : { type: name, requestCount: { ...window, requestCount: limit } }
}

export function unitName(unit: TimeUnit): string {
  return UNITS[unit][0]!
}

/** In the largest unit that shows the amount exactly. */
function dataOf(limit: number): { readonly dataAmount: number; readonly dataUnit: string } {
  const [dataUnit, bytes] = Object.entries(BYTES).findLast(([, size]) => limit % size === 0) ?? ['KB', BYTES.KB!]
  return { dataAmount: limit / bytes, dataUnit }
}
