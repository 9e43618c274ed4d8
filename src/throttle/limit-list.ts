/**
 * The limits that apply to the requests of one caller to one resource, sorted by what the filter does with them. Made
 * once per version of the policies.
 */
import type { LateCharges, TunnelMeter } from '../proxy/exchange/late-charges.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import type { Counter } from './counter-table.ts'
import { LEVELS, type Limit } from './limit.ts'
import type { SharedCounter } from './shared-counters.ts'
import { TunnelLimits } from './tunnel-limits.ts'
import type { Throttle } from './throttle.ts'

const SWITCHED = 101
/** One object for all lists: most limits are of one sort, and every object of one caller alone waits for memory. */
const NO_LIMITS: readonly Limit[] = []
const NO_SHARED: readonly SharedCounter[] = []

export class LimitList implements LateCharges {
  /** The list has no limit. */
  readonly isEmpty: boolean
  /** In the order in which they decide. */
  readonly all: readonly Limit[]
  /** Limits on this machine that refuse, with their counters. Those of bandwidth are only checked. */
  readonly stopping: readonly Limit[]
  readonly counters: readonly Counter[]
  /** Limits that several gateways share. */
  readonly shared: readonly Limit[]
  readonly sharedCounters: readonly SharedCounter[]
  /** Limits that mark requests and let them pass. */
  readonly marking: readonly Limit[]
  /** Limits on messages, for requests that open a WebSocket connection. */
  readonly events: readonly Limit[]
  /** Limits on bytes, charged when the exchange is over. */
  readonly bandwidth: readonly Limit[]
  /** Cells of the metrics of a request that passes. */
  readonly passedCells: readonly number[]
  /** Value of `RateLimit-Policy`. */
  readonly policies: string
  readonly #throttle: Throttle

  constructor(all: readonly Limit[], throttle: Throttle) {
    const ofRequests = all.filter(({ quota }) => quota.type !== 'events')
    this.#throttle = throttle
    this.isEmpty = all.length === 0
    this.all = all
    this.stopping = those(ofRequests, ({ stops, shared }) => stops && shared === null)
    this.counters = this.stopping.map(({ counter }) => counter)
    this.shared = those(ofRequests, ({ stops, shared }) => stops && shared !== null)
    this.sharedCounters = this.shared.length === 0 ? NO_SHARED : this.shared.map(({ shared }) => shared!)
    this.marking = those(ofRequests, ({ stops }) => !stops)
    this.events = those(all, ({ quota }) => quota.type === 'events')
    this.bandwidth = those(all, ({ quota }) => quota.type === 'bandwidth')
    this.passedCells = ofRequests.map(({ level }) => LEVELS[level].passed)
    this.policies = ofRequests.map(({ policyItem }) => policyItem).join(', ')
  }

  /** True if something is charged behind the request: bytes, or messages of a tunnel. */
  isLate({ upgrade }: Exchange): boolean {
    return this.bandwidth.length > 0 || (upgrade !== '' && this.events.length > 0)
  }

  /** Charges the bodies of both directions. A tunnel has charged its bytes already. */
  settle({ status, requestBodyBytes, responseBodyBytes }: Exchange): void {
    if (status === SWITCHED) return
    const bytes = requestBodyBytes + responseBodyBytes
    if (bytes > 0) for (const limit of this.bandwidth) this.#throttle.charge(limit, bytes)
  }

  meter(exchange: Exchange): TunnelMeter {
    return new TunnelLimits(this, exchange, this.#throttle)
  }
}

function those(limits: readonly Limit[], hold: (limit: Limit) => boolean): readonly Limit[] {
  const found = limits.filter(hold)
  return found.length === 0 ? NO_LIMITS : found
}
