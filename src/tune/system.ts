/** The system that `sluice tune` measures, a gateway under load or a simulated one, and its measurements. */
import type { OtherUse } from './other-programs.ts'

export interface Measured {
  /** Responses of class 2xx per second. */
  readonly throughput: number
  /** Latencies of 2xx responses and of requests without a response; from the intended send time in an open loop. */
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
  /** Other responses, lost connections, and requests without a response. */
  readonly errors: number
  /** Kind of error, such as `429 (900802)` -> count. */
  readonly failures: Readonly<Record<string, number>>
  readonly requests: number
  /** Busy share of the load generator's thread, 0 to 1. */
  readonly generatorBusy: number
  /** CPU time that other programs used meanwhile; null: the system does not tell. */
  readonly others: OtherUse | null
}

/** `section.key` -> value. */
export type Sizes = Readonly<Record<string, number>>

export interface System {
  /** The gateway runs with these sizes from now on. */
  configure(sizes: Sizes): Promise<void>
  /** Each client sends its next request after the response to the last one. */
  closed(clients: number): Promise<Measured>
  /** Requests are due at a constant rate. */
  open(ratePerSecond: number, clients: number): Promise<Measured>
  /** As `closed`, without the gateway: the load generator and a stub. */
  ceiling(clients: number): Promise<Measured>
  /** CPU time that other programs use while nothing is measured; null: the system does not tell. */
  quiet(): Promise<OtherUse | null>
}

/** Kind of failure: a request that waits for its response when the measurement ends. */
export const NO_RESPONSE = 'no response'

/** The gateway does not start, or serves no request; the message is for the operator. */
export class TuneFailed extends Error {
  override readonly name = 'TuneFailed'
}

/** `429 (900802) x 1,234, no response x 3`; the most frequent first. */
export function failuresText(failures: Readonly<Record<string, number>>): string {
  return Object.entries(failures)
    .toSorted(([, one], [, other]) => other - one)
    .map(([kind, count]) => `${kind} x ${count.toLocaleString('en')}`)
    .join(', ')
}
