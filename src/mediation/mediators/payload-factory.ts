/**
 * `<payloadFactory>`: makes a new payload from a template and arguments. Arguments are escaped for their position: the
 * payload is well-formed, and has the structure of its template but for markup that a sequence has made.
 */
import type { XmlElement } from '../../config/xml.ts'
import { servicesOf } from '../backend-calls.ts'
import { lineAt, type TemplatePlan } from '../freemarker/plan.ts'
import { TemplateSyntaxError } from '../freemarker/template-error.ts'
import { parseTemplate, templateProblem } from '../freemarker/template-parser.ts'
import type { Expression } from '../expression.ts'
import type { Evaluate } from '../expression-compiler.ts'
import { bodyFormatOf, isXmlFormat } from '../formats/body-types.ts'
import { argumentsIn, jsonParts, textParts } from '../payload-template.ts'
import { MediationFault } from '../mediation-fault.ts'
import { type CompileContext, mediator, type Run } from '../mediator.ts'
import type { Message, Payload } from '../message.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import type { TaskServices } from '../task-calls.ts'
import { BEYOND_LIMIT, contentIn, structureIn } from '../payload-value.ts'
import { TEXT_MAX, tooLong } from '../property-type.ts'
import { markupOf, textOf, type Value } from '../value.ts'
import { isElement, writeXml, type XmlChild, type XmlElementNode } from '../xml-tree.ts'
import type { MakePayload } from './freemarker-payload.ts'
import { type Build, compileTemplate, type Template } from './payload-building.ts'

interface Argument {
  readonly value: Expression
  /** Inserted as text, even if it reads as JSON or XML. */
  readonly isLiteral: boolean
  /** `${…}` in the template itself. Left out: an element of `<args>`. */
  readonly isPlaced?: true
}

/** Text of a file or local entry, read when a message comes. */
interface KeyedTemplate {
  readonly media: Template['media']
  readonly key: string
}

/** A template of FreeMarker, here or in a file or local entry. */
interface FreemarkerTemplate {
  readonly media: Template['media']
  readonly freemarker: { readonly plan: TemplatePlan } | { readonly key: string }
}

interface PayloadSettings {
  readonly template: Template | KeyedTemplate | FreemarkerTemplate
  readonly args: readonly Argument[]
}

const NOT_MADE = 'The message could not be mediated'
const ARGUMENTS_MAX = 100
const MEDIA_TYPES = { json: 'application/json', xml: 'application/xml', text: 'text/plain' } as const

