/**
 * `<send>`: sends the message to its destination, or to an endpoint of its own, a fault to the client, and ends the
 * sequence.
 */
import { applyFormat } from '../backend-calls.ts'
import type { SequenceEndpoint } from '../endpoint-plan.ts'
import { mediator } from '../mediator.ts'

interface SendSettings {
  /** null: the destination of the message. */
  readonly endpoint: SequenceEndpoint | null
}

export const send = mediator<SendSettings>({
  name: 'send',
  attributes: ['buildmessage'],
  elements: ['endpoint'],

  parse(element, parser) {
    const given = parser.only(element, 'endpoint')
    const endpoint = given === undefined ? null : parser.endpoint(given)
    return endpoint === undefined ? undefined : { endpoint }
  },

  needs: ({ endpoint }) => (endpoint === null ? 'heads' : 'worker'),

  compile: ({ endpoint }) => {
    return message => {
      message.outcome = 'sent'
      message.endpoint = endpoint?.name ?? ''
      applyFormat(message, endpoint?.form ?? null)
      return false
    }
  },
})
