/** Numbers, sizes and times as people read them. */

const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const FINE = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })
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
  if (ms < 1) return `${WHOLE.format(ms * 1000)} µs`
  if (ms < 10_000) return `${ms < 100 ? FINE.format(ms) : WHOLE.format(ms)} ms`
  return span(ms / 1000)
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
  return new Date(ms).toLocaleTimeString([], { hour12: false })
}
