/** A client connection as one side of a tunnel: what it hands over, and what becomes of it for log and counters. */
import type { Exchange } from '../exchange/exchange.ts'
import type { Inbox } from '../exchange/inbox.ts'
import type { Outbox } from '../exchange/outbox.ts'
import type { Surroundings } from '../exchange/surroundings.ts'
import { type Ending, Tunnel, type TunnelParty } from '../exchange/tunnel.ts'
import { METRIC } from '../observe/metrics.ts'
import type { Loss } from '../protocol/fate.ts'
import type { Machine } from '../protocol/machine.ts'
import type { ByteSocket } from '../socket/byte-socket.ts'
import type { ClientReport } from './client-report.ts'
import type { RequestSide } from './request-side.ts'

/** The connection itself, which accounts for its exchange when it closes. */
interface Closer {
  close(how: Ending): void
}

/** Counted; it begins with `open`. */
export function newTunnel(exchange: Exchange, client: ClientEnd, backend: TunnelParty, around: Surroundings): Tunnel {
  exchange.upstream = null
  around.metrics.add(METRIC.tunnelsOpened, 1)
  around.metrics.add(METRIC.tunnelsOpen, 1)
  const tunnel = new Tunnel(exchange, client, backend, around)
  around.tunnels.opened(exchange, tunnel)
  return tunnel
}

export class ClientEnd implements TunnelParty {
  readonly socket: ByteSocket
  readonly machine: Machine
  readonly inbox: Inbox
  readonly outbox: Outbox
  readonly hasEnded: boolean
  readonly bytesRead = METRIC.bytesFromClients
  readonly #connection: Closer
  readonly #report: ClientReport

  constructor(
    connection: Closer,
    socket: ByteSocket,
    machine: Machine,
    request: RequestSide,
    outbox: Outbox,
    report: ClientReport,
  ) {
    this.#connection = connection
    this.socket = socket
    this.machine = machine
    this.inbox = request.inbox
    this.outbox = outbox
    this.hasEnded = request.hasEnded
    this.#report = report
  }

  failed(loss: Loss, cause: string): void {
    if (loss === 'TIMED_OUT') this.#report.stalled()
    else this.#report.lost(cause)
  }

  threw(error: unknown): void {
    this.#report.thrown(error)
  }

  expired(): void {
    this.#report.tunnelExpired()
  }

  close(how: Ending): void {
    this.#connection.close(how)
  }
}
