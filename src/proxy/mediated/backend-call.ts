/**
 * One request that a sequence makes (`<call>`): an exchange without a client, which goes to an endpoint like any other.
 * Its response is collected, and given to the task on a worker that waits for it.
 */
import { FAULT } from '../../faults/error-codes.ts'
import { type CallChain, withCallVia } from '../../http1/call-chain.ts'
import type { Head } from '../../http1/head.ts'
import { maskedBy } from '../../mediation/secret-values.ts'
import type { BackendResult } from '../../mediation/task-calls.ts'
import {
  NO_STATE,
  type RaisedFault,
  type TransferredBody,
  type TransferredMessage,
} from '../../mediation/worker-task.ts'
import type { TraceRecords } from '../../observe/trace-records.ts'
import { NO_MEMORY, transportCode } from '../../protocol/failure-table.ts'
import { Deadline } from '../../runtime/deadline-wheel.ts'
import { monotonicMs } from '../../runtime/monotonic-clock.ts'
import { WRITE, type Written } from '../../socket/byte-socket.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'
import type { BodyPart, Failure, SourceSide } from '../exchange/contract.ts'
import { Exchange } from '../exchange/exchange.ts'
import { TraceContext, type TraceLink } from '../exchange/trace-context.ts'
import type { HeadEdit } from '../exchange/head-edit.ts'
import { type BackendTunnelPeer, declineTunnel } from '../exchange/tunnel-peer.ts'
import { BodyCollector, type CollectorOwner } from './body-collector.ts'
import { BodyFeed, type FeedSink } from './body-feed.ts'
import { emptySource, joined, sourceOfTransferred } from './body-source.ts'
import { type BodyStore, deleteFile, files } from './body-store.ts'
import { feedRequest, fieldsOf, leavesBodyOut, reasonOf, withoutContent } from './fed-message.ts'
import { editOfGuarded, GUARDED, OF_WAY } from './flow-task.ts'
import type { ResolvedEndpoint } from './sequence-endpoint.ts'

interface CallOptions {
  readonly context: ConnectionContext
  readonly store: BodyStore
  /** Address of the client whose message calls; failures in a row are told apart by it. */
  readonly clientAddress: string
  readonly idPrefix: string
  /** Number of the call, unique in the thread. */
  readonly id: number
  readonly calls: CallChain
  /** Names of the fields that the sequence has set, in lower case. */
  readonly changed: readonly string[]
  /** As of BackendRequest. */
  readonly isForwarded: boolean
  /** Values that no log and no trace shows. */
  readonly secrets: readonly string[]
  /** As of BackendRequest. */
  readonly bodyMethod: string | undefined
  /** Longest time without progress in milliseconds; 0: the limits of the endpoint alone. */
  readonly timeoutMs: number
  /** Time until which the task waits for the response, by the monotonic clock; 0: no limit. */
  readonly endMs: number
  /** The trace that the request continues, and what takes its record; null: it is not traced. */
  readonly traced: { readonly trace: TraceLink; readonly traces: TraceRecords } | null
  /** Gets the result, once. */
  readonly done: (result: BackendResult) => void
}

/** In front of the path in the head that is fed: a path may be empty. */
const PREFIX = '/-'
const NO_PEER: Exchange['peer'] = { peerThumbprint: '' }
const INTERNAL = 'Internal Server Error'
const TOO_LARGE = 102550
export const UNSENDABLE = 102551
/** Times out a blocking call. */
const LATE: Failure = {
  base: 101504,
  state: 0,
  kind: 'transport',
  code: '',
  cause: 'no progress within SO_TIMEOUT of [transport.blocking_http]',
  status: 0,
}

/** Ends a call whose task is over. */
const GIVEN_UP: Failure = { ...LATE, cause: 'nobody waits for the response any more' }

/** `sending`: no response has begun. `receiving`: its body comes. `done`: the task has the result. */
type CallState = 'sending' | 'receiving' | 'done'

export class BackendCall extends Deadline implements SourceSide, CollectorOwner {
  readonly addresses = null
  readonly #options: CallOptions
  readonly #exchange: Exchange
  readonly #collector: BodyCollector
  #state: CallState = 'sending'
  #feed: BodyFeed | null = null
  #response: Pick<TransferredMessage, 'status' | 'reason' | 'fields'> = { status: 0, reason: '', fields: [] }

  constructor(options: CallOptions) {
    super()
    this.#options = options
    this.#exchange = new Exchange(this, NO_PEER, options.clientAddress, 0, options.idPrefix)
    this.#collector = new BodyCollector(this, options.store)
    const { traced } = options
    if (traced !== null) this.#exchange.trace = new TraceContext(traced.traces.sampling)
  }

