/**
 * `<payloadFactory>`: makes a new payload from a template and arguments. Arguments are escaped for their position and
 * are only data: whatever they hold, the payload is well-formed and has the structure of its template.
 */
import type { XmlElement } from '../../config/xml.ts'
import type { Expression } from '../expression.ts'
import { argumentsIn, jsonParts, type TemplatePart, textParts } from '../payload-template.ts'
import { jsonOfXml, nodesOfJson, primitive } from '../json-xml.ts'
import { formatOf } from '../payload-format.ts'
import { mediator } from '../mediator.ts'
import type { Message, Payload } from '../message.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import { TEXT_MAX } from '../property-type.ts'
import { type Json, markupOf, textOf, type Value } from '../value.ts'
import { element as xmlElement, type XmlElementNode, type XmlNode } from '../xml-tree.ts'

type Template =
  | { readonly media: 'json' | 'text'; readonly text: string }
  /** With `$1` in texts and attributes. */
  | { readonly media: 'xml'; readonly root: XmlElementNode }

interface Argument {
  readonly value: Expression
  /** Inserted as text, even if it reads as JSON. */
  readonly isLiteral: boolean
}

interface PayloadSettings {
  readonly template: Template
  readonly args: readonly Argument[]
}

const ARGUMENTS_MAX = 100
const MEDIA_TYPES = { json: 'application/json', xml: 'application/xml', text: 'text/plain' } as const

export const payloadFactory = mediator<PayloadSettings>({
  name: 'payloadFactory',
  attributes: ['media-type', 'template-type'],
  elements: ['format', 'args'],

  parse(element, parser) {
    const media = parser.choice(element, 'media-type', ['xml', 'json', 'text'], 'xml')
    const type = element.attribute('template-type').toLowerCase()
    if (!['', 'default'].includes(type)) {
      return parser.error(element, 'template-type', 'is not supported yet', 'write it with $1, $2', type)
    }
    const format = parser.only(element, 'format')
    const args = parseArguments(parser.only(element, 'args'), parser)
    if (media === undefined || args === undefined) return undefined
    if (format === undefined) return parser.error(element, 'format', 'is missing', 'add <format>')
    if (format.has('key')) return parser.error(format, 'key', 'is not supported yet', 'write the format here')
    parser.checkAttributes(format, [])
    const template = media === 'xml' ? parseXml(format, parser) : parseText(format, media, parser)
    if (template === undefined) return undefined
    const missing = usedArguments(template).find(number => number < 1 || number > args.length)
    if (missing === undefined) return { template, args }
    return parser.error(format, '', `there is no argument for $${missing}`, 'add one to <args>')
  },

  compile({ template, args }, context) {
    const build = compileTemplate(
      template,
      args.map(({ isLiteral }) => isLiteral),
    )
    const evaluates = args.map(({ value, isLiteral }) => {
      const evaluate = context.compileExpression(value)
      return isLiteral ? (message: Message): Value => markupOf(evaluate(message)) : evaluate
    })
    return message => {
      const payload = build(evaluates.map(evaluate => evaluate(message)))
      if (payload === null) context.warn(`the payload has more than ${TEXT_MAX} characters`)
      message.payload = payload
      setMessageType(message, template.media)
      return true
    }
  },
})

/** As on the reference platform: sets messageType, unless it is XML already, and enables the body. */
function setMessageType(message: Message, media: Template['media']): void {
  const before = formatOf(textOf(message.get('axis2', 'messageType')))
  const isKept = media === 'xml' && ['xml', 'soap11', 'soap12'].includes(before)
  if (!isKept) message.set('axis2', 'messageType', MEDIA_TYPES[media])
  message.remove('axis2', 'NO_ENTITY_BODY')
}

function parseXml(format: XmlElement, parser: SequenceParser): Template | undefined {
  parser.checkNoText(format)
  const [root, second] = format.children
  if (root === undefined || second !== undefined) {
    return parser.error(format, '', 'expected one element', 'put one around all', `${format.children.length}`)
  }
  return { media: 'xml', root: parser.tree(root) }
}

