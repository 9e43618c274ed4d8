/** Values as texts, as `${…}` prints them. */
import { DATE_PATTERN, datePatternError, formatDate } from '../date-pattern.ts'
import type { Environment } from './environment.ts'
import { NodeList, NodeValue } from './nodes.ts'
import { formatNumber } from './numbers.ts'
import { DateValue, type DateKind, isNumber, isText, NOTHING, RegexMatch, type TemplateValue } from './values.ts'

/** The text of a value; undefined for one that is none, as a boolean without a format. */
export function printed(value: TemplateValue, env: Environment): string | undefined {
  if (isText(value)) return value
  if (isNumber(value)) return formatNumber(value, env.settings.get('number_format') ?? '')
  if (typeof value === 'boolean' || value instanceof RegexMatch) return formattedBoolean(truthOf(value)!, env)
  if (value instanceof DateValue) return formattedDate(value, '', env)
  return textIn(value)
}

/** The text of a text or node; undefined for other values, numbers among them. */
export function textIn(value: TemplateValue): string | undefined {
  if (isText(value)) return value
  if (value === NOTHING) return ''
  if (value instanceof NodeValue) return value.text
  return value instanceof NodeList && value.size === 1 ? value.at(0)!.text : undefined
}

/** The boolean that a value is; undefined for other values. */
export function truthOf(value: TemplateValue): boolean | undefined {
  if (value instanceof RegexMatch) return value.groups !== null
  return typeof value === 'boolean' ? value : undefined
}

function formattedBoolean(value: boolean, env: Environment): string | undefined {
  const format = env.settings.get('boolean_format') ?? 'true,false'
  if (format === 'c') return String(value)
  // As in FreeMarker, the words of the default are not printed: authors would get them by accident.
  if (format === 'true,false') return undefined
  return format.split(',')[value ? 0 : 1]
}

const DATE = 'MMM d, yyyy'
const TIME = 'h:mm:ss a'
/** Formats of the locale en_US by name; '' is `medium`. */
const STYLES: Readonly<Record<string, readonly [date: string, time: string]>> = {
  '': [DATE, TIME],
  short: ['M/d/yy', 'h:mm a'],
  medium: [DATE, TIME],
  long: ['MMMM d, yyyy', 'h:mm:ss a Z'],
  full: ['EEEE, MMMM d, yyyy', 'h:mm:ss a Z'],
}

/** `format`: a name or pattern; '' for that of the settings. Undefined for a pattern that is refused. */
export function formattedDate({ ms, kind }: DateValue, format: string, env: Environment): string | undefined {
  const own = format === '' ? (env.settings.get(`${kind}_format`) ?? '') : format
  if (own === 'iso' || own === 'xs') return isoText(ms, kind, { isUtc: false, hasMs: ms % 1000 !== 0 })
  const date = new Date(ms)
  if (!Object.hasOwn(STYLES, own)) return datePatternError(own) === '' ? formatDate(date, own) : undefined
  const [dates, times] = STYLES[own]!
  return formatDate(date, kind === 'date' ? dates : kind === 'time' ? times : `${dates}, ${times}`)
}

/** ISO 8601, in UTC or local time with its offset. */
export function isoText(ms: number, kind: DateKind, of: { readonly isUtc: boolean; readonly hasMs: boolean }): string {
  const date = new Date(ms)
  const written = of.isUtc ? date.toISOString() : formatDate(date, DATE_PATTERN)
  const [, day, time, fraction, zone] = /^(.*)T(.*)(\.\d+)(.*)$/.exec(written)!
  if (kind === 'date') return day!
  const clock = `${time}${of.hasMs ? fraction : ''}${zone}`
  return kind === 'time' ? clock : `${day}T${clock}`
}
