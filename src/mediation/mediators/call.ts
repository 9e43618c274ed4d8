/**
 * `<call>`: sends the message, or what `<source>` says, to an endpoint and waits for the response, which becomes the
 * message, or what `<target>` says. The request goes over the gateway's own connections, with `blocking="true"` too.
 */
import type { XmlElement } from '../../config/xml.ts'
import { applyFormat, callBackend } from '../backend-calls.ts'
import { compileEndpointChoice } from '../endpoint-choice.ts'
import { DESTINATION, type Recipient, RECIPIENT_VARIABLE, type SequenceEndpoint } from '../endpoint-plan.ts'
import type { Expression } from '../expression.ts'
import type { Evaluate } from '../expression-compiler.ts'
import { mediator } from '../mediator.ts'
import type { Message } from '../message.ts'
import { payloadOfValue, valueOfPayload } from '../payload-value.ts'
import { isList, sendToAll } from '../recipients.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import type { MediatorPlan } from '../sequence-plan.ts'
import { writeXml } from '../xml-tree.ts'

/** The payload that is sent. `inline`: text of the content type. */
type Source =
  | { readonly kind: 'message' }
  | { readonly kind: 'value'; readonly value: Expression; readonly contentType: string }

/** Where the response goes. */
type Target =
  | { readonly kind: 'message' }
  | { readonly kind: 'property'; readonly scope: 'default' | 'variable'; readonly name: string }

interface CallSettings {
  readonly endpoint: SequenceEndpoint
  readonly isBlocking: boolean
  readonly source: Source
  readonly target: Target
  /** The mediators up to `<aggregate>`, which run on the response of each recipient. Left out: none. */
  readonly gathers?: readonly MediatorPlan[]
}

export const call = mediator<CallSettings>({
  name: 'call',
  attributes: ['blocking', 'initAxis2ClientOptions'],
  elements: ['endpoint', 'source', 'target'],

  parse(element, parser) {
    const isBlocking = parser.flag(element, 'blocking')
    const given = parser.only(element, 'endpoint')
    const endpoint = given === undefined ? parser.use(DESTINATION) : parser.endpoint(given, true)
    const source = parseSource(parser.only(element, 'source'), parser)
    const target = parseTarget(parser.only(element, 'target'), parser)
    if (endpoint === undefined || isBlocking === undefined || source === undefined || target === undefined) {
      return undefined
    }
    return { endpoint, isBlocking, source, target }
  },

  needs: () => 'worker',

  compile({ endpoint, isBlocking, source, target, gathers = [] }, context) {
    const evaluate = source.kind === 'value' ? context.compileExpression(source.value) : null
    const choose = compileEndpointChoice(endpoint, context)
    const gather = gathers.length === 0 ? () => true : context.compileAll(gathers)
    const exchange = async (message: Message, { name, form }: Recipient, address: string): Promise<void> => {
      const request = message.copy()
      if (source.kind === 'value') setPayload(request, evaluate!, source.contentType)
      if (address !== '') request.set('default', RECIPIENT_VARIABLE, address)
      applyFormat(request, form)
      const response = await callBackend(request, { name }, isBlocking)
      if (target.kind === 'message') message.becomeResponse(response)
      else {
        message.set(target.scope, target.name, valueOfPayload(response.payload))
        // The message stays the request; its sequence asks by this property what became of the call.
        message.set('axis2', 'HTTP_SC', response.head.status)
      }
    }
    return async message => {
      const chosen = choose(message)
      if (isList(chosen)) {
        return sendToAll(message, chosen, context, async (copy, recipient, address) => {
          await exchange(copy, recipient, address)
          return gather(copy)
        })
      }
      await exchange(message, chosen, '')
      return gather(message)
    }
  },
})

function setPayload(request: Message, evaluate: Evaluate, contentType: string): void {
  request.payload = payloadOfValue(evaluate(request), contentType, request)
  if (contentType !== '') request.set('axis2', 'messageType', contentType)
}

function parseSource(element: XmlElement | undefined, parser: SequenceParser): Source | undefined {
  if (element === undefined) return { kind: 'message' }
  parser.checkAttributes(element, ['type', 'contentType'])
  const type = parser.choice(element, 'type', ['body', 'property', 'inline', 'custom'], 'body')
  const contentType = element.attribute('contentType')
  if (type === undefined || type === 'body') return type === undefined ? undefined : { kind: 'message' }
  const [inner] = element.children
  if (type === 'inline') {
    const value = inner === undefined ? element.text : writeXml(parser.tree(inner))
    const isXml = inner !== undefined && contentType === ''
    return { kind: 'value', value: { kind: 'literal', value }, contentType: isXml ? 'application/xml' : contentType }
  }
  parser.checkElements(element, [])
  if (element.text === '') return parser.error(element, '', 'is empty', 'write a name or an expression in it')
  const value: Expression | undefined =
    type === 'property'
      ? { kind: 'property', scope: 'default', name: element.text }
      : parser.expressionIn(element, element.text)
  return value === undefined ? undefined : { kind: 'value', value, contentType }
}

function parseTarget(element: XmlElement | undefined, parser: SequenceParser): Target | undefined {
  if (element === undefined) return { kind: 'message' }
  parser.checkAttributes(element, ['type'])
  parser.checkElements(element, [])
  const type = parser.choice(element, 'type', ['body', 'property', 'variable'], 'body')
  if (type === undefined || type === 'body') return type === undefined ? undefined : { kind: 'message' }
  if (element.text === '') return parser.error(element, '', 'is empty', 'write the name in it')
  return { kind: 'property', scope: type === 'property' ? 'default' : 'variable', name: element.text }
}
