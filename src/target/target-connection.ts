/**
 * One backend connection: socket and target machine on one side, the exchange it serves on the other. Owns the way out
 * of the request, what a lost connection means, and whether it may serve again; `response-side.ts` owns what is read.
 * Every change of state goes through the machine.
 */
import type { BodyPart, Upstream } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Inbox } from '../exchange/inbox.ts'
import { MessageWriter } from '../exchange/message-writer.ts'
import type { Surroundings } from '../exchange/surroundings.ts'
import type { Head } from '../http1/head.ts'
import type { MessageReader } from '../http1/message-reader.ts'
import type { ConnectionLister } from '../observe/connection-row.ts'
import { METRIC } from '../observe/metrics.ts'
import {
  CONNECT_CANCELLED,
  CONNECT_FAILED,
  CONNECT_TIMED_OUT,
  FATE,
  type Loss,
  POOL_FULL,
  RESPONSE_FAILED,
  SEND_ABORTED,
} from '../protocol/fate.ts'
import { Machine, ProtocolViolation } from '../protocol/machine.ts'
import { EVENT, STATE, STATE_NAMES } from '../protocol/states.ts'
import { tracer } from '../protocol/tracer.ts'
import { type ByteSocket, type SocketOwner, WRITE, type Written } from '../socket/byte-socket.ts'
import { Deadline } from '../structure/deadline-wheel.ts'
import { BackendEnd } from './backend-end.ts'
import { Connector } from './connector.ts'
import type { HostPool } from './host-pool.ts'
import { LAST_WORD_MS, ResponseClock } from './response-clock.ts'
import { ResponseSide } from './response-side.ts'
import { mayResend, SavedRequest } from './saved-request.ts'
import type { Sender } from './sender.ts'

export class TargetConnection extends Deadline implements SocketOwner, Upstream {
  readonly id: number
  readonly #pool: HostPool
  readonly #around: Surroundings
  readonly #machine = new Machine('target')
  readonly #response: ResponseSide
  readonly #writer: MessageWriter
  readonly #clock: ResponseClock
  #socket: ByteSocket | null = null
  #exchange: Exchange | null = null
  /** The request while it may have to be sent (again): until connected, or until a response begins. */
  #saved: SavedRequest | null = null
  /** Exchanges completed. A connection that never served cannot be stale. */
  #served = 0
  /** Why nothing more can be written, '' while it can. */
  #brokenBy = ''
  #sender: Sender | null = null
  /** While it is being opened. */
  #connector: Connector | null = null
  #address = ''

  constructor(id: number, pool: HostPool, reader: MessageReader, around: Surroundings) {
    super()
    this.id = id
    this.#pool = pool
    this.#around = around
    this.#response = new ResponseSide(this, this.#machine, reader, around, pool.watch)
    this.#clock = new ResponseClock(around)
    this.#writer = new MessageWriter(around.composer, around.metrics, METRIC.bytesToTargets)
  }

