/** A backend connection as one side of a tunnel: lends its buffers, and reports its losses to log and counters. */
import { METRIC } from '../../observe/metrics.ts'
import { type Loss, TARGET_FAILURES } from '../../protocol/failure-table.ts'
import type { Machine } from '../../protocol/machine.ts'
import { STATE_NAMES } from '../../protocol/states.ts'
import type { ByteSocket } from '../../socket/byte-socket.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { ReadBuffer } from '../exchange/read-buffer.ts'
import type { BackendTunnelPeer, CloseMode } from '../exchange/tunnel-peer.ts'
import type { WriteBuffer } from '../exchange/write-buffer.ts'
import type { ConnectionPool } from './connection-pool.ts'
import { socketKindOf } from './route.ts'
import type { TargetConnection } from './target-connection.ts'

export class TargetTunnelPeer implements BackendTunnelPeer {
  readonly socket: ByteSocket
  readonly machine: Machine
  readonly readBuffer: ReadBuffer
  readonly writeBuffer: WriteBuffer
  readonly bytesRead = METRIC.bytesFromTargets
  readonly kind: BackendTunnelPeer['kind']
  readonly #connection: TargetConnection
  readonly #exchange: Exchange
  readonly #pool: ConnectionPool
  /** Address of the backend. */
  readonly #address: string
  readonly #context: ConnectionContext

  constructor(
    connection: TargetConnection,
    exchange: Exchange,
    machine: Machine,
    socket: ByteSocket,
    readBuffer: ReadBuffer,
    writeBuffer: WriteBuffer,
    pool: ConnectionPool,
    address: string,
    context: ConnectionContext,
  ) {
    this.socket = socket
    this.machine = machine
    this.readBuffer = readBuffer
    this.writeBuffer = writeBuffer
    this.kind = socketKindOf(pool.route)
    this.#connection = connection
    this.#exchange = exchange
    this.#pool = pool
    this.#address = address
    this.#context = context
  }

  failed(loss: Loss, cause: string): void {
    const { state, reported } = this.machine
    const { base } = TARGET_FAILURES[STATE_NAMES[state]!][loss]
    // Both directions have ended, and the last bytes were under way.
    if (base === 0) return
    const exchange = this.#exchange
    if (loss === 'TIMED_OUT') this.#context.metrics.add(METRIC.timeoutTarget, 1)
    exchange.errorBase = base
    exchange.errorState = reported
    this.#pool.reportFailure(
      exchange,
      { base, state: reported, kind: 'transport', code: '', cause, status: 0 },
      'warn',
      this.#address,
    )
  }

  threw(error: unknown): void {
    this.#pool.reportBug(this.#connection.id, error)
  }

  /** The client's side reports the end of a silent tunnel. */
  expired(): void {}

  close(how: CloseMode): void {
    if (how === 'reset') this.socket.reset()
    this.#connection.close()
  }
}
