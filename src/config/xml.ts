/** A small XML text as elements with lines. A document type is refused: entities could grow, or read files. */
import type { Element } from '@xmldom/xmldom'
import type { Findings } from './findings.ts'

/** Undefined with a fault, which names the line, when it is not well-formed or its root is another element. */
export async function parseXml(
  text: string,
  label: string,
  root: string,
  findings: Findings,
): Promise<XmlElement | undefined> {
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
    const element = parser.parseFromString(text, 'text/xml').documentElement
    if (element !== null && element.localName === root) return new XmlElement(element, label)
    const line = (element as { readonly lineNumber?: number } | null)?.lineNumber ?? 1
    return findings.fault(`${label}:${line}`, '', `expected the element <${root}>`, 'it holds the profiles')
  } catch (error) {
    if (!(error instanceof Error)) throw error
    // What follows a colon or stands in quotes is a piece of the file, which holds passwords.
    const said = (place.said === '' ? error.message : place.said).replace(/["':][\s\S]*$/, '').trim()
    return findings.fault(`${label}:${place.line}`, '', `not well-formed: ${said}`, 'correct it')
  }
}

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

  /** Label and line. */
  get where(): string {
    const { lineNumber } = this.#element as unknown as { readonly lineNumber?: number }
    return `${this.#label}:${lineNumber ?? 1}`
  }

  /** All text within, without the space around it. */
  get text(): string {
    return (this.#element.textContent ?? '').trim()
  }

  attribute(name: string): string {
    return this.#element.getAttribute(name) ?? ''
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