  show(lister: ConnectionLister): void {
    const { scheme, authority } = this.#pool
    lister.add('target', this.id, this.#machine.state, this.#address, scheme, authority, this.#exchange)
  }

  /** Connects for an exchange whose request is saved. */
  connect(exchange: Exchange, saved: SavedRequest, sender: Sender): void {
    this.#assign(exchange, sender, 'connecting as')
    this.#saved = saved
    // The head is in `saved`; what follows it later needs the framing that it announced.
    this.#writer.compose(0, exchange.requestFraming)
    exchange.connectMs = this.#around.now()
    this.#connector = new Connector(this.#pool.route, this.#pool.paths, this.#around, this)
    this.#connector.start(this.#pool.nextTurn())
  }

  connected(socket: ByteSocket, address: string): void {
    const exchange = this.#exchange!
    const saved = this.#saved!
    this.#connector = null
    this.#address = address
    this.#socket = socket
    this.#writer.open(socket)
    socket.attach(this, this.#response.firstView)
    exchange.connectMs = this.#around.now() - exchange.connectMs
    tracer?.noted(exchange, 'connected', address)
    this.#begin(exchange)
    this.#saved = this.#sender!.hasAlternative && mayResend(exchange) ? saved.copy() : null
    const written = this.#writer.outbox.writeChunks(saved.take())
    if (written === WRITE.FAILED) {
      this.#lose('WRITE_ERROR', 'EPIPE')
      return
    }
    if (saved.hasBody) this.#machine.advance(EVENT.REQUEST_DATA)
    if (saved.isComplete) this.#requestSent()
    if (written === WRITE.DONE) exchange.downstream.resumeRequest()
    else this.#watch()
  }

  notConnected(base: number, cause: string, address: string): void {
    this.#connector = null
    this.#address = address
    if (base === CONNECT_TIMED_OUT) this.#around.metrics.add(METRIC.timeoutConnect, 1)
    this.#fail(base, cause)
  }

  // ---- the request ------------------------------------------------------------------------------------------------

  /** Takes an exchange whose head stands composed in the thread's composer. */
  serve(exchange: Exchange, headLength: number, prefix: number, sender: Sender): void {
    this.#assign(exchange, sender, 'reusing')
    this.#around.wheel.suspend(this)
    this.#writer.compose(headLength, exchange.requestFraming)
    if (mayResend(exchange)) this.#saved = SavedRequest.copyOf(this.#around.composer, headLength, prefix)
    this.#around.metrics.add(METRIC.targetsReused, 1)
    this.#begin(exchange)
  }

  #assign(exchange: Exchange, sender: Sender, how: string): void {
    this.#exchange = exchange
    this.#sender = sender
    exchange.upstream = this
    exchange.targetId = this.id
    tracer?.taken(exchange, this.#machine, 'back end', `${this.#pool.authority}, ${how} http-outgoing-${this.id}`)
  }

  #begin(exchange: Exchange): void {
    exchange.sentMs = this.#around.now()
    this.#machine.advance(EVENT.REQUEST_BEGIN)
    if (exchange.requestFraming !== 0) this.#machine.advance(EVENT.REQUEST_BODY)
    this.#response.expect(exchange)
  }

  requestPart(part: BodyPart): Written {
    if (this.#connector !== null) {
      const kept = this.#saved!.add(this.#around, part, this.#exchange!.requestFraming)
      if (!kept) this.#failed(POOL_FULL, 'no memory for a request that waits for its connection', null)
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
    this.#exchange!.requestSentMs = this.#around.now()
    this.#watch()
  }

  /** The next move is the backend's. */
  #watch(): void {
    this.#around.wheel.set(this, this.#clock.waitMs(this.#machine.state, this.#exchange!, this.#sender!))
  }

  /** While a request body is under way and the backend takes it, the next move is the client's. */
  get #awaitsBackend(): boolean {
    return this.#machine.state !== STATE.REQUEST_BODY || this.#writer.outbox.isBlocked
  }

  get isBlocked(): boolean {
    return this.#connector !== null || (this.#brokenBy === '' && this.#writer.outbox.isBlocked)
  }

  /** The first write on a pooled connection that was closed meanwhile fails as a whole: nothing was sent. */
  #writeFailed(): Written {
    if (this.#machine.state === STATE.REQUEST_HEAD && this.#served > 0 && this.#saved !== null) {
      this.#resend(this.#exchange!, this.#saved)
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
    this.#around.metrics.add(METRIC.bytesFromTargets, length)
    if (this.#exchange === null) {
      // Nobody asked: whatever this is, it must never be taken for the answer to the next request.
      this.#dropStale()
      return undefined
    }
    this.#response.receive(length)
    const { state } = this.#machine
    // Closed, or a tunnel's from now on.
    if (state === STATE.CLOSED || state >= STATE.TUNNEL) return undefined
    const view = this.#response.settle(this.#clientBlocked)
    if (view === null) {
      this.#lose('UNREADABLE', 'no memory for the bytes of a connection')
      return undefined
    }
    if (this.#exchange !== null) {
      this.#socket!.setReading(!this.#clientBlocked)
      if (!this.#clientBlocked && this.#awaitsBackend) this.#watch()
    }
    return view
  }

  get #clientBlocked(): boolean {
    return this.#exchange?.downstream.isBlocked ?? false
  }

  answered(status: number): void {
    this.#saved?.release()
    this.#saved = null
    if (status >= 200) this.#sender!.answered(this.#exchange!)
  }

