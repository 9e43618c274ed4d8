/** A backend connection as one side of a tunnel: what it hands over, and what becomes of it for log and counters. */
import type { Exchange } from '../exchange/exchange.ts'
import type { Inbox } from '../exchange/inbox.ts'
import type { Outbox } from '../exchange/outbox.ts'
import type { Surroundings } from '../exchange/surroundings.ts'
import type { BackendParty, Ending } from '../exchange/tunnel.ts'
import { METRIC } from '../observe/metrics.ts'
import { FATE, type Loss } from '../protocol/fate.ts'
import type { Machine } from '../protocol/machine.ts'
import { STATE_NAMES } from '../protocol/states.ts'
import type { ByteSocket } from '../socket/byte-socket.ts'
import type { HostPool } from './host-pool.ts'
import { socketKindOf } from './route.ts'
import type { TargetConnection } from './target-connection.ts'

/** What the connection has of use to its end of the tunnel. */
interface Handover {
  readonly connection: TargetConnection
  readonly exchange: Exchange
  readonly machine: Machine
  readonly socket: ByteSocket
  readonly inbox: Inbox
  readonly outbox: Outbox
  readonly pool: HostPool
  /** Of the backend. */
  readonly address: string
}

export class BackendEnd implements BackendParty {
  readonly socket: ByteSocket
  readonly machine: Machine
  readonly inbox: Inbox
  readonly outbox: Outbox
  /** Its end is never read in front of its head. */
  readonly hasEnded = false
  readonly bytesRead = METRIC.bytesFromTargets
  readonly kind: BackendParty['kind']
  readonly #handover: Handover
  readonly #around: Surroundings

  constructor(handover: Handover, around: Surroundings) {
    this.socket = handover.socket
    this.machine = handover.machine
    this.inbox = handover.inbox
    this.outbox = handover.outbox
    this.kind = socketKindOf(handover.pool.route)
    this.#handover = handover
    this.#around = around
  }

  failed(loss: Loss, cause: string): void {
    const { state, reported } = this.machine
    const { base } = FATE[STATE_NAMES[state]!][loss]
    // Its last bytes were on their way, and nobody waits for anything any more.
    if (base === 0) return
    const { exchange, pool, address } = this.#handover
    if (loss === 'TIMED_OUT') this.#around.metrics.add(METRIC.timeoutTarget, 1)
    exchange.errorBase = base
    exchange.errorState = reported
    pool.failed(exchange, { base, state: reported, cause, status: 0 }, 'warn', address)
  }

  threw(error: unknown): void {
    this.#handover.pool.threw(this.#handover.connection.id, error)
  }

  /** Said of the client's side. */
  expired(): void {}

  close(how: Ending): void {
    if (how === 'reset') this.socket.reset()
    this.#handover.connection.close()
  }
}
