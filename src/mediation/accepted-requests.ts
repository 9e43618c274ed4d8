/**
 * Requests whose clients get 202 while the request is sent (FORCE_SC_ACCEPTED, OUT_ONLY): a task in the background
 * sends them, and drops the response. Runs on workers.
 */
import { sendOn } from './backend-calls.ts'
import { runInBackground } from './copies.ts'
import { OWN_ENDPOINT } from './endpoint-plan.ts'
import type { Run } from './mediator.ts'
import type { Message } from './message.ts'
import { FORCE_SC_ACCEPTED } from './transport-properties.ts'
import { textOf } from './value.ts'
import type { FlowResult } from './worker-task.ts'

/** Property with the endpoint that `<send>` has chosen, for the task in the background. */
const ENDPOINT = 'accepted.endpoint'

/** Sends the request that `sendLater` has handed over. */
export const sendAccepted: Run = async message => {
  const name = textOf(message.get('default', ENDPOINT))
  message.remove('default', ENDPOINT)
  // As without the property, the endpoint of the API gets a request with a URL in To.
  await sendOn(message, { name: name === '' ? OWN_ENDPOINT : name })
  return true
}

/** Tells whether the client gets 202 in place of the result of its request flow. */
export function isAccepted(message: Message, kind: FlowResult['kind']): boolean {
  if (message.sendsLater === '' || kind === 'faults') return false
  return kind === 'continues' || textOf(message.get('axis2', FORCE_SC_ACCEPTED)) === 'true'
}

/** Hands a request that goes on over to a task in the background. Rejects with MediationFault. */
export async function sendLater(message: Message): Promise<void> {
  if (message.endpoint !== '') message.set('default', ENDPOINT, message.endpoint)
  await runInBackground([message], message.sendsLater)
}
