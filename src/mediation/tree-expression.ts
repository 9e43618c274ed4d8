/** Expressions that look into the payload as XML: XPath by the library, over a document made of the payload once. */
import type { JsonPath, TreeExpression } from './expression.ts'
import { EXTENSIONS, FUNCTIONS, FUNCTIONS_NAMESPACE, LATER_FUNCTIONS } from './functions.ts'
import { type Message, type Payload, type Scope, SCOPE_PREFIXES, SCOPES } from './message.ts'
import { elementOf } from './payload-tree.ts'
import { envelope, soapVersion } from './soap.ts'
import { type DomNode, domLibrary, type LibraryValue, xpathLibrary } from './late-libraries.ts'
import { type Json, textOf, type Value, valueOfJson } from './value.ts'
import { closed, element, writeXml, type XmlElementNode, type XmlNode } from './xml-tree.ts'

/** Namespaces of the prefixes of variables, where the sequence does not declare them itself. */
const SCOPE_NAMESPACES = Object.fromEntries(Array.from(SCOPE_PREFIXES.keys(), prefix => [prefix, `scope:${prefix}`]))

/** Of payloads that are still in use. */
const documents = new WeakMap<Payload, DomNode>()
const EMPTY: Payload = { kind: 'xml', root: envelope('soap11', []) }

type FindJson = (json: Json | undefined) => Json | undefined

export function compileTree(
  { text, namespaces, jsonPaths }: TreeExpression,
  compileJsonPath: (path: JsonPath) => FindJson,
  complain: (cause: string) => void,
): (message: Message) => Value {
  const prefixes = { ...SCOPE_NAMESPACES, ...namespaces }
  const scopes = new Map(Array.from(SCOPE_PREFIXES, ([prefix, scope]) => [prefixes[prefix]!, scope]))
  const finders = new Map(jsonPaths.map(path => [path.text, compileJsonPath(path)]))
  let parsed: ReturnType<ReturnType<typeof xpathLibrary>['parse']> | undefined
  return message => {
    try {
      parsed ??= xpathLibrary().parse(text)
      const root = documentOf(message.payload ?? EMPTY)
      const value = parsed.evaluate({
        node: root,
        namespaces: prefixes,
        variables: (name, namespace) => variable(message, root, scopes.get(namespace), name),
        functions: (name, namespace) => functionOf(message, name, namespace, finders),
      })
      return fromLibrary(value)
    } catch (error) {
      complain(`expression: ${String(error).slice(0, CAUSE_MAX)}`)
      return ''
    }
  }
}
const CAUSE_MAX = 200

/** The payload within an Envelope, whose root element is where location paths begin. */
function documentOf(payload: Payload): DomNode {
  let root = documents.get(payload)
  if (root === undefined) {
    const { DOMParser } = domLibrary()
    // What is odd about it is of the gateway's own making, and nothing for the console.
    const document = new DOMParser({ onError: () => undefined }).parseFromString(
      writeXml(enveloped(payload)),
      'text/xml',
    )
    root = document.firstChild!
    documents.set(payload, root)
  }
  return root
}

function enveloped(payload: Payload): XmlElementNode {
  const root = elementOf(payload)
  if (soapVersion(root, 'Envelope') !== undefined) return root
  return envelope(soapVersion(root, 'Fault') ?? 'soap11', [root])
}

/** As the library takes values: texts, numbers, truth and nodes. */
function variable(message: Message, root: DomNode, scope: Scope | undefined, name: string): unknown {
  if (scope !== undefined) return plain(message.get(scope, name) ?? '')
  const wanted = name === 'body' ? 'Body' : 'Header'
  return [...root.childNodes].filter(({ nodeName }) => nodeName.replace(/^.*:/, '') === wanted)
}

function plain(value: Value): string | number | boolean {
  return typeof value === 'object' ? textOf(value) : value
}

/** Ours; undefined for the library's own, which know the node they are asked about. */
function functionOf(
  message: Message,
  name: string,
  namespace: string | null,
  finders: ReadonlyMap<string, FindJson>,
): ((context: never, ...values: never[]) => unknown) | undefined {
  const ours = (apply: (texts: readonly string[]) => unknown) => {
    return (_: never, ...values: readonly LibraryValue[]) => apply(values.map(value => value.stringValue()))
  }
  if (name === 'get-property') return ours(texts => property(message, texts))
  if (name === 'json-eval') return ours(([path]) => plain(valueOfJson(finders.get(path!)?.(message.json))))
  if (!OURS.includes(name)) return namespace === FUNCTIONS_NAMESPACE ? prefixed(name) : undefined
  return ours(texts => plain(FUNCTIONS[name]!.apply(texts)))
}

/** The library knows its own without a namespace only. */
function prefixed(name: string): (context: never, ...values: never[]) => unknown {
  const { apply } = FUNCTIONS[name]!
  return (_: never, ...values: readonly LibraryValue[]) => plain(apply(values.map(fromLibrary)))
}

/** What XPath 1.0, which the library has all of, does not have. */
const OURS = [...EXTENSIONS, ...LATER_FUNCTIONS]

function property(message: Message, texts: readonly string[]): string | number | boolean {
  const [scope, name] = texts.length === 1 ? ['default', texts[0]!] : [texts[0]!, texts[1]!]
  if (texts.length === 1 && name === 'To') return message.to
  return plain(message.get(SCOPES.get(scope) ?? 'default', name!) ?? '')
}

function fromLibrary(value: LibraryValue): Value {
  if (value.toArray !== undefined) return { kind: 'xml', nodes: value.toArray().map(treeOf) }
  return value.b ?? value.num ?? value.stringValue()
}

const ELEMENT = 1

function treeOf(node: DomNode): XmlNode {
  if (node.nodeType !== ELEMENT) return node.nodeValue ?? ''
  return closed(plainTree(node, 1), prefix => node.lookupNamespaceURI(prefix === '' ? null : prefix) ?? undefined)
}

/** Payloads that are put into payloads get deeper each time, and whoever walks them recurses. */
const DEPTH_MAX = 100

function plainTree(node: DomNode, depth: number): XmlElementNode {
  if (depth > DEPTH_MAX) throw new Error(`what was found is more than ${DEPTH_MAX} elements deep`)
  const attributes = [...(node.attributes ?? [])].map(({ nodeName, nodeValue }) => [nodeName, nodeValue ?? ''] as const)
  const children = [...node.childNodes]
    .filter(({ nodeType }) => nodeType === ELEMENT || nodeType === TEXT || nodeType === CDATA)
    .map(child => (child.nodeType === ELEMENT ? plainTree(child, depth + 1) : (child.nodeValue ?? '')))
  return element(node.nodeName, children, attributes)
}
const TEXT = 3
const CDATA = 4
