/**
 * Requests whose clients get 202 while the request is sent (FORCE_SC_ACCEPTED, OUT_ONLY): a task in the background
 * sends them, and drops the response. Runs on workers.
 */
import { sendOn } from './backend-calls.ts'
import { sendInBackground } from './copies.ts'
import { OWN_ENDPOINT } from './endpoint-plan.ts'
import type { CompileContext, Run } from './mediator.ts'
import type { Message } from './message.ts'
import { FORCE_SC_ACCEPTED } from './transport-properties.ts'
import { textOf } from './value.ts'
import type { FlowResult } from './worker-task.ts'

/** Properties with the endpoint that `<send>` has chosen, and its onError, for the task in the background. */
const ENDPOINT = 'accepted.endpoint'
const ON_ERROR = 'accepted.onError'

/** Sends the request that `sendLater` has handed over. */
export function sendAccepted(context: CompileContext): Run {
  return withOnError(async message => {
    const name = taken(message, ENDPOINT)
    // As without the property, the endpoint of the API gets a request with a URL in To.
    await sendOn(message, { name: name === '' ? OWN_ENDPOINT : name })
    return true
  }, context)
}

/** Runs in the background, with the onError that `sendLater` has handed over. That one may send to other endpoints. */
export function withOnError(run: Run, context: CompileContext): Run {
  return async message => {
    message.sentOnError = taken(message, ON_ERROR)
    const fail = async (error: unknown): Promise<void> => {
      await context.handleFailure(message, error)
      const { outcome, endpoint: name } = message
      if (outcome !== 'sent' || name === '') return
      message.outcome = 'ended'
      await sendOn(message, { name }).catch(fail)
    }
    try {
      return await run(message)
    } catch (error) {
      await fail(error)
      return false
    }
  }
}

function taken(message: Message, name: string): string {
  const value = textOf(message.get('default', name))
  message.remove('default', name)
  return value
}

/** Tells whether the client gets 202 in place of the result of its request flow. */
export function isAccepted(message: Message, kind: FlowResult['kind']): boolean {
  if (message.sendsLater === '' || kind === 'faults') return false
  return kind === 'continues' || textOf(message.get('axis2', FORCE_SC_ACCEPTED)) === 'true'
}

/** Hands a request that goes on over to a task in the background. Rejects with MediationFault. */
export async function sendLater(message: Message): Promise<void> {
  if (message.endpoint !== '') message.set('default', ENDPOINT, message.endpoint)
  if (message.sentOnError !== '') message.set('default', ON_ERROR, message.sentOnError)
  await sendInBackground(message, message.sendsLater)
}
