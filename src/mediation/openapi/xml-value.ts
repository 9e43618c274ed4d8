/** XML as a value: elements and attributes by the schema and its `xml` objects, with places for violations. */
import { showLife } from '../../runtime/signs-of-life.ts'
import { requireHeapRoom } from '../formats/format-error.ts'
import { elementsOf, localName, prefixOf, textWithin, type XmlElementNode } from '../xml-tree.ts'
import type { Violation } from './api-contract.ts'
import { clipped, PLACE_MAX, VIOLATIONS_MAX } from './contract-schemas.ts'
import type { Shape } from './schema-shape.ts'

const INSTANCE = 'http://www.w3.org/2001/XMLSchema-instance'
/** Elements and attributes that are read between two looks at the heap. */
const ITEMS_PER_LOOK = 8192
/** Room in the heap that must be left for their values. */
const ROOM_BYTES = 16 * 1024 * 1024

/** A property that an element or attribute may be. */
interface Slot {
  readonly property: string
  readonly shape: Shape
  /** Of the element: that of an item where the list has no element of its own. Undefined: any. */
  readonly namespace: string | undefined
  /** Each element is an item. */
  readonly isUnwrapped: boolean
  /** Names of the items within the element of a list. */
  readonly itemNames: readonly string[]
}

/** Slots by local name. */
interface SlotIndex {
  readonly elements: ReadonlyMap<string, readonly Slot[]>
  readonly attributes: ReadonlyMap<string, readonly Slot[]>
}

/** Namespaces that an element declares, by prefix. A lookup takes as many steps as there are levels. */
interface Scope {
  readonly own: ReadonlyMap<string, string>
  readonly outer: Scope | null
}

const NO_SCOPE: Scope = { own: new Map(), outer: null }
const INDICES = new WeakMap<Shape, SlotIndex>()

/** One document, read to the value that its schema describes. */
export class XmlValue {
  readonly value: unknown
  /** What the schema of the value cannot see, at most `VIOLATIONS_MAX`. */
  readonly violations: Violation[] = []
  readonly #root: string
  /** Place of the document within the message: `body`. */
  readonly #where: string
  /** By value: path steps of properties that are not named as their elements; '' where the items are the steps. */
  readonly #steps = new WeakMap<object, ReadonlyMap<string, string>>()
  /** Elements of the items of lists. */
  readonly #items = new WeakMap<object, readonly XmlElementNode[]>()
  readonly #path: string[] = []
  #count = 0

