/** XML elements as JSON text, with the switches of `[mediation]`. Numbers keep the digits of the XML. */
import { compilePattern } from '../../runtime/pattern.ts'
import { elementsOf, isElement, localName, prefixOf, textWithin, type XmlElementNode } from '../xml-tree.ts'
import { decodeName, FORM_ROOT, MULTIPART_ROOT } from './element-names.ts'
import type { ConversionSettings } from './json-to-xml.ts'

/** A number as JSON writes it (RFC 8259 6). */
const NUMBER = /^-?(?:0|[1-9]\d{0,999})(?:\.\d{1,999})?(?:[eE][+-]?\d{1,9})?$/
/** Longer texts are matched with no pattern of the operator. */
const MATCHED_MAX = 8192

/** JSON of the text of an element without elements. */
type Primitive = (text: string) => string

/** A member of an object; the value is JSON text. */
type Member = [name: string, value: string]

/** Elements of one name. */
interface Group {
  readonly name: string
  readonly values: string[]
  isArray: boolean
}

/** Texts that read as a number, boolean or null become one, as the settings say. Throws for a malformed pattern. */
export function primitivesBy({ autoPrimitive, staysText, removedFromText }: ConversionSettings): Primitive {
  const [stays, removed] = [staysText, removedFromText].map(text => (text === '' ? null : compilePattern(text)))
  if (!autoPrimitive) return text => JSON.stringify(text)
  return text => {
    const isMatched = text.length <= MATCHED_MAX
    if (isMatched && removed?.matcher(text).lookingAt()) {
      return JSON.stringify(removed.matcher(text).replaceFirst(''))
    }
    if (text === 'true' || text === 'false' || text === 'null') return text
    const isNumber = NUMBER.test(text) && !(isMatched && stays?.matcher(text).matches())
    return isNumber ? text : JSON.stringify(text)
  }
}

/** Roots that stand for the value in them: an item of an array is the whole payload where it was split off. */
const UNWRAPPED = ['jsonObject', 'jsonElement', 'jsonValue']

export class XmlToJson {
  readonly #settings: ConversionSettings
  readonly #primitive: Primitive

  constructor(settings: ConversionSettings, primitive: Primitive) {
    this.#settings = settings
    this.#primitive = primitive
  }

  /**
   * An object with the root as its only member; a root `jsonObject`, `jsonArray`, `jsonElement` or `jsonValue` is
   * unwrapped, and so is an element that holds only elements `jsonElement`, or only a `jsonArray`.
   */
  convert(root: XmlElementNode): string {
    const name = localName(root.name)
    if (name === 'jsonArray') return this.#array(elementsOf(root))
    if (name === 'jsonObject' && isBlank(root)) return '{}'
    const value = this.#value(root, root.name === FORM_ROOT || root.name === MULTIPART_ROOT)
    if (UNWRAPPED.includes(name)) return value
    return `{${JSON.stringify(this.#name(root.name))}:${value}}`
  }

  #array(items: readonly XmlElementNode[]): string {
    return `[${items.map(item => this.#value(item)).join(',')}]`
  }

  #name(qualified: string): string {
    const { keepsNamespaces, escapesNames } = this.#settings
    const prefix = keepsNamespaces ? prefixOf(qualified) : ''
    const local = decodeName(localName(qualified), escapesNames)
    return prefix === '' ? local : `${prefix}_${local}`
  }

  /** `isForm`: the names of its elements are those of fields. */
  #value(node: XmlElementNode, isForm = false): string {
    const { usesNil } = this.#settings
    const nil = usesNil && node.attributes.some(([name, value]) => localName(name) === 'nil' && value === 'true')
    if (nil) return 'null'
    const members = this.#attributes(node)
    if (members.length === 0 && node.children.every(child => typeof child === 'string')) {
      const text = textWithin(node)
      if (text === '') return usesNil ? '""' : 'null'
      return this.#primitive(text)
    }
    const items = members.length === 0 ? itemsOf(node) : undefined
    if (items !== undefined) return this.#array(items)
    for (const member of this.#members(node, isForm)) members.push(member)
    const text = node.children.filter(child => typeof child === 'string').join('')
    if (text.trim() !== '') members.push(['$', this.#primitive(text)])
    return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`
  }

  /** Elements of one name are an array where there are several of them, or where an instruction says so. */
  #members(node: XmlElementNode, isForm: boolean): readonly Member[] {
    const groups: Group[] = []
    const open = new Map<string, Group>()
    let isNextArray = false
    for (const child of node.children) {
      if (typeof child === 'string') continue
      const isInstruction = !isElement(child)
      const tag = isInstruction ? child.arrayOf : child.name
      if (tag === '') {
        isNextArray = true
        continue
      }
      const name = isForm ? decodeName(tag, true) : this.#name(tag)
      let group = open.get(name)
      if (group === undefined || !(this.#settings.autoArray || group.isArray)) {
        group = { name, values: [], isArray: false }
        groups.push(group)
        open.set(name, group)
      }
      group.isArray ||= isInstruction || isNextArray
      if (isInstruction) continue
      group.values.push(this.#value(child))
      isNextArray = false
    }
    return groups.map(({ name, values, isArray }) => [
      name,
      isArray || values.length > 1 ? `[${values.join(',')}]` : values[0]!,
    ])
  }

  /** Attributes are texts, whatever they read as. */
  #attributes(node: XmlElementNode): Member[] {
    const members: Member[] = []
    for (const [name, value] of node.attributes) {
      const isDeclaration = name === 'xmlns' || name.startsWith('xmlns:')
      if (!isDeclaration) members.push([`@${this.#name(name)}`, JSON.stringify(value)])
      else if (this.#settings.writesDeclarations) members.push([`@${name.replace(':', '_')}`, JSON.stringify(value)])
    }
    return members
  }
}

/** True for white space alone. */
function isBlank(node: XmlElementNode): boolean {
  return node.children.every(child => typeof child === 'string' && child.trim() === '')
}

/** Items of an element that is an array: it holds only elements `jsonElement`, or only a `jsonArray`. */
function itemsOf(node: XmlElementNode): readonly XmlElementNode[] | undefined {
  if (holdsItems(node)) return elementsOf(node)
  const [only, second] = node.children.filter(child => typeof child !== 'string')
  if (only === undefined || second !== undefined || !isElement(only)) return undefined
  const isArray = only.name === 'jsonArray' && only.attributes.length === 0 && (holdsItems(only) || isBlank(only))
  return isArray ? elementsOf(only) : undefined
}

function holdsItems(node: XmlElementNode): boolean {
  const tags = node.children.filter(child => typeof child !== 'string')
  return tags.length > 0 && tags.every(tag => (isElement(tag) ? tag.name : tag.arrayOf) === 'jsonElement')
}
