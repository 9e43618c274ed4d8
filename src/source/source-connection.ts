/**
 * One client connection: socket, reader and source machine on one side, exchange on the other. Owns when the client is
 * read, what it is answered, and when the connection ends. Every change of state goes through the machine.
 */
import type { BodyPart, Downstream, Failure } from '../exchange/contract.ts'
import { Exchange } from '../exchange/exchange.ts'
import { Inbox } from '../exchange/inbox.ts'
import { type Outcome, refusal } from '../exchange/outcome.ts'
import type { Surroundings } from '../exchange/surroundings.ts'
import type { FaultCode } from '../errors/catalogue.ts'
import type { BadMessage } from '../http1/bad-message.ts'
import type { Head } from '../http1/head.ts'
import { bodySpans, found } from '../http1/llhttp.ts'
import type { MessageReader } from '../http1/message-reader.ts'
import { faultCell, METRIC } from '../observe/metrics.ts'
import { INCOMPLETE_PAYLOAD, SOURCE_RECEIVING, SOURCE_SENDING } from '../protocol/fate.ts'
import { Machine } from '../protocol/machine.ts'
import { EVENT, STATE } from '../protocol/states.ts'
import { type ByteSocket, type SocketOwner, WRITE, type Written } from '../socket/byte-socket.ts'
import { MARGIN } from '../structure/arena.ts'
import { Deadline } from '../structure/deadline-wheel.ts'
import { ReplyWriter, type responseDrops } from './reply-writer.ts'
import type { RequestIntake } from './request-intake.ts'

/** What the hallway does for a client connection. */
export interface Hall {
  /** One request through the rooms. A promise when some step has to wait. */
  walk(exchange: Exchange): Promise<void> | undefined
  /** Renders the fault of an outcome and answers it through `answer`. */
  refuse(exchange: Exchange, outcome: Outcome, failure: Failure | null): void
  /** The exchange is over, whatever became of it. */
  done(exchange: Exchange): void
  closed(connection: SourceConnection): void
}

/** Who is at the other end. */
export interface Client {
  readonly address: string
  readonly isTrusted: boolean
  /** Prefix of the correlation ids of this thread. */
  readonly idPrefix: string
}

/** A client that we finished with may send for so long before it is cut off (RFC 9112 9.6). */
const LINGER_MS = 2000
const LINGER_BYTES_MAX = 4 * 1024 * 1024
/** Each stretch of a request body of this length gets `body.read_timeout` anew. */
const PROGRESS_BYTES = 65_536

export class SourceConnection extends Deadline implements SocketOwner, Downstream {
  readonly id: number
  readonly #socket: ByteSocket
  readonly #around: Surroundings
  readonly #hall: Hall
  readonly #intake: RequestIntake
  readonly #machine = new Machine('source')
  readonly #reader: MessageReader
  readonly #inbox: Inbox
  readonly #writer: ReplyWriter
  readonly #exchange: Exchange
  /** Whether the connection may carry another request; decided by each head, and by what goes wrong. */
  #persists = true
  /** Body bytes at which `body.read_timeout` starts anew. */
  #progressAt = 0
  #progressDueMs = 0
  /** Bytes discarded while closing. */
  #lingered = 0
  /** How often `#serve` is on the stack: a reply given inside it is picked up by the loop, not by recursion. */
  #depth = 0

  constructor(
    id: number,
    socket: ByteSocket,
    client: Client,
    reader: MessageReader,
    intake: RequestIntake,
    left: ReturnType<typeof responseDrops>,
    around: Surroundings,
    hall: Hall,
  ) {
    super()
    this.id = id
    this.#socket = socket
    this.#around = around
    this.#hall = hall
    this.#intake = intake
    this.#reader = reader
    this.#inbox = new Inbox(around.memory)
    this.#writer = new ReplyWriter(socket, around, left)
    this.#exchange = new Exchange(this, client.address, id, client.isTrusted, client.idPrefix)
  }

  open(): void {
    this.#around.wheel.set(this, this.#around.settings.headerReadMs)
    this.#socket.attach(this, this.#inbox.firstView)
  }

  get clientAddress(): string {
    return this.#exchange.clientAddress
  }

  // ---- reading ----------------------------------------------------------------------------------------------------

