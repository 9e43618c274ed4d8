/** Nodes of XML in templates: children by name, attributes as `@name`, and what built-ins read of them. */
import { isElement, localName, prefixOf, textWithin, writeXml, type XmlElementNode } from '../xml-tree.ts'

/** Namespaces by the prefixes of the template (`<#ftl ns_prefixes>`); `D` is that of names without a prefix. */
export type Prefixes = ReadonlyMap<string, string>

/** What nodes share: prefixes, and the counts of the work that they take. */
interface NodeContext {
  readonly prefixes: Prefixes
  /** Counts visited nodes. Throws LimitReached. */
  spend(nodes: number): void
  /** Counts nodes that are made. Throws LimitReached, and MediationFault without room for them. */
  visits(nodes: number): void
}

export type NodeType = 'document' | 'element' | 'text' | 'attribute'
const NAME = /^[\p{L}_][\p{L}\p{Nd}_.-]*(?::[\p{L}_][\p{L}\p{Nd}_.-]*)?$/u

/** Tells whether a key names children, descendants, attributes or a part of a node; all else is XPath. */
export function isKeyOfNodes(key: string): boolean {
  if (['*', '**', '@*'].includes(key) || key.startsWith('@@')) return true
  return NAME.test(key.startsWith('@') ? key.slice(1) : key)
}

const NO_DECLARATIONS: ReadonlyMap<string, string> = new Map()

export class NodeValue {
  readonly type: NodeType
  readonly parent: NodeValue | null
  /** The element; of a document, its root. Null for texts and attributes. */
  readonly element: XmlElementNode | null
  /** Name with its prefix; '' for documents and texts. */
  readonly qualifiedName: string
  readonly #text: string
  readonly #context: NodeContext
  #children: readonly NodeValue[] | null = null
  /** Place among the children of the parent. */
  #at = -1
  /** Namespaces that the element declares, by prefix: a client chooses how many attributes it has. */
  #declared: ReadonlyMap<string, string> | null = null
  /** Children that a template has asked for, by name: a loop may ask for them in each turn. */
  #named: Map<string, NodeValue | NodeList | undefined> | null = null

  private constructor(
    type: NodeType,
    parent: NodeValue | null,
    element: XmlElementNode | null,
    text: { readonly name: string; readonly value: string },
    context: NodeContext,
  ) {
    this.type = type
    this.parent = parent
    this.element = element
    this.qualifiedName = text.name
    this.#text = text.value
    this.#context = context
  }

  static document(root: XmlElementNode, context: NodeContext): NodeValue {
    return new NodeValue('document', null, root, { name: '', value: '' }, context)
  }

  get name(): string {
    if (this.type === 'document') return '@document'
    return this.type === 'text' ? '@text' : localName(this.qualifiedName)
  }

  /** '' for none. */
  get namespace(): string {
    const prefix = prefixOf(this.qualifiedName)
    if (this.type === 'attribute' && prefix === '') return ''
    for (let node: NodeValue | null = this; node !== null; node = node.parent) {
      const found = node.#declarations().get(prefix)
      if (found !== undefined) return found
    }
    return ''
  }

