/**
 * JSON bodies (RFC 8259): checked against limits in one pass, parsed once, and numbers kept exactly. A number that a
 * double does not hold becomes an object of `JSON.rawJSON`, which is written with the digits that were read.
 */
import { showLife } from '../../runtime/signs-of-life.ts'
import { countText } from '../flow-limits.ts'
import { type Json, type Value, valueOfJson } from '../value.ts'
import type { BodyLimits } from './body-limits.ts'
import { FormatError, requireHeapRoom } from './format-error.ts'

/** Values of payloads, as long as the payloads are in use. */
const parsed = new WeakMap<object, Json>()
/** Values of payloads with each number in its notation, as long as the payloads are in use. */
const written = new WeakMap<object, Json>()

/** Texts without such digits hold no inexact number. */
const MAY_BE_INEXACT = /\d[\d.]{14}|\d[eE][+-]?\d|-0/

/** The value of a JSON payload, parsed at most once: each number that a double holds is one, edited or not. */
export function jsonOf(payload: { readonly text: string }): Json {
  const known = parsed.get(payload)
  if (known !== undefined || parsed.has(payload)) return known!
  const edited = written.get(payload)
  const value = edited === undefined || holdsRaw(edited, isExactDouble) ? valueOfText(payload.text) : edited
  parsed.set(payload, value)
  return value
}

function valueOfText(text: string): Json {
  return MAY_BE_INEXACT.test(text) ? exactValue(text) : (JSON.parse(text) as Json)
}

/** The payload of a value, which nobody changes any more. Its text is made for its readers, not for every copy. */
export function jsonPayload(value: Json): { readonly kind: 'json'; readonly text: string } {
  let text: string | undefined
  const payload = {
    kind: 'json',
    get text() {
      if (text === undefined) {
        text = JSON.stringify(value)
        countText(text)
      }
      return text
    },
  } as const
  // A number with another notation is an object in the value: who wants doubles gets another value.
  written.set(payload, value)
  return payload
}

/** A JSON payload. Throws FormatError with the position, as characters from 0. */
export function parseJsonText(text: string, limits: BodyLimits): { readonly kind: 'json'; readonly text: string } {
  const scan = scanJson(text, limits)
  requireHeapRoom(2 * text.length + scan.items * ITEM_BYTES)
  const payload = { kind: 'json', text } as const
  showLife()
  try {
    const value = scan.hasInexact ? exactValue(text) : (JSON.parse(text) as Json)
    parsed.set(payload, value)
    if (!scan.hasRewritten) written.set(payload, value)
  } catch (error) {
    throw new FormatError('malformed', `the body is not JSON${positionIn(error as Error)}`)
  }
  showLife()
  return payload
}

/** The position alone, because the message quotes the body. */
function positionIn(error: Error): string {
  const found = /at position (\d+)/.exec(error.message)
  if (found !== null) return ` at character ${found[1]}`
  return /end of JSON/.test(error.message) ? ': it ends too early' : ''
}

/** Parses with exact numbers. Throws SyntaxError. */
export function exactValue(text: string): Json {
  return JSON.parse(text, (_, value: unknown, context?: { readonly source?: string }) =>
    typeof value === 'number' && context?.source !== undefined && isInexact(context.source)
      ? JSON.rawJSON(context.source)
      : value,
  ) as Json
}

/** Texts without such digits hold no number that JavaScript would write in another way. */
const MAY_BE_REWRITTEN = /\.\d*0(?!\d)|\d[eE][+-]?\d|\d[\d.]{14}|-0|0\.0{6}/

/** JavaScript writes the number in another way: 7000.0, 1e2. */
function isRewritten(source: string): boolean {
  return MAY_BE_REWRITTEN.test(source) && String(Number(source)) !== source
}

/** Digits within strings, as those of a UUID, are no numbers. */
function hasRewritten(text: string): boolean {
  if (!MAY_BE_REWRITTEN.test(text)) return false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at)
    else if (isNumberStart(code)) {
      const end = endOfNumber(text, at)
      if (isRewritten(text.slice(at, end))) return true
      at = end - 1
    }
  }
  return false
}

