/**
 * Phases and timers of synchronous handlers on the thread of their reactor. One that takes too long is ended, and its
 * handler is isolated (D710).
 */
import type { ModuleStates } from '../runtime/module-states.ts'
import { causeOf } from './exchange-view.ts'
import type { ExchangeView, HandlerModule } from './handler-interface.ts'

/** Calls of synchronous handlers on this thread. */
interface SynchronousCalls {
  /** Longest time of a call in milliseconds; 0: there is no limit. */
  readonly limitMs: number
  /** Runs a call that keeps its own result and errors, and ends it at the limit. */
  readonly run: (call: () => void) => void
  /** Makes a call whose timers belong to the handler at a place. Around `run`: a call that ends runs no `finally`. */
  readonly owned: (at: number, call: () => void) => void
  /** A call was ended. Returns how many milliseconds of it the thread has waited for a processor, or more. */
  readonly ended: () => number
}

export interface SynchronousServices {
  readonly report: (level: 'error', event: string, fields: Record<string, string | number>) => void
  /** Milliseconds that only rise. */
  readonly nowMs: () => number
  /** States of the handlers by their places; `reactor`: the place of this reactor there. */
  readonly states: ModuleStates
  readonly reactor: number
  readonly synchronous: SynchronousCalls
}

/** The result of a phase. `late`: the phase was ended at its limit. */
type Ran =
  | { readonly kind: 'done'; readonly goesOn: boolean }
  | { readonly kind: 'failed'; readonly cause: string }
  | { readonly kind: 'late' }

/** A phase `end` that waits for its run. */
interface Ended {
  readonly at: number
  readonly module: HandlerModule
  readonly view: ExchangeView
  readonly close: () => void
  /** Runs the phase on a thread: its handler was isolated meanwhile. */
  readonly runOnThread: () => void
}

const LATE: Ran = { kind: 'late' }
const DONE: Ran = { kind: 'done', goesOn: true }
const STOPPED: Ran = { kind: 'done', goesOn: false }
const DYING: Ran = { kind: 'failed', cause: 'the thread of the handler ends' }
const PROMISE: Ran = { kind: 'failed', cause: 'a synchronous handler has returned a promise' }
/** A handler that has waited for a processor for this share of its limit has not hung. */
export const WAITED_MIN = 0.9
/** Share of the limit after which no further phase `end` begins in the same call. */
const SHARED_MAX = 0.1

/** Most phases `end` that wait for the end of a turn of the event loop. */
const ENDED_MAX = 64

type Failed = (name: string, phase: string, cause: string) => void
/** A part of a handler that runs on its reactor: a phase, or a timer that it has set (`detached`). */
type Part = ExchangeView['phase'] | 'detached'

export class SynchronousPhases {
  readonly #names: readonly string[]
  readonly #services: SynchronousServices
  readonly #failed: Failed
  /** Phases `end` of this turn of the event loop. */
  #ended: Ended[] = []

  /** `names`: of the handlers, by their places. `failed`: is told why a phase has failed. */
  constructor(names: readonly string[], services: SynchronousServices, failed: Failed) {
    this.#names = names
    this.#services = services
    this.#failed = failed
  }

  /** Runs the phase of the view; its failure is reported. */
  run(at: number, module: HandlerModule, view: ExchangeView): Ran {
    return this.#run(at, view.phase, () => ranOf(module, view))
  }

  /** Runs a timer that a handler has set; its failure is reported. Returns false where it must not run again. */
  runTimer(at: number, callback: () => void): boolean {
    // The handler runs on threads, with timers of its own there.
    if (this.#services.states.isIsolated(at)) return false
    return this.#run(at, 'detached', () => ranCall(callback)).kind !== 'late'
  }

  #run(at: number, part: Part, call: () => Ran): Ran {
    const { states, reactor, synchronous, nowMs } = this.#services
    const held = { ran: LATE }
    const startedMs = nowMs()
    states.enter(reactor, at)
    synchronous.owned(at, () =>
      synchronous.run(() => {
        held.ran = call()
      }),
    )
    if (held.ran === LATE && this.#isDying(startedMs)) return DYING
    states.leave(reactor)
    this.#report(at, part, held.ran)
    return held.ran
  }

  /** Runs a phase `end` behind this turn of the event loop: one call with a limit runs several. */
  end(ended: Ended): void {
    const waiting = this.#ended.push(ended)
    if (waiting >= ENDED_MAX) this.#runEnded()
    else if (waiting === 1) setImmediate(() => this.#runEnded())
  }

  #runEnded(): void {
    let left = this.#ended
    this.#ended = []
    while (left.length > 0) left = this.#onReactor(left.slice(this.#runSome(left)))
  }

  #onReactor(ended: Ended[]): Ended[] {
    const { states } = this.#services
    const [here, isolated] = [[] as Ended[], [] as Ended[]]
    for (const one of ended) (states.isIsolated(one.at) ? isolated : here).push(one)
    for (const one of isolated) one.runOnThread()
    return here
  }

