/** Limits of threat protection on JSON values and XML trees; each function returns the first violation, '' for none. */
import { rawDigits } from '../formats/json-text.ts'
import type { Json } from '../value.ts'
import type { XmlElementNode } from '../xml-tree.ts'

/** 0: no limit. */
export interface JsonLimits {
  readonly maxDepth: number
  /** Members of one object. */
  readonly maxProperties: number
  /** Items of one array. */
  readonly maxArrayElements: number
  /** Characters of a name. */
  readonly maxKeyLength: number
  /** Characters of a text. */
  readonly maxStringLength: number
}

/** 0: no limit. */
export interface XmlLimits {
  readonly maxDepth: number
  /** Elements of the document. */
  readonly maxElements: number
  /** Attributes of one element, without declarations of namespaces. */
  readonly maxAttributes: number
  /** Characters of the value of an attribute. */
  readonly maxAttributeLength: number
  /** Elements in one element. */
  readonly maxChildren: number
  /** Characters of the text directly within one element. */
  readonly maxTextLength: number
}

function exceeds(count: number, limit: number): boolean {
  return limit > 0 && count > limit
}

export function jsonViolation(root: Json, limits: JsonLimits): string {
  const pending: { readonly json: Json; readonly depth: number }[] = [{ json: root, depth: 1 }]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { json, depth } = next
    if (typeof json === 'string') {
      if (exceeds(json.length, limits.maxStringLength)) return `a text is longer than ${limits.maxStringLength}`
      continue
    }
    if (typeof json !== 'object' || json === null || rawDigits(json) !== undefined) continue
    if (exceeds(depth, limits.maxDepth)) return `the depth is more than ${limits.maxDepth}`
    const entries = Array.isArray(json) ? null : Object.entries(json as { readonly [name: string]: Json })
    if (entries === null) {
      const items = json as readonly Json[]
      if (exceeds(items.length, limits.maxArrayElements))
        return `an array has more than ${limits.maxArrayElements} items`
      for (const item of items) pending.push({ json: item, depth: depth + 1 })
      continue
    }
    if (exceeds(entries.length, limits.maxProperties)) return `an object has more than ${limits.maxProperties} members`
    for (const [name, value] of entries) {
      if (exceeds(name.length, limits.maxKeyLength)) return `a name is longer than ${limits.maxKeyLength}`
      pending.push({ json: value, depth: depth + 1 })
    }
  }
  return ''
}

export function xmlViolation(root: XmlElementNode, limits: XmlLimits): string {
  const pending: { readonly node: XmlElementNode; readonly depth: number }[] = [{ node: root, depth: 1 }]
  let elements = 0
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { node, depth } = next
    if (exceeds(depth, limits.maxDepth)) return `the depth is more than ${limits.maxDepth}`
    if (exceeds(++elements, limits.maxElements)) return `the document has more than ${limits.maxElements} elements`
    const violation = elementViolation(node, limits)
    if (violation !== '') return violation
    for (const child of node.children) if (typeof child !== 'string') pending.push({ node: child, depth: depth + 1 })
  }
  return ''
}

function elementViolation({ attributes, children }: XmlElementNode, limits: XmlLimits): string {
  const own = attributes.filter(([name]) => name !== 'xmlns' && !name.startsWith('xmlns:'))
  if (exceeds(own.length, limits.maxAttributes)) return `an element has more than ${limits.maxAttributes} attributes`
  if (own.some(([, value]) => exceeds(value.length, limits.maxAttributeLength))) {
    return `the value of an attribute is longer than ${limits.maxAttributeLength}`
  }
  const texts = children.filter(child => typeof child === 'string')
  if (exceeds(children.length - texts.length, limits.maxChildren)) {
    return `an element has more than ${limits.maxChildren} child elements`
  }
  const length = texts.reduce((sum, text) => sum + text.length, 0)
  return exceeds(length, limits.maxTextLength) ? `a text is longer than ${limits.maxTextLength}` : ''
}
