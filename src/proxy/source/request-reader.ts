/**
 * Receiving half of a client connection: reads requests, parses them, and hands bodies to the target. Owns read buffer
 * and message reader; the connection owns socket, responses and endings, and refuses what this half reports.
 */
import type { Exchange } from '../exchange/exchange.ts'
import { ReadBuffer } from '../exchange/read-buffer.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'
import { type BadMessage, bad } from '../../http1/bad-message.ts'
import { spanBytes } from '../../http1/body.ts'
import type { Head } from '../../http1/head.ts'
import { arena } from '../../http1/llhttp.ts'
import type { MessageReader } from '../../http1/message-reader.ts'
import { METRIC } from '../../observe/metrics.ts'
import type { Machine } from '../../protocol/machine.ts'
import { EVENT, STATE } from '../../protocol/states.ts'
import { beginTimeline, recordBytes } from '../../protocol/timelines.ts'
import type { ByteSocket } from '../../socket/byte-socket.ts'
import { MARGIN } from '../../runtime/arena.ts'
import type { Client } from './connection-callbacks.ts'
import { type DecodedFields, repeatableFields } from './request-decoder.ts'
import { stateRow } from './state-table.ts'

/** The connection, as the receiving half sees it. */
export interface RequestOwner {
  /** The client takes no bytes now. */
  readonly isBlocked: boolean
  /** A request begins: ends the keep-alive timeout. */
  requestBegan(): void
  /** The head is still incomplete. */
  awaitHead(): void
  /** Runs the pipeline for a complete head. A promise while a filter waits. */
  process(): Promise<() => void> | undefined
  /** The filters have decided: the client may be read again. */
  resumeRequest(): void
  /** Every byte in front of the client's FIN was processed, as far as possible. */
  afterEnd(): void
  refuseHead(bad: BadMessage): void
  refuseBody(cause: string): void
  refuseSize(): void
  /** Asynchronous code threw. */
  onError(error: unknown): void
}

/** Each further stretch of this length of a request body restarts `body.read_timeout` (D10). */
const PROGRESS_BYTES = 65_536
const MISDIRECTED = bad(
  421,
  'the host asks clients for other certificates than the name in the handshake (RFC 9110 7.4)',
)
/** Empty lines in front of one request; old clients send one behind a body (D179). */
const EMPTY_LINES_MAX = 16
const EMPTY_LINES = bad(400, 'too many empty lines before a request (RFC 9112 2.2)')
const CR = 13
const LF = 10

export class RequestReader {
  readonly #owner: RequestOwner
  readonly #context: ConnectionContext
  readonly #machine: Machine
  readonly #exchange: Exchange
  readonly #client: Client
  readonly #reader: MessageReader<DecodedFields>
  readonly #socket: Pick<ByteSocket, 'serves'>
  readonly buffer: ReadBuffer
  /** `body.max_bytes` at the start of the body under way; -1: unlimited. */
  #bodyMax = -1
  /** Body bytes at which `body.read_timeout` restarts, and when it ends. */
  #progressAt = 0
  #progressDueMs = 0
  /** Empty lines since the last request. */
  #emptyLines = 0
  /** Depth of `serve` on the stack: its loop continues after a response inside it, without recursion. */
  #depth = 0

  constructor(
    owner: RequestOwner,
    machine: Machine,
    exchange: Exchange,
    reader: MessageReader<DecodedFields>,
    client: Client,
    context: ConnectionContext,
    socket: Pick<ByteSocket, 'serves'>,
  ) {
    this.#owner = owner
    this.#context = context
    this.#machine = machine
    this.#exchange = exchange
    this.#client = client
    this.#reader = reader
    this.#socket = socket
    this.buffer = new ReadBuffer(context.memory)
  }

  get firstView(): Uint8Array {
    return this.buffer.firstView
  }

  /** No byte waits to be processed. */
  get isEmpty(): boolean {
    return this.buffer.length === 0
  }

  /** No byte behind the request under way was read; only once its head is complete. */
  get isAtEnd(): boolean {
    return this.#reader.parsedTo === this.buffer.to
  }

  /** `serve` is on the stack: it finds the next request without another call. */
  get isServing(): boolean {
    return this.#depth > 0
  }

  /** `length` bytes were read. */
  receive(length: number): void {
    this.buffer.begin(length)
  }

  /** Drops what was read. */
  discard(): void {
    this.buffer.from = this.buffer.to
  }

