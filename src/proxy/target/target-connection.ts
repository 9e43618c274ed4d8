/**
 * One backend connection: its socket, its target machine, and the exchange that it serves. Owns the sending of the
 * request, the meaning of a lost connection, and the reuse of the connection; `response-reader.ts` owns the receiving.
 * The machine holds every state: `state-table.ts` and the failure table say what each event means in it.
 */
import type { Head } from '../../http1/head.ts'
import { arena } from '../../http1/llhttp.ts'
import type { MessageReader } from '../../http1/message-reader.ts'
import type { ConnectionListBuilder } from '../../observe/connection-list.ts'
import { METRIC } from '../../observe/metrics.ts'
import {
  CONNECT_FAILED,
  CREDENTIALS_REFUSED,
  type Loss,
  NO_MEMORY,
  POOL_FULL,
  RESPONSE_FAILED,
  TARGET_FAILURES,
} from '../../protocol/failure-table.ts'
import { Machine, ProtocolViolation } from '../../protocol/machine.ts'
import { EVENT, STATE, STATE_NAMES } from '../../protocol/states.ts'
import { NO_TIMELINE, recordAssignment } from '../../protocol/timelines.ts'
import { tracer } from '../../protocol/tracer.ts'
import { Deadline } from '../../runtime/deadline-wheel.ts'
import { type ByteSocket, type SocketOwner, type TlsFailure, WRITE, type Written } from '../../socket/byte-socket.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'
import type { BodyPart, Failure, TargetSide } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { stripTrailers } from '../exchange/head-edit.ts'
import { MessageWriter } from '../exchange/message-writer.ts'
import type { ReadBuffer } from '../exchange/read-buffer.ts'
import type { ConnectionPool } from './connection-pool.ts'
import { Connector } from './connector.ts'
import type { Endpoint } from './endpoint.ts'
import { type DecodedResponse, ResponseReader } from './response-reader.ts'
import { isRetryable, RetryBuffer } from './retry-buffer.ts'
import type { FailureCause } from './route.ts'
import { stateRow } from './state-table.ts'
import { TargetTunnelPeer } from './target-tunnel-peer.ts'

/** A loss whose base and state say all. */
const PLAIN: Pick<Failure, 'kind' | 'code'> = { kind: 'transport', code: '' }
/** Base code of a loss whose cause is the gateway's, in every state. */
const OWN_BASES: Partial<Record<Failure['kind'], number>> = { memory: NO_MEMORY, descriptors: POOL_FULL }
const OUT_OF_MEMORY: Pick<Failure, 'kind' | 'code'> = { kind: 'memory', code: '' }
/** Time for the response of a backend that takes no more of the request: it may say why. */
const LAST_RESPONSE_MS = 1000

export class TargetConnection extends Deadline implements SocketOwner, TargetSide {
  readonly id: number
  place = -1
  readonly #pool: ConnectionPool
  readonly #context: ConnectionContext
  readonly #machine = new Machine('target')
  readonly #response: ResponseReader
  readonly #writer: MessageWriter
  #connector: Connector | null = null
  #socket: ByteSocket | null = null
  #exchange: Exchange | null = null
  #endpoint: Endpoint | null = null
  /** The request, until it is sent, and where it may be sent once more, until a response begins. */
  #buffer: RetryBuffer | null = null
  /** The empty buffer of the last request, for the next one. */
  #emptyBuffer: RetryBuffer | null = null
  /** Completed exchanges. A connection that never served cannot have been closed while it was idle. */
  #served = 0
  /** Error of the first failed write, for the log. */
  #writeError = ''
  #address = ''

  constructor(id: number, pool: ConnectionPool, reader: MessageReader<DecodedResponse>, context: ConnectionContext) {
    super()
    this.id = id
    this.#pool = pool
    this.#context = context
    this.#response = new ResponseReader(this, this.#machine, reader, context, pool.inspector)
    this.#writer = new MessageWriter(context.composer, context.metrics, METRIC.bytesToTargets)
  }

