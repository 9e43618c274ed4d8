/**
 * Numbers of messages that a double does not hold, for checks by schemas: Ajv sees the nearest double, and the
 * rules here compare the digits. Only values with such a number need them.
 */
import { isExactDouble, significantDigits } from './formats/json-text.ts'
import type { CodeTemplate, Keywords } from './schema-rules.ts'

/** Digits of numbers by what holds them, an object, a list or nothing, and by name or index. */
type Digits = ReadonlyMap<unknown, ReadonlyMap<string, string>>

interface ExactValue {
  /** With doubles for the numbers. */
  readonly value: unknown
  readonly digits: Digits
}

/** In place of a number that is not whole, but whose double is: no integer, whatever else it is. */
const NOT_WHOLE = Number.MIN_VALUE
const DIGITS_MAX = 1000

/** The value with doubles, and the digits that these lack; null where all numbers are doubles. */
export function withDigits(given: unknown): ExactValue | null {
  if (!holdsRaw(given)) return null
  const digits = new Map<unknown, Map<string, string>>()
  const converted = (value: unknown, holder: unknown, name: string): unknown => {
    if (typeof value !== 'object' || value === null) return value
    if (JSON.isRawJSON(value)) {
      const { rawJSON } = value
      const double = Number(rawJSON)
      if (isExactDouble(rawJSON)) return double
      const own = digits.get(holder) ?? new Map<string, string>()
      digits.set(holder, own.set(name, rawJSON))
      return Number.isInteger(double) && !isWhole(decimalOf(rawJSON)) ? NOT_WHOLE : double
    }
    if (Array.isArray(value)) {
      const list: unknown[] = []
      for (const [at, item] of value.entries()) list.push(converted(item, list, String(at)))
      return list
    }
    const object: Record<string, unknown> = {}
    for (const [key, item] of Object.entries(value)) {
      // A member __proto__ is a member like any other.
      Object.defineProperty(object, key, {
        ...{ value: converted(item, object, key), enumerable: true, configurable: true, writable: true },
      })
    }
    return object
  }
  return { value: converted(given, undefined, ''), digits }
}

function holdsRaw(root: unknown): boolean {
  const pending: unknown[] = [root]
  for (let value = pending.pop(); pending.length > 0 || value !== undefined; value = pending.pop()) {
    if (typeof value !== 'object' || value === null) continue
    if (JSON.isRawJSON(value)) return true
    for (const item of Array.isArray(value) ? (value as readonly unknown[]) : Object.values(value)) {
      if (typeof item === 'object' && item !== null) pending.push(item)
    }
  }
  return false
}

/** Digits of the value whose check runs. Checks are synchronous. */
let current: Digits = new Map()

/** Runs a check of a value by the rules of `addExactRules`. */
export function withExactNumbers<T>({ value, digits }: ExactValue, check: (value: unknown) => T): T {
  current = digits
  try {
    return check(value)
  } finally {
    current = new Map()
  }
}

interface Place {
  readonly parentData?: unknown
  readonly parentDataProperty?: string | number
}

/** [keyword, comparison as its message has it, what the order of value and limit may be, keyword of draft 04]. */
const LIMITS = [
  ['maximum', '<=', (order: number) => order <= 0, 'exclusiveMaximum'],
  ['minimum', '>=', (order: number) => order >= 0, 'exclusiveMinimum'],
  ['exclusiveMaximum', '<', (order: number) => order < 0, ''],
  ['exclusiveMinimum', '>', (order: number) => order > 0, ''],
] as const

/** Replaces the rules for numbers: these compare the digits that a double lacks. */
export function addExactRules(ajv: Keywords, _: CodeTemplate): void {
  const rules = LIMITS.map(([keyword, sign, isAllowed, strict]) => ({
    ...{ keyword, type: 'number' },
    error: { message: ({ schemaCode }: { readonly schemaCode: unknown }) => _`${`must be ${sign} `} + ${schemaCode}` },
    compile: (limit: unknown, schema: Readonly<Record<string, unknown>>) => {
      if (typeof limit !== 'number') return () => true
      const isStrict = strict !== '' && schema[strict] === true
      return (value: number, place?: Place) => {
        const order = compare(decimalOf(digitsAt(place) ?? String(value)), decimalOf(String(limit)))
        return isAllowed(order) && !(isStrict && order === 0)
      }
    },
  }))
  const multiple = {
    ...{ keyword: 'multipleOf', type: 'number' },
    error: { message: ({ schemaCode }: { readonly schemaCode: unknown }) => _`"must be multiple of " + ${schemaCode}` },
    compile: (factor: number) => {
      const isMultiple = (value: number): boolean => {
        const quotient = value / factor
        return Math.abs(Math.round(quotient) - quotient) <= PRECISION
      }
      return (value: number, place?: Place) => {
        const digits = digitsAt(place)
        return digits === undefined ? isMultiple(value) : isExactMultiple(decimalOf(digits), decimalOf(String(factor)))
      }
    },
  }
  for (const rule of [...rules, multiple]) {
    ajv.removeKeyword(rule.keyword)
    ajv.addKeyword({ ...rule, errors: false })
  }
}

/** As `multipleOfPrecision` of other checks. */
const PRECISION = 1e-9

function digitsAt({ parentData, parentDataProperty = '' }: Place = {}): string | undefined {
  return current.get(parentData)?.get(String(parentDataProperty))
}

/** `0.digits` times 10 to the power of `point`; no digits for zero. */
interface Decimal {
  readonly isNegative: boolean
  /** Without zeros at start and end. */
  readonly digits: string
  readonly point: number
}

function decimalOf(text: string): Decimal {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(
    text,
  )!
  const all = whole + fraction
  const digits = significantDigits(all)
  const zeros = digits === '' ? all.length : all.search(/[1-9]/)
  const point = whole.length + Number(exponent) - zeros
  return { isNegative: sign !== '' && digits !== '', digits, point }
}

function isWhole({ digits, point }: Decimal): boolean {
  return digits === '' || point >= digits.length
}

/** Below 0: `one` is less than `other`. */
function compare(one: Decimal, other: Decimal): number {
  if (one.isNegative !== other.isNegative) return one.isNegative ? -1 : 1
  const order = compareSizes(one, other)
  return one.isNegative ? -order : order
}

function compareSizes(one: Decimal, other: Decimal): number {
  if (one.digits === '' || other.digits === '') return Math.sign(one.digits.length - other.digits.length)
  if (one.point !== other.point) return one.point < other.point ? -1 : 1
  return one.digits === other.digits ? 0 : one.digits < other.digits ? -1 : 1
}

/** False also for numbers of more digits than can be divided in time. */
function isExactMultiple(value: Decimal, factor: Decimal): boolean {
  if (value.digits === '') return true
  const [ofValue, ofFactor] = [value.point - value.digits.length, factor.point - factor.digits.length]
  const least = Math.min(ofValue, ofFactor)
  const lengths = [value.digits.length + ofValue - least, factor.digits.length + ofFactor - least]
  if (factor.digits === '' || lengths.some(length => length > DIGITS_MAX)) return false
  const scaled = ({ digits }: Decimal, exponent: number) => BigInt(digits) * 10n ** BigInt(exponent - least)
  return scaled(value, ofValue) % scaled(factor, ofFactor) === 0n
}
