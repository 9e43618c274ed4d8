/**
 * Handlers of the operator: the first and the last filter of every API, and their part in responses. A handler that
 * fails or hangs costs its own exchange an answer; in the phases `response` and `end` a failure is only logged. A
 * synchronous handler that hangs runs on threads from then on (D710).
 */
import type { Filter, FilterResult } from '../proxy/exchange/contract.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import { HeadEdit } from '../proxy/exchange/head-edit.ts'
import { type Outcome, refusal } from '../proxy/exchange/outcome.ts'
import { ThreadFailure } from '../runtime/isolated-threads.ts'
import type { DescribedFilter } from './filter-chain.ts'
import { causeOf, openView } from './exchange-view.ts'
import { applied, HandledExchange, type HandlerPhases, type MessageFields, NO_CHANGES } from './handled-exchange.ts'
import type { ExchangeView, FieldEdit, HandlerModule, HandlerReply, HandlerTask } from './handler-interface.ts'
import { SynchronousPhases, type SynchronousServices } from './synchronous-phases.ts'

export interface LoadedHandler {
  readonly name: string
  readonly path: string
  readonly phases: readonly Phase[]
  /** Null: the handler runs on threads alone. */
  readonly module: HandlerModule | null
}
type Phase = ExchangeView['phase']

interface HandlerServices extends SynchronousServices {
  /** Phases behind the request that threads run, or that wait for one; more are lost. */
  readonly notificationsMax: number
  /** Runs a phase on a thread. Rejects with ThreadFailure. */
  readonly run: (task: HandlerTask) => Promise<HandlerReply>
}

const FAILED = refusal(102590)
const REFUSED = refusal(102593)
const THREAD_FAILURES: Readonly<Record<ThreadFailure['reason'], Outcome>> = {
  late: refusal(102591),
  memory: FAILED,
  died: FAILED,
  'queue-full': refusal(102592),
}
/** Between two log lines about the same handler, in milliseconds. */
const LOG_INTERVAL_MS = 10_000

export class HandlersFilter implements DescribedFilter, HandlerPhases {
  readonly name = 'handlers'
  readonly about: string
  readonly #handlers: readonly LoadedHandler[]
  readonly #services: HandlerServices
  readonly #synchronous: SynchronousPhases
  /** By name: when the last line was logged, and failures since. */
  readonly #failures = new Map<string, { loggedMs: number; since: number }>()
  /** Phases behind the request that threads run, or that wait for one. */
  #notifications = 0

  constructor(handlers: readonly LoadedHandler[], services: HandlerServices) {
    this.#handlers = handlers
    this.#services = services
    const names = handlers.map(({ name }) => name)
    this.#synchronous = new SynchronousPhases(names, services, (...failure) => this.failed(...failure))
    this.about = handlers.map(({ name }) => name).join(', ')
  }

  /** The chain of an API with its handlers: they hear of the responses of its other filters too. */
  chain(filters: readonly Filter[]): readonly Filter[] {
    const { about } = this
    const begin: DescribedFilter = { name: 'handlers begin', about, request: exchange => this.#begin(exchange) }
    return [begin, ...filters, this]
  }

  #begin(exchange: Exchange): undefined {
    exchange.handlers = new HandledExchange(exchange, this)
  }

  request(exchange: Exchange): FilterResult {
    return this.#requestFrom(0, exchange.handlers as HandledExchange)
  }

  /** The head is there until a handler waits; then its fields have been copied. */
  #requestFrom(from: number, run: HandledExchange): FilterResult {
    for (let at = from; at < this.#handlers.length; at++) {
      const handler = this.#handlers[at]!
      const module = this.#moduleHere(at)
      const outcome = module === null ? this.#requestThere(handler, run) : this.#requestHere(at, module, run)
      if (outcome instanceof Promise) {
        return outcome.then(outcome => outcome ?? this.#requestFrom(at + 1, run))
      }
      if (outcome !== undefined) return outcome
    }
    return undefined
  }