function parseText(format: XmlElement, media: 'json' | 'text', parser: SequenceParser): Template | undefined {
  if (format.children.length > 0) {
    return parser.error(format, '', `contains elements, but media-type is ${media}`, 'correct media-type')
  }
  const { text } = format
  if (media === 'text') return { media, text }
  const sample = jsonParts(text).map(part => (typeof part === 'string' ? part : part.isQuoted ? 'x' : 'null'))
  try {
    JSON.parse(sample.join(''))
    return { media, text }
  } catch (error) {
    // The rest of the message quotes the template.
    const reason = (error as Error).message.replace(/,? (?:"|\.\.\.|in JSON)[\s\S]*$/, '')
    return parser.error(
      format,
      '',
      `is not valid JSON: ${reason}`,
      'correct it; $1 stands for a value, "$1" for its text',
    )
  }
}

function parseArguments(args: XmlElement | undefined, parser: SequenceParser): readonly Argument[] | undefined {
  if (args === undefined) return []
  parser.checkAttributes(args, [])
  parser.checkNoText(args)
  parser.checkElements(args, ['arg'])
  const given = args.children
  if (given.length > ARGUMENTS_MAX) {
    return parser.error(args, 'arg', `occurs more than ${ARGUMENTS_MAX} times`, 'use fewer', `${given.length}`)
  }
  const parsed = given.map(arg => parseArgument(arg, parser))
  return parsed.every(argument => argument !== undefined) ? parsed : undefined
}

function parseArgument(arg: XmlElement, parser: SequenceParser): Argument | undefined {
  parser.checkAttributes(arg, ['value', 'expression', 'evaluator', 'literal'])
  parser.checkElements(arg, [])
  parser.checkNoText(arg)
  const evaluator = parser.choice(arg, 'evaluator', ['xml', 'json'], 'xml')
  const isLiteral = parser.flag(arg, 'literal')
  if (evaluator === undefined || isLiteral === undefined) return undefined
  if (evaluator === 'json' && !arg.has('expression')) {
    return parser.error(arg, 'evaluator', 'needs an expression', 'remove it')
  }
  // With either evaluator `$ctx:name` is a variable.
  const isPath = evaluator === 'json' && /^\s*\$(?!\w+:)/.test(arg.attribute('expression'))
  const value = isPath ? parser.jsonPath(arg, 'expression') : parser.valueOrExpression(arg)
  return value === undefined ? undefined : { value, isLiteral }
}

function usedArguments(template: Template): readonly number[] {
  if (template.media === 'xml') return usedWithin(template.root)
  return argumentsIn(template.media === 'json' ? jsonParts(template.text) : textParts(template.text))
}

function usedWithin(node: XmlNode): readonly number[] {
  if (typeof node === 'string') return argumentsIn(textParts(node))
  const attributes = node.attributes.flatMap(([, value]) => argumentsIn(textParts(value)))
  return [...attributes, ...node.children.flatMap(usedWithin)]
}

/** Returns null where the payload is too long. */
type Build = (values: readonly Value[]) => Payload | null

/** `literals`: `Argument.isLiteral` of each argument; without effect in XML. */
function compileTemplate(template: Template, literals: readonly boolean[]): Build {
  if (template.media === 'xml') {
    const build = compileElement(template.root)
    return values => {
      const budget = { left: TEXT_MAX }
      const root = build(values, budget)
      return budget.left < 0 ? null : { kind: 'xml', root }
    }
  }
  const kind = template.media
  const parts = kind === 'json' ? jsonParts(template.text) : textParts(template.text)
  return values => {
    let text = ''
    for (const part of parts) {
      if (typeof part === 'string') text += part
      else {
        const value = values[part.argument - 1]!
        text += kind === 'text' ? markupOf(value) : jsonText(value, part.isQuoted, literals[part.argument - 1]!)
      }
      if (text.length > TEXT_MAX) return null
    }
    return { kind, text }
  }
}

function jsonText(value: Value, isQuoted: boolean, isLiteral: boolean): string {
  if (isQuoted) return JSON.stringify(textOf(value)).slice(1, -1)
  if (isLiteral) return JSON.stringify(value)
  return JSON.stringify(bare(value))
}

/** Value for a position without quotes: text that reads as a number or boolean becomes one. */
function bare(value: Value): Json {
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
  if (typeof value === 'boolean') return value
  if (typeof value === 'string') return primitive(value)
  if (value.kind === 'json') return value.value
  const [first = ''] = value.nodes
  return typeof first === 'string' ? bare(first) : jsonOfXml(first)
}

/** Characters that the payload may still have. */
interface Budget {
  left: number
}
type BuildElement = (values: readonly Value[], budget: Budget) => XmlElementNode

function compileElement(node: XmlElementNode): BuildElement {
  const attributes = node.attributes.map(([name, value]) => ({ name, parts: textParts(value) }))
  const children = node.children.map(child =>
    typeof child === 'string' ? { parts: textParts(child) } : { build: compileElement(child) },
  )
  return (values, budget) =>
    xmlElement(
      node.name,
      children.flatMap(child =>
        'build' in child ? [child.build(values, budget)] : child.parts.flatMap(part => nodesOf(part, values, budget)),
      ),
      attributes.map(({ name, parts }) => [
        name,
        parts.map(part => (typeof part === 'string' ? part : limited(textAt(part, values), budget))).join(''),
      ]),
    )
}

function textAt(part: Exclude<TemplatePart, string>, values: readonly Value[]): string {
  return textOf(values[part.argument - 1])
}

function nodesOf(part: TemplatePart, values: readonly Value[], budget: Budget): readonly XmlNode[] {
  if (typeof part === 'string') return [part]
  const value = values[part.argument - 1]!
  if (typeof value !== 'object') return [limited(textOf(value), budget)]
  limited(markupOf(value), budget)
  return value.kind === 'xml' ? value.nodes : nodesOfJson(value.value)
}

/** Spends the budget; with none left the text is ''. */
function limited(text: string, budget: Budget): string {
  budget.left -= text.length
  return budget.left < 0 ? '' : text
}