  /** Sends the request; everything else follows from the response. */
  start(endpoint: ResolvedEndpoint, message: TransferredMessage): void {
    const { target, method, path, callerLines = '', ownCredential = null } = endpoint
    const { context, store, id, secrets } = this.#options
    const body = message.body.kind === 'untouched' ? ({ kind: 'none' } as const) : message.body
    const given = sourceOfTransferred(body, store)
    const isEmpty = leavesBodyOut(method, this.#options.bodyMethod)
    if (isEmpty) given.close()
    const source = isEmpty ? emptySource() : given
    const exchange = this.#exchange
    exchange.begin(context.clock)
    exchange.trace?.startWithin(this.#options.traced!.trace)
    exchange.correlation.generate(id)
    exchange.method = method
    exchange.canonicalTarget = PREFIX + path
    // Logs and traces show this one; the backend gets the canonical one.
    exchange.requestTarget = maskedBy(secrets, path)
    exchange.backendPathAt = PREFIX.length
    exchange.requestFraming = source.length
    exchange.callerLines = callerLines
    exchange.ownCredential = ownCredential
    exchange.mediation = { state: message.state, ended: nothing }
    if (this.#state === 'done' || this.#leftMs <= 0) {
      source.close()
      this.fail(GIVEN_UP)
      return
    }
    this.#watch()
    const start = { method, target: exchange.canonicalTarget, scheme: 'http' } as const
    const edit = this.#edit(message)
    const use = (head: Head): void => {
      exchange.head = head
      exchange.requestEdit = edit as HeadEdit | null
      target.send(exchange)
      exchange.head = null
      if (this.#state === 'done') return
      this.#feed = new BodyFeed(source, new RequestSink(this, exchange), context)
      this.#feed.begin()
    }
    const fields = withCallVia(
      isEmpty ? withoutContent(message.fields) : message.fields,
      context.pseudonym,
      context.callToken,
      this.#options.calls,
    )
    const broken = typeof edit === 'string' ? edit : feedRequest(start, fields, source.length, context, use)
    if (broken === '' && this.#feed !== null) return
    source.close()
    if (broken !== '') this.#fault(UNSENDABLE, FAULT[UNSENDABLE].message, broken)
  }

  /**
   * Credentials and other guarded fields pass where the sequence has set them. The fields of a client's request name
   * its way as the gateway tells it: flows see no others. As `editOfGuarded`.
   */
  #edit({ fields }: TransferredMessage): HeadEdit | string | null {
    const { context, changed, isForwarded } = this.#options
    const { requestKinds } = context
    const guarded = fields.filter(([name]) => {
      const kind = requestKinds.kindOf(name)
      return GUARDED.includes(kind) && ((isForwarded && OF_WAY.includes(kind)) || changed.includes(name.toLowerCase()))
    })
    return editOfGuarded(
      guarded.map(([name, value]) => ({ name, value })),
      {},
      requestKinds,
    )
  }

  /** Milliseconds until nobody waits for the response. */
  get #leftMs(): number {
    const { endMs } = this.#options
    return endMs === 0 ? Infinity : endMs - monotonicMs()
  }

  #watch(): void {
    const { context, timeoutMs } = this.#options
    const leftMs = Math.min(this.#leftMs, timeoutMs > 0 ? timeoutMs : Infinity)
    if (leftMs < Infinity) context.wheel.set(this, Math.max(1, leftMs))
  }

  override onDeadline(): void {
    this.fail(this.#leftMs > 0 ? LATE : GIVEN_UP)
  }

  override onError(error: unknown): void {
    this.feedThrew(error)
  }

  /** Nobody waits for the response any more. */
  giveUp(): void {
    this.fail(GIVEN_UP)
  }

  // ---- the request ------------------------------------------------------------------------------------------------

  /** A part of the request, or of the response, is on its way. */
  progressed(): void {
    if (this.#options.timeoutMs > 0) this.#watch()
  }

  feedFailed(cause: string): void {
    this.#exchange.target?.abort(cause)
    this.#fault(NO_MEMORY, FAULT[NO_MEMORY].message, cause)
  }

  feedThrew(error: unknown): void {
    const cause = error instanceof Error ? (error.stack ?? error.message) : String(error)
    this.#options.context.report('error', 'bug', { CAUSE_OF_ERROR: cause })
    this.#exchange.target?.abort('internal error')
    this.#fault(0, INTERNAL, 'internal error')
  }

  resumeRequest(): void {
    this.#feed?.resume()
  }

  // ---- the response -----------------------------------------------------------------------------------------------

  get isBlocked(): boolean {
    return this.#collector.isBlocked
  }

  interimResponse(): void {}

  responseHead(head: Head, at: number): void {
    this.#state = 'receiving'
    this.#exchange.status = head.status
    this.#response = { status: head.status, reason: reasonOf(head, at), fields: fieldsOf(head) }
  }

  responseBody(part: BodyPart): Written {
    if (this.#state === 'done') return WRITE.FAILED
    this.progressed()
    if (!this.#collector.add(part.spans, part.count)) {
      this.#collector.cancel()
      if (!part.last) this.#exchange.target?.abort('the response to a call is too long')
      const { bytesMax } = this.#options.store.limits
      this.#fault(TOO_LARGE, FAULT[TOO_LARGE].message, `the response to a call is longer than ${bytesMax} bytes`)
      return WRITE.FAILED
    }
    if (part.last) this.#collector.end()
    return this.#collector.isBlocked ? WRITE.PENDING : WRITE.DONE
  }

  collectorResumed(): void {
    this.#exchange.target?.resumeResponse()
  }

  collectorFailed(code: string): void {
    const cause = `the response to a call could not be kept in its file (${code})`
    this.#exchange.target?.abort(cause)
    this.#fault(0, INTERNAL, cause)
  }

  collected(): void {
    if (this.#state === 'done') return
    const held = this.#collector.take()
    let body: TransferredBody = { kind: 'none' }
    if (held.kind === 'file') {
      void this.#readFile(held.path, held.length)
      return
    }
    if (held.kind === 'memory') {
      body = { kind: 'bytes', bytes: joined(held.pieces, held.length) }
      this.#options.store.release(held.length)
    }
    this.#respond(body)
  }

  /** The task gets bytes: of a file nobody would know when to delete it. */
  async #readFile(path: string, length: number): Promise<void> {
    try {
      const bytes = await readWhole(path, length)
      this.#respond({ kind: 'bytes', bytes })
    } catch (error) {
      this.collectorFailed((error as NodeJS.ErrnoException).code ?? String(error))
    } finally {
      deleteFile(path)
    }
  }

  #respond(body: TransferredBody): void {
    const { method, requestTarget: target } = this.#exchange
    this.#end({ kind: 'response', message: { method, target, ...this.#response, body, state: NO_STATE } })
  }

  /** Refuses the switch, for which no call asks. */
  switchProtocols(_head: Head, _at: number, backend: BackendTunnelPeer): void {
    declineTunnel(this.#exchange, backend)
    this.#fault(0, 'Error in Sender', 'the backend has switched protocols unasked')
  }

  sendLocalResponse(): void {
    throw new Error('a call has no client')
  }

  sendKeptResponse(): void {
    throw new Error('a call has no client')
  }

  fail({ base, state, cause }: Failure): void {
    if (this.#state === 'done') return
    this.#exchange.errorBase = base
    this.#exchange.errorState = state
    this.#exchange.target?.abort(cause)
    const code = transportCode(base, state)
    const row = Object.hasOwn(FAULT, base) ? FAULT[base as keyof typeof FAULT] : undefined
    const { message, description: detail } = row ?? { message: 'Error in Sender', description: '' }
    this.#collector.cancel()
    this.#end({ kind: 'fault', fault: { code, message, detail, cause, sequence: '', transport: { base, state } } })
  }

  #fault(code: number, message: string, cause: string): void {
    this.#exchange.errorBase ||= code
    this.#collector.cancel()
    const fault: RaisedFault = { code, message, detail: '', cause, sequence: '' }
    this.#end({ kind: 'fault', fault })
  }

  #end(result: BackendResult): void {
    if (this.#state === 'done') return
    this.#state = 'done'
    this.#options.context.wheel.clear(this)
    this.#feed?.cancel()
    this.#exchange.target = null
    this.#record()
    this.#options.done(result)
  }

  #record(): void {
    const { context, traced } = this.#options
    const exchange = this.#exchange
    if (traced === null) return
    exchange.doneMs = context.now()
    traced.traces.called(exchange, exchange.trace!)
  }
}

/** The request side of a call. */
class RequestSink implements FeedSink {
  readonly #call: BackendCall
  readonly #exchange: Exchange

  constructor(call: BackendCall, exchange: Exchange) {
    this.#call = call
    this.#exchange = exchange
  }

  get isBlocked(): boolean {
    return this.#exchange.target?.isBlocked ?? false
  }

  take(part: BodyPart): Written {
    this.#call.progressed()
    return this.#exchange.target?.requestBody(part) ?? WRITE.FAILED
  }

  feedEnds(): void {}

  feedFailed(cause: string): void {
    this.#call.feedFailed(cause)
  }

  feedThrew(error: unknown): void {
    this.#call.feedThrew(error)
  }
}

async function readWhole(path: string, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length)
  const file = await files.open(path, 'r', 0)
  try {
    for (let at = 0; at < length; ) {
      const { bytesRead } = await files.read(file, bytes, at, length - at, at)
      if (bytesRead === 0) throw new Error('the file is shorter than its length')
      at += bytesRead
    }
  } finally {
    await files.close(file)
  }
  return bytes
}

function nothing(): void {}
