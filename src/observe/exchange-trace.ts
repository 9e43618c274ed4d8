/**
 * Trace of one exchange for `sluice walk`: the transitions of both machines and the notes of other parts, in
 * microseconds. A secret correlation id identifies the exchange. Until the id is read, the first transitions of every
 * new request are recorded. All records are bounded.
 */
import type { Exchange } from '../proxy/exchange/exchange.ts'
import type { Machine } from '../protocol/machine.ts'
import { EVENT, EVENT_NAMES, type Event, STATE_NAMES, type State } from '../protocol/states.ts'
import type { Collected, Tracer } from '../protocol/tracer.ts'

export interface TraceStep {
  /** Microseconds since the first byte of the request. */
  readonly us: number
  /** Side of a transition; `gateway` for a note. */
  readonly where: 'source' | 'target' | 'gateway'
  /** Name of the event, or title of the note. */
  readonly what: string
  /** State after the event, or text of the note. */
  readonly detail: string
  /** Body bytes of request and response in this step. */
  readonly bytes: number
}

export interface Trace extends ExchangeSummary {
  readonly steps: readonly TraceStep[]
  /** Number of steps beyond the limit. */
  readonly dropped: number
  /** The trace covers the end of the exchange. */
  readonly isComplete: boolean
}

/** Connections and outcome of the exchange. */
interface ExchangeSummary {
  readonly source: string
  /** '' without a backend connection. */
  readonly target: string
  readonly status: number
  readonly api: string
  readonly requestBodyBytes: number
  readonly responseBodyBytes: number
  readonly errorBase: number
  readonly errorState: number
}

/** A step as recorded, before its times and byte counts become relative. */
interface RecordedStep {
  readonly atMs: number
  readonly where: TraceStep['where']
  readonly what: string
  readonly detail: string
  /** Body bytes of the exchange up to this step. */
  readonly requestBytes: number
  readonly responseBytes: number
}

const STEPS_MAX = 1000
/** Steps of a request whose correlation id is not read yet. */
const EARLY_STEPS_MAX = 16
const REQUESTS_MAX = 10_000

export class ExchangeTrace implements Tracer {
  readonly collects: Collected
  readonly #correlationId: string
  readonly #nowMs: () => number
  readonly #finished: () => void
  /** Steps of requests whose correlation id is not read yet, by machine. */
  readonly #early = new Map<Machine, RecordedStep[]>()
  #exchange: Exchange | null = null
  #source: Machine | null = null
  #target: Machine | null = null
  /** Source machine of the last transition: the notes of a request follow a transition of its machine. */
  #last: Machine | null = null
  #steps: RecordedStep[] = []
  #dropped = 0
  /** Set at the end of the exchange, because the next request of the connection reuses the exchange. */
  #summary: ExchangeSummary | null = null

  /** `finished`: called at the end of the exchange; transitions of the same turn may follow. */
  constructor(correlationId: string, collects: Collected, nowMs: () => number, finished: () => void) {
    this.collects = collects
    this.#correlationId = correlationId
    this.#nowMs = nowMs
    this.#finished = finished
  }

  transition(machine: Machine, _from: State, event: Event, to: State): void {
    if (this.#summary !== null && event === EVENT.REQUEST_BEGIN) this.#release(machine)
    if (machine === this.#source || machine === this.#target) {
      this.#record(this.#steps, STEPS_MAX, machine.side, EVENT_NAMES[event]!, STATE_NAMES[to]!)
      return
    }
    if (this.#exchange !== null || machine.side !== 'source') return
    this.#last = machine
    if (event === EVENT.REQUEST_BEGIN && this.#early.size < REQUESTS_MAX) this.#early.set(machine, [])
    const early = this.#early.get(machine)
    if (early === undefined) return
    // Only REUSE discards the steps: the exchange of a lost connection ends after the loss, and may be the traced one.
    if (event === EVENT.REUSE) this.#early.delete(machine)
    else this.#record(early, EARLY_STEPS_MAX, machine.side, EVENT_NAMES[event]!, STATE_NAMES[to]!)
  }

  note(exchange: Exchange, what: string, detail: string): void {
    if (this.#isTraced(exchange)) this.#record(this.#steps, STEPS_MAX, 'gateway', what, detail)
  }

  assign(exchange: Exchange, machine: Machine, what: string, detail: string): void {
    if (!this.#isTraced(exchange)) return
    this.#target = machine
    this.#record(this.#steps, STEPS_MAX, 'gateway', what, detail)
  }

  /** Ends the trace where the exchange is the traced one. */
  done(exchange: Exchange): void {
    if (this.#summary !== null || !this.#isTraced(exchange)) return
    this.#summary = summaryOf(exchange)
    this.#finished()
  }

  /** The connection starts another request. */
  #release(machine: Machine): void {
    if (machine === this.#source) this.#source = null
    if (machine === this.#target) this.#target = null
  }

  #isTraced(exchange: Exchange): boolean {
    if (this.#exchange !== null) return exchange === this.#exchange && this.#summary === null
    if (exchange.correlationId !== this.#correlationId) return false
    this.#exchange = exchange
    this.#source = this.#last
    this.#steps = (this.#last !== null && this.#early.get(this.#last)) || []
    this.#early.clear()
    return true
  }

  #record(steps: RecordedStep[], most: number, where: TraceStep['where'], what: string, detail: string): void {
    if (steps.length >= most) {
      this.#dropped++
      return
    }
    const source = this.#summary ?? this.#exchange
    const requestBytes = source?.requestBodyBytes ?? 0
    const responseBytes = source?.responseBodyBytes ?? 0
    steps.push({ atMs: this.#nowMs(), where, what, detail, requestBytes, responseBytes })
  }

  /** The trace so far; null where the exchange was not seen. */
  result(): Trace | null {
    const exchange = this.#exchange
    if (exchange === null) return null
    const summary = this.#summary ?? summaryOf(exchange)
    const steps = this.#relativeSteps(summary.responseBodyBytes)
    return { ...summary, steps, dropped: this.#dropped, isComplete: this.#summary !== null }
  }

  /** The counter of request bytes moves before the transition, that of response bytes after it. */
  #relativeSteps(responseBodyBytes: number): readonly TraceStep[] {
    const recorded = this.#steps
    const startMs = recorded[0]?.atMs ?? 0
    return recorded.map(({ atMs, where, what, detail, requestBytes, responseBytes }, at) => {
      const before = recorded[at - 1]?.requestBytes ?? 0
      const after = recorded[at + 1]?.responseBytes ?? responseBodyBytes
      const bytes = requestBytes - before + (after - responseBytes)
      return { us: Math.round((atMs - startMs) * 1000), where, what, detail, bytes }
    })
  }
}

function summaryOf(exchange: Exchange): ExchangeSummary {
  const { sourceId, targetId, status, apiName, requestBodyBytes, responseBodyBytes, errorBase, errorState } = exchange
  const source = `http-incoming-${sourceId}`
  const target = targetId === 0 ? '' : `http-outgoing-${targetId}`
  return { source, target, status, api: apiName, requestBodyBytes, responseBodyBytes, errorBase, errorState }
}
