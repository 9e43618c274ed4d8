/**
 * The course of one exchange, with its microseconds: what both machines took, and what the rooms noted. The exchange is
 * the one with a correlation id that nobody else can guess; until that id is read, the events of every request that
 * begins are kept, so that its first ones are there. Owns what is kept, which is bounded.
 */
import type { Exchange } from '../exchange/exchange.ts'
import type { Machine } from '../protocol/machine.ts'
import { EVENT, EVENT_NAMES, type Event, STATE_NAMES, type State } from '../protocol/states.ts'
import type { Tracer } from '../protocol/tracer.ts'

export interface Step {
  /** Microseconds since the first byte of the request was read. */
  readonly us: number
  /** `gateway`: no event of a machine. */
  readonly where: 'source' | 'target' | 'gateway'
  /** Name of the event, or what was noted. */
  readonly what: string
  /** State that follows, or more about what was noted. */
  readonly detail: string
  /** Body bytes of the request and of the response that came with it. */
  readonly bytes: number
}

export interface Trace extends Account {
  readonly steps: readonly Step[]
  /** Steps beyond the limit. */
  readonly dropped: number
  /** The exchange came to its end while it was watched. */
  readonly isComplete: boolean
}

/** What became of the exchange. */
interface Account {
  readonly source: string
  /** '' when no backend connection was used. */
  readonly target: string
  readonly status: number
  readonly api: string
  readonly requestBodyBytes: number
  readonly responseBodyBytes: number
  readonly errorBase: number
  readonly errorState: number
}

/** A step as it is kept: numbers and names, no text made. */
interface Kept {
  readonly atMs: number
  readonly where: Step['where']
  readonly what: string
  readonly detail: string
  /** Body bytes counted by then. */
  readonly requestBytes: number
  readonly responseBytes: number
}

const STEPS_MAX = 1000
/** Of a request that may turn out to be another's. */
const EARLY_STEPS_MAX = 16
const REQUESTS_MAX = 10_000

export class ExchangeTrace implements Tracer {
  readonly #correlationId: string
  readonly #nowMs: () => number
  readonly #finished: () => void
  /** Requests that have begun and whose id is not known, by their machine. */
  readonly #early = new Map<Machine, Kept[]>()
  #exchange: Exchange | null = null
  #source: Machine | null = null
  #target: Machine | null = null
  /** The client's machine that moved last: what is noted about a request is noted while it moves. */
  #last: Machine | null = null
  #steps: Kept[] = []
  #dropped = 0
  /** Taken at the end of the exchange, because the next request of its connection uses the same parcel. */
  #account: Account | null = null

  /** `finished` is called when the exchange is over, but for the events that follow at once. */
  constructor(correlationId: string, nowMs: () => number, finished: () => void) {
    this.#correlationId = correlationId
    this.#nowMs = nowMs
    this.#finished = finished
  }

  moved(machine: Machine, _from: State, event: Event, to: State): void {
    if (this.#account !== null && event === EVENT.REQUEST_BEGIN) this.#release(machine)
    if (machine === this.#source || machine === this.#target) {
      this.#keep(this.#steps, STEPS_MAX, machine.side, EVENT_NAMES[event]!, STATE_NAMES[to]!)
      return
    }
    if (this.#exchange !== null || machine.side !== 'source') return
    this.#last = machine
    if (event === EVENT.REQUEST_BEGIN && this.#early.size < REQUESTS_MAX) this.#early.set(machine, [])
    const early = this.#early.get(machine)
    if (early === undefined) return
    // One that is lost is accounted for behind that event, and may be ours.
    if (event === EVENT.REUSE) this.#early.delete(machine)
    else this.#keep(early, EARLY_STEPS_MAX, machine.side, EVENT_NAMES[event]!, STATE_NAMES[to]!)
  }

  noted(exchange: Exchange, what: string, detail: string): void {
    if (this.#isOurs(exchange)) this.#keep(this.#steps, STEPS_MAX, 'gateway', what, detail)
  }

  taken(exchange: Exchange, machine: Machine, what: string, detail: string): void {
    if (!this.#isOurs(exchange)) return
    this.#target = machine
    this.#keep(this.#steps, STEPS_MAX, 'gateway', what, detail)
  }

  /** The exchange is accounted for. */
  done(exchange: Exchange): void {
    if (this.#account !== null || !this.#isOurs(exchange)) return
    this.#account = accountOf(exchange)
    this.#finished()
  }

  /** Another request begins on a connection that was ours. */
  #release(machine: Machine): void {
    if (machine === this.#source) this.#source = null
    if (machine === this.#target) this.#target = null
  }

  #isOurs(exchange: Exchange): boolean {
    if (this.#exchange !== null) return exchange === this.#exchange && this.#account === null
    if (exchange.correlationId !== this.#correlationId) return false
    this.#exchange = exchange
    this.#source = this.#last
    this.#steps = (this.#last !== null && this.#early.get(this.#last)) || []
    this.#early.clear()
    return true
  }

  #keep(steps: Kept[], most: number, where: Step['where'], what: string, detail: string): void {
    if (steps.length >= most) {
      this.#dropped++
      return
    }
    const counted = this.#account ?? this.#exchange
    const requestBytes = counted?.requestBodyBytes ?? 0
    const responseBytes = counted?.responseBodyBytes ?? 0
    steps.push({ atMs: this.#nowMs(), where, what, detail, requestBytes, responseBytes })
  }

  /** What there is by now; null when the exchange was not seen. */
  result(): Trace | null {
    const exchange = this.#exchange
    if (exchange === null) return null
    const account = this.#account ?? accountOf(exchange)
    const steps = this.#told(account.responseBodyBytes)
    return { ...account, steps, dropped: this.#dropped, isComplete: this.#account !== null }
  }

  /** Bytes of a request are counted in front of the event that they come with, those of a response behind it. */
  #told(responseBodyBytes: number): readonly Step[] {
    const kept = this.#steps
    const startMs = kept[0]?.atMs ?? 0
    return kept.map(({ atMs, where, what, detail, requestBytes, responseBytes }, at) => {
      const before = kept[at - 1]?.requestBytes ?? 0
      const after = kept[at + 1]?.responseBytes ?? responseBodyBytes
      const bytes = requestBytes - before + (after - responseBytes)
      return { us: Math.round((atMs - startMs) * 1000), where, what, detail, bytes }
    })
  }
}

function accountOf(exchange: Exchange): Account {
  const { sourceId, targetId, status, apiName, requestBodyBytes, responseBodyBytes, errorBase, errorState } = exchange
  const source = `http-incoming-${sourceId}`
  const target = targetId === 0 ? '' : `http-outgoing-${targetId}`
  return { source, target, status, api: apiName, requestBodyBytes, responseBodyBytes, errorBase, errorState }
}
