/**
 * Values of templates. JSON stands for itself, so that a long payload is not copied; other values are classes. A hash
 * has its own members alone: names of JavaScript's prototypes are ordinary names.
 */
import { isObject, rawDigits } from '../formats/json-text.ts'
import { type Json, memberOf } from '../value.ts'
import { NodeList, NodeValue } from './nodes.ts'
import { Sequence } from './sequence.ts'

/** `undefined` and null are missing values. */
export type TemplateValue =
  | Json
  | Sequence
  | undefined
  | Hash
  | Range
  | DateValue
  | RegexMatch
  | Callable
  | NodeValue
  | NodeList
  | Nothing
  | readonly TemplateValue[]

export abstract class Hash {
  abstract get(name: string): TemplateValue
  abstract names(): readonly string[]
}

export class MapHash extends Hash {
  readonly #members: ReadonlyMap<string, TemplateValue>

  constructor(members: ReadonlyMap<string, TemplateValue>) {
    super()
    this.#members = members
  }

  override get(name: string): TemplateValue {
    return this.#members.get(name)
  }

  override names(): readonly string[] {
    return [...this.#members.keys()]
  }
}

/** What `value!` is without a value: an empty text, sequence and hash. */
class Nothing {
  readonly kind = 'nothing'
}

export const NOTHING = new Nothing()

/** Whole numbers from `begin`, `step` apart, which is 1 or -1; `size` may be infinite. */
export class Range {
  readonly begin: number
  readonly size: number
  readonly step: number
  /** `..*`: what is beyond the end of a sliced value is left out. */
  readonly isLimited: boolean

  constructor(begin: number, size: number, step: number, isLimited: boolean) {
    this.begin = begin
    this.size = size
    this.step = step
    this.isLimited = isLimited
  }

  at(index: number): TemplateValue {
    return this.begin + index * this.step
  }
}

export type DateKind = 'date' | 'time' | 'datetime'

export class DateValue {
  readonly ms: number
  readonly kind: DateKind

  constructor(ms: number, kind: DateKind) {
    this.ms = ms
    this.kind = kind
  }
}

/** The result of `?matches`: a boolean with groups, which are null where the text does not match. */
export class RegexMatch {
  readonly groups: readonly string[] | null

  constructor(groups: readonly string[] | null) {
    this.groups = groups
  }
}

/** A macro, function, or lambda. */
export class Callable {
  readonly kind: 'macro' | 'function' | 'lambda'
  /** Calls a function or lambda. Throws TemplateFailure. */
  readonly call: (args: readonly TemplateValue[]) => TemplateValue

  constructor(kind: Callable['kind'], call: Callable['call']) {
    this.kind = kind
    this.call = call
  }
}

/** A sequence by index; nothing is copied. */
export interface Items {
  /** May be infinite. */
  readonly size: number
  at(index: number): TemplateValue
}

const NO_ITEMS: Items = { size: 0, at: () => undefined }

/** The items of a sequence; undefined for other values. A node of XML is a sequence of itself. */
export function itemsOf(value: TemplateValue): Items | undefined {
  if (Array.isArray(value)) {
    const items = value as readonly TemplateValue[]
    return { size: items.length, at: index => items[index] }
  }
  if (value instanceof Range || value instanceof NodeList || value instanceof Sequence) return value
  if (value instanceof NodeValue) return { size: 1, at: index => (index === 0 ? value : undefined) }
  return value === NOTHING ? NO_ITEMS : undefined
}

export function isMissing(value: TemplateValue): value is undefined | null {
  return value === undefined || value === null
}

export function isText(value: TemplateValue): value is string {
  return typeof value === 'string'
}

/** A number, also one that a double does not hold. */
export function isNumber(value: TemplateValue): value is number | Json {
  return typeof value === 'number' || JSON.isRawJSON(value)
}

/** The number as a double. */
export function doubleOf(value: number | Json): number {
  return typeof value === 'number' ? value : Number(rawDigits(value))
}

/** A JSON object, which is a hash. */
function isJsonObject(value: TemplateValue): value is { readonly [name: string]: Json } {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return (prototype === Object.prototype || prototype === null) && isObject(value as Json)
}

/** A value whose names are known; they are not listed, because a hash may have many. */
export function isListableHash(value: TemplateValue): boolean {
  return value instanceof Hash || value === NOTHING || isJsonObject(value)
}

/** Names of JSON objects with many members: a loop may ask for them in each turn. */
const manyNames = new WeakMap<object, readonly string[]>()
const MANY_NAMES = 64

/** Names of a hash; undefined for other values. */
export function namesOf(value: TemplateValue): readonly string[] | undefined {
  if (value instanceof Hash) return value.names()
  if (isJsonObject(value)) {
    const known = manyNames.get(value)
    if (known !== undefined) return known
    const names = Object.keys(value)
    if (names.length >= MANY_NAMES) manyNames.set(value, names)
    return names
  }
  return value === NOTHING ? [] : undefined
}

export function isHash(value: TemplateValue): boolean {
  return isListableHash(value) || value instanceof NodeValue || value instanceof NodeList
}

/** The member of a hash or node; `isHash` holds. */
export function memberIn(value: TemplateValue, name: string): TemplateValue {
  if (value instanceof Hash || value instanceof NodeValue || value instanceof NodeList) return value.get(name)
  return value === NOTHING ? undefined : memberOf(value as Json, name)
}

/** Kind of a value as messages call it. */
export function kindOf(value: TemplateValue): string {
  if (isMissing(value)) return 'missing'
  if (isText(value)) return 'a text'
  if (isNumber(value)) return 'a number'
  if (typeof value === 'boolean' || value instanceof RegexMatch) return 'a boolean'
  if (value instanceof DateValue) return 'a date'
  if (value instanceof Callable) return `a ${value.kind}`
  if (value instanceof NodeValue) return `a node of XML (${value.type})`
  if (value instanceof NodeList) return `${value.size} nodes of XML`
  return itemsOf(value) === undefined ? 'a hash' : 'a sequence'
}

/** Tells whether `?has_content` holds. `spend`: counts the names of a hash. */
export function hasContent(value: TemplateValue, spend: (names: number) => void): boolean {
  if (isMissing(value) || value === '' || value === NOTHING) return false
  const items = itemsOf(value)
  if (items !== undefined) return items.size > 0
  const names = namesOf(value)
  if (names === undefined) return true
  spend(names.length)
  return names.length > 0
}
