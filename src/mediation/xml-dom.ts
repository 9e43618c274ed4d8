/**
 * Documents for the XPath library: the part of DOM that it reads, made of a tree in linear time. A parser would read
 * the text of the tree once more, and copy the declarations in force for each element that has some.
 */
import { countWork } from './flow-limits.ts'
import { ARRAY_TARGET, isElement, JSON_ARRAY_TARGET, prefixOf, xmlText } from './xml-tree.ts'
import type { XmlChild, XmlElementNode } from './xml-tree.ts'

const ELEMENT = 1
const ATTRIBUTE = 2
const TEXT = 3
const INSTRUCTION = 7
const DOCUMENT = 9

const XML = 'http://www.w3.org/XML/1998/namespace'
const XMLNS = 'http://www.w3.org/2000/xmlns/'

class AttributeList {
  readonly #attributes: readonly Attribute[]

  constructor(attributes: readonly Attribute[]) {
    this.#attributes = attributes
  }

  get length(): number {
    return this.#attributes.length
  }
  item(at: number): Attribute | null {
    return this.#attributes[at] ?? null
  }
  [Symbol.iterator](): Iterator<Attribute> {
    return this.#attributes[Symbol.iterator]()
  }
}

const NO_ATTRIBUTES = new AttributeList([])

/** A node of any kind. Nobody changes it once its document is made. */
class Node {
  readonly nodeType: number
  readonly nodeName: string
  readonly nodeValue: string | null
  readonly ownerDocument: XmlDom | null
  /** Place in the order of the document. */
  readonly order: number
  parentNode: Node | null = null
  previousSibling: Node | null = null
  nextSibling: Node | null = null
  firstChild: Node | null = null
  #lastChild: Node | null = null

  constructor(kind: number, name: string, value: string | null, document: XmlDom | null, order: number) {
    this.nodeType = kind
    this.nodeName = name
    this.nodeValue = value
    this.ownerDocument = document
    this.order = order
  }

  get childNodes(): readonly Node[] {
    const children: Node[] = []
    for (let child = this.firstChild; child !== null; child = child.nextSibling) children.push(child)
    return children
  }

  append(child: Node): void {
    const last = this.#lastChild
    child.parentNode = this
    child.previousSibling = last
    if (last === null) this.firstChild = child
    else last.nextSibling = child
    this.#lastChild = child
  }

  lookupNamespaceURI(prefix: string): string | null {
    return this.parentNode?.lookupNamespaceURI(prefix) ?? null
  }
}

class Attribute extends Node {
  readonly ownerElement: ElementNode
  readonly localName: string
  readonly prefix: string | null
  readonly namespaceURI: string | null

  constructor(owner: ElementNode, name: string, value: string, namespace: string | null, order: number) {
    super(ATTRIBUTE, name, value, owner.ownerDocument, order)
    const prefix = prefixOf(name)
    this.ownerElement = owner
    this.prefix = prefix === '' ? null : prefix
    this.localName = prefix === '' ? name : name.slice(prefix.length + 1)
    this.namespaceURI = namespace
  }

  get name(): string {
    return this.nodeName
  }
  get value(): string {
    return this.nodeValue!
  }
}

const NO_PREFIX: ReadonlySet<string> = new Set()
/** The prefixes of most elements, which share this set. */
const NO_PREFIX_BUT_DEFAULT: ReadonlySet<string> = new Set([''])
const NO_DECLARATIONS: ReadonlyMap<string, string> = new Map()

class ElementNode extends Node {
  /** The tree that the element is made of. */
  readonly tree: XmlElementNode
  readonly localName: string
  readonly prefix: string | null
  namespaceURI: string | null = null
  attributes = NO_ATTRIBUTES
  #height = 0
  #undeclared: ReadonlySet<string> | undefined
  #declared: ReadonlyMap<string, string> | undefined

  constructor(tree: XmlElementNode, document: XmlDom, order: number) {
    const { name } = tree
    super(ELEMENT, name, null, document, order)
    const prefix = prefixOf(name)
    this.tree = tree
    this.prefix = prefix === '' ? null : prefix
    this.localName = prefix === '' ? name : name.slice(prefix.length + 1)
  }

  /** Levels of elements, from this one on. It is found once: an expression may find each element of a deep document. */
  get height(): number {
    if (this.#height === 0) {
      let most = 0
      for (const child of this.#elements()) most = Math.max(most, child.height)
      this.#height = most + 1
    }
    return this.#height
  }

  /** Prefixes that are used within the element and declared outside of it; found once, as the height is. */
  get undeclared(): ReadonlySet<string> {
    this.#undeclared ??= this.#findUndeclared()
    return this.#undeclared
  }

  *#elements(): Generator<ElementNode> {
    for (let child = this.firstChild; child !== null; child = child.nextSibling) {
      if (child instanceof ElementNode) yield child
    }
  }

