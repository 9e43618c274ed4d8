/** Dates in patterns of letters, those of Java's SimpleDateFormat, in local time. */

/** Pattern of SYSTEM_DATE without one. */
export const DATE_PATTERN = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"

const LENGTH_MAX = 100
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
/** A quoted text, two quotes, or letters of one kind. */
const PART = /'((?:[^']|'')*)'|(([A-Za-z])\3*)/g

type Format = (date: Date, count: number) => string

const padded = (value: number, count: number): string => String(value).padStart(count, '0')

const LETTERS: Readonly<Record<string, Format>> = {
  y: (date, count) => (count === 2 ? padded(date.getFullYear() % 100, 2) : padded(date.getFullYear(), count)),
  M: (date, count) => (count >= 3 ? MONTHS[date.getMonth()]! : padded(date.getMonth() + 1, count)),
  d: (date, count) => padded(date.getDate(), count),
  H: (date, count) => padded(date.getHours(), count),
  h: (date, count) => padded(date.getHours() % 12 || 12, count),
  m: (date, count) => padded(date.getMinutes(), count),
  s: (date, count) => padded(date.getSeconds(), count),
  S: (date, count) => padded(date.getMilliseconds(), count),
  a: date => (date.getHours() < 12 ? 'AM' : 'PM'),
  E: date => DAYS[date.getDay()]!,
  Z: date => offset(date, ''),
  X: (date, count) => (date.getTimezoneOffset() === 0 ? 'Z' : offset(date, count === 3 ? ':' : '')),
}

/** Reason why the pattern is refused; '' for none. */
export function datePatternError(pattern: string): string {
  if (pattern.length > LENGTH_MAX) return `has more than ${LENGTH_MAX} characters`
  for (const [, , , letter] of pattern.matchAll(PART)) {
    if (letter !== undefined && !Object.hasOwn(LETTERS, letter)) return `has the unknown letter ${letter}`
  }
  return pattern.replace(PART, '').includes("'") ? 'has a quote without an end' : ''
}

export function formatDate(date: Date, pattern: string): string {
  return pattern.replace(PART, (_, quoted: string | undefined, letters: string, letter: string) => {
    if (quoted !== undefined) return quoted === '' ? "'" : quoted.replaceAll("''", "'")
    return LETTERS[letter]?.(date, letters.length) ?? letters
  })
}

function offset(date: Date, separator: string): string {
  const minutes = -date.getTimezoneOffset()
  const [sign, whole] = [minutes < 0 ? '-' : '+', Math.abs(minutes)]
  return `${sign}${padded(Math.floor(whole / 60), 2)}${separator}${padded(whole % 60, 2)}`
}
