/**
 * One request to a mounted API. A worker thread gets it, and its body as the thread reads; the client gets the response
 * as it takes the bytes. A short body goes with the request, a short response with its result. A request whose body is
 * short takes no place in the pool before the body is there. While a request waits for its client, it has no permit.
 */
import { reasonPhrase } from '../../faults/fault-details.ts'
import { CHUNKED } from '../../http1/framing.ts'
import { arena } from '../../http1/llhttp.ts'
import {
  type FromMounted,
  type MountedResult,
  type MountedTask,
  type RequestBodyData,
  type RequestData,
  type ResponseHeadData,
  type ToMounted,
  WINDOW_BYTES,
} from '../../plan/mounted-messages.ts'
import { heldPermits } from '../../plan/worker-plan.ts'
import { tracer } from '../../protocol/tracer.ts'
import { Deadline } from '../../runtime/deadline-wheel.ts'
import { WRITE, type Written } from '../../socket/byte-socket.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'
import type { BodyPart, TargetSide } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { BodyFeed, FeedSink } from './body-feed.ts'
import { type BodySource, joined, memorySource } from './body-source.ts'
import { WorkerFailure } from '../../mediation/worker-service.ts'
import { cutResponse, sendResponse } from './client-response.ts'
import { feedContinue } from './fed-message.ts'
import { failureOf } from './mediation-services.ts'
import { type MountedLoss, refusalOfMounted, reportRefusal } from './mediation-refusals.ts'
import type { MountedListener, MountedPlace, MountedReply, MountedServices } from './mounted-calls.ts'
import { MountedStream } from './mounted-stream.ts'

interface MountedCallOptions {
  /** Identity of the API (`apiIdentity`). */
  readonly api: string
  readonly request: RequestData
  /** The client waits for 100 (RFC 9110 10.1.1), or sends its body all the same. */
  readonly expects: boolean
}

/**
 * `new`: what is there of the body goes with the request. `collecting`: a short body is read first. `waiting`: a thread
 * has the request, or will have it. `responding`: the client gets a response. `ended`: nothing follows.
 */
type MountedState = 'new' | 'collecting' | 'waiting' | 'responding' | 'ended'
/** The received part of the body: `none` yet, `some` bytes, `all` of them. */
type BodyState = 'none' | 'some' | 'all'

export class MountedExchange extends Deadline implements TargetSide, MountedListener {
  readonly #exchange: Exchange
  readonly #options: MountedCallOptions
  readonly #services: MountedServices
  readonly #context: ConnectionContext
  readonly #id: number
  #state: MountedState = 'new'
  #bodyState: BodyState = 'none'
  /** Bytes of the request that no thread has. */
  #pieces: Uint8Array[] = []
  #heldBytes = 0
  /** Bytes that the thread takes now. */
  #credit = 0
  /** Bytes that the client takes, of which the thread has not heard. */
  #taken = 0
  /** Nobody waits for the response any more: the thread has to hear of it, or has. */
  #cut: 'no' | 'due' | 'told' = 'no'
  /** Messages to the thread so far. */
  #posted = 0
  /** Posts to the thread; null until it has spoken. */
  #reply: MountedReply | null = null
  /** The client has sent FIN. */
  #hasClientEnded = false
  /** Null: the pool has not got the request. */
  #place: MountedPlace | null = null
  #stream: MountedStream | null = null
  #feed: BodyFeed | null = null

  constructor(exchange: Exchange, options: MountedCallOptions, services: MountedServices) {
    super()
    this.#exchange = exchange
    this.#options = options
    this.#services = services
    this.#context = exchange.isSecured ? services.contexts.secured : services.contexts.plain
    this.#id = services.calls.add(this)
    exchange.sentMs = this.#context.now()
  }

  begin(): void {
    if (this.#isCollected()) this.#state = 'collecting'
    this.#watch()
    this.#openSoon()
  }

  /** True if the body is read before a thread gets the request (D714). A client that expects 100 waits for the API. */
  #isCollected(): boolean {
    const { requestFraming: length } = this.#exchange
    return !this.#options.expects && length > 0 && length <= WINDOW_BYTES
  }

