/**
 * `<payloadFactory>`: makes a new payload from a template and arguments. Arguments are escaped for their position and
 * are only data: whatever they hold, the payload is well-formed and has the structure of its template.
 */
import type { XmlElement } from '../../config/xml.ts'
import { servicesOf } from '../backend-calls.ts'
import type { Expression } from '../expression.ts'
import { bodyFormatOf, isXmlFormat } from '../formats/body-types.ts'
import { jsonOf } from '../formats/json-text.ts'
import { argumentsIn, jsonParts, type TemplatePart, textParts } from '../payload-template.ts'
import { jsonOfXml, nodesOfJson, primitive } from '../json-xml.ts'
import { MediationFault } from '../mediation-fault.ts'
import { type CompileContext, mediator } from '../mediator.ts'
import type { Message, Payload } from '../message.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import type { TaskServices } from '../task-calls.ts'
import { jsonIn, MALFORMED, TEXT_MAX, tooLong } from '../property-type.ts'
import { type Json, markupOf, textOf, type Value } from '../value.ts'
import {
  element as xmlElement,
  elementsOf,
  isElement,
  textWithin,
  type XmlChild,
  type XmlElementNode,
} from '../xml-tree.ts'

type Template =
  | { readonly media: 'json' | 'text'; readonly text: string }
  /** With `$1` in texts and attributes. */
  | { readonly media: 'xml'; readonly root: XmlElementNode }

interface Argument {
  readonly value: Expression
  /** Inserted as text, even if it reads as JSON. */
  readonly isLiteral: boolean
}

/** Text of a file or local entry, read when a message comes. */
interface KeyedTemplate {
  readonly media: Template['media']
  readonly key: string
}

interface PayloadSettings {
  readonly template: Template | KeyedTemplate
  readonly args: readonly Argument[]
}

const NOT_MADE = 'The message could not be mediated'
const ARGUMENTS_MAX = 100
const MEDIA_TYPES = { json: 'application/json', xml: 'application/xml', text: 'text/plain' } as const

export const payloadFactory = mediator<PayloadSettings>({
  name: 'payloadFactory',
  attributes: ['media-type', 'template-type', 'templateType'],
  elements: ['format', 'args'],

  parse(element, parser) {
    const media = parser.choice(element, 'media-type', ['xml', 'json', 'text'], 'xml')
    const type = (element.attribute('template-type') || element.attribute('templateType')).toLowerCase()
    if (!['', 'default'].includes(type)) {
      const hint = 'write it with $1, $2 and <args>, or in JavaScript: <script language="js">'
      return parser.error(element, 'template-type', 'is not supported', hint, type)
    }
    const format = parser.only(element, 'format')
    const args = parseArguments(parser.only(element, 'args'), parser)
    if (media === undefined || args === undefined) return undefined
    if (format === undefined) return parser.error(element, 'format', 'is missing', 'add <format>')
    if (format.has('key')) return keyed(format, media, args, parser)
    parser.checkAttributes(format, [])
    const own = media === 'xml' ? parseXml(format, parser) : parseText(format, media, parser)
    if (own === undefined) return undefined
    const all = [...args]
    const template = withExpressions(own, format, all, parser)
    if (template === undefined) return undefined
    const missing = missingArgument(template, all.length)
    if (missing === undefined) return { template, args: all }
    return parser.error(format, '', `there is no argument for $${missing}`, 'add one to <args>')
  },

  needs: () => 'worker',

  compile({ template, args }, context) {
    const literals = args.map(({ isLiteral }) => isLiteral)
    const evaluates = args.map(({ value, isLiteral }) => {
      const evaluate = context.compileExpression(value)
      return isLiteral ? (message: Message): Value => markupOf(evaluate(message)) : evaluate
    })
    const make = (message: Message, build: Build): true => {
      message.payload = made(
        message,
        build,
        evaluates.map(evaluate => evaluate(message)),
        context,
      )
      setMessageType(message, template.media)
      return true
    }
    if (!('key' in template)) {
      const build = compileTemplate(template, literals)
      return message => make(message, build)
    }
    const { key, media } = template
    let known: { readonly text: string; readonly build: Build } | null = null
    return async message => {
      const services = servicesOf(message)
      const text = await services.code.text(key)
      if (known?.text !== text) {
        known = { text, build: compileTemplate(templateOf(text, { key, media }, args.length, services), literals) }
      }
      return make(message, known.build)
    }
  },
})

