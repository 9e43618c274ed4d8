/** A call of a built-in gives its implementation the target and the arguments in the kinds that it takes. */
import type { Environment } from './environment.ts'
import type { ExpressionCompiler } from './expressions.ts'
import { NodeList, NodeValue } from './nodes.ts'
import type { Span } from './plan.ts'
import { textIn, truthOf } from './texts.ts'
import {
  Callable,
  DateValue,
  doubleOf,
  isMissing,
  isNumber,
  type Items,
  itemsOf,
  kindOf,
  namesOf,
  type TemplateValue,
} from './values.ts'

/** Throws TemplateFailure where the target or an argument is of another kind. */
export type BuiltIn = (call: BuiltInCall) => TemplateValue

export class BuiltInCall {
  readonly env: Environment
  readonly target: TemplateValue
  readonly args: readonly TemplateValue[]
  readonly #compiler: ExpressionCompiler
  readonly #term: Span & { readonly of: Span; readonly args: readonly Span[] }

  constructor(
    compiler: ExpressionCompiler,
    term: Span & { readonly of: Span; readonly args: readonly Span[] },
    env: Environment,
    target: TemplateValue,
    args: readonly TemplateValue[],
  ) {
    this.#compiler = compiler
    this.#term = term
    this.env = env
    this.target = target
    this.args = args
  }

  fail(why: string): never {
    return this.#compiler.fail(this.#term, why)
  }

  #wrong(value: TemplateValue, span: Span, expected: string): never {
    return this.#compiler.fail(span, `is ${kindOf(value)} where ${expected} is expected`)
  }

  /** The target as a text; numbers and dates are printed. */
  get text(): string {
    const text = this.#compiler.printed(this.target, this.#term.of, this.env)
    this.env.reads(text)
    return text
  }

  get number(): number {
    return isNumber(this.target) ? doubleOf(this.target) : this.#wrong(this.target, this.#term.of, 'a number')
  }

  get truth(): boolean {
    return truthOf(this.target) ?? this.#wrong(this.target, this.#term.of, 'a boolean')
  }

  get date(): DateValue {
    return this.target instanceof DateValue ? this.target : this.#wrong(this.target, this.#term.of, 'a date')
  }

  get node(): NodeValue {
    const { target } = this
    if (target instanceof NodeValue) return target
    const only = target instanceof NodeList && target.size === 1 ? target.at(0) : undefined
    return only ?? this.#wrong(target, this.#term.of, 'a node of XML')
  }

  get names(): readonly string[] {
    return namesOf(this.target) ?? this.#wrong(this.target, this.#term.of, 'a hash')
  }

  /** The target as a sequence; nothing is copied. */
  get items(): Items {
    return itemsOf(this.target) ?? this.#wrong(this.target, this.#term.of, 'a sequence')
  }

  /** All items of the target, which are counted. */
  get list(): readonly TemplateValue[] {
    const { items } = this
    this.env.collects(items.size)
    return Array.from({ length: items.size }, (_, at) => items.at(at))
  }

  textAt(at: number): string {
    const value = this.args[at]
    return textIn(value) ?? this.#wrong(value, this.#term.args[at] ?? this.#term, 'a text')
  }

  numberAt(at: number): number {
    const value = this.args[at]
    if (!isNumber(value)) return this.#wrong(value, this.#term.args[at] ?? this.#term, 'a number')
    return doubleOf(value)
  }

  /** The argument as a function that takes one item. */
  functionAt(at: number): (item: TemplateValue) => TemplateValue {
    const value = this.args[at]
    if (!(value instanceof Callable) || value.kind === 'macro') {
      return this.#wrong(value, this.#term.args[at] ?? this.#term, 'a function')
    }
    return item => value.call([item])
  }

  /** Returns the function of an argument, whose result for an item has to be a boolean. */
  conditionAt(at: number): (item: TemplateValue) => boolean {
    const call = this.functionAt(at)
    return item => {
      const value = call(item)
      return truthOf(value) ?? this.#wrong(value, this.#term.args[at] ?? this.#term, 'a boolean')
    }
  }

  /** The text of an item, as it is printed. */
  printed(value: TemplateValue): string {
    if (isMissing(value)) return this.fail('has an item that is missing')
    return this.#compiler.printed(value, this.#term, this.env)
  }

  isEqual(left: TemplateValue, right: TemplateValue): boolean {
    return this.#compiler.isEqual(left, right, this.#term)
  }

  /** A text that the built-in makes. Throws MediationFault beyond a limit. */
  made(text: string): string {
    this.env.makes(text.length)
    return text
  }
}