  /** Processes everything that was read, request after request, as far as responses allow. */
  serve(): void {
    if (this.#depth > 0) return
    this.#depth++
    while (this.#step());
    this.#depth--
    if (this.#machine.peerEnded) this.#owner.afterEnd()
  }

  /** One step; false when there is nothing to do until another event. */
  #step(): boolean {
    switch (stateRow(this.#machine.state).reads) {
      case 'begin':
        return this.#beginRequest()
      case 'head':
        return this.#readHead()
      case 'body':
        return this.#readBody()
      case 'drop':
        this.discard()
        return false
      case 'keep':
        return false
    }
  }

  #beginRequest(): boolean {
    const { buffer } = this
    if (this.#skipEmptyLines()) return this.#refuseEmptyLines()
    // A client that does not read its responses gets no further ones. A single CR may become an empty line.
    if (buffer.length === 0 || this.#owner.isBlocked) return false
    if (buffer.length === 1 && arena.bytes[buffer.from] === CR) return false
    this.#emptyLines = 0
    this.#startTimeline()
    this.#machine.advance(EVENT.REQUEST_BEGIN)
    this.#reader.begin(buffer.from)
    this.#exchange.begin(this.#context.clock)
    this.#owner.requestBegan()
    return true
  }

  #startTimeline(): void {
    const id = beginTimeline()
    this.#machine.timeline = id
    this.#exchange.timeline = id
  }

  /** Skips empty lines in front of a request line (RFC 9112 2.2); a bare CR or LF is no line. True: too many. */
  #skipEmptyLines(): boolean {
    const { buffer } = this
    const { bytes } = arena
    while (buffer.length > 1 && bytes[buffer.from] === CR && bytes[buffer.from + 1] === LF) {
      buffer.from += 2
      if (++this.#emptyLines > EMPTY_LINES_MAX) return true
    }
    return false
  }

  #refuseEmptyLines(): boolean {
    this.#machine.advance(EVENT.REQUEST_BEGIN)
    this.#exchange.begin(this.#context.clock)
    this.#owner.requestBegan()
    this.#owner.refuseHead(EMPTY_LINES)
    return true
  }

  #readHead(): boolean {
    const { buffer } = this
    const reader = this.#reader
    const exchange = this.#exchange
    if (!reader.repeatsFields(buffer.from, buffer.to) && !reader.readHead(buffer.from, buffer.to, false)) {
      if (reader.error !== null) this.#owner.refuseHead(reader.error)
      else this.#owner.awaitHead()
      return false
    }
    this.#context.metrics.add(METRIC.requests, 1)
    const { head } = reader
    const repeated = reader.repeated === null ? null : reader.repeated.decoded
    const bad = this.#client.decoder.decode(exchange, head, buffer.from, reader.method, this.#client, repeated)
    if (bad !== undefined) {
      this.#owner.refuseHead(bad)
      return false
    }
    if (reader.isComplete && reader.countHead()) this.#keepFields(head)
    if (this.#machine.peerEnded && reader.parsedTo === buffer.to) exchange.persists = false
    // "Content-Length: 0" announces a body that needs no bytes.
    if (reader.isComplete || (exchange.requestFraming === 0 && reader.readBody(reader.parsedTo) && reader.isComplete)) {
      exchange.requestDoneMs = exchange.startedMs
      this.#machine.advance(EVENT.REQUEST_END)
    } else {
      this.#machine.advance(EVENT.REQUEST_BODY)
      this.#progressAt = PROGRESS_BYTES
      this.#progressDueMs = this.#context.now() + this.#context.settings.bodyReadMs
      this.#bodyMax = this.#context.settings.bodyBytesMax
      if (this.#isTooLong(exchange.requestFraming)) this.#owner.refuseSize()
    }
    // Checked behind the whole head, because the connection goes on for other hosts (D48).
    if (exchange.isSecured && exchange.status === 0 && !this.#socket.serves(exchange.host)) {
      this.#owner.refuseHead(MISDIRECTED)
    }
    if (exchange.status === 0) this.#process(head)
    else buffer.from = reader.parsedTo
    return true
  }

  #keepFields(head: Head): void {
    const decoded = repeatableFields(this.#exchange, head)
    if (decoded !== null) this.#reader.keepSection(head.fieldsAt, 0, decoded)
  }

  #process(head: Head): void {
    const exchange = this.#exchange
    exchange.head = head
    const waiting = this.#owner.process()
    if (waiting === undefined) {
      this.#processed()
      return
    }
    this.#processLater(waiting)
  }

  /** Apart from `#process`, which would allocate the scope of these closures for every request. */
  #processLater(waiting: Promise<() => void>): void {
    // The head must outlive this read; the body is not read before its target is known.
    this.#exchange.head = this.#reader.pinHead()
    this.#machine.advance(EVENT.FILTERS_WAIT)
    const resume = (proceed: () => void): void => {
      // The client may have left.
      if (this.#machine.state === STATE.CLOSED) return
      this.#machine.advance(EVENT.FILTERS_DONE)
      proceed()
      this.#processed()
      this.serve()
      this.#owner.resumeRequest()
    }
    waiting.then(resume).catch((error: unknown) => this.#owner.onError(error))
  }

  /** The pipeline has run: the exchange has its target, or its response. */
  #processed(): void {
    if (this.#machine.state === STATE.CLOSED) return
    this.#reader.unpinHead()
    this.buffer.from = this.#reader.parsedTo
    this.#exchange.head = null
    if (this.#exchange.target === null) return
    if (stateRow(this.#machine.state).reads !== 'body') this.#deliver(0, 0, true)
    // The head leaves with the first body bytes, if they are here already.
    else if (this.buffer.length === 0) this.#deliver(0, 0, false)
  }

  #readBody(): boolean {
    const exchange = this.#exchange
    const reader = this.#reader
    if (this.buffer.to === reader.parsedTo) return false
    const from = reader.parsedTo
    if (!reader.readBody(this.buffer.to)) {
      this.#owner.refuseBody(reader.error!.rule)
      return true
    }
    const last = reader.isComplete
    const count = reader.spanCount
    exchange.requestBodyBytes += spanBytes(this.#context.part.spans, count)
    if (this.#isTooLong(exchange.requestBodyBytes)) {
      this.#owner.refuseSize()
      return true
    }
    if (count > 0) this.#machine.advance(EVENT.REQUEST_DATA)
    if (last) {
      exchange.requestDoneMs = this.#context.now()
      this.#machine.advance(EVENT.REQUEST_END)
    } else recordBytes(exchange.timeline, false)
    if (exchange.target !== null) this.#deliver(from, count, last)
    if (this.#machine.state === STATE.CLOSED) return false
    // A trailer section that came in pieces ends here; left in the buffer it would be the next request.
    if (last) reader.finish()
    this.buffer.from = reader.retainFrom(this.buffer.from)
    return last
  }

  /** Hands `count` body spans to the target. `from`: first byte of the read that brought them. */
  #deliver(from: number, count: number, last: boolean): void {
    const { part } = this.#context
    part.count = count
    // The bytes in front are used up, or they are the margin of the chunk.
    part.floor = from - MARGIN
    part.last = last
    part.trailers = this.#reader.trailers
    part.buffer = this.buffer
    this.#exchange.target!.requestBody(part)
  }

  #isTooLong(bytes: number): boolean {
    return bytes > this.#bodyMax && this.#bodyMax >= 0
  }

  /** Ends a read; returns the view for the next one, or null without memory for the bytes in use. */
  settle(): Uint8Array | undefined | null {
    const inBody = stateRow(this.#machine.state).reads === 'body'
    const view = this.buffer.settle(inBody && this.wantsBytes())
    this.#reader.moveBy(this.buffer.moved)
    return view
  }

  /** True if the client should be read now. */
  wantsBytes(): boolean {
    const { target } = this.#exchange
    switch (stateRow(this.#machine.state).wants) {
      case 'always':
        return true
      case 'never':
        return false
      case 'target':
        return target?.isBlocked === false
      case 'early':
        return target === null || !target.isBlocked
      case 'pipeline':
        return this.buffer.length < this.#context.settings.pipelineBytesMax && this.buffer.room > 0
    }
  }

  /** Milliseconds that the client has for the next piece of its body; 0: its earlier deadline holds. */
  bodyWaitMs(): number {
    const { socketTimeoutMs, bodyReadMs } = this.#context.settings
    if (bodyReadMs === 0) return socketTimeoutMs
    const now = this.#context.now()
    if (this.#exchange.requestBodyBytes >= this.#progressAt) {
      this.#progressAt = this.#exchange.requestBodyBytes + PROGRESS_BYTES
      this.#progressDueMs = now + bodyReadMs
    }
    return Math.min(socketTimeoutMs, Math.max(0, this.#progressDueMs - now))
  }

  /** The client is not read while the target or a filter is waited for; its time restarts afterwards. */
  holdBody(): void {
    this.#progressAt = 0
  }

  /** The connection is closed. */
  dispose(): void {
    this.buffer.dispose()
    this.#reader.dispose()
  }
}