function keyed(
  format: XmlElement,
  media: Template['media'],
  args: readonly Argument[],
  parser: SequenceParser,
): PayloadSettings | undefined {
  parser.checkAttributes(format, ['key'])
  const key = parser.required(format, 'key')
  if (key === undefined) return undefined
  if (format.text !== '' || format.children.length > 0) {
    return parser.error(format, '', 'has both content and key', 'keep one of them')
  }
  if (key.startsWith('{')) return parser.error(format, 'key', 'is an expression', 'name a file; use <switch>', key)
  parser.uses(format, 'text', key)
  return { template: { media, key }, args }
}

/** Throws MediationFault where the text is no template. */
function templateOf(text: string, { key, media }: KeyedTemplate, args: number, services: TaskServices): Template {
  const fail = (why: string) => new MediationFault({ message: NOT_MADE, cause: `the format ${key} ${why}` })
  if (text.includes('${')) throw fail('has an expression; only a format in a sequence may have one')
  const template = media === 'xml' ? { media, root: elementOf(text, services, fail) } : { media, text }
  if (media === 'json' && jsonProblem(text) !== '') throw fail(`is not valid JSON: ${jsonProblem(text)}`)
  const missing = missingArgument(template, args)
  if (missing !== undefined) throw fail(`has $${missing}, for which there is no argument`)
  return template
}

function elementOf(text: string, services: TaskServices, fail: (why: string) => Error): XmlElementNode {
  try {
    const payload = services.parse(text, 'application/xml')
    if (payload?.kind === 'xml') return payload.root
  } catch (error) {
    if (!(error instanceof MediationFault)) throw error
  }
  throw fail('is not one element of XML')
}

/** Expressions become arguments behind those in `args`, to which they are added. Undefined after an error. */
function withExpressions(
  template: Template,
  format: XmlElement,
  args: Argument[],
  parser: SequenceParser,
): Template | undefined {
  let isValid = true
  const placed = (text: string): string => {
    const replaced = parser.placeholders(format, text, value => {
      args.push({ value, isLiteral: false })
      return `\${#${args.length}}`
    })
    isValid &&= replaced !== undefined
    return replaced ?? ''
  }
  const within = (node: XmlChild): XmlChild => {
    if (typeof node === 'string') return placed(node)
    return isElement(node) ? element(node) : node
  }
  const element = ({ name, attributes, children }: XmlElementNode): XmlElementNode => ({
    name,
    attributes: attributes.map(([name, value]) => [name, placed(value)]),
    children: children.map(within),
  })
  const { media } = template
  const made = media === 'xml' ? { media, root: element(template.root) } : { media, text: placed(template.text) }
  if (!isValid) return undefined
  const problem = made.media === 'json' ? jsonProblem(made.text) : ''
  return problem === '' ? made : refuseJson(format, problem, parser)
}

/** Number of an argument that a template uses and that there is not. */
function missingArgument(template: Template, args: number): number | undefined {
  return usedArguments(template).find(number => number < 1 || number > args)
}

/** As on the reference platform: sets messageType, unless it is XML already, and enables the body. */
function setMessageType(message: Message, media: Template['media']): void {
  const isKept = media === 'xml' && isXmlFormat(bodyFormatOf(textOf(message.get('axis2', 'messageType'))))
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
  // With expressions it is JSON once they are arguments.
  const problem = text.includes('${') ? '' : jsonProblem(text)
  return problem === '' ? { media, text } : refuseJson(format, problem, parser)
}

function refuseJson(format: XmlElement, problem: string, parser: SequenceParser): undefined {
  const hint = 'correct it; $1 stands for a value, "$1" for its text'
  return parser.error(format, '', `is not valid JSON: ${problem}`, hint)
}

