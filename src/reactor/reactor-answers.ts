/** What a reactor answers to the primary's questions: its connections, and the course of one exchange. */
import { type ConnectionList, ConnectionLister } from '../observe/connection-row.ts'
import { ExchangeTrace, type Trace } from '../observe/exchange-trace.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { watch } from '../protocol/tracer.ts'
import type { Answer, Question } from '../questions.ts'

/** What is asked about connections and exchanges. */
type Inquiry = Exclude<Question, { kind: 'deploy' }>

/** Shows every open connection to a lister. */
type ShowConnections = (lister: ConnectionLister) => void

/** An exchange that is watched for, and who waits for it. */
interface Watch {
  readonly correlationId: string
  readonly trace: ExchangeTrace
  readonly ended: PromiseWithResolvers<Trace | null>
  readonly timer: NodeJS.Timeout
}

export class ReactorAnswers {
  readonly #show: ShowConnections
  #watch: Watch | null = null

  constructor(show: ShowConnections) {
    this.#show = show
  }

  answer(question: Inquiry): Answer | Promise<Answer> {
    switch (question.kind) {
      case 'connections':
        return this.#list(new ConnectionLister(question.query, performance.now()))
      case 'arm':
        return this.#arm(question.correlationId, question.waitMs)
      case 'trace':
        return question.correlationId === this.#watch?.correlationId ? this.#watch.ended.promise : null
      case 'disarm':
        if (question.correlationId === this.#watch?.correlationId) this.#disarm()
        return true
    }
  }

  /** The exchange is accounted for: is it the one that is watched for? */
  done(exchange: Exchange): void {
    this.#watch?.trace.done(exchange)
  }

  #list(lister: ConnectionLister): ConnectionList {
    this.#show(lister)
    return lister.list
  }

  #arm(correlationId: string, waitMs: number): boolean {
    if (this.#watch !== null) return false
    // What follows the end at once, as the reuse of a connection, is part of it.
    const over = (): void => void setImmediate(() => this.#watch?.trace === trace && this.#disarm())
    const trace = new ExchangeTrace(correlationId, () => performance.now(), over)
    const timer = setTimeout(() => this.#disarm(), waitMs)
    this.#watch = { correlationId, trace, ended: Promise.withResolvers(), timer }
    watch(trace)
    return true
  }

  #disarm(): void {
    const ended = this.#watch
    if (ended === null) return
    this.#watch = null
    watch(null)
    clearTimeout(ended.timer)
    ended.ended.resolve(ended.trace.result())
  }
}
