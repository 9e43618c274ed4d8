/** Types of properties, with the number ranges of the reference platform, and conversion to them. */
import { hasHeapRoom } from '../runtime/heap-room.ts'
import { exactValue } from './formats/json-text.ts'
import { MediationFault } from './mediation-fault.ts'
import type { Message } from './message.ts'
import type { TaskServices } from './task-calls.ts'
import { digitsOf, type Json, markupOf, textOf, type Value, valueOfJson } from './value.ts'

export const PROPERTY_TYPES = [
  'STRING',
  'INTEGER',
  'BOOLEAN',
  'DOUBLE',
  'FLOAT',
  'LONG',
  'SHORT',
  'OM',
  'JSON',
] as const
export type PropertyType = (typeof PROPERTY_TYPES)[number]

/** Longest text of a property or payload on a reactor; workers have the limits of bodies. */
export const TEXT_MAX = 1024 * 1024

const WHOLE_MAX: Partial<Record<PropertyType, bigint>> = { SHORT: 2n ** 15n, INTEGER: 2n ** 31n, LONG: 2n ** 63n }
/** Digits of a whole number, with those in front that count for nothing. */
const DIGITS_MAX = 100
const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/

/**
 * As `convertTo`. On a worker the text of an element becomes that element, and a text beyond the limits of bodies is a
 * fault. Throws MediationFault.
 */
export function convertIn({ task }: Message, value: Value, type: PropertyType): Value | undefined {
  if (task === null) return convertTo(value, type)
  if (type === 'OM' && typeof value !== 'object') return elementOf(textOf(value), task)
  if (isStructure(value, type)) return value
  const text = sourceOf(value, type)
  const { textLength } = task.limits
  if (text.length > textLength) throw tooLong(`the value has more than ${textLength} characters (body.max_text_length)`)
  if (!hasHeapRoom(BYTES_OF_CHARACTER * text.length)) throw noRoom()
  return convertText(text, type)
}

/** Bytes of a character in the heap, as a text and as what is parsed of it. */
const BYTES_OF_CHARACTER = 4

/** The fault of a text that a sequence has made and that is beyond a limit of bodies. */
export function tooLong(cause: string): MediationFault {
  return new MediationFault({ code: 102532, message: 'The message could not be mediated', cause })
}

/** The fault where the heap of the worker has no room. */
export function noRoom(): MediationFault {
  const cause = 'a value needs more memory than the worker has left'
  return new MediationFault({ code: 102533, message: 'The message could not be processed', cause })
}

/** undefined where the text is not one element. */
function elementOf(text: string, { parse }: TaskServices): Value | undefined {
  if (!isMarkup(text)) return undefined
  try {
    const payload = parse(text, 'application/xml')
    return payload?.kind === 'xml' ? { kind: 'xml', nodes: [payload.root] } : undefined
  } catch (error) {
    if (error instanceof MediationFault && error.raised.code === MALFORMED) return undefined
    throw error
  }
}

/** Code of a text that is not of its format. */
export const MALFORMED = 102520

/** False for a constant that no message can convert; a text that may be an element is parsed for each message. */
export function isOfType(value: string | number, type: PropertyType): boolean {
  return type === 'OM' ? isMarkup(String(value)) : convertTo(value, type) !== undefined
}

function isMarkup(text: string): boolean {
  return text.trimStart().startsWith('<')
}

/** undefined where the value cannot be converted. */
function convertTo(value: Value, type: PropertyType): Value | undefined {
  if (isStructure(value, type)) return value
  const text = sourceOf(value, type)
  return text.length > TEXT_MAX ? undefined : convertText(text, type)
}

/** A whole number of JSON, such as 7000.0, is one of those types. */
function sourceOf(value: Value, type: PropertyType): string {
  const number = typeof value === 'object' && WHOLE_MAX[type] !== undefined ? Number(digitsOf(value)) : Number.NaN
  return Number.isSafeInteger(number) ? String(number) : markupOf(value)
}

/** The value is a structure of that type already. */
function isStructure(value: Value, type: PropertyType): boolean {
  if (typeof value !== 'object') return false
  return value.kind === 'xml' ? type === 'OM' : type === 'JSON'
}

function convertText(text: string, type: PropertyType): Value | undefined {
  if (type === 'OM') return undefined
  if (type === 'STRING') return text
  if (type === 'JSON') return jsonIn(text)
  const trimmed = text.trim()
  if (type === 'BOOLEAN') return /^(?:true|false)$/i.test(trimmed) ? trimmed.toLowerCase() === 'true' : undefined
  const number = Number(trimmed)
  if (!DECIMAL.test(trimmed) || !Number.isFinite(number)) return undefined
  const limit = WHOLE_MAX[type]
  if (limit === undefined) return type === 'FLOAT' ? Math.fround(number) : number
  if (!/^[+-]?\d+$/.test(trimmed) || trimmed.length > DIGITS_MAX) return undefined
  const whole = BigInt(trimmed.replace('+', ''))
  return whole < limit && whole >= -limit ? wholeValue(whole) : undefined
}

/** A number, or JSON with the digits that a double does not hold. */
export function wholeValue(whole: bigint): Value {
  const number = Number(whole)
  return Number.isSafeInteger(number) ? number : { kind: 'json', value: JSON.rawJSON(String(whole)) as unknown as Json }
}

/** Nesting of arrays and objects, which are walked by recursion and may come from clients. */
const JSON_DEPTH_MAX = 100

function isDeep(json: Json): boolean {
  let level: readonly Json[] = [json]
  for (let depth = 0; depth <= JSON_DEPTH_MAX; depth++) {
    level = level.flatMap(each => (typeof each === 'object' && each !== null ? Object.values(each) : []))
    if (level.length === 0) return false
  }
  return true
}

/** The value of JSON, with its digits; undefined for other texts, null, and what is nested too deep. */
export function jsonIn(text: string): Value | undefined {
  try {
    const json = exactValue(text)
    // There are no null properties.
    return json === null || isDeep(json) ? undefined : valueOfJson(json)
  } catch {
    return undefined
  }
}
