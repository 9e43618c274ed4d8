/**
 * `<callout>`: a blocking call whose request is what `<source>` finds; the response becomes a property, takes the place
 * that `<target>` finds, or becomes the message.
 */
import type { XmlElement } from '../../config/xml.ts'
import { applyFormat, callBackend } from '../backend-calls.ts'
import { endpointOfUrl } from '../endpoint-parser.ts'
import type { SequenceEndpoint } from '../endpoint-plan.ts'
import type { Expression, JsonPath, XPathExpression } from '../expression.ts'
import { compileNodes } from '../expression-compiler.ts'
import { editAll, locate } from '../json-edit.ts'
import { payloadElement } from '../json-xml.ts'
import { type CompileContext, mediator } from '../mediator.ts'
import type { Message, Payload } from '../message.ts'
import { jsonOfPayload, payloadOfValue, valueOfPayload } from '../payload-value.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import { bodyOf, soapVersion } from '../soap.ts'
import { XmlDocument } from '../xml-edit.ts'
import type { XmlElementNode } from '../xml-tree.ts'

interface CalloutSettings {
  readonly endpoint: SequenceEndpoint
  /** '' for none. */
  readonly action: string
  readonly passesHeaders: boolean
  /** null: the payload of the message. */
  readonly source: Expression | null
  readonly target: Target
}

/** Where the response goes; `place`: its content is in place of what is found. */
type Target =
  | { readonly kind: 'message' }
  | { readonly kind: 'property'; readonly name: string }
  | { readonly kind: 'place'; readonly at: JsonPath | XPathExpression }

export const callout = mediator<CalloutSettings>({
  name: 'callout',
  attributes: ['serviceURL', 'action', 'endpointKey', 'passHeaders', 'initAxis2ClientOptions', 'useServerConfig'],
  elements: ['endpoint', 'source', 'target', 'configuration'],

  parse(element, parser) {
    const inline = parser.only(element, 'endpoint')
    const name = element.attribute('endpointKey')
    const endpoint =
      inline !== undefined
        ? parser.endpoint(inline)
        : name === ''
          ? endpointOfAddress(element, parser)
          : { name, form: null }
    const passesHeaders = parser.flag(element, 'passHeaders')
    const from = parser.only(element, 'source')
    const to = parser.only(element, 'target')
    if (from !== undefined) parser.checkAttributes(from, ['xpath', 'key', 'type'])
    const target = parseTarget(to, parser)
    const ofProperty = from?.has('key') === true
    const source: Expression | null | undefined = ofProperty
      ? { kind: 'property', scope: 'default', name: from.attribute('key') }
      : from?.has('xpath')
        ? parser.expression(from, 'xpath')
        : null
    if (endpoint === undefined || passesHeaders === undefined || source === undefined) return undefined
    if (target === undefined) return undefined
    parser.use(endpoint)
    return { endpoint, action: element.attribute('action'), passesHeaders, source, target }
  },

  needs: () => 'worker',

  compile({ endpoint, action, passesHeaders, source, target }, context) {
    const receive = compileTarget(target, context)
    const evaluate = source === null ? null : context.compileExpression(source)
    return async message => {
      const request = message.copy()
      if (evaluate !== null) request.payload = payloadOfValue(evaluate(message), '', message)
      if (!passesHeaders) withoutFields(request)
      if (action !== '') request.set('transport', 'SOAPAction', `"${action}"`)
      request.set('axis2', 'HTTP_METHOD', 'POST')
      request.set('axis2', 'REST_URL_POSTFIX', '')
      applyFormat(request, endpoint.form)
      const response = await callBackend(request, endpoint, true)
      receive(message, response)
      return true
    }
  },
})

function parseTarget(to: XmlElement | undefined, parser: SequenceParser): Target | undefined {
  if (to === undefined) return { kind: 'message' }
  parser.checkAttributes(to, ['xpath', 'key', 'type'])
  if (!to.has('xpath')) return to.has('key') ? { kind: 'property', name: to.attribute('key') } : { kind: 'message' }
  const expression = parser.expression(to, 'xpath')
  if (expression === undefined || expression.kind === 'xpath') return expression && { kind: 'place', at: expression }
  if (expression.kind === 'json-path') return { kind: 'place', at: expression.path }
  return parser.error(to, 'xpath', 'is no path into the body', 'write //a or json-eval($.a)', to.attribute('xpath'))
}

/** A message that stays the request has the status of the response in HTTP_SC. */
function compileTarget(target: Target, context: CompileContext): (message: Message, response: Message) => void {
  if (target.kind === 'message') return (message, response) => message.becomeResponse(response)
  const put = target.kind === 'place' ? compilePlace(target.at, context) : null
  return (message, response) => {
    if (target.kind === 'property') message.set('default', target.name, valueOfPayload(response.payload))
    else if (put?.(message, response.payload) === false) context.warn('the target of the response is not there')
    message.set('axis2', 'HTTP_SC', response.head.status)
  }
}

/** The closure returns false where there is no such place. */
function compilePlace(at: JsonPath | XPathExpression, { warn }: CompileContext) {
  if (!('kind' in at)) {
    return (message: Message, payload: Payload | null): boolean => {
      const { json } = message
      const places = json === undefined ? [] : locate(at, json)
      if (places.length > 0) message.json = editAll(json!, places, () => jsonOfPayload(payload))
      return places.length > 0
    }
  }
  const find = compileNodes(at, warn)
  return (message: Message, payload: Payload | null): boolean => {
    const document = new XmlDocument(message.payload)
    const [place] = find(message, document.root)
    if (place === undefined) return false
    document.replace(place, contentOf(payload))
    message.payload = document.payload()
    return true
  }
}

/** Returns the content of a response: of SOAP, the elements of the Body. */
function contentOf(payload: Payload | null): readonly XmlElementNode[] {
  if (payload === null) return []
  const root = payloadElement(payload)
  return soapVersion(root, 'Envelope') === undefined ? [root] : bodyOf(root)
}

function endpointOfAddress(element: XmlElement, parser: SequenceParser): SequenceEndpoint | undefined {
  const url = parser.required(element, 'serviceURL')
  return url === undefined ? undefined : endpointOfUrl(element, 'serviceURL', url, 'POST', parser)
}

/** Removes the fields, but for the type of the content. */
function withoutFields(request: Message): void {
  const names = new Set([...request.keptFields(), ...request.fields()].map(([name]) => name))
  for (const name of names) if (name.toLowerCase() !== 'content-type') request.remove('transport', name)
}
