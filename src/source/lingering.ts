/**
 * The last moments of a client connection that carries no further message (RFC 9112 9.6): what its client still sends
 * is read and dropped, so that no reset overtakes the last response; but not for long.
 */
import type { Surroundings } from '../exchange/surroundings.ts'
import type { Ending } from '../exchange/tunnel.ts'
import type { Machine } from '../protocol/machine.ts'
import { EVENT } from '../protocol/states.ts'
import type { ByteSocket } from '../socket/byte-socket.ts'
import type { Deadline } from '../structure/deadline-wheel.ts'
import type { RequestSide } from './request-side.ts'

const LINGER_MS = 2000
const LINGER_BYTES_MAX = 4 * 1024 * 1024

/** The connection that ends; its deadline says how long it may take. */
interface Ender extends Deadline {
  /** The client takes no bytes now. */
  readonly isBlocked: boolean
  close(how: Ending): void
}

export class Lingering {
  readonly #connection: Ender
  readonly #socket: ByteSocket
  readonly #machine: Machine
  readonly #request: RequestSide
  readonly #around: Surroundings
  /** Bytes dropped. */
  #dropped = 0

  constructor(connection: Ender, socket: ByteSocket, machine: Machine, request: RequestSide, around: Surroundings) {
    this.#connection = connection
    this.#socket = socket
    this.#machine = machine
    this.#request = request
    this.#around = around
  }

  /** Begins, or goes on when what waited for the client has left. */
  wait(): void {
    const { settings, wheel } = this.#around
    const { isBlocked } = this.#connection
    this.#request.discard()
    if (!isBlocked) {
      // A client that has ended sends nothing more that we would have to wait for.
      if (this.#request.hasEnded) {
        this.#connection.close('close')
        return
      }
      this.#socket.end()
    }
    wheel.set(this.#connection, isBlocked ? settings.socketTimeoutMs : LINGER_MS)
    this.#socket.setReading(true)
  }

  /** `length` more bytes came. */
  drop(length: number): void {
    this.#request.discard()
    this.#machine.advance(EVENT.REQUEST_DATA)
    this.#dropped += length
    if (this.#dropped > LINGER_BYTES_MAX) this.#connection.close(this.#connection.isBlocked ? 'reset' : 'close')
  }
}