  switched(head: Head, at: number, inbox: Inbox): void {
    const exchange = this.#exchange!
    this.#sender!.answered(exchange)
    this.#around.wheel.clear(this)
    const own = { connection: this, exchange, machine: this.#machine, socket: this.#socket!, inbox }
    const shared = { outbox: this.#writer.outbox, pool: this.#pool, address: this.#address }
    exchange.downstream.switchProtocols(head, at, new BackendEnd({ ...own, ...shared }, this.#around))
  }

  unreadable(rule: string): void {
    this.#lose('UNREADABLE', rule)
  }

  /** CONNECT_FAILED: as when a proxy opens no tunnel, there is no connection, however much the proxy was sent. */
  refused(base: number, cause: string): void {
    this.#failed(base, cause, null)
  }

  completed(idleMs: number): void {
    this.#exchange = null
    this.#served++
    const isWhole =
      this.#machine.state === STATE.RESPONSE_DONE && this.#brokenBy === '' && !this.#writer.outbox.isBlocked
    if (!isWhole || idleMs === 0 || this.#around.isDraining) {
      this.#close()
      return
    }
    this.#machine.advance(EVENT.REUSE)
    this.#socket!.setReading(true)
    this.#around.wheel.set(this, idleMs)
    this.#pool.release(this)
  }

  resumeReply(): void {
    if (this.#machine.state === STATE.CLOSED || this.#exchange === null) return
    this.#socket?.setReading(true)
    if (this.#awaitsBackend) this.#watch()
  }

  // ---- endings ----------------------------------------------------------------------------------------------------

  onEnd(): void {
    if (this.#response.endsWithConnection) this.#response.end()
    // After a reset that a write has met, reading sees nothing but an end.
    else if (this.#brokenBy === '') this.#lose('PEER_CLOSED', 'connection closed by the back end')
    else this.#lose('WRITE_ERROR', this.#brokenBy)
  }

  onHandshakeFailed(cause: string): void {
    this.#lose('READ_ERROR', cause)
  }

  onLost(code: string): void {
    this.#lose(this.#brokenBy === '' ? 'READ_ERROR' : 'WRITE_ERROR', this.#brokenBy === '' ? code : this.#brokenBy)
  }

  /** Something of ours threw while this connection was served. */
  onBug(error: unknown): void {
    if (this.#machine.state === STATE.CLOSED) return
    if (error instanceof ProtocolViolation && error.side === 'target' && error.culprit === 'peer') {
      this.unreadable(error.message)
      return
    }
    this.#pool.threw(this.id, error)
    if (this.#exchange === null) this.#close()
    else this.#fail(RESPONSE_FAILED, 'internal error')
  }

  override onDeadline(): void {
    if (this.#exchange === null) {
      this.#around.metrics.add(METRIC.timeoutTargetIdle, 1)
      this.#close()
    } else if (this.#brokenBy !== '') this.#lose('WRITE_ERROR', this.#brokenBy)
    // A client that takes no bytes is not the backend's fault.
    else if (!this.#clientBlocked) {
      this.#around.metrics.add(METRIC.timeoutTarget, 1)
      this.#lose('TIMED_OUT', this.#clock.lateness(this.#machine.state, this.#exchange, this.#sender!))
    }
  }

  /** The client left. */
  abandon(): void {
    const exchange = this.#exchange
    if (this.#machine.state === STATE.CLOSED) return
    if (exchange !== null) {
      const state = this.#machine.reported
      exchange.targetState = state
      const base = this.#connector !== null ? CONNECT_CANCELLED : SEND_ABORTED
      this.#pool.failed(exchange, { base, state, cause: 'the client left', status: 0 }, 'debug', this.#address)
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
      this.#dropStale()
      return
    }
    const { base, retry } = FATE[STATE_NAMES[state]!][loss]
    const mayRetry = retry === 'if-reused' && this.#served > 0 && this.#response.isEmpty
    if (mayRetry && this.#saved !== null) this.#resend(exchange, this.#saved)
    else this.#fail(base, cause)
  }

  #resend(exchange: Exchange, saved: SavedRequest): void {
    const sender = this.#sender!
    this.#saved = null
    this.#exchange = null
    this.#around.metrics.add(METRIC.retries, 1)
    this.#dropStale()
    this.#pool.connect(exchange, saved, sender)
  }

  /** Before a byte of a response came, and while the request is here: perhaps for another endpoint. */
  #fail(base: number, cause: string): void {
    const saved = this.#response.isEmpty ? this.#saved : null
    if (saved !== null) this.#saved = null
    this.#failed(base, cause, saved)
  }

  #failed(base: number, cause: string, saved: SavedRequest | null): void {
    const exchange = this.#exchange!
    const sender = this.#sender!
    const state = base === CONNECT_FAILED ? STATE.REQUEST_READY : this.#machine.reported
    const failure = { base, state, cause, status: 0 }
    exchange.targetState = state
    this.#exchange = null
    this.#close()
    this.#pool.failed(exchange, failure, 'warn', this.#address)
    if (!sender.failed(exchange, failure, saved)) exchange.downstream.fail(failure)
  }

  /** A kept connection that its backend ended, or spoke on: there is nobody to tell. */
  #dropStale(): void {
    this.#around.metrics.add(METRIC.staleConnections, 1)
    this.#close()
  }

  /** Closes a connection that serves nobody. */
  close(): void {
    if (this.#machine.state !== STATE.CLOSED) this.#close()
  }

  #close(): void {
    this.#machine.advance(EVENT.SOCKET_CLOSED)
    this.#connector?.cancel()
    this.#connector = null
    this.#socket?.destroy()
    this.#around.wheel.clear(this)
    this.#saved?.release()
    this.#saved = null
    this.#writer.outbox.release()
    this.#response.dispose()
    this.#pool.closed(this)
  }
}
