/**
 * Tunnel between two connections after 101 (RFC 9110 7.8): forwards the bytes of each peer to the other unchanged. Owns
 * both sockets from then on: backpressure, the end of each direction, and the idle timeout. Each direction ends by
 * itself (FIN becomes FIN); a reset on one side becomes a reset on the other (D47).
 */
import type { Loss } from '../../protocol/failure-table.ts'
import { EVENT, type Event, STATE, type State } from '../../protocol/states.ts'
import { type SocketOwner, type TlsFailure, WRITE, type Written } from '../../socket/byte-socket.ts'
import { Deadline } from '../../runtime/deadline-wheel.ts'
import type { Exchange } from './exchange.ts'
import type { TunnelMeter } from './late-charges.ts'
import type { ConnectionContext } from './connection-context.ts'
import { arena } from '../../http1/llhttp.ts'
import { InspectedMeter, type MessageCheck, MessageInspection } from './message-inspection.ts'
import type { CloseMode, TunnelPeer } from './tunnel-peer.ts'
import { closeFrame, MessageStream } from './websocket-frames.ts'

/** Events of the bytes from one side, the same on both machines. */
interface Direction {
  readonly data: Event
  readonly end: Event
  /** The state in which only this side still sends. */
  readonly alone: State
}

const FROM_CLIENT: Direction = { data: EVENT.REQUEST_DATA, end: EVENT.REQUEST_END, alone: STATE.TUNNEL_BACKEND_ENDED }
const FROM_BACKEND: Direction = { data: EVENT.RESPONSE_DATA, end: EVENT.RESPONSE_END, alone: STATE.TUNNEL_CLIENT_ENDED }

/**
 * A read of this length starts a transfer: the next reads get a large chunk and are written in place. After a shorter
 * read, or after REST_MS, the side returns to the shared buffer, so that an idle tunnel holds no memory.
 */
const LONG_READ_BYTES = 16_384
const REST_MS = 1000
/** Longest wait for the close frames of both peers, once a limit has closed the tunnel. */
const CLOSING_MS = 2000

/** The deadline is the idle timeout; those of the sides are for peers that take no bytes, and for REST_MS. */
export class Tunnel extends Deadline {
  readonly #exchange: Exchange
  readonly #context: ConnectionContext
  readonly #client: TunnelSide
  readonly #backend: TunnelSide
  /** Counts what the tunnel carries; null: no limit does. */
  readonly meter: TunnelMeter | null

  /** Both machines are in TUNNEL, and the 101 is being sent to the client. */
  constructor(exchange: Exchange, client: TunnelPeer, backend: TunnelPeer, context: ConnectionContext) {
    super()
    this.#exchange = exchange
    this.#context = context
    const meter = exchange.lateCharges?.meter(exchange) ?? null
    const check = exchange.mediation?.messages ?? null
    this.meter = check === null ? meter : new InspectedMeter(meter)
    this.#client = new TunnelSide(this, client, FROM_CLIENT, context)
    this.#backend = new TunnelSide(this, backend, FROM_BACKEND, context)
    if (check !== null) this.#client.inspect(check, this.meter as InspectedMeter)
  }

  open(): void {
    this.touch()
    this.#backend.open()
    this.#client.open()
  }

  other(side: TunnelSide): TunnelSide {
    return side === this.#client ? this.#backend : this.#client
  }

  /** Bytes moved: restarts the idle timeout. */
  touch(): void {
    if (this.meter?.isClosing === true) return
    this.#context.wheel.set(this, this.#context.settings.tunnelIdleMs)
  }

  /** Counts `length` forwarded bytes. */
  pass(side: TunnelSide, { data }: Direction, length: number): void {
    this.#advance(data)
    if (side === this.#client) this.#exchange.requestBodyBytes += length
    else this.#exchange.responseBodyBytes += length
  }

  /** A direction has ended: forwards FIN. With the second direction the tunnel ends. */
  end(side: TunnelSide, direction: Direction): void {
    this.touch()
    const state = this.#advance(direction.end)
    this.other(side).peer.socket.end()
    if (state !== STATE.CLOSING) {
      if (this.meter?.isClosing === true) this.closeByLimit()
      return
    }
    this.#context.wheel.clear(this)
    this.#exchange.targetState = this.#backend.peer.machine.reported
    this.#backend.finish()
    this.#client.finish()
  }

  /** A limit has closed the tunnel: each peer gets a close frame behind its last whole frame. */
  closeByLimit(): void {
    const { wheel } = this.#context
    const toClient = this.#client.sendClose(this.#backend, false)
    const toBackend = this.#backend.sendClose(this.#client, true)
    if (toClient || toBackend) wheel.set(this, CLOSING_MS)
    if (this.#client.hasClosed && this.#backend.hasClosed) this.#leave('close')
  }

  /** Advances both machines. */
  #advance(event: Event): State {
    this.#client.peer.machine.advance(event)
    return this.#backend.peer.machine.advance(event)
  }

  /** A peer is lost, so the tunnel is cut; unless both directions have ended and only last bytes are being written. */
  fail(side: TunnelSide, loss: Loss, cause: string): void {
    const { state } = side.peer.machine
    if (state === STATE.CLOSED) return
    if (state !== STATE.CLOSING) this.#exchange.targetState = this.#backend.peer.machine.reported
    side.peer.failed(loss, cause)
    side.close('reset')
    if (state !== STATE.CLOSING) this.cut()
  }

  /** Resets both sides. */
  cut(): void {
    this.#context.wheel.clear(this)
    const { machine } = this.#backend.peer
    if (machine.state !== STATE.CLOSED) this.#exchange.targetState = machine.reported
    this.#backend.close('reset')
    this.#client.close('reset')
  }

  /** Idle timeout: FIN on both sides, or a reset when bytes still wait. */
  override onDeadline(): void {
    const isWhole = !this.#client.peer.writeBuffer.isBlocked && !this.#backend.peer.writeBuffer.isBlocked
    if (this.meter?.isClosing !== true) this.#client.peer.expired()
    this.#leave(isWhole ? 'close' : 'reset')
  }

  #leave(mode: CloseMode): void {
    this.#context.wheel.clear(this)
    this.#exchange.targetState = this.#backend.peer.machine.reported
    this.#backend.close(mode)
    this.#client.close(mode)
  }

