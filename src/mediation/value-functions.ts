/** Operators and functions of `${…}` expressions, over typed values. */
import { datePatternError, formatDate, parseDate } from './date-pattern.ts'
import { isObject, isSameNumber, jsonOf as jsonOfPayload } from './formats/json-text.ts'
import { CHARSETS } from './functions.ts'
import { jsonOfXml } from './json-xml.ts'
import { wholeValue } from './property-type.ts'
import { digitsOf, type Json, numberOf, textOf, type Value, valueOfJson } from './value.ts'

interface ValueFunction {
  readonly least: number
  readonly most: number
  /** Returns undefined where the value would have more characters, or too many items. */
  apply(values: readonly Value[], charactersMax: number): Value | undefined
}

const ITEMS_MAX = 100_000

const text = (value: Value | undefined): string => textOf(value)
const one = (apply: (value: Value) => Value): ValueFunction => ({
  least: 1,
  most: 1,
  apply: ([value]) => apply(value!),
})
const two = (apply: (left: Value, right: Value) => Value): ValueFunction => ({
  least: 2,
  most: 2,
  apply: ([left, right]) => apply(left!, right!),
})
const some = (least: number, most: number, apply: ValueFunction['apply']): ValueFunction => ({ least, most, apply })
const number = (apply: (value: number) => number): ValueFunction => one(value => apply(numberOf(value)))

/** Operators by their symbols, functions by their names. */
export const VALUE_FUNCTIONS: Readonly<Record<string, ValueFunction>> = {
  '==': two((left, right) => isSame(left, right)),
  '!=': two((left, right) => !isSame(left, right)),
  '<': two((left, right) => numberOf(left) < numberOf(right)),
  '>': two((left, right) => numberOf(left) > numberOf(right)),
  '<=': two((left, right) => numberOf(left) <= numberOf(right)),
  '>=': two((left, right) => numberOf(left) >= numberOf(right)),
  '+': some(2, 2, ([left, right], charactersMax) => sum(left!, right!, charactersMax)),
  '-': two((left, right) => numberOf(left) - numberOf(right)),
  '*': two((left, right) => numberOf(left) * numberOf(right)),
  '/': two((left, right) => numberOf(left) / numberOf(right)),
  '%': two((left, right) => numberOf(left) % numberOf(right)),
  not: one(value => !isTrue(value)),
  length: one(length),
  toUpper: one(value => text(value).toUpperCase()),
  toLower: one(value => text(value).toLowerCase()),
  trim: one(value => text(value).trim()),
  subString: some(2, 3, ([value, from, to]) =>
    text(value).substring(numberOf(from!), to === undefined ? undefined : numberOf(to)),
  ),
  startsWith: two((value, start) => text(value).startsWith(text(start))),
  endsWith: two((value, end) => text(value).endsWith(text(end))),
  contains: two((value, part) => text(value).includes(text(part))),
  indexOf: some(2, 3, ([value, part, from]) =>
    text(value).indexOf(text(part), from === undefined ? 0 : numberOf(from)),
  ),
  charAt: two((value, at) => text(value).charAt(numberOf(at))),
  split: some(2, 2, ([value, separator]) => {
    const items = text(value).split(text(separator), ITEMS_MAX + 1)
    return items.length > ITEMS_MAX ? undefined : { kind: 'json', value: items }
  }),
  replace: some(3, 3, ([value, part, by], charactersMax) => replaced(text(value), text(part), text(by), charactersMax)),
  abs: number(Math.abs),
  ceil: number(Math.ceil),
  floor: number(Math.floor),
  round: some(1, 2, ([value, places]) => rounded(numberOf(value!), places === undefined ? 0 : numberOf(places))),
  sqrt: number(Math.sqrt),
  log: number(Math.log),
  pow: two((base, exponent) => numberOf(base) ** numberOf(exponent)),
  base64encode: some(1, 2, ([value, charset]) => encoded(text(value), text(charset))),
  base64decode: one(value => Buffer.from(text(value), 'base64').toString()),
  urlEncode: one(value => encodeURIComponent(text(value).toWellFormed())),
  urlDecode: one(value => decoded(text(value))),
  hash: two((value, algorithm) => hashed(text(value), text(algorithm))),
  formatDateTime: some(2, 3, ([value, pattern, wanted]) =>
    wanted === undefined
      ? dateOf(numberOf(value!), text(pattern))
      : reformatted(text(value), text(pattern), text(wanted)),
  ),
  string: one(value => text(value)),
  integer: one(value => Math.trunc(numberOf(value))),
  float: one(value => numberOf(value)),
  boolean: one(value => text(value).toLowerCase() === 'true'),
  object: one(parsed),
  array: one(parsed),
  exists: one(value => value !== ''),
  isString: one(value => typeof value === 'string'),
  isNumber: one(value => digitsOf(value) !== undefined),
  isArray: one(value => Array.isArray(plain(value))),
  isObject: one(value => typeof value === 'object' && value.kind === 'json' && isObject(value.value)),
}

