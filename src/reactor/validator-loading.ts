/**
 * Loads the custom validator of the operator in a reactor. A call of it that takes too long is ended, and so is a timer
 * that it sets; what it does behind an `await` has no limit.
 */
import { type CustomValidator, type CustomValidatorInput, ValidatorHung } from '../auth/custom-validator.ts'
import { loadModule } from '../config/module-file.ts'
import { causeOf } from '../filters/exchange-view.ts'
import { WAITED_MIN } from '../filters/synchronous-phases.ts'
import type { MetricsColumn } from '../observe/metrics.ts'
import type { ReactorPlan } from '../plan/reactor-plan.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import { type TimerRunner, withTimersOf } from '../runtime/limited-timers.ts'
import { type ModuleCalls, moduleCalls } from './module-calls.ts'
import type { ModuleGuard } from './module-guard.ts'

interface ValidatorContext {
  readonly report: Report
  readonly metrics: MetricsColumn
  readonly guard: Pick<ModuleGuard, 'add'>
}

export class Validators {
  readonly #home: string
  readonly #context: ValidatorContext
  readonly #calls: ModuleCalls

  constructor({ home, moduleLimitMs }: Pick<ReactorPlan, 'home' | 'moduleLimitMs'>, context: ValidatorContext) {
    this.#home = home
    this.#context = context
    this.#calls = moduleCalls(moduleLimitMs, context.report, context.metrics)
  }

  /** Rejects with ModuleError. */
  async load(path: string): Promise<CustomValidator> {
    this.#context.guard.add([{ name: path, path }], (_, error) => this.#failed(causeOf(error)))
    const runTimer: TimerRunner = callback => this.#runTimer(callback)
    const validate = await withTimersOf(runTimer, () => loadModule(this.#home, path, 'validate'))
    return input => withTimersOf(runTimer, () => this.#validate(validate as CustomValidator, input))
  }

  close(): void {
    this.#calls.close()
  }

  #validate(validate: CustomValidator, input: CustomValidatorInput): unknown {
    const held: { result: (() => unknown) | null } = { result: null }
    this.#calls.run(() => {
      try {
        const value = validate(input)
        held.result = () => value
      } catch (error) {
        held.result = () => {
          throw error
        }
      }
    })
    if (held.result !== null) return held.result()
    throw this.#late()
  }

  #runTimer(callback: () => void): boolean {
    const held = { hasEnded: false }
    this.#calls.run(() => {
      try {
        callback()
      } catch (error) {
        this.#failed(causeOf(error))
      }
      held.hasEnded = true
    })
    if (!held.hasEnded) this.#failed(this.#late().message)
    return held.hasEnded
  }

  #late(): Error {
    const { limitMs } = this.#calls
    const waitedMs = this.#calls.ended()
    const cause = `it was ended: it took ${limitMs} ms`
    // On a busy machine a module may get no time for its work.
    const hasWaited = waitedMs >= limitMs * WAITED_MIN
    return hasWaited ? new Error(`${cause}, most of which it waited for a processor`) : new ValidatorHung(cause)
  }

  /** Reports an error that the module has left behind. */
  #failed(cause: string): void {
    this.#context.report('error', 'key validation handler failed', { PHASE: 'detached', CAUSE_OF_ERROR: cause })
  }
}
