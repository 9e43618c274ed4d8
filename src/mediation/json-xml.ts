/** Converts JSON to XML and back, as the formatters of the reference platform do. */
import type { Payload } from './message.ts'
import type { Json } from './value.ts'
import { element, elementsOf, localName, textWithin, type XmlElementNode, type XmlNode } from './xml-tree.ts'

const TEXT_NAMESPACE = 'http://ws.apache.org/commons/ns/payload'
const XSI = 'http://www.w3.org/2001/XMLSchema-instance'
/** Nesting of elements; deeper values are left out, because consumers may recurse. */
const DEPTH_MAX = 100

/** Any payload as one element. */
export function payloadElement(payload: Payload): XmlElementNode {
  if (payload.kind === 'xml') return payload.root
  if (payload.kind === 'json') return xmlOfJson(JSON.parse(payload.text) as Json)
  return element('text', [payload.text], [['xmlns', TEXT_NAMESPACE]])
}

/** The root is the only member of an object, unless it is an array; else `jsonObject`, `jsonArray` or `jsonValue`. */
function xmlOfJson(json: Json): XmlElementNode {
  if (Array.isArray(json)) return element('jsonArray', members('jsonElement', json, 1))
  if (typeof json !== 'object' || json === null) return named('jsonValue', json, 1)
  const entries = Object.entries(json)
  const [only] = entries
  if (entries.length === 1 && !Array.isArray(only![1])) return named(only![0], only![1], 1)
  return element('jsonObject', childrenOf(json, 1))
}

/** Content of an element that holds the value. */
export function nodesOfJson(json: Json): readonly XmlNode[] {
  return childrenOf(json, 1)
}

function named(name: string, json: Json, depth: number): XmlElementNode {
  const tag = elementName(name)
  if (json !== null) return element(tag, childrenOf(json, depth))
  const nil = [
    ['xmlns:xsi', XSI],
    ['xsi:nil', 'true'],
  ] as const
  return element(tag, [], nil)
}

function childrenOf(json: Json, depth: number): readonly XmlNode[] {
  if (json === null || depth > DEPTH_MAX) return []
  if (Array.isArray(json)) return members('jsonElement', json, depth)
  if (typeof json !== 'object') return json === '' ? [] : [String(json)]
  return Object.entries(json).flatMap(([name, value]) => members(name, value, depth))
}

/** An array becomes one element per item, each with the name of the member. */
function members(name: string, json: Json, depth: number): readonly XmlElementNode[] {
  if (!Array.isArray(json)) return [named(name, json, depth + 1)]
  return json.map(item => named(name, item, depth + 1))
}

/** XML 1.0 2.3, without the colon, which separates a prefix. */
const NAME_START = 'A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u3001-\ud7ff'
const NOT_START = new RegExp(`^(?![${NAME_START}])`)
const NOT_NAME = new RegExp(`[^${NAME_START}.0-9\u00b7-]`, 'g')

function elementName(name: string): string {
  const tag = name.replace(NOT_NAME, '_')
  return NOT_START.test(tag) ? `_${tag}` : tag
}

/** An object with the root as its only member, without namespaces; a root `jsonObject` or `jsonArray` is unwrapped. */
export function jsonOfXml(root: XmlElementNode): Json {
  const name = localName(root.name)
  const json = jsonOfElement(root)
  if (name === 'jsonObject') return json === '' ? {} : json
  if (name === 'jsonArray') return elementsOf(root).map(jsonOfElement)
  return { [name]: json }
}

function jsonOfElement(node: XmlElementNode): Json {
  if (node.attributes.some(([name, value]) => localName(name) === 'nil' && value === 'true')) return null
  const attributes = node.attributes.filter(([name]) => name !== 'xmlns' && !name.startsWith('xmlns:'))
  const elements = elementsOf(node)
  if (elements.length === 0 && attributes.length === 0) return primitive(textWithin(node))
  const json = new Map<string, Json[]>()
  for (const [name, value] of attributes) add(json, `@${localName(name)}`, primitive(value))
  for (const child of elements) add(json, localName(child.name), jsonOfElement(child))
  const text = node.children.filter(child => typeof child === 'string').join('')
  if (text.trim() !== '') add(json, '$', primitive(text))
  return Object.fromEntries(Array.from(json, ([name, values]) => [name, values.length === 1 ? values[0]! : values]))
}

function add(json: Map<string, Json[]>, name: string, value: Json): void {
  const values = json.get(name)
  if (values === undefined) json.set(name, [value])
  else values.push(value)
}

/** Numbers that a double represents exactly as written. */
const PLAIN_NUMBER = /^-?(?:0|[1-9]\d{0,14})(?:\.\d{1,10})?$/

/** Text that reads as a number or boolean becomes one. */
export function primitive(text: string): Json {
  if (text === 'true' || text === 'false') return text === 'true'
  return PLAIN_NUMBER.test(text) && String(Number(text)) === text ? Number(text) : text
}