  override onError(error: unknown): void {
    this.#client.peer.threw(error)
    this.cut()
  }
}

class TunnelSide extends Deadline implements SocketOwner {
  readonly peer: TunnelPeer
  readonly #tunnel: Tunnel
  readonly #direction: Direction
  readonly #context: ConnectionContext
  /** The messages that this peer sends; null: nothing counts them. */
  readonly #messages: MessageStream | null
  /** Checks the messages that this peer sends; null: nothing does. */
  #inspection: MessageInspection | null = null
  /** A frame for this peer that waits for the end of a message; '' for none. */
  #answer = ''

  constructor(tunnel: Tunnel, peer: TunnelPeer, direction: Direction, context: ConnectionContext) {
    super()
    this.peer = peer
    this.#tunnel = tunnel
    this.#direction = direction
    this.#context = context
    const { meter } = tunnel
    this.#messages = meter?.hasMessages === true ? new MessageStream(meter) : null
  }

  /** Has every message of this peer checked before the other one gets it. */
  inspect(check: MessageCheck, meter: InspectedMeter): void {
    const side = this
    const tunnel = this.#tunnel
    const { machine } = this.peer
    this.#inspection = new MessageInspection(check, {
      get isBlocked() {
        return side.#other.peer.writeBuffer.isBlocked || side.#answer !== ''
      },
      get isOver() {
        return machine.state === STATE.CLOSED || machine.state === STATE.CLOSING || !side.#sends || meter.isClosing
      },
      forward: frame => side.#other.#sent(side.#other.peer.writeBuffer.writeText(frame)),
      answer: frame => {
        side.#answer = frame
        side.#sendAnswer()
      },
      close: (status, reason) => {
        meter.close(status, reason)
        tunnel.closeByLimit()
      },
      ready: () => side.#regulate(),
      threw: error => side.onError(error),
    })
  }

  /** Sends this peer the frame that waits, unless the other one is within a message. */
  #sendAnswer(): void {
    const other = this.#other
    const isClosing = this.#tunnel.meter!.isClosing
    if (this.#answer === '' || isClosing || !other.#sends || !other.#messages!.isBetweenMessages) return
    const frame = this.#answer
    this.#answer = ''
    this.#sent(this.peer.writeBuffer.writeText(frame))
  }

  /** Takes the socket. Bytes that were read behind the head go first. */
  open(): void {
    const { socket, machine, readBuffer, writeBuffer } = this.peer
    this.#forward()
    if (machine.state === STATE.CLOSED) return
    // An empty read buffer returns to the shared one.
    readBuffer.settle(false)
    socket.attach(this, readBuffer.firstView)
    if (writeBuffer.isBlocked) this.#await()
    this.#regulate()
    if (machine.peerEnded) this.onEnd()
  }

  /** True if this peer has not ended its direction. */
  get #sends(): boolean {
    const { state } = this.peer.machine
    return state === STATE.TUNNEL || state === this.#direction.alone
  }

  get #other(): TunnelSide {
    return this.#tunnel.other(this)
  }

  onBytes(length: number): Uint8Array | undefined {
    const { readBuffer, writeBuffer, machine, bytesRead } = this.peer
    this.#context.metrics.add(bytesRead, length)
    this.#tunnel.touch()
    readBuffer.begin(length)
    this.#forward()
    if (machine.state === STATE.CLOSED) return undefined
    this.#regulate()
    const isBusy = length >= LONG_READ_BYTES && !this.#other.peer.writeBuffer.isBlocked
    if (isBusy && !writeBuffer.isBlocked) this.#context.wheel.set(this, REST_MS)
    return readBuffer.settle(isBusy) ?? undefined
  }

  /** Writes everything that was read to the other peer. */
  #forward(): void {
    const { readBuffer } = this.peer
    const { from, length } = readBuffer
    if (length === 0) return
    this.#tunnel.pass(this, this.#direction, length)
    readBuffer.from = readBuffer.to
    if (this.#tunnel.meter !== null) this.#forwardMetered(this.#tunnel.meter, from, length)
    else this.#send(from, length)
  }

  #pass(at: number, length: number): void {
    if (this.#inspection === null) this.#send(at, length)
    else this.#inspection.take(arena.bytes.subarray(at, at + length))
  }

  /** The other peer may be at the end of a message. */
  #resumeAnswered(): void {
    this.#sendAnswer()
    if (this.#answer !== '') return
    this.#inspection!.resume()
    this.#regulate()
  }

  /** Writes bytes of this peer to the other one. */
  #send(at: number, length: number): void {
    const other = this.#other
    other.#sent(other.peer.writeBuffer.write(at, length, this.peer.readBuffer))
  }

  /** Handles the result of a write to this peer. */
  #sent(written: Written): void {
    if (written === WRITE.PENDING) this.#await()
    else if (written === WRITE.FAILED) this.#tunnel.fail(this, 'WRITE_ERROR', 'EPIPE')
  }

  /** Writes those bytes that limits let pass; they leave out whole messages. */
  #forwardMetered(meter: TunnelMeter, from: number, length: number): void {
    const messages = this.#messages
    if (messages === null) {
      if (meter.charge(length)) this.#send(from, length)
      else this.#tunnel.cut()
      return
    }
    const end = from + length
    for (let at = from; at < end && this.peer.machine.state !== STATE.CLOSED; ) {
      const other = this.#other
      const next = messages.next(arena.bytes, at, end, other.#answer !== '')
      if (messages.passes) this.#pass(at, next - at)
      if (other.#answer !== '') other.#resumeAnswered()
      at = next
    }
    // A message that begins while a byte is left passes whole.
    meter.charge(length)
    if (meter.isClosing && this.peer.machine.state !== STATE.CLOSED) this.#tunnel.closeByLimit()
  }

  /** This peer has answered the close frame, or has ended its direction. */
  get hasClosed(): boolean {
    return !this.#sends || this.#messages!.hasClosed
  }

  /**
   * Sends this peer a close frame once, when the frames of `other` that have passed are whole. Returns whether it did.
   * `isMasked`: this peer is the backend, for which the gateway is the client.
   */
  sendClose(other: TunnelSide, isMasked: boolean): boolean {
    if (this.peer.machine.state === STATE.CLOSED || !other.#messages!.endWithClose(other.#inspection !== null))
      return false
    const { closeStatus, closeReason } = this.#tunnel.meter!
    this.#sent(this.peer.writeBuffer.writeText(closeFrame(closeStatus, closeReason, isMasked)))
    return true
  }

  /** Reads this peer only while the other one takes its bytes. */
  #regulate(): void {
    if (!this.#sends) return
    const waits = this.#inspection !== null && (this.#inspection.isBusy || this.#answer !== '')
    this.peer.socket.setReading(!waits && !this.#other.peer.writeBuffer.isBlocked)
  }

  /** Bytes wait for this peer. */
  #await(): void {
    this.#context.wheel.set(this, this.#context.settings.socketTimeoutMs)
  }

  onBlocked(): void {
    this.peer.writeBuffer.block()
    this.#await()
  }

  onDrained(): void {
    this.peer.writeBuffer.release()
    if (this.peer.machine.state === STATE.CLOSING) {
      this.close('close')
      return
    }
    this.#context.wheel.set(this, REST_MS)
    this.#tunnel.touch()
    this.#other.#inspection?.resume()
    this.#other.#regulate()
  }

  onEnd(): void {
    this.#inspection?.end()
    if (this.#sends) this.#tunnel.end(this, this.#direction)
  }

  onLost(code: string): void {
    this.#tunnel.fail(this, 'READ_ERROR', code)
  }

  onTlsFailed({ cause }: TlsFailure): void {
    this.#tunnel.fail(this, 'READ_ERROR', cause)
  }

  onWriteFailed(code: string): void {
    this.#tunnel.fail(this, 'WRITE_ERROR', code)
  }

  override onDeadline(): void {
    if (!this.peer.writeBuffer.isBlocked) this.#rest()
    else this.#tunnel.fail(this, 'TIMED_OUT', `no byte taken within ${this.#context.settings.socketTimeoutMs} ms`)
  }

  /** No long read for REST_MS: releases the large chunk. */
  #rest(): void {
    const { socket, readBuffer } = this.peer
    const view = readBuffer.settle(false) ?? undefined
    if (view === undefined) return
    socket.attach(this, view)
    this.#regulate()
  }

  override onError(error: unknown): void {
    if (this.peer.machine.state === STATE.CLOSED) return
    this.peer.threw(error)
    this.#tunnel.cut()
  }

  /** Both directions have ended: closes as soon as all bytes have left. */
  finish(): void {
    if (!this.peer.writeBuffer.isBlocked) this.close('close')
  }

  close(mode: CloseMode): void {
    this.#inspection?.end()
    this.#context.wheel.clear(this)
    this.peer.close(mode)
  }
}
