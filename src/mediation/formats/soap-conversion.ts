/** Payloads as SOAP messages of either version, and the content of SOAP messages. */
import {
  bodyOf,
  firstOfBody,
  envelope,
  readFault,
  SOAP_NAMESPACES,
  type SoapVersion,
  soapVersion,
  writeFault,
} from '../soap.ts'
import { element, elementsOf, localName, type XmlElementNode } from '../xml-tree.ts'

/** Content without its Envelope; undefined for an empty Body. */
export function soapContent(root: XmlElementNode): XmlElementNode | undefined {
  return soapVersion(root, 'Envelope') === undefined ? root : firstOfBody(root)
}

/** An Envelope of the version: header blocks stay, a fault takes the form of the version. */
export function asEnvelope(root: XmlElementNode | undefined, version: SoapVersion): XmlElementNode {
  if (root === undefined) return envelope(version, [])
  const before = soapVersion(root, 'Envelope')
  if (before === version) return root
  if (before === undefined) return envelope(version, [withFault(root, version)])
  const content = bodyOf(root).map(child => withFault(child, version))
  const head = elementsOf(root).find(({ name }) => localName(name) === 'Header')
  if (head === undefined) return envelope(version, content)
  const declarations = [...root.attributes, ...head.attributes].filter(
    ([name, value]) => name.startsWith('xmlns:') && name !== 'xmlns:soapenv' && value !== SOAP_NAMESPACES[before],
  )
  const header = element('soapenv:Header', elementsOf(head), [...new Map(declarations)])
  const { name, attributes, children } = envelope(version, content)
  return element(name, [header, ...children], attributes)
}

function withFault(content: XmlElementNode, version: SoapVersion): XmlElementNode {
  const before = soapVersion(content, 'Fault')
  return before === undefined || before === version ? content : writeFault(version, readFault(content))
}
