/**
 * Several endpoints that answer for one API: in order, or sharing the load. Owns the choice; each endpoint owns its
 * state. A request is sent to an endpoint at most once.
 */
import type { Target } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Surroundings } from '../exchange/surroundings.ts'
import { METRIC } from '../observe/metrics.ts'
import { type Endpoint, refuseUnready } from './endpoint.ts'
import { mayResend } from './saved-request.ts'

/** In which order endpoints are chosen. */
type Choice = 'in_order' | 'round_robin' | 'weighted' | 'least_pending'

export class EndpointGroup implements Target {
  readonly name: string
  readonly failsOver: boolean
  readonly #endpoints: readonly Endpoint[]
  readonly #around: Surroundings
  /** `isCareful`: none that may fail the request that tries it. Answers -1 where there is none. */
  readonly #choose: (tried: number, isCareful: boolean) => number
  /** Where round robin goes on, and where a search among equals begins. */
  #turn = 0
  /** Smooth weighting: what each endpoint has in hand. */
  readonly #credit: Int32Array

  constructor(name: string, endpoints: readonly Endpoint[], choice: Choice, failsOver: boolean, around: Surroundings) {
    this.name = name
    this.failsOver = failsOver
    this.#endpoints = endpoints
    this.#around = around
    this.#credit = new Int32Array(endpoints.length)
    const choices: Readonly<Record<Choice, (tried: number, isCareful: boolean) => number>> = {
      in_order: (tried, isCareful) => this.#first(tried, isCareful),
      round_robin: (tried, isCareful) => this.#nextInTurn(tried, isCareful),
      weighted: (tried, isCareful) => this.#heaviest(tried, isCareful),
      least_pending: (tried, isCareful) => this.#idlest(tried, isCareful),
    }
    this.#choose = choices[choice]
    for (const endpoint of endpoints) {
      endpoint.siblings = this
      endpoint.countsPending = choice === 'least_pending'
    }
  }

  send(exchange: Exchange): void {
    exchange.triedEndpoints = 0
    const endpoint = this.next(exchange)
    if (endpoint !== null) {
      endpoint.take(exchange)
      return
    }
    this.#around.metrics.add(METRIC.refusedNoneReady, 1)
    refuseUnready(exchange, 303000, `no endpoint of ${this.name} is ready`, this.#waitMs, this.#around)
  }

  next(exchange: Exchange): Endpoint | null {
    const isCareful = this.failsOver && !mayResend(exchange)
    for (;;) {
      const { triedEndpoints: tried } = exchange
      const safe = isCareful ? this.#choose(tried, true) : -1
      const index = safe < 0 ? this.#choose(tried, false) : safe
      if (index < 0) return null
      exchange.triedEndpoints |= 1 << index
      const endpoint = this.#endpoints[index]!
      // Another reactor may have sent a request of its own to a suspended endpoint meanwhile.
      if (endpoint.admit()) return endpoint
    }
  }

  #isOpen(index: number, tried: number, isCareful: boolean): boolean {
    const endpoint = this.#endpoints[index]!
    return (tried & (1 << index)) === 0 && endpoint.isReady && !(isCareful && endpoint.isDoubtful)
  }

  #first(tried: number, isCareful: boolean): number {
    for (let index = 0; index < this.#endpoints.length; index++) if (this.#isOpen(index, tried, isCareful)) return index
    return -1
  }

  #nextInTurn(tried: number, isCareful: boolean): number {
    const { length } = this.#endpoints
    for (let step = 0; step < length; step++) {
      const index = (this.#turn + step) % length
      if (!this.#isOpen(index, tried, isCareful)) continue
      this.#turn = (index + 1) % length
      return index
    }
    return -1
  }

  /** Smooth: of weights 3 and 1 not three to the first and then one to the second, but the one in the middle. */
  #heaviest(tried: number, isCareful: boolean): number {
    let best = -1
    let sum = 0
    for (let index = 0; index < this.#endpoints.length; index++) {
      if (!this.#isOpen(index, tried, isCareful)) continue
      const { weight } = this.#endpoints[index]!
      sum += weight
      this.#credit[index]! += weight
      if (best < 0 || this.#credit[index]! > this.#credit[best]!) best = index
    }
    if (best >= 0) this.#credit[best]! -= sum
    return best
  }

  #idlest(tried: number, isCareful: boolean): number {
    const { length } = this.#endpoints
    let best = -1
    let least = Number.POSITIVE_INFINITY
    for (let step = 0; step < length; step++) {
      const index = (this.#turn + step) % length
      if (!this.#isOpen(index, tried, isCareful)) continue
      const { pending } = this.#endpoints[index]!
      if (pending >= least) continue
      best = index
      least = pending
    }
    if (best >= 0) this.#turn = (best + 1) % length
    return best
  }

  /** Until the first of them may be used; -1: not by waiting. */
  get #waitMs(): number {
    const waits = this.#endpoints.map(endpoint => endpoint.waitMs).filter(ms => ms >= 0)
    return waits.length === 0 ? -1 : Math.min(...waits)
  }
}
