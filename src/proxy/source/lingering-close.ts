/**
 * Lingering close of a client connection (RFC 9112 9.6, D25): reads and drops what its client still sends, so that no
 * reset overtakes the last response. LINGER_MS and LINGER_BYTES_MAX are its limits.
 */
import type { ConnectionContext } from '../exchange/connection-context.ts'
import type { CloseMode } from '../exchange/tunnel-peer.ts'
import type { Machine } from '../../protocol/machine.ts'
import { EVENT } from '../../protocol/states.ts'
import type { ByteSocket } from '../../socket/byte-socket.ts'
import type { Deadline } from '../../runtime/deadline-wheel.ts'
import type { RequestReader } from './request-reader.ts'

const LINGER_MS = 2000
const LINGER_BYTES_MAX = 256 * 1024 * 1024

/** The connection that ends; its deadline bounds the lingering close. */
interface LingeringConnection extends Deadline {
  /** The client takes no bytes now. */
  readonly isBlocked: boolean
  /** Starts the deadline of a client for which bytes wait. */
  awaitClient(): void
  close(mode: CloseMode): void
}

export class LingeringClose {
  readonly #connection: LingeringConnection
  readonly #socket: ByteSocket
  readonly #machine: Machine
  readonly #request: RequestReader
  readonly #context: ConnectionContext
  #droppedBytes = 0

  constructor(
    connection: LingeringConnection,
    socket: ByteSocket,
    machine: Machine,
    request: RequestReader,
    context: ConnectionContext,
  ) {
    this.#connection = connection
    this.#socket = socket
    this.#machine = machine
    this.#request = request
    this.#context = context
  }

  /** Starts, or goes on once the pending bytes have left. */
  start(): void {
    const { wheel } = this.#context
    const { isBlocked } = this.#connection
    this.#request.discard()
    if (!isBlocked) {
      // A client that has sent FIN sends nothing that could be dropped.
      if (this.#machine.peerEnded) {
        this.#connection.close('close')
        return
      }
      this.#socket.end()
    }
    if (isBlocked) this.#connection.awaitClient()
    else wheel.set(this.#connection, LINGER_MS)
    this.#socket.setReading(true)
  }

  /** Drops `length` more bytes. */
  discard(length: number): void {
    this.#request.discard()
    this.#machine.advance(EVENT.REQUEST_DATA)
    this.#droppedBytes += length
    if (this.#droppedBytes > LINGER_BYTES_MAX) this.#connection.close(this.#connection.isBlocked ? 'reset' : 'close')
  }
}
