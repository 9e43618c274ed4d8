/** Values of properties and expressions, and their conversion to text, number and boolean (XPath 1.0 4.2 to 4.4). */
import { elementsOf, nodeWriter, textWithin, type XmlNode } from './xml-tree.ts'

export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

/** A JSON object or array, as `json-eval` finds it. */
interface JsonValue {
  readonly kind: 'json'
  readonly value: Json
}

/** Nodes that a location path has found, in document order; a string is text or the value of an attribute. */
interface XmlValue {
  readonly kind: 'xml'
  readonly nodes: readonly XmlNode[]
}

export type Value = string | number | boolean | JsonValue | XmlValue

/** Strings, numbers and booleans stay themselves; null is ''. */
export function valueOfJson(json: Json | undefined): Value {
  if (json === undefined || json === null) return ''
  return typeof json === 'object' ? { kind: 'json', value: json } : json
}

/** A member of an object, or an item of an array, from its end for an index below 0; undefined without one. */
export function memberOf(json: Json | undefined, key: string | number): Json | undefined {
  if (typeof json !== 'object' || json === null) return undefined
  if (Array.isArray(json)) return typeof key === 'number' ? json.at(key) : undefined
  if (typeof key === 'number' || JSON.isRawJSON(json) || !Object.hasOwn(json, key)) return undefined
  return (json as Readonly<Record<string, Json>>)[key]
}

export function textOf(value: Value | undefined): string {
  if (typeof value === 'string') return value
  if (value === undefined) return ''
  if (typeof value !== 'object') return String(value)
  if (value.kind === 'json') return JSON.stringify(value.value)
  return value.nodes.length === 0 ? '' : textWithin(value.nodes[0]!)
}

/** Text of all nodes, with markup for elements that contain elements. */
export function markupOf(value: Value): string {
  if (typeof value !== 'object' || value.kind === 'json') return textOf(value)
  const write = nodeWriter()
  let text = ''
  for (const node of value.nodes) text += isLeaf(node) ? textWithin(node) : write(node)
  return text
}

function isLeaf(node: XmlNode): boolean {
  return typeof node === 'string' || elementsOf(node).length === 0
}

/** Text of a number; undefined for another value. */
export function digitsOf(value: Value): string | undefined {
  if (typeof value === 'number') return String(value)
  return typeof value === 'object' && value.kind === 'json' && JSON.isRawJSON(value.value)
    ? value.value.rawJSON
    : undefined
}

/** XPath numbers have neither exponent nor plus sign; other text is NaN. */
const XPATH_NUMBER = /^[ \t\r\n]*-?(?:\d+(?:\.\d*)?|\.\d+)[ \t\r\n]*$/

export function numberOf(value: Value): number {
  if (typeof value === 'number') return value
  if (typeof value === 'boolean') return value ? 1 : 0
  const digits = digitsOf(value)
  if (digits !== undefined) return Number(digits)
  const text = textOf(value)
  return XPATH_NUMBER.test(text) ? Number(text) : Number.NaN
}

export function booleanOf(value: Value): boolean {
  if (typeof value === 'boolean') return value
  if (typeof value === 'string') return value !== ''
  if (typeof value === 'number' || digitsOf(value) !== undefined) {
    const number = numberOf(value)
    return number !== 0 && !Number.isNaN(number)
  }
  return value.kind === 'json' || value.nodes.length > 0
}