/** The value of a JSON payload in which each number keeps its notation: 7000.0, 1e2. */
export function writtenValue(payload: { readonly text: string }): Json {
  const known = written.get(payload)
  if (known !== undefined) return known
  const value = hasRewritten(payload.text) ? inNotation(payload.text) : jsonOf(payload)
  written.set(payload, value)
  return value
}

/** Parses with the notation of each number. Throws SyntaxError. */
export function valueInNotation(text: string): Json {
  return MAY_BE_REWRITTEN.test(text) ? inNotation(text) : (JSON.parse(text) as Json)
}

/** Texts without such digits hold no number with an exponent. */
const MAY_HAVE_EXPONENT = /\d[eE][+-]?\d/

/** As `writtenValue`, for XPath 1.0, which knows no exponents: 1e2 is 100. A number beyond all doubles stays. */
export function valueWithoutExponents(payload: { readonly text: string }): Json {
  if (!MAY_HAVE_EXPONENT.test(payload.text)) return writtenValue(payload)
  return JSON.parse(payload.text, (_, value: unknown, context?: { readonly source?: string }) => {
    if (typeof value !== 'number' || context?.source === undefined) return value
    const { source } = context
    const digits = /e/i.test(source) && Number.isFinite(value) ? decimalOf(value) : source
    return digits === String(value) ? value : JSON.rawJSON(digits)
  }) as Json
}

/** The number without an exponent, with up to 20 decimal places. */
function decimalOf(number: number): string {
  if (Math.abs(number) >= 1e21) return String(BigInt(number))
  return Math.abs(number) < 1e-6 ? number.toFixed(20) : String(number)
}

function inNotation(text: string): Json {
  return JSON.parse(text, (_, value: unknown, context?: { readonly source?: string }) =>
    typeof value === 'number' && context?.source !== undefined && context.source !== String(value)
      ? JSON.rawJSON(context.source)
      : value,
  ) as Json
}

/** Text of a number with its own notation, such as one that a double does not hold; undefined for other values. */
export function rawDigits(value: Json): string | undefined {
  return JSON.isRawJSON(value) ? JSON.stringify(value) : undefined
}

/** Also the negative zero, which equals the other one. */
const ZERO = /^-?0(?:\.0+)?(?:[eE]|$)/

/** Numbers by their texts are equal; those beyond a double only where the texts are. */
export function isSameNumber(one: string, other: string): boolean {
  if (one === other || (ZERO.test(one) && ZERO.test(other))) return true
  return !isInexact(one) && !isInexact(other) && Number(one) === Number(other)
}

/** An object that is no number with its own notation. */
export function isObject(json: Json): json is { readonly [name: string]: Json } {
  return typeof json === 'object' && json !== null && !Array.isArray(json) && !JSON.isRawJSON(json)
}

/** Values that a structured clone keeps, by what they stand for: each copy of a message asks for those of all. */
const clones = new WeakMap<object, Value>()

/** A value that a structured clone keeps: JSON with inexact numbers is a text; other numbers lose their notation. */
export function cloneable(value: Value): Value {
  if (typeof value !== 'object' || value.kind !== 'json') return value
  let clone = clones.get(value)
  if (clone === undefined) {
    clone = cloneOf(value)
    clones.set(value, clone)
  }
  return clone
}

function cloneOf(value: Extract<Value, { kind: 'json' }>): Value {
  const { value: json } = value
  if (holdsRaw(json, isInexact)) return JSON.stringify(json)
  return holdsRaw(json) ? valueOfJson(withDoubles(json)) : value
}

/** The value with each number as a double, for code that knows no other numbers. */
export function withDoubles(json: Json): Json {
  return holdsRaw(json) ? (JSON.parse(JSON.stringify(json)) as Json) : json
}

