/**
 * A client connection: its socket, its source machine and its exchange. Decides which response the client gets and when
 * the connection ends. `request-reader.ts` reads requests, `response-writer.ts` writes responses. Every state change
 * goes through the machine; `state-table.ts` says what happens per state.
 */
import type { FaultCode } from '../../faults/error-codes.ts'
import type { BodyPart, SourceSide, Failure } from '../exchange/contract.ts'
import type { ExchangeHandlers } from '../exchange/exchange-handlers.ts'
import { Exchange } from '../exchange/exchange.ts'
import { TraceContext } from '../exchange/trace-context.ts'
import { type KeptResponse, type Refusal, refusal } from '../exchange/outcome.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'
import { Tunnel } from '../exchange/tunnel.ts'
import { type BackendTunnelPeer, type CloseMode, declineTunnel } from '../exchange/tunnel-peer.ts'
import { type BadMessage, bad } from '../../http1/bad-message.ts'
import type { Head } from '../../http1/head.ts'
import type { MessageReader } from '../../http1/message-reader.ts'
import type { ConnectionListBuilder } from '../../observe/connection-list.ts'
import { METRIC } from '../../observe/metrics.ts'
import { INCOMPLETE_PAYLOAD } from '../../protocol/failure-table.ts'
import { Machine } from '../../protocol/machine.ts'
import { EVENT, STATE } from '../../protocol/states.ts'
import { NO_TIMELINE } from '../../protocol/timelines.ts'
import { type ByteSocket, type SocketOwner, type TlsFailure, WRITE, type Written } from '../../socket/byte-socket.ts'
import type { ConnectionAddresses } from '../../socket/proxy-header.ts'
import { Deadline } from '../../runtime/deadline-wheel.ts'
import { ClientPace } from './client-pace.ts'
import { ClientTunnelPeer } from './client-tunnel-peer.ts'
import { ClientReport } from './client-report.ts'
import type { Client, ConnectionCallbacks } from './connection-callbacks.ts'
import { LingeringClose } from './lingering-close.ts'
import { ResponseWriter, type StrippedResponseFields } from './response-writer.ts'
import { type RequestOwner, RequestReader } from './request-reader.ts'
import type { DecodedFields } from './request-decoder.ts'
import { stateRow } from './state-table.ts'

/** Log events of refused heads by status; others are `malformed request`. */
const REFUSAL_EVENTS: Readonly<Record<number, string>> = {
  421: 'misdirected request',
  426: 'upgrade required',
  508: 'request loop',
}
const REFUSAL_CODES: Readonly<Record<number, FaultCode>> = { 508: 102512 }
const TRUNCATED = bad(400, 'the connection ended within the head (RFC 9112 8)')

export class SourceConnection extends Deadline implements SocketOwner, SourceSide, RequestOwner {
  place = -1
  readonly #client: Client
  readonly #socket: ByteSocket
  readonly #context: ConnectionContext
  readonly #callbacks: ConnectionCallbacks
  readonly #addresses: ConnectionAddresses | null
  readonly #machine = new Machine('source')
  readonly #exchange: Exchange
  readonly #request: RequestReader
  readonly #writer: ResponseWriter
  /** null until they are needed: most connections end without. */
  #linger: LingeringClose | null = null
  #paced: ClientPace | null = null
  /** The tunnel that has the socket after 101. */
  #tunnel: Tunnel | null = null

  /** `addresses`: as a PROXY header has them; null for those of the socket. */
  constructor(
    id: number,
    socket: ByteSocket,
    client: Client,
    reader: MessageReader<DecodedFields>,
    stripped: StrippedResponseFields,
    context: ConnectionContext,
    callbacks: ConnectionCallbacks,
    addresses: ConnectionAddresses | null,
  ) {
    super()
    this.#socket = socket
    this.#context = context
    this.#callbacks = callbacks
    this.#addresses = addresses
    this.#client = client
    this.#exchange = new Exchange(this, socket, client.address, id, client.idPrefix)
    if (client.traces !== null) this.#exchange.trace = new TraceContext(client.traces)
    this.#request = new RequestReader(this, this.#machine, this.#exchange, reader, client, context, socket)
    this.#writer = new ResponseWriter(socket, this.#machine, this.#exchange, context, stripped)
  }

  get #report(): ClientReport {
    return new ClientReport(this.#context, this.#machine, this.#exchange)
  }

