/**
 * Two connections after 101 (RFC 9110 7.8): what one peer sends goes to the other as it is. Owns both sockets from then
 * on: backpressure, the end of each direction, and the time in which something has to move. Each direction ends by
 * itself; what ends abruptly on one side ends abruptly on the other, and nothing is made up.
 */
import type { Loss } from '../protocol/fate.ts'
import type { Machine } from '../protocol/machine.ts'
import { EVENT, type Event, STATE, type State } from '../protocol/states.ts'
import { type ByteSocket, type SocketOwner, WRITE } from '../socket/byte-socket.ts'
import { Deadline } from '../structure/deadline-wheel.ts'
import type { Exchange } from './exchange.ts'
import type { Inbox } from './inbox.ts'
import type { Outbox } from './outbox.ts'
import type { Surroundings } from './surroundings.ts'

/** A connection that becomes one side of a tunnel: what it hands over, and what it still does. */
export interface TunnelParty {
  readonly socket: ByteSocket
  readonly machine: Machine
  /** With the bytes behind the head, if some came with it. */
  readonly inbox: Inbox
  readonly outbox: Outbox
  /** The peer's FIN was read before the tunnel began. */
  readonly hasEnded: boolean
  /** Counter of what is read. */
  readonly bytesRead: number
  /** Its peer is gone or of no use; both sides are cut next. */
  failed(loss: Loss, cause: string): void
  /** Something of ours threw. */
  threw(error: unknown): void
  /** Nothing moved for `tunnel.idle_timeout`. */
  expired(): void
  /** Gives socket and memory up; nothing happens when it has done so before. */
  close(how: Ending): void
}

/** That of a backend. */
export interface BackendParty extends TunnelParty {
  /** As its endpoint's URL begins; http stands for https as well. */
  readonly kind: 'http' | 'ws' | 'wss'
}

/** `reset`: so that the peer cannot take what it has for the whole. */
export type Ending = 'close' | 'reset'

/** No tunnel comes of the protocols that the backend has switched to: its connection is of no other use. */
export function declineTunnel(exchange: Exchange, backend: TunnelParty): void {
  exchange.upstream = null
  exchange.targetState = backend.machine.reported
  backend.close('close')
}

/** What the bytes from one side are to both machines. */
interface Direction {
  readonly data: Event
  readonly end: Event
  /** The state in which only this side still sends. */
  readonly alone: State
}

const FROM_CLIENT: Direction = { data: EVENT.REQUEST_DATA, end: EVENT.REQUEST_END, alone: STATE.TUNNEL_ASKING }
const FROM_BACKEND: Direction = { data: EVENT.RESPONSE_DATA, end: EVENT.RESPONSE_END, alone: STATE.TUNNEL_REPLYING }

/**
 * A read of this length is one of many: the next ones get a large chunk, which is written from where it stands. After a
 * shorter one, or after some rest, the side goes back to the buffer that all share: a tunnel at rest holds none.
 */
const LONG_READ_BYTES = 16_384
const REST_MS = 1000

/** Its own deadline is that of silence; those of the sides are for peers that take nothing, and for rest. */
export class Tunnel extends Deadline {
  readonly #exchange: Exchange
  readonly #around: Surroundings
  readonly #client: TunnelSide
  readonly #backend: TunnelSide

  /** Both machines are in TUNNEL, and the head of the 101 is on its way to the client. */
  constructor(exchange: Exchange, client: TunnelParty, backend: TunnelParty, around: Surroundings) {
    super()
    this.#exchange = exchange
    this.#around = around
    this.#client = new TunnelSide(this, client, FROM_CLIENT, around)
    this.#backend = new TunnelSide(this, backend, FROM_BACKEND, around)
  }

  open(): void {
    this.touch()
    this.#backend.open()
    this.#client.open()
  }

  other(side: TunnelSide): TunnelSide {
    return side === this.#client ? this.#backend : this.#client
  }

  /** Something moved. */
  touch(): void {
    this.#around.wheel.set(this, this.#around.settings.tunnelIdleMs)
  }

  /** `length` bytes of a direction go through. */
  pass(side: TunnelSide, { data }: Direction, length: number): void {
    this.#advance(data)
    if (side === this.#client) this.#exchange.requestBodyBytes += length
    else this.#exchange.responseBodyBytes += length
  }

  /** A direction has ended, and its end goes through. With the second one the tunnel is over. */
  end(side: TunnelSide, direction: Direction): void {
    this.touch()
    const state = this.#advance(direction.end)
    this.other(side).party.socket.end()
    if (state !== STATE.CLOSING) return
    this.#around.wheel.clear(this)
    this.#exchange.targetState = this.#backend.party.machine.reported
    this.#backend.finish()
    this.#client.finish()
  }

  /** Both machines take what happens in the tunnel. */
  #advance(event: Event): State {
    this.#client.party.machine.advance(event)
    return this.#backend.party.machine.advance(event)
  }

  /** A peer is lost: so is the tunnel, unless the other side has had everything and only its last bytes leave. */
  fail(side: TunnelSide, loss: Loss, cause: string): void {
    const { state } = side.party.machine
    if (state === STATE.CLOSED) return
    if (state !== STATE.CLOSING) this.#exchange.targetState = this.#backend.party.machine.reported
    side.party.failed(loss, cause)
    side.close('reset')
    if (state !== STATE.CLOSING) this.cut()
  }

