/** XML elements as JSON text, with the switches of `[mediation]`. Numbers keep the digits of the XML. */
import { compilePattern } from '../../runtime/pattern.ts'
import { elementsOf, localName, prefixOf, textWithin, type XmlElementNode } from '../xml-tree.ts'
import { decodeName } from './element-names.ts'
import type { ConversionSettings } from './json-to-xml.ts'

/** A number as JSON writes it (RFC 8259 6). */
const NUMBER = /^-?(?:0|[1-9]\d{0,999})(?:\.\d{1,999})?(?:[eE][+-]?\d{1,9})?$/
/** Longer texts are matched with no pattern of the operator. */
const MATCHED_MAX = 8192

/** JSON of a text: of an attribute, or of an element without elements. */
type Primitive = (text: string) => string

/** Texts that read as a number or boolean become one, as the settings say. Throws for a malformed pattern. */
export function primitivesBy({ autoPrimitive, staysText, removedFromText }: ConversionSettings): Primitive {
  const [stays, removed] = [staysText, removedFromText].map(text => (text === '' ? null : compilePattern(text)))
  return text => {
    if (text.length <= MATCHED_MAX && stays?.matcher(text).matches()) {
      return JSON.stringify(removed == null ? text : removed.matcher(text).replaceAll(''))
    }
    const isPrimitive = autoPrimitive && (text === 'true' || text === 'false' || NUMBER.test(text))
    return isPrimitive ? text : JSON.stringify(text)
  }
}

export class XmlToJson {
  readonly #settings: ConversionSettings
  readonly #primitive: Primitive

  constructor(settings: ConversionSettings, primitive: Primitive) {
    this.#settings = settings
    this.#primitive = primitive
  }

  /**
   * An object with the root as its only member; a root `jsonObject`, `jsonArray` or `jsonValue` is unwrapped, and so is
   * an element that holds only elements `jsonElement`.
   */
  convert(root: XmlElementNode): string {
    const name = localName(root.name)
    if (name === 'jsonArray') return this.#array(elementsOf(root))
    const value = this.#value(root)
    if (name === 'jsonValue') return value
    if (name === 'jsonObject') return value === '""' ? '{}' : value
    return `{${JSON.stringify(this.#name(root.name))}:${value}}`
  }

  #array(items: readonly XmlElementNode[]): string {
    return `[${items.map(item => this.#value(item)).join(',')}]`
  }

  #name(qualified: string): string {
    const { keepsNamespaces, escapesNames } = this.#settings
    const prefix = keepsNamespaces ? prefixOf(qualified) : ''
    const local = escapesNames ? decodeName(localName(qualified)) : localName(qualified)
    return prefix === '' ? local : `${prefix}_${local}`
  }

  #value(node: XmlElementNode): string {
    const { usesNil, autoArray } = this.#settings
    const nil = usesNil && node.attributes.some(([name, value]) => localName(name) === 'nil' && value === 'true')
    if (nil) return 'null'
    const members = this.#attributes(node)
    const elements = elementsOf(node)
    if (elements.length === 0 && members.length === 0) return this.#primitive(textWithin(node))
    const isArray = members.length === 0 && elements.every(({ name }) => name === 'jsonElement')
    if (isArray) return this.#array(elements)
    const byName = new Map<string, string[]>()
    for (const child of elements) {
      const name = this.#name(child.name)
      const value = this.#value(child)
      const values = autoArray ? byName.get(name) : undefined
      if (values !== undefined) values.push(value)
      else if (autoArray) byName.set(name, [value])
      else members.push([name, value])
    }
    for (const [name, values] of byName)
      members.push([name, values.length === 1 ? values[0]! : `[${values.join(',')}]`])
    const text = node.children.filter(child => typeof child === 'string').join('')
    if (text.trim() !== '') members.push(['$', this.#primitive(text)])
    return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`
  }

  #attributes(node: XmlElementNode): [name: string, value: string][] {
    const members: [string, string][] = []
    for (const [name, value] of node.attributes) {
      const isDeclaration = name === 'xmlns' || name.startsWith('xmlns:')
      if (!isDeclaration) members.push([`@${this.#name(name)}`, this.#primitive(value)])
      else if (this.#settings.writesDeclarations) members.push([`@${name.replace(':', '_')}`, JSON.stringify(value)])
    }
    return members
  }
}