  get #pace(): ClientPace {
    this.#paced ??= new ClientPace(this.#context.settings)
    return this.#paced
  }

  get #lingeringClose(): LingeringClose {
    this.#linger ??= new LingeringClose(this, this.#socket, this.#machine, this.#request, this.#context)
    return this.#linger
  }

  get client(): Client {
    return this.#client
  }

  open(): void {
    this.#context.wheel.set(this, this.#context.settings.headerReadMs)
    this.#socket.attach(this, this.#request.firstView)
  }

  /** Takes bytes read in front of `open`, at the start of its first view. Returns the view for the next read. */
  resumeRead(length: number): Uint8Array | undefined {
    try {
      return this.onBytes(length)
    } catch (error) {
      this.onError(error)
      return undefined
    }
  }

  get addresses(): ConnectionAddresses | null {
    return this.#addresses ?? this.#socket.addresses
  }

  show(lister: ConnectionListBuilder): void {
    const { address, scheme } = this.#client
    lister.add('source', this.#exchange.sourceId, this.#machine.state, address, scheme, '', this.#exchange)
  }

  // ---- the request ------------------------------------------------------------------------------------------------

  onBytes(length: number): Uint8Array | undefined {
    return this.#context.clock.during(this, length)
  }

  /** The event itself. */
  receive(length: number): Uint8Array | undefined {
    this.#context.metrics.add(METRIC.bytesFromClients, length)
    this.#request.receive(length)
    if (stateRow(this.#machine.state).reads === 'drop') this.#lingeringClose.discard(length)
    else this.#request.serve()
    if (this.#machine.state === STATE.CLOSED) return undefined
    const view = this.#request.settle()
    if (view === null) {
      this.#report.lost('ABORTED', 'buffers exhausted', 'no memory for the bytes of a connection')
      this.#abortExchange()
      return undefined
    }
    this.#regulate()
    return view
  }

  requestBegan(): void {
    this.#context.wheel.suspend(this)
  }

  awaitHead(): void {
    // Runs from the first byte on, however slowly the others follow.
    if (this.dueTick === 0) this.#context.wheel.set(this, this.#context.settings.headerReadMs)
  }

  process(): Promise<() => void> | undefined {
    return this.#callbacks.process(this.#exchange)
  }

  resumeRequest(): void {
    if (this.#machine.state !== STATE.CLOSED) this.#regulate()
  }

  /** Starts or stops reading the client; while a body is read, its next piece has a deadline. */
  #regulate(): void {
    const { wheel } = this.#context
    const wants = this.#request.wantsBytes()
    this.#socket.setReading(wants)
    if (!stateRow(this.#machine.state).timesBody) return
    if (wants) {
      const waitMs = this.#request.bodyWaitMs()
      // Setting the same deadline again rounds it up again: drops faster than the clock ticks would never time out.
      if (waitMs > 0) wheel.set(this, waitMs)
    } else {
      this.#request.holdBody()
      wheel.suspend(this)
    }
  }

  // ---- the response -----------------------------------------------------------------------------------------------

  get isBlocked(): boolean {
    return this.#writer.buffer.isBlocked
  }

  interimResponse(head: Head, at: number): void {
    this.#sent(this.#writer.interim(head, at))
  }

  responseHead(head: Head, at: number, framing: number): void {
    if (this.#exchange.handlers !== null) this.#handle(this.#exchange.handlers, head)
    this.#writer.head(head, at, framing)
  }

  /** Runs the handlers of the operator on the head of a response. */
  #handle(handlers: ExchangeHandlers, head: Head): void {
    this.#exchange.responseEdit = handlers.responseEdit(head, this.#exchange.responseEdit)
  }

  responseBody(part: BodyPart): Written {
    // With a request behind this one, the state of the connection goes on before the turn ends.
    const gathers = stateRow(this.#machine.state).gathers && this.#exchange.persists && this.#request.isEmpty
    const written = this.#writer.part(part, gathers && part.last)
    if (this.#sent(written) && part.last) this.#finish()
    return written
  }

  sendKeptResponse(response: KeptResponse): void {
    if (this.#sent(this.#writer.keptResponse(response, this.#request.isAtEnd))) this.#finish()
  }

  sendLocalResponse(status: number, reason: string, lines: string, body: string): void {
    const { handlers } = this.#exchange
    const handled = handlers === null ? lines : handlers.localLines(status, lines)
    if (this.#sent(this.#writer.localResponse(status, reason, handled, body))) this.#finish()
  }

  /** Handles the result of a write; false when the client is lost. */
  #sent(written: Written): boolean {
    if (written === WRITE.DONE) return true
    if (written === WRITE.FAILED) {
      this.onLost('EPIPE')
      return false
    }
    this.awaitClient()
    return true
  }

  /** Starts the deadline of a client for which bytes wait. */
  awaitClient(): void {
    const { wheel, now } = this.#context
    wheel.set(this, this.#pace.waiting(now()))
  }

  switchProtocols(head: Head, at: number, backend: BackendTunnelPeer): void {
    const respond = this.#callbacks.insteadOfTunnel(this.#exchange, head, backend.kind)
    if (respond !== null) {
      declineTunnel(this.#exchange, backend)
      respond()
      return
    }
    if (this.#exchange.handlers !== null) this.#handle(this.#exchange.handlers, head)
    if (this.#writer.switchProtocols(head, at) === WRITE.FAILED) this.onLost('EPIPE')
    else this.#openTunnel(backend)
  }

  #openTunnel(backend: BackendTunnelPeer): void {
    const { metrics, tunnels, wheel } = this.#context
    wheel.clear(this)
    this.#exchange.target = null
    metrics.add(METRIC.tunnelsOpened, 1)
    metrics.add(METRIC.tunnelsOpen, 1)
    const { buffer } = this.#request
    const client = new ClientTunnelPeer(this, this.#socket, this.#machine, buffer, this.#writer.buffer, this.#report)
    this.#tunnel = new Tunnel(this.#exchange, client, backend, this.#context)
    tunnels.opened(this.#exchange, this.#tunnel)
    this.#tunnel.open()
  }

  fail(failure: Failure): void {
    const exchange = this.#exchange
    exchange.target = null
    exchange.errorBase = failure.base
    exchange.errorState = failure.state
    exchange.errorCause = failure.cause
    if (!stateRow(this.#machine.state).canFault) {
      // Part of a response is sent: only a reset tells the client that the rest will not come (D11).
      this.close('reset')
      return
    }
    this.#callbacks.refuse(exchange, refusal(failure.base as FaultCode), failure)
    // Reading may have stopped for the target.
    if (this.#machine.state !== STATE.CLOSED) this.#regulate()
  }

  /** The response is complete: the next request follows, or the connection ends. */
  #finish(): void {
    const { settings, wheel } = this.#context
    this.#exchange.target = null
    this.#machine.advance(EVENT.RESPONSE_END)
    this.#account()
    if (this.#machine.state === STATE.CLOSING) this.#lingeringClose.start()
    else if (this.#goesOn) {
      this.#machine.advance(EVENT.REUSE)
      if (this.isBlocked) this.awaitClient()
      else wheel.set(this, settings.keepAliveMs)
      // In a microtask, because the target first releases its connection, which may serve the next request.
      // Where the loop of `serve` has led here, it goes on by itself.
      if (!this.#request.isEmpty && !this.#request.isServing) queueMicrotask(() => this.#serveOn())
    } else {
      this.#machine.advance(EVENT.CLOSE)
      // With nothing unread and nothing unsent no reset can overtake the response.
      if (this.#request.isEmpty && !this.isBlocked) this.close()
      else this.#lingeringClose.start()
    }
  }

  /** The connection waits for another request. */
  get #goesOn(): boolean {
    const { isDraining, keepsIdle } = this.#context
    return this.#exchange.persists && (!isDraining || keepsIdle)
  }

  /** Serves pipelined requests that were read already; inside a read, the loop of `serve` finds them. */
  #serveOn(): void {
    try {
      this.#request.serve()
      if (this.#machine.state !== STATE.CLOSED) this.#regulate()
    } catch (error) {
      this.onError(error)
    }
  }

  onBlocked(): void {
    this.#writer.buffer.block()
    this.awaitClient()
  }

  onDrained(): void {
    const { settings, wheel, now } = this.#context
    const { buffer } = this.#writer
    buffer.release()
    this.#pace.drained(now(), buffer.sentBytes, settings)
    switch (stateRow(this.#machine.state).drained) {
      case 'linger':
        this.#lingeringClose.start()
        return
      case 'resume':
        wheel.suspend(this)
        this.#exchange.target?.resumeResponse()
        if (stateRow(this.#machine.state).timesBody) this.#regulate()
        return
      case 'next':
        if (!this.#goesOn) this.close()
        else {
          wheel.set(this, settings.keepAliveMs)
          this.#serveOn()
        }
    }
  }

  // ---- refusing ---------------------------------------------------------------------------------------------------

  refuseHead(bad: BadMessage): void {
    this.#client.decoder.ensureCorrelationId(this.#exchange)
    this.#report.lost('UNREADABLE', REFUSAL_EVENTS[bad.status] ?? 'malformed request', bad.rule)
    const code = REFUSAL_CODES[bad.status] ?? 400
    this.#callbacks.refuse(this.#exchange, { code, status: bad.status, description: bad.rule, lines: bad.lines }, null)
  }

  refuseBody(cause: string): void {
    this.#report.lost('UNREADABLE', 'malformed request body', cause)
    this.#refuseRest({ code: 400, status: undefined, description: cause, lines: '' })
  }

  refuseSize(): void {
    this.#report.failed(INCOMPLETE_PAYLOAD, 'request body too large', 'body is longer than body.max_bytes')
    this.#refuseRest(refusal(102511))
  }

  /** Aborts the target's side, and sends the fault if no response has begun. */
  #refuseRest(outcome: Refusal): void {
    this.#abortTarget()
    if (stateRow(this.#machine.state).canFault) this.#callbacks.refuse(this.#exchange, outcome, null)
    else this.close('reset')
  }

  #abortTarget(): void {
    const { target } = this.#exchange
    this.#exchange.target = null
    target?.abort()
  }

  // ---- endings ----------------------------------------------------------------------------------------------------

  onEnd(): void {
    this.#machine.advance(EVENT.PEER_END)
    this.afterEnd()
  }

  afterEnd(): void {
    switch (stateRow(this.#machine.state).end) {
      case 'refuse-head':
        this.refuseHead(TRUNCATED)
        return
      case 'refuse-body':
        this.#report.failed(INCOMPLETE_PAYLOAD, 'request body cut short', 'the client ended before its body did')
        this.#refuseRest(refusal(102511))
        return
      case 'last-response':
        if (this.#request.isEmpty) this.#exchange.persists = false
        if (this.#context.settings.abortOnHalfClose) this.#abortExchange()
        else this.#exchange.target?.clientEnded?.()
        return
      case 'abort':
        this.#abortExchange()
        return
      case 'close':
        if (this.#request.isEmpty) this.#exchange.persists = false
        if (!this.isBlocked) this.close()
        return
      case 'wait':
    }
  }

  onLost(code: string): void {
    if (this.#machine.state === STATE.CLOSED) return
    this.#report.disconnected(code)
    this.#abortTarget()
    this.close()
  }

  onTlsFailed(failure: TlsFailure): void {
    if (failure.kind === 'tls') {
      this.onLost(failure.cause)
      return
    }
    this.#report.handshakeFailed(failure)
    this.close()
  }

  onWriteFailed(code: string): void {
    this.onLost(code)
  }

  /** Code of the gateway threw. A partial response must not look whole, so the connection is reset. */
  onError(error: unknown): void {
    if (this.#machine.state === STATE.CLOSED) return
    this.#report.threw(error)
    this.#abortExchange()
  }

  override onDeadline(): void {
    const { deadline } = stateRow(this.#machine.state)
    if (deadline === 'late-head' || deadline === 'late-body') this.#late()
    else if (this.isBlocked) {
      // A close would look like the end of the response.
      this.#report.stalled(this.#pace.isSlow(this.#context.settings))
      this.#abortExchange()
    } else if (deadline === 'idle') {
      this.#context.metrics.add(METRIC.timeoutSourceIdle, 1)
      this.close()
    } else if (deadline === 'close') this.close()
  }

  #late(): void {
    this.#client.decoder.ensureCorrelationId(this.#exchange)
    this.#report.late()
    this.#abortTarget()
    this.#callbacks.refuse(this.#exchange, refusal(408), null)
  }

  /** The process is stopping: closes an idle connection. */
  drain(): void {
    const isIdle = stateRow(this.#machine.state).deadline === 'idle'
    if (isIdle && this.#request.isEmpty && !this.isBlocked) this.close()
  }

  /** The process stops now: aborts the exchange under way. */
  cutOff(): void {
    if (this.#exchange.isOpen) this.#report.lost('ABORTED', 'cut off', 'the gateway stops')
    if (this.#tunnel !== null) this.#tunnel.cut()
    else if (this.#machine.state !== STATE.CLOSED) this.#abortExchange()
  }

  /** Aborts the exchange on both sides, so that neither takes it for the whole. */
  #abortExchange(): void {
    this.#abortTarget()
    this.close('reset')
  }

  close(mode: CloseMode = 'close'): void {
    if (this.#machine.state === STATE.CLOSED) return
    if (mode === 'reset') this.#socket.reset()
    else this.#socket.destroy()
    const { reported } = this.#machine
    this.#machine.advance(EVENT.SOCKET_CLOSED)
    if (this.#exchange.isOpen) this.#account(reported)
    if (this.#tunnel !== null) this.#context.metrics.add(METRIC.tunnelsOpen, -1)
    this.#context.wheel.clear(this)
    this.#writer.buffer.release()
    this.#request.dispose()
    this.#callbacks.connectionClosed(this)
  }

  /** `state`: documented number at the end of the exchange. */
  #account(state = this.#machine.reported): void {
    this.#exchange.doneMs = this.#context.now()
    this.#exchange.sourceState = state
    this.#callbacks.exchangeDone(this.#exchange)
    this.#machine.timeline = NO_TIMELINE
  }
}
