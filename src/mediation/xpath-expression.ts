/** XPath into the payload, evaluated by the library over a DOM that is built once per payload. */
import { hasHeapRoom } from '../runtime/heap-room.ts'
import type { JsonPath, XPathExpression } from './expression.ts'
import { countWork, LimitReached, noRoom } from './flow-limits.ts'
import { EXTENSIONS, FUNCTIONS, LATER_FUNCTIONS } from './functions.ts'
import { propertyOf } from './get-property.ts'
import { type Message, type Payload, type ReadScope, SCOPE_PREFIXES } from './message.ts'
import { environmentReader } from './outer-values.ts'
import { elementForXPath, jsonView } from './json-xml.ts'
import { envelope, soapVersion } from './soap.ts'
import { type DomNode, type XPathValue, xpathLibrary } from './lazy-libraries.ts'
import { MediationFault } from './mediation-fault.ts'
import { digitsOf, type Json, numberOf, textOf, type Value, valueOfJson } from './value.ts'
import { spend, withinTime } from './xpath-bounds.ts'
import { domOf } from './xml-dom.ts'
import {
  ARRAY_TARGET,
  JSON_ARRAY_TARGET,
  element,
  elementsOf,
  type XmlChild,
  type XmlElementNode,
  type XmlNode,
} from './xml-tree.ts'

/** Namespaces for the prefixes of variables, unless the sequence declares the prefixes itself. */
const SCOPE_NAMESPACES = Object.fromEntries(
  [...SCOPE_PREFIXES.keys(), 'url'].map(prefix => [prefix, `scope:${prefix}`]),
)

/**
 * Documents of the payloads and elements that were read last, as long as these are in use: a message may have many
 * copies.
 */
const documents = new WeakMap<object, DomNode>()
const DOCUMENTS_MAX = 32
const latest: WeakRef<object>[] = []
const EMPTY: Payload = { kind: 'xml', root: envelope('soap11', []) }
const CAUSE_LENGTH_MAX = 200

type FindJson = (json: Json | undefined) => Json | undefined

/** Compiles an expression over the payload; its value is '' where it cannot be evaluated. */
export function compileXPath(
  expression: XPathExpression,
  compileJsonPath: (path: JsonPath) => FindJson,
  warn: (cause: string) => void,
): (message: Message) => Value {
  const evaluate = compileIn(expression, compileJsonPath)
  const { variable } = expression
  return message => {
    // A body that cannot be built is a fault of the message, not of the expression.
    const payload = variable === undefined ? (message.payload ?? EMPTY) : null
    try {
      const root = payload === null ? documentOfVariable(variable!, message) : documentOf(payload)
      return withinTime(() => fromLibrary(evaluate(message, root)))
    } catch (error) {
      if (error instanceof MediationFault || error instanceof LimitReached) throw error
      warn(causeOf(error))
      return ''
    }
  }
}

/** Finds nodes in a document that the caller has made; none where the expression cannot be evaluated. */
export type FindNodes = (message: Message, root: DomNode) => readonly DomNode[]

export function compileNodes(
  expression: XPathExpression,
  compileJsonPath: (path: JsonPath) => FindJson,
  warn: (cause: string) => void,
): FindNodes {
  const evaluate = compileIn(expression, compileJsonPath)
  return (message, root) => {
    try {
      return withinTime(() => nodesOf(evaluate(message, root)) ?? [])
    } catch (error) {
      if (error instanceof MediationFault || error instanceof LimitReached) throw error
      warn(causeOf(error))
      return []
    }
  }
}

function causeOf(error: unknown): string {
  return `expression: ${String(error).slice(0, CAUSE_LENGTH_MAX)}`
}

function compileIn(
  { text, namespaces, jsonPaths, environment = [] }: XPathExpression,
  compileJsonPath: (path: JsonPath) => FindJson,
): (message: Message, root: DomNode) => XPathValue {
  const prefixes = { ...SCOPE_NAMESPACES, ...namespaces }
  const scopes = new Map(Array.from(SCOPE_PREFIXES, ([prefix, scope]) => [prefixes[prefix]!, scope]))
  const finders = new Map(jsonPaths.map(path => [path.text, compileJsonPath(path)]))
  const readers = new Map(environment.map(name => [name, environmentReader(name)]))
  let parsed: ReturnType<ReturnType<typeof xpathLibrary>['parse']> | undefined
  return (message, root) => {
    parsed ??= xpathLibrary().parse(text)
    return parsed.evaluate({
      node: root,
      namespaces: prefixes,
      variables: (name, namespace) =>
        namespace === prefixes.url
          ? plain(message.get('default', `query.param.${name}`) ?? '')
          : variable(message, root, scopes.get(namespace), name),
      functions: name => functionOf(message, name, finders, readers),
    })
  }
}

/** Root element of the payload's Envelope, where location paths begin. Nobody changes the document. */
function documentOf(payload: Payload): DomNode {
  return keptDocument(payload, () => enveloped(payload))
}

