/** Types of properties: a value as one of them, or that it is none. Ranges are those of the reference platform. */
import { type Json, markupOf, type Value, valueOfJson } from './value.ts'

export const TYPES = ['STRING', 'INTEGER', 'BOOLEAN', 'DOUBLE', 'FLOAT', 'LONG', 'SHORT', 'OM', 'JSON'] as const
export type Type = (typeof TYPES)[number]

/** Longer texts are no values. */
export const TEXT_MAX = 1024 * 1024

const WHOLE_MAX: Partial<Record<Type, number>> = {
  SHORT: 2 ** 15,
  INTEGER: 2 ** 31,
  // Beyond it a double is no longer exact.
  LONG: 2 ** 53,
}
const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/

/** undefined when it is none of that type. */
export function convert(value: Value, type: Type): Value | undefined {
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
  const most = WHOLE_MAX[type]
  if (most === undefined) return type === 'FLOAT' ? Math.fround(number) : number
  return /^[+-]?\d+$/.test(trimmed) && number < most && number >= -most ? number : undefined
}

/** Arrays and objects within each other: whoever wrote them, what is done with them recurses. */
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
    // null is no text, and a property that holds none is not there.
    return json === null || isDeep(json) ? undefined : valueOfJson(json)
  } catch {
    return undefined
  }
}
