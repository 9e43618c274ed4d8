/**
 * Edits XML payloads at nodes that an XPath finds. Edits are kept, and made by one walk that builds the new payload: in
 * a DOM an edit costs as much as its parent has children.
 */
import type { DomNode } from './lazy-libraries.ts'
import type { Payload } from './message.ts'
import { declared, elementsOf, localName, selfContained, textWithin, type XmlNode } from './xml-tree.ts'
import { documentRoot, editedTree, type NodeEdit } from './xpath-expression.ts'

const ELEMENT = 1
const ATTRIBUTE = 2

export class XmlDocument {
  /** The Envelope, which is put around a payload that has none. Edits do not change it. */
  readonly root: DomNode
  readonly #hasEnvelope: boolean
  readonly #edits = new Map<DomNode, NodeEdit>()

  constructor(payload: Payload | null) {
    this.root = documentRoot(payload)
    this.#hasEnvelope = payload?.kind === 'xml' && localName(payload.root.name) === 'Envelope'
  }

  get body(): DomNode {
    return [...this.root.childNodes].find(({ nodeName }) => localName(nodeName) === 'Body')!
  }

  /** The edited payload, without an Envelope that it did not have. */
  payload(): Payload | null {
    const { root, undeclared } = editedTree(this.root, this.#edits)
    if (this.#hasEnvelope) return { kind: 'xml', root }
    const body = elementsOf(root).find(({ name }) => localName(name) === 'Body')
    const [first, second] = body === undefined ? [] : elementsOf(body)
    if (first === undefined) return null
    if (second !== undefined) return { kind: 'xml', root }
    const namespaceOf = (prefix: string) => declared(body!, prefix) ?? declared(root, prefix)
    return { kind: 'xml', root: selfContained(first, namespaceOf, undeclared) }
  }

  /** An attribute takes the text of the nodes. */
  replace(node: DomNode, nodes: readonly XmlNode[]): void {
    const instead = node.nodeType === ATTRIBUTE ? [nodes.map(textWithin).join('')] : nodes
    this.#edit(node, edit => ({ ...edit, instead }))
  }

  append(node: DomNode, nodes: readonly XmlNode[]): void {
    if (node.nodeType !== ELEMENT) return
    this.#edit(node, edit => ({ ...edit, appended: [...edit.appended, ...nodes] }))
  }

  insertAfter(node: DomNode, nodes: readonly XmlNode[]): void {
    this.#edit(node, edit => ({ ...edit, after: [...nodes, ...edit.after] }))
  }

  remove(node: DomNode): void {
    this.#edit(node, edit => ({ ...edit, instead: [] }))
  }

  /** A node that is replaced or removed has no place any more. */
  #edit(node: DomNode, change: (edit: NodeEdit) => NodeEdit): void {
    const edit = this.#edits.get(node) ?? { instead: null, after: [], appended: [] }
    if (edit.instead === null) this.#edits.set(node, change(edit))
  }
}
