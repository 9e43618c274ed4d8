/** SOAP 1.1 and 1.2 (5.4): envelopes, faults, and conversion of faults between the versions. */
import { MediationFault } from './mediation-fault.ts'
import type { Payload } from './message.ts'
import {
  declared,
  element,
  elementsOf,
  isElement,
  localName,
  prefixOf,
  textWithin,
  type XmlChild,
  type XmlElementNode,
} from './xml-tree.ts'

export type SoapVersion = 'soap11' | 'soap12'

export const SOAP_NAMESPACES: Readonly<Record<SoapVersion, string>> = {
  soap11: 'http://schemas.xmlsoap.org/soap/envelope/',
  soap12: 'http://www.w3.org/2003/05/soap-envelope',
}
/** Codes with the same meaning, in 1.1 and 1.2. */
const CODE_PAIRS = [
  ['Client', 'Sender'],
  ['Server', 'Receiver'],
] as const

interface SoapFault {
  /** Local name, of either version. */
  readonly code: string
  readonly reason: string
  /** URI; '' for none. */
  readonly node: string
  /** Actor in SOAP 1.1; '' for none. */
  readonly role: string
  readonly detail: readonly XmlChild[]
}

/** SOAP version of an element with this name, by the namespaces that it declares itself; undefined for others. */
export function soapVersion(node: XmlElementNode, name: 'Envelope' | 'Fault'): SoapVersion | undefined {
  if (localName(node.name) !== name) return undefined
  const namespace = declared(node, prefixOf(node.name))
  return (['soap11', 'soap12'] as const).find(version => SOAP_NAMESPACES[version] === namespace)
}

/** Whether the payload is a Fault, alone or in an Envelope. */
export function isSoapFault(payload: Payload | null): boolean {
  if (payload?.kind !== 'xml') return false
  const { root } = payload
  const content = soapVersion(root, 'Envelope') === undefined ? root : firstOfBody(root)
  return content !== undefined && soapVersion(content, 'Fault') !== undefined
}

/** Status of a response that a sequence makes without naming one: 500 for a Fault (SOAP 1.1 6.2), else 200. */
export function defaultStatus(payload: Payload | null): number {
  return isSoapFault(payload) ? 500 : 200
}

export function envelope(version: SoapVersion, content: readonly XmlElementNode[]): XmlElementNode {
  return element('soapenv:Envelope', [element('soapenv:Body', content)], declaration(version))
}

function declaration(version: SoapVersion): XmlElementNode['attributes'] {
  return [['xmlns:soapenv', SOAP_NAMESPACES[version]]]
}

/** Declarations times elements of a Body: each element gets all of them. */
const COPIED_MAX = 100_000

/** Elements in the Body, each with the declarations around it. Throws MediationFault where these are too many. */
export function bodyOf(root: XmlElementNode): readonly XmlElementNode[] {
  const { declarations, children } = bodyParts(root)
  if (declarations.length * children.length > COPIED_MAX) {
    const message = 'The Body has too many elements for its namespace declarations'
    throw new MediationFault({ code: 102521, message })
  }
  return children.map(child => withDeclarations(child, declarations))
}

/** The first element in the Body, as `bodyOf` returns it; undefined for none. */
export function firstOfBody(root: XmlElementNode): XmlElementNode | undefined {
  const { declarations, children } = bodyParts(root)
  return children[0] === undefined ? undefined : withDeclarations(children[0], declarations)
}

function bodyParts(root: XmlElementNode) {
  const body = elementsOf(root).find(({ name }) => localName(name) === 'Body')
  if (body === undefined) return { declarations: [], children: [] }
  const declarations = [...root.attributes, ...body.attributes].filter(([name]) => name.startsWith('xmlns'))
  return { declarations, children: elementsOf(body) }
}

function withDeclarations(child: XmlElementNode, declarations: XmlElementNode['attributes']): XmlElementNode {
  const attributes = new Map([...declarations, ...child.attributes])
  return { ...child, attributes: [...attributes] }
}

/** The code as the version calls it. */
export function codeOf(version: SoapVersion, code: string): string {
  const pair = CODE_PAIRS.find(([old, current]) => old === code || current === code)
  if (pair === undefined) return code
  return version === 'soap11' ? pair[0] : pair[1]
}

export function writeFault(version: SoapVersion, fault: SoapFault): XmlElementNode {
  const code = `soapenv:${codeOf(version, fault.code)}`
  const optional = (name: string, text: string) => (text === '' ? [] : [element(name, [text])])
  if (version === 'soap11') {
    const children = [
      element('faultcode', [code]),
      element('faultstring', [fault.reason]),
      ...optional('faultactor', fault.role || fault.node),
      ...(fault.detail.length === 0 ? [] : [element('detail', fault.detail)]),
    ]
    return element('soapenv:Fault', children, declaration(version))
  }
  const children = [
    element('soapenv:Code', [element('soapenv:Value', [code])]),
    element('soapenv:Reason', [element('soapenv:Text', [fault.reason], [['xml:lang', 'en']])]),
    ...optional('soapenv:Node', fault.node),
    ...optional('soapenv:Role', fault.role),
    ...(fault.detail.length === 0 ? [] : [element('soapenv:Detail', fault.detail)]),
  ]
  return element('soapenv:Fault', children, declaration(version))
}

/** Reads a fault of either version; missing parts are ''. */
export function readFault(root: XmlElementNode): SoapFault {
  const part = (...names: readonly string[]) => elementsOf(root).find(({ name }) => names.includes(localName(name)))
  const textOf = (node: XmlElementNode | undefined) => (node === undefined ? '' : textWithin(node).trim())
  return {
    code: localName(textOf(part('faultcode') ?? elementsOf(part('Code') ?? root)[0])),
    reason: textOf(part('faultstring', 'Reason')),
    node: textOf(part('Node')),
    role: textOf(part('faultactor', 'Role')),
    detail: part('detail', 'Detail')?.children ?? [],
  }
}

/** An Envelope with these header blocks in place of those that are replaced; without any block it has no Header. */
export function withHeaderBlocks(
  root: XmlElementNode,
  blocks: readonly XmlElementNode[],
  isReplaced: (local: string, namespace: string) => boolean,
): XmlElementNode {
  const isHeader = (node: XmlChild) => isElement(node) && localName(node.name) === 'Header'
  const header = elementsOf(root).find(isHeader)
  const namespaceOf = (block: XmlElementNode) =>
    [block, header, root].map(node => (node === undefined ? undefined : declared(node, prefixOf(block.name))))
  const kept = (header === undefined ? [] : elementsOf(header)).filter(
    block => !isReplaced(localName(block.name), namespaceOf(block).find(each => each !== undefined) ?? ''),
  )
  const others = root.children.filter(child => !isHeader(child))
  const children = [...kept, ...blocks]
  if (children.length === 0) return { ...root, children: others }
  const prefix = prefixOf(root.name)
  const name = prefix === '' ? 'Header' : `${prefix}:Header`
  return { ...root, children: [element(name, children, header?.attributes), ...others] }
}
