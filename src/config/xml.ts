/** Parses small XML texts into elements with lines. Document types are refused: entities could expand or read files. */
import type { Element } from '@xmldom/xmldom'
import type { Diagnostics } from './diagnostics.ts'

/** Limits of an XML text; the parser itself has none. */
export interface XmlBounds {
  readonly bytes: number
  readonly elements: number
  /** Nested elements. */
  readonly depth: number
}

/**
 * The root element. Undefined, with an error that names the line, where the text is not well-formed, exceeds its bounds
 * or has another root.
 */
export async function parseXml(
  text: string,
  label: string,
  root: string,
  diagnostics: Diagnostics,
  bounds?: XmlBounds,
): Promise<XmlElement | undefined> {
  const excess = bounds === undefined ? '' : exceededBound(text, bounds)
  if (excess !== '') return diagnostics.error(label, '', excess, 'divide it')
  const doctype = text.search(/<!DOCTYPE/i)
  if (doctype !== -1) {
    const line = text.slice(0, doctype).split('\n').length
    return diagnostics.error(`${label}:${line}`, '', 'a document type is not allowed', 'remove <!DOCTYPE')
  }
  const { DOMParser } = await import('@xmldom/xmldom')
  const failure = { line: 1, message: '' }
  const stop = (message: string, line: number): never => {
    failure.message = message
    failure.line = line
    throw new SyntaxError(message)
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
      return diagnostics.error(where, '', `expected the element <${root}>`, 'put all other elements inside it')
    }
    const deep = bounds === undefined ? undefined : element.deeperThan(bounds.depth)
    if (deep === undefined) return element
    return diagnostics.error(deep.where, deep.name, `is more than ${bounds?.depth} elements deep`, 'nest less')
  } catch (error) {
    if (!(error instanceof Error)) throw error
    // The parser quotes pieces of the file, which may hold passwords, after colons and in quotes.
    const reason = (failure.message === '' ? error.message : failure.message).replace(/["':][\s\S]*$/, '').trim()
    return diagnostics.error(`${label}:${failure.line}`, '', `not well-formed: ${reason}`, 'correct it')
  }
}

/** Which bound a text exceeds; '' for none. Counts elements in comments too. */
function exceededBound(text: string, bounds: XmlBounds): string {
  if (Buffer.byteLength(text) > bounds.bytes) return `has more than ${bounds.bytes} bytes`
  let elements = 0
  for (let at = text.indexOf('<'); at !== -1; at = text.indexOf('<', at + 1)) {
    if (!'/!?'.includes(text.charAt(at + 1)) && ++elements > bounds.elements) {
      return `has more than ${bounds.elements} elements`
    }
  }
  return ''
}

/** One attribute, named with its prefix. Namespace declarations are not attributes. */
export interface XmlAttribute {
  readonly name: string
  readonly value: string
}

/** A processing instruction: `<?target data?>`. */
export interface XmlInstruction {
  readonly target: string
  readonly data: string
}

const DECLARATIONS = 'http://www.w3.org/2000/xmlns/'

type Replace = (text: string) => string

export class XmlElement {
  readonly #element: Element
  readonly #label: string
  readonly #replace: Replace

  /** `replace`: of values of attributes, and of texts, of the element and its descendants. */
  constructor(element: Element, label: string, replace: Replace = text => text) {
    this.#element = element
    this.#label = label
    this.#replace = replace
  }

  /** The element with other values and texts. */
  replaced(replace: Replace): XmlElement {
    return new XmlElement(this.#element, this.#label, replace)
  }

  get name(): string {
    return this.#element.localName ?? ''
  }

  /** Name as written, with its prefix. */
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

  /** The trimmed text of the element and its descendants. */
  get text(): string {
    return this.#replace((this.#element.textContent ?? '').trim())
  }

  attribute(name: string): string {
    return this.#replace(this.#element.getAttribute(name) ?? '')
  }

  has(attribute: string): boolean {
    return this.#element.hasAttribute(attribute)
  }

  get attributes(): readonly XmlAttribute[] {
    return this.#ownAttributes(false)
  }

  /** Its own namespace declarations: `xmlns` and `xmlns:…`. */
  get declarations(): readonly XmlAttribute[] {
    return this.#ownAttributes(true)
  }

  #ownAttributes(declarations: boolean): readonly XmlAttribute[] {
    return Array.from(this.#element.attributes)
      .filter(({ namespaceURI }) => (namespaceURI === DECLARATIONS) === declarations)
      .map(({ name, value }) => ({ name, value: declarations ? value : this.#replace(value) }))
  }

  /** Namespace of a prefix in scope; undefined for none. */
  namespaceOf(prefix: string): string | undefined {
    return this.#element.lookupNamespaceURI(prefix === '' ? null : prefix) ?? undefined
  }

  /** Child elements, texts and processing instructions in order, without comments. */
  get nodes(): readonly (XmlElement | XmlInstruction | string)[] {
    const nodes: (XmlElement | XmlInstruction | string)[] = []
    for (const node of this.#element.childNodes) {
      if (node.nodeType === node.ELEMENT_NODE) nodes.push(new XmlElement(node as Element, this.#label, this.#replace))
      else if (node.nodeType === node.TEXT_NODE || node.nodeType === node.CDATA_SECTION_NODE) {
        nodes.push(this.#replace(node.nodeValue ?? ''))
      } else if (node.nodeType === node.PROCESSING_INSTRUCTION_NODE) {
        nodes.push({ target: node.nodeName, data: node.nodeValue ?? '' })
      }
    }
    return nodes
  }

  /** The first element deeper than `depth`; this element has depth 1. */
  deeperThan(depth: number): XmlElement | undefined {
    let level: readonly XmlElement[] = [this]
    for (let at = 0; at < depth && level.length > 0; at++) level = level.flatMap(({ children }) => children)
    return level[0]
  }

  get children(): readonly XmlElement[] {
    return Array.from(this.#element.childNodes)
      .filter(node => node.nodeType === node.ELEMENT_NODE)
      .map(node => new XmlElement(node as Element, this.#label, this.#replace))
  }

  /** The first child of that name. */
  child(name: string): XmlElement | undefined {
    return this.children.find(child => child.name === name)
  }
}
