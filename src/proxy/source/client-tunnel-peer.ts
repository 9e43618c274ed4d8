/** A client connection as one side of a tunnel. */
import type { ReadBuffer } from '../exchange/read-buffer.ts'
import type { WriteBuffer } from '../exchange/write-buffer.ts'
import type { CloseMode, TunnelPeer } from '../exchange/tunnel-peer.ts'
import { METRIC } from '../../observe/metrics.ts'
import type { Loss } from '../../protocol/failure-table.ts'
import type { Machine } from '../../protocol/machine.ts'
import type { ByteSocket } from '../../socket/byte-socket.ts'
import type { ClientReport } from './client-report.ts'

export class ClientTunnelPeer implements TunnelPeer {
  readonly socket: ByteSocket
  readonly machine: Machine
  readonly readBuffer: ReadBuffer
  readonly writeBuffer: WriteBuffer
  readonly bytesRead = METRIC.bytesFromClients
  readonly #connection: { close(mode: CloseMode): void }
  readonly #report: ClientReport

  /** `connection` closes the socket, and accounts for its exchange then. */
  constructor(
    connection: { close(mode: CloseMode): void },
    socket: ByteSocket,
    machine: Machine,
    readBuffer: ReadBuffer,
    writeBuffer: WriteBuffer,
    report: ClientReport,
  ) {
    this.#connection = connection
    this.socket = socket
    this.machine = machine
    this.readBuffer = readBuffer
    this.writeBuffer = writeBuffer
    this.#report = report
  }

  failed(loss: Loss, cause: string): void {
    if (loss === 'TIMED_OUT') this.#report.stalled(false)
    else this.#report.disconnected(cause)
  }

  threw(error: unknown): void {
    this.#report.threw(error)
  }

  expired(): void {
    this.#report.tunnelExpired()
  }

  close(mode: CloseMode): void {
    this.#connection.close(mode)
  }
}
