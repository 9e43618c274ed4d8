/**
 * What a mediator is: one element of the sequence language in two halves. The primary reads its element to plain data,
 * with every fault that can be known then; a reactor makes a closure of that data. A new mediator is one file in
 * `mediators/` and its row in `mediators/list.ts`.
 */
import type { XmlElement } from '../config/xml.ts'
import type { Report } from '../exchange/surroundings.ts'
import type { Expression } from './expression.ts'
import type { Evaluate } from './expression-compiler.ts'
import type { Message } from './message.ts'
import type { Step } from './program.ts'
import type { Reading } from './reading.ts'

/** False: the message is at its end, nothing more is run. */
export type Run = (message: Message) => boolean

/** What a mediator makes its closure with, in a reactor. */
export interface Compiling {
  /** `file:line` of the step, for reports. */
  readonly where: string
  /** All of them, one after the other. */
  steps(steps: readonly Step[]): Run
  expression(expression: Expression): Evaluate
  /** Runs another sequence. */
  call(key: string, message: Message): boolean
  /** A line of the log that an operator asked for. */
  log: Report
  /** A step that could not do what it says. `cause` is ours: nothing of a client's is in it. */
  complain(cause: string): void
}

interface Mediator<Settings> {
  /** Of its element. */
  readonly name: string
  readonly attributes: readonly string[]
  /** Elements it may have; absent where any mediator may stand in it, or anything else that it reads itself. */
  readonly elements: readonly string[] | null
  /** undefined, with a fault, when it cannot be run. */
  read(element: XmlElement, reading: Reading): Settings | undefined
  compile(settings: Settings, compiling: Compiling): Run
}

/** A mediator whose settings are its own affair: each step is compiled by the mediator that read it. */
export type AnyMediator = Mediator<unknown>

export function mediator<Settings>(it: Mediator<Settings>): AnyMediator {
  return { ...it, compile: (settings, compiling) => it.compile(settings as Settings, compiling) }
}
