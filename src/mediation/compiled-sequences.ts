/** Sequences of a thread: plans compiled once to closures, run synchronously unless a mediator waits. */
import { hash } from 'node:crypto'
import type { Report } from '../proxy/exchange/connection-context.ts'
import { compileExpression } from './expression-compiler.ts'
import { MediationFault } from './mediation-fault.ts'
import { beginTurn, checkTime, LimitReached, TOO_LONG, TOO_MANY } from './flow-limits.ts'
import type { FlowCounter } from './flow-statistics.ts'
import type { CompileContext, Run } from './mediator.ts'
import { loadedMediator } from './mediators/loaded.ts'
import type { Message } from './message.ts'
import type { MediatorPlan, SequencePlan, TemplateParameter } from './sequence-plan.ts'
import type { FlowResult, RaisedFault } from './worker-task.ts'

/** Sequences that one message may enter, nested or in a row: bounds recursion. */
const ENTERED_MAX = 100
/** Mediators that one message may run: bounds loops. */
const STEPS_MAX = 250_000
/** Mediators between two looks at the clock. */
const STEPS_PER_LOOK = 16
/** Reloads have taken away what a message waited for. */
const GONE = {
  code: 102544,
  message: 'Mediation failed',
  cause: 'reloads have changed or removed the sequence that the message waited for',
} as const

interface CompiledSequence {
  readonly run: Run
  /** Name of the sequence that runs when a mediator fails; '' for none. */
  readonly onError: string
  /** Parameters of a template; left out: it is a sequence. */
  readonly parameters?: readonly TemplateParameter[]
}

export class CompiledSequences {
  #version = 1
  readonly #report: Report
  #runs: ReadonlyMap<string, CompiledSequence> = new Map()
  /** Sequences within others, which run on copies in the background; while plans are compiled. */
  #inner = new Map<string, CompiledSequence>()
  /** Sequences that a reload has changed or removed, for messages that came before: no other has their name. */
  #former: ReadonlyMap<string, CompiledSequence> = new Map()
  /** JSON of the plans that `#runs` were compiled from. */
  #text = ''
  /** Sequences of the home, where those of an API have no sequence of a name; null for those of the home themselves. */
  readonly #home: CompiledSequences | null
  /** Null: nothing is counted. */
  readonly #statistics: FlowCounter | null

  /**
   * `former`: plans that reloads have changed or removed. Throws where a plan cannot be compiled, or a mediator is not
   * loaded (`mediators/loaded.ts`).
   */
  constructor(
    plans: readonly SequencePlan[],
    report: Report,
    home: CompiledSequences | null = null,
    statistics: FlowCounter | null = null,
    former: readonly SequencePlan[] = [],
  ) {
    this.#report = report
    this.#statistics = statistics
    this.#home = home
    this.prepare(plans)()
    this.#former = new Map(former.flatMap(plan => this.#compileFormer(plan)))
  }