  #declarations(): ReadonlyMap<string, string> {
    if (this.type !== 'element') return NO_DECLARATIONS
    if (this.#declared === null) {
      const own = this.element!.attributes.filter(([name]) => name === 'xmlns' || name.startsWith('xmlns:'))
      this.#declared = own.length === 0 ? NO_DECLARATIONS : new Map(own.map(([name, uri]) => [name.slice(6), uri]))
    }
    return this.#declared
  }

  /** The text of a node; undefined for a document, and for an element that holds elements. */
  get text(): string | undefined {
    if (this.type === 'text' || this.type === 'attribute') return this.#text
    if (this.type === 'document' || this.element!.children.some(isElement)) return undefined
    return textWithin(this.element!)
  }

  get children(): readonly NodeValue[] {
    this.#children ??= this.#childNodes()
    return this.#children
  }

  #childNodes(): readonly NodeValue[] {
    if (this.element === null) return []
    const own = this.type === 'document' ? [this.element] : this.element.children
    this.#context.visits(own.length)
    const nodes = own.flatMap(child => {
      if (typeof child === 'string') return [this.#child('text', null, '', child)]
      return isElement(child) ? [this.#child('element', child, child.name, '')] : []
    })
    for (const [at, node] of nodes.entries()) node.#at = at
    return nodes
  }

  #child(type: NodeType, element: XmlElementNode | null, name: string, value: string): NodeValue {
    return new NodeValue(type, this, element, { name, value }, this.#context)
  }

  get attributes(): readonly NodeValue[] {
    if (this.type !== 'element') return []
    this.#context.visits(this.element!.attributes.length)
    const own = this.element!.attributes.filter(([name]) => name !== 'xmlns' && !name.startsWith('xmlns:'))
    return own.map(([name, value]) => this.#child('attribute', null, name, value))
  }

  get root(): NodeValue {
    let root: NodeValue = this
    while (root.parent !== null) root = root.parent
    return root
  }

  /** The sibling before (-1) or behind (1) this one. */
  sibling(step: number): NodeValue | undefined {
    return this.#at === -1 ? undefined : this.parent?.children[this.#at + step]
  }

  /** Elements with the name among the children, or attributes: one node is that node, others are a list. */
  get(name: string): NodeValue | NodeList | string | undefined {
    if (name.startsWith('@@') && name !== '@@') return this.#special(name)
    if (name.startsWith('@') || name.includes('*')) return oneOf(this.#found(name), this.#context)
    this.#named ??= new Map()
    if (!this.#named.has(name)) this.#named.set(name, oneOf(this.#found(name), this.#context))
    return this.#named.get(name)
  }

  #found(name: string): readonly NodeValue[] {
    const { children } = this
    this.#context.spend(children.length)
    if (name === '*') return children.filter(({ type }) => type === 'element')
    if (name === '**') return this.#descendants()
    if (name === '@*' || name === '@@') return this.attributes
    if (name.startsWith('@')) return this.attributes.filter(each => this.#isAttribute(each, name.slice(1)))
    if (!NAME.test(name)) return []
    return children.filter(each => each.type === 'element' && this.#isNamed(each, name))
  }

  #descendants(): readonly NodeValue[] {
    const found: NodeValue[] = []
    const pending = this.children.toReversed()
    for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
      if (node.type !== 'element') continue
      found.push(node)
      for (const child of node.children.toReversed()) pending.push(child)
    }
    return found
  }

  #isAttribute(attribute: NodeValue, name: string): boolean {
    if (attribute.qualifiedName === name) return true
    const namespace = this.#context.prefixes.get(prefixOf(name))
    return name.includes(':') && attribute.name === localName(name) && attribute.namespace === namespace
  }

  /** As FreeMarker does: a name without a prefix is one of the namespace `D`, or of none. */
  #isNamed(element: NodeValue, name: string): boolean {
    const own = localName(name)
    if (element.name !== own) return false
    const prefix = prefixOf(name)
    const { prefixes } = this.#context
    const { namespace } = element
    if (prefix === '') return namespace === (prefixes.get('D') ?? '')
    if (prefix === 'N') return namespace === ''
    return namespace !== '' && prefixes.get(prefix) === namespace
  }

  #special(name: string): string | undefined {
    if (this.type === 'document' || this.type === 'text') {
      return name === '@@text' ? (this.text ?? textWithin(this.element!)) : undefined
    }
    switch (name) {
      case '@@markup':
        return this.element === null ? `${this.qualifiedName}="${this.#text}"` : writeXml(this.element)
      case '@@nested_markup':
        return this.element?.children.map(writeXml).join('')
      case '@@text':
        return this.element === null ? this.#text : textWithin(this.element)
      case '@@qname':
        return this.qualifiedName
      case '@@local_name':
        return this.name
      case '@@namespace':
        return this.namespace
      default:
        return undefined
    }
  }
}

/** Nodes in document order. With one node it is that node in all that reads it. */
export class NodeList {
  readonly nodes: readonly NodeValue[]
  readonly #context: NodeContext

  constructor(nodes: readonly NodeValue[], context: NodeContext) {
    this.nodes = nodes
    this.#context = context
  }

  get size(): number {
    return this.nodes.length
  }

  at(index: number): NodeValue | undefined {
    return this.nodes[index]
  }

  /** The children or attributes of that name, of all nodes. */
  get(name: string): NodeValue | NodeList | string | undefined {
    const found = this.nodes.map(node => node.get(name))
    const [only] = found
    if (found.length === 1) return only
    if (name.startsWith('@@') && name !== '@@') return found.length === 0 ? undefined : found.join('')
    const nodes = found.flatMap(each =>
      each instanceof NodeList ? each.nodes : each instanceof NodeValue ? [each] : [],
    )
    return oneOf(nodes, this.#context)
  }
}

function oneOf(nodes: readonly NodeValue[], context: NodeContext): NodeValue | NodeList {
  return nodes.length === 1 ? nodes[0]! : new NodeList(nodes, context)
}