/** Why a template makes no JSON; '' where it does. */
function jsonProblem(text: string): string {
  const sample = jsonParts(text).map(part => (typeof part === 'string' ? part : part.isQuoted ? 'x' : 'null'))
  try {
    JSON.parse(sample.join(''))
    return ''
  } catch (error) {
    // The rest of the message quotes the template.
    return (error as Error).message.replace(/,? (?:"|\.\.\.|in JSON)[\s\S]*$/, '')
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
  // `deepCheck` is about the cost of looking at a value; every value is looked at.
  parser.checkAttributes(arg, ['value', 'expression', 'evaluator', 'literal', 'deepCheck'])
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

function usedWithin(node: XmlChild): readonly number[] {
  if (typeof node === 'string') return argumentsIn(textParts(node))
  if (!isElement(node)) return []
  const attributes = node.attributes.flatMap(([, value]) => argumentsIn(textParts(value)))
  return [...attributes, ...node.children.flatMap(usedWithin)]
}

/**
 * The payload, within the limits of bodies. On a reactor, where only faults are worded, one that is too long is
 * null. Throws MediationFault.
 */
function made({ task }: Message, build: Build, values: readonly Value[], { warn }: CompileContext): Payload | null {
  const parse = (text: string) => structureIn(text, task)
  if (task === null) {
    const payload = build(values, TEXT_MAX, parse)
    if (payload === null) warn(`the payload has more than ${TEXT_MAX} characters`)
    return payload
  }
  const { decodedSize } = task.limits
  const payload = build(values, decodedSize, parse)
  if (payload === null) throw tooLong(`the payload has more than ${decodedSize} characters (body.max_decoded_size)`)
  if (payload.kind !== 'json' || payload.text.length <= TEXT_MAX) return payload
  try {
    // What is long is read like a body: its items and its memory have limits too.
    return task.parse(payload.text, MEDIA_TYPES.json)
  } catch (error) {
    if (error instanceof MediationFault && error.raised.code === BEYOND_LIMIT) throw tooLong(error.raised.cause)
    throw error
  }
}

/** Code of a body beyond a limit, which blames the client. */
const BEYOND_LIMIT = 102521

/** The object or array that a text is as JSON; undefined for another text. Throws MediationFault beyond a limit. */
type ParseStructure = (text: string) => Json | undefined

/** Returns null where the payload has more characters. */
type Build = (values: readonly Value[], charactersMax: number, parse: ParseStructure) => Payload | null

function structureIn(text: string, task: TaskServices | null): Json | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined
  if (text.length <= TEXT_MAX) {
    const value = jsonIn(text)
    return typeof value === 'object' && value.kind === 'json' ? value.value : undefined
  }
  if (task === null) return undefined
  try {
    const payload = task.parse(text, MEDIA_TYPES.json)
    return payload?.kind === 'json' ? jsonOf(payload) : undefined
  } catch (error) {
    if (!(error instanceof MediationFault)) throw error
    if (error.raised.code === MALFORMED) return undefined
    throw error.raised.code === BEYOND_LIMIT ? tooLong(error.raised.cause) : error
  }
}

/** `literals`: `Argument.isLiteral` of each argument; without effect in XML. */
function compileTemplate(template: Template, literals: readonly boolean[]): Build {
  if (template.media === 'xml') {
    const build = compileElement(template.root)
    return (values, charactersMax) => {
      const budget = { left: charactersMax }
      const root = build(values, budget)
      return budget.left < 0 ? null : { kind: 'xml', root }
    }
  }
  const kind = template.media
  const parts = kind === 'json' ? jsonParts(template.text) : textParts(template.text)
  return (values, charactersMax, parse) => {
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
  if (typeof value !== 'object') return [limited(textOf(value), budget)]
  limited(markupOf(value), budget)
  return value.kind === 'xml' ? value.nodes : nodesOfJson(value.value)
}

/** Spends the budget; with none left the text is ''. */
function limited(text: string, budget: Budget): string {
  budget.left -= text.length
  return budget.left < 0 ? '' : text
}
