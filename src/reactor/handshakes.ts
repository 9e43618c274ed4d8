/**
 * What sequences have to say of WebSocket: `dispatchSeq` of each request that asks for it, before a backend has it, and
 * `outDispatchSeq` of the 101 that agrees to it, before the client has that. Either lets the handshake go on as it is,
 * answers in its place, or refuses it. What follows a handshake is a tunnel, of which nothing is mediated.
 */
import type { Exchange } from '../exchange/exchange.ts'
import { type Refusal, refusal } from '../exchange/outcome.ts'
import type { Report } from '../exchange/surroundings.ts'
import type { BackendParty } from '../exchange/tunnel.ts'
import { SOCKET_REFUSED } from '../errors/catalogue.ts'
import { formatOf } from '../fault/format.ts'
import { describeRequest } from './fault-message.ts'
import { fieldNamed } from '../http1/field-kinds.ts'
import type { Head } from '../http1/head.ts'
import { keptValue } from '../http1/kept-fields.ts'
import { type FormattedAnswer, formatAnswer } from '../mediation/formatter.ts'
import { Message } from '../mediation/message.ts'
import type { SequenceProgram } from '../mediation/program.ts'
import type { Sequences } from '../mediation/sequences.ts'
import type { LivePlan, SocketSequences } from '../plan.ts'
import { tracer } from '../protocol/tracer.ts'

/** What the client gets in place of its tunnel. */
export type Instead =
  | { readonly kind: 'answer'; readonly answer: FormattedAnswer }
  /** `sequence`: that words it; null: that of its code. */
  | { readonly kind: 'refusal'; readonly refusal: Refusal; readonly sequence: string | null }

/** Of the list in an Upgrade field, with any version (RFC 9110 7.8). */
const WEBSOCKET = /(?:^|[\s,])websocket(?:[\s,/]|$)/i
const REFUSED: Refusal = { ...SOCKET_REFUSED, lines: '' }
/** As for everything in which the gateway itself fails. */
const FAILED = refusal(500)
const NONE: SocketSequences = { dispatch: '', fault: '' }

export class Handshakes {
  readonly #sequences: Sequences
  readonly #report: Report
  readonly #bytes: Buffer
  /** Sequences that have a say: in requests, and in what backends of a kind answer; '' for none. */
  #inbound = ''
  #outbound: Readonly<Record<BackendParty['kind'], SocketSequences>> = { http: NONE, ws: NONE, wss: NONE }

  /** `bytes`: where heads stand. */
  constructor(plan: Pick<LivePlan, 'faults' | 'sockets'>, sequences: Sequences, bytes: Buffer, report: Report) {
    this.#sequences = sequences
    this.#report = report
    this.#bytes = bytes
    this.renew(plan)
  }

  /** A sequence that only lets pass what there is need not be asked. */
  renew({ faults: { programs }, sockets }: Pick<LivePlan, 'faults' | 'sockets'>): void {
    const asked = (name: string) => (programs.some(program => program.name === name && !isOpen(program)) ? name : '')
    const outbound = ({ dispatch, fault }: SocketSequences) => ({
      dispatch: asked(dispatch || 'outDispatchSeq'),
      fault,
    })
    this.#inbound = asked('dispatchSeq')
    this.#outbound = { http: outbound(NONE), ws: outbound(sockets.ws), wss: outbound(sockets.wss) }
  }

  /** Of a request that asks to switch protocols; null: it goes on. */
  ofRequest(exchange: Exchange): Instead | null {
    if (this.#inbound === '' || !WEBSOCKET.test(exchange.upgrade)) return null
    const { kept } = exchange
    return this.#ask(this.#inbound, '', exchange, new Message(name => keptValue(kept, name)))
  }

  /** Of the 101 to it; null: the tunnel opens. `kind`: of the backend. */
  ofReply(exchange: Exchange, head: Head, kind: BackendParty['kind']): Instead | null {
    const { dispatch, fault } = this.#outbound[kind]
    if (dispatch === '' || !WEBSOCKET.test(exchange.upgrade)) return null
    const message = new Message(name => valueIn(this.#bytes, head, name))
    message.isReply = true
    return this.#ask(dispatch, fault, exchange, message)
  }

  /** `fault`: the sequence that words a refusal; '': that of its code. */
  #ask(name: string, fault: string, exchange: Exchange, message: Message): Instead | null {
    message.set('axis2', 'messageType', formatOf(exchange.kept))
    describeRequest(message, exchange)
    const outcome = this.#sequences.run(name, message)
    tracer?.noted(exchange, 'sequence', `${name}: ${outcome}`)
    const isAnswer = outcome === 'responded' || (outcome === 'sent' && message.isAnswer)
    if (outcome === 'sent' && !isAnswer) return null
    const answer = isAnswer ? this.#answerOf(name, message) : null
    if (answer !== null) return { kind: 'answer', answer }
    const refused = isAnswer || outcome === 'failed' ? FAILED : REFUSED
    return { kind: 'refusal', refusal: refused, sequence: fault === '' ? null : fault }
  }

  /** Null: it cannot be written. */
  #answerOf(name: string, message: Message): FormattedAnswer | null {
    try {
      return formatAnswer(message, this.#report)
    } catch (error) {
      this.#report('warn', 'sequence failed', { SEQUENCE: name, CAUSE_OF_ERROR: `failed: ${String(error)}` })
      return null
    }
  }
}

/** Whatever comes, it passes. */
function isOpen({ steps }: SequenceProgram): boolean {
  return steps[0]?.mediator === 'send'
}

function valueIn(bytes: Buffer, head: Head, name: string): string | undefined {
  let value: string | undefined
  for (let field = fieldNamed(bytes, head, name); field >= 0; field = fieldNamed(bytes, head, name, field + 1)) {
    const own = head.value(bytes, field)
    value = value === undefined ? own : `${value}, ${own}`
  }
  return value
}
