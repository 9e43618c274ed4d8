/**
 * `<send>`: sends the message to its destination, or to an endpoint of its own, a fault to the client, and ends the
 * sequence. The task itself sends a response that names an endpoint, and a message that names what receives the answer.
 */
import { withOnError } from '../accepted-requests.ts'
import { applyFormat, sendBackend, sendOn, servicesOf } from '../backend-calls.ts'
import { sendInBackground } from '../copies.ts'
import { compileEndpointChoice } from '../endpoint-choice.ts'
import { DESTINATION, type Recipient, RECIPIENT_VARIABLE, type SequenceEndpoint } from '../endpoint-plan.ts'
import type { Expression } from '../expression.ts'
import { MediationFault } from '../mediation-fault.ts'
import { mediator, type Run } from '../mediator.ts'
import type { Message } from '../message.ts'
import { isList, sendToAll } from '../recipients.ts'
import { textOf } from '../value.ts'

interface SendSettings {
  /** null: the destination of the message. */
  readonly endpoint: SequenceEndpoint | null
  /** Sequence that runs on what the endpoint answers: its name, or an expression that finds it. Left out: none. */
  readonly receive?: string | Expression
}

const NOT_MEDIATED = 102544

export const send = mediator<SendSettings>({
  name: 'send',
  attributes: ['buildmessage', 'receive'],
  elements: ['endpoint'],

  parse(element, parser) {
    const given = parser.only(element, 'endpoint')
    const endpoint = given === undefined ? null : parser.endpoint(given, true)
    if (endpoint === undefined) return undefined
    if (!element.has('receive')) return { endpoint }
    const receive = parser.textOrExpression(element, 'receive')
    if (receive === undefined) return undefined
    if (endpoint === null) parser.use(DESTINATION)
    if (receive.kind !== 'literal') return { endpoint, receive }
    const name = String(receive.value)
    parser.calls.add(name)
    return { endpoint, receive: name }
  },

  needs: ({ endpoint, receive }) => (endpoint === null && receive === undefined ? 'heads' : 'worker'),

  compile({ endpoint, receive }, context) {
    const evaluate = typeof receive === 'object' ? context.compileExpression(receive) : null
    const choose = endpoint === null ? () => null : compileEndpointChoice(endpoint, context)
    const exchange = async (message: Message, chosen: Recipient | null, address: string): Promise<boolean> => {
      const key = typeof receive === 'object' ? textOf(evaluate!(message)) : receive
      // Nothing is sent whose answer would have no receiver.
      if (key !== undefined && !context.hasSequence(key)) {
        const cause = 'there is no sequence of the name that receive finds'
        throw new MediationFault({ code: NOT_MEDIATED, message: 'Mediation failed', cause })
      }
      const { isResponse } = message
      const request = message.copy()
      if (address !== '') request.set('default', RECIPIENT_VARIABLE, address)
      applyFormat(request, chosen?.form ?? null)
      const response = chosen === null ? await sendBackend(request) : await sendOn(request, chosen)
      // A copy that nobody waits for any more has lost its services meanwhile.
      const services = servicesOf(message)
      message.becomeResponse(response)
      if (key === undefined && services.flow === 'request' && !isResponse) return services.respond(message)
      message.task = { ...services, flow: 'response' }
      message.isFromBackend = true
      if (typeof key === 'string') await context.runSequence(key, message)
      // As at the end of a response flow.
      if (message.outcome === 'ended' || message.outcome === 'sent') message.outcome = 'responded'
      return false
    }
    const run: Run = message => {
      const { isResponse } = message
      const isAnswered = receive !== undefined || (isResponse && !message.isSentByCopier)
      const chosen = choose(message)
      // Copies that an aggregate may gather bring their answers to it.
      if (receive !== undefined && isSentLater(message) && message.gathering === null) {
        message.outcome = 'sent'
        message.sendsLater = answered
        return false
      }
      if (isList(chosen) && receive === undefined && isSentLater(message)) return accept(message)
      if (isList(chosen)) return sendToAll(message, chosen, context, exchange)
      // Only the task can send once more, with another token.
      const isRetried = chosen?.form?.oauth !== undefined && !message.isSentByCopier && !isSentLater(message)
      const isExchanged = isAnswered && (endpoint !== null || !isResponse)
      if (isExchanged || isRetried) return exchange(message, chosen, '')
      if (receive !== undefined) context.warn('receive has no effect: a response without an endpoint is for the client')
      message.outcome = 'sent'
      message.endpoint = chosen?.name ?? ''
      applyFormat(message, chosen?.form ?? null)
      return false
    }
    // A task in the background sends the request, and runs the sequence that receives its answer.
    const answered = receive === undefined ? '' : context.define(withOnError(run, context))
    // A task in the background sends to a list whose answers nothing receives.
    const later = endpoint === null || receive !== undefined ? '' : context.define(run)
    const accept = async (message: Message): Promise<boolean> => {
      await sendInBackground(message, later)
      message.outcome = 'dropped'
      return false
    }
    return run
  },
})

/** The client has its 202 before a task in the background sends the message. */
function isSentLater(message: Message): boolean {
  return message.sendsLater !== '' && !message.isResponse && servicesOf(message).flow === 'request'
}