  onBytes(length: number): Uint8Array | undefined {
    this.#inbox.begin(length)
    this.#around.metrics.add(METRIC.bytesFromClients, length)
    if (this.#machine.state === STATE.CLOSING) this.#discard(length)
    else this.#serve()
    if (this.#machine.state === STATE.CLOSED) return undefined
    return this.#settle()
  }

  /** Deals with everything that was read, request after request, as far as replies allow. */
  #serve(): void {
    if (this.#depth > 0) return
    this.#depth++
    while (this.#step());
    this.#depth--
  }

  /** One step; false when there is nothing to do until something else happens. */
  #step(): boolean {
    switch (this.#machine.state) {
      case STATE.REQUEST_READY:
        return this.#beginRequest()
      case STATE.REQUEST_HEAD:
        return this.#readHead()
      case STATE.REQUEST_BODY:
      case STATE.EARLY_HEAD:
      case STATE.EARLY_BODY:
        return this.#readBody()
      case STATE.CLOSING:
        this.#inbox.from = this.#inbox.to
        return false
      default:
        return false
    }
  }

  #beginRequest(): boolean {
    const inbox = this.#inbox
    const { bytes } = this.#around.arena
    // RFC 9112 2.2: empty lines in front of a request line are ignored.
    while (inbox.from < inbox.to && (bytes[inbox.from] === 13 || bytes[inbox.from] === 10)) {
      if (bytes[inbox.from] === 13 && inbox.from + 1 < inbox.to && bytes[inbox.from + 1] !== 10) break
      if (bytes[inbox.from] === 10 && !this.#endsLine(inbox.from)) break
      inbox.from++
    }
    // A client that does not read its answers gets no further ones.
    if (inbox.length === 0 || this.#writer.outbox.isBlocked) return false
    this.#machine.advance(EVENT.REQUEST_BEGIN)
    this.#reader.begin(inbox.from)
    this.#exchange.begin(this.#around.now())
    this.#around.metrics.add(METRIC.requests, 1)
    this.#around.wheel.suspend(this)
    return true
  }

  /** Whether a line feed follows a carriage return: a bare one is no line end. */
  #endsLine(at: number): boolean {
    return this.#around.arena.bytes[at - 1] === 13
  }

  #readHead(): boolean {
    const inbox = this.#inbox
    const reader = this.#reader
    if (!reader.readHead(inbox.from, inbox.to, false)) {
      if (reader.broken !== null) this.#refuseHead(reader.broken)
      else if (this.dueTick === 0) this.#around.wheel.set(this, this.#around.settings.headerReadMs)
      return false
    }
    const { head } = reader
    const bad = this.#intake.take(this.#exchange, head, inbox.from, reader.method)
    if (bad !== undefined) {
      this.#refuseHead(bad)
      return false
    }
    this.#persists = this.#intake.persists && !this.#around.isDraining
    // "Content-Length: 0" announces a body that needs no bytes.
    if (found.message || (this.#exchange.requestFraming === 0 && reader.readBody(reader.parsedTo) && found.message)) {
      this.#exchange.requestDoneMs = this.#exchange.startedMs
      this.#machine.advance(EVENT.REQUEST_END)
    } else {
      this.#machine.advance(EVENT.REQUEST_BODY)
      this.#progressAt = PROGRESS_BYTES
      this.#progressDueMs = this.#exchange.startedMs + this.#around.settings.bodyReadMs
      if (this.#exchange.requestFraming > this.#bodyMax) this.#tooLarge()
    }
    if (this.#exchange.status === 0) this.#walk(head)
    else inbox.from = reader.parsedTo
    return true
  }

  #walk(head: Head): void {
    const exchange = this.#exchange
    exchange.head = head
    const waiting = this.#hall.walk(exchange)
    if (waiting === undefined) {
      this.#walked()
      return
    }
    // The head must outlive this read; nothing more is read until it is known where the body goes.
    exchange.head = this.#reader.pinHead()
    waiting.then(() => {
      if (this.#machine.state === STATE.CLOSED) return
      this.#walked()
      this.#serve()
      this.#regulate()
    })
  }

  /** The exchange has its upstream, or is answered already. */
  #walked(): void {
    if (this.#machine.state === STATE.CLOSED) return
    this.#reader.unpinHead()
    this.#inbox.from = this.#reader.parsedTo
    this.#exchange.head = null
    const { upstream } = this.#exchange
    if (upstream === null) return
    if (this.#machine.state !== STATE.REQUEST_BODY) this.#deliver(0, true)
    // The head leaves with the first body bytes, if they are here already.
    else if (this.#inbox.length === 0) this.#deliver(0, false)
  }

  #readBody(): boolean {
    const inbox = this.#inbox
    const exchange = this.#exchange
    const reader = this.#reader
    // Nobody to take it yet, or nothing to take.
    if (this.#isUndecided || inbox.to === reader.parsedTo) return false
    const from = reader.parsedTo
    if (!reader.readBody(inbox.to)) {
      this.#refuseBody(reader.broken!.rule)
      return true
    }
    const last = found.message
    for (let i = 0; i < found.body; i++) exchange.requestBodyBytes += bodySpans[2 * i + 1]!
    if (exchange.requestBodyBytes > this.#bodyMax) {
      this.#tooLarge()
      return true
    }
    if (found.body > 0) this.#machine.advance(EVENT.REQUEST_DATA)
    if (last) {
      exchange.requestDoneMs = this.#around.now()
      this.#machine.advance(EVENT.REQUEST_END)
    }
    if (exchange.upstream !== null) this.#deliver(from, last)
    if (this.#machine.state === STATE.CLOSED) return false
    inbox.from = reader.keptFrom(inbox.from)
    if (last) reader.finish()
    return last
  }

  /** The request waits for some step of the walk; its body stays where it is. */
  get #isUndecided(): boolean {
    return this.#machine.state === STATE.REQUEST_BODY && this.#exchange.upstream === null
  }

  /** Hands what was found to the target. `from`: first byte that was parsed, or 0 when none was. */
  #deliver(from: number, last: boolean): void {
    const { part } = this.#around
    part.spans = from === 0 ? 0 : found.body
    // What stands in front was used up, or is the margin of the chunk.
    part.floor = from - MARGIN
    part.last = last
    part.trailers = this.#reader.trailers
    part.inbox = this.#inbox
    this.#exchange.upstream!.requestPart(part)
  }

  get #bodyMax(): number {
    const { bodyBytesMax } = this.#around.settings
    return bodyBytesMax < 0 ? Number.MAX_SAFE_INTEGER : bodyBytesMax
  }

  /** Closing: what still comes is read and dropped, so that no reset overtakes the last response. */
  #discard(length: number): void {
    this.#inbox.from = this.#inbox.to
    this.#machine.advance(EVENT.REQUEST_DATA)
    this.#lingered += length
    if (this.#lingered > LINGER_BYTES_MAX) this.#close()
  }

  /** The view for the next read, and the deadline of what is awaited. */
  #settle(): Uint8Array | undefined {
    const inbox = this.#inbox
    const { state } = this.#machine
    const inBody = state === STATE.REQUEST_BODY || state === STATE.EARLY_BODY || state === STATE.EARLY_HEAD
    const view = inbox.settle(inBody && this.#wantsBytes)
    if (view === null) {
      this.#report('warn', 'buffers exhausted', 'REQUEST', 'no memory for the bytes of a connection')
      this.#abandon()
      this.#close()
      return undefined
    }
    this.#reader.moveBy(inbox.moved)
    this.#regulate()
    return view
  }

  /** Reads the client or not; and while it owes us a body, waits for it only so long. */
  #regulate(): void {
    const wants = this.#wantsBytes
    this.#socket.setReading(wants)
    if (this.#machine.state !== STATE.REQUEST_BODY) return
    if (wants) this.#awaitBody()
    else this.#around.wheel.suspend(this)
  }

  get #wantsBytes(): boolean {
    const { upstream } = this.#exchange
    switch (this.#machine.state) {
      case STATE.REQUEST_BODY:
        return upstream !== null && !upstream.isBlocked
      case STATE.EARLY_HEAD:
      case STATE.EARLY_BODY:
        return upstream === null || !upstream.isBlocked
      case STATE.REQUEST_HEAD:
      case STATE.CLOSING:
        return true
      default:
        // Pipelined bytes wait in the inbox, up to a limit. Reading on is how a client that leaves is noticed.
        return this.#inbox.length < this.#around.settings.pipelineBytesMax && this.#inbox.room > 0
    }
  }

  #awaitBody(): void {
    const { settings, wheel } = this.#around
    let ms = settings.socketTimeoutMs
    if (settings.bodyReadMs > 0) {
      const now = this.#around.now()
      if (this.#exchange.requestBodyBytes >= this.#progressAt) {
        this.#progressAt = this.#exchange.requestBodyBytes + PROGRESS_BYTES
        this.#progressDueMs = now + settings.bodyReadMs
      }
      ms = Math.min(ms, Math.max(1, this.#progressDueMs - now))
    }
    wheel.set(this, ms)
  }

  resumeRequest(): void {
    if (this.#machine.state !== STATE.CLOSED) this.#regulate()
  }

  get isBlocked(): boolean {
    return this.#writer.outbox.isBlocked
  }

  // ---- replying ---------------------------------------------------------------------------------------------------

  interim(head: Head, at: number): void {
    // RFC 9110 15.2: a 1.0 client does not know 1xx.
    if (this.#exchange.minorVersion === 0) return
    this.#machine.advance(EVENT.RESPONSE_INTERIM)
    this.#after(this.#writer.interim(head, at))
  }

  reply(head: Head, at: number, framing: number): void {
    const exchange = this.#exchange
    exchange.status = head.status
    if (this.#around.isDraining || ReplyWriter.endsWithConnection(framing, exchange.minorVersion))
      this.#persists = false
    this.#machine.advance(EVENT.RESPONSE_BEGIN)
    this.#writer.head(head, at, framing, exchange, this.#persists)
    if (framing !== 0) this.#machine.advance(EVENT.RESPONSE_BODY)
  }

  replyPart(part: BodyPart): Written {
    const exchange = this.#exchange
    if (part.spans > 0) {
      this.#machine.advance(EVENT.RESPONSE_DATA)
      for (let i = 0; i < part.spans; i++) exchange.responseBodyBytes += bodySpans[2 * i + 1]!
    }
    const written = this.#writer.part(part)
    if (written === WRITE.FAILED) {
      this.#lostWhileSending('EPIPE')
      return written
    }
    if (written === WRITE.PENDING) this.#around.wheel.set(this, this.#around.settings.socketTimeoutMs)
    if (part.last) this.#finish()
    return written
  }

  /** An answer of the gateway's own, whole. */
  answer(status: number, reason: string, lines: string, body: string): void {
    const exchange = this.#exchange
    exchange.status = status
    const { state } = this.#machine
    // The rest of an unfinished request is not waited for.
    if (state !== STATE.REQUEST_DONE || this.#around.isDraining) this.#persists = false
    this.#machine.advance(EVENT.RESPONSE_BEGIN)
    const written = this.#writer.answer(status, reason, lines, body, exchange, this.#persists)
    if (written === WRITE.FAILED) {
      this.#lostWhileSending('EPIPE')
      return
    }
    if (written === WRITE.PENDING) this.#around.wheel.set(this, this.#around.settings.socketTimeoutMs)
    this.#finish()
  }

  fail(failure: Failure): void {
    const exchange = this.#exchange
    exchange.upstream = null
    exchange.errorBase = failure.base
    exchange.errorState = failure.state
    const { state } = this.#machine
    if (state === STATE.REQUEST_DONE || state === STATE.REQUEST_BODY) {
      this.#hall.refuse(exchange, refusal(failure.base as FaultCode), failure)
      // The reader may have been held back for the target's sake.
      if (this.#machine.state !== STATE.CLOSED) this.#regulate()
      return
    }
    // Part of a response is out. A reset is the only way to say that the rest will not come.
    this.#close('reset')
  }

  /** The response is complete: the next request, or the end. */
  #finish(): void {
    const exchange = this.#exchange
    exchange.upstream = null
    this.#machine.advance(EVENT.RESPONSE_END)
    this.#account()
    const { outbox } = this.#writer
    if (this.#machine.state === STATE.CLOSING) this.#lingerOn()
    else if (this.#persists && !this.#around.isDraining) {
      this.#machine.advance(EVENT.REUSE)
      this.#around.wheel.set(
        this,
        outbox.isBlocked ? this.#around.settings.socketTimeoutMs : this.#around.settings.keepAliveMs,
      )
      if (this.#inbox.length > 0 && this.#depth === 0) this.#continuePipeline()
    } else {
      this.#machine.advance(EVENT.CLOSE)
      // Nothing unread and nothing unsent: no reset can overtake the response.
      if (this.#inbox.length === 0 && !outbox.isBlocked) this.#close()
      else this.#lingerOn()
    }
  }

  /** Outside of a read: what is used up here is found by the next read. */
  #continuePipeline(): void {
    this.#serve()
    if (this.#machine.state !== STATE.CLOSED) this.#regulate()
  }

  #lingerOn(): void {
    this.#inbox.from = this.#inbox.to
    const { isBlocked } = this.#writer.outbox
    if (!isBlocked) this.#socket.end()
    this.#around.wheel.set(this, isBlocked ? this.#around.settings.socketTimeoutMs : LINGER_MS)
    this.#socket.setReading(true)
  }

  #after(written: Written): void {
    if (written === WRITE.FAILED) this.#lostWhileSending('EPIPE')
  }

  // ---- refusing ---------------------------------------------------------------------------------------------------

  #refuseHead(bad: BadMessage): void {
    this.#noteFailure(SOURCE_RECEIVING)
    this.#report('warn', 'malformed request', 'REQUEST', bad.rule)
    this.#intake.identify(this.#exchange)
    this.#persists = false
    this.#hall.refuse(this.#exchange, { code: 400, status: bad.status, description: bad.rule, lines: '' }, null)
  }

  /** A body that breaks the framing, or comes to an end too early. */
  #refuseBody(cause: string): void {
    this.#report('warn', 'malformed request body', 'REQUEST', cause)
    this.#noteFailure(SOURCE_RECEIVING)
    this.#abandonThen({ code: 400, status: undefined, description: cause, lines: '' })
  }

  #tooLarge(): void {
    this.#report('warn', 'request body too large', 'REQUEST', `body is longer than body.max_bytes`)
    this.#noteFailure(INCOMPLETE_PAYLOAD)
    this.#abandonThen(refusal(102511))
  }

  /** Gives the request up on the target's side, and answers if that is still possible. */
  #abandonThen(outcome: Outcome): void {
    this.#abandon()
    if (this.#machine.state === STATE.REQUEST_BODY) this.#hall.refuse(this.#exchange, outcome, null)
    else this.#close('reset')
  }

  #abandon(): void {
    const { upstream } = this.#exchange
    this.#exchange.upstream = null
    upstream?.abandon()
  }

  // ---- endings ----------------------------------------------------------------------------------------------------

  onEnd(): void {
    switch (this.#machine.state) {
      case STATE.REQUEST_HEAD:
        this.#refuseHead(TRUNCATED)
        return
      case STATE.REQUEST_BODY:
        this.#report(
          'warn',
          'request body cut short',
          'REQUEST',
          'the client closed its side before the end of the body',
        )
        this.#noteFailure(INCOMPLETE_PAYLOAD)
        this.#abandonThen(refusal(102511))
        return
      case STATE.REQUEST_DONE:
      case STATE.RESPONSE_HEAD:
      case STATE.RESPONSE_BODY:
        // RFC 9112 9.6: a half-closed client still gets its response, unless it is configured otherwise.
        this.#persists = false
        if (!this.#around.settings.abortOnHalfClose) return
        break
      case STATE.EARLY_HEAD:
      case STATE.EARLY_BODY:
        this.#abandon()
        this.#close('reset')
        return
      case STATE.CLOSING:
        if (this.#writer.outbox.isBlocked) return
        break
      default:
        if (this.#writer.outbox.isBlocked) {
          this.#persists = false
          return
        }
    }
    this.#abandon()
    this.#close()
  }

  onLost(code: string): void {
    this.#lostSocket(code)
  }

  onWriteFailed(code: string): void {
    this.#lostSocket(code)
  }

  #lostWhileSending(code: string): void {
    this.#lostSocket(code)
  }

  #lostSocket(code: string): void {
    const { state } = this.#machine
    if (state === STATE.CLOSED) return
    const isIdle = state === STATE.REQUEST_READY || state === STATE.RESPONSE_DONE || state === STATE.CLOSING
    if (isIdle) this.#report('debug', 'idle client connection lost', 'REQUEST', code)
    else {
      this.#around.metrics.add(METRIC.connectionsReset, 1)
      const sending = state >= STATE.RESPONSE_HEAD
      this.#noteFailure(sending ? SOURCE_SENDING : SOURCE_RECEIVING)
      this.#report('warn', 'client connection lost', sending ? 'RESPONSE' : 'REQUEST', code)
    }
    this.#abandon()
    this.#close()
  }

  onDrained(): void {
    this.#writer.outbox.release()
    const { state } = this.#machine
    if (state === STATE.CLOSING) {
      this.#socket.end()
      this.#around.wheel.set(this, LINGER_MS)
      return
    }
    if (state === STATE.REQUEST_READY) {
      if (!this.#persists) {
        this.#close()
        return
      }
      this.#around.wheel.set(this, this.#around.settings.keepAliveMs)
      this.#continuePipeline()
      return
    }
    this.#around.wheel.suspend(this)
    this.#exchange.upstream?.resumeReply()
  }

  override onDeadline(): void {
    const { settings } = this.#around
    const blocked = this.#writer.outbox.isBlocked
    switch (this.#machine.state) {
      case STATE.REQUEST_READY:
        if (blocked) this.#report('warn', 'client timed out', 'RESPONSE', 'the client takes no bytes')
        break
      case STATE.REQUEST_HEAD:
        this.#timedOut(`head not complete within ${settings.headerReadMs} ms`)
        return
      case STATE.REQUEST_BODY:
        this.#timedOut('no progress of the request body')
        return
      case STATE.CLOSING:
        break
      default:
        // Waiting for the target, whose own deadline counts, unless the client takes no bytes.
        if (!blocked) return
        this.#around.metrics.add(METRIC.timeoutSourceStalled, 1)
        this.#noteFailure(SOURCE_SENDING)
        this.#report('warn', 'client timed out', 'RESPONSE', `no byte taken within ${settings.socketTimeoutMs} ms`)
        this.#abandon()
        this.#close('reset')
        return
    }
    this.#close()
  }

  #timedOut(cause: string): void {
    const inHead = this.#machine.state === STATE.REQUEST_HEAD
    this.#around.metrics.add(inHead ? METRIC.timeoutRequestHead : METRIC.timeoutRequestBody, 1)
    this.#noteFailure(SOURCE_RECEIVING)
    this.#report('warn', 'client timed out', 'REQUEST', cause)
    if (inHead) this.#intake.identify(this.#exchange)
    this.#abandon()
    this.#hall.refuse(this.#exchange, refusal(408), null)
  }

  /** The process is stopping: an idle connection has nothing to wait for. */
  drain(): void {
    if (this.#machine.state === STATE.REQUEST_READY && this.#inbox.length === 0 && !this.#writer.outbox.isBlocked)
      this.#close()
  }

  /** The process has waited long enough. */
  cutOff(): void {
    if (this.#machine.state === STATE.CLOSED) return
    this.#abandon()
    this.#close('reset')
  }

  #close(how: 'close' | 'reset' = 'close'): void {
    if (this.#machine.state === STATE.CLOSED) return
    if (how === 'reset') this.#socket.reset()
    else this.#socket.destroy()
    this.#exchange.sourceState = this.#machine.reported
    this.#machine.advance(EVENT.SOCKET_CLOSED)
    if (this.#exchange.startedMs !== 0 && this.#exchange.doneMs === 0) this.#account()
    this.#around.wheel.clear(this)
    this.#writer.outbox.release()
    this.#inbox.dispose()
    this.#reader.dispose()
    this.#hall.closed(this)
  }

  #account(): void {
    const exchange = this.#exchange
    exchange.doneMs = this.#around.now()
    if (this.#machine.state !== STATE.CLOSED) exchange.sourceState = this.#machine.reported
    this.#hall.done(exchange)
  }

  #noteFailure(base: number): void {
    this.#exchange.errorBase = base
    this.#exchange.errorState = this.#machine.reported
    this.#around.metrics.add(faultCell('source', base, this.#machine.reported), 1)
  }

  #report(level: 'debug' | 'warn' | 'error', event: string, direction: string, cause: string): void {
    const exchange = this.#exchange
    this.#around.report(level, event, {
      STATE_DESCRIPTION: `source connection in state ${this.#machine.reported}`,
      INTERNAL_STATE: this.#machine.reported,
      DIRECTION: direction,
      CAUSE_OF_ERROR: cause,
      HTTP_URL: exchange.requestTarget,
      HTTP_METHOD: exchange.method,
      SOCKET_TIMEOUT: this.#around.settings.socketTimeoutMs,
      CLIENT_ADDRESS: exchange.clientAddress,
      CORRELATION_ID: exchange.correlationId,
      CONNECTION: `http-incoming-${this.id}`,
    })
  }
}

const TRUNCATED: BadMessage = { status: 400, rule: 'the connection ended within the head (RFC 9112 8)' }
