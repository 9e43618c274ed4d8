/** Calls of mediators to endpoints: the request is a message, and so is its response. Runs on workers. */
import { type CallChain, FIRST_CALL } from '../http1/call-chain.ts'
import { CallFailed } from '../runtime/call-channel.ts'
import {
  DESTINATION,
  type EndpointForm,
  type EndpointFormat,
  OWN_ENDPOINT,
  type SequenceEndpoint,
} from './endpoint-plan.ts'
import { setProperties } from './endpoint-properties.ts'
import { MediationFault } from './mediation-fault.ts'
import { methodOfBody } from './message-transfer.ts'
import { checkSoapFault } from './soap-fault-check.ts'
import type { Message } from './message.ts'
import type { TaskCall, TaskCallResults, TaskServices } from './task-calls.ts'
import { textOf } from './value.ts'
import type { FlowTask, MessageState, TransferredMessage } from './worker-task.ts'

/** Message type of a format; '': that of the message. */
const TYPES: Readonly<Record<EndpointFormat, string>> = {
  kept: '',
  get: '',
  soap11: 'text/xml',
  soap12: 'application/soap+xml',
  pox: 'application/xml',
}
/** Properties that URI templates read. */
const OF_TEMPLATES = /^(?:uri\.var\.|query\.param\.|API_ELECTED_RESOURCE$)/

/** The services of the task; a copy that nobody waits for any more has none. */
export function servicesOf({ task }: Message): TaskServices {
  if (task !== null) return task
  const cause = 'nobody waits for the message any more'
  throw new MediationFault({ message: 'Error in Sender', cause })
}

/** The calls around a task, in which its own calls are nested. */
export function callsOf({ calls }: FlowTask): CallChain {
  return calls ?? FIRST_CALL
}

/** Asks the reactor. Rejects with MediationFault. */
export async function ask<One extends TaskCall>(
  services: TaskServices,
  call: One,
): Promise<TaskCallResults[One['kind']]> {
  try {
    return await services.call(call)
  } catch (error) {
    if (!(error instanceof CallFailed)) throw error
    throw new MediationFault({ message: 'Error in Sender', cause: error.message })
  }
}

/** Prepares a request for an endpoint: its properties, and content and method of its format. */
export function applyFormat(request: Message, form: EndpointForm | null): void {
  const format = form?.format ?? 'kept'
  if (form !== null) setProperties(request, form)
  if (form !== null && form.method !== '') request.namesMethod = true
  if (format === 'get') request.set('axis2', 'NO_ENTITY_BODY', true)
  else if (TYPES[format] !== '') request.set('axis2', 'messageType', TYPES[format])
}

type Named = Pick<SequenceEndpoint, 'name'>

/** Sends the request and waits for its response, whatever its status. Rejects with MediationFault. */
export function callBackend(request: Message, endpoint: Named, isBlocking: boolean): Promise<Message> {
  return exchange(request, endpoint, isBlocking, false)
}

/** As `callBackend`, for a message that goes on: a client's request keeps what the gateway tells of its way. */
export function sendOn(request: Message, endpoint: Named): Promise<Message> {
  return exchange(request, endpoint, false, request.receivedHead.status === 0)
}

async function exchange(
  request: Message,
  endpoint: Named,
  isBlocking: boolean,
  isForwarded: boolean,
): Promise<Message> {
  const services = servicesOf(request)
  const transferred = services.transfer(request, isBlocking)
  const secrets = [...request.secrets]
  const message = { ...transferred, status: 0, reason: '', state: stateForTemplates(transferred, request) }
  const result = await ask(services, {
    kind: 'backend',
    api: services.api,
    endpoint: endpoint.name,
    ...(endpoint.name === OWN_ENDPOINT ? { own: services.own } : {}),
    isBlocking,
    ...(isForwarded ? { isForwarded: true as const } : {}),
    calls: services.calls,
    ...(services.trace === null ? {} : { trace: services.trace }),
    changed: [...request.changedNames()],
    client: textOf(request.get('axis2', 'REMOTE_ADDR')),
    message,
    bodyMethod: methodOfBody(request),
    ...(secrets.length === 0 ? {} : { secrets }),
  })
  if (result.kind === 'fault') throw new MediationFault(result.fault)
  const response = services.received(result.message, isBlocking)
  checkSoapFault(request, response)
  return response
}

/** As `sendOn`, without an endpoint of its own: to `To`, where that is a URL, else to the endpoint of the API. */
export function sendBackend(request: Message): Promise<Message> {
  return sendOn(request, { name: hasDestination(request) ? DESTINATION.name : OWN_ENDPOINT })
}

/** A sequence has set a URL as `To`. */
export function hasDestination({ to }: Message): boolean {
  return /^https?:/i.test(to)
}

/** The properties that the reactor needs: the others may be long. */
function stateForTemplates({ state }: TransferredMessage, request: Message): MessageState {
  const { default: own, to } = withVariables(state, request)
  const read = own.filter(([name]) => OF_TEMPLATES.test(name))
  const kept = { default: read, axis2: [], operation: [], variables: [] }
  return to === undefined ? kept : { ...kept, to }
}

const TEMPLATES = ['API_ELECTED_RESOURCE', 'REST_API_CONTEXT']
const VARIABLE = /\{([^{}/]+)\}/g

/** The state with the variables of the path that was received, because the message may leave with another path. */
export function withVariables(state: MessageState, message: Message): MessageState {
  const templates = TEMPLATES.map(name => textOf(message.get('default', name))).join('/')
  const names = new Set(Array.from(templates.matchAll(VARIABLE), ([, name]) => `uri.var.${name}`))
  for (const [name] of state.default) names.delete(name)
  const found = [...names].flatMap(name => {
    const value = message.get('default', name)
    return value === undefined ? [] : [[name, value] as const]
  })
  return found.length === 0 ? state : { ...state, default: [...state.default, ...found] }
}
