/** Payloads of sequences and faults as elements, texts and JSON. Bodies have the same rules, with their settings. */
import { type BodyFormat, isXmlFormat } from './formats/body-types.ts'
import { isObject, jsonOf, valueWithoutExponents, writtenValue } from './formats/json-text.ts'
import { type ConversionSettings, contentOfJson, DEFAULT_CONVERSION, elementOfJson } from './formats/json-to-xml.ts'
import { XmlToJson } from './formats/xml-to-json.ts'
import type { Message, Payload } from './message.ts'
import { firstOfBody, soapVersion } from './soap.ts'
import type { Json } from './value.ts'
import { element, elementsOf, writeXml, type XmlChild, type XmlElementNode } from './xml-tree.ts'

const TEXT_NAMESPACE = 'http://ws.apache.org/commons/ns/payload'
/** Nesting of elements, because consumers may recurse. */
const LEVELS = 100
/** Within sequences null is told from an empty text. */
const WITH_NIL: ConversionSettings = { ...DEFAULT_CONVERSION, usesNil: true }

/** Any payload as one element. `levels`: see `elementOfJson`. */
export function payloadElement(payload: Payload, settings = WITH_NIL, levels = LEVELS): XmlElementNode {
  if (payload.kind === 'xml') return payload.root
  if (payload.kind === 'json') return elementOfJson(writtenValue(payload), settings, levels)
  const [name, text] = payload.kind === 'text' ? ['text', payload.text] : ['binary', textOfPayload(payload)]
  return element(name!, [text!], [['xmlns', TEXT_NAMESPACE]])
}

/** Any payload as one element, as XPath sees it: numbers have no exponents. */
export function elementForXPath(payload: Payload): XmlElementNode {
  return payload.kind === 'json'
    ? elementOfJson(valueWithoutExponents(payload), WITH_NIL, LEVELS)
    : payloadElement(payload)
}

/** The element of any payload, as XPath sees it, as text. */
export function payloadXml(payload: Payload): string {
  return writeXml(elementForXPath(payload))
}

/** The text of any payload; bytes are base64. */
export function textOfPayload(payload: Payload): string {
  if (payload.kind === 'xml') return writeXml(payload.root)
  return payload.kind === 'binary' ? Buffer.from(payload.bytes).toString('base64') : payload.text
}

/** The element that a JSON value becomes within XML: the only member of an object stands for itself. */
export function elementWithin(json: Json): XmlElementNode {
  const [only, ...others] = isObject(json) ? Object.entries(json) : []
  const isElement = only !== undefined && others.length === 0 && !Array.isArray(only[1]) && !/^[@$]/.test(only[0])
  const root = elementOfJson(json, WITH_NIL, LEVELS)
  return isElement ? elementsOf(root)[0]! : root
}

/** Property of faults alone: the format that the client asked for (faults/fault-message.ts). */
const OF_FAULTS = 'FAULT_MESSAGE_TYPE'

/** The payload to write: the only member of a JSON fault is the root of its XML, `<fault>` as documented. */
export function writtenPayload(message: Message, format: BodyFormat): Payload | null {
  const { payload } = message
  if (payload?.kind !== 'json' || !isXmlFormat(format)) return payload
  if (message.get('default', OF_FAULTS) === undefined) return payload
  return { kind: 'xml', root: elementWithin(jsonOf(payload)) }
}

/** Content of an element that holds the value; see `contentOfJson`. */
export function nodesOfJson(json: Json): readonly XmlChild[] {
  return contentOfJson(json, WITH_NIL, LEVELS)
}

/** JSON of XML payloads, as long as the payloads are in use. */
const views = new WeakMap<Payload, Json>()

/**
 * The payload as JSONPath sees it: JSON with numbers as they are written, XML as JSON, of SOAP the content of the Body;
 * else undefined.
 */
export function jsonView(message: Message): Json | undefined {
  const { payload } = message
  if (payload?.kind !== 'xml') return payload?.kind === 'json' ? writtenValue(payload) : undefined
  let view = views.get(payload)
  if (view === undefined) {
    const { root } = payload
    const content = soapVersion(root, 'Envelope') === undefined ? root : firstOfBody(root)
    view = content === undefined ? {} : jsonOfXml(content)
    views.set(payload, view)
  }
  return view
}

const TO_JSON = new XmlToJson(WITH_NIL, text => JSON.stringify(primitive(text)))

/** The value of an element, with numbers as doubles; see `XmlToJson.convert`. */
export function jsonOfXml(root: XmlElementNode): Json {
  return JSON.parse(TO_JSON.convert(root)) as Json
}

/** Numbers that a double represents exactly as written. */
const PLAIN_NUMBER = /^-?(?:0|[1-9]\d{0,14})(?:\.\d{1,10})?$/

/** Text that reads as a number, boolean or null becomes one. */
export function primitive(text: string): Json {
  if (text === 'null') return null
  if (text === 'true' || text === 'false') return text === 'true'
  return PLAIN_NUMBER.test(text) && String(Number(text)) === text ? Number(text) : text
}
