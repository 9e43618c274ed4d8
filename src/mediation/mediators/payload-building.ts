/** Builds payloads of `<payloadFactory>` from templates and the values of arguments. */
import { jsonOfXml, nodesOfJson, primitive } from '../json-xml.ts'
import type { Payload } from '../message.ts'
import { jsonParts, type TemplatePart, textParts } from '../payload-template.ts'
import { type Json, markupOf, textOf, type Value } from '../value.ts'
import {
  element as xmlElement,
  elementsOf,
  isElement,
  textWithin,
  type XmlChild,
  type XmlElementNode,
  type XmlNode,
} from '../xml-tree.ts'

export type Template =
  | { readonly media: 'json' | 'text'; readonly text: string }
  /** With `$1` in texts and attributes. */
  | { readonly media: 'xml'; readonly root: XmlElementNode }

/** Parses a text that is a JSON object or array; undefined for another text. Throws MediationFault beyond a limit. */
type ParseStructure = (text: string) => Json | undefined

/** Reads the text of an argument as the content of an element; undefined for other texts. Throws MediationFault. */
type ParseContent = (text: string, argument: number) => readonly XmlChild[] | undefined

/** How arguments become parts of a payload. */
interface Parsers {
  readonly structure: ParseStructure
  readonly content: ParseContent
}

/** Builds a payload; returns null where the payload has more characters. */
export type Build = (values: readonly Value[], charactersMax: number, parsers: Parsers) => Payload | null

/** Compiles a template. `literals`: whether each argument is a literal, which has no effect in XML. */
export function compileTemplate(template: Template, literals: readonly boolean[]): Build {
  if (template.media === 'xml') {
    const build = compileElement(template.root)
    return (values, charactersMax, { content }) => {
      const budget = { left: charactersMax, content }
      const root = build(values, budget)
      return budget.left < 0 ? null : { kind: 'xml', root }
    }
  }
  const kind = template.media
  const parts = kind === 'json' ? jsonParts(template.text) : textParts(template.text)
  return (values, charactersMax, { structure: parse }) => {
    let text = ''
    for (const part of parts) {
      if (typeof part === 'string') text += part
      else {
        const value = values[part.argument - 1]!
        text += kind === 'text' ? markupOf(value) : jsonText(value, part.isQuoted, literals[part.argument - 1]!, parse)
      }
      if (text.length > charactersMax) return null
    }
    return { kind, text }
  }
}

function jsonText(value: Value, isQuoted: boolean, isLiteral: boolean, parse: ParseStructure): string {
  if (isQuoted) return JSON.stringify(textOf(value)).slice(1, -1)
  if (isLiteral) return JSON.stringify(value)
  return JSON.stringify(bare(value, parse))
}

/** Value for a position without quotes: text that reads as a number, boolean, object or array becomes one. */
function bare(value: Value, parse: ParseStructure): Json {
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
  if (typeof value === 'boolean') return value
  if (typeof value === 'string') return parse(value) ?? primitive(value)
  if (value.kind === 'json') return value.value
  const [first = ''] = value.nodes
  if (typeof first === 'string') return bare(first, parse)
  // An element with text alone is its text.
  return elementsOf(first).length === 0 ? bare(textWithin(first), parse) : jsonOfXml(first)
}

/** Characters that the payload may still have. */
interface Budget {
  left: number
  readonly content: ParseContent
}
type BuildElement = (values: readonly Value[], budget: Budget) => XmlElementNode

function compileElement(node: XmlElementNode): BuildElement {
  const attributes = node.attributes.map(([name, value]) => ({ name, parts: textParts(value) }))
  const children = node.children.map(compileChild)
  return (values, budget) =>
    xmlElement(
      node.name,
      children.flatMap(child => child(values, budget)),
      attributes.map(({ name, parts }) => [
        name,
        parts.map(part => (typeof part === 'string' ? part : limited(textAt(part, values), budget))).join(''),
      ]),
    )
}

function compileChild(child: XmlChild): (values: readonly Value[], budget: Budget) => readonly XmlChild[] {
  if (typeof child === 'string') {
    const parts = textParts(child)
    return (values, budget) => parts.flatMap(part => nodesOf(part, values, budget))
  }
  if (!isElement(child)) return () => [child]
  const build = compileElement(child)
  return (values, budget) => [build(values, budget)]
}

function textAt(part: Exclude<TemplatePart, string>, values: readonly Value[]): string {
  return textOf(values[part.argument - 1])
}

function nodesOf(part: TemplatePart, values: readonly Value[], budget: Budget): readonly XmlChild[] {
  if (typeof part === 'string') return [part]
  const value = values[part.argument - 1]!
  if (typeof value !== 'object') {
    const text = limited(textOf(value), budget)
    return budget.content(text, part.argument) ?? [text]
  }
  limited(markupOf(value), budget)
  return value.kind === 'xml' ? contentOf(value.nodes) : nodesOfJson(value.value)
}

/** As on the reference platform, one element with text alone is its text; several nodes are inserted as they are. */
function contentOf(nodes: readonly XmlNode[]): readonly XmlChild[] {
  const [only, ...others] = nodes
  if (only === undefined || typeof only === 'string' || others.length > 0 || elementsOf(only).length > 0) return nodes
  const text = textWithin(only).trim()
  return text === '' ? nodes : [text]
}

/** Spends the budget; with none left the text is ''. */
function limited(text: string, budget: Budget): string {
  budget.left -= text.length
  return budget.left < 0 ? '' : text
}