  /** Ends both sides at once, and visibly so. */
  cut(): void {
    this.#around.wheel.clear(this)
    const { machine } = this.#backend.party
    if (machine.state !== STATE.CLOSED) this.#exchange.targetState = machine.reported
    this.#backend.close('reset')
    this.#client.close('reset')
  }

  /** Nothing has moved for too long. Without anything under way an ordinary end is the whole truth. */
  override onDeadline(): void {
    const isWhole = !this.#client.party.outbox.isBlocked && !this.#backend.party.outbox.isBlocked
    this.#exchange.targetState = this.#backend.party.machine.reported
    this.#client.party.expired()
    this.#backend.close(isWhole ? 'close' : 'reset')
    this.#client.close(isWhole ? 'close' : 'reset')
  }

  override onBug(error: unknown): void {
    this.#client.party.threw(error)
    this.cut()
  }
}

class TunnelSide extends Deadline implements SocketOwner {
  readonly party: TunnelParty
  readonly #tunnel: Tunnel
  readonly #direction: Direction
  readonly #around: Surroundings

  constructor(tunnel: Tunnel, party: TunnelParty, direction: Direction, around: Surroundings) {
    super()
    this.party = party
    this.#tunnel = tunnel
    this.#direction = direction
    this.#around = around
  }

  /** Takes the socket over. What was read behind the head goes first. */
  open(): void {
    const { socket, inbox, outbox, hasEnded } = this.party
    this.#forward()
    if (this.party.machine.state === STATE.CLOSED) return
    // With nothing left in it, the inbox is back in the shared buffer.
    inbox.settle(false)
    socket.attach(this, inbox.firstView)
    if (outbox.isBlocked) this.#await()
    this.#regulate()
    if (hasEnded) this.onEnd()
  }

  /** This peer may still send. */
  get #sends(): boolean {
    const { state } = this.party.machine
    return state === STATE.TUNNEL || state === this.#direction.alone
  }

  get #other(): TunnelSide {
    return this.#tunnel.other(this)
  }

  onBytes(length: number): Uint8Array | undefined {
    const { inbox, outbox, machine, bytesRead } = this.party
    this.#around.metrics.add(bytesRead, length)
    this.#tunnel.touch()
    inbox.begin(length)
    this.#forward()
    if (machine.state === STATE.CLOSED) return undefined
    this.#regulate()
    const isBusy = length >= LONG_READ_BYTES && !this.#other.party.outbox.isBlocked
    if (isBusy && !outbox.isBlocked) this.#around.wheel.set(this, REST_MS)
    return inbox.settle(isBusy) ?? undefined
  }

  /** Gives the other peer everything that was read. */
  #forward(): void {
    const { inbox } = this.party
    const { from, length } = inbox
    if (length === 0) return
    const other = this.#other
    this.#tunnel.pass(this, this.#direction, length)
    inbox.from = inbox.to
    const written = other.party.outbox.write(from, length, inbox)
    if (written === WRITE.PENDING) other.#await()
    else if (written === WRITE.FAILED) this.#tunnel.fail(other, 'WRITE_ERROR', 'EPIPE')
  }

  /** Reads this peer only while the other one takes what it sends. */
  #regulate(): void {
    if (this.#sends) this.party.socket.setReading(!this.#other.party.outbox.isBlocked)
  }

  /** Bytes wait for this peer. */
  #await(): void {
    this.#around.wheel.set(this, this.#around.settings.socketTimeoutMs)
  }

  onDrained(): void {
    this.party.outbox.release()
    if (this.party.machine.state === STATE.CLOSING) {
      this.close('close')
      return
    }
    this.#around.wheel.set(this, REST_MS)
    this.#tunnel.touch()
    this.#other.#regulate()
  }

  onEnd(): void {
    if (this.#sends) this.#tunnel.end(this, this.#direction)
  }

  onLost(code: string): void {
    this.#tunnel.fail(this, 'READ_ERROR', code)
  }

  onHandshakeFailed(cause: string): void {
    this.#tunnel.fail(this, 'READ_ERROR', cause)
  }

  onWriteFailed(code: string): void {
    this.#tunnel.fail(this, 'WRITE_ERROR', code)
  }

  override onDeadline(): void {
    if (!this.party.outbox.isBlocked) this.#rest()
    else this.#tunnel.fail(this, 'TIMED_OUT', `no byte taken within ${this.#around.settings.socketTimeoutMs} ms`)
  }

  /** No long read for a while: the chunk for the next one goes back. */
  #rest(): void {
    const { socket, inbox } = this.party
    const view = inbox.settle(false) ?? undefined
    if (view === undefined) return
    socket.attach(this, view)
    this.#regulate()
  }

  override onBug(error: unknown): void {
    if (this.party.machine.state === STATE.CLOSED) return
    this.party.threw(error)
    this.#tunnel.cut()
  }

  /** Nothing more comes from either peer: closes as soon as everything has left. */
  finish(): void {
    if (!this.party.outbox.isBlocked) this.close('close')
  }

  close(how: Ending): void {
    this.#around.wheel.clear(this)
    this.party.close(how)
  }
}
