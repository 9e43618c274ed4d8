/**
 * Checks narratives (R4, narrative.html, txt-1 and txt-2): well-formed XHTML with the elements and attributes of the
 * definitions, without script, forms, frames, objects and external style sheets.
 */
import { SaxesParser } from 'saxes'
import { NARRATIVE_ATTRIBUTES, NARRATIVE_ELEMENTS } from './definitions.ts'
import { shown } from './outcome.ts'

interface NarrativeFault {
  /** `xhtml`: not well-formed, or not a div of XHTML. */
  readonly key: 'xhtml' | 'txt-1' | 'txt-2'
  readonly diagnostics: string
}

interface Attribute {
  readonly name: string
  readonly value: string
}

const XHTML = 'http://www.w3.org/1999/xhtml'
const ELEMENTS: ReadonlySet<string> = new Set(NARRATIVE_ELEMENTS.split(' '))
const ATTRIBUTES: ReadonlySet<string> = new Set(NARRATIVE_ATTRIBUTES.split(' '))
/** Not in the list of txt-1, and harmless: names of namespaces, and the language as XML writes it. */
const XML_ATTRIBUTES = ['xmlns', 'xml:lang']
const ADDRESSES = ['href', 'src', 'cite', 'longdesc']
/** A scheme that runs code or carries a document of its own; images may carry their data. Controls are ignored. */
const UNSAFE_ADDRESS = /^(?:javascript|vbscript|data(?!:image\/(?:png|gif|jpeg|webp)[;,])):/i
/**
 * Styles that run code or load a style sheet; a backslash or a comment may hide them. Images are allowed as in `img`:
 * narratives that the standard's own tools generate have them.
 */
const UNSAFE_STYLE = /@import|expression\s*\(|behaviou?r\s*:|-moz-binding|javascript:|\\|\/\*/i
const DEPTH_MAX = 64
const FAULTS_MAX = 10
/** The only entity of HTML itself that is common in narratives. */
const NO_BREAK_SPACE = '\u00a0'

/** The faults of the XHTML text of a narrative; [] for a safe one. */
export function narrativeFaults(xhtml: string): readonly NarrativeFault[] {
  return new NarrativeReader().read(xhtml)
}

class NarrativeReader {
  readonly #faults: NarrativeFault[] = []
  #depth = 0
  #hasContent = false

  read(xhtml: string): readonly NarrativeFault[] {
    const parser = new SaxesParser({ xmlns: true, fragment: false, position: false })
    parser.ENTITIES.nbsp = NO_BREAK_SPACE
    parser.on('error', ({ message }) => this.#add('xhtml', message.slice(0, 100)))
    parser.on('doctype', () => this.#add('xhtml', 'a document type is not allowed'))
    parser.on('processinginstruction', () => this.#add('xhtml', 'a processing instruction is not allowed'))
    parser.on('opentag', ({ local, uri, attributes }) => this.#element(local, uri, Object.values(attributes)))
    parser.on('closetag', () => {
      this.#depth--
    })
    parser.on('text', text => this.#text(text))
    parser.on('cdata', text => this.#text(text))
    // A parser goes on behind an error, and what follows then says nothing.
    parser.write(xhtml).close()
    if (this.#faults.length === 0 && !this.#hasContent) this.#add('txt-2', 'there is no text and no image')
    return this.#faults
  }

  #element(name: string, uri: string, attributes: readonly Attribute[]): void {
    if (this.#depth === 0 && (name !== 'div' || uri !== XHTML)) this.#add('xhtml', `the root is no div of ${XHTML}`)
    else if (uri !== XHTML || !ELEMENTS.has(name)) this.#add('txt-1', `the element ${shown(name)} is not allowed`)
    if (++this.#depth === DEPTH_MAX + 1) this.#add('txt-1', `more than ${DEPTH_MAX} levels`)
    for (const { name: attribute, value } of attributes) {
      if (attribute === 'src' && name === 'img') this.#hasContent = true
      const reason = attributeFault(attribute, value)
      if (reason !== '') this.#add('txt-1', `the attribute ${shown(attribute)} ${reason}`)
    }
  }

  #text(text: string): void {
    if (/\S/.test(text)) this.#hasContent = true
  }

  #add(key: NarrativeFault['key'], diagnostics: string): void {
    const isFollowing = this.#faults.at(-1)?.key === 'xhtml'
    if (!isFollowing && this.#faults.length < FAULTS_MAX) this.#faults.push({ key, diagnostics })
  }
}

/** '' for an attribute that is allowed. */
function attributeFault(name: string, value: string): string {
  if (XML_ATTRIBUTES.includes(name)) return ''
  if (!ATTRIBUTES.has(name)) return 'is not allowed'
  const packed = value.replace(/[\0-\x20\x7f-\xa0]+/g, '')
  if (ADDRESSES.includes(name) && UNSAFE_ADDRESS.test(packed)) return 'has an unsafe address'
  return name === 'style' && UNSAFE_STYLE.test(value) ? 'has an unsafe style' : ''
}
