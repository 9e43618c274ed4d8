/**
 * The message of a mediated exchange: its parts while it is collected, at a worker or fed; its refusal, cut and end.
 * `mediated-exchange.ts` has the other steps.
 */
import { type MessageState, NO_STATE, type TransferredMessage } from '../../mediation/worker-task.ts'
import type { Written } from '../../socket/byte-socket.ts'
import type { ExchangeMediation } from '../exchange/api-mediation.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'
import type { BodyPart, Failure, TargetSide } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { MessageCheck } from '../exchange/message-inspection.ts'
import { type Refusal, refusal } from '../exchange/outcome.ts'
import type { BodyCollector, HeldBody } from './body-collector.ts'
import type { BodyFeed } from './body-feed.ts'
import { type BodySource, dropHeld, heldOf, sourceOfHeld } from './body-source.ts'
import { cutResponse } from './client-response.ts'
import type { FeedOwner } from './feed-sinks.ts'
import type { MessageHead } from './flow-task.ts'
import { NOT_KEPT, reportRefusal } from './mediation-refusals.ts'
import type { FlowListener, MediationServices } from './mediation-services.ts'
import { MediatedMachine } from './transitions.ts'

export const NO_HEAD: MessageHead = { method: '', target: '', status: 0, reason: '', fields: [] }
const NO_BODY: HeldBody = { kind: 'none' }
/** Longest wait of a late message for a worker that runs its fault flow, in milliseconds (D780). */
const FAULT_FLOW_WAIT_MS = 250

export abstract class MediatedMessage implements TargetSide, ExchangeMediation, FeedOwner {
  state: MessageState
  messages: MessageCheck | null = null
  protected readonly exchange: Exchange
  protected readonly services: MediationServices
  protected readonly context: ConnectionContext
  protected readonly machine = new MediatedMachine()
  /** The body that is collected. */
  protected collector: BodyCollector | null = null
  /** The body that is sent. */
  protected feed: BodyFeed | null = null
  /** Head and body of the message at the worker. */
  protected head = NO_HEAD
  protected held: HeldBody = NO_BODY
  /** Bytes of the request that `state` keeps for the response flow. */
  #keptBytes = 0
  /** Ends the flow that runs on a worker, or waits for one; null: none does. */
  #giveUp: (() => void) | null = null

  constructor(exchange: Exchange, services: MediationServices) {
    this.exchange = exchange
    this.services = services
    this.context = exchange.isSecured ? services.contexts.secured : services.contexts.plain
    this.state = exchange.mediation?.state ?? NO_STATE
  }

  abstract readonly isBlocked: boolean
  abstract requestBody(part: BodyPart): Written
  abstract resumeResponse(): void

  /** The state that a flow leaves. The request that it keeps counts as the bodies that the reactor holds (D286). */
  protected keepState(state: MessageState): void {
    this.state = state
    this.#countKept(state.request?.body?.length ?? 0)
  }

  #countKept(bytes: number): void {
    this.services.store.release(this.#keptBytes)
    this.services.store.hold(bytes)
    this.#keptBytes = bytes
  }

  /** The body that a flow leaves: its own, or the one that the reactor holds. */
  protected sourceOf(message: TransferredMessage): BodySource {
    return sourceOfHeld(this.takeBody(message), this.services.store)
  }

  protected takeBody({ body }: TransferredMessage): HeldBody {
    const { held } = this
    this.held = NO_BODY
    if (body.kind === 'untouched') return held
    dropHeld(held, this.services.store)
    return heldOf(body, this.services.store)
  }

  // ---- refusals ---------------------------------------------------------------------------------------------------

  protected refuseFor(reason: Refusal, cause: string): void {
    this.log('message not mediated', cause, reason)
    this.#abandonTarget(cause)
    this.services.refuse(this.exchange, { refusal: reason, failure: null, sequence: null })
  }

  collectorFailed(cause: string): void {
    this.guarded(() => this.refuseFor(NOT_KEPT, `a body cannot be written to its file (${cause})`))
  }

  requestSent(): void {
    this.machine.advance('SENT')
  }

  /** A body that is on its way cannot be read to its end. */
  feedFailed(cause: string): void {
    const { state } = this.machine
    if (state !== 'RESPONDING' && state !== 'PASSING_EARLY') {
      this.refuseFor(NOT_KEPT, cause)
      return
    }
    this.log('message not mediated', cause, NOT_KEPT)
    this.#cut(cause)
  }

  /** Code of the gateway threw. */
  feedThrew(error: unknown): void {
    const { state } = this.machine
    this.services.bug(this.exchange, error)
    if (state === 'ENDED') return
    if (['RESPONDING', 'PASSING', 'PASSING_EARLY'].includes(state)) this.#cut('internal error')
    else {
      this.#abandonTarget('internal error')
      this.services.refuseAtOnce(this.exchange, { refusal: refusal(500), failure: null, sequence: null })
    }
  }

  /** The target has failed; nothing of its response was sent where a flow needs it. */
  fail(failure: Failure): void {
    this.release()
    this.exchange.client.fail(failure)
  }

  /** Runs a step whose error nobody else would catch. */
  protected guarded(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.feedThrew(error)
    }
  }

  protected log(event: string, cause: string, reason: Refusal | null = null): void {
    reportRefusal(this.services.report, this.exchange, event, cause, reason)
  }

  /** The client has a part of a response. */
  #cut(cause: string): void {
    this.#abandonTarget(cause)
    cutResponse(this.exchange.client, cause)
  }

  // ---- endings ----------------------------------------------------------------------------------------------------

  /** The client has left, or gets no more. */
  abort(): void {
    this.ended()
  }

  ended(): void {
    this.release()
    this.#countKept(0)
    this.machine.advance('END')
  }

  /** `cause`: why the backend is given up. */
  #abandonTarget(cause: string): void {
    const { target } = this.exchange
    this.exchange.target = null
    if (target !== this) target?.abort(cause)
    this.release()
  }

  /** `isLate`: the message is late, and this is its fault flow. */
  protected listener(isLate: boolean): FlowListener {
    return {
      entered: giveUp => {
        this.#giveUp = giveUp
      },
      queued: leave => {
        if (isLate) setTimeout(leave, FAULT_FLOW_WAIT_MS).unref()
      },
    }
  }

  protected release(): void {
    this.#giveUpFlow()
    this.collector?.cancel()
    this.collector = null
    this.stopFeed()
    this.dropHeld()
  }

  /** The flow may still read a body in a file, which `#run` drops then. */
  #giveUpFlow(): void {
    if (this.#giveUp === null) return
    this.#giveUp()
    this.#giveUp = null
    if (this.held.kind === 'file') this.held = NO_BODY
  }

  /** No flow runs on a worker any more. */
  protected flowEnded(): void {
    this.#giveUp = null
  }

  protected stopFeed(): void {
    this.feed?.cancel()
    this.feed = null
  }

  protected dropHeld(): void {
    dropHeld(this.held, this.services.store)
    this.held = NO_BODY
  }
}