function holdsRaw(root: Json, isWanted: (digits: string) => boolean = () => true): boolean {
  const pending: Json[] = [root]
  for (let json = pending.pop(); json !== undefined; json = pending.pop()) {
    if (typeof json !== 'object' || json === null) continue
    if (JSON.isRawJSON(json)) {
      if (isWanted(json.rawJSON)) return true
      continue
    }
    for (const item of Array.isArray(json) ? (json as readonly Json[]) : Object.values(json)) pending.push(item as Json)
  }
  return false
}

/** A double has all digits of the number. */
export function isExactDouble(source: string): boolean {
  return !isInexact(source)
}

/** Digits that every double keeps (IEEE 754). */
const SAFE_DIGITS = 15

/** A double would change the number, other than in its notation. */
function isInexact(source: string): boolean {
  if (source.length <= SAFE_DIGITS && !/[eE]/.test(source)) return source.startsWith('-0') && Number(source) === 0
  const value = Number(source)
  if (String(value) === source) return false
  const { length } = significantDigits(source.replace(/[eE].*$/, '').replace(/[-.]/g, ''))
  if (length === 0) return source.startsWith('-')
  return length > SAFE_DIGITS || !Number.isFinite(value) || value === 0 || Math.abs(value) < 1e-300
}

/** Digits without zeros at start and end. */
export function significantDigits(digits: string): string {
  let [start, end] = [0, digits.length]
  while (start < end && digits[start] === '0') start++
  // A pattern for zeros at the end would begin anew at each zero.
  while (end > start && digits[end - 1] === '0') end--
  return digits.slice(start, end)
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const COMMA = 0x2c
const COLON = 0x3a
const MINUS = 0x2d

/** Bytes of a value beside its text: parsed, and as an element. */
const ITEM_BYTES = 512

interface Scan {
  /** Values and members. */
  readonly items: number
  /** A number may be one that a double does not hold. */
  readonly hasInexact: boolean
  /** JavaScript writes a number in another way. */
  readonly hasRewritten: boolean
}

/** Checks the limits without building anything: the work is linear, whatever the text holds. */
function scanJson(text: string, limits: BodyLimits): Scan {
  const exceeded = (what: string, at: number): never => {
    throw new FormatError('limit', `the JSON body has ${what} at character ${at}`)
  }
  let depth = 0
  let items = 0
  let hasInexact = false
  let hasRewritten = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      const end = endOfString(text, at)
      const length = end - at - 1
      if (length > limits.nameLength && isName(text, end + 1)) exceeded('too long a name', at)
      if (length > limits.textLength) exceeded('too long a text', at)
      at = end
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      if (++depth > limits.depth) exceeded(`more than ${limits.depth} levels`, at)
      if (++items > limits.items) exceeded(`more than ${limits.items} items`, at)
    } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) depth--
    else if (code === COMMA) {
      if (++items > limits.items) exceeded(`more than ${limits.items} items`, at)
    } else if (isNumberStart(code)) {
      const end = endOfNumber(text, at)
      if (end - at > limits.nameLength) exceeded('too long a number', at)
      const source = text.slice(at, end)
      hasInexact ||= isInexact(source)
      hasRewritten ||= isRewritten(source)
      at = end - 1
    }
  }
  return { items, hasInexact, hasRewritten }
}

/** Index of the closing quote; the length of the text where there is none. */
export function endOfString(text: string, open: number): number {
  for (let at = text.indexOf('"', open + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let before = at - 1
    while (text.charCodeAt(before) === BACKSLASH) before--
    if ((at - before) % 2 === 1) return at
  }
  return text.length
}

/** True if the string that ends before `from` is the name of a member. */
export function isName(text: string, from: number): boolean {
  let at = from
  while (at < text.length && text.charCodeAt(at) <= 0x20) at++
  return text.charCodeAt(at) === COLON
}

function isNumberStart(code: number): boolean {
  return code === MINUS || (code >= 0x30 && code <= 0x39)
}

function endOfNumber(text: string, from: number): number {
  let at = from + 1
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at)
    const isDigit = code >= 0x30 && code <= 0x39
    if (!isDigit && code !== MINUS && code !== 0x2b && code !== 0x2e && code !== 0x45 && code !== 0x65) break
  }
  return at
}
