/** Types of properties, with the number ranges of the reference platform, and conversion to them. */
import { type Json, markupOf, type Value, valueOfJson } from './value.ts'

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

/** Longest text of a property or payload. */
export const TEXT_MAX = 1024 * 1024

const WHOLE_MAX: Partial<Record<PropertyType, number>> = {
  SHORT: 2 ** 15,
  INTEGER: 2 ** 31,
  // Doubles are exact up to here.
  LONG: 2 ** 53,
}
const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/

/** undefined where the value cannot be converted. */
export function convertTo(value: Value, type: PropertyType): Value | undefined {
  if (type === 'OM') return typeof value === 'object' && value.kind === 'xml' ? value : undefined
  if (type === 'JSON' && typeof value === 'object' && value.kind === 'json') return value
  const text = markupOf(value)
  if (text.length > TEXT_MAX) return undefined
  if (type === 'STRING') return text
  if (type === 'JSON') return parsed(text)
  const trimmed = text.trim()
  if (type === 'BOOLEAN') return /^(?:true|false)$/i.test(trimmed) ? trimmed.toLowerCase() === 'true' : undefined
  const number = Number(trimmed)
  if (!DECIMAL.test(trimmed) || !Number.isFinite(number)) return undefined
  const limit = WHOLE_MAX[type]
  if (limit === undefined) return type === 'FLOAT' ? Math.fround(number) : number
  return /^[+-]?\d+$/.test(trimmed) && number < limit && number >= -limit ? number : undefined
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

function parsed(text: string): Value | undefined {
  try {
    const json = JSON.parse(text) as Json
    // There are no null properties.
    return json === null || isDeep(json) ? undefined : valueOfJson(json)
  } catch {
    return undefined
  }
}