  show(lister: ConnectionListBuilder): void {
    const { scheme, authority } = this.#pool
    lister.add('target', this.id, this.#machine.state, this.#address, scheme, authority, this.#exchange)
  }

  // ---- connecting -------------------------------------------------------------------------------------------------

  /** Connects for an exchange. Takes over the buffer with its request. */
  connect(exchange: Exchange, buffer: RetryBuffer, endpoint: Endpoint): void {
    this.#assign(exchange, endpoint, 'connecting as')
    this.#buffer = buffer
    // The head is buffered; the body that follows later needs the framing that the head announced.
    this.#writer.compose(0, exchange.requestFraming)
    exchange.connectMs = this.#context.now()
    exchange.sentMs = 0
    const { route, network } = this.#pool
    const client = route.sendsProxyHeader === true ? exchange.source.addresses : null
    this.#connector = new Connector(route, network, this.#context, this, client)
    this.#connector.start(this.#pool.nextAddressIndex())
  }

  connected(socket: ByteSocket, address: string): void {
    const exchange = this.#exchange!
    const buffer = this.#buffer!
    this.#connector = null
    this.#address = address
    this.#socket = socket
    this.#machine.advance(EVENT.CONNECTED)
    this.#writer.open(socket)
    socket.attach(this, this.#response.firstView)
    exchange.connectMs = this.#context.now() - exchange.connectMs
    tracer?.note(exchange, 'connected', address)
    this.#begin(exchange)
    this.#buffer = this.#endpoint!.failsOver && isRetryable(exchange) ? buffer.copy() : null
    const written = this.#writer.writeBuffer.writeChunks(buffer.take())
    if (written === WRITE.FAILED) {
      // The head may have left, and the backend may have answered it.
      this.onWriteFailed('EPIPE')
      return
    }
    if (buffer.hasBody) this.#machine.advance(EVENT.REQUEST_DATA)
    if (buffer.isComplete) this.#requestSent()
    if (written === WRITE.DONE) exchange.source.resumeRequest()
    else this.#watch()
  }

  notConnected(loss: Loss, failure: FailureCause, address: string): void {
    this.#connector = null
    this.#address = address
    if (loss === 'TIMED_OUT') this.#context.metrics.add(METRIC.timeoutConnect, 1)
    this.#lose(loss, failure.cause, failure)
  }

  // ---- the request ------------------------------------------------------------------------------------------------

  /** Serves an exchange whose head is in the thread's composer. */
  serve(exchange: Exchange, headLength: number, prefixLength: number, endpoint: Endpoint): void {
    this.#assign(exchange, endpoint, 'reusing')
    this.#context.wheel.suspend(this)
    this.#writer.compose(headLength, exchange.requestFraming)
    if (isRetryable(exchange)) {
      const buffer = this.#emptyBuffer ?? new RetryBuffer()
      this.#emptyBuffer = null
      const { offset } = this.#context.composer.chunk
      if (buffer.fill(offset, headLength, prefixLength, true)) this.#buffer = buffer
    }
    this.#context.metrics.add(METRIC.targetsReused, 1)
    this.#begin(exchange)
  }

  #assign(exchange: Exchange, endpoint: Endpoint, how: string): void {
    this.#exchange = exchange
    this.#endpoint = endpoint
    exchange.target = this
    exchange.targetId = this.id
    this.#machine.timeline = exchange.timeline
    recordAssignment(exchange.timeline, this.#machine.state)
    tracer?.assign(exchange, this.#machine, 'backend', `${this.#pool.authority}, ${how} http-outgoing-${this.id}`)
  }

  #begin(exchange: Exchange): void {
    exchange.sentMs = this.#context.now()
    this.#machine.advance(EVENT.REQUEST_BEGIN)
    if (exchange.requestFraming !== 0) this.#machine.advance(EVENT.REQUEST_BODY)
    this.#response.expect(exchange)
  }

  requestBody(part: BodyPart): Written {
    const { request, awaitsBackend } = stateRow(this.#machine.state)
    if (part.last && part.trailers.count > 0) this.#stripTrailers(part)
    if (request === 'buffer') return this.#bufferBody(part)
    if (request === 'discard') return WRITE.DONE
    // A request without body leaves with the others of this turn: it was not sent at all, or may be sent once more.
    const written = this.#writer.part(part, part.last && this.#exchange!.requestFraming === 0)
    if (written === WRITE.FAILED) return this.#writeFailed()
    if (part.count > 0) this.#machine.advance(EVENT.REQUEST_DATA)
    if (part.last) this.#requestSent()
    else if (awaitsBackend || written === WRITE.PENDING) this.#watch()
    return written
  }

  #stripTrailers({ trailers }: BodyPart): void {
    const edit = this.#exchange?.requestEdit ?? null
    if (edit !== null) stripTrailers(arena.bytes, trailers, edit)
  }

  #bufferBody(part: BodyPart): Written {
    if (this.#buffer!.add(this.#context.composer, part, this.#exchange!.requestFraming)) return WRITE.PENDING
    const cause = 'no memory for a request that waits for its connection'
    this.#fail(this.#failure(NO_MEMORY, cause, OUT_OF_MEMORY), null)
    return WRITE.FAILED
  }

  /** The request is complete: the backend's time starts. */
  #requestSent(): void {
    this.#machine.advance(EVENT.REQUEST_END)
    const exchange = this.#exchange!
    // Without a body the request left with its head.
    exchange.requestSentMs = exchange.requestFraming === 0 ? exchange.sentMs : this.#context.now()
    this.#watch()
  }

  /** Starts the deadline for the backend's next move. */
  #watch(): void {
    this.#context.wheel.set(this, this.#waitMs)
  }

