/** Compiles the directives of a template to closures. */
import { Environment, type Frame, type Loop, type RunLimits } from './environment.ts'
import { ExpressionCompiler } from './expressions.ts'
import { type Jump, MacroCompiler, type Run } from './macros.ts'
import { compressed } from './pieces.ts'
import type { Branch, Directive, LoopNames, Span, TemplatePlan } from './plan.ts'
import { TemplateFailure } from './template-error.ts'
import {
  doubleOf,
  type Hash,
  isMissing,
  isNumber,
  itemsOf,
  kindOf,
  memberIn,
  namesOf,
  type TemplateValue,
} from './values.ts'

type Of<Kind extends Directive['kind']> = Extract<Directive, { readonly kind: Kind }>

/** Runs a template; returns its output. Throws TemplateFailure, MediationFault and LimitReached. */
export type RunTemplate = (root: (env: Environment) => Hash, limits: RunLimits) => string

export function compileTemplate(plan: TemplatePlan): RunTemplate {
  const compiler = new DirectiveCompiler(plan.source)
  const run = compiler.all(plan.body)
  const prefixes = new Map(plan.namespaces)
  return (root, limits) => {
    const env = new Environment(root, prefixes, limits)
    compiler.define(env)
    try {
      run(env)
    } catch (error) {
      // Tags within calls that nest may fill the stack before the calls reach their limit.
      if (error instanceof RangeError) throw new TemplateFailure('the template nests too deep')
      throw error
    }
    return env.output
  }
}

type Listed = Pick<Loop, 'items' | 'isOfPairs'>

class DirectiveCompiler {
  readonly #terms: ExpressionCompiler
  readonly #macros: MacroCompiler

  constructor(source: string) {
    this.#terms = new ExpressionCompiler(source)
    this.#macros = new MacroCompiler(this.#terms, directives => this.all(directives))
  }

  /** Defines all macros. */
  define(env: Environment): void {
    this.#macros.define(env)
  }

  all(directives: readonly Directive[]): Run {
    const runs = directives.map(directive => this.#compile(directive))
    return env => {
      for (const run of runs) {
        const jump = run(env)
        if (jump !== undefined) return jump
      }
      return undefined
    }
  }

  #compile(directive: Directive): Run {
    switch (directive.kind) {
      case 'output':
        return written(() => directive.text)
      case 'print':
        return written(this.#terms.text(directive.value))
      case 'if':
        return this.#if(directive.branches)
      case 'list':
        return this.#list(directive)
      case 'items':
        return this.#items(directive)
      case 'sep':
        return this.#sep(directive)
      case 'break':
      case 'continue':
        return () => directive.kind
      case 'assign':
        return this.#assign(directive)
      case 'capture':
        return this.#capture(directive)
      case 'switch':
        return this.#switch(directive)
      case 'macro':
        return this.#macros.macro(directive)
      case 'invoke':
        return this.#macros.invoke(directive)
      case 'nested':
        return this.#macros.nested(directive)
      case 'return':
        return this.#macros.return(directive)
      case 'compress':
        return this.#compress(directive)
      case 'attempt':
        return this.#attempt(directive)
      case 'setting':
        return env => {
          env.settings.set(directive.name, directive.value)
          return undefined
        }
      case 'stop':
        return this.#stop(directive)
    }
  }

  #sep({ body }: Of<'sep'>): Run {
    const run = this.all(body)
    return env => (env.list !== null && env.list.index + 1 < env.list.items.size ? run(env) : undefined)
  }