  /**
   * Compiles the plans, and throws where that fails; the returned function activates them and cannot fail. Unchanged
   * plans keep their closures, with the patterns and paths that those have compiled.
   */
  prepare(plans: readonly SequencePlan[]): () => void {
    const text = JSON.stringify(plans)
    if (text === this.#text) return () => undefined
    const runs = this.#compileAll(plans)
    return () => {
      this.#version++
      this.#former = new Map([...this.#runs].filter(([name]) => !runs.has(name)))
      this.#runs = runs
      this.#text = text
    }
  }

  /** Returns the sequences, and those within them, by name. */
  #compileAll(plans: readonly SequencePlan[]): ReadonlyMap<string, CompiledSequence> {
    this.#inner = new Map()
    const named = plans.map(plan => [plan.name, compiledOf(plan, this.#compileSequence(plan))] as const)
    return new Map([...this.#inner, ...named])
  }

  /** Empty where the sequence needs what is gone. */
  #compileFormer(plan: SequencePlan): readonly (readonly [string, CompiledSequence])[] {
    try {
      return [...this.#compileAll([plan])]
    } catch {
      return []
    }
  }

  /** Changes with every change of a sequence. */
  get version(): number {
    return this.#home === null ? this.#version : this.#version + this.#home.version
  }

  has(name: string): boolean {
    return this.#runs.has(name) || this.#home?.has(name) === true
  }

  /**
   * Runs a sequence none of whose mediators waits. `ended`: it ended without an outcome, or there is no sequence of
   * this name. `failed`: a mediator failed, or the message reached a limit.
   */
  run(name: string, message: Message): Message['outcome'] | 'failed' {
    try {
      const goesOn = this.#run(name, message)
      if (goesOn instanceof Promise) {
        // Its own failure says no more.
        goesOn.catch(() => undefined)
        throw new Error('a mediator waits')
      }
      if (message.outcome !== 'faulted') return message.outcome
      this.#warn(name, message.fault!.cause)
    } catch (error) {
      this.#warn(name, causeOf(error))
    }
    return 'failed'
  }

  /**
   * Runs the sequences of a flow in order, until one ends the message. Returns a promise only if a mediator waits;
   * never throws: `faults` leaves the fault in the message.
   */
  runToEnd(names: readonly string[], message: Message): FlowResult['kind'] | Promise<FlowResult['kind']> {
    const fail = (error: unknown) => {
      message.outcome = 'faulted'
      message.fault = raisedBy(error)
      describeFault(message, message.fault)
      return endOf(message)
    }
    beginTurn()
    try {
      const goesOn = this.runInOrder(names, message)
      return goesOn instanceof Promise ? goesOn.then(() => endOf(message)).catch(fail) : endOf(message)
    } catch (error) {
      return fail(error)
    }
  }

  /** Runs sequences in order on a message of a flow that runs; as `Run`, so that it throws what mediators throw. */
  runInOrder(names: readonly string[], message: Message): ReturnType<Run> {
    const runs = names.map(
      (name): Run =>
        message =>
          this.#run(name, message, 'planned'),
    )
    return runFrom(runs, 0, message)
  }

  #compileSequence(plan: SequencePlan): Run {
    const run = this.#compile(plan, plan.steps)
    return this.#statistics === null ? run : this.#statistics.measured(plan.name, run)
  }

  #compile(plan: SequencePlan, steps: readonly MediatorPlan[]): Run {
    const runs = steps.map(step => this.#compileMediator(plan, step))
    return message => runFrom(runs, 0, message)
  }

  #compileMediator(plan: SequencePlan, { mediator: name, line, settings }: MediatorPlan): Run {
    const mediator = loadedMediator(name)
    const location = `${plan.label}:${line}`
    let defined = 0
    const context: CompileContext = {
      location,
      compileAll: steps => this.#compile(plan, steps),
      compileBranch: ({ key, steps }) => (key === '' ? this.#compile(plan, steps) : message => this.#run(key, message)),
      compileExpression: expression => compileExpression(expression, cause => this.#warn(location, cause)),
      runSequence: (key, message, onError = '') => this.#guarded(onError, message, () => this.#run(key, message)),
      parametersOf: key => this.#parametersOf(key),
      handleFailure: (message, error) => {
        const { sentOnError } = message
        if (sentOnError === '') throw error
        message.sentOnError = ''
        return this.#fail(sentOnError, message, error)
      },
      hasSequence: key => this.has(key),
      define: run => {
        const name = `${plan.name}, steps ${digestOf(settings)} ${++defined}`
        this.#inner.set(name, { run, onError: '' })
        return name
      },
      log: this.#report,
      warn: cause => this.#warn(location, cause),
    }
    const compiled = mediator.compile(settings, context)
    const run = this.#statistics?.capturesAll ? this.#statistics.measured(`${location} ${name}`, compiled) : compiled
    const fail = (error: unknown): never => {
      throw located(error, location)
    }
    return message => {
      try {
        const goesOn = run(message)
        return goesOn instanceof Promise ? goesOn.catch(fail) : goesOn
      } catch (error) {
        return fail(error)
      }
    }
  }

  /** `planned`: a flow, or a task in the background, names the sequence: it was there when the message came. */
  #run(name: string, message: Message, use: 'planned' | 'called' = 'called'): ReturnType<Run> {
    const sequence = this.#runs.get(name) ?? this.#formerOf(name)
    if (sequence === undefined) {
      if (this.#home !== null) return this.#home.#run(name, message, use)
      if (use === 'planned') throw new MediationFault(GONE)
      this.#warn(name, 'there is no such sequence')
      return true
    }
    if (++message.enteredSequences > ENTERED_MAX) {
      throw new LimitReached(`entered more than ${ENTERED_MAX} sequences`, TOO_MANY)
    }
    return this.#guarded(sequence.onError === name ? '' : sequence.onError, message, () => sequence.run(message))
  }

  #formerOf(name: string): CompiledSequence | undefined {
    return this.#home?.has(name) === true ? undefined : this.#former.get(name)
  }

  #parametersOf(name: string): readonly TemplateParameter[] {
    const own = this.#runs.get(name)
    if (own !== undefined || this.#home === null) return own?.parameters ?? []
    return this.#home.#parametersOf(name)
  }

  /** Calls `run`, and the sequence `onError` where `run`, or what it sends, fails; '' for none. */
  #guarded(onError: string, message: Message, run: () => ReturnType<Run>): ReturnType<Run> {
    if (onError === '') return run()
    const fail = (error: unknown) => this.#fail(onError, message, error)
    const end = (goesOn: boolean): boolean => {
      // The innermost one, which ends first, stays.
      if (message.outcome === 'sent' && message.sentOnError === '') message.sentOnError = onError
      return goesOn
    }
    try {
      const goesOn = run()
      return goesOn instanceof Promise ? goesOn.then(end, fail) : end(goesOn)
    } catch (error) {
      return fail(error)
    }
  }

  /** Runs `onError`. The fault ends the flow, unless that sequence ends it otherwise. */
  #fail(onError: string, message: Message, error: unknown): ReturnType<Run> {
    if (error instanceof LimitReached) throw error
    const fault = raisedBy(error)
    describeFault(message, fault)
    const end = (): false => {
      if (message.outcome === 'ended') {
        message.outcome = 'faulted'
        message.fault = fault
      }
      return false
    }
    const goesOn = this.#run(onError, message)
    return goesOn instanceof Promise ? goesOn.then(end) : end()
  }

  #warn(location: string, cause: string): void {
    this.#report('warn', 'sequence failed', { SEQUENCE: location, CAUSE_OF_ERROR: cause })
  }
}

function compiledOf({ onError, parameters }: SequencePlan, run: Run): CompiledSequence {
  return parameters === undefined ? { run, onError } : { run, onError, parameters }
}

/** The error with the place of its mediator. Anything but MediationFault and limits is a bug. */
function located(error: unknown, location: string): MediationFault | LimitReached {
  if (error instanceof LimitReached) return error
  if (error instanceof MediationFault) return error.locate(location)
  return new MediationFault({ message: NOT_MEDIATED, cause: `failed: ${String(error)}` }).locate(location)
}

const NOT_MEDIATED = 'The message could not be mediated'

function raisedBy(error: unknown): RaisedFault {
  if (error instanceof MediationFault) return error.raised
  const { code, told } = error instanceof LimitReached ? error.fault : { code: 0, told: NOT_MEDIATED }
  return { code, message: told, detail: '', cause: causeOf(error), sequence: '' }
}

function causeOf(error: unknown): string {
  if (error instanceof MediationFault) return error.raised.cause
  return error instanceof LimitReached ? error.message : `failed: ${String(error)}`
}

/** Sets the properties by which sequences read a fault. */
function describeFault(message: Message, { code, type, message: text, detail, cause }: RaisedFault): void {
  message.set('default', 'ERROR_CODE', type ?? code)
  message.set('default', 'ERROR_MESSAGE', text)
  message.set('default', 'ERROR_DETAIL', detail)
  message.set('default', 'ERROR_EXCEPTION', cause)
}

function endOf(message: Message): FlowResult['kind'] {
  switch (message.outcome) {
    case 'responded':
      return 'responds'
    case 'looped':
      return 'loops'
    case 'dropped':
      return 'drops'
    case 'faulted':
      return 'faults'
    case 'sent':
      // A request that is marked as a response goes to the client.
      return message.isMarkedResponse && !message.isFromBackend ? 'responds' : 'continues'
    case 'ended':
      return 'continues'
  }
}

/** Mediators that this thread has run since the last look. */
let stepsSinceLook = 0

/** Runs mediators in order. Synchronous unless one of them waits. Throws LimitReached where nobody waits any more. */
function runFrom(runs: readonly Run[], from: number, message: Message): ReturnType<Run> {
  if (message.task?.isOver()) throw new LimitReached('nobody waits for the message any more', TOO_LONG)
  for (let at = from; at < runs.length; at++) {
    if (++message.steps > STEPS_MAX) throw new LimitReached(`ran more than ${STEPS_MAX} mediators`, TOO_MANY)
    // Mediators of all copies count: each copy may run few.
    if (++stepsSinceLook >= STEPS_PER_LOOK) {
      stepsSinceLook = 0
      checkTime()
    }
    const goesOn = runs[at]!(message)
    if (goesOn instanceof Promise) return goesOn.then(on => on && runFrom(runs, at + 1, message))
    if (!goesOn) return false
  }
  return true
}

function digestOf(settings: unknown): string {
  return hash('sha256', JSON.stringify(settings), 'hex').slice(0, 16)
}