  /** The module that runs on this thread; null: the handler runs on others. */
  #moduleHere(at: number): HandlerModule | null {
    const { module } = this.#handlers[at]!
    return module === null || this.#services.states.isIsolated(at) ? null : module
  }

  #requestHere(at: number, module: HandlerModule, run: HandledExchange): Outcome | undefined {
    if (module.request === undefined) return undefined
    const { name } = this.#handlers[at]!
    const { view, changes, close } = openView(run.facts('request', 0), field => run.requestField(field), true)
    const ran = this.#synchronous.run(at, module, view)
    close()
    if (ran.kind === 'late') return THREAD_FAILURES.late
    if (ran.kind === 'failed') return FAILED
    try {
      run.changeRequest(changes)
    } catch (error) {
      this.failed(name, 'request', causeOf(error))
      return FAILED
    }
    return ran.goesOn ? undefined : REFUSED
  }

  #requestThere({ name, path, phases }: LoadedHandler, run: HandledExchange): FilterResult {
    // The next handler may wait too, and the head is gone by then.
    run.copyFields()
    if (!phases.includes('request')) return undefined
    const task = { path, facts: run.facts('request', 0), fields: run.fields }
    return this.#services.run(task).then(
      reply => this.#replied(name, reply, run),
      (error: ThreadFailure) => {
        this.failed(name, 'request', error.message)
        return error instanceof ThreadFailure ? THREAD_FAILURES[error.reason] : FAILED
      },
    )
  }

  #replied(name: string, reply: HandlerReply, run: HandledExchange): Outcome | undefined {
    if (reply.kind === 'failed') {
      this.failed(name, 'request', reply.cause)
      return FAILED
    }
    try {
      run.changeRequest(reply.changes)
    } catch (error) {
      this.failed(name, 'request', causeOf(error))
      return FAILED
    }
    Object.assign(run.attributes, reply.attributes)
    return reply.goesOn ? undefined : REFUSED
  }

  later(phase: 'response' | 'end', run: HandledExchange, status: number, fields: MessageFields): readonly FieldEdit[] {
    let all = NO_CHANGES
    const waits = phase === 'end' && this.#endsHere()
    for (const [at, handler] of this.#handlers.entries()) {
      const { name, path, phases } = handler
      if (!phases.includes(phase)) continue
      const module = this.#moduleHere(at)
      if (module === null) {
        this.#notify(handler, run, { path, facts: run.facts(phase, status), fields: applied(fields.all(), all) })
        continue
      }
      const facts = run.facts(phase, status)
      const { view, changes, close } = openView(facts, valueAfter(all, fields), phase === 'response')
      if (waits) {
        const runOnThread = (): void => this.#notify(handler, run, { path, facts, fields: [] })
        this.#synchronous.end({ at, module, view, close, runOnThread })
        continue
      }
      const ran = this.#synchronous.run(at, module, view)
      close()
      if (ran.kind !== 'done' || changes.length === 0) continue
      try {
        // Throws where they do not fit.
        new HeadEdit([...all, ...changes], {})
        all = [...all, ...changes]
      } catch (error) {
        this.failed(name, phase, causeOf(error))
      }
    }
    return all
  }

  /** Every phase `end` runs on this thread: then all of them may wait for each other without another order. */
  #endsHere(): boolean {
    return this.#handlers.every(({ phases }, at) => !phases.includes('end') || this.#moduleHere(at) !== null)
  }

  /** Runs a later phase on a thread; only the phase `end` of the same exchange waits for it. */
  #notify({ name }: LoadedHandler, run: HandledExchange, task: HandlerTask): void {
    const { phase } = task.facts
    // Requests wait for the same threads, and a flood of refused ones must not take their places.
    if (this.#notifications >= this.#services.notificationsMax) {
      this.failed(name, phase, `${this.#notifications} phases behind requests wait for threads`)
      return
    }
    this.#notifications++
    const notified =
      phase === 'end' && run.notified !== null
        ? run.notified.then(() => this.#runNotified(name, run, task))
        : this.#runNotified(name, run, task)
    run.notified = run.notified === null ? notified : Promise.all([run.notified, notified])
    void notified.then(() => this.#notifications--)
  }

  async #runNotified(name: string, run: HandledExchange, task: HandlerTask): Promise<void> {
    const { phase } = task.facts
    try {
      const reply = await this.#services.run(task)
      if (reply.kind === 'failed') this.failed(name, phase, reply.cause)
      else Object.assign(run.attributes, reply.attributes)
    } catch (error) {
      this.failed(name, phase, (error as Error).message)
    }
  }

  /** Runs a timer that the handler at a place has set on this thread; false where it must not run again. */
  runTimer(at: number, callback: () => void): boolean {
    return this.#synchronous.runTimer(at, callback)
  }

  /** Logs an error that a handler has left behind on this thread, outside of its calls. `name`: '' if unknown. */
  failedDetached(name: string, error: unknown): void {
    this.failed(name, 'detached', causeOf(error))
  }

  failed(name: string, phase: string, cause: string): void {
    const now = this.#services.nowMs()
    const known = this.#failures.get(name)
    if (known !== undefined && now - known.loggedMs < LOG_INTERVAL_MS) {
      known.since++
      return
    }
    this.#failures.set(name, { loggedMs: now, since: 0 })
    const fields = { HANDLER: name, PHASE: phase, CAUSE_OF_ERROR: cause }
    this.#services.report('error', 'handler failed', { ...fields, NOT_LOGGED_BEFORE: known?.since ?? 0 })
  }
}

/** Reads a field of a message after changes, by its name in lower case. */
function valueAfter(changes: readonly FieldEdit[], fields: MessageFields): (name: string) => string | undefined {
  return name => {
    const changed = changes.findLast(each => each.name.toLowerCase() === name)
    return changed === undefined ? fields.named(name) : changed.value
  }
}
