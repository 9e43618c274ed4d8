/**
 * `<aggregate>`: waits for the copies of `<clone>` and `<iterate>` and joins what an expression finds in each: to an
 * array of JSON, or to the elements of one XML payload. The copies come in their order; late ones are left out. In the
 * response flow it gathers the responses of copies that `<send>` sent.
 */
import type { XmlElement } from '../../config/xml.ts'
import type { Aggregation } from '../copies.ts'
import type { Expression } from '../expression.ts'
import type { Evaluate } from '../expression-compiler.ts'
import { bodyFormatOf } from '../formats/body-types.ts'
import { jsonOfXml } from '../json-xml.ts'
import { MediationFault } from '../mediation-fault.ts'
import { type CompileContext, mediator } from '../mediator.ts'
import type { Message } from '../message.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import type { Branch } from '../sequence-plan.ts'
import { bodyOf, envelope, soapVersion } from '../soap.ts'
import { type Json, textOf, type Value } from '../value.ts'
import {
  element as xmlElement,
  elementsOf,
  isElement,
  localName,
  type XmlChild,
  type XmlElementNode,
  type XmlNode,
} from '../xml-tree.ts'

/** A number of copies, 0 for any; an expression gives that of each message. */
type Count = number | Expression

export interface AggregateSettings {
  /** Id of the mediator whose copies the `<aggregate>` gathers; '' for any. */
  readonly id: string
  /** Selects the copies in which it finds something; left out: all of them. */
  readonly correlate?: Expression
  readonly timeoutMs: number
  readonly min: Count
  readonly max: Count
  readonly expression: Expression
  /** Property with the name or the element that encloses the parts; '' for none. */
  readonly enclosing: string
  /** True if the contents of the found elements are joined, not the elements. */
  readonly joinsContent: boolean
  readonly onComplete: Branch
}

const SECONDS_MAX = 3600
const INCOMPLETE = 102554
const OF_RESULT = ['enclosingElementProperty', 'aggregateElementType']
/** As many as one task may make. */
const COUNT_MAX = 1000

export const aggregate = mediator<AggregateSettings>({
  name: 'aggregate',
  attributes: ['id'],
  elements: ['correlateOn', 'completeCondition', 'onComplete'],
  parse: parseAggregate,
  needs: () => 'worker',

  compile(settings, context) {
    const complete = compileCompletion(settings, context)
    const { id, timeoutMs, correlate } = settings
    const selects = correlate === undefined ? () => true : compileSelection(correlate, context)
    const [min, max] = [compileCount(settings.min, context), compileCount(settings.max, context)]
    return message => {
      const { gathering } = message
      if (gathering?.isOf(id)) {
        if (!selects(message)) return true
        return gathering.arrive(message, { timeoutMs, min: min(message), max: max(message), complete })
      }
      // A response flow runs on responses to copies and on others.
      if (!message.isFromBackend) context.warn('there are no copies of the message to gather')
      return true
    }
  },
})

function parseAggregate(element: XmlElement, parser: SequenceParser): AggregateSettings | undefined {
  const correlate = parser.only(element, 'correlateOn')
  if (correlate !== undefined) {
    parser.checkAttributes(correlate, ['expression'])
    parser.checkElements(correlate, [])
  }
  const selection = correlate === undefined ? null : parser.expression(correlate, 'expression')
  const condition = parser.only(element, 'completeCondition')
  const onComplete = parser.only(element, 'onComplete')
  if (onComplete === undefined) return parser.error(element, '', 'has no <onComplete>', 'add it')
  parser.checkAttributes(onComplete, ['expression', 'sequence', ...OF_RESULT])
  const expression = parser.expression(onComplete, 'expression')
  const branch = parser.branch(onComplete)
  const limits = parseCondition(condition, parser)
  if (expression === undefined || limits === undefined || selection === undefined) return undefined
  const enclosing = onComplete.attribute('enclosingElementProperty')
  const type = parser.choice(onComplete, 'aggregateElementType', ['root', 'child'], 'root')
  if (type === undefined) return undefined
  const joinsContent = type === 'child'
  const settings = { ...limits, id: element.attribute('id'), expression, enclosing, joinsContent, onComplete: branch }
  return selection === null ? settings : { ...settings, correlate: selection }
}

function parseCondition(
  condition: XmlElement | undefined,
  parser: SequenceParser,
): Pick<AggregateSettings, 'timeoutMs' | 'min' | 'max'> | undefined {
  if (condition === undefined) return { timeoutMs: 0, min: 0, max: 0 }
  parser.checkAttributes(condition, ['timeout'])
  parser.checkElements(condition, ['messageCount'])
  const messages = parser.only(condition, 'messageCount')
  if (messages !== undefined) parser.checkAttributes(messages, ['min', 'max'])
  const timeout = parseNumber(condition, 'timeout', SECONDS_MAX, parser)
  const min = messages === undefined ? 0 : parseCount(messages, 'min', parser)
  const max = messages === undefined ? 0 : parseCount(messages, 'max', parser)
  if (timeout === undefined || min === undefined || max === undefined) return undefined
  if (typeof min === 'number' && typeof max === 'number' && max > 0 && min > max)
    return parser.error(messages!, 'min', 'is more than max', 'correct it', String(min))
  return { timeoutMs: timeout * 1000, min, max }
}

/** 0 where it is not given, or -1. */
export function parseNumber(
  element: XmlElement,
  attribute: string,
  most: number,
  parser: SequenceParser,
): number | undefined {
  const given = element.attribute(attribute)
  if (given === '' || given === '-1') return 0
  if (/^\d{1,7}(?:\.\d{1,3})?$/.test(given) && Number(given) <= most) return Number(given)
  return parser.error(element, attribute, `expected a number up to ${most}`, 'write -1 for none', given)
}