/** Only `true` and the text of it are true: an expression of another type is no condition. */
export function isTrue(value: Value): boolean {
  return value === true || value === 'true'
}

/** A value with all types: XML becomes JSON. */
export function plain(value: Value): Json {
  if (typeof value !== 'object') return value
  if (value.kind === 'json') return value.value
  const [node] = value.nodes
  return node === undefined || typeof node === 'string' ? textOf(value) : jsonOfXml(node)
}

function isSame(left: Value, right: Value): boolean {
  const [one, other] = [left, right].map(digitsOf)
  if (one !== undefined && other !== undefined) return isSameNumber(one, other)
  if (typeof left === 'object' || typeof right === 'object') return text(left) === text(right)
  if (typeof left === typeof right) return left === right
  // Header fields and query parameters are texts, whatever they are compared with.
  return text(left) === text(right)
}

/** Whole numbers that are added exactly: a client may send millions of digits, which take seconds. */
const WHOLE = /^-?\d{1,1000}$/

/** Adds numbers, whole ones beyond doubles exactly, and joins texts. */
function sum(left: Value, right: Value, charactersMax: number): Value | undefined {
  if (typeof left === 'number' && typeof right === 'number') return left + right
  const [one, other] = [left, right].map(digitsOf)
  if (one !== undefined && other !== undefined) {
    const areWhole = WHOLE.test(one) && WHOLE.test(other)
    return areWhole ? wholeValue(BigInt(one) + BigInt(other)) : Number(one) + Number(other)
  }
  const joined = text(left) + text(right)
  return joined.length > charactersMax ? undefined : joined
}

/** The length is known before anything is made: a client may choose text and replacement. */
function replaced(whole: string, part: string, by: string, charactersMax: number): string | undefined {
  let count = part === '' ? whole.length + 1 : 0
  if (part !== '') for (let at = whole.indexOf(part); at !== -1; at = whole.indexOf(part, at + part.length)) count++
  if (whole.length + count * (by.length - part.length) > charactersMax) return undefined
  return whole.replaceAll(part, () => by)
}

function length(value: Value): number {
  const json = plain(value)
  if (Array.isArray(json)) return json.length
  return isObject(json) ? Object.keys(json).length : text(value).length
}

/** `places`: of the decimal fraction; 0 to 100. */
function rounded(value: number, places: number): number {
  return places > 0 && places <= 100 ? Number(value.toFixed(Math.trunc(places))) : Math.round(value)
}

/** '' for an unknown charset. */
function encoded(value: string, charset: string): string {
  return Object.hasOwn(CHARSETS, charset) ? Buffer.from(value, CHARSETS[charset]).toString('base64') : ''
}

/** '' where the value is no time, or the pattern is none. */
function dateOf(ms: number, pattern: string): string {
  const date = new Date(ms)
  return Number.isNaN(date.getTime()) || datePatternError(pattern) !== '' ? '' : formatDate(date, pattern)
}

/** '' where the text does not have the pattern. */
function reformatted(value: string, pattern: string, wanted: string): string {
  const date = datePatternError(pattern) === '' ? parseDate(value, pattern) : undefined
  return date === undefined ? '' : dateOf(date.getTime(), wanted)
}

/** In hexadecimal digits; '' for an unknown algorithm. */
function hashed(value: string, algorithm: string): string {
  const name = algorithm.toLowerCase().replace('-', '')
  if (!['md5', 'sha1', 'sha256', 'sha384', 'sha512'].includes(name)) return ''
  // Loaded with its first use: most threads hash nothing.
  return process.getBuiltinModule('node:crypto').hash(name, value, 'hex')
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value.replaceAll('+', ' '))
  } catch {
    return value
  }
}

/** '' where the text is no JSON. */
function parsed(value: Value): Value {
  if (typeof value === 'object') return value
  try {
    return valueOfJson(jsonOfPayload({ text: text(value) }))
  } catch {
    return ''
  }
}