  #capture({ scope, name, body }: Of<'capture'>): Run {
    const run = this.all(body)
    return env => {
      const text = env.captured(() => void run(env))
      this.#variables(scope, env).set(name, text)
      return undefined
    }
  }

  #compress({ body }: Of<'compress'>): Run {
    const run = this.all(body)
    return env => {
      let jump: Jump
      const text = env.captured(() => {
        jump = run(env)
      })
      env.write(compressed(text, env))
      return jump
    }
  }

  /** The message may hold text of a client: only its place is told. */
  #stop(directive: Of<'stop'>): Run {
    const text = directive.message === null ? () => '' : this.#terms.text(directive.message)
    return env => {
      text(env)
      return this.#terms.fail(directive, 'stops the template')
    }
  }

  #if(branches: readonly Branch[]): Run {
    const compiled = branches.map(({ condition, body }) => ({
      holds: condition === null ? () => true : this.#terms.condition(condition),
      run: this.all(body),
    }))
    return env => {
      env.spend(1)
      for (const { holds, run } of compiled) if (holds(env)) return run(env)
      return undefined
    }
  }

  #switch({ value: of, branches }: Of<'switch'>): Run {
    const value = this.#terms.required(of)
    const compiled = branches.map(({ condition, body }) => ({
      value: condition === null ? null : this.#terms.required(condition),
      run: this.all(body),
    }))
    return env => {
      env.spend(1)
      const wanted = value(env)
      let at = compiled.findIndex(each => each.value !== null && this.#terms.isEqual(wanted, each.value(env), of))
      if (at === -1) at = compiled.findIndex(each => each.value === null)
      // A case without a break goes on with the next one.
      for (const { run } of at === -1 ? [] : compiled.slice(at)) {
        const jump = run(env)
        if (jump === 'break') return undefined
        if (jump !== undefined) return jump
      }
      return undefined
    }
  }

  #list({ of, names, body, otherwise }: Of<'list'>): Run {
    const value = this.#terms.required(of)
    const run = this.all(body)
    const runOtherwise = this.all(otherwise)
    return env => {
      const listed = this.#listed(value(env), of, env)
      if (listed.items.size === 0) return runOtherwise(env)
      return names === null ? this.#around(listed, run, env) : this.#each(listed, names, run, of, env)
    }
  }

  /** Items of a sequence, or pairs of a hash. */
  #listed(value: TemplateValue, span: Span, env: Environment): Listed {
    const items = itemsOf(value)
    if (items !== undefined) return { items, isOfPairs: false }
    const keys = namesOf(value)
    if (keys === undefined) return this.#terms.fail(span, `is ${kindOf(value)} where a sequence is expected`)
    env.collects(keys.length)
    const at = (index: number): TemplateValue => [keys[index]!, memberIn(value, keys[index]!)]
    return { items: { size: keys.length, at }, isOfPairs: true }
  }

  /** The content around `<#items>`, once. */
  #around(listed: Listed, run: Run, env: Environment): Jump {
    const before = env.list
    env.list = { index: -1, ...listed }
    try {
      const jump = run(env)
      return jump === 'return' ? jump : undefined
    } finally {
      env.list = before
    }
  }

  #items({ names, body, from, to }: Of<'items'>): Run {
    const run = this.all(body)
    const span = { from, to }
    return env => {
      if (env.list === null) return this.#terms.fail(span, 'is outside of its list')
      return this.#each(env.list, names, run, span, env)
    }
  }

  #each({ items, isOfPairs }: Listed, { key, item }: LoopNames, run: Run, span: Span, env: Environment): Jump {
    if (isOfPairs !== (key !== '') && items.size > 0) {
      return this.#terms.fail(
        span,
        isOfPairs ? 'is a hash, whose list has two names' : 'is no hash, but the list has two names',
      )
    }
    const before = env.list
    const loop: Loop = { index: 0, items, isOfPairs }
    const variables = new Map<string, TemplateValue>()
    const loops = new Map([[item, loop]])
    if (key !== '') loops.set(key, loop)
    const frame: Frame = { variables, loops, outer: env.frame, isMacro: false }
    env.list = loop
    try {
      return env.inFrame(frame, () => {
        for (; loop.index < items.size; loop.index++) {
          env.spend(1)
          const value = items.at(loop.index)
          if (key === '') variables.set(item, value)
          else {
            const [name, member] = value as readonly TemplateValue[]
            variables.set(key, name).set(item, member)
          }
          const jump = run(env)
          if (jump === 'break') return undefined
          if (jump === 'return') return jump
        }
        return undefined
      })
    } finally {
      env.list = before
    }
  }

  #variables(scope: 'template' | 'local', env: Environment): Map<string, TemplateValue> {
    return scope === 'local' ? (env.locals ?? env.variables) : env.variables
  }

  #assign({ scope, name, operator, value: term, from, to }: Of<'assign'>): Run {
    const value = this.#terms.required(term)
    const span = { from, to }
    return env => {
      const variables = this.#variables(scope, env)
      const given = value(env)
      if (operator === '=') {
        variables.set(name, given)
        return undefined
      }
      const before = variables.get(name)
      if (isMissing(before)) return this.#terms.fail(span, `has no value of ${name} before it`, true)
      if (operator === '+') variables.set(name, this.#terms.add(before, given, span, env))
      else if (isNumber(before) && isNumber(given)) {
        variables.set(name, this.#terms.calculated(operator, doubleOf(before), doubleOf(given), span))
      } else return this.#terms.fail(span, 'calculates with what is no number')
      return undefined
    }
  }

  #attempt({ body, recover }: Of<'attempt'>): Run {
    const run = this.all(body)
    const runRecover = this.all(recover)
    return env => {
      let jump: Jump
      const before = env.error
      try {
        // What the content has written when it fails is left out.
        const text = env.captured(() => {
          jump = run(env)
        })
        env.write(text)
        return jump
      } catch (error) {
        if (!(error instanceof TemplateFailure)) throw error
        env.error = error.message
        jump = runRecover(env)
        env.error = before
        return jump
      }
    }
  }
}

function written(text: (env: Environment) => string): Run {
  return env => {
    env.spend(1)
    env.write(text(env))
    return undefined
  }
}
