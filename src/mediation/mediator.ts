/**
 * Interface of a mediator, one element of the sequence language. `parse` runs in the primary: it turns the element into
 * plain data and reports every error that can be known then. `compile` runs in a reactor and turns the data into a
 * closure. A new mediator is one file in `mediators/` and its row in `mediators/list.ts`.
 */
import type { XmlElement } from '../config/xml.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import type { Expression } from './expression.ts'
import type { Evaluate } from './expression-compiler.ts'
import type { FlowNeeds } from './flow-plan.ts'
import type { Message } from './message.ts'
import type { NeedsContext } from './needs.ts'
import type { SequenceParser } from './sequence-parser.ts'
import type { Branch, MediatorPlan, TemplateParameter } from './sequence-plan.ts'

/**
 * Returns false to end the sequence, and all sequences that have called it. A mediator that waits returns a promise;
 * such a mediator has `needs` of `worker`, so that no sequence of a reactor holds it.
 */
export type Run = (message: Message) => boolean | Promise<boolean>

export interface CompileContext {
  /** `file:line` of the mediator, for the log. */
  readonly location: string
  /** Compiles nested mediators, which run in order. */
  compileAll(mediators: readonly MediatorPlan[]): Run
  compileBranch(branch: Branch): Run
  compileExpression(expression: Expression): Evaluate
  /** Runs another sequence; returns as `Run` does. `onError`: the sequence for what fails in it; '' for none. */
  runSequence(name: string, message: Message, onError?: string): ReturnType<Run>
  /** Parameters of a template by the name of its plan; empty for none. */
  parametersOf(name: string): readonly TemplateParameter[]
  /** Runs the onError of a `<send>` that has failed; throws the error where there is none. Returns as `Run` does. */
  handleFailure(message: Message, error: unknown): ReturnType<Run>
  /** Tells whether `runSequence` finds the sequence. */
  hasSequence(name: string): boolean
  /**
   * Makes a sequence that a task can name; returns its name. It is the same in every thread, and after a reload that
   * leaves the settings of the mediator as they are.
   */
  define(run: Run): string
  readonly log: Report
  /** Logs that the mediator could not do its work. `cause`: without any text of a client. */
  warn(cause: string): void
}

interface Mediator<Settings> {
  /** Name of its element. */
  readonly name: string
  /** Known attributes. */
  readonly attributes: readonly string[]
  /** Known child elements; null where `parse` checks them, for example because they are mediators. */
  readonly elements: readonly string[] | null
  /** Left out: the element holds no text. */
  readonly text?: 'allowed'
  /** Returns plain data, or undefined after it has reported an error. */
  parse(element: XmlElement, parser: SequenceParser): Settings | undefined
  /** The needs of the mediator, with those of all that it runs. */
  needs(settings: Settings, context: NeedsContext): FlowNeeds
  compile(settings: Settings, context: CompileContext): Run
}

/** A mediator in the list: each compiles only settings that its own `parse` has returned. */
export type AnyMediator = Mediator<unknown>

export function mediator<Settings>(it: Mediator<Settings>): AnyMediator {
  return {
    ...it,
    needs: (settings, context) => it.needs(settings as Settings, context),
    compile: (settings, context) => it.compile(settings as Settings, context),
  }
}
