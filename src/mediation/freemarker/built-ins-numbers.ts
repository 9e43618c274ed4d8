/** Built-ins of numbers, booleans and dates. */
import { datePatternError, parseDate } from '../date-pattern.ts'
import type { BuiltIn, BuiltInCall } from './built-in-call.ts'
import { formatNumber, numberFormatProblem } from './numbers.ts'
import { formattedDate, isoText, truthOf } from './texts.ts'
import { type DateKind, DateValue, isNumber, type TemplateValue } from './values.ts'

const FORMAT_MAX = 100

/** `?string`, with a format for numbers and dates, or the words for true and false. */
function string(call: BuiltInCall): string {
  const { target, args, env } = call
  const truth = truthOf(target)
  if (truth !== undefined) {
    if (args.length === 1) return call.fail('takes the words for both, true and false')
    return args.length === 0 ? String(truth) : call.textAt(truth ? 0 : 1)
  }
  if (args.length === 0) return call.text
  const format = call.textAt(0)
  if (format.length > FORMAT_MAX || args.length > 1) return call.fail('has a format that is not supported')
  if (isNumber(target)) {
    const text = numberFormatProblem(format) === '' ? formatNumber(target, format) : undefined
    return text ?? call.fail('has a number format that is not supported')
  }
  if (!(target instanceof DateValue)) return call.fail('has a format for what is no number, boolean or date')
  return formattedDate(target, format, env) ?? call.fail('has a date format that is not supported')
}

/** `?c`: for computers. */
function forComputers(call: BuiltInCall): string {
  const { target } = call
  const truth = truthOf(target)
  if (truth !== undefined) return String(truth)
  return isNumber(target) ? formatNumber(target, 'computer')! : call.fail('is neither a number nor a boolean')
}

const ISO = /^(?:(\d{4})-(\d\d)-(\d\d))?T?(?:(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)?(Z|[+-]\d\d(?::?\d\d)?)?$/

/** The date of a text in ISO 8601; undefined for other texts. */
function isoDate(text: string, kind: DateKind): number | undefined {
  const [found, year, month = '1', day = '1', hour, minute = '0', second = '0', fraction = '', zone] =
    ISO.exec(text.trim()) ?? []
  const isWhole = kind === 'date' ? year !== undefined : hour !== undefined
  if (!found || !isWhole || (kind === 'datetime' && year === undefined)) return undefined
  const parts = [Number(year ?? 1970), Number(month) - 1, Number(day), Number(hour ?? 0)] as const
  const rest = [Number(minute), Number(second), Number(fraction.padEnd(3, '0').slice(0, 3))] as const
  const isDay = new Date(Date.UTC(parts[0], parts[1], parts[2])).getUTCDate() === parts[2]
  if (!isDay || parts[1] > 11 || parts[3] > 23 || rest[0] > 59 || rest[1] > 59) return undefined
  if (zone === undefined || kind === 'date') return new Date(...parts, ...rest).getTime()
  return Date.UTC(...parts, ...rest) - offsetMs(zone)
}

function offsetMs(zone: string): number {
  if (zone === 'Z') return 0
  const [hours, minutes] = [Number(zone.slice(1, 3)), Number(zone.slice(3).replace(':', '') || 0)]
  return (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60_000
}

const DEFAULTS: Readonly<Record<DateKind, string>> = {
  date: 'MMM d, yyyy',
  time: 'h:mm:ss a',
  datetime: 'MMM d, yyyy, h:mm:ss a',
}

/** `?date`, `?time` and `?datetime` of a text, or of a date of another kind. */
function dateOf(call: BuiltInCall, kind: DateKind): TemplateValue {
  const { target } = call
  if (target instanceof DateValue) {
    if (kind === 'datetime' && target.kind !== 'datetime') return call.fail('has only one part of a date and time')
    return new DateValue(target.ms, kind)
  }
  const given = call.args.length > 0 ? call.textAt(0) : (call.env.settings.get(`${kind}_format`) ?? '')
  const pattern = given === '' ? DEFAULTS[kind] : given
  const isIso = pattern === 'iso' || pattern === 'xs'
  if (!isIso && (pattern.length > FORMAT_MAX || datePatternError(pattern) !== '')) {
    return call.fail('has a date format that is not supported')
  }
  const ms = isIso ? isoDate(call.text, kind) : parseDate(call.text, pattern)?.getTime()
  return ms === undefined ? call.fail('is no date of its format') : new DateValue(ms, kind)
}

function iso({ date: { ms, kind } }: BuiltInCall, isUtc: boolean, hasMs: boolean): string {
  return isoText(ms, kind, { isUtc, hasMs })
}

function ofMs(call: BuiltInCall, kind: DateKind): DateValue {
  const ms = call.number
  return Number.isNaN(new Date(ms).getTime()) ? call.fail('is no time') : new DateValue(Math.trunc(ms), kind)
}

/** Rounds half up, as Java does. */
export const OF_NUMBERS: Readonly<Record<string, BuiltIn>> = {
  abs: ({ number }) => Math.abs(number),
  ceiling: ({ number }) => Math.ceil(number),
  floor: ({ number }) => Math.floor(number),
  round: ({ number }) => Math.floor(number + 0.5),
  int: ({ number }) => Math.trunc(number),
  long: call => (call.target instanceof DateValue ? call.target.ms : Math.trunc(call.number)),
  is_nan: ({ number }) => Number.isNaN(number),
  is_infinite: ({ number }) => number === Number.POSITIVE_INFINITY || number === Number.NEGATIVE_INFINITY,
  c: forComputers,
  string,
  date: call => dateOf(call, 'date'),
  time: call => dateOf(call, 'time'),
  datetime: call => dateOf(call, 'datetime'),
  number_to_date: call => ofMs(call, 'date'),
  number_to_time: call => ofMs(call, 'time'),
  number_to_datetime: call => ofMs(call, 'datetime'),
  iso_utc: call => iso(call, true, false),
  iso_utc_ms: call => iso(call, true, true),
  iso_local: call => iso(call, false, false),
  iso_local_ms: call => iso(call, false, true),
}
