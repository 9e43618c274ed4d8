/**
 * Checks what a client sends over the WebSocket connection of a GraphQL API: each message that asks for an operation
 * is admitted as a request is. A refused one is answered in the client's subprotocol, and the connection stays.
 */
import { FAULT, type FaultCode } from '../../faults/error-codes.ts'
import { faultDetails } from '../../faults/fault-details.ts'
import { fieldNamed } from '../../http1/field-kinds.ts'
import type { Head } from '../../http1/head.ts'
import { arena } from '../../http1/llhttp.ts'
import { IS_MESSAGE, MESSAGE_ID, OPERATIONS } from '../../mediation/graphql/graphql-sequence.ts'
import { textOf } from '../../mediation/value.ts'
import type { WorkerService } from '../../mediation/worker-service.ts'
import { type FlowResult, type FlowTask, type MessageState, NO_STATE } from '../../mediation/worker-task.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { HeadEdit } from '../exchange/head-edit.ts'
import type { MessageCheck, MessageVerdict } from '../exchange/message-inspection.ts'
import { type Outcome, type Refusal, refusal } from '../exchange/outcome.ts'
import { type BackendTunnelPeer, declineTunnel } from '../exchange/tunnel-peer.ts'
import { refusalOfWorker, reportRefusal } from './mediation-refusals.ts'
import { type Admission, failureOf, type MediationServices, type OperationFlows } from './mediation-services.ts'

/** The subprotocols whose messages are understood. */
const SUBPROTOCOLS = ['graphql-transport-ws', 'graphql-ws']
const LEGACY = 'graphql-ws'
/** Types of messages that ask for nothing, of both subprotocols. */
const HARMLESS = ['ping', 'pong', 'complete', 'stop', 'connection_init', 'connection_terminate']
/** Longer messages are parsed on a worker alone. */
const SHORT_CHARACTERS = 4096
/** The error of `graphql-transport-ws` for messages that break it. */
const INVALID_MESSAGE = 4400
/** RFC 6455 7.4.1, registry: try again later. */
const TRY_AGAIN = 1013
const FAILED = refusal(102544)
/** The backend has chosen an extension that was not offered (RFC 6455 9.1). */
const UNASKED = refusal(101506)
const PROTOCOL = 'sec-websocket-protocol'

/** A message that is coded by an extension cannot be read (RFC 7692). */
const EXTENSIONS = 'sec-websocket-extensions'
export const WITHOUT_EXTENSIONS = new HeadEdit([{ name: EXTENSIONS, value: undefined }], {})

type Field = readonly [name: string, value: string]

export function isExtension([name]: Field): boolean {
  return name.toLowerCase() === EXTENSIONS
}

/** A field by which both ends open the connection (RFC 6455 4.1). Sequences may choose among subprotocols. */
export function isOfHandshake([name]: Field): boolean {
  const lower = name.toLowerCase()
  return lower.startsWith('sec-websocket-') && lower !== PROTOCOL
}

interface SubscriptionContext {
  readonly exchange: Exchange
  /** Identity of the API. */
  readonly api: string
  readonly admission: Admission
  readonly mediate: WorkerService['mediate']
  /** Logs why a message is refused. */
  readonly refused: (reason: Refusal, cause: string) => void
}

/** Whether messages that come over the connection may ask for operations. */
export function opensSubscriptions({ admission }: Pick<OperationFlows, 'admission'>, { upgrade }: Exchange): boolean {
  return admission !== null && upgrade !== ''
}

/** Whether the client offers no other subprotocols, in the head of its request. */
export function offersSubscriptions(head: Head): boolean {
  const offered = subprotocolsOf(head)
  return offered.length > 0 && offered.every(name => SUBPROTOCOLS.includes(name))
}

/**
 * Decides on a tunnel whose 101 has come. `check`: of its messages; null: none is needed. `isRefused`: the client gets
 * a fault in place of the 101.
 */
export function checkTunnel(
  head: Head,
  backend: BackendTunnelPeer,
  exchange: Exchange,
  { admission, api }: OperationFlows,
  services: MediationServices,
): { readonly check: MessageCheck | null; readonly isRefused: boolean } {
  const service = services.workers[exchange.isSecured ? 'secured' : 'plain']
  const { check, refused } = checkOfTunnel(head, {
    ...{ exchange, api, admission: admission! },
    mediate: (task, bytes, wait) => service.mediate(task, bytes, wait),
    refused: (reason, cause) => reportRefusal(services.report, exchange, 'operation refused', cause, reason),
  })
  if (refused === undefined) return { check, isRefused: false }
  declineTunnel(exchange, backend)
  services.refuse(exchange, { refusal: refused, failure: null, sequence: null })
  return { check, isRefused: true }
}

/** By the head of the 101. */
function checkOfTunnel(
  head: Head,
  context: SubscriptionContext,
): { readonly check: MessageCheck | null; readonly refused: Refusal | undefined } {
  if (fieldNamed(arena.bytes, head, EXTENSIONS) >= 0) return { check: null, refused: UNASKED }
  const [chosen = '', ...others] = subprotocolsOf(head)
  if (others.length === 0 && SUBPROTOCOLS.includes(chosen)) {
    return { check: new SubscriptionMessages(chosen, context), refused: undefined }
  }
  // The messages of another subprotocol are not understood.
  return { check: null, refused: context.admission.admitConnection(context.exchange) }
}