  #findUndeclared(): ReadonlySet<string> {
    let found = NO_PREFIX
    let own: Set<string> | null = null
    const add = (prefix: string): void => {
      if (found.has(prefix)) return
      if (prefix === '' && found.size === 0) {
        found = NO_PREFIX_BUT_DEFAULT
        return
      }
      own ??= new Set(found)
      found = own.add(prefix)
    }
    for (const child of this.#elements()) {
      // Most elements use the prefixes of their children, and share the set.
      if (found.size === 0) found = child.undeclared
      else for (const prefix of child.undeclared) add(prefix)
    }
    add(this.prefix ?? '')
    for (const { prefix } of this.attributes) if (prefix !== null && prefix !== 'xml' && prefix !== 'xmlns') add(prefix)
    const declared = this.#declarations()
    return declared.size === 0 ? found : new Set([...found].filter(prefix => !declared.has(prefix)))
  }

  #declarations(): ReadonlyMap<string, string> {
    if (this.attributes.length === 0) return NO_DECLARATIONS
    if (this.#declared === undefined) {
      const own = this.tree.attributes.filter(([name]) => isDeclaration(name))
      this.#declared = own.length === 0 ? NO_DECLARATIONS : new Map(own.map(([name, uri]) => [name.slice(6), uri]))
    }
    return this.#declared
  }

  getAttribute(name: string): string | null {
    return Iterator.from(this.attributes).find(({ nodeName }) => nodeName === name)?.value ?? null
  }

  getAttributeNS(namespace: string | null, local: string): string | null {
    const found = Iterator.from(this.attributes).find(
      each => each.namespaceURI === namespace && each.localName === local,
    )
    return found?.value ?? null
  }

  override lookupNamespaceURI(prefix: string): string | null {
    return this.#declarations().get(prefix) ?? super.lookupNamespaceURI(prefix)
  }
}

class XmlDom extends Node {
  constructor() {
    super(DOCUMENT, '#document', null, null, 0)
  }

  get documentElement(): Node | null {
    return this.firstChild
  }
}

/** Makes the nodes of one document. */
class Builder {
  readonly #document = new XmlDom()
  /** Namespaces of each prefix, the one in force last. They are changed in place: clients choose how many there are. */
  readonly #bound = new Map<string, string[]>([['xml', [XML]]])
  #count = 0

  build(tree: XmlElementNode): ElementNode {
    const root = this.#element(tree)
    this.#document.append(root)
    return root
  }

  #next(): number {
    countWork(1)
    return ++this.#count
  }

  #element(tree: XmlElementNode): ElementNode {
    const { name, attributes, children } = tree
    const node = new ElementNode(tree, this.#document, this.#next())
    const declared: string[][] = []
    for (const [each, uri] of attributes) if (isDeclaration(each)) declared.push(this.#declare(each.slice(6), uri))
    node.namespaceURI = this.#namespaceOf(prefixOf(name))
    if (attributes.length > 0) {
      node.attributes = new AttributeList(attributes.map(([each, value]) => this.#attribute(node, each, value)))
    }
    this.#children(node, children)
    for (const namespaces of declared) namespaces.pop()
    return node
  }

  #declare(prefix: string, uri: string): string[] {
    let namespaces = this.#bound.get(prefix)
    if (namespaces === undefined) {
      namespaces = []
      this.#bound.set(prefix, namespaces)
    }
    namespaces.push(uri)
    return namespaces
  }

  #attribute(owner: ElementNode, name: string, value: string): Attribute {
    const prefix = prefixOf(name)
    const namespace = isDeclaration(name) ? XMLNS : prefix === '' ? null : this.#namespaceOf(prefix)
    return new Attribute(owner, name, xmlText(value), namespace, this.#next())
  }

  #namespaceOf(prefix: string): string | null {
    return this.#bound.get(prefix)?.at(-1) || null
  }

  /** Texts side by side are one node, as where they are read. */
  #children(node: ElementNode, children: readonly XmlChild[]): void {
    let text = ''
    const endText = (): void => {
      if (text !== '') node.append(new Node(TEXT, '#text', xmlText(text), this.#document, this.#next()))
      text = ''
    }
    for (const child of children) {
      if (typeof child === 'string') {
        text += child
        continue
      }
      endText()
      if (isElement(child)) {
        node.append(this.#element(child))
        continue
      }
      const target = child.isOfJson ? JSON_ARRAY_TARGET : ARRAY_TARGET
      node.append(new Node(INSTRUCTION, target, child.arrayOf, this.#document, this.#next()))
    }
    endText()
  }
}

function isDeclaration(name: string): boolean {
  return name === 'xmlns' || name.startsWith('xmlns:')
}

/** Returns the root element of a document. Throws LimitReached where the flow computes for too long. */
export function domOf(tree: XmlElementNode): ElementNode {
  return new Builder().build(tree)
}
