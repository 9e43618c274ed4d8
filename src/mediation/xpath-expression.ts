/** XPath into the payload, evaluated by the library over a DOM that is built once per payload. */
import type { JsonPath, XPathExpression } from './expression.ts'
import { EXTENSIONS, FUNCTIONS, FUNCTIONS_NAMESPACE, LATER_FUNCTIONS } from './functions.ts'
import { type Message, type Payload, type Scope, SCOPE_PREFIXES, SCOPES } from './message.ts'
import { payloadElement } from './json-xml.ts'
import { envelope, soapVersion } from './soap.ts'
import { type DomNode, domLibrary, type XPathValue, xpathLibrary } from './lazy-libraries.ts'
import { type Json, textOf, type Value, valueOfJson } from './value.ts'
import { element, selfContained, writeXml, type XmlElementNode, type XmlNode } from './xml-tree.ts'

/** Namespaces for the prefixes of variables, unless the sequence declares the prefixes itself. */
const SCOPE_NAMESPACES = Object.fromEntries(Array.from(SCOPE_PREFIXES.keys(), prefix => [prefix, `scope:${prefix}`]))

/** Documents of payloads, as long as the payloads are in use. */
const documents = new WeakMap<Payload, DomNode>()
const EMPTY: Payload = { kind: 'xml', root: envelope('soap11', []) }
const CAUSE_LENGTH_MAX = 200

type FindJson = (json: Json | undefined) => Json | undefined

export function compileXPath(
  { text, namespaces, jsonPaths }: XPathExpression,
  compileJsonPath: (path: JsonPath) => FindJson,
  warn: (cause: string) => void,
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
      warn(`expression: ${String(error).slice(0, CAUSE_LENGTH_MAX)}`)
      return ''
    }
  }
}

/** Root element of the payload's Envelope, where location paths begin. */
function documentOf(payload: Payload): DomNode {
  let root = documents.get(payload)
  if (root === undefined) {
    const { DOMParser } = domLibrary()
    // Without a handler the library logs to the console.
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
  const root = payloadElement(payload)
  if (soapVersion(root, 'Envelope') !== undefined) return root
  return envelope(soapVersion(root, 'Fault') ?? 'soap11', [root])
}

/** Value of a variable as the library takes it: string, number, boolean or nodes. */
function variable(message: Message, root: DomNode, scope: Scope | undefined, name: string): unknown {
  if (scope !== undefined) return plain(message.get(scope, name) ?? '')
  const wanted = name === 'body' ? 'Body' : 'Header'
  return [...root.childNodes].filter(({ nodeName }) => nodeName.replace(/^.*:/, '') === wanted)
}

function plain(value: Value): string | number | boolean {
  return typeof value === 'object' ? textOf(value) : value
}

/** Functions of the sequence language; undefined for the library's own, which know the context node. */
function functionOf(
  message: Message,
  name: string,
  namespace: string | null,
  finders: ReadonlyMap<string, FindJson>,
): ((context: never, ...values: never[]) => unknown) | undefined {
  const ofTexts = (apply: (texts: readonly string[]) => unknown) => {
    return (_: never, ...values: readonly XPathValue[]) => apply(values.map(value => value.stringValue()))
  }
  if (name === 'get-property') return ofTexts(texts => property(message, texts))
  if (name === 'json-eval') return ofTexts(([path]) => plain(valueOfJson(finders.get(path!)?.(message.json))))
  if (!NOT_IN_LIBRARY.includes(name)) return namespace === FUNCTIONS_NAMESPACE ? prefixed(name) : undefined
  return ofTexts(texts => plain(FUNCTIONS[name]!.apply(texts)))
}

/** The library finds its own functions without a prefix only. */
function prefixed(name: string): (context: never, ...values: never[]) => unknown {
  const { apply } = FUNCTIONS[name]!
  return (_: never, ...values: readonly XPathValue[]) => plain(apply(values.map(fromLibrary)))
}

/** Functions beyond XPath 1.0, which the library has completely. */
const NOT_IN_LIBRARY = [...EXTENSIONS, ...LATER_FUNCTIONS]

function property(message: Message, texts: readonly string[]): string | number | boolean {
  const [scope, name] = texts.length === 1 ? ['default', texts[0]!] : [texts[0]!, texts[1]!]
  if (texts.length === 1 && name === 'To') return message.to
  return plain(message.get(SCOPES.get(scope) ?? 'default', name!) ?? '')
}

function fromLibrary(value: XPathValue): Value {
  if (value.toArray !== undefined) return { kind: 'xml', nodes: value.toArray().map(treeOf) }
  return value.b ?? value.num ?? value.stringValue()
}

const ELEMENT = 1

function treeOf(node: DomNode): XmlNode {
  if (node.nodeType !== ELEMENT) return node.nodeValue ?? ''
  return selfContained(
    plainTree(node, 1),
    prefix => node.lookupNamespaceURI(prefix === '' ? null : prefix) ?? undefined,
  )
}

/** A sequence may nest a payload into itself again and again, and trees are walked by recursion. */
const DEPTH_MAX = 100

function plainTree(node: DomNode, depth: number): XmlElementNode {
  if (depth > DEPTH_MAX) throw new Error(`the result is more than ${DEPTH_MAX} elements deep`)
  const attributes = [...(node.attributes ?? [])].map(({ nodeName, nodeValue }) => [nodeName, nodeValue ?? ''] as const)
  const children = [...node.childNodes]
    .filter(({ nodeType }) => nodeType === ELEMENT || nodeType === TEXT || nodeType === CDATA)
    .map(child => (child.nodeType === ELEMENT ? plainTree(child, depth + 1) : (child.nodeValue ?? '')))
  return element(node.nodeName, children, attributes)
}
const TEXT = 3
const CDATA = 4
