/**
 * Several endpoints of one API: failover in order, or load balancing. Owns the choice; each endpoint owns its state. A
 * request is sent to an endpoint at most once.
 */
import type { Target } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'
import { METRIC } from '../../observe/metrics.ts'
import { type Endpoint, refuseUnready } from './endpoint.ts'
import { type Nesting, nestedChoice } from './nested-choice.ts'
import { isRetryable } from './retry-buffer.ts'

/** Algorithms of the choice. */
type Algorithm = 'in_order' | 'round_robin' | 'weighted' | 'least_pending'

export class EndpointGroup implements Target {
  readonly name: string
  readonly failsOver: boolean
  readonly #endpoints: readonly Endpoint[]
  readonly #context: ConnectionContext
  /** Index of an endpoint that is not in `tried` (a bit each), or -1. `avoidsDoubtful`: see `Endpoint.isDoubtful`. */
  readonly #choose: (tried: number, avoidsDoubtful: boolean) => number
  /** Next index of round robin, and first index of a search among equals. */
  #turn = 0
  /** Smooth weighted round robin: credit of each endpoint. */
  readonly #credit: Int32Array

  constructor(
    name: string,
    endpoints: readonly Endpoint[],
    algorithm: Algorithm | Nesting,
    failsOver: boolean,
    context: ConnectionContext,
  ) {
    this.name = name
    this.failsOver = failsOver
    this.#endpoints = endpoints
    this.#context = context
    this.#credit = new Int32Array(endpoints.length)
    const choices: Readonly<Record<Algorithm, (tried: number, avoidsDoubtful: boolean) => number>> = {
      in_order: (tried, avoidsDoubtful) => this.#first(tried, avoidsDoubtful),
      round_robin: (tried, avoidsDoubtful) => this.#roundRobin(tried, avoidsDoubtful),
      weighted: (tried, avoidsDoubtful) => this.#weighted(tried, avoidsDoubtful),
      least_pending: (tried, avoidsDoubtful) => this.#leastPending(tried, avoidsDoubtful),
    }
    this.#choose =
      typeof algorithm === 'string'
        ? choices[algorithm]
        : nestedChoice(algorithm, (...endpoint) => this.#isEligible(...endpoint))
    for (const endpoint of endpoints) {
      endpoint.group = this
      endpoint.countsPending = algorithm === 'least_pending'
    }
  }

  send(exchange: Exchange): void {
    exchange.triedEndpoints = 0
    const endpoint = this.next(exchange)
    if (endpoint !== null) {
      endpoint.sendAdmitted(exchange)
      return
    }
    this.#context.metrics.add(METRIC.refusedNoneReady, 1)
    refuseUnready(exchange, 303000, `no endpoint of ${this.name} is ready`, this.#waitMs, this.#context)
  }

  /** An admitted endpoint that has not had the exchange; null without one. The endpoint counts as tried. */
  next(exchange: Exchange): Endpoint | null {
    const avoidsDoubtful = this.failsOver && !isRetryable(exchange)
    for (;;) {
      const { triedEndpoints: tried } = exchange
      const safe = avoidsDoubtful ? this.#choose(tried, true) : -1
      const index = safe < 0 ? this.#choose(tried, false) : safe
      if (index < 0) return null
      exchange.triedEndpoints |= 1 << index
      const endpoint = this.#endpoints[index]!
      // Another reactor may have sent its own probe meanwhile.
      if (endpoint.admit()) return endpoint
    }
  }

  #isEligible(index: number, tried: number, avoidsDoubtful: boolean): boolean {
    const endpoint = this.#endpoints[index]!
    return (tried & (1 << index)) === 0 && endpoint.isReady && !(avoidsDoubtful && endpoint.isDoubtful)
  }

  #first(tried: number, avoidsDoubtful: boolean): number {
    for (let index = 0; index < this.#endpoints.length; index++)
      if (this.#isEligible(index, tried, avoidsDoubtful)) return index
    return -1
  }

  #roundRobin(tried: number, avoidsDoubtful: boolean): number {
    const { length } = this.#endpoints
    for (let step = 0; step < length; step++) {
      const index = (this.#turn + step) % length
      if (!this.#isEligible(index, tried, avoidsDoubtful)) continue
      this.#turn = (index + 1) % length
      return index
    }
    return -1
  }

  /** Smooth weighted round robin: weights 3 and 1 give A A B A, not A A A B. */
  #weighted(tried: number, avoidsDoubtful: boolean): number {
    let best = -1
    let sum = 0
    for (let index = 0; index < this.#endpoints.length; index++) {
      if (!this.#isEligible(index, tried, avoidsDoubtful)) continue
      const { weight } = this.#endpoints[index]!
      sum += weight
      this.#credit[index]! += weight
      if (best < 0 || this.#credit[index]! > this.#credit[best]!) best = index
    }
    if (best >= 0) this.#credit[best]! -= sum
    return best
  }

  #leastPending(tried: number, avoidsDoubtful: boolean): number {
    const { length } = this.#endpoints
    let best = -1
    let least = Number.POSITIVE_INFINITY
    for (let step = 0; step < length; step++) {
      const index = (this.#turn + step) % length
      if (!this.#isEligible(index, tried, avoidsDoubtful)) continue
      const { pending } = this.#endpoints[index]!
      if (pending >= least) continue
      best = index
      least = pending
    }
    if (best >= 0) this.#turn = (best + 1) % length
    return best
  }

  /** Milliseconds until the first endpoint may get requests; -1: waiting does not help. */
  get #waitMs(): number {
    const waits = this.#endpoints.map(endpoint => endpoint.waitMs).filter(ms => ms >= 0)
    return waits.length === 0 ? -1 : Math.min(...waits)
  }
}
