/**
 * One backend connection: socket, reader and target machine on one side, the exchange it serves on the other. Owns when
 * the backend is read, what a lost connection means, and whether the connection may serve again. Every change of state
 * goes through the machine.
 */
import type { BodyPart, Upstream } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { Inbox } from '../exchange/inbox.ts'
import { MessageWriter } from '../exchange/message-writer.ts'
import type { Surroundings } from '../exchange/surroundings.ts'
import { responseBody, UNTIL_CLOSE } from '../http1/framing.ts'
import { found } from '../http1/llhttp.ts'
import type { MessageReader } from '../http1/message-reader.ts'
import { keepAliveTimeout, readConnection } from '../http1/persistence.ts'
import { checkResponse } from '../http1/strictness.ts'
import { METRIC } from '../observe/metrics.ts'
import {
  CONNECT_CANCELLED,
  CONNECT_FAILED,
  CONNECT_TIMED_OUT,
  FATE,
  type Loss,
  POOL_FULL,
  SEND_ABORTED,
} from '../protocol/fate.ts'
import { Machine } from '../protocol/machine.ts'
import { EVENT, STATE, STATE_NAMES } from '../protocol/states.ts'
import { type ByteSocket, type ConnectingOwner, WRITE, type Written } from '../socket/byte-socket.ts'
import { MARGIN } from '../structure/arena.ts'
import { Deadline } from '../structure/deadline-wheel.ts'
import type { HostPool } from './host-pool.ts'
import { SavedRequest } from './saved-request.ts'

/** A backend that broke off the request may still say why; it gets so long for that. */
const LAST_WORD_MS = 1000

export class TargetConnection extends Deadline implements ConnectingOwner, Upstream {
  readonly id: number
  readonly #pool: HostPool
  readonly #around: Surroundings
  readonly #machine = new Machine('target')
  readonly #reader: MessageReader
  readonly #inbox: Inbox
  readonly #writer: MessageWriter
  #socket: ByteSocket | null = null
  #exchange: Exchange | null = null
  /** The request while it may have to be sent (again): until connected, or until a response begins. */
  #saved: SavedRequest | null = null
  /** Exchanges completed. A connection that never served cannot be stale. */
  #served = 0
  /** What the last response allows: milliseconds to stay idle, 0: none. */
  #idleMs = 0
  /** Why nothing more can be written, '' while it can. */
  #brokenBy = ''
  /** Addresses not tried yet. */
  #addresses: readonly string[] = []
  #dialledMs = 0

  constructor(id: number, pool: HostPool, reader: MessageReader, around: Surroundings) {
    super()
    this.id = id
    this.#pool = pool
    this.#around = around
    this.#reader = reader
    this.#inbox = new Inbox(around.memory)
    this.#writer = new MessageWriter(around.composer)
  }

  get isOpen(): boolean {
    return this.#machine.state === STATE.REQUEST_READY
  }

  // ---- connecting -------------------------------------------------------------------------------------------------

