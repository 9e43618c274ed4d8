/** Dates in patterns of letters, those of Java's SimpleDateFormat, in local time: written and read. */

import { compilePattern, type Pattern } from '../runtime/pattern.ts'

/** Pattern of SYSTEM_DATE without one. */
export const DATE_PATTERN = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"

const LENGTH_MAX = 100
const MONTHS = [
  ...['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November'],
  'December',
]
const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
/** A quoted text, two quotes, or letters of one kind. */
const PART = /'((?:[^']|'')*)'|(([A-Za-z])\3*)/g

type Format = (date: Date, count: number) => string

const padded = (value: number, count: number): string => String(value).padStart(count, '0')

/** Returns the short name for up to three letters, else the whole one. */
const named = (name: string, count: number): string => (count > 3 ? name : name.slice(0, 3))

const LETTERS: Readonly<Record<string, Format>> = {
  y: (date, count) => (count === 2 ? padded(date.getFullYear() % 100, 2) : padded(date.getFullYear(), count)),
  M: (date, count) => (count >= 3 ? named(MONTHS[date.getMonth()]!, count) : padded(date.getMonth() + 1, count)),
  d: (date, count) => padded(date.getDate(), count),
  H: (date, count) => padded(date.getHours(), count),
  h: (date, count) => padded(date.getHours() % 12 || 12, count),
  m: (date, count) => padded(date.getMinutes(), count),
  s: (date, count) => padded(date.getSeconds(), count),
  S: (date, count) => padded(date.getMilliseconds(), count),
  a: date => (date.getHours() < 12 ? 'AM' : 'PM'),
  E: (date, count) => named(DAYS[date.getDay()]!, count),
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

/** Fields of a date as a text gives them; months from 0. */
type Fields = Record<'year' | 'month' | 'day' | 'hour' | 'minute' | 'second' | 'ms' | 'half', number>

const FIRST: Fields = { year: 1970, month: 0, day: 1, hour: 0, minute: 0, second: 0, ms: 0, half: -1 }

interface Reader {
  /** Source of a regular expression for so many letters. */
  source(count: number): string
  read(text: string, count: number): Partial<Fields>
}

const digits = (count: number): string => (count === 1 ? '\\d{1,4}' : `\\d{${count}}`)
const field = (name: keyof Fields): Reader => ({ source: digits, read: text => ({ [name]: Number(text) }) })
const ignored = (source: string): Reader => ({ source: () => source, read: () => ({}) })
const monthOf = (text: string): number =>
  MONTHS.findIndex(name => name.slice(0, 3).toLowerCase() === text.slice(0, 3).toLowerCase())

const READERS: Readonly<Record<string, Reader>> = {
  y: {
    source: count => (count === 2 ? '\\d\\d' : count === 1 ? '\\d{1,4}' : '\\d{4}'),
    read: (text, count) => ({ year: Number(text) + (count === 2 ? 2000 : 0) }),
  },
  M: {
    source: count => (count >= 3 ? '[A-Za-z]{3,9}' : digits(count)),
    read: (text, count) => ({ month: count >= 3 ? monthOf(text) : Number(text) - 1 }),
  },
  d: field('day'),
  H: field('hour'),
  h: field('hour'),
  m: field('minute'),
  s: field('second'),
  S: field('ms'),
  a: { source: () => '[AaPp][Mm]', read: text => ({ half: /^p/i.test(text) ? 1 : 0 }) },
  E: ignored('[A-Za-z]{3,9}'),
  // As on the reference platform the fields are local ones, whatever the text says of its zone.
  Z: ignored('[+-]\\d{4}'),
  X: ignored('(?:Z|[+-]\\d\\d(?::?\\d\\d)?)'),
}

/** Returns undefined where the text does not follow the pattern, or is no date. `pattern`: a valid one. */
export function parseDate(text: string, pattern: string): Date | undefined {
  if (text.length > LENGTH_MAX) return undefined
  const { letters, compiled } = dateReader(pattern)
  const matcher = compiled.matcher(text)
  if (!matcher.matches()) return undefined
  const read = letters.map(([letter, count], index) => READERS[letter]!.read(matcher.group(index + 1)!, count))
  return dateOf(Object.assign({ ...FIRST }, ...read) as Fields)
}

interface DateReader {
  readonly letters: readonly (readonly [letter: string, count: number])[]
  /** Matches in linear time: messages may choose text and pattern, whose fields have several lengths each. */
  readonly compiled: Pattern
}

const readers = new Map<string, DateReader>()
const READERS_MAX = 100

function dateReader(pattern: string): DateReader {
  const known = readers.get(pattern)
  if (known !== undefined) return known
  const letters: [letter: string, count: number][] = []
  let source = ''
  let at = 0
  for (const found of pattern.matchAll(PART)) {
    const [part, quoted, letterRun, letter] = found
    source += literal(pattern.slice(at, found.index))
    at = found.index + part.length
    if (letter === undefined) source += literal(quoted === '' ? "'" : quoted!.replaceAll("''", "'"))
    else {
      letters.push([letter, letterRun!.length])
      source += `(${READERS[letter]!.source(letterRun!.length)})`
    }
  }
  const reader = { letters, compiled: compilePattern(source + literal(pattern.slice(at))) }
  if (readers.size >= READERS_MAX) readers.clear()
  readers.set(pattern, reader)
  return reader
}

/** Source that matches these characters alone. */
function literal(text: string): string {
  return text.toWellFormed().replace(/[^A-Za-z0-9]/gu, found => `\\x{${found.codePointAt(0)!.toString(16)}}`)
}

function dateOf({ year, month, day, hour: given, minute, second, ms, half }: Fields): Date | undefined {
  const hour = half < 0 ? given : (given % 12) + 12 * half
  const date = new Date(year, month, day, hour, minute, second, ms)
  const isSame = date.getFullYear() === year && date.getMonth() === month && date.getDate() === day
  return isSame && hour < 24 && minute < 60 && second < 60 ? date : undefined
}