  /** Opens in a microtask: bytes that were read with the head belong to the body that goes with the request. */
  #openSoon(): void {
    queueMicrotask(() => this.#guarded(() => this.#open()))
  }

  // ---- the request ------------------------------------------------------------------------------------------------

  /** Behind a short body, the client is read only while the thread asks for bytes. */
  get isBlocked(): boolean {
    if (this.#state === 'ended' || this.#state === 'collecting') return false
    return this.#bodyState !== 'all' && this.#credit <= this.#heldBytes
  }

  requestBody({ spans: { offsets }, count, last }: BodyPart): Written {
    if (this.#state === 'ended') return WRITE.DONE
    this.#watch()
    let length = 0
    for (let i = 0; i < 2 * count; i += 2) length += offsets[i + 1]!
    if (length > 0) this.#hold(offsets, count, length)
    if (last) {
      this.#bodyState = 'all'
      this.#exchange.requestSentMs = this.#context.now()
    } else if (length > 0) this.#bodyState = 'some'
    if (this.#state === 'collecting') this.#openOnceWhole()
    else if (this.#state !== 'new') this.#tell()
    return this.isBlocked ? WRITE.PENDING : WRITE.DONE
  }

  /**
   * A flow in front may make a longer body than the client has announced. Where the reactor holds all the bytes that it
   * may, the thread gets the rest as it comes.
   */
  #openOnceWhole(): void {
    const mayGrow = this.#heldBytes <= WINDOW_BYTES && !this.#services.store.isFull
    if (this.#bodyState !== 'all' && mayGrow) return
    this.#state = 'new'
    this.#openSoon()
  }

  #hold(offsets: BodyPart['spans']['offsets'], count: number, length: number): void {
    const bytes = new Uint8Array(length)
    for (let i = 0, at = 0; i < 2 * count; i += 2) {
      bytes.set(arena.bytes.subarray(offsets[i]!, offsets[i]! + offsets[i + 1]!), at)
      at += offsets[i + 1]!
    }
    this.#pieces.push(bytes)
    this.#heldBytes += length
    this.#services.store.hold(length)
  }

  /** There are bytes, or the end, that the thread takes now. */
  get #hasBody(): boolean {
    return this.#credit > 0 && (this.#heldBytes > 0 || this.#bodyState === 'all')
  }

  /** Sends what the thread takes now. One read is held, because the client is read only while bytes are asked for. */
  #sendBody(): void {
    if (!this.#hasBody) return
    const isAll = this.#bodyState === 'all'
    const bytes = this.#takeHeld()
    this.#credit = isAll ? 0 : this.#credit - bytes.length
    this.#post({ what: 'chunk', bytes, last: isAll }, bytes.length === 0 ? [] : [bytes.buffer as ArrayBuffer])
  }

  #takeHeld(): Uint8Array {
    const bytes = this.#pieces.length === 1 ? this.#pieces[0]! : joined(this.#pieces, this.#heldBytes)
    this.#dropHeld()
    return bytes
  }

  #dropHeld(): void {
    this.#services.store.release(this.#heldBytes)
    this.#pieces = []
    this.#heldBytes = 0
  }

