/**
 * Who may connect: `max_open_connections` over all reactors, and `max_connections_per_client`. Node cannot stop
 * accepting, so a connection beyond a limit is accepted, reset at once, and counted.
 */
import { METRIC } from '../observe/metrics.ts'
import type { SharedGauge } from '../structure/shared-gauge.ts'

/** Row of the gauge in which all client connections count. */
const ALL_CLIENTS = 0

export class Admission {
  readonly #all: SharedGauge
  #allMax: number
  readonly #byClient: SharedGauge | null
  readonly #perClientMax: number
  readonly #rows: number
  readonly #seed: number
  readonly #metrics: { add(cell: number, by: number): void }

  /** Limits of -1 are none. `seed`: so that nobody can choose addresses that share a row. */
  constructor(
    all: SharedGauge,
    allMax: number,
    byClient: SharedGauge | null,
    perClientMax: number,
    rows: number,
    seed: number,
    metrics: { add(cell: number, by: number): void },
  ) {
    this.#all = all
    this.#allMax = allMax
    this.#byClient = byClient
    this.#perClientMax = perClientMax
    this.#rows = rows
    this.#seed = seed
    this.#metrics = metrics
  }

  /** At most so many from now on; those who are in stay. */
  limit(allMax: number): void {
    this.#allMax = allMax
  }

  enter(address: string): boolean {
    if (!this.#all.take(ALL_CLIENTS, this.#allMax)) {
      this.#metrics.add(METRIC.connectionsRefusedAtLimit, 1)
      return false
    }
    if (this.#byClient !== null && !this.#byClient.take(this.#row(address), this.#perClientMax)) {
      this.#all.give(ALL_CLIENTS)
      this.#metrics.add(METRIC.connectionsRefusedPerClient, 1)
      return false
    }
    this.#metrics.add(METRIC.connectionsAccepted, 1)
    this.#metrics.add(METRIC.connectionsOpen, 1)
    return true
  }

  leave(address: string): void {
    this.#all.give(ALL_CLIENTS)
    this.#byClient?.give(this.#row(address))
    this.#metrics.add(METRIC.connectionsOpen, -1)
  }

  /** FNV-1a. Two addresses in one row share a limit, which is why there are many rows (D12). */
  #row(address: string): number {
    let hash = this.#seed ^ 0x811c9dc5
    for (let i = 0; i < address.length; i++) hash = Math.imul(hash ^ address.charCodeAt(i), 0x01000193)
    return (hash >>> 0) % this.#rows
  }
}
