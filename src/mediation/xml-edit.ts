/** Edits XML payloads at nodes that an XPath finds, in a document of their own. */
import { type DomNode, domLibrary } from './lazy-libraries.ts'
import type { Payload } from './message.ts'
import { localName, textWithin, writeDocument, type XmlNode } from './xml-tree.ts'
import { documentRoot, treeOf } from './xpath-expression.ts'

const ELEMENT = 1
const ATTRIBUTE = 2

export class XmlDocument {
  /** The Envelope, which is put around a payload that has none. */
  readonly root: DomNode
  readonly #hasEnvelope: boolean

  constructor(payload: Payload | null) {
    this.root = documentRoot(payload)
    this.#hasEnvelope = payload?.kind === 'xml' && localName(payload.root.name) === 'Envelope'
  }

  get body(): DomNode {
    return [...this.root.childNodes].find(({ nodeName }) => localName(nodeName) === 'Body')!
  }

  /** The payload, without an Envelope that it did not have. */
  payload(): Payload | null {
    const [first, second] = [...this.body.childNodes].filter(({ nodeType }) => nodeType === ELEMENT)
    if (!this.#hasEnvelope && first === undefined) return null
    const root = treeOf(this.#hasEnvelope || second !== undefined ? this.root : first!)
    return typeof root === 'string' ? null : { kind: 'xml', root }
  }

  /** An attribute and a text take the text of the nodes. */
  replace(node: DomNode, nodes: readonly XmlNode[]): void {
    if (node.nodeType === ATTRIBUTE) node.nodeValue = nodes.map(textWithin).join('')
    else {
      this.insertAfter(node, nodes)
      this.remove(node)
    }
  }

  append(node: DomNode, nodes: readonly XmlNode[]): void {
    if (node.nodeType !== ELEMENT) return
    for (const each of this.#imported(nodes)) node.appendChild(each)
  }

  insertAfter(node: DomNode, nodes: readonly XmlNode[]): void {
    const { parentNode, nextSibling } = node
    if (parentNode === null) return
    for (const each of this.#imported(nodes)) parentNode.insertBefore(each, nextSibling)
  }

  remove(node: DomNode): void {
    if (node.nodeType === ATTRIBUTE) node.ownerElement?.removeAttribute(node.nodeName)
    else node.parentNode?.removeChild(node)
  }

  #imported(nodes: readonly XmlNode[]): readonly DomNode[] {
    const { DOMParser } = domLibrary()
    const document = this.root.ownerDocument
    return nodes.map(node => {
      if (typeof node === 'string') return document.createTextNode(node)
      const parsed = new DOMParser({ onError: () => undefined }).parseFromString(writeDocument(node), 'text/xml')
      return document.importNode(parsed.firstChild!, true)
    })
  }
}
