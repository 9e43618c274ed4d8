/** JSON in the Badgerfish convention: `$` is text, `@name` an attribute, `@xmlns` an object of declarations. */
import type { Json } from '../value.ts'
import { element, elementsOf, type XmlElementNode, type XmlNode } from '../xml-tree.ts'
import { FormatError } from './format-error.ts'
import { isObject, rawDigits } from './json-text.ts'

const NAME = /^[A-Z_a-z\u00c0-\ud7ff][-.\w\u00b7-\ud7ff]*(?::[A-Z_a-z\u00c0-\ud7ff][-.\w\u00b7-\ud7ff]*)?$/

/** The only member is the root. Throws FormatError. */
export function elementOfBadgerfish(json: Json): XmlElementNode {
  const entries = isObject(json) ? Object.entries(json) : []
  const [root] = entries
  if (root === undefined || entries.length > 1 || Array.isArray(root[1])) {
    throw new FormatError('malformed', 'the body is not Badgerfish: it has no single root')
  }
  return elementOf(checkedName(root[0]), root[1])
}

function scalarText(json: Json): string {
  return json === null ? '' : (rawDigits(json) ?? String(json))
}

function checkedName(name: string): string {
  if (NAME.test(name)) return name
  throw new FormatError('malformed', 'the body is not Badgerfish: a member is no XML name')
}

function elementOf(name: string, json: Json): XmlElementNode {
  if (!isObject(json)) {
    const text = Array.isArray(json) ? '' : scalarText(json)
    return element(name, text === '' ? [] : [text])
  }
  const attributes: (readonly [string, string])[] = []
  const children: XmlNode[] = []
  for (const [member, value] of Object.entries(json)) {
    if (member === '$') children.push(scalarText(value))
    else if (member === '@xmlns' && isObject(value)) {
      for (const [prefix, uri] of Object.entries(value)) {
        attributes.push([prefix === '$' ? 'xmlns' : `xmlns:${checkedName(prefix)}`, scalarText(uri)])
      }
    } else if (member.startsWith('@')) attributes.push([checkedName(member.slice(1)), scalarText(value)])
    else {
      const items = Array.isArray(value) ? (value as readonly Json[]) : [value]
      for (const item of items) children.push(elementOf(checkedName(member), item))
    }
  }
  return element(name, children, attributes)
}

/** An object with the root as its only member; all values are texts. */
export function badgerfishOf(root: XmlElementNode): Json {
  return Object.fromEntries([[root.name, objectOf(root)]])
}

function objectOf(node: XmlElementNode): Json {
  const members = new Map<string, Json>()
  const declarations = node.attributes.filter(([name]) => name === 'xmlns' || name.startsWith('xmlns:'))
  if (declarations.length > 0) {
    const prefixes = declarations.map(([name, uri]) => [name === 'xmlns' ? '$' : name.slice('xmlns:'.length), uri])
    members.set('@xmlns', Object.fromEntries(prefixes) as Json)
  }
  for (const [name, value] of node.attributes) {
    if (name !== 'xmlns' && !name.startsWith('xmlns:')) members.set(`@${name}`, value)
  }
  const byName = new Map<string, Json[]>()
  for (const child of elementsOf(node)) {
    const values = byName.get(child.name)
    if (values === undefined) byName.set(child.name, [objectOf(child)])
    else values.push(objectOf(child))
  }
  const text = node.children.filter(child => typeof child === 'string').join('')
  if (text !== '' && (byName.size === 0 || text.trim() !== '')) members.set('$', text)
  for (const [name, values] of byName) members.set(name, values.length === 1 ? values[0]! : values)
  return Object.fromEntries(members)
}
