/** Compiles macros and functions of templates, and their calls. */
import type { Environment, Frame, RunNested } from './environment.ts'
import type { ExpressionCompiler } from './expressions.ts'
import type { Directive, MacroPlan, Span } from './plan.ts'
import { TemplateFailure } from './template-error.ts'
import { Callable, isMissing, kindOf, MapHash, type TemplateValue } from './values.ts'

/** How a directive ends what is around it; undefined: it goes on. */
export type Jump = 'break' | 'continue' | 'return' | undefined
export type Run = (env: Environment) => Jump
type Of<Kind extends Directive['kind']> = Extract<Directive, { readonly kind: Kind }>

/** A macro or function, compiled. */
interface Macro {
  readonly plan: MacroPlan
  readonly run: Run
  readonly defaults: ReadonlyMap<string, (env: Environment) => TemplateValue>
}

export class MacroCompiler {
  readonly #terms: ExpressionCompiler
  readonly #all: (directives: readonly Directive[]) => Run
  /** Macros by name; all are known from the beginning, as in FreeMarker. */
  readonly #macros: Macro[] = []
  /** What a callable that the template has made runs. */
  readonly #callables = new WeakMap<Callable, Macro>()

  /** `all`: compiles the content of a directive. */
  constructor(terms: ExpressionCompiler, all: (directives: readonly Directive[]) => Run) {
    this.#terms = terms
    this.#all = all
  }

  /** Defines all macros. */
  define(env: Environment): void {
    for (const macro of this.#macros) env.variables.set(macro.plan.name, this.#callable(macro, env))
  }

  nested(directive: Of<'nested'>): Run {
    const args = directive.args.map(arg => this.#terms.compile(arg))
    return env => {
      const values = args.map(arg => arg(env))
      env.nested?.(values)
      return undefined
    }
  }

  return({ value: term }: Of<'return'>): Run {
    const value = term === null ? () => undefined : this.#terms.compile(term)
    return env => {
      env.returned = value(env)
      return 'return'
    }
  }

  macro(plan: MacroPlan): Run {
    const defaults = new Map(
      plan.parameters.flatMap(({ name, otherwise }) =>
        otherwise === null ? [] : [[name, this.#terms.compile(otherwise)] as const],
      ),
    )
    const macro = { plan, run: this.#all(plan.body), defaults }
    this.#macros.push(macro)
    return env => {
      env.variables.set(plan.name, this.#callable(macro, env))
      return undefined
    }
  }

  #callable(macro: Macro, env: Environment): Callable {
    const { isFunction } = macro.plan
    const callable = new Callable(isFunction ? 'function' : 'macro', args => {
      const variables = this.#given(macro, args)
      // What a function writes is no output.
      env.captured(() => this.#runMacro(macro, variables, null, env))
      const { returned } = env
      env.returned = undefined
      return returned
    })
    this.#callables.set(callable, macro)
    return callable
  }

  /** Variables for arguments in order. */
  #given({ plan }: Macro, args: readonly TemplateValue[]): Map<string, TemplateValue> {
    const { parameters, rest } = plan
    if (args.length > parameters.length && rest === '') {
      return this.#terms.fail(plan, `takes ${parameters.length} arguments and not ${args.length}`)
    }
    const variables = new Map(parameters.map(({ name }, at) => [name, args[at]]))
    if (rest !== '') variables.set(rest, args.slice(parameters.length))
    return variables
  }

  /** A default may read any other parameter, in any order: as in FreeMarker, those that miss one are tried again. */
  #applyDefaults(
    plan: MacroPlan,
    defaults: Macro['defaults'],
    variables: Map<string, TemplateValue>,
    env: Environment,
  ): void {
    let missing = plan.parameters.filter(({ name }) => isMissing(variables.get(name)))
    // Until it has a value, its name is that of a variable around the macro.
    for (const { name } of missing) variables.delete(name)
    for (let before = missing.length + 1; missing.length > 0 && missing.length < before; ) {
      before = missing.length
      missing = missing.filter(({ name }) => {
        const value = valueUnlessMissing(defaults.get(name), env)
        if (!isMissing(value)) variables.set(name, value)
        return isMissing(value)
      })
    }
    const [first] = missing
    if (first === undefined) return
    // Fails with what the default misses, where there is one.
    defaults.get(first.name)?.(env)
    this.#terms.fail(plan, `has no value for its parameter ${first.name}`, true)
  }

  #runMacro(macro: Macro, variables: Map<string, TemplateValue>, nested: RunNested | null, env: Environment): void {
    const { plan, run, defaults } = macro
    const frame: Frame = { variables, loops: new Map(), outer: null, isMacro: true }
    const before = { nested: env.nested, list: env.list }
    env.nested = nested
    env.list = null
    try {
      env.called(() =>
        env.inFrame(frame, () => {
          this.#applyDefaults(plan, defaults, variables, env)
          run(env)
        }),
      )
    } finally {
      env.nested = before.nested
      env.list = before.list
    }
  }

  invoke({ of, args, named, body, bodyParameters, from, to }: Of<'invoke'>): Run {
    const callee = this.#terms.required(of)
    const positional = args.map(arg => this.#terms.compile(arg))
    const byName = named.map(([name, value]) => [name, this.#terms.compile(value)] as const)
    const runBody = body === null ? null : this.#all(body)
    return env => {
      const callable = callee(env)
      const macro = callable instanceof Callable ? this.#callables.get(callable) : undefined
      if (macro === undefined || macro.plan.isFunction) {
        return this.#terms.fail(of, `is ${kindOf(callable)}, which is no macro`)
      }
      const variables = this.#given(
        macro,
        positional.map(arg => arg(env)),
      )
      const others = new Map<string, TemplateValue>()
      for (const [name, value] of byName) {
        const isOther = macro.plan.rest !== '' && !isParameter(macro, name)
        if (isOther) others.set(name, value(env))
        else this.#set(macro, variables, name, value(env), { from, to })
      }
      // As in FreeMarker, the rest of named arguments is a hash.
      if (others.size > 0) variables.set(macro.plan.rest, new MapHash(others))
      this.#runMacro(macro, variables, this.#nestedOf(runBody, bodyParameters, env), env)
      env.returned = undefined
      return undefined
    }
  }

  #set(macro: Macro, variables: Map<string, TemplateValue>, name: string, value: TemplateValue, span: Span): void {
    if (!isParameter(macro, name)) {
      this.#terms.fail(span, `gives the parameter ${name}, which the macro has not`)
    }
    variables.set(name, value)
  }

  /** The content of a call, which runs with the variables around the call. */
  #nestedOf(run: Run | null, parameters: readonly string[], env: Environment): RunNested | null {
    if (run === null) return null
    const { frame: outer, nested, list } = env
    return args => {
      const variables = new Map(parameters.map((name, at) => [name, args[at]]))
      const frame: Frame = { variables, loops: new Map(), outer, isMacro: false }
      const before = { nested: env.nested, list: env.list }
      env.nested = nested
      env.list = list
      try {
        env.called(() => env.inFrame(frame, () => run(env)))
      } finally {
        env.nested = before.nested
        env.list = before.list
      }
    }
  }
}

function valueUnlessMissing(
  evaluate: ((env: Environment) => TemplateValue) | undefined,
  env: Environment,
): TemplateValue {
  try {
    return evaluate?.(env)
  } catch (error) {
    if (error instanceof TemplateFailure && error.isMissing) return undefined
    throw error
  }
}

function isParameter({ plan }: Macro, name: string): boolean {
  return plan.parameters.some(parameter => parameter.name === name)
}
