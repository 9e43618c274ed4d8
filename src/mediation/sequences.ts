/** The sequences in force in a reactor: programs compiled once to closures, run synchronously. */
import type { Report } from '../exchange/surroundings.ts'
import { compileExpression } from './expression-compiler.ts'
import type { Compiling, Run } from './mediator.ts'
import { MEDIATORS } from './mediators/list.ts'
import type { Message } from './message.ts'
import type { SequenceProgram, Step } from './program.ts'

/** Sequences that one message may enter, nested or not: what calls itself ends here. */
const CALLS_MAX = 100

/** A message that entered too many sequences; it is given up. */
class TooManyCalls extends Error {
  override readonly name = 'TooManyCalls'
}

export class Sequences {
  readonly #report: Report
  #bodies: ReadonlyMap<string, Run> = new Map()
  /** What they were compiled from. */
  #text = ''

  /** Throws when a program cannot be compiled. */
  constructor(programs: readonly SequenceProgram[], report: Report) {
    this.#report = report
    this.prepare(programs)()
  }

  /**
   * Throws when a program cannot be compiled. Nothing has changed before what it answers is called. What is the same as
   * before keeps the patterns and paths that it has compiled meanwhile.
   */
  prepare(programs: readonly SequenceProgram[]): () => void {
    const text = JSON.stringify(programs)
    if (text === this.#text) return () => undefined
    const bodies = new Map(programs.map(program => [program.name, this.#compile(program, program.steps)]))
    return () => {
      this.#bodies = bodies
      this.#text = text
    }
  }

  has(name: string): boolean {
    return this.#bodies.has(name)
  }

  /** `ended`: it came to its end and said nothing of the message; also when there is no such sequence. */
  run(name: string, message: Message): Message['outcome'] | 'failed' {
    try {
      this.#call(name, message)
      return message.outcome
    } catch (error) {
      // Closures do not throw but for this and for bugs; neither may take the answer to the client with it.
      const cause = error instanceof TooManyCalls ? error.message : `failed: ${String(error)}`
      this.#complain(name, cause)
      return 'failed'
    }
  }

  #compile(program: SequenceProgram, steps: readonly Step[]): Run {
    return all(steps.map(step => this.#compileStep(program, step)))
  }

  #compileStep(program: SequenceProgram, { mediator, line, settings }: Step): Run {
    const row = MEDIATORS.find(({ name }) => name === mediator)
    if (row === undefined) throw new Error(`no mediator ${mediator}`)
    const where = `${program.label}:${line}`
    const compiling: Compiling = {
      where,
      steps: steps => this.#compile(program, steps),
      expression: expression => compileExpression(expression, cause => this.#complain(where, cause)),
      call: (key, message) => this.#call(key, message),
      log: this.#report,
      complain: cause => this.#complain(where, cause),
    }
    return row.compile(settings, compiling)
  }

  #call(name: string, message: Message): boolean {
    const body = this.#bodies.get(name)
    if (body === undefined) {
      this.#complain(name, 'there is no such sequence')
      return true
    }
    if (++message.calls > CALLS_MAX) throw new TooManyCalls(`entered more than ${CALLS_MAX} sequences`)
    return body(message)
  }

  #complain(where: string, cause: string): void {
    this.#report('warn', 'sequence failed', { SEQUENCE: where, CAUSE_OF_ERROR: cause })
  }
}

function all(runs: readonly Run[]): Run {
  return message => {
    for (const run of runs) if (!run(message)) return false
    return true
  }
}
