/** Serves the primary's calls that look into a reactor: connections, kept failures, the trace of one exchange. */
import { type ConnectionList, ConnectionListBuilder } from '../observe/connection-list.ts'
import { ExchangeTrace, type Trace } from '../observe/exchange-trace.ts'
import { FlightRecorder } from '../observe/flight-recorder.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import { type Collected, NOTHING_COLLECTED, setTracer, tracer } from '../protocol/tracer.ts'
import type { ReactorPlan } from '../plan/reactor-plan.ts'
import type { ReactorCall, ReactorCallResults } from '../plan/reactor-messages.ts'

type InspectorCall = Exclude<ReactorCall, { kind: 'deploy' | 'sockets' | 'closeListeners' }>
type InspectorResult = ReactorCallResults[InspectorCall['kind']]

/** Shows every open connection to a lister. */
type ShowConnections = (lister: ConnectionListBuilder) => void

/** The exchange that the reactor watches for. */
interface Watch {
  readonly correlationId: string
  readonly trace: ExchangeTrace
  readonly ended: PromiseWithResolvers<Trace | null>
  readonly timer: NodeJS.Timeout
}

export class ReactorInspector {
  readonly #show: ShowConnections
  readonly recorder: FlightRecorder
  #watch: Watch | null = null

  constructor({ reactor, recorder }: Pick<ReactorPlan, 'reactor' | 'recorder'>, show: ShowConnections) {
    this.#show = show
    this.recorder = new FlightRecorder(reactor, recorder)
  }

  serve(call: InspectorCall): InspectorResult | Promise<InspectorResult> {
    switch (call.kind) {
      case 'connections':
        return this.#list(new ConnectionListBuilder(call.query, performance.now()))
      case 'failures':
        return this.recorder.list(call.query)
      case 'watch':
        return this.#startWatch(call.correlationId, call.waitMs, call.collects ?? NOTHING_COLLECTED)
      case 'trace':
        return call.correlationId === this.#watch?.correlationId ? this.#watch.ended.promise : null
      case 'unwatch':
        if (call.correlationId === this.#watch?.correlationId) this.#endWatch()
        return true
    }
  }

  /** Called with every exchange that is over. */
  done(exchange: Exchange): void {
    this.recorder.done(exchange)
    if (tracer !== null) this.#watch?.trace.done(exchange)
  }

  #list(lister: ConnectionListBuilder): ConnectionList {
    this.#show(lister)
    return lister.list
  }

  #startWatch(correlationId: string, waitMs: number, collects: Collected): boolean {
    if (this.#watch !== null) return false
    // Events right behind the end, as the reuse of a connection, belong to the trace.
    const over = (): void => void setImmediate(() => this.#watch?.trace === trace && this.#endWatch())
    const trace = new ExchangeTrace(correlationId, collects, () => performance.now(), over)
    const timer = setTimeout(() => this.#endWatch(), waitMs)
    this.#watch = { correlationId, trace, ended: Promise.withResolvers(), timer }
    setTracer(trace)
    return true
  }

  #endWatch(): void {
    const ended = this.#watch
    if (ended === null) return
    this.#watch = null
    setTracer(null)
    clearTimeout(ended.timer)
    ended.ended.resolve(ended.trace.result())
  }
}
