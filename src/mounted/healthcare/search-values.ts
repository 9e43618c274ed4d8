/** Values of search parameters: escapes, the forms of each type, and the periods of dates (R4, search.html). */

import { dateTimeInterval } from './date-interval.ts'

/** A value cannot be read; the message says why, and names no parameter. */
export class UnreadableValue extends Error {
  override readonly name = 'UnreadableValue'
}

/** One of the values of a parameter, any of which matches. */
export type SearchValue =
  | TokenValue
  | OfTypeValue
  | StringValue
  | ReferenceValue
  | DateValue
  | UriValue
  /** `:identifier` of a reference. */
  | { readonly kind: 'reference-identifier'; readonly system: string | null; readonly code: string | null }

/** `system`: null for any, '' for none. `code`: null for any. Not both are null. */
interface TokenValue {
  readonly kind: 'token'
  readonly system: string | null
  readonly code: string | null
}

/** `:of-type` of an identifier. */
interface OfTypeValue {
  readonly kind: 'of-type'
  readonly system: string
  readonly code: string
  readonly value: string
}

/** `text`: as the client wrote it. */
export interface StringValue {
  readonly kind: 'string'
  readonly match: 'starts' | 'contains' | 'exact'
  readonly text: string
}

/** Either `id`, with a type or '' for every target, or an absolute `url`. `version`: '' for every version. */
export interface ReferenceValue {
  readonly kind: 'reference'
  readonly type: string
  readonly id: string
  readonly url: string
  readonly version: string
}

export interface UriValue {
  readonly kind: 'uri'
  readonly match: 'exact' | 'above' | 'below'
  readonly uri: string
}

const DATE_PREFIXES = ['eq', 'ne', 'gt', 'lt', 'ge', 'le', 'sa', 'eb', 'ap'] as const
type DatePrefix = (typeof DATE_PREFIXES)[number]

/** The half-open period that the precision of the value implies, in milliseconds since 1970. */
export interface DateValue {
  readonly kind: 'date'
  readonly prefix: DatePrefix
  readonly startMs: number
  readonly endMs: number
}

/** Splits at `separator` where no backslash stands before it. Escapes stay. */
export function splitUnescaped(text: string, separator: ',' | '|' | '$'): readonly string[] {
  const parts: string[] = []
  let begin = 0
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === separator) {
      parts.push(text.slice(begin, at))
      begin = at + 1
    }
  }
  parts.push(text.slice(begin))
  return parts
}

/** Resolves `\,` `\|` `\$` `\\`. Throws UnreadableValue for a backslash before anything else. */
export function unescapeValue(text: string): string {
  if (!text.includes('\\')) return text
  return text.replace(/\\(.?)/gsu, (_, escaped: string) => {
    if (!/^[,|$\\]$/.test(escaped)) throw new UnreadableValue('a backslash stands before , | $ or \\ only')
    return escaped
  })
}

/** `code`, `system|code`, `|code` or `system|`. */
export function readToken(text: string): TokenValue {
  const parts = splitUnescaped(text, '|').map(unescapeValue)
  if (parts.length > 2) throw new UnreadableValue('a token has the form code, system|code, |code or system|')
  const [first = '', second] = parts
  if (second === undefined) return { kind: 'token', system: null, code: first }
  if (first === '' && second === '') throw new UnreadableValue('a token names a system or a code')
  return { kind: 'token', system: first, code: second === '' ? null : second }
}

/** `type-system|type-code|value`. */
export function readOfType(text: string): OfTypeValue {
  const [system, code, value, ...more] = splitUnescaped(text, '|').map(unescapeValue)
  if (!system || !code || !value || more.length > 0) {
    throw new UnreadableValue('a value of :of-type has the form type-system|type-code|value')
  }
  return { kind: 'of-type', system, code, value }
}

const ID = '[A-Za-z0-9\\-.]{1,64}'
const RELATIVE = new RegExp(`^(?:([A-Z][A-Za-z]{0,63})/)?(${ID})(?:/_history/(${ID}))?$`)
const ABSOLUTE = /^(?:[a-z][a-z0-9+.-]{1,30}:)\S+$/i
const URL_VERSION = new RegExp(`/_history/(${ID})$`)

/** `id`, `Type/id`, an absolute URL, and each with `/_history/version`. `type`: named by the modifier, or ''. */
export function readReference(escaped: string, type = ''): ReferenceValue {
  const text = unescapeValue(escaped)
  const [, ownType = '', id = '', version = ''] = RELATIVE.exec(text) ?? []
  if (type !== '' && (id === '' || (ownType !== '' && ownType !== type))) {
    throw new UnreadableValue(`with :${type} the value is an id`)
  }
  if (id !== '' && (version === '' || ownType !== '' || type !== '')) {
    return { kind: 'reference', type: type || ownType, id, url: '', version }
  }
  if (!ABSOLUTE.test(text)) throw new UnreadableValue('a reference is an id, Type/id or an absolute URL')
  const urlVersion = URL_VERSION.exec(text)?.[1] ?? ''
  return { kind: 'reference', type: '', id: '', url: text.replace(URL_VERSION, ''), version: urlVersion }
}

/** Throws UnreadableValue where `above` and `below` have no URL. */
export function readUri(escaped: string, match: UriValue['match']): UriValue {
  const uri = unescapeValue(escaped)
  if (/\s/.test(uri)) throw new UnreadableValue('a URI has no white space')
  if (match !== 'exact' && !/^[a-z][a-z0-9+.-]*:\/\/[^/]/i.test(uri)) {
    throw new UnreadableValue(`:${match} compares paths of URLs`)
  }
  return { kind: 'uri', match, uri }
}

const TIME = /T\d\d:\d\d(?<seconds>:\d\d(?:\.\d{1,9})?)?(?<zone>Z|[+ -]\d\d:\d\d)?$/
const MINUTE_MS = 60_000

/** A prefix and a date of any precision but that of hours. Without a zone it is UTC; a space counts as its plus. */
export function readDate(escaped: string): DateValue {
  const text = unescapeValue(escaped)
  const prefix = DATE_PREFIXES.find(name => text.startsWith(name))
  const date = prefix === undefined ? text : text.slice(2)
  const { seconds, zone } = TIME.exec(date)?.groups ?? {}
  const isMinute = date.includes('T') && seconds === undefined
  const clock = zone === undefined ? date : date.slice(0, -zone.length)
  const whole = date.includes('T') ? `${clock}${isMinute ? ':00' : ''}${(zone ?? 'Z').replace(' ', '+')}` : date
  const interval = dateTimeInterval(whole)
  if (interval === undefined) {
    throw new UnreadableValue('a date has the form YYYY, YYYY-MM, YYYY-MM-DD or YYYY-MM-DDThh:mm[:ss[.fff]][zone]')
  }
  const endMs = isMinute ? interval.start + MINUTE_MS : interval.end
  return { kind: 'date', prefix: prefix ?? 'eq', startMs: interval.start, endMs }
}
