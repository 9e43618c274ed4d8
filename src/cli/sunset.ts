/** A date as of ISO 8601, by itself or with a time; what says no zone is UTC, and a date by itself its first moment. */

const SHAPE = /^(\d{4}-\d\d-\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)?)?$/

/** Milliseconds since 1970; undefined for what is no such date. */
export function sunsetIn(text: string): number | undefined {
  const [whole, date, zone] = SHAPE.exec(text) ?? []
  if (whole === undefined) return undefined
  // A day that its month has not would be one of the next month.
  const day = new Date(`${date}T00:00:00Z`)
  if (Number.isNaN(day.getTime()) || day.toISOString().slice(0, 10) !== date) return undefined
  const ms = Date.parse(whole.includes('T') && zone === undefined ? `${whole}Z` : whole)
  return Number.isNaN(ms) ? undefined : ms
}