  /** Connects for an exchange whose request is saved. */
  connect(exchange: Exchange, saved: SavedRequest): void {
    this.#assign(exchange)
    this.#saved = saved
    // The head is in `saved`; what follows it later needs the framing that it announced.
    this.#writer.compose(0, exchange.requestFraming)
    this.#dialledMs = this.#around.now()
    this.#around.wheel.set(this, this.#around.settings.connectTimeoutMs)
    this.#pool.addresses(this, (error, addresses) => {
      if (this.#machine.state !== STATE.REQUEST_READY || this.#exchange === null) return
      if (error !== null) this.#fail(CONNECT_FAILED, error)
      else {
        this.#addresses = addresses
        this.#dialNext('EADDRNOTAVAIL')
      }
    })
  }

  #dialNext(lastError: string): void {
    const [address, ...others] = this.#addresses
    if (address === undefined) {
      this.#fail(CONNECT_FAILED, lastError)
      return
    }
    this.#addresses = others
    this.#socket = this.#pool.dial(address, this, this.#inbox.firstView)
    this.#writer.open(this.#socket)
  }

  onConnected(): void {
    const exchange = this.#exchange!
    const saved = this.#saved!
    exchange.connectMs = this.#around.now() - this.#dialledMs
    this.#around.wheel.suspend(this)
    this.#begin(exchange)
    const written = this.#writer.outbox.writeChunks(saved.take())
    if (written === WRITE.FAILED) {
      this.#brokenBy = 'EPIPE'
      this.#lose('WRITE_ERROR', 'EPIPE')
      return
    }
    if (saved.hasBody) this.#machine.advance(EVENT.REQUEST_DATA)
    if (saved.isComplete) this.#requestSent()
    this.#saved = null
    if (written === WRITE.DONE) exchange.downstream.resumeRequest()
    else this.#watch()
  }

  get #isConnecting(): boolean {
    return this.#machine.state === STATE.REQUEST_READY && this.#saved !== null
  }

  // ---- the request ------------------------------------------------------------------------------------------------

  /** Takes an exchange whose head stands composed in the thread's composer. */
  serve(exchange: Exchange, headLength: number, framing: number): void {
    this.#assign(exchange)
    this.#around.wheel.suspend(this)
    this.#writer.compose(headLength, framing)
    if (this.#mayResend(exchange)) this.#saved = SavedRequest.copyOf(this.#around.composer, headLength)
    this.#around.metrics.add(METRIC.targetsReused, 1)
    this.#begin(exchange)
  }

  /** RFC 9110 9.2.2: idempotent, and nothing of a body that could be lost. */
  #mayResend(exchange: Exchange): boolean {
    return exchange.requestFraming === 0 && isIdempotent(exchange.method)
  }

  #assign(exchange: Exchange): void {
    this.#exchange = exchange
    exchange.upstream = this
    exchange.targetId = this.id
  }

  #begin(exchange: Exchange): void {
    exchange.sentMs = this.#around.now()
    this.#machine.advance(EVENT.REQUEST_BEGIN)
    if (exchange.requestFraming !== 0) this.#machine.advance(EVENT.REQUEST_BODY)
    this.#reader.begin(this.#inbox.from)
  }

  requestPart(part: BodyPart): Written {
    if (this.#isConnecting) {
      const kept = this.#saved!.add(this.#around, part, this.#exchange!.requestFraming)
      if (!kept) this.#fail(POOL_FULL, 'no memory for a request that waits for its connection')
      return kept ? WRITE.PENDING : WRITE.FAILED
    }
    // The backend wants no more; what it says is still awaited, and the rest of the body has nowhere to go.
    if (this.#brokenBy !== '') return WRITE.DONE
    const written = this.#writer.part(part)
    if (written === WRITE.FAILED) return this.#writeFailed()
    if (part.spans > 0) this.#machine.advance(EVENT.REQUEST_DATA)
    if (part.last) this.#requestSent()
    else if (this.#machine.state !== STATE.REQUEST_BODY || written === WRITE.PENDING) this.#watch()
    return written
  }

  /** The request is complete; now the backend has its time. */
  #requestSent(): void {
    this.#machine.advance(EVENT.REQUEST_END)
    this.#watch()
  }

  /** The next move is the backend's: `http.socket.timeout` from now. */
  #watch(): void {
    this.#around.wheel.set(this, this.#around.settings.socketTimeoutMs)
  }

  /** While a request body is under way and the backend takes it, the next move is the client's. */
  get #awaitsBackend(): boolean {
    return this.#machine.state !== STATE.REQUEST_BODY || this.#writer.outbox.isBlocked
  }

  get isBlocked(): boolean {
    return this.#isConnecting || (this.#brokenBy === '' && this.#writer.outbox.isBlocked)
  }

  /** The first write on a pooled connection that was closed meanwhile fails as a whole: nothing was sent. */
  #writeFailed(): Written {
    const exchange = this.#exchange!
    if (this.#machine.state === STATE.REQUEST_HEAD && this.#served > 0 && this.#saved !== null) {
      this.#resend(exchange, this.#saved)
      return WRITE.PENDING
    }
    this.onWriteFailed('EPIPE')
    return WRITE.FAILED
  }

  onWriteFailed(code: string): void {
    this.#brokenBy = code
    this.#writer.outbox.release()
    if (this.#machine.state === STATE.REQUEST_BODY || this.#machine.state === STATE.EARLY_BODY) {
      // It may have answered already: an early response is read before the failure counts.
      this.#around.wheel.set(this, LAST_WORD_MS)
      this.#exchange?.downstream.resumeRequest()
    } else this.#lose('WRITE_ERROR', code)
  }

  onDrained(): void {
    this.#writer.outbox.release()
    if (this.#machine.state === STATE.REQUEST_BODY) this.#around.wheel.suspend(this)
    this.#exchange?.downstream.resumeRequest()
  }

  // ---- the response -----------------------------------------------------------------------------------------------

  onBytes(length: number): Uint8Array | undefined {
    const inbox = this.#inbox
    inbox.begin(length)
    this.#around.metrics.add(METRIC.bytesFromTargets, length)
    if (this.#exchange === null) {
      // Nobody asked: whatever this is, it must never be taken for the answer to the next request.
      this.#drop('bytes on an idle connection')
      return undefined
    }
    while (this.#step());
    const { state } = this.#machine
    if (state === STATE.CLOSED) return undefined
    const inBody = state === STATE.RESPONSE_BODY || state === STATE.EARLY_BODY
    const view = inbox.settle(inBody && !this.#clientBlocked)
    if (view === null) {
      this.#lose('UNREADABLE', 'no memory for the bytes of a connection')
      return undefined
    }
    this.#reader.moveBy(inbox.moved)
    if (this.#exchange !== null) {
      this.#socket!.setReading(!this.#clientBlocked)
      if (!this.#clientBlocked && this.#awaitsBackend) this.#watch()
    }
    return view
  }

  get #clientBlocked(): boolean {
    return this.#exchange?.downstream.isBlocked ?? false
  }

  /** One step; false when there is nothing to do until more comes. */
  #step(): boolean {
    switch (this.#machine.state) {
      case STATE.REQUEST_BODY:
      case STATE.REQUEST_DONE:
        return this.#inbox.length > 0 && this.#readHead()
      case STATE.RESPONSE_HEAD:
      case STATE.RESPONSE_BODY:
      case STATE.EARLY_HEAD:
      case STATE.EARLY_BODY:
        return this.#inbox.to > this.#reader.parsedTo && this.#readBody()
      default:
        return false
    }
  }

  #readHead(): boolean {
    const exchange = this.#exchange!
    const inbox = this.#inbox
    const reader = this.#reader
    const at = inbox.from
    if (!reader.readHead(at, inbox.to, exchange.isHead)) {
      if (reader.broken !== null) this.#lose('UNREADABLE', reader.broken.rule)
      return false
    }
    const { head } = reader
    const { bytes } = this.#around.arena
    const broken = checkResponse(bytes, head, at)
    if (broken !== undefined || head.status === 101) {
      this.#lose('UNREADABLE', broken?.rule ?? '101 without a request to switch protocols (RFC 9110 15.2.2)')
      return false
    }
    if (head.status < 200) return this.#interim(at)
    const framing = responseBody(bytes, head, exchange.isHead)
    this.#idleMs = this.#allowedIdle(framing)
    this.#saved?.release()
    this.#saved = null
    exchange.firstByteMs = this.#around.now()
    this.#machine.advance(EVENT.RESPONSE_BEGIN)
    exchange.downstream.reply(head, at, framing)
    if (this.#machine.state === STATE.CLOSED) return false
    if (framing !== 0) this.#machine.advance(EVENT.RESPONSE_BODY)
    reader.unpinHead()
    inbox.from = reader.keptFrom(at)
    this.#deliver(head.end, found.body, found.message)
    return true
  }

  /** How long the connection may wait for another request; 0: it must not serve again (RFC 9112 9.3). */
  #allowedIdle(framing: number): number {
    const { settings, arena } = this.#around
    const { head } = this.#reader
    const persists = readConnection(arena.bytes, head)
    if (!persists || settings.closesTargets || framing === UNTIL_CLOSE) return 0
    const seconds = keepAliveTimeout(arena.bytes, head)
    if (seconds < 0) return settings.targetKeepAliveMs
    // The backend counts from its side; leave it a grace, of ten seconds where it says that many.
    return Math.min(settings.targetKeepAliveMs, Math.max(seconds - 10, seconds / 2) * 1000)
  }

  #interim(at: number): boolean {
    const { head } = this.#reader
    // The backend is at work, and the client may know: from here on the request is not sent again.
    this.#saved?.release()
    this.#saved = null
    this.#machine.advance(EVENT.RESPONSE_INTERIM)
    this.#exchange!.downstream.interim(head, at)
    if (this.#machine.state === STATE.CLOSED) return false
    this.#reader.finish()
    this.#inbox.from = head.end
    this.#reader.begin(head.end)
    return true
  }

  #readBody(): boolean {
    const reader = this.#reader
    const from = reader.parsedTo
    if (!reader.readBody(this.#inbox.to)) {
      this.#lose('UNREADABLE', reader.broken!.rule)
      return false
    }
    this.#inbox.from = reader.keptFrom(this.#inbox.from)
    this.#deliver(from, found.body, found.message)
    return false
  }

  /** Hands body bytes to the client. `from`: where they were read from; in front of it everything is used up. */
  #deliver(from: number, spans: number, last: boolean): void {
    const { part } = this.#around
    part.spans = spans
    part.floor = from - MARGIN
    part.last = last
    part.trailers = this.#reader.trailers
    part.inbox = this.#inbox
    if (spans > 0) this.#machine.advance(EVENT.RESPONSE_DATA)
    const exchange = this.#exchange!
    if (last) exchange.targetState = this.#machine.reported
    exchange.downstream.replyPart(part)
    if (last && this.#machine.state !== STATE.CLOSED) this.#complete()
  }

  /** The response is complete: the connection waits for another request, or goes. */
  #complete(): void {
    this.#exchange = null
    this.#reader.finish()
    this.#machine.advance(EVENT.RESPONSE_END)
    this.#served++
    const stray = this.#inbox.to > this.#reader.parsedTo
    this.#inbox.from = this.#inbox.to
    if (this.#machine.state !== STATE.RESPONSE_DONE || this.#idleMs === 0 || stray || this.#brokenBy !== '')
      this.#close()
    else if (this.#around.isDraining || this.#writer.outbox.isBlocked) this.#close()
    else {
      this.#machine.advance(EVENT.REUSE)
      this.#socket!.setReading(true)
      this.#around.wheel.set(this, this.#idleMs)
      this.#pool.release(this)
    }
  }

  resumeReply(): void {
    if (this.#machine.state === STATE.CLOSED || this.#exchange === null) return
    this.#socket?.setReading(true)
    if (this.#awaitsBackend) this.#watch()
  }

  // ---- endings ----------------------------------------------------------------------------------------------------

  onEnd(): void {
    const { state } = this.#machine
    const readsBody = state === STATE.RESPONSE_BODY || state === STATE.EARLY_BODY
    // RFC 9112 6.3, rule 8: the end of the connection is the end of the body.
    if (readsBody && this.#exchange !== null && this.#reader.endsWithConnection) {
      this.#inbox.begin(0)
      this.#deliver(this.#inbox.to, 0, true)
      return
    }
    // After a reset that a write has met, reading sees nothing but an end.
    if (this.#brokenBy === '') this.#lose('PEER_CLOSED', 'connection closed by the back end')
    else this.#lose('WRITE_ERROR', this.#brokenBy)
  }

  onLost(code: string): void {
    if (this.#isConnecting) {
      this.#dialNext(code)
      return
    }
    this.#lose(this.#brokenBy === '' ? 'READ_ERROR' : 'WRITE_ERROR', this.#brokenBy === '' ? code : this.#brokenBy)
  }

  override onDeadline(): void {
    if (this.#isConnecting) {
      this.#around.metrics.add(METRIC.timeoutConnect, 1)
      this.#fail(CONNECT_TIMED_OUT, `no connection within ${this.#around.settings.connectTimeoutMs} ms`)
    } else if (this.#exchange === null) {
      this.#around.metrics.add(METRIC.timeoutTargetIdle, 1)
      this.#close()
    } else if (this.#brokenBy !== '') this.#lose('WRITE_ERROR', this.#brokenBy)
    // A client that takes no bytes is not the backend's fault.
    else if (!this.#clientBlocked) {
      this.#around.metrics.add(METRIC.timeoutTarget, 1)
      this.#lose('TIMED_OUT', `no input within ${this.#around.settings.socketTimeoutMs} ms`)
    }
  }

  /** The client left. */
  abandon(): void {
    const exchange = this.#exchange
    if (this.#machine.state === STATE.CLOSED) return
    if (exchange !== null) {
      const state = this.#machine.reported
      exchange.targetState = state
      const base = this.#isConnecting ? CONNECT_CANCELLED : SEND_ABORTED
      this.#pool.failed(exchange, { base, state, cause: 'the client left', status: 0 }, 'debug')
    }
    this.#exchange = null
    this.#close()
  }

  /** The socket is gone or of no use: another connection, a fault, or silence. */
  #lose(loss: Loss, cause: string): void {
    const { state } = this.#machine
    if (state === STATE.CLOSED) return
    const exchange = this.#exchange
    if (exchange === null) {
      this.#drop(cause)
      return
    }
    const { base, retry } = FATE[STATE_NAMES[state]!][loss]
    const begun = this.#inbox.length > 0
    if (retry === 'if-reused' && this.#served > 0 && this.#saved !== null && !begun) this.#resend(exchange, this.#saved)
    else this.#fail(base, cause)
  }

  #resend(exchange: Exchange, saved: SavedRequest): void {
    this.#saved = null
    this.#exchange = null
    this.#around.metrics.add(METRIC.retries, 1)
    this.#around.metrics.add(METRIC.staleConnections, 1)
    this.#close()
    this.#pool.connect(exchange, saved)
  }

  #fail(base: number, cause: string): void {
    const exchange = this.#exchange!
    const failure = { base, state: this.#machine.reported, cause, status: 0 }
    exchange.targetState = failure.state
    this.#exchange = null
    this.#close()
    this.#pool.failed(exchange, failure, 'warn')
    exchange.downstream.fail(failure)
  }

  /** Without an exchange there is nobody to tell. */
  #drop(_cause: string): void {
    this.#around.metrics.add(METRIC.staleConnections, 1)
    this.#close()
  }

  /** Closes a connection that serves nobody. */
  close(): void {
    if (this.#machine.state !== STATE.CLOSED) this.#close()
  }

  #close(): void {
    this.#machine.advance(EVENT.SOCKET_CLOSED)
    this.#socket?.destroy()
    this.#around.wheel.clear(this)
    this.#saved?.release()
    this.#saved = null
    this.#writer.outbox.release()
    this.#inbox.dispose()
    this.#reader.dispose()
    this.#pool.closed(this)
  }
}

const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'PROPFIND', 'REPORT', 'SEARCH', 'QUERY'])

function isIdempotent(method: string): boolean {
  return IDEMPOTENT.has(method)
}
