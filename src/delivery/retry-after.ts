/** The wait that a provider asks for (RFC 9110 10.2.3), within bounds. */

/** A provider that asks for more is asked again after this time. */
const AFTER_MS_MAX = 3_600_000
/** Each of the three forms of RFC 9110 5.6.7 ends in GMT or a year, and starts with the name of a day. */
const HTTP_DATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? .*(?: GMT| \d{4})$/

/** Milliseconds from now; null for an absent or unreadable value. */
export function retryAfterMs(value: string, nowMs = Date.now()): number | null {
  if (/^\d+$/.test(value)) return Math.min(Number(value) * 1000, AFTER_MS_MAX)
  if (!HTTP_DATE.test(value)) return null
  const atMs = Date.parse(value.endsWith('GMT') ? value : `${value} GMT`)
  return Number.isNaN(atMs) ? null : Math.min(Math.max(0, atMs - nowMs), AFTER_MS_MAX)
}