/** A number, or an expression in braces. */
export function parseCount(element: XmlElement, attribute: string, parser: SequenceParser): Count | undefined {
  const isExpression = /^\$?\{/.test(element.attribute(attribute))
  return isExpression ? parser.textOrExpression(element, attribute) : parseNumber(element, attribute, COUNT_MAX, parser)
}

/** A copy for which the expression is false passes the aggregate; one in which it finds nothing fails. */
function compileSelection(correlate: Expression, context: CompileContext): (message: Message) => boolean {
  const evaluate = context.compileExpression(correlate)
  return message => {
    const found = evaluate(message)
    if (typeof found === 'boolean') return found
    const isNothing = typeof found === 'object' && found.kind === 'xml' ? found.nodes.length === 0 : found === ''
    if (!isNothing) return true
    throw new MediationFault({
      code: INCOMPLETE,
      message: 'Incomplete aggregation',
      cause: 'correlateOn finds nothing',
    })
  }
}

export function compileCount(count: Count, context: CompileContext): (message: Message) => number {
  if (typeof count === 'number') return () => count
  const evaluate = context.compileExpression(count)
  return message => {
    const text = textOf(evaluate(message))
    if (text === '' || text === '-1') return 0
    if (/^\d{1,4}$/.test(text) && Number(text) <= COUNT_MAX) return Number(text)
    context.warn(`a count of copies is no number up to ${COUNT_MAX}: any number is enough`)
    return 0
  }
}

/** Joins the copies into the first of them, and runs `onComplete`. */
export function compileCompletion(
  settings: Pick<AggregateSettings, 'expression' | 'enclosing' | 'joinsContent' | 'onComplete'>,
  context: CompileContext,
): Aggregation['complete'] {
  const { enclosing, joinsContent } = settings
  const find = context.compileExpression(settings.expression)
  const evaluate = joinsContent ? (message: Message) => contentOf(find(message)) : find
  const run = context.compileBranch(settings.onComplete)
  return (first, arrived) => {
    let isJson = true
    const part = (message: Message): Value => {
      const value = evaluate(message)
      isJson &&= message.bodyState !== 'unread' && message.payload?.kind === 'json'
      return value
    }
    join(first, arrived, part, enclosing === '' ? undefined : first.get('default', enclosing))
    if (enclosing === '') keepAll(first, isJson, context)
    return run(first)
  }
}

/**
 * Several elements without an enclosing one stand in a Body, of which formats other than SOAP write the first. Those of
 * JSON become an array; others are told.
 */
function keepAll(first: Message, isJson: boolean, { warn }: CompileContext): void {
  const { payload } = first
  if (payload?.kind !== 'xml' || soapVersion(payload.root, 'Envelope') === undefined) return
  const body = elementsOf(payload.root).find(({ name }) => localName(name) === 'Body')
  if (body === undefined || elementsOf(body).length < 2) return
  if (isJson) {
    first.json = bodyOf(payload.root).map(jsonOfXml)
    first.set('axis2', 'messageType', 'application/json')
    return
  }
  const type = textOf(first.get('axis2', 'messageType')) || textOf(first.get('transport', 'content-type'))
  if (['soap11', 'soap12'].includes(bodyFormatOf(type))) return
  warn('the aggregate has several elements, of which only SOAP takes more than the first: set enclosingElementProperty')
}

/** The contents of elements; any other value as it is. */
function contentOf(value: Value): Value {
  if (typeof value !== 'object' || value.kind === 'json') return value
  const isNode = (child: XmlChild) => typeof child === 'string' || isElement(child)
  return {
    kind: 'xml',
    nodes: value.nodes.flatMap(node => (typeof node === 'string' ? [node] : node.children.filter(isNode))),
  }
}

function join(first: Message, arrived: readonly Message[], evaluate: Evaluate, enclosing: Value | undefined): void {
  const parts = arrived.map(evaluate).filter(part => part !== '')
  if (parts.some(part => typeof part === 'object' && part.kind === 'xml')) joinXml(first, parts, enclosing)
  else {
    const items = parts.map(part => (typeof part === 'object' ? (part as { value: Json }).value : part))
    const name = enclosing === undefined ? '' : nameOf(enclosing)
    first.json = name === '' ? items : { [name]: items }
    first.set('axis2', 'messageType', 'application/json')
  }
}

/** Name of the enclosing element, or a text. */
function nameOf(enclosing: Value): string {
  const node = typeof enclosing === 'object' && enclosing.kind === 'xml' ? enclosing.nodes[0] : undefined
  return node === undefined || typeof node === 'string' ? textOf(enclosing) : localName(node.name)
}

/** Without an enclosing element the parts stand in the Body of an Envelope, as the language has it. */
function joinXml(first: Message, parts: readonly Value[], enclosing: Value | undefined): void {
  const nodes = parts.flatMap((part): readonly XmlNode[] =>
    typeof part === 'object' && part.kind === 'xml' ? part.nodes : [textOf(part)],
  )
  const elements = nodes.filter((node): node is XmlElementNode => typeof node !== 'string')
  const outer = typeof enclosing === 'object' && enclosing.kind === 'xml' ? enclosing.nodes[0] : undefined
  const [only, second] = elements
  const { payload } = first
  const version = payload?.kind === 'xml' ? soapVersion(payload.root, 'Envelope') : undefined
  let root: XmlElementNode
  if (outer !== undefined && typeof outer !== 'string') {
    root = xmlElement(outer.name, [...elementsOf(outer), ...nodes], outer.attributes)
  } else if (version === undefined && only !== undefined && second === undefined) root = only
  else root = envelope(version ?? 'soap11', elements)
  first.payload = { kind: 'xml', root }
}
