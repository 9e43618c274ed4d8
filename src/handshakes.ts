/**
 * What sequences have to say of WebSocket: `dispatchSeq` of each request that asks for it, before a backend has it, and
 * `outDispatchSeq` of the 101 that agrees to it, before the client has that. Either lets the handshake go on as it is,
 * answers in its place, or refuses it. What follows a handshake is a tunnel, of which nothing is mediated.
 */
import type { Exchange } from './exchange/exchange.ts'
import { type Refusal, refusal } from './exchange/outcome.ts'
import type { Report } from './exchange/surroundings.ts'
import { SOCKET_REFUSED } from './errors/catalogue.ts'
import { formatOf } from './fault/format.ts'
import { type FaultAnswers, fieldOf } from './fault-answer.ts'
import { describeRequest } from './fault-message.ts'
import { isName } from './http1/field-kinds.ts'
import type { Head } from './http1/head.ts'
import { type FormattedAnswer, formatAnswer } from './mediation/formatter.ts'
import { Message } from './mediation/message.ts'
import type { SequenceProgram } from './mediation/program.ts'
import type { FaultPlan } from './plan.ts'
import { tracer } from './protocol/tracer.ts'

/** What the client gets in place of its tunnel. */
export type Instead =
  | { readonly kind: 'answer'; readonly answer: FormattedAnswer }
  | { readonly kind: 'refusal'; readonly refusal: Refusal }

/** Of the list in an Upgrade field, with any version (RFC 9110 7.8). */
const WEBSOCKET = /(?:^|[\s,])websocket(?:[\s,/]|$)/i
const REFUSED: Instead = { kind: 'refusal', refusal: { ...SOCKET_REFUSED, lines: '' } }
/** As for everything in which the gateway itself fails. */
const FAILED: Instead = { kind: 'refusal', refusal: refusal(500) }

export class Handshakes {
  readonly #faults: FaultAnswers
  readonly #report: Report
  readonly #bytes: Buffer
  /** The sequence has a say in requests; in what backends answer. */
  #asksOfRequests = false
  #asksOfReplies = false

  /** `faults`: who has the sequences in force. `bytes`: where heads stand. */
  constructor(plan: FaultPlan, faults: FaultAnswers, bytes: Buffer, report: Report) {
    this.#faults = faults
    this.#report = report
    this.#bytes = bytes
    this.renew(plan)
  }

  /** A sequence that only lets pass what there is need not be asked. */
  renew({ programs }: FaultPlan): void {
    const hasSay = (name: string) => programs.some(program => program.name === name && !isOpen(program))
    this.#asksOfRequests = hasSay('dispatchSeq')
    this.#asksOfReplies = hasSay('outDispatchSeq')
  }

  /** Of a request that asks to switch protocols; null: it goes on. */
  ofRequest(exchange: Exchange): Instead | null {
    if (!this.#asksOfRequests || !WEBSOCKET.test(exchange.upgrade)) return null
    const { kept } = exchange
    return this.#ask('dispatchSeq', exchange, new Message(name => fieldOf(kept, name)))
  }

  /** Of the 101 to it; null: the tunnel opens. */
  ofReply(exchange: Exchange, head: Head): Instead | null {
    if (!this.#asksOfReplies || !WEBSOCKET.test(exchange.upgrade)) return null
    const message = new Message(name => valueIn(this.#bytes, head, name))
    message.isReply = true
    return this.#ask('outDispatchSeq', exchange, message)
  }

  #ask(name: string, exchange: Exchange, message: Message): Instead | null {
    message.set('axis2', 'messageType', formatOf(exchange.kept))
    describeRequest(message, exchange)
    const outcome = this.#faults.run(name, message)
    tracer?.noted(exchange, 'sequence', `${name}: ${outcome}`)
    if (outcome === 'failed') return FAILED
    if (outcome === 'responded' || (outcome === 'sent' && message.isAnswer)) return this.#answerOf(name, message)
    return outcome === 'sent' ? null : REFUSED
  }

  #answerOf(name: string, message: Message): Instead {
    try {
      return { kind: 'answer', answer: formatAnswer(message, this.#report) }
    } catch (error) {
      this.#report('warn', 'sequence failed', { SEQUENCE: name, CAUSE_OF_ERROR: `failed: ${String(error)}` })
      return FAILED
    }
  }
}

/** Whatever comes, it passes. */
function isOpen({ steps }: SequenceProgram): boolean {
  return steps[0]?.mediator === 'send'
}

function valueIn(bytes: Buffer, head: Head, name: string): string | undefined {
  let value: string | undefined
  for (let field = 0; field < head.count; field++) {
    if (!isName(bytes, head.nameAt(field), head.nameLength(field), name)) continue
    const own = head.value(bytes, field)
    value = value === undefined ? own : `${value}, ${own}`
  }
  return value
}
