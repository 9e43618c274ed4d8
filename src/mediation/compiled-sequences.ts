/** The active sequences of a reactor: plans compiled once to closures, run synchronously. */
import type { Report } from '../proxy/exchange/connection-context.ts'
import { compileExpression } from './expression-compiler.ts'
import type { CompileContext, Run } from './mediator.ts'
import { MEDIATORS } from './mediators/list.ts'
import type { Message } from './message.ts'
import type { MediatorPlan, SequencePlan } from './sequence-plan.ts'

/** Sequences that one message may enter, nested or in a row: bounds recursion. */
const ENTERED_MAX = 100

/** Ends a message that entered too many sequences. */
class TooManySequences extends Error {
  override readonly name = 'TooManySequences'
}

export class CompiledSequences {
  /** Changes with every change of a sequence. */
  version = 1
  readonly #report: Report
  #runs: ReadonlyMap<string, Run> = new Map()
  /** JSON of the plans that `#runs` were compiled from. */
  #text = ''

  /** Throws where a plan cannot be compiled. */
  constructor(plans: readonly SequencePlan[], report: Report) {
    this.#report = report
    this.prepare(plans)()
  }

  /**
   * Compiles the plans, and throws where that fails; the returned function activates them and cannot fail. Unchanged
   * plans keep their closures, with the patterns and paths that those have compiled.
   */
  prepare(plans: readonly SequencePlan[]): () => void {
    const text = JSON.stringify(plans)
    if (text === this.#text) return () => undefined
    const runs = new Map(plans.map(plan => [plan.name, this.#compile(plan, plan.steps)]))
    return () => {
      this.version++
      this.#runs = runs
      this.#text = text
    }
  }

  has(name: string): boolean {
    return this.#runs.has(name)
  }

  /**
   * Runs a sequence. `ended`: it ended without an outcome, or there is no sequence of this name. `failed`: a bug, or
   * the message entered too many sequences.
   */
  run(name: string, message: Message): Message['outcome'] | 'failed' {
    try {
      this.#run(name, message)
      return message.outcome
    } catch (error) {
      // Only a bug, or too many sequences, throws here. The client gets a response all the same.
      const cause = error instanceof TooManySequences ? error.message : `failed: ${String(error)}`
      this.#warn(name, cause)
      return 'failed'
    }
  }

  #compile(plan: SequencePlan, steps: readonly MediatorPlan[]): Run {
    const runs = steps.map(step => this.#compileMediator(plan, step))
    return message => {
      for (const run of runs) if (!run(message)) return false
      return true
    }
  }

  #compileMediator(plan: SequencePlan, { mediator: name, line, settings }: MediatorPlan): Run {
    const mediator = MEDIATORS.find(mediator => mediator.name === name)
    if (mediator === undefined) throw new Error(`no mediator ${name}`)
    const location = `${plan.label}:${line}`
    const context: CompileContext = {
      location,
      compileAll: steps => this.#compile(plan, steps),
      compileExpression: expression => compileExpression(expression, cause => this.#warn(location, cause)),
      runSequence: (key, message) => this.#run(key, message),
      log: this.#report,
      warn: cause => this.#warn(location, cause),
    }
    return mediator.compile(settings, context)
  }

  #run(name: string, message: Message): boolean {
    const run = this.#runs.get(name)
    if (run === undefined) {
      this.#warn(name, 'there is no such sequence')
      return true
    }
    if (++message.enteredSequences > ENTERED_MAX) {
      throw new TooManySequences(`entered more than ${ENTERED_MAX} sequences`)
    }
    return run(message)
  }

  #warn(location: string, cause: string): void {
    this.#report('warn', 'sequence failed', { SEQUENCE: location, CAUSE_OF_ERROR: cause })
  }
}