export const payloadFactory = mediator<PayloadSettings>({
  name: 'payloadFactory',
  attributes: ['media-type', 'template-type', 'templateType', 'escapeXmlChars'],
  elements: ['format', 'args'],

  parse(element, parser) {
    const media = parser.choice(element, 'media-type', ['xml', 'json', 'text'], 'xml')
    const attribute = element.attribute('template-type') === '' ? 'templateType' : 'template-type'
    const types = ['default', 'freemarker'] as const
    const type = element.attribute(attribute) === '' ? 'default' : parser.choice(element, attribute, types, 'default')
    const format = parser.only(element, 'format')
    const args = parseArguments(parser.only(element, 'args'), parser)
    // Every value is escaped for its position.
    parser.flag(element, 'escapeXmlChars')
    if (media === undefined || type === undefined || args === undefined) return undefined
    if (format === undefined) return parser.error(element, 'format', 'is missing', 'add <format>')
    if (type === 'freemarker') return freemarkerIn(format, media, args, parser)
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
    const mayBeContent = args.map(isMadeText)
    const evaluates = args.map(({ value, isLiteral }) => {
      const evaluate = context.compileExpression(value)
      return isLiteral ? (message: Message): Value => markupOf(evaluate(message)) : evaluate
    })
    const make = (message: Message, build: Build): true => {
      message.payload = made(
        message,
        build,
        evaluates.map(evaluate => evaluate(message)),
        mayBeContent,
        context,
      )
      setMessageType(message, template.media)
      return true
    }
    if ('freemarker' in template) return freemarkerRun(template, literals, evaluates)
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
  const key = keyOf(format, parser)
  if (key === undefined) return undefined
  parser.uses(format, 'text', key)
  return { template: { media, key }, args }
}

/** The key of a format without content. */
function keyOf(format: XmlElement, parser: SequenceParser): string | undefined {
  parser.checkAttributes(format, ['key'])
  const key = parser.required(format, 'key')
  if (key === undefined) return undefined
  if (format.text !== '' || format.children.length > 0) {
    return parser.error(format, '', 'has both content and key', 'keep one of them')
  }
  if (key.startsWith('{')) return parser.error(format, 'key', 'is an expression', 'name a file; use <switch>', key)
  return key
}

function freemarkerIn(
  format: XmlElement,
  media: Template['media'],
  args: readonly Argument[],
  parser: SequenceParser,
): PayloadSettings | undefined {
  if (format.has('key')) {
    const key = keyOf(format, parser)
    if (key === undefined) return undefined
    parser.uses(format, 'template', key)
    return { template: { media, freemarker: { key } }, args }
  }
  parser.checkAttributes(format, [])
  const { source, line } = sourceIn(format, parser)
  try {
    return { template: { media, freemarker: { plan: parseTemplate(source) } }, args }
  } catch (error) {
    if (!(error instanceof TemplateSyntaxError)) throw error
    return parser.errorInText(format, line + lineAt(source, error.at) - 1, error.message, error.hint)
  }
}

/** The text of a template, and its line in the file. Elements outside of CDATA are a part of it. */
function sourceIn(format: XmlElement, parser: SequenceParser): { readonly source: string; readonly line: number } {
  const markup = format.nodes.map(node => {
    if (typeof node === 'string') return format.children.length === 0 ? node : writeXml(node)
    return 'target' in node ? '' : writeXml(parser.tree(node))
  })
  const text = markup.join('')
  const [space = ''] = /^\s*/.exec(text) ?? []
  return { source: text.trim(), line: format.line + space.split('\n').length - 1 }
}

/** Templates run on workers alone, which load what runs them with their first message. */
function freemarkerRun(
  { media, freemarker }: FreemarkerTemplate,
  literals: readonly boolean[],
  evaluates: readonly Evaluate[],
): Run {
  let known: { readonly text: string; readonly make: MakePayload } | null = null
  const make = async (message: Message): Promise<boolean> => {
    const services = servicesOf(message)
    const text = 'key' in freemarker ? await services.code.text(freemarker.key) : freemarker.plan.source
    if (known?.text !== text) {
      const plan = 'key' in freemarker ? planOf(text, freemarker.key) : freemarker.plan
      const { compileFreemarker } = await import('./freemarker-payload.ts')
      known = { text, make: compileFreemarker(plan, media, literals) }
    }
    message.payload = known.make(
      message,
      evaluates.map(evaluate => evaluate(message)),
    )
    setMessageType(message, media)
    return true
  }
  return message => {
    if (message.task !== null) return make(message)
    // A reactor waits for nothing, and computes for no template.
    const cause = 'templates of FreeMarker run on workers alone, and not in sequences that word faults'
    throw new MediationFault({ message: NOT_MADE, cause })
  }
}

/** Throws MediationFault where the text is no template. */
function planOf(text: string, key: string): TemplatePlan {
  const problem = templateProblem(text)
  if (problem === '') return parseTemplate(text)
  throw new MediationFault({ message: NOT_MADE, cause: `the format ${key} ${problem}` })
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
      args.push({ value, isLiteral: false, isPlaced: true })
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

/** Returns the number of an argument that a template uses and that is missing. */
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

/** Returns why a template makes no JSON; '' where it does. */
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

/** Properties of the scope `default` that clients choose the values of: parts of the request, and names of callers. */
const OF_CLIENTS = /^(?:(?:uri\.var|query\.param|api\.ut)\.|Action$|CORRELATION_ID$)/

/**
 * Values and properties that a sequence has made may be markup, as on the reference platform. What an expression reads
 * of the message itself stays text, so that no client puts elements into a payload.
 */
function isMadeText({ value, isLiteral, isPlaced }: Argument): boolean {
  if (isLiteral || isPlaced) return false
  if (value.kind === 'literal') return true
  if (value.kind !== 'property' || OF_CLIENTS.test(value.name)) return false
  // Fields, the start line and the types of the content.
  return value.scope !== 'transport' && value.scope !== 'axis2'
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
 * Returns the payload, within the limits of bodies. On a reactor, where only faults are worded, one that is too long is
 * null. Throws MediationFault.
 */
function made(
  { task }: Message,
  build: Build,
  values: readonly Value[],
  mayBeContent: readonly boolean[],
  { warn }: CompileContext,
): Payload | null {
  const parse = {
    structure: (text: string) => structureIn(text, task),
    content: (text: string, argument: number) => (mayBeContent[argument - 1] ? contentIn(text, task) : undefined),
  }
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
    // A long payload is read like a body: its items and its memory have limits too.
    return task.parse(payload.text, MEDIA_TYPES.json)
  } catch (error) {
    if (error instanceof MediationFault && error.raised.code === BEYOND_LIMIT) throw tooLong(error.raised.cause)
    throw error
  }
}
