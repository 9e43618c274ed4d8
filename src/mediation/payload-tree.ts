/** A payload of any kind as XML. */
import { xmlOfJson } from './json-xml.ts'
import type { Payload } from './message.ts'
import type { Json } from './value.ts'
import { element, type XmlElementNode } from './xml-tree.ts'

const TEXT_NAMESPACE = 'http://ws.apache.org/commons/ns/payload'

export function elementOf(payload: Payload): XmlElementNode {
  if (payload.kind === 'xml') return payload.root
  if (payload.kind === 'json') return xmlOfJson(JSON.parse(payload.text) as Json)
  return element('text', [payload.text], [['xmlns', TEXT_NAMESPACE]])
}