function keptDocument(of: object, treeOf: () => XmlElementNode): DomNode {
  let root = documents.get(of)
  if (root === undefined) {
    root = parsedRoot(treeOf())
    documents.set(of, root)
    const oldest = latest.push(new WeakRef(of)) > DOCUMENTS_MAX ? latest.shift()?.deref() : undefined
    if (oldest !== undefined) documents.delete(oldest)
  }
  return root
}

/** Element in a variable, or that of its text. Throws without one. */
function documentOfVariable(name: string, message: Message): DomNode {
  const value = message.get('variable', name) ?? ''
  const [node] = typeof value === 'object' && value.kind === 'xml' ? value.nodes : [rootOfText(textOf(value), message)]
  if (node === undefined || typeof node === 'string') throw new Error(`the variable ${name} is no XML`)
  return keptDocument(node, () => node)
}

function rootOfText(text: string, { task }: Message): XmlElementNode | undefined {
  if (task === null || !text.trimStart().startsWith('<')) return undefined
  try {
    const payload = task.parse(text, 'application/xml')
    return payload?.kind === 'xml' ? payload.root : undefined
  } catch {
    return undefined
  }
}

/** As `documentOf`; null is an empty Envelope. */
export function documentRoot(payload: Payload | null): DomNode {
  return documentOf(payload ?? EMPTY)
}

function parsedRoot(tree: XmlElementNode): DomNode {
  requireRoom(tree)
  return domOf(tree)
}

/** Heap of a node with its text, and of what an expression makes of it. */
const NODE_BYTES = 1000

/** Throws MediationFault where there is no memory for a document. */
function requireRoom(tree: XmlElementNode): void {
  let nodes = 0
  const pending: XmlElementNode[] = [tree]
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    const own = 1 + node.attributes.length + node.children.length
    countWork(own)
    nodes += own
    for (const child of elementsOf(node)) pending.push(child)
  }
  if (!hasHeapRoom(nodes * NODE_BYTES)) {
    throw noRoom('an XPath expression needs more memory for this message than the worker has left')
  }
}

function enveloped(payload: Payload): XmlElementNode {
  const root = elementForXPath(payload)
  if (soapVersion(root, 'Envelope') !== undefined) return root
  return envelope(soapVersion(root, 'Fault') ?? 'soap11', [root])
}

/** Value of a variable as the library takes it: string, number, boolean or nodes. */
function variable(message: Message, root: DomNode, scope: ReadScope | undefined, name: string): unknown {
  if (scope !== undefined) {
    return toLibrary(message.read(scope, name) ?? '')
  }
  if (name === 'env') return [root]
  const wanted = name === 'body' ? 'Body' : 'Header'
  return [...root.childNodes].filter(({ nodeName }) => nodeName.replace(/^.*:/, '') === wanted)
}

function toLibrary(value: Value): unknown {
  return typeof value === 'object' && value.kind === 'xml' ? value.nodes.flatMap(nodesIn) : plain(value)
}

/** Elements of a property as nodes of a document, for paths into them. */
function nodesIn(node: XmlNode): readonly DomNode[] {
  return typeof node === 'string' ? [] : [keptDocument(node, () => node)]
}

function plain(value: Value): string | number | boolean {
  // A text with an exponent is no number in XPath 1.0.
  if (/e/i.test(digitsOf(value) ?? '')) return numberOf(value)
  return typeof value === 'object' ? textOf(value) : value
}

/** Functions of the sequence language; undefined for the library's own, which know the context node. */
function functionOf(
  message: Message,
  name: string,
  finders: ReadonlyMap<string, FindJson>,
  environment: ReadonlyMap<string, ReturnType<typeof environmentReader>>,
): ((context: never, ...values: never[]) => unknown) | undefined {
  const ofTexts = (apply: (texts: readonly string[]) => unknown) => {
    return (_: never, ...values: readonly XPathValue[]) => apply(values.map(value => value.stringValue()))
  }
  if (name === 'get-property') {
    return ofTexts(texts => {
      if (texts.length < 2 || texts[0] !== 'env') return toLibrary(propertyOf(message, texts))
      return environment.get(texts[1]!)?.(message.secrets) ?? ''
    })
  }
  if (name === 'json-eval') return ofTexts(([path]) => plain(valueOfJson(finders.get(path!)?.(jsonView(message)))))
  if (!NOT_IN_LIBRARY.includes(name)) return undefined
  return ofTexts(texts => plain(FUNCTIONS[name]!.apply(texts)))
}

/** Functions beyond XPath 1.0, which the library has completely. */
const NOT_IN_LIBRARY = [...EXTENSIONS, ...LATER_FUNCTIONS]

function fromLibrary(value: XPathValue): Value {
  const nodes = nodesOf(value)
  if (nodes !== undefined) return { kind: 'xml', nodes: nodes.map(treeOf) }
  return value.b ?? value.num ?? value.stringValue()
}

/** The nodes that were found; undefined for another value. Instructions are no part of the content. */
function nodesOf(value: XPathValue): readonly DomNode[] | undefined {
  return value.toArray?.().filter(({ nodeType }) => nodeType !== INSTRUCTION)
}

