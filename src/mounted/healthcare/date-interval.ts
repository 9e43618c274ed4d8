/**
 * Dates, date-times and instants as the standard writes them, each an interval: `2024-02` is all of February. A time
 * zone is mandatory with a time; a date without one is taken as UTC.
 */

export interface DateInterval {
  /** Milliseconds since 1970, included. */
  readonly start: number
  /** Milliseconds since 1970, not included. */
  readonly end: number
}

const DATE = /^(\d{4})(?:-(0[1-9]|1[0-2])(?:-(0[1-9]|[12]\d|3[01]))?)?$/
const DATE_TIME = new RegExp(
  [
    String.raw`^(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])`,
    String.raw`T([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(\.\d+)?`,
    String.raw`(Z|[+-](?:0\d|1[0-3]):[0-5]\d|[+-]14:00)$`,
  ].join(''),
)
const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

/** Year, month or day; undefined for other text, for days that do not exist, and for the year 0000. */
export function dateInterval(text: string): DateInterval | undefined {
  const found = DATE.exec(text)
  if (found === null) return undefined
  const [, year, month, day] = found
  if (year === '0000' || (day !== undefined && !isDay(Number(year), Number(month), Number(day)))) return undefined
  const start = utc(Number(year), month === undefined ? 1 : Number(month), day === undefined ? 1 : Number(day))
  if (day !== undefined) return { start, end: start + DAY_MS }
  return { start, end: month === undefined ? utc(Number(year) + 1, 1, 1) : utc(Number(year), Number(month) + 1, 1) }
}

/** A full date-time with seconds and a zone; undefined for other text. Fractions beyond milliseconds are cut. */
export function instantInterval(text: string): DateInterval | undefined {
  const found = DATE_TIME.exec(text)
  if (found === null) return undefined
  const [, year, month, day, hour, minute, second, fraction, zone] = found
  if (year === '0000' || !isDay(Number(year), Number(month), Number(day))) return undefined
  const ms = fraction === undefined ? 0 : Number(fraction.slice(1, 4).padEnd(3, '0'))
  const time = (Number(hour) * 60 + Number(minute)) * MINUTE_MS + Number(second) * 1000 + ms
  const start = utc(Number(year), Number(month), Number(day)) + time - offsetOf(zone!)
  // A fraction with fewer digits than three is as wide as its last digit.
  const digits = fraction === undefined ? 0 : Math.min(3, fraction.length - 1)
  return { start, end: start + 10 ** (3 - digits) }
}

/** A date or a full date-time. */
export function dateTimeInterval(text: string): DateInterval | undefined {
  return dateInterval(text) ?? instantInterval(text)
}

function offsetOf(zone: string): number {
  if (zone === 'Z') return 0
  const minutes = Number(zone.slice(1, 3)) * 60 + Number(zone.slice(4))
  return (zone.startsWith('-') ? -minutes : minutes) * MINUTE_MS
}

/** `Date.UTC` reads years below 100 as 19xx. */
function utc(year: number, month: number, day: number): number {
  return new Date(0).setUTCFullYear(year, month - 1, day)
}

function isDay(year: number, month: number, day: number): boolean {
  return new Date(utc(year, month, day)).getUTCDate() === day
}
