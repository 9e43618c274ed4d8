/**
 * `<callout>`: a blocking call whose request is what `<source>` finds; the response becomes a property, or the message
 * where `<target>` has no key.
 */
import type { XmlElement } from '../../config/xml.ts'
import { applyFormat, callBackend } from '../backend-calls.ts'
import { endpointOfUrl } from '../endpoint-parser.ts'
import type { SequenceEndpoint } from '../endpoint-plan.ts'
import type { Expression } from '../expression.ts'
import { mediator } from '../mediator.ts'
import type { Message } from '../message.ts'
import { payloadOfValue, valueOfPayload } from '../payload-value.ts'
import type { SequenceParser } from '../sequence-parser.ts'

interface CalloutSettings {
  readonly endpoint: SequenceEndpoint
  /** '' for none. */
  readonly action: string
  readonly passesHeaders: boolean
  /** null: the payload of the message. */
  readonly source: Expression | null
  /** Property of the response; '' for the message. */
  readonly key: string
}

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
    if (to !== undefined) parser.checkAttributes(to, ['xpath', 'key', 'type'])
    if (to?.has('xpath')) return parser.error(to, 'xpath', 'is not supported', 'write key, and <enrich> behind it')
    const ofProperty = from?.has('key') === true
    const source: Expression | null | undefined = ofProperty
      ? { kind: 'property', scope: 'default', name: from.attribute('key') }
      : from?.has('xpath')
        ? parser.expression(from, 'xpath')
        : null
    if (endpoint === undefined || passesHeaders === undefined || source === undefined) return undefined
    parser.use(endpoint)
    return { endpoint, action: element.attribute('action'), passesHeaders, source, key: to?.attribute('key') ?? '' }
  },

  needs: () => 'worker',

  compile({ endpoint, action, passesHeaders, source, key }, context) {
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
      if (key === '') message.becomeResponse(response)
      else message.set('default', key, valueOfPayload(response.payload))
      return true
    }
  },
})

function endpointOfAddress(element: XmlElement, parser: SequenceParser): SequenceEndpoint | undefined {
  const url = parser.required(element, 'serviceURL')
  return url === undefined ? undefined : endpointOfUrl(element, 'serviceURL', url, 'POST', parser)
}

/** Removes the fields, but for the type of the content. */
function withoutFields(request: Message): void {
  const names = new Set([...request.keptFields(), ...request.fields()].map(([name]) => name))
  for (const name of names) if (name.toLowerCase() !== 'content-type') request.remove('transport', name)
}
