/**
 * Reads XML bodies in pieces to trees (XML 1.0, Namespaces in XML 1.0), within limits. Document types are refused, so
 * that no entity expands and none is fetched.
 */
import { SaxesParser } from 'saxes'
import { showLife } from '../../runtime/signs-of-life.ts'
import { ARRAY_TARGET, type XmlChild, type XmlElementNode } from '../xml-tree.ts'
import type { BodyLimits } from './body-limits.ts'
import { FormatError, type FormatErrorKind, requireHeapRoom } from './format-error.ts'

/** Elements and attributes between two looks at the heap, and the room that is left for what becomes of them. */
const ITEMS_PER_LOOK = 8192
const ROOM_BYTES = 16 * 1024 * 1024

interface OpenElement {
  readonly name: string
  readonly attributes: (readonly [name: string, value: string])[]
  readonly children: XmlChild[]
}

export class XmlReader {
  readonly #parser = new SaxesParser({ xmlns: true, position: true })
  readonly #limits: BodyLimits
  readonly #open: OpenElement[] = []
  #root: OpenElement | undefined
  #attributes: (readonly [name: string, value: string])[] = []
  #items = 0

  constructor(limits: BodyLimits) {
    this.#limits = limits
    const parser = this.#parser
    parser.on('error', error => this.#fail('malformed', reasonOf(error)))
    parser.on('doctype', () => this.#fail('malformed', 'a document type is not allowed'))
    parser.on('opentagstart', ({ name }) => this.#begin(name))
    parser.on('attribute', ({ name, value }) => this.#attribute(name, value))
    parser.on('opentag', ({ name }) => this.#element(name))
    parser.on('text', text => this.#text(text))
    parser.on('cdata', text => this.#text(text))
    parser.on('processinginstruction', ({ target, body }) => {
      if (target === ARRAY_TARGET) this.#arrayInstruction(body.trim())
    })
    parser.on('closetag', () => {
      this.#open.pop()
    })
  }

  /** Throws FormatError with line and column. */
  write(piece: string): void {
    this.#parser.write(piece)
  }

  /** The root element. Throws FormatError where the text ends too early. */
  end(): XmlElementNode {
    this.#parser.close()
    return this.#root ?? this.#fail('malformed', 'it has no element')
  }

  #begin(name: string): void {
    this.#attributes = []
    this.#count()
    if (name.length > this.#limits.nameLength) this.#fail('limit', 'too long a name')
    if (this.#open.length >= this.#limits.depth) this.#fail('limit', `more than ${this.#limits.depth} levels`)
  }

  #attribute(name: string, value: string): void {
    this.#count()
    if (name.length > this.#limits.nameLength) this.#fail('limit', 'too long a name')
    if (value.length > this.#limits.textLength) this.#fail('limit', 'too long a text')
    this.#attributes.push([name, value])
  }

  #element(name: string): void {
    const element = { name, attributes: this.#attributes, children: [] }
    const parent = this.#open.at(-1)
    if (parent === undefined) this.#root = element
    else parent.children.push(element)
    this.#open.push(element)
  }

  #text(text: string): void {
    if (text.length > this.#limits.textLength) this.#fail('limit', 'too long a text')
    const parent = this.#open.at(-1)
    if (parent === undefined || text === '') return
    const last = parent.children.at(-1)
    if (typeof last === 'string') parent.children[parent.children.length - 1] = last + text
    else parent.children.push(text)
  }

  #arrayInstruction(arrayOf: string): void {
    this.#count()
    if (arrayOf.length > this.#limits.nameLength) this.#fail('limit', 'too long a name')
    this.#open.at(-1)?.children.push({ arrayOf })
  }

  #count(): void {
    if (++this.#items > this.#limits.items) this.#fail('limit', `more than ${this.#limits.items} items`)
    if (this.#items % ITEMS_PER_LOOK !== 0) return
    showLife()
    requireHeapRoom(ROOM_BYTES)
  }

  #fail(kind: FormatErrorKind, reason: string): never {
    const { line, column } = this.#parser
    const subject = kind === 'limit' ? 'the XML body has' : 'the body is not XML:'
    throw new FormatError(kind, `${subject} ${reason} at line ${line}, column ${column}`)
  }
}

/** Without the position before it and the pieces of the body that it quotes. */
function reasonOf(error: Error): string {
  return error.message
    .replace(/^(?:\d+:\d+:\s*)?/, '')
    .replace(/[:"'&<>.][\s\S]*$/, '')
    .trim()
}

/** Characters between two signs of life. */
const CHARACTERS_PER_SIGN = 1_048_576

/** Parses a whole text. Throws FormatError. */
export function parseXmlText(text: string, limits: BodyLimits): XmlElementNode {
  const reader = new XmlReader(limits)
  for (let at = 0; at < text.length; at += CHARACTERS_PER_SIGN) {
    if (at > 0) showLife()
    reader.write(text.slice(at, at + CHARACTERS_PER_SIGN))
  }
  return reader.end()
}
