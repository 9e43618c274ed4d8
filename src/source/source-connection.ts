/**
 * One client connection: socket and source machine on one side, exchange on the other. Owns what the client is answered
 * and when the connection ends; `request-side.ts` owns what is read, `reply-writer.ts` what is written. Every change of
 * state goes through the machine.
 */
import type { FaultCode } from '../errors/catalogue.ts'
import type { BodyPart, Downstream, Failure } from '../exchange/contract.ts'
import { Exchange } from '../exchange/exchange.ts'
import { type Refusal, refusal } from '../exchange/outcome.ts'
import type { Surroundings } from '../exchange/surroundings.ts'
import { type BackendParty, declineTunnel, type Ending, type Tunnel } from '../exchange/tunnel.ts'
import { type BadMessage, bad } from '../http1/bad-message.ts'
import type { Head } from '../http1/head.ts'
import type { MessageReader } from '../http1/message-reader.ts'
import type { ConnectionLister } from '../observe/connection-row.ts'
import { METRIC } from '../observe/metrics.ts'
import { INCOMPLETE_PAYLOAD, SOURCE_RECEIVING } from '../protocol/fate.ts'
import { Machine } from '../protocol/machine.ts'
import { EVENT, STATE } from '../protocol/states.ts'
import { type ByteSocket, type SocketOwner, WRITE, type Written } from '../socket/byte-socket.ts'
import { Deadline } from '../structure/deadline-wheel.ts'
import { ClientEnd, newTunnel } from './client-end.ts'
import { ClientReport } from './client-report.ts'
import type { Client, Hall } from './hall.ts'
import { Lingering } from './lingering.ts'
import { ReplyWriter, type ResponseDrops } from './reply-writer.ts'
import { type RequestOwner, RequestSide } from './request-side.ts'

/** Events besides `malformed request`, by status. */
const REFUSED: Readonly<Record<number, string>> = { 421: 'misdirected request', 426: 'upgrade required' }
const TRUNCATED = bad(400, 'the connection ended within the head (RFC 9112 8)')

export class SourceConnection extends Deadline implements SocketOwner, Downstream, RequestOwner {
  readonly #client: Client
  readonly #socket: ByteSocket
  readonly #around: Surroundings
  readonly #hall: Hall
  readonly #machine = new Machine('source')
  readonly #exchange: Exchange
  readonly #request: RequestSide
  readonly #writer: ReplyWriter
  readonly #report: ClientReport
  readonly #lingering: Lingering
  /** After 101: who has the socket. */
  #tunnel: Tunnel | null = null

  constructor(
    id: number,
    socket: ByteSocket,
    client: Client,
    reader: MessageReader,
    left: ResponseDrops,
    around: Surroundings,
    hall: Hall,
  ) {
    super()
    this.#socket = socket
    this.#around = around
    this.#hall = hall
    this.#client = client
    this.#exchange = new Exchange(this, socket, client.address, id, client.idPrefix)
    this.#request = new RequestSide(this, this.#machine, this.#exchange, reader, client, around, socket)
    this.#writer = new ReplyWriter(socket, this.#machine, this.#exchange, around, left)
    this.#report = new ClientReport(around, this.#machine, this.#exchange)
    this.#lingering = new Lingering(this, socket, this.#machine, this.#request, around)
  }

  get client(): Client {
    return this.#client
  }

  open(): void {
    this.#around.wheel.set(this, this.#around.settings.headerReadMs)
    this.#socket.attach(this, this.#request.firstView)
  }