  /** Runs phases in one call; returns how many. */
  #runSome(ended: readonly Ended[]): number {
    const { states, reactor, synchronous, nowMs } = this.#services
    const results: Ran[] = []
    const startedMs = nowMs()
    const lastMs = startedMs + synchronous.limitMs * SHARED_MAX
    const held = { begun: 0 }
    const runAll = (): void => {
      for (const { at, module, view } of ended) {
        held.begun++
        states.enter(reactor, at)
        synchronous.owned(at, () => results.push(ranOf(module, view)))
        // A further phase needs nearly all of the limit.
        if (nowMs() > lastMs) break
      }
    }
    synchronous.owned(ended[0]!.at, () => synchronous.run(runAll))
    if (results.length < Math.max(1, held.begun)) {
      if (this.#isDying(startedMs)) return ended.length
      results.push(LATE)
    }
    states.leave(reactor)
    for (const [index, ran] of results.entries()) {
      this.#report(ended[index]!.at, 'end', ran)
      ended[index]!.close()
    }
    return results.length
  }

  /** Something else than the limit has ended a call: the primary names the handler that ran once the thread is gone. */
  #isDying(startedMs: number): boolean {
    const { nowMs, synchronous } = this.#services
    return nowMs() - startedMs < synchronous.limitMs / 2
  }

  #report(at: number, part: Part, ran: Ran): void {
    if (ran.kind === 'failed') this.#failed(this.#names[at]!, part, ran.cause)
    else if (ran.kind === 'late') this.#late(at, part)
    if (ran === PROMISE) this.#isolate(at, part, 'it has returned a promise: leave out `synchronous`')
  }

  #isolate(at: number, part: Part, cause: string): void {
    const { states, report } = this.#services
    if (!states.isolate(at)) return
    const CAUSE_OF_ERROR = `${cause}; it runs on threads until the next reload or start, and changes no response there`
    report('error', 'handler isolated', { HANDLER: this.#names[at]!, PHASE: part, CAUSE_OF_ERROR })
  }

  /** Reports that a part was ended at its limit, and isolates the handler if the thread had a processor. */
  #late(at: number, part: Part): void {
    const { synchronous } = this.#services
    const { limitMs } = synchronous
    const name = this.#names[at]!
    const waitedMs = synchronous.ended()
    // On a busy machine a handler may get no time for its work.
    const hasWaited = waitedMs >= limitMs * WAITED_MIN
    const waited = hasWaited ? `, and waited up to ${Math.round(waitedMs)} ms for a processor` : ''
    const what = part === 'detached' ? 'a timer' : 'the phase'
    this.#failed(name, part, `${what} was ended: it took ${limitMs} ms${waited}`)
    if (!hasWaited) this.#isolate(at, part, 'it hung')
  }
}

/** Runs the phase of a view. What reads its result or its error runs code of the handler too. */
function ranOf(module: HandlerModule, view: ExchangeView): Ran {
  try {
    const result = module[view.phase]!(view)
    if (isThenable(result)) return ignored(result)
    return result === false ? STOPPED : DONE
  } catch (error) {
    return { kind: 'failed', cause: causeOf(error) }
  }
}

function isThenable(result: unknown): result is PromiseLike<unknown> {
  return typeof (result as PromiseLike<unknown> | null | undefined)?.then === 'function'
}

/** A promise of a synchronous handler, whose result is ignored: code behind its `await` has no limit here (D910). */
function ignored(result: PromiseLike<unknown>): Ran {
  // A rejection that nobody handles would end the thread. Other thenables begin their work with `then`.
  if (result instanceof Promise) result.catch(() => undefined)
  return PROMISE
}

function ranCall(call: () => void): Ran {
  try {
    call()
    return DONE
  } catch (error) {
    return { kind: 'failed', cause: causeOf(error) }
  }
}