const ELEMENT = 1

/** The tree of a node with the declarations that it needs from outside, so that it can be moved. Parts are shared. */
export function treeOf(node: DomNode): XmlNode {
  const { tree, height = 0, undeclared = new Set<string>() } = node
  if (tree === undefined) return node.nodeValue ?? ''
  if (height > DEPTH_MAX) throw tooDeep()
  spend(1 + undeclared.size)
  const declarations: (readonly [string, string])[] = []
  for (const prefix of undeclared) {
    const namespace = node.lookupNamespaceURI(prefix) ?? ''
    if (namespace !== '') declarations.push([prefix === '' ? 'xmlns' : `xmlns:${prefix}`, namespace])
  }
  return declarations.length === 0 ? tree : { ...tree, attributes: [...declarations, ...tree.attributes] }
}

/** An edit of a node of a document. */
export interface NodeEdit {
  /** What takes its place; null: itself. */
  readonly instead: readonly XmlNode[] | null
  readonly after: readonly XmlNode[]
  /** Last children. */
  readonly appended: readonly XmlNode[]
}

type Edits = ReadonlyMap<DomNode, NodeEdit>

interface EditedTree {
  readonly root: XmlElementNode
  /** Prefixes that parts without edits use, and that are declared outside of them. */
  readonly undeclared: ReadonlyMap<XmlElementNode, ReadonlySet<string>>
}

/** The tree of a document with edits, which shares other parts; edits of its root are content and attributes alone. */
export function editedTree(root: DomNode, edits: Edits): EditedTree {
  const changed = new Set<DomNode>()
  for (const edited of edits.keys()) {
    for (let node: DomNode | null = edited; node !== null && !changed.has(node); node = holderOf(node))
      changed.add(node)
  }
  const edition: Edition = { edits, changed, undeclared: new Map(), heights: new Map() }
  return { root: editedElement(root, 1, edition), undeclared: edition.undeclared }
}

function holderOf({ parentNode, ownerElement }: DomNode): DomNode | null {
  return ownerElement ?? parentNode
}

/** A sequence may nest a payload into itself again and again, and trees are walked by recursion. */
const DEPTH_MAX = 100

interface Edition {
  readonly edits: Edits
  /** Nodes that hold edits. */
  readonly changed: ReadonlySet<DomNode>
  readonly undeclared: Map<XmlElementNode, ReadonlySet<string>>
  /** Levels of the trees that edits have put in. */
  readonly heights: Map<XmlElementNode, number>
}

function editedElement(node: DomNode, depth: number, edition: Edition): XmlElementNode {
  const { edits, changed, undeclared, heights } = edition
  if (!changed.has(node)) {
    const { tree, height = 1 } = node
    if (depth + height - 1 > DEPTH_MAX) throw tooDeep()
    undeclared.set(tree!, node.undeclared!)
    return tree!
  }
  if (depth > DEPTH_MAX) throw tooDeep()
  const attributes: (readonly [string, string])[] = []
  for (const attribute of node.attributes ?? []) {
    const text = attribute.nodeValue ?? ''
    for (const value of edits.get(attribute)?.instead ?? [text]) attributes.push([attribute.nodeName, value as string])
  }
  const children: XmlChild[] = []
  const insert = (nodes: readonly XmlNode[] = []): void => {
    for (const each of nodes) {
      if (depth + heightOf(each, heights) > DEPTH_MAX) throw tooDeep()
      children.push(each)
    }
  }
  for (const child of node.childNodes) {
    countWork(1)
    const edit = edits.get(child)
    if (edit !== undefined && edit.instead !== null) insert(edit.instead)
    else if (child.nodeType === ELEMENT) children.push(editedElement(child, depth + 1, edition))
    else if (isKept(child)) children.push(leafOf(child))
    insert(edit?.after)
  }
  insert(edits.get(node)?.appended)
  return element(node.nodeName, children, attributes)
}

function heightOf(node: XmlNode, heights: Map<XmlElementNode, number>): number {
  if (typeof node === 'string') return 0
  let height = heights.get(node)
  if (height === undefined) {
    height = 1 + elementsOf(node).reduce((most, child) => Math.max(most, heightOf(child, heights)), 0)
    heights.set(node, height)
  }
  return height
}

function tooDeep(): Error {
  return new Error(`the result is more than ${DEPTH_MAX} elements deep`)
}

const TEXT = 3
const CDATA = 4
const INSTRUCTION = 7

function isKept({ nodeType, nodeName }: DomNode): boolean {
  if (nodeType === INSTRUCTION) return nodeName === ARRAY_TARGET || nodeName === JSON_ARRAY_TARGET
  return nodeType === ELEMENT || nodeType === TEXT || nodeType === CDATA
}

function leafOf({ nodeType, nodeName, nodeValue }: DomNode): XmlChild {
  if (nodeType !== INSTRUCTION) return nodeValue ?? ''
  const arrayOf = (nodeValue ?? '').trim()
  return nodeName === JSON_ARRAY_TARGET ? { arrayOf, isOfJson: true } : { arrayOf }
}
