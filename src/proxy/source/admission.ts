/**
 * Connection limits over all reactors: `max_open_connections` of each transport, the limit that follows from the open
 * files of the process (D168), and `max_connections_per_client`. Node cannot stop accepting, so a connection beyond a
 * limit is accepted, reset at once, and counted (D12).
 */
import { CLIENT_ROWS } from '../../observe/connection-marks.ts'
import { METRIC } from '../../observe/metrics.ts'
import { networkOf } from '../../runtime/ip-address.ts'
import type { SharedGauge } from '../../runtime/shared-gauge.ts'

type ClientScheme = keyof typeof CLIENT_ROWS
type Limits = Readonly<Record<ClientScheme, number>>

export class Admission {
  readonly #connections: SharedGauge
  #limits: Limits
  readonly #descriptorMax: number
  readonly #byClient: SharedGauge | null
  readonly #perClientMax: number
  readonly #slots: number
  readonly #seed: number
  readonly #metrics: { add(cell: number, by: number): void }

  /**
   * A limit of -1 is none. `limits`: by scheme of the listener; `descriptorMax`: of all listeners. `seed` keeps clients
   * from choosing addresses that share a slot.
   */
  constructor(
    connections: SharedGauge,
    limits: Limits,
    descriptorMax: number,
    byClient: SharedGauge | null,
    perClientMax: number,
    slots: number,
    seed: number,
    metrics: { add(cell: number, by: number): void },
  ) {
    this.#connections = connections
    this.#limits = limits
    this.#descriptorMax = descriptorMax
    this.#byClient = byClient
    this.#perClientMax = perClientMax
    this.#slots = slots
    this.#seed = seed
    this.#metrics = metrics
  }

  /** Sets the limits of the transports; open connections stay. */
  setLimits(limits: Limits): void {
    this.#limits = limits
  }

  /** Counts a new connection; false when it is beyond a limit. */
  admit(address: string, scheme: ClientScheme): boolean {
    return this.enter(scheme) && this.admitClient(address, scheme)
  }

  /** Counts a new connection whose client is not known yet; false when it is beyond a limit. */
  enter(scheme: ClientScheme): boolean {
    if (this.#connections.acquire(CLIENT_ROWS[scheme], this.#limits[scheme])) return true
    this.#metrics.add(METRIC.connectionsRefusedAtLimit, 1)
    return false
  }

  /** A connection that has entered ends before its client is known. */
  leave(scheme: ClientScheme): void {
    this.#connections.release(CLIENT_ROWS[scheme])
  }

  /** Counts the client of a connection that has entered; false when it is beyond a limit: the connection has left. */
  admitClient(address: string, scheme: ClientScheme): boolean {
    if (this.#descriptorMax >= 0 && this.#open > this.#descriptorMax) {
      this.#connections.release(CLIENT_ROWS[scheme])
      this.#metrics.add(METRIC.connectionsRefusedDescriptors, 1)
      return false
    }
    if (this.#byClient !== null && !this.#byClient.acquire(this.#slot(address), this.#perClientMax)) {
      this.leave(scheme)
      this.#metrics.add(METRIC.connectionsRefusedPerClient, 1)
      return false
    }
    this.#metrics.add(METRIC.connectionsAccepted, 1)
    this.#metrics.add(METRIC.connectionsOpen, 1)
    return true
  }

  /** Open connections of all listeners and reactors. */
  get #open(): number {
    return this.#connections.sum(CLIENT_ROWS.http) + this.#connections.sum(CLIENT_ROWS.https)
  }

  /** Counts a closed connection. */
  release(address: string, scheme: ClientScheme): void {
    this.leave(scheme)
    this.#byClient?.release(this.#slot(address))
    this.#metrics.add(METRIC.connectionsOpen, -1)
  }

  /** FNV-1a of the client's network. Two networks in one slot share a limit, so there are many slots. */
  #slot(address: string): number {
    const network = networkOf(address)
    let hash = this.#seed ^ 0x811c9dc5
    for (let i = 0; i < network.length; i++) hash = Math.imul(hash ^ network.charCodeAt(i), 0x01000193)
    return (hash >>> 0) % this.#slots
  }
}
