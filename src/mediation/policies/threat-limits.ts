/** Limits of threat protection on JSON texts and XML trees; each function returns the first violation, '' for none. */
import { decodedText, jsonTokens } from '../formats/json-tokens.ts'
import { elementsOf, type XmlElementNode } from '../xml-tree.ts'

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

/** `text`: well-formed JSON. A member counts also where its name repeats, because the backend gets all of them. */
export function jsonViolation(text: string, limits: JsonLimits): string {
  const open: { readonly isArray: boolean; count: number }[] = []
  for (const token of jsonTokens(text)) {
    const { kind } = token
    if (kind === 'end') {
      open.pop()
      continue
    }
    const parent = open.at(-1)
    if (parent !== undefined && parent.isArray === (kind !== 'name')) {
      const [limit, violation] = parent.isArray
        ? [limits.maxArrayElements, `an array has more than ${limits.maxArrayElements} items`]
        : [limits.maxProperties, `an object has more than ${limits.maxProperties} members`]
      if (exceeds(++parent.count, limit)) return violation
    }
    if (kind === 'array' || kind === 'object') {
      open.push({ isArray: kind === 'array', count: 0 })
      if (exceeds(open.length, limits.maxDepth)) return `the depth is more than ${limits.maxDepth}`
    } else if (kind !== 'scalar') {
      const limit = kind === 'name' ? limits.maxKeyLength : limits.maxStringLength
      // Escapes make a text no longer.
      if (!exceeds(token.end - token.start - 2, limit)) continue
      if (exceeds(decodedText(text, token).length, limit)) {
        return `a ${kind === 'name' ? 'name' : 'text'} is longer than ${limit}`
      }
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
    for (const child of elementsOf(node)) pending.push({ node: child, depth: depth + 1 })
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
  // Array instructions count as elements: they are as much work.
  if (exceeds(children.length - texts.length, limits.maxChildren)) {
    return `an element has more than ${limits.maxChildren} child elements`
  }
  const length = texts.reduce((sum, text) => sum + text.length, 0)
  return exceeds(length, limits.maxTextLength) ? `a text is longer than ${limits.maxTextLength}` : ''
}
