/** JSON values as XML elements, with the switches of `[mediation]`. */
import type { Json } from '../value.ts'
import { element, type XmlChild, type XmlElementNode } from '../xml-tree.ts'
import { encodeName } from './element-names.ts'
import { isObject, rawDigits } from './json-text.ts'

/** Settings of the conversion, in both directions. */
export interface ConversionSettings {
  /** `synapse.preserve_namespace_on_xml_to_json`: names in JSON keep their prefix: `p_name`. */
  readonly keepsNamespaces: boolean
  /** `synapse.enable_namespace_declaration`: declarations become members: `@xmlns_p`. */
  readonly writesDeclarations: boolean
  /** `synapse.enable_xml_nil`: null is `xsi:nil`, and the other way round; an empty element is an empty text. */
  readonly usesNil: boolean
  /** `synapse.enable_auto_primitive`: texts of elements that read as a number, boolean or null become one. */
  readonly autoPrimitive: boolean
  /** `synapse.json_out_auto_array`: repeated elements become an array, else members of one name. */
  readonly autoArray: boolean
  /** `synapse.build_valid_nc_name`: characters that a name cannot have are written as codes, else as `_`. */
  readonly escapesNames: boolean
  /** `synapse.disable_auto_primitive_regex`: whole texts that do not become numbers; '' for none. */
  readonly staysText: string
  /** `synapse.disable_custom_replace_regex`: a text that begins so stays a text, without this part; '' for none. */
  readonly removedFromText: string
}

export const DEFAULT_CONVERSION: ConversionSettings = {
  keepsNamespaces: false,
  writesDeclarations: false,
  usesNil: false,
  autoPrimitive: true,
  autoArray: true,
  escapesNames: false,
  staysText: '',
  removedFromText: '',
}

const XSI = 'http://www.w3.org/2001/XMLSchema-instance'
const NIL: XmlElementNode['attributes'] = [
  ['xmlns:xsi', XSI],
  ['xsi:nil', 'true'],
]

/**
 * The root is `jsonObject`, `jsonArray` or `jsonValue`. An array is one element per item behind an instruction, so that
 * it stays an array with one item or none, and an array within an array is a `jsonArray`. A member `@name` is an
 * attribute, `$` the text beside other members. `levels`: nested elements; deeper values are left out.
 */
export function elementOfJson(json: Json, settings: ConversionSettings, levels = Infinity): XmlElementNode {
  if (Array.isArray(json)) return arrayElement(json, settings, levels)
  if (!isObject(json)) return elementOf('jsonValue', json, settings, levels)
  return elementOf('jsonObject', json, settings, levels)
}

function arrayElement(json: Json, settings: ConversionSettings, levels: number): XmlElementNode {
  return element('jsonArray', levels <= 0 ? [] : itemElements('jsonElement', json as readonly Json[], settings, levels))
}

/** Content of an element that holds the value; members `@name`, which would be its attributes, are left out. */
export function contentOfJson(json: Json, settings: ConversionSettings, levels: number): readonly XmlChild[] {
  return (Array.isArray(json) ? arrayElement(json, settings, levels) : elementOf('jsonValue', json, settings, levels))
    .children
}

function childrenOfMember(name: string, json: Json, settings: ConversionSettings, levels: number): readonly XmlChild[] {
  if (!Array.isArray(json)) return [elementOf(name, json, settings, levels - 1)]
  const arrayOf = encodeName(name, settings.escapesNames)
  return [{ arrayOf, isOfJson: true }, ...itemElements(name, json, settings, levels)]
}

function itemElements(
  name: string,
  items: readonly Json[],
  settings: ConversionSettings,
  levels: number,
): readonly XmlElementNode[] {
  return items.map(item => elementOf(name, item, settings, levels - 1))
}

function elementOf(name: string, json: Json, settings: ConversionSettings, levels: number): XmlElementNode {
  const tag = encodeName(name, settings.escapesNames)
  if (json === null) return element(tag, [], settings.usesNil ? NIL : [])
  if (levels <= 0) return element(tag, [])
  if (Array.isArray(json)) return element(tag, [arrayElement(json, settings, levels - 1)])
  if (!isObject(json)) return element(tag, textOf(json))
  const attributes = new Map<string, string>()
  const children: XmlChild[] = []
  for (const [member, value] of Object.entries(json)) {
    if (member === '$' && isScalar(value)) children.push(...textOf(value))
    else if (/^@./.test(member) && isScalar(value)) {
      attributes.set(encodeName(member.slice(1), settings.escapesNames), textOf(value).join(''))
    } else for (const child of childrenOfMember(member, value, settings, levels)) children.push(child)
  }
  return element(tag, children, [...attributes])
}

function isScalar(json: Json): boolean {
  return json !== null && !Array.isArray(json) && !isObject(json)
}

function textOf(json: Json): readonly string[] {
  const text = rawDigits(json) ?? String(json)
  return text === '' ? [] : [text]
}