  /** Throws FormatError where the thread has no memory left. */
  constructor(root: XmlElementNode, shape: Shape, where: string) {
    this.#root = localName(root.name)
    this.#where = where
    const { names, namespace } = shape.xml
    this.#path.push(this.#root)
    const scope = scopeWithin(root, NO_SCOPE)
    if (names.length > 0 && !names.includes(this.#root)) this.#break(`must be named ${names.join(' or ')}`)
    else this.#checkNamespace(root.name, scope, namespace)
    this.value = this.#element(root, shape, NO_SCOPE, shape.anyItem.xml.names)
  }

  /** Place in the document of a JSON Pointer into the value: `/Pet/tag[2]/@id`. */
  placeOf(pointer: string): string {
    let place = `/${this.#root}`
    let value = this.value
    for (const part of pointer.split('/').slice(1)) {
      const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
      const items = Array.isArray(value) ? this.#items.get(value) : undefined
      const step =
        items === undefined
          ? (this.#steps.get(value as object)?.get(key) ?? key)
          : itemStep(items[Number(key)]!, Number(key))
      if (step !== '') place += `/${step}`
      value = (value as Readonly<Record<string, unknown>>)[key]
    }
    return place
  }

  #element(node: XmlElementNode, shape: Shape, outer: Scope, itemNames: readonly string[]): unknown {
    this.#look()
    const scope = scopeWithin(node, outer)
    if (isNil(node, scope)) return null
    const children = elementsOf(node)
    if (shape.isList && !shape.isObject) {
      this.#refuseText(node)
      return this.#listWithin(children, shape, scope, itemNames)
    }
    const index = indexOf(shape)
    const hasAttributes = node.attributes.some(([name]) => index.attributes.has(localName(name)))
    if (children.length === 0 && !hasAttributes) {
      const text = textWithin(node)
      if (shape.isScalar && !(shape.isObject && text.trim() === '')) return scalarOf(text, shape)
    }
    if (shape.isObject) this.#refuseText(node)
    return this.#object(node, children, shape, scope)
  }

  #object(node: XmlElementNode, children: readonly XmlElementNode[], shape: Shape, scope: Scope): unknown {
    const index = indexOf(shape)
    const values = new Map<string, unknown>()
    const steps = new Map<string, string>()
    for (const [name, text] of node.attributes) {
      if (isDeclaration(name) || isMeta(name, scope)) continue
      this.#look()
      const local = localName(name)
      const namespace = prefixOf(name) === '' ? '' : namespaceOf(prefixOf(name), scope)
      const slot = slotFor(index.attributes.get(local), namespace)
      const key = slot?.property ?? `@${local}`
      this.#path.push(`@${local}`)
      if (slot !== undefined) this.#checkIn(slot, namespace)
      if (values.has(key)) this.#break('must not be repeated')
      else values.set(key, scalarOf(text, slot?.shape ?? shape.property(key)))
      this.#path.pop()
      steps.set(key, `@${local}`)
    }
    const groups = Map.groupBy(children, child => {
      const local = localName(child.name)
      const found = index.elements.get(local)
      if (found?.length === 1) return found[0]!
      return slotFor(found, namespaceOfElement(child, scope)) ?? local
    })
    for (const [slot, elements] of groups) {
      if (typeof slot === 'string') this.#undeclared(slot, elements, shape, scope, values)
      else this.#declared(slot, elements, scope, values, steps)
    }
    const value = Object.fromEntries(values)
    if (steps.size > 0) this.#steps.set(value, steps)
    return value
  }

  #declared(
    slot: Slot,
    elements: readonly XmlElementNode[],
    scope: Scope,
    values: Map<string, unknown>,
    steps: Map<string, string>,
  ): void {
    const { property, shape, isUnwrapped, itemNames } = slot
    if (isUnwrapped) {
      const items = this.#list(elements, shape, scope, slot)
      values.set(property, items)
      steps.set(property, '')
      return
    }
    const [first, second] = elements
    const step = localName(first!.name)
    this.#path.push(step)
    this.#checkIn(slot, namespaceOfElement(first!, scope))
    if (second !== undefined) this.#break('must not be repeated')
    values.set(property, this.#element(first!, shape, scope, itemNames))
    this.#path.pop()
    if (step !== property) steps.set(property, step)
  }

  /** Elements that the schema does not name: their name is that of the property unless another one has it. */
  #undeclared(
    local: string,
    elements: readonly XmlElementNode[],
    shape: Shape,
    scope: Scope,
    values: Map<string, unknown>,
  ): void {
    const key = shape.declares(local) ? `<${local}>` : local
    const own = shape.property(key)
    if (elements.length > 1 || own.isList) {
      values.set(key, this.#list(elements, own, scope, null))
      return
    }
    this.#path.push(local)
    values.set(key, this.#element(elements[0]!, own, scope, []))
    this.#path.pop()
  }

  /** Items that are children of the element of their list. */
  #listWithin(
    children: readonly XmlElementNode[],
    shape: Shape,
    scope: Scope,
    itemNames: readonly string[],
  ): readonly unknown[] {
    const isItem = (child: XmlElementNode): boolean =>
      itemNames.length === 0 || itemNames.includes(localName(child.name))
    for (const child of children) {
      if (isItem(child)) continue
      this.#path.push(localName(child.name))
      this.#break(`must be named ${itemNames.join(' or ')}`)
      this.#path.pop()
    }
    return this.#list(children.filter(isItem), shape, scope, { namespace: shape.anyItem.xml.namespace })
  }

  #list(
    elements: readonly XmlElementNode[],
    shape: Shape,
    scope: Scope,
    within: Pick<Slot, 'namespace'> | null,
  ): readonly unknown[] {
    const values = elements.map((element, at) => {
      this.#path.push(itemStep(element, at))
      if (within !== null) this.#checkIn(within, namespaceOfElement(element, scope))
      const item = shape.item(at)
      const value = this.#element(element, item, scope, item.anyItem.xml.names)
      this.#path.pop()
      return value
    })
    this.#items.set(values, elements)
    return values
  }