function subprotocolsOf(head: Head): readonly string[] {
  const { bytes } = arena
  const values: string[] = []
  for (let field = fieldNamed(bytes, head, PROTOCOL); field >= 0; field = fieldNamed(bytes, head, PROTOCOL, field + 1))
    values.push(...head.value(bytes, field).split(','))
  return values.map(value => value.trim()).filter(value => value !== '')
}

class SubscriptionMessages implements MessageCheck {
  readonly #subprotocol: string
  readonly #context: SubscriptionContext
  /** Ends the check of a message on a worker; null: none is under way. */
  #giveUp: (() => void) | null = null

  constructor(subprotocol: string, context: SubscriptionContext) {
    this.#subprotocol = subprotocol
    this.#context = context
  }

  check(text: string, length: number): MessageVerdict | Promise<MessageVerdict> {
    return text.length <= SHORT_CHARACTERS && isHarmless(text) ? PASSES : this.#ask(text, length)
  }

  end(): void {
    this.#giveUp?.()
    this.#giveUp = null
  }

  async #ask(text: string, length: number): Promise<MessageVerdict> {
    const { api, admission, mediate } = this.#context
    try {
      const result = await mediate(taskOf(api, admission.sequence, text), length, {
        entered: giveUp => {
          this.#giveUp = giveUp
        },
        queued: () => undefined,
        waited: () => undefined,
      })
      return await this.#judge(result)
    } catch (error) {
      const { reason, message } = failureOf(error)
      // The connection is closed, and nobody gets the verdict.
      if (reason === 'left') return { kind: 'closes', status: TRY_AGAIN, reason: '' }
      const id = text.length <= SHORT_CHARACTERS ? idOf(text) : ''
      return this.#refuse(id, refusalOfWorker(reason), message)
    }
  }

  async #judge(result: FlowResult): Promise<MessageVerdict> {
    if (result.kind === 'drops') return this.#refuse('', FAILED, 'the check has dropped the message')
    const { state } = result.kind === 'faults' ? result : result.message
    const id = propertyOf(state, MESSAGE_ID)
    if (result.kind === 'faults') {
      const { fault } = result
      const code = Object.hasOwn(FAULT, fault.code) ? (fault.code as FaultCode) : FAILED.code
      return this.#refuse(id, { ...refusal(code), description: fault.message }, fault.cause)
    }
    const { admission, exchange } = this.#context
    const outcome =
      propertyOf(state, OPERATIONS) === '' && id === '' ? undefined : await admit(admission, exchange, state)
    if (outcome !== undefined && outcome.code !== 0) return this.#refuse(id, outcome, 'the operation is not admitted')
    const { body } = result.message
    if (body.kind !== 'bytes') return this.#refuse(id, FAILED, 'the check has left no message')
    return { kind: 'passes', text: Buffer.from(body.bytes).toString() }
  }

  /** `id`: '' for a message that has none, which no answer can name. */
  #refuse(id: string, reason: Refusal, cause: string): MessageVerdict {
    this.#context.refused(reason, cause)
    const { code, message, description } = faultDetails(reason, null)
    if (id === '') {
      const status = FAULT[reason.code].status < 500 ? INVALID_MESSAGE : TRY_AGAIN
      return { kind: 'closes', status, reason: `${code} ${message}` }
    }
    const error = { message: description || message, extensions: { code } }
    const payload = this.#subprotocol === LEGACY ? error : [error]
    return { kind: 'answered', answer: JSON.stringify({ id, type: 'error', payload }) }
  }
}

/** The charges of an operation end with its admission: a connection has many operations. */
async function admit(admission: Admission, exchange: Exchange, state: MessageState): Promise<Outcome | undefined> {
  const { lateCharges } = exchange
  try {
    return await admission.admit(exchange, state)
  } finally {
    exchange.lateCharges = lateCharges
  }
}

function taskOf(api: string, sequence: string, text: string): FlowTask {
  const state: MessageState = { ...NO_STATE, default: [[IS_MESSAGE, true]] }
  const body = { kind: 'bytes', bytes: new Uint8Array(Buffer.from(text)) } as const
  const fields = [['Content-Type', 'application/json']] as const
  const message = { method: 'POST', target: '/', status: 0, reason: '', fields, body, state }
  return { kind: 'flow', api, flow: 'request', sequences: [sequence], message }
}

function propertyOf({ default: own }: MessageState, name: string): string {
  const found = own.find(([each]) => each === name)
  return found === undefined ? '' : textOf(found[1])
}

/** Whether every reader of JSON takes the message for one that asks for nothing. */
function isHarmless(text: string): boolean {
  try {
    const { type } = JSON.parse(text) as { readonly type?: unknown }
    return typeof type === 'string' && HARMLESS.includes(type) && namesIn(text).filter(isType).length === 1
  } catch {
    return false
  }
}

function idOf(text: string): string {
  try {
    const { id } = JSON.parse(text) as { readonly id?: unknown }
    return typeof id === 'string' ? id : ''
  } catch {
    return ''
  }
}

/** Readers that ignore case take `Type` for `type`. */
function isType(name: string): boolean {
  return name.toLowerCase() === 'type'
}

/** Names of the members of an object, in text that is JSON: names that repeat are there twice. */
function namesIn(text: string): readonly string[] {
  const names: string[] = []
  let depth = 0
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"\s*:?|[[\]{}]/g)) {
    if (token === '{' || token === '[') depth++
    else if (token === '}' || token === ']') depth--
    else if (depth === 1 && token.endsWith(':')) names.push(JSON.parse(token.slice(0, -1)) as string)
  }
  return names
}

const PASSES: MessageVerdict = { kind: 'passes', text: null }
