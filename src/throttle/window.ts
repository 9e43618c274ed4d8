/**
 * Windows of quotas: numbered from the epoch (1970-01-01T00:00:00Z), so that every thread and every gateway with the
 * same clock knows the same windows. Seconds to days have fixed lengths. Months are calendar months in UTC, counted
 * from January 1970; a window of several months begins where that count is divisible by them.
 */
import type { TimeUnit } from './policy.ts'

/** Milliseconds; months have no fixed length. */
const UNIT_MS: Readonly<Record<Exclude<TimeUnit, 'month'>, number>> = {
  sec: 1000,
  min: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
}
const FIRST_YEAR = 1970
const MONTHS = 12

/** Returns the number of the window that contains a time. `ms`: milliseconds since 1970. */
export function windowAt(ms: number, unit: TimeUnit, units: number): number {
  if (unit !== 'month') return Math.floor(ms / (UNIT_MS[unit] * units))
  const date = new Date(ms)
  return Math.floor(((date.getUTCFullYear() - FIRST_YEAR) * MONTHS + date.getUTCMonth()) / units)
}

/** Returns when a window begins, in milliseconds since 1970. It ends when the window of the next number begins. */
export function windowStartMs(number: number, unit: TimeUnit, units: number): number {
  return unit === 'month' ? Date.UTC(FIRST_YEAR, number * units) : number * UNIT_MS[unit] * units
}
