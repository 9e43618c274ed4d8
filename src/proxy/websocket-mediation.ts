/**
 * Mediation of WebSocket handshakes: `dispatchSeq` runs for each request before its backend gets it, `outDispatchSeq`
 * for the 101 before the client gets it. A sequence passes the handshake unchanged, responds in its place, or refuses
 * it. The tunnel behind a handshake is not mediated.
 */
import type { Exchange } from './exchange/exchange.ts'
import { type Refusal, refusal } from './exchange/outcome.ts'
import type { Report } from './exchange/connection-context.ts'
import type { BackendTunnelPeer } from './exchange/tunnel-peer.ts'
import { WEBSOCKET_REFUSED } from '../faults/error-codes.ts'
import { faultFormat } from '../faults/fault-format.ts'
import { describeRequest } from './exchange/request-properties.ts'
import { listNamed } from '../http1/field-kinds.ts'
import type { Head } from '../http1/head.ts'
import { arena } from '../http1/llhttp.ts'
import { capturedValue } from '../http1/captured-fields.ts'
import { type FormattedResponse, formatResponse } from '../mediation/formatter.ts'
import { Message } from '../mediation/message.ts'
import type { SequencePlan } from '../mediation/sequence-plan.ts'
import type { CompiledSequences } from '../mediation/compiled-sequences.ts'
import type { LivePlan, WebSocketSequences } from '../plan/reactor-plan.ts'
import { tracer } from '../protocol/tracer.ts'

/** Response in place of a tunnel. */
export type HandshakeResponse =
  | { readonly kind: 'response'; readonly response: FormattedResponse }
  /** `sequence` words the fault; null: the sequence of its code. */
  | { readonly kind: 'refusal'; readonly refusal: Refusal; readonly sequence: string | null }

/** `websocket` in the list of an Upgrade field, with any version (RFC 9110 7.8). */
const WEBSOCKET = /(?:^|[\s,])websocket(?:[\s,/]|$)/i
const REFUSED: Refusal = { ...WEBSOCKET_REFUSED, lines: '' }
/** Refusal when the gateway itself fails. */
const FAILED = refusal(500)
const NONE: WebSocketSequences = { dispatch: '', fault: '' }

export class WebSocketMediation {
  readonly #sequences: CompiledSequences
  readonly #report: Report
  /** Sequences that change something: of requests, and of responses by kind of backend; '' for none. */
  #inbound = ''
  #outbound: Readonly<Record<BackendTunnelPeer['kind'], WebSocketSequences>> = { http: NONE, ws: NONE, wss: NONE }

  constructor(plan: Pick<LivePlan, 'faults' | 'webSockets'>, sequences: CompiledSequences, report: Report) {
    this.#sequences = sequences
    this.#report = report
    this.update(plan)
  }

  /** Sequences that only pass messages on are not run. */
  update({ faults: { sequences }, webSockets }: Pick<LivePlan, 'faults' | 'webSockets'>): void {
    const activeName = (name: string) =>
      sequences.some(sequence => sequence.name === name && !isPassThrough(sequence)) ? name : ''
    const outbound = ({ dispatch, fault }: WebSocketSequences) => ({
      dispatch: activeName(dispatch || 'outDispatchSeq'),
      fault,
    })
    this.#inbound = activeName('dispatchSeq')
    this.#outbound = { http: outbound(NONE), ws: outbound(webSockets.ws), wss: outbound(webSockets.wss) }
  }

  /** Mediates a request to switch protocols; null: it goes to its backend. */
  mediateRequest(exchange: Exchange): HandshakeResponse | null {
    if (this.#inbound === '' || !WEBSOCKET.test(exchange.upgrade)) return null
    const { captured } = exchange
    return this.#run(this.#inbound, '', exchange, new Message(name => capturedValue(captured, name)))
  }

  /** Mediates a 101; null: the tunnel opens. `kind`: that of the backend. */
  mediateResponse(exchange: Exchange, head: Head, kind: BackendTunnelPeer['kind']): HandshakeResponse | null {
    const { dispatch, fault } = this.#outbound[kind]
    if (dispatch === '' || !WEBSOCKET.test(exchange.upgrade)) return null
    const message = new Message(name => listNamed(arena.bytes, head, name))
    message.isFromBackend = true
    return this.#run(dispatch, fault, exchange, message)
  }

  /** Runs a sequence. `fault`: the sequence that words a refusal; '': that of its code. */
  #run(name: string, fault: string, exchange: Exchange, message: Message): HandshakeResponse | null {
    message.set('axis2', 'messageType', faultFormat(exchange.captured))
    describeRequest(message, exchange)
    const outcome = this.#sequences.run(name, message)
    tracer?.note(exchange, 'sequence', `${name}: ${outcome}`)
    const isResponse = outcome === 'responded' || (outcome === 'sent' && message.isMarkedResponse)
    if (outcome === 'sent' && !isResponse) return null
    const response = isResponse ? this.#format(name, message) : null
    if (response !== null) return { kind: 'response', response }
    const refused = isResponse || outcome === 'failed' ? FAILED : REFUSED
    return { kind: 'refusal', refusal: refused, sequence: fault === '' ? null : fault }
  }

  /** Null when the message cannot be formatted. */
  #format(name: string, message: Message): FormattedResponse | null {
    try {
      return formatResponse(message, this.#report)
    } catch (error) {
      this.#report('warn', 'sequence failed', { SEQUENCE: name, CAUSE_OF_ERROR: `failed: ${String(error)}` })
      return null
    }
  }
}

/** True if a sequence sends every message on unchanged. */
function isPassThrough({ steps }: SequencePlan): boolean {
  return steps[0]?.mediator === 'send'
}
