/** XML as a tree of plain objects; text is escaped when the tree is written, and only then. */

export interface XmlElementNode {
  /** Including the prefix. */
  readonly name: string
  /** Including namespace declarations. */
  readonly attributes: readonly (readonly [name: string, value: string])[]
  readonly children: readonly XmlChild[]
}

/** A string is text. */
export type XmlNode = XmlElementNode | string

/** A child of an element. Other processing instructions and comments are not kept. */
export type XmlChild = XmlNode | ArrayInstruction

/** `<?xml-multiple name?>`: the elements of this name are an array in JSON, even if there is one or none. */
interface ArrayInstruction {
  /** '' for the name of the next element. */
  readonly arrayOf: string
  /** The conversion of JSON has made it: XML that is written to others leaves it out. */
  readonly isOfJson?: true
}

/** Target of array instructions, as on the reference platform. */
export const ARRAY_TARGET = 'xml-multiple'
/** Target of those that the conversion of JSON has made, in documents of the gateway alone. */
export const JSON_ARRAY_TARGET = 'json-array'

export function element(
  name: string,
  children: readonly XmlChild[],
  attributes: XmlElementNode['attributes'] = [],
): XmlElementNode {
  return { name, attributes, children }
}

export function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1)
}

/** Namespace that the element itself declares for a prefix. */
export function declared(node: XmlElementNode, prefix: string): string | undefined {
  const wanted = prefix === '' ? 'xmlns' : `xmlns:${prefix}`
  return node.attributes.find(([name]) => name === wanted)?.[1]
}

export function prefixOf(name: string): string {
  return name.includes(':') ? name.slice(0, name.indexOf(':')) : ''
}

export function elementsOf(node: XmlElementNode): readonly XmlElementNode[] {
  return node.children.filter(isElement)
}

export function isElement(child: XmlChild): child is XmlElementNode {
  return typeof child !== 'string' && 'name' in child
}

/**
 * Adds declarations for prefixes that come from outside, so that the element can be moved. `known`: such prefixes of
 * elements within it, so that copies that share elements do not search them again.
 */
export function selfContained(
  node: XmlElementNode,
  namespaceOf: (prefix: string) => string | undefined,
  known: ReadonlyMap<XmlElementNode, ReadonlySet<string>> = new Map(),
): XmlElementNode {
  const undeclared = new Set<string>()
  collectUndeclared(node, new Map(), undeclared, known)
  const missing = Array.from(undeclared, prefix => {
    const name = prefix === '' ? 'xmlns' : `xmlns:${prefix}`
    return [name, namespaceOf(prefix) ?? ''] as const
  })
  const declarations = missing.filter(([, namespace]) => namespace !== '')
  return declarations.length === 0 ? node : { ...node, attributes: [...declarations, ...node.attributes] }
}

/** `bound`: declarations in force of each prefix. It is changed in place, because clients choose how many there are. */
function collectUndeclared(
  node: XmlElementNode,
  bound: Map<string, number>,
  undeclared: Set<string>,
  known: ReadonlyMap<XmlElementNode, ReadonlySet<string>>,
): void {
  const found = known.get(node)
  if (found !== undefined) {
    for (const prefix of found) if ((bound.get(prefix) ?? 0) === 0) undeclared.add(prefix)
    return
  }
  const own = node.attributes.filter(([name]) => name === 'xmlns' || name.startsWith('xmlns:'))
  const prefixes = own.map(([name]) => name.slice('xmlns:'.length))
  for (const prefix of prefixes) bound.set(prefix, (bound.get(prefix) ?? 0) + 1)
  const used = node.attributes.map(([name]) => prefixOf(name)).filter(prefix => !['', 'xml', 'xmlns'].includes(prefix))
  for (const prefix of [prefixOf(node.name), ...used]) if ((bound.get(prefix) ?? 0) === 0) undeclared.add(prefix)
  for (const child of elementsOf(node)) collectUndeclared(child, bound, undeclared, known)
  for (const prefix of prefixes) bound.set(prefix, bound.get(prefix)! - 1)
}

/** Text of a node and all its descendants. */
export function textWithin(node: XmlChild): string {
  if (typeof node === 'string') return node
  return isElement(node) ? node.children.map(textWithin).join('') : ''
}

/** Leaves out the array instructions of JSON. */
export function writeXml(node: XmlChild): string {
  return written(node, null)
}

/** Writes nodes that may hold each other, each once: `//item` finds all levels of nested items. */
export function nodeWriter(): (node: XmlChild) => string {
  const known: WrittenElements = new Map()
  return node => written(node, known)
}

/** Texts of elements that are written; null: none comes a second time. */
type WrittenElements = Map<XmlElementNode, string> | null

function written(node: XmlChild, known: WrittenElements): string {
  if (typeof node === 'string') return escapeText(node)
  if (!isElement(node)) return writtenInstruction(node)
  const text = known?.get(node) ?? writtenElement(node, known)
  known?.set(node, text)
  return text
}

function writtenElement(node: XmlElementNode, known: WrittenElements): string {
  let text = `<${node.name}`
  for (const [name, value] of node.attributes) text += ` ${name}="${escapeAttribute(value)}"`
  let content = ''
  for (const child of node.children) content += written(child, known)
  if (content === '' && !node.children.includes('')) return `${text}/>`
  return `${text}>${content}</${node.name}>`
}

function writtenInstruction({ arrayOf, isOfJson }: ArrayInstruction): string {
  if (isOfJson) return ''
  return arrayOf === '' ? `<?${ARRAY_TARGET}?>` : `<?${ARRAY_TARGET} ${arrayOf}?>`
}

/** Characters that XML 1.0 (2.2) excludes even as references. */
const NOT_XML = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu

const IN_TEXT: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '\r': '&#13;' }
const IN_ATTRIBUTE: Readonly<Record<string, string>> = { ...IN_TEXT, '"': '&quot;', '\t': '&#9;', '\n': '&#10;' }

/** The text with a mark in place of each character that XML excludes. */
export function xmlText(text: string): string {
  return text.replace(NOT_XML, '\ufffd')
}

function escapeText(text: string): string {
  return xmlText(text).replace(/[&<>\r]/g, found => IN_TEXT[found]!)
}

function escapeAttribute(text: string): string {
  return xmlText(text).replace(/[&<>\r"\t\n]/g, found => IN_ATTRIBUTE[found]!)
}
