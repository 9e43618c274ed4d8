/** Numbers, sizes and times as people read them. */

const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const FINE = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })
/** Made once, because `toLocaleTimeString` makes one for each text; from 00:00:00 on in every language. */
const CLOCK = new Intl.DateTimeFormat([], { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' })
const BYTES = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

export function count(value) {
  return typeof value === 'number' && Number.isFinite(value) ? WHOLE.format(value) : '–'
}

/** A rate: small ones with a digit behind the point. */
export function rate(value) {
  if (typeof value !== 'number' || !Number.isFinite(value)) return '–'
  return value < 100 ? FINE.format(value) : WHOLE.format(value)
}

export function bytes(value) {
  if (typeof value !== 'number' || !Number.isFinite(value)) return '–'
  let unit = 0
  let left = value
  while (left >= 1024 && unit < BYTES.length - 1) {
    left /= 1024
    unit++
  }
  return `${left < 100 && unit > 0 ? FINE.format(left) : WHOLE.format(left)} ${BYTES[unit]}`
}

/** `ms`: null or not finite for none. */
export function milliseconds(ms) {
  if (typeof ms !== 'number' || !Number.isFinite(ms)) return '–'
  if (ms === 0) return '0 ms'
  if (ms < 1) return `${WHOLE.format(ms * 1000)} µs`
  if (ms < 1000) return `${ms < 100 ? FINE.format(ms) : WHOLE.format(ms)} ms`
  return span(ms / 1000)
}

/** Under load the gateway reads its clock once for what has come meanwhile. */
const CLOCK_MS = 0.08

/** Time of one exchange, which is not known more exactly than the clock is read. */
export function duration(us) {
  return us / 1000 < CLOCK_MS ? '< 0.1 ms' : milliseconds(us / 1000)
}

export function span(seconds) {
  if (seconds < 60) return `${FINE.format(seconds)} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3600)} h`
}

export function percent(share) {
  return Number.isFinite(share) ? `${FINE.format(share * 100)} %` : '–'
}

export function clock(ms) {
  return CLOCK.format(ms)
}

const DAY_MS = 86_400_000

/** A time in the future: with its day where it is not within the next 24 hours. */
export function moment(ms, nowMs) {
  const day = { weekday: 'short', day: 'numeric', month: 'short' }
  return ms - nowMs < DAY_MS ? clock(ms) : `${new Date(ms).toLocaleDateString([], day)} ${clock(ms)}`
}