  #open(): void {
    if (this.#state !== 'new') return
    this.#state = 'waiting'
    const { api, request } = this.#options
    const isWhole = this.#bodyState === 'all'
    const bytes = this.#takeHeld()
    const length = this.#exchange.requestFraming
    const body: RequestBodyData = isWhole
      ? { kind: 'whole', bytes }
      : { kind: 'stream', first: bytes, length: length === CHUNKED ? -1 : length }
    const timeoutMs = this.#services.timeoutMs()
    const task: MountedTask = { kind: 'mounted', id: this.#id, api, request, body, timeoutMs }
    const transfer = bytes.length === 0 ? [] : [bytes.buffer as ArrayBuffer]
    try {
      const row = this.#exchange.isSecured ? 'secured' : 'plain'
      const held = heldPermits(this.#exchange.calls)
      const evicted = (): void => this.#failSoon(new WorkerFailure('memory', TOO_MANY_WAIT))
      this.#place = this.#services.workers[row].open(task, { transfer, held, evicted })
      this.#place.result.then(
        result => this.#guarded(() => this.#finished(result)),
        (error: unknown) => this.#guarded(() => this.#failed(error)),
      )
    } catch (error) {
      this.#failed(error)
    }
  }

  // ---- the thread -------------------------------------------------------------------------------------------------

  receive(message: FromMounted, reply: MountedReply): void {
    const isFirst = this.#reply === null
    this.#reply = reply
    if (isFirst && this.#hasClientEnded) this.#post({ what: 'client-ended' })
    this.#guarded(() => this.#receive(message))
  }

  #receive(message: FromMounted): void {
    this.#watch()
    switch (message.what) {
      case 'began':
        return
      case 'wants':
        this.#wants(message.bytes)
        return
      case 'waits':
        // A message is on its way to the thread, which looks again.
        if (message.heard === this.#posted && this.#place?.state === 'runs') this.#place.suspend()
        return
      case 'head':
        this.#stream = new MountedStream(this, message.length)
        this.#respond(message.head, this.#stream)
        return
      case 'chunk':
        this.#stream?.receive(message.bytes)
        return
      case 'end':
        this.#stream?.end()
    }
  }

  #wants(bytes: number): void {
    const wasBlocked = this.isBlocked
    const isFirst = this.#credit === 0 && this.#bodyState === 'none'
    this.#credit += bytes
    if (this.#options.expects && isFirst && this.#state === 'waiting') {
      feedContinue(this.#context, (head, at) => this.#exchange.source.interimResponse(head, at))
    }
    this.#tell()
    if (wasBlocked && !this.isBlocked) this.#exchange.source.resumeRequest()
  }

  #finished(result: MountedResult): void {
    if (this.#state === 'ended') return
    tracer?.note(this.#exchange, 'mounted', result.kind === 'responds' ? `responds ${result.head.status}` : result.kind)
    if (result.kind === 'responds') this.#respond(result.head, memorySource(result.bytes))
    else if (result.kind === 'fails') this.#lose(result.failure, result.cause)
    // A streamed response ends with its last piece, which has left: the thread waits for that.
  }

  #failed(error: unknown): void {
    if (this.#state === 'ended') return
    const { reason, message } = failureOf(error)
    this.#lose(reason, message)
  }

  #post(message: Without<ToMounted>, transfer: readonly ArrayBuffer[] = []): void {
    if (this.#reply === null) return
    this.#posted++
    this.#reply({ kind: 'mounted', id: this.#id, ...message } as ToMounted, transfer)
  }

  /** Tells the thread what makes its request go on, which needs a permit (D805). */
  #tell(): void {
    if (!this.#hasBody && this.#taken === 0 && this.#cut !== 'due') return
    const place = this.#place
    if (place?.state === 'runs') this.#tellNow()
    else if (place?.state === 'suspended') {
      try {
        const way = this.#state === 'ended' ? 'end' : 'go on'
        place.resume(() => this.#guarded(() => this.#tellNow()), way)
      } catch (error) {
        // A request that is over may end without a permit.
        if (this.#state === 'ended') this.#tellNow()
        else this.#failSoon(error)
      }
    }
  }

  /** The caller may be at work on the same exchange, or on another one. */
  #failSoon(error: unknown): void {
    queueMicrotask(() => this.#guarded(() => this.#failed(error)))
  }

  #tellNow(): void {
    if (this.#reply === null) return
    if (this.#cut === 'due') {
      this.#cut = 'told'
      this.#post({ what: 'cut' })
    }
    if (this.#cut === 'told') return
    this.#sendBody()
    if (this.#taken > 0) this.#post({ what: 'wants', bytes: this.#taken })
    this.#taken = 0
  }

  // ---- the response -----------------------------------------------------------------------------------------------

  #respond({ status, reason, fields }: ResponseHeadData, source: BodySource): void {
    const exchange = this.#exchange
    const head = { status, reason: reason === '' ? reasonPhrase(status) : reason, fields }
    const begins = (feed: BodyFeed): void => {
      this.#state = 'responding'
      exchange.firstByteMs = this.#context.now()
      this.#feed = feed
    }
    const response = { head, source, sink: this.#toClient, client: exchange.source, begins }
    const broken = sendResponse(exchange, response, this.#context)
    if (broken === '') return
    this.#lose('invalid', broken)
  }

  /** The client, or a flow in front of it. */
  get #toClient(): FeedSink {
    const { source } = this.#exchange
    return {
      get isBlocked() {
        return source.isBlocked
      },
      take: part => {
        this.#watch()
        return source.responseBody(part)
      },
      feedEnds: () => this.#end(),
      feedFailed: cause => this.#lose('failed', cause),
      feedThrew: error => this.#threw(error),
    }
  }

  resumeResponse(): void {
    this.#guarded(() => this.#feed?.resume())
  }

  /** The client takes more of the response. */
  wants(bytes: number): void {
    this.#taken += bytes
    this.#tell()
  }

  streamClosed(how: 'taken' | 'cut'): void {
    if (how === 'cut') this.#tellCut()
    // The implementation is done, and only the result is missing.
    else this.#post({ what: 'taken' })
  }

  #tellCut(): void {
    if (this.#cut === 'no') this.#cut = 'due'
    this.#tell()
  }

  // ---- endings ----------------------------------------------------------------------------------------------------

  /** The client has left, or gets no more. */
  abort(): void {
    this.#giveUp()
  }

  clientEnded(): void {
    if (this.#hasClientEnded || this.#state === 'ended') return
    this.#hasClientEnded = true
    this.#post({ what: 'client-ended' })
  }

  override onDeadline(): void {
    if (this.#state === 'ended') return
    // A client that sends or takes slowly has time-outs of its own.
    const place = this.#place?.state
    const isDone = this.#state === 'responding' && place === 'ended'
    if (this.#state === 'collecting' || place === 'suspended' || isDone) {
      this.#watch()
      return
    }
    this.#services.countLate()
    this.#lose('late', `no progress within ${this.#services.timeoutMs()} ms`)
  }

  override onError(error: unknown): void {
    this.#threw(error)
  }

  #watch(): void {
    const timeoutMs = this.#services.timeoutMs()
    if (timeoutMs > 0 && this.#state !== 'ended') this.#context.wheel.set(this, timeoutMs)
  }

  /** There is no response, or no more of it. `cause`: without any text of a client. */
  #lose(loss: MountedLoss, cause: string): void {
    const hasBegun = this.#state === 'responding'
    this.#giveUp()
    const exchange = this.#exchange
    const reason = refusalOfMounted(loss)
    reportRefusal(this.#services.report, exchange, 'mounted API failed', cause, reason)
    exchange.target = null
    if (hasBegun) cutResponse(exchange.source, cause)
    else this.#services.refuse(exchange, { refusal: reason, failure: null, sequence: null })
  }

  #threw(error: unknown): void {
    this.#services.bug(this.#exchange, error)
    if (this.#state !== 'ended') this.#lose('failed', 'internal error')
  }

  /** Runs what nobody above would catch. */
  #guarded(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.onError(error)
    }
  }

  /** Ends the exchange and aborts its task: the client has left. */
  #giveUp(): void {
    if (this.#state === 'ended') return
    this.#end()
    this.#feed?.cancel()
    this.#place?.leave()
    // A stream has said so when the feed closed it.
    if (this.#stream === null) this.#tellCut()
  }

  #end(): void {
    this.#state = 'ended'
    this.#dropHeld()
    this.#context.wheel.clear(this)
    this.#services.calls.remove(this.#id)
  }
}

const TOO_MANY_WAIT = 'too many requests to mounted APIs wait for their clients, this one for longest'

type Without<T> = T extends unknown ? Omit<T, 'kind' | 'id'> : never