  /** `http.socket.timeout` in milliseconds, and for the start of a response at most its own limit (D39). */
  get #waitMs(): number {
    const { socketTimeoutMs, responseTimeoutMs } = this.#context.settings
    const limitMs =
      this.#machine.state === STATE.REQUEST_DONE ? this.#endpoint!.responseTimeoutMs || responseTimeoutMs : 0
    if (limitMs === 0) return socketTimeoutMs
    return Math.max(1, Math.min(socketTimeoutMs, limitMs - (this.#context.now() - this.#exchange!.requestSentMs)))
  }

  get #awaitsBackend(): boolean {
    return stateRow(this.#machine.state).awaitsBackend || this.#writer.writeBuffer.isBlocked
  }

  get isBlocked(): boolean {
    return this.#machine.state === STATE.CONNECTING || this.#writer.writeBuffer.isBlocked
  }

  /** The first write on a reused connection that the backend has closed fails as a whole: nothing was sent. */
  #writeFailed(): Written {
    if (this.#machine.state === STATE.REQUEST_HEAD && this.#served > 0 && this.#buffer !== null) {
      this.#retry(this.#exchange!, this.#buffer)
      return WRITE.PENDING
    }
    this.onWriteFailed('EPIPE')
    return WRITE.FAILED
  }

  onWriteFailed(code: string): void {
    this.#writer.writeBuffer.release()
    if (stateRow(this.#machine.state).writeFailed === 'lose') {
      this.#lose('WRITE_ERROR', code)
      return
    }
    this.#writeError = code
    this.#machine.advance(EVENT.WRITE_FAILED)
    this.#context.wheel.set(this, LAST_RESPONSE_MS)
    this.#exchange!.source.resumeRequest()
  }

  onBlocked(): void {
    this.#writer.writeBuffer.block()
  }

  onDrained(): void {
    this.#writer.writeBuffer.release()
    if (this.#machine.state === STATE.REQUEST_BODY) this.#context.wheel.suspend(this)
    this.#exchange?.source.resumeRequest()
  }

  // ---- the response -----------------------------------------------------------------------------------------------

  onBytes(length: number): Uint8Array | undefined {
    return this.#context.clock.during(this, length)
  }

  /** The event itself. */
  receive(length: number): Uint8Array | undefined {
    this.#context.metrics.add(METRIC.bytesFromTargets, length)
    if (stateRow(this.#machine.state).reads === 'stale') {
      // No request is under way: these bytes must never be taken for the response to the next one.
      this.#closeStale()
      return undefined
    }
    this.#response.receive(length)
    const { state } = this.#machine
    if (stateRow(state).reads === 'gone') return undefined
    const isClientBlocked = this.#isClientBlocked
    const view = this.#response.settle(isClientBlocked)
    if (view === null) {
      this.#lose('UNREADABLE', 'no memory for the bytes of a connection', OUT_OF_MEMORY)
      return undefined
    }
    if (state !== STATE.REQUEST_READY) {
      this.#socket!.setReading(!isClientBlocked)
      if (!isClientBlocked && this.#awaitsBackend) this.#watch()
    }
    return view
  }

  get #isClientBlocked(): boolean {
    return this.#exchange?.source.isBlocked ?? false
  }

  /** The backend has responded, if only with 1xx: the request is not sent again. */
  responded(status: number): void {
    const buffer = this.#buffer
    if (buffer !== null) {
      buffer.release()
      this.#emptyBuffer = buffer
      this.#buffer = null
    }
    if (status >= 200) this.#endpoint!.responded()
  }

  /** A 101 to a requested protocol, whose first byte is at `at`. `readBuffer` holds the bytes behind it. */
  switchProtocols(head: Head, at: number, readBuffer: ReadBuffer): void {
    const exchange = this.#exchange!
    this.#endpoint!.responded()
    this.#context.wheel.clear(this)
    const peer = new TargetTunnelPeer(
      this,
      exchange,
      this.#machine,
      this.#socket!,
      readBuffer,
      this.#writer.writeBuffer,
      this.#pool,
      this.#address,
      this.#context,
    )
    exchange.source.switchProtocols(head, at, peer)
  }

  /** The response breaks the protocol. */
  unreadable(rule: string): void {
    this.#lose('UNREADABLE', rule)
  }

  /** A proxy refuses the request: as for a refused tunnel, there was no connection to the backend (D41). */
  proxyRefused(failure: FailureCause): void {
    this.#fail({ base: CONNECT_FAILED, state: STATE.REQUEST_READY, ...failure, status: 0 }, null)
  }

  /** The backend refuses the gateway's own credentials. */
  credentialsRefused(): void {
    const cause = "the backend refuses the gateway's credentials"
    this.#fail(this.#failure(CREDENTIALS_REFUSED, cause), null)
  }

  /** The response is complete. `idleMs`: how long the connection may wait for another request; 0: it is not reused. */
  completed(idleMs: number): void {
    this.#exchange = null
    this.#machine.timeline = NO_TIMELINE
    this.#served++
    // A response can be complete while the end of its request still waits in the socket.
    const isReusable = this.#machine.state === STATE.RESPONSE_DONE && !this.#writer.writeBuffer.isBlocked
    const isOfOneClient = this.#pool.route.sendsProxyHeader === true
    if (!isReusable || idleMs === 0 || isOfOneClient || this.#context.isDraining) {
      this.#close()
      return
    }
    this.#machine.advance(EVENT.REUSE)
    this.#socket!.setReading(true)
    this.#context.wheel.set(this, idleMs)
    this.#pool.release(this)
  }

  resumeResponse(): void {
    if (this.#exchange === null) return
    this.#socket?.setReading(true)
    if (this.#awaitsBackend) this.#watch()
  }

  // ---- endings ----------------------------------------------------------------------------------------------------

  onEnd(): void {
    if (this.#response.endsWithConnection) this.#response.end()
    else this.#lose('PEER_CLOSED', 'connection closed by the backend')
  }

  onTlsFailed(failure: TlsFailure): void {
    this.#lose('READ_ERROR', failure.cause, failure)
  }

  onLost(code: string): void {
    this.#lose('READ_ERROR', code)
  }

  /** Code of the gateway threw while it served this connection, or the backend broke the protocol. */
  override onError(error: unknown): void {
    const { state } = this.#machine
    if (state === STATE.CLOSED) return
    if (error instanceof ProtocolViolation && error.side === 'target' && error.culprit === 'peer') {
      this.unreadable(error.message)
      return
    }
    this.#pool.reportBug(this.id, error)
    if (this.#exchange === null) this.#close()
    else this.#failOrHandOver(this.#failure(RESPONSE_FAILED, 'internal error'))
  }

  override onDeadline(): void {
    switch (stateRow(this.#machine.state).deadline) {
      case 'idle':
        this.#context.metrics.add(METRIC.timeoutTargetIdle, 1)
        this.#close()
        return
      case 'write-failed':
        this.#lose('WRITE_ERROR', this.#writeError)
        return
      case 'late':
        // A client that takes no bytes is not the backend's fault.
        if (this.#isClientBlocked) return
        this.#context.metrics.add(METRIC.timeoutTarget, 1)
        this.#lose('TIMED_OUT', this.#lateness)
    }
  }

  /** The time limit that the backend has exceeded. */
  get #lateness(): string {
    const { socketTimeoutMs } = this.#context.settings
    const isSocketTimeout = this.#waitMs === socketTimeoutMs
    return isSocketTimeout ? `no input within ${socketTimeoutMs} ms` : 'no response within the time for one'
  }

  /** As of `TargetSide`. */
  abort(cause = 'the client left'): void {
    const { state, reported } = this.#machine
    if (state === STATE.CLOSED) return
    const exchange = this.#exchange
    if (exchange !== null) {
      const { base } = TARGET_FAILURES[STATE_NAMES[state]!].CLIENT_LEFT
      exchange.targetState = reported
      this.#pool.reportFailure(exchange, this.#failure(base, cause), 'debug', this.#address)
    }
    this.#close()
  }

  /** The connection is lost or of no use: another connection, a fault, or no report follows, by the failure table. */
  #lose(loss: Loss, cause: string, detail = PLAIN): void {
    const { state } = this.#machine
    if (state === STATE.CLOSED) return
    const exchange = this.#exchange
    if (exchange === null) {
      this.#closeStale()
      return
    }
    const { base, retry } = TARGET_FAILURES[STATE_NAMES[state]!][loss]
    const ownBase = OWN_BASES[detail.kind]
    if (ownBase !== undefined) {
      this.#fail(this.#failure(ownBase, cause, detail), null)
      return
    }
    if (retry === 'if-reused' && this.#served > 0 && this.#response.isEmpty && this.#buffer !== null) {
      this.#retry(exchange, this.#buffer)
      return
    }
    // After a failed write, whatever the socket reports next is a consequence of it.
    const isConsequence = stateRow(state).request === 'discard' && loss !== 'UNREADABLE'
    this.#failOrHandOver(this.#failure(base, isConsequence ? this.#writeError : cause, detail))
  }

  #failure(base: number, cause: string, { kind, code } = PLAIN): Failure {
    return { base, state: this.#machine.reported, kind, code, cause, status: 0 }
  }

  #retry(exchange: Exchange, buffer: RetryBuffer): void {
    const endpoint = this.#endpoint!
    this.#buffer = null
    this.#context.metrics.add(METRIC.retries, 1)
    this.#closeStale()
    this.#pool.connect(exchange, buffer, endpoint)
  }

  /** Before a byte of a response came, a buffered request may go to another endpoint. */
  #failOrHandOver(failure: Failure): void {
    const buffer = this.#response.isEmpty ? this.#buffer : null
    if (buffer !== null) this.#buffer = null
    this.#fail(failure, buffer)
  }

  #fail(failure: Failure, buffer: RetryBuffer | null): void {
    const exchange = this.#exchange!
    const endpoint = this.#endpoint!
    exchange.targetState = failure.state
    this.#close()
    this.#pool.reportFailure(exchange, failure, 'warn', this.#address)
    if (!endpoint.failed(exchange, failure, buffer)) exchange.source.fail(failure)
  }

  /** Closes an idle connection that its backend has closed, or that has stray bytes. No exchange is concerned. */
  #closeStale(): void {
    this.#context.metrics.add(METRIC.staleConnections, 1)
    this.#close()
  }

  /** Closes a connection that serves no exchange. */
  close(): void {
    if (this.#machine.state !== STATE.CLOSED) this.#close()
  }

  #close(): void {
    this.#machine.advance(EVENT.SOCKET_CLOSED)
    this.#exchange = null
    this.#connector?.cancel()
    this.#connector = null
    this.#socket?.destroy()
    this.#context.wheel.clear(this)
    this.#buffer?.release()
    this.#buffer = null
    this.#writer.writeBuffer.release()
    this.#response.dispose()
    this.#pool.closed(this)
  }
}