  #checkNamespace(name: string, scope: Scope, wanted: string | undefined): void {
    this.#checkIn({ namespace: wanted }, namespaceOf(prefixOf(name), scope))
  }

  #checkIn({ namespace: wanted }: Pick<Slot, 'namespace'>, namespace: string): void {
    if (wanted === undefined || wanted === namespace) return
    this.#break(wanted === '' ? 'must be in no namespace' : `must be in the namespace ${wanted}`)
  }

  #refuseText({ children }: XmlElementNode): void {
    const hasText = children.some(child => typeof child === 'string' && child.trim() !== '')
    if (hasText) this.#break('must not have text of its own')
  }

  #break(rule: string): void {
    if (this.violations.length >= VIOLATIONS_MAX) return
    const place = clipped(`/${this.#path.join('/')}`, PLACE_MAX)
    this.violations.push({ place: `${this.#where} ${place}`, rule })
  }

  #look(): void {
    if (++this.#count % ITEMS_PER_LOOK !== 0) return
    showLife()
    requireHeapRoom(ROOM_BYTES)
  }
}

function itemStep(element: XmlElementNode, at: number): string {
  return `${localName(element.name)}[${at + 1}]`
}

/** White space around a number or another literal means nothing (XML Schema part 2, 4.3.6). */
function scalarOf(text: string, shape: Shape): unknown {
  const value = shape.scalar(text.trim())
  return typeof value === 'string' && !shape.isLiteral(value) ? text : value
}

function indexOf(shape: Shape): SlotIndex {
  let index = INDICES.get(shape)
  if (index === undefined) {
    index = newIndex(shape)
    INDICES.set(shape, index)
  }
  return index
}

function newIndex(shape: Shape): SlotIndex {
  const elements = new Map<string, Slot[]>()
  const attributes = new Map<string, Slot[]>()
  for (const property of shape.propertyNames) {
    const own = shape.property(property)
    const { xml } = own
    const { xml: item } = own.anyItem
    const isUnwrapped = own.isList && !xml.isWrapped && !xml.isAttribute
    const outerNames = xml.names.length > 0 ? xml.names : [property]
    const itemNames = item.names.length > 0 ? item.names : outerNames
    const namespace = isUnwrapped ? (item.namespace ?? xml.namespace) : xml.namespace
    const slot = { property, shape: own, namespace, isUnwrapped, itemNames }
    const slots = xml.isAttribute ? attributes : elements
    for (const name of isUnwrapped ? itemNames : outerNames) slots.set(name, [...(slots.get(name) ?? []), slot])
  }
  return { elements, attributes }
}

/** Two properties may have elements of one name in two namespaces. */
function slotFor(slots: readonly Slot[] | undefined, namespace: string): Slot | undefined {
  const exact = slots?.find(slot => slot.namespace === namespace)
  return exact ?? slots?.find(slot => slot.namespace === undefined) ?? slots?.[0]
}

function isDeclaration(name: string): boolean {
  return name === 'xmlns' || name.startsWith('xmlns:')
}

/** Attributes about the document itself, as `xml:lang` and `xsi:schemaLocation`. */
function isMeta(name: string, scope: Scope): boolean {
  const prefix = prefixOf(name)
  return prefix === 'xml' || (prefix !== '' && namespaceOf(prefix, scope) === INSTANCE)
}

function isNil({ attributes }: XmlElementNode, scope: Scope): boolean {
  const nil = attributes.find(([name]) => localName(name) === 'nil' && isMeta(name, scope))
  return nil !== undefined && ['true', '1'].includes(nil[1].trim())
}

function scopeWithin({ attributes }: XmlElementNode, outer: Scope): Scope {
  const own = attributes.filter(([name]) => isDeclaration(name))
  return own.length === 0 ? outer : { own: new Map(own.map(([name, uri]) => [name.slice(6), uri])), outer }
}

function namespaceOfElement(node: XmlElementNode, outer: Scope): string {
  return namespaceOf(prefixOf(node.name), scopeWithin(node, outer))
}

/** Returns '' for none. */
function namespaceOf(prefix: string, scope: Scope): string {
  for (let each: Scope | null = scope; each !== null; each = each.outer) {
    const found = each.own.get(prefix)
    if (found !== undefined) return found
  }
  return ''
}