  show(lister: ConnectionLister): void {
    const { address, scheme } = this.#client
    lister.add('source', this.#exchange.sourceId, this.#machine.state, address, scheme, '', this.#exchange)
  }

  // ---- the request ------------------------------------------------------------------------------------------------

  onBytes(length: number): Uint8Array | undefined {
    this.#around.metrics.add(METRIC.bytesFromClients, length)
    this.#request.receive(length)
    if (this.#machine.state === STATE.CLOSING) this.#lingering.drop(length)
    else this.#request.serve()
    if (this.#machine.state === STATE.CLOSED) return undefined
    const view = this.#request.settle()
    if (view === null) {
      this.#report.broke('buffers exhausted', 'no memory for the bytes of a connection')
      this.#giveUp()
      return undefined
    }
    this.#regulate()
    return view
  }

  began(): void {
    this.#around.wheel.suspend(this)
  }

  awaitHead(): void {
    // From the first byte on, however the rest trickles in.
    if (this.dueTick === 0) this.#around.wheel.set(this, this.#around.settings.headerReadMs)
  }

  walk(): Promise<() => void> | undefined {
    return this.#hall.walk(this.#exchange)
  }

  resumeRequest(): void {
    if (this.#machine.state !== STATE.CLOSED) this.#regulate()
  }

  /** Reads the client or not; and while it owes us a body, waits for it only so long. */
  #regulate(): void {
    const wants = this.#request.wantsBytes
    this.#socket.setReading(wants)
    if (this.#machine.state !== STATE.REQUEST_BODY) return
    const { wheel } = this.#around
    if (wants) {
      const waitMs = this.#request.bodyWaitMs()
      // Set once more it would be rounded up once more: drops that come faster than the clock ticks would never end.
      if (waitMs > 0) wheel.set(this, waitMs)
    } else {
      this.#request.holdBody()
      wheel.suspend(this)
    }
  }

  // ---- the reply --------------------------------------------------------------------------------------------------

  get isBlocked(): boolean {
    return this.#writer.outbox.isBlocked
  }

  interim(head: Head, at: number): void {
    this.#sent(this.#writer.interim(head, at))
  }

  reply(head: Head, at: number, framing: number): void {
    this.#writer.head(head, at, framing)
  }

  replyPart(part: BodyPart): Written {
    const written = this.#writer.part(part)
    if (this.#sent(written) && part.last) this.#finish()
    return written
  }

  /** An answer of the gateway's own, whole. */
  answer(status: number, reason: string, lines: string, body: string): void {
    if (this.#sent(this.#writer.answer(status, reason, lines, body))) this.#finish()
  }

  /** Looks after a write; false when the client is gone. */
  #sent(written: Written): boolean {
    if (written === WRITE.DONE) return true
    if (written === WRITE.FAILED) {
      this.onLost('EPIPE')
      return false
    }
    this.#around.wheel.set(this, this.#around.settings.socketTimeoutMs)
    return true
  }

  switchProtocols(head: Head, at: number, backend: BackendParty): void {
    const answer = this.#hall.insteadOfTunnel(this.#exchange, head, backend.kind)
    if (answer !== null) {
      declineTunnel(this.#exchange, backend)
      answer()
    } else if (this.#writer.switchProtocols(head, at) === WRITE.FAILED) this.onLost('EPIPE')
    else {
      this.#around.wheel.clear(this)
      const { outbox } = this.#writer
      const client = new ClientEnd(this, this.#socket, this.#machine, this.#request, outbox, this.#report)
      this.#tunnel = newTunnel(this.#exchange, client, backend, this.#around)
      this.#tunnel.open()
    }
  }

  fail(failure: Failure): void {
    const exchange = this.#exchange
    exchange.upstream = null
    exchange.errorBase = failure.base
    exchange.errorState = failure.state
    const { state } = this.#machine
    if (state !== STATE.REQUEST_DONE && state !== STATE.REQUEST_BODY) {
      // Part of a response is out. A reset is the only way to say that the rest will not come.
      this.close('reset')
      return
    }
    this.#hall.refuse(exchange, refusal(failure.base as FaultCode), failure)
    // The client may have been held back for the target's sake.
    if (this.#machine.state !== STATE.CLOSED) this.#regulate()
  }

  /** The response is complete: the next request, or the end. */
  #finish(): void {
    const { settings, wheel, isDraining } = this.#around
    this.#exchange.upstream = null
    this.#machine.advance(EVENT.RESPONSE_END)
    this.#account()
    if (this.#machine.state === STATE.CLOSING) this.#lingering.wait()
    else if (this.#exchange.persists && !isDraining) {
      this.#machine.advance(EVENT.REUSE)
      wheel.set(this, this.isBlocked ? settings.socketTimeoutMs : settings.keepAliveMs)
      // Not before the target is done with its part: its connection may serve the next request.
      if (!this.#request.isEmpty) queueMicrotask(() => this.#serveOn())
    } else {
      this.#machine.advance(EVENT.CLOSE)
      // Nothing unread and nothing unsent: no reset can overtake the response.
      if (this.#request.isEmpty && !this.isBlocked) this.close()
      else this.#lingering.wait()
    }
  }

  /** Pipelined requests that were read already; inside of a read its own loop finds them. */
  #serveOn(): void {
    try {
      this.#request.serve()
      if (this.#machine.state !== STATE.CLOSED) this.#regulate()
    } catch (error) {
      this.onBug(error)
    }
  }

  onDrained(): void {
    const { settings, wheel } = this.#around
    this.#writer.outbox.release()
    const { state } = this.#machine
    if (state === STATE.CLOSING) this.#lingering.wait()
    else if (state !== STATE.REQUEST_READY) {
      wheel.suspend(this)
      this.#exchange.upstream?.resumeReply()
      if (this.#machine.state === STATE.REQUEST_BODY) this.#regulate()
    } else if (this.#exchange.persists && !this.#around.isDraining) {
      wheel.set(this, settings.keepAliveMs)
      this.#serveOn()
    } else this.close()
  }

  // ---- refusing ---------------------------------------------------------------------------------------------------

  refuseHead(bad: BadMessage): void {
    this.#client.intake.identify(this.#exchange)
    this.#report.failed(SOURCE_RECEIVING, REFUSED[bad.status] ?? 'malformed request', bad.rule)
    this.#hall.refuse(this.#exchange, { code: 400, status: bad.status, description: bad.rule, lines: bad.lines }, null)
  }

  refuseBody(cause: string): void {
    this.#report.failed(SOURCE_RECEIVING, 'malformed request body', cause)
    this.#abandonFor({ code: 400, status: undefined, description: cause, lines: '' })
  }

  refuseSize(): void {
    this.#report.failed(INCOMPLETE_PAYLOAD, 'request body too large', 'body is longer than body.max_bytes')
    this.#abandonFor(refusal(102511))
  }

  /** Gives the request up on the target's side, and answers if that is still possible. */
  #abandonFor(outcome: Refusal): void {
    this.#abandon()
    if (this.#machine.state === STATE.REQUEST_BODY) this.#hall.refuse(this.#exchange, outcome, null)
    else this.close('reset')
  }

  #abandon(): void {
    const { upstream } = this.#exchange
    this.#exchange.upstream = null
    upstream?.abandon()
  }

  // ---- endings ----------------------------------------------------------------------------------------------------

  onEnd(): void {
    this.#request.hasEnded = true
    switch (this.#machine.state) {
      case STATE.REQUEST_HEAD:
        this.refuseHead(TRUNCATED)
        return
      case STATE.REQUEST_BODY:
        // What came before the end is read when it is known where it goes.
        if (this.#request.isUndecided) return
        this.#report.failed(INCOMPLETE_PAYLOAD, 'request body cut short', 'the client ended before its body did')
        this.#abandonFor(refusal(102511))
        return
      case STATE.REQUEST_DONE:
      case STATE.RESPONSE_HEAD:
      case STATE.RESPONSE_BODY:
        // RFC 9112 9.6: a half-closed client still gets its responses, unless it is configured otherwise.
        if (this.#request.isEmpty) this.#exchange.persists = false
        if (this.#around.settings.abortOnHalfClose) this.#giveUp()
        return
      case STATE.EARLY_HEAD:
      case STATE.EARLY_BODY:
        this.#giveUp()
        return
      default:
        // What waits for the client still leaves; after that there is nothing to wait for.
        if (this.#request.isEmpty) this.#exchange.persists = false
        if (!this.isBlocked) this.close()
    }
  }

  onLost(code: string): void {
    if (this.#machine.state === STATE.CLOSED) return
    this.#report.lost(code)
    this.#abandon()
    this.close()
  }

  onHandshakeFailed(cause: string): void {
    this.#report.handshakeFailed(cause)
    this.close()
  }

  onWriteFailed(code: string): void {
    this.onLost(code)
  }

  /** Something of ours threw. Whatever the client has by now must not look whole. */
  onBug(error: unknown): void {
    if (this.#machine.state === STATE.CLOSED) return
    this.#report.thrown(error)
    this.#giveUp()
  }

  override onDeadline(): void {
    switch (this.#machine.state) {
      case STATE.REQUEST_HEAD:
      case STATE.REQUEST_BODY:
        this.#late()
        return
      case STATE.REQUEST_READY:
        if (this.isBlocked) break
        this.#around.metrics.add(METRIC.timeoutSourceIdle, 1)
        this.close()
        return
      case STATE.CLOSING:
        // The end of a response still waits for the client: to close now would look like its end.
        if (this.isBlocked) break
        this.close()
        return
      default:
        // Waiting for the target, whose own deadline counts, unless the client takes no bytes.
        if (!this.isBlocked) return
    }
    this.#report.stalled()
    this.#giveUp()
  }

  #late(): void {
    this.#client.intake.identify(this.#exchange)
    this.#report.late()
    this.#abandon()
    this.#hall.refuse(this.#exchange, refusal(408), null)
  }

  /** The process is stopping: an idle connection has nothing to wait for. */
  drain(): void {
    if (this.#machine.state === STATE.REQUEST_READY && this.#request.isEmpty && !this.isBlocked) this.close()
  }

  /** The process has waited long enough. */
  cutOff(): void {
    if (this.#exchange.isOpen) this.#report.broke('cut off', 'the gateway stops')
    if (this.#tunnel !== null) this.#tunnel.cut()
    else if (this.#machine.state !== STATE.CLOSED) this.#giveUp()
  }

  /** Aborts what is under way on both sides, so that nobody takes it for the whole. */
  #giveUp(): void {
    this.#abandon()
    this.close('reset')
  }

  close(how: Ending = 'close'): void {
    if (this.#machine.state === STATE.CLOSED) return
    if (how === 'reset') this.#socket.reset()
    else this.#socket.destroy()
    const { reported } = this.#machine
    this.#machine.advance(EVENT.SOCKET_CLOSED)
    if (this.#exchange.isOpen) this.#account(reported)
    if (this.#tunnel !== null) this.#around.metrics.add(METRIC.tunnelsOpen, -1)
    this.#around.wheel.clear(this)
    this.#writer.outbox.release()
    this.#request.dispose()
    this.#hall.closed(this)
  }

  /** `state`: documented number at the end of the exchange. */
  #account(state = this.#machine.reported): void {
    this.#exchange.doneMs = this.#around.now()
    this.#exchange.sourceState = state
    this.#hall.done(this.#exchange)
  }
}
