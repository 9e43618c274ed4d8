/** A small XML text as elements with lines. A document type is refused: entities could grow, or read files. */
import type { Element } from '@xmldom/xmldom'
import type { Findings } from './findings.ts'

/** How much of it is taken; the parser itself has no such bounds. */
export interface XmlBounds {
  readonly bytes: number
  readonly elements: number
  /** Elements within each other. */
  readonly depth: number
}

/**
 * Undefined with a fault, which names the line, when it is not well-formed, beyond its bounds, or its root is another
 * element.
 */
export async function parseXml(
  text: string,
  label: string,
  root: string,
  findings: Findings,
  bounds?: XmlBounds,
): Promise<XmlElement | undefined> {
  const excess = bounds === undefined ? '' : tooMuch(text, bounds)
  if (excess !== '') return findings.fault(label, '', excess, 'divide it')
  const doctype = text.search(/<!DOCTYPE/i)
  if (doctype !== -1) {
    const line = text.slice(0, doctype).split('\n').length
    return findings.fault(`${label}:${line}`, '', 'a document type is not allowed', 'remove <!DOCTYPE')
  }
  const { DOMParser } = await import('@xmldom/xmldom')
  const place = { line: 1, said: '' }
  const stop = (said: string, line: number): never => {
    place.said = said
    place.line = line
    throw new SyntaxError(said)
  }
  try {
    const parser = new DOMParser({
      onError: (_, message, context) => {
        const { locator } = context as { readonly locator?: { readonly lineNumber: number } }
        return stop(message, locator?.lineNumber || 1)
      },
    })
    const parsed = parser.parseFromString(text, 'text/xml').documentElement
    const element = parsed === null ? undefined : new XmlElement(parsed, label)
    if (element?.name !== root) {
      const where = element?.where ?? `${label}:1`
      return findings.fault(where, '', `expected the element <${root}>`, 'let it hold all others')
    }
    const deep = bounds === undefined ? undefined : element.deeperThan(bounds.depth)
    if (deep === undefined) return element
    return findings.fault(deep.where, deep.name, `is more than ${bounds?.depth} elements deep`, 'nest less')
  } catch (error) {
    if (!(error instanceof Error)) throw error
    // What follows a colon or stands in quotes is a piece of the file, which holds passwords.
    const said = (place.said === '' ? error.message : place.said).replace(/["':][\s\S]*$/, '').trim()
    return findings.fault(`${label}:${place.line}`, '', `not well-formed: ${said}`, 'correct it')
  }
}

/** '' when it is within bounds. What looks like an element in a comment counts too. */
function tooMuch(text: string, bounds: XmlBounds): string {
  if (Buffer.byteLength(text) > bounds.bytes) return `has more than ${bounds.bytes} bytes`
  let elements = 0
  for (let at = text.indexOf('<'); at !== -1; at = text.indexOf('<', at + 1)) {
    if (!'/!?'.includes(text.charAt(at + 1)) && ++elements > bounds.elements) {
      return `has more than ${bounds.elements} elements`
    }
  }
  return ''
}

/** One attribute, with its prefix; declarations of namespaces are none. */
export interface XmlAttribute {
  readonly name: string
  readonly value: string
}

const DECLARATIONS = 'http://www.w3.org/2000/xmlns/'

export class XmlElement {
  readonly #element: Element
  readonly #label: string

  constructor(element: Element, label: string) {
    this.#element = element
    this.#label = label
  }

  get name(): string {
    return this.#element.localName ?? ''
  }

  /** As written, with its prefix. */
  get qualifiedName(): string {
    return this.#element.nodeName
  }

  /** '' for none. */
  get namespace(): string {
    return this.#element.namespaceURI ?? ''
  }

  get line(): number {
    return (this.#element as unknown as { readonly lineNumber?: number }).lineNumber ?? 1
  }

  /** Label and line. */
  get where(): string {
    return `${this.#label}:${this.line}`
  }

  /** All text within, without the space around it. */
  get text(): string {
    return (this.#element.textContent ?? '').trim()
  }

  attribute(name: string): string {
    return this.#element.getAttribute(name) ?? ''
  }

  has(attribute: string): boolean {
    return this.#element.hasAttribute(attribute)
  }

  get attributes(): readonly XmlAttribute[] {
    return this.#ownAttributes(false)
  }

  /** Declarations of namespaces that it makes itself: `xmlns` and `xmlns:…`. */
  get declarations(): readonly XmlAttribute[] {
    return this.#ownAttributes(true)
  }

  #ownAttributes(declarations: boolean): readonly XmlAttribute[] {
    return Array.from(this.#element.attributes)
      .filter(({ namespaceURI }) => (namespaceURI === DECLARATIONS) === declarations)
      .map(({ name, value }) => ({ name, value }))
  }

  /** Namespace of a prefix here; undefined when it has none. */
  namespaceOf(prefix: string): string | undefined {
    return this.#element.lookupNamespaceURI(prefix === '' ? null : prefix) ?? undefined
  }

  /** Elements and texts in order, without comments. */
  get nodes(): readonly (XmlElement | string)[] {
    const nodes: (XmlElement | string)[] = []
    for (const node of this.#element.childNodes) {
      if (node.nodeType === node.ELEMENT_NODE) nodes.push(new XmlElement(node as Element, this.#label))
      else if (node.nodeType === node.TEXT_NODE || node.nodeType === node.CDATA_SECTION_NODE) {
        nodes.push(node.nodeValue ?? '')
      }
    }
    return nodes
  }

  /** The first element within that has more than so many around it; itself counts as one. */
  deeperThan(depth: number): XmlElement | undefined {
    let level: readonly XmlElement[] = [this]
    for (let at = 0; at < depth && level.length > 0; at++) level = level.flatMap(({ children }) => children)
    return level[0]
  }

  get children(): readonly XmlElement[] {
    return Array.from(this.#element.childNodes)
      .filter(node => node.nodeType === node.ELEMENT_NODE)
      .map(node => new XmlElement(node as Element, this.#label))
  }

  /** The first of that name. */
  child(name: string): XmlElement | undefined {
    return this.children.find(child => child.name === name)
  }
}
