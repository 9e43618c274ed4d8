/** Compiles expressions of templates to closures. */
import { BuiltInCall } from './built-in-call.ts'
import { BUILT_INS } from './built-ins.ts'
import { type Environment, type Loop, VariablesHash } from './environment.ts'
import { JoinedHash } from './joined-hash.ts'
import { OF_LOOPS } from './loop-built-ins.ts'
import { isKeyOfNodes, NodeList, NodeValue } from './nodes.ts'
import { calculate } from './numbers.ts'
import { describeSpan, type Operator, type RangeKind, type Span, type Term } from './plan.ts'
import { Sequence } from './sequence.ts'
import { TemplateFailure } from './template-error.ts'
import { printed, textIn, truthOf } from './texts.ts'
import {
  Callable,
  DateValue,
  doubleOf,
  hasContent,
  isHash,
  isMissing,
  isNumber,
  isText,
  itemsOf,
  kindOf,
  Hash,
  isListableHash,
  MapHash,
  memberIn,
  namesOf,
  NOTHING,
  Range,
  type TemplateValue,
} from './values.ts'

/** Throws TemplateFailure where the value cannot be computed; a missing value is returned as such. */
type Evaluate = (env: Environment) => TemplateValue

type Of<Kind extends Term['kind']> = Extract<Term, { readonly kind: Kind }>

export class ExpressionCompiler {
  readonly #source: string

  constructor(source: string) {
    this.#source = source
  }

  fail(span: Span, why: string, isMissing = false): never {
    throw new TemplateFailure(`${describeSpan(this.#source, span)} ${why}`, isMissing)
  }

  /** An expression whose value must not be missing. */
  required(term: Term): Evaluate {
    const evaluate = this.compile(term)
    return env => {
      const value = evaluate(env)
      return isMissing(value) ? this.fail(term, 'is missing', true) : value
    }
  }

  /** The text of an expression, as it is printed. */
  text(term: Term): (env: Environment) => string {
    const evaluate = this.required(term)
    return env => this.printed(evaluate(env), term, env)
  }

  printed(value: TemplateValue, span: Span, env: Environment): string {
    const text = printed(value, env)
    if (text !== undefined) return text
    const isBoolean = truthOf(value) !== undefined
    return this.fail(span, `is ${kindOf(value)}, which is not printed${isBoolean ? ' without ?c or ?string' : ''}`)
  }

  condition(term: Term): (env: Environment) => boolean {
    const evaluate = this.required(term)
    return env => {
      const value = evaluate(env)
      return truthOf(value) ?? this.fail(term, `is ${kindOf(value)} where a boolean is expected`)
    }
  }

  number(term: Term): (env: Environment) => number {
    const evaluate = this.required(term)
    return env => this.#double(evaluate(env), term)
  }

  #double(value: TemplateValue, span: Span): number {
    return isNumber(value) ? doubleOf(value) : this.fail(span, `is ${kindOf(value)} where a number is expected`)
  }

  compile(term: Term): Evaluate {
    switch (term.kind) {
      case 'literal':
        return () => term.value
      case 'variable':
        return env => env.variable(term.name)
      case 'text':
        return this.#text(term)
      case 'sequence':
        return this.#sequence(term)
      case 'hash':
        return this.#hash(term)
      case 'special':
        return env => this.#special(term, env)
      case 'member': {
        const of = this.required(term.of)
        return env => this.#member(of(env), term.name, term.of)
      }
      case 'index':
        return this.#index(term)
      case 'call':
        return this.#call(term)
      case 'built-in':
        return this.#builtIn(term)
      case 'lambda':
        return this.#lambda(term)
      case 'default': {
        const of = this.lenient(term.of)
        const otherwise = term.otherwise === null ? () => NOTHING : this.compile(term.otherwise)
        return env => {
          const value = of(env)
          return isMissing(value) ? otherwise(env) : value
        }
      }
      case 'exists': {
        const of = this.lenient(term.of)
        return env => !isMissing(of(env))
      }
      case 'group':
        return this.compile(term.of)
      case 'not': {
        const of = this.condition(term.of)
        return env => !of(env)
      }
      case 'negative': {
        const of = this.number(term.of)
        return env => -of(env)
      }
      case 'positive':
        return this.number(term.of)
      case 'operation':
        return this.#operation(term)
      case 'range':
        return this.#range(term)
    }
  }

  /** For `!` and `??`: within parentheses whatever is missing makes the value missing. */
  lenient(term: Term): Evaluate {
    const evaluate = this.compile(term)
    if (term.kind !== 'group') return evaluate
    return env => {
      try {
        return evaluate(env)
      } catch (error) {
        if (error instanceof TemplateFailure && error.isMissing) return undefined
        throw error
      }
    }
  }

  #text({ parts }: Of<'text'>): Evaluate {
    const texts = parts.map(part => (typeof part === 'string' ? () => part : this.text(part)))
    return env => {
      let text = ''
      for (const part of texts) text += part(env)
      env.makes(text.length)
      return text
    }
  }

  #sequence({ of }: Of<'sequence'>): Evaluate {
    const items = of.map(item => this.compile(item))
    return env => {
      env.collects(items.length)
      return items.map(item => item(env))
    }
  }

  #hash({ entries }: Of<'hash'>): Evaluate {
    const members = entries.map(([name, value]) => [this.text(name), this.required(value)] as const)
    return env => {
      env.collects(members.length)
      return new MapHash(new Map(members.map(([name, value]) => [name(env), value(env)])))
    }
  }

  #special({ name, from, to }: Of<'special'>, env: Environment): TemplateValue {
    switch (name) {
      case 'now':
        return new DateValue(env.nowMs, 'datetime')
      case 'data_model':
        return env.root
      case 'main':
        return new MapHash(env.variables)
      case 'globals':
      case 'vars':
        return new VariablesHash(env, name === 'vars')
      case 'locals':
        return new MapHash(env.locals ?? new Map())
      case 'error':
        return env.error ?? this.fail({ from, to }, 'is known within <#recover> alone', true)
      case 'locale':
        return 'en_US'
      default:
        return '2.3.30'
    }
  }

  #member(value: TemplateValue, name: string, of: Span): TemplateValue {
    if ((value instanceof NodeValue || value instanceof NodeList) && !isKeyOfNodes(name)) {
      return this.fail(of, `is ${kindOf(value)}, and its key is no name: XPath is not supported`)
    }
    if (isHash(value)) return memberIn(value, name)
    return this.fail(of, `is ${kindOf(value)}, which has no members`)
  }

  #index({ of: target, key: by }: Of<'index'>): Evaluate {
    const of = this.required(target)
    const key = this.required(by)
    return env => {
      const value = of(env)
      const at = key(env)
      if (at instanceof Range) return this.#slice(value, at, env, target)
      if (isNumber(at)) return this.#item(value, doubleOf(at), target)
      const name = textIn(at)
      return name === undefined ? this.fail(by, `is ${kindOf(at)}, which is no key`) : this.#member(value, name, target)
    }
  }

  #item(value: TemplateValue, at: number, span: Span): TemplateValue {
    const items = isText(value) ? undefined : itemsOf(value)
    if (items !== undefined) return Number.isInteger(at) && at >= 0 && at < items.size ? items.at(at) : undefined
    const text = textIn(value)
    if (text === undefined) return this.fail(span, `is ${kindOf(value)}, which has no items`)
    return text[at] ?? this.fail(span, `has no character ${at}`)
  }

  #slice(value: TemplateValue, range: Range, env: Environment, span: Span): TemplateValue {
    const items = isText(value) ? undefined : itemsOf(value)
    const text = items === undefined ? textIn(value) : undefined
    const size = items?.size ?? text?.length
    if (size === undefined) return this.fail(span, `is ${kindOf(value)}, which has no items`)
    const { begin, step } = range
    const left = step > 0 ? size - begin : begin + 1
    const count = range.size === Number.POSITIVE_INFINITY || range.isLimited ? Math.min(range.size, left) : range.size
    const last = begin + (count - 1) * step
    const isWithin = count <= 0 ? begin <= size : begin >= 0 && begin < size && last >= 0 && last < size
    if (!isWithin) return this.fail(span, 'is shorter than the range')
    if (text !== undefined) {
      if (step < 0 && count > 1) return this.fail(span, 'is a text, which has no items from its end')
      env.makes(Math.max(0, count))
      return text.slice(begin, begin + Math.max(0, count))
    }
    const part = step > 0 && count > 0 ? Sequence.partOf(value, begin, count) : undefined
    env.collects(Math.max(0, count), part === undefined ? Math.max(0, count) : 1)
    if (part !== undefined) return part
    return Array.from({ length: Math.max(0, count) }, (_, at) => items!.at(begin + at * step))
  }

  #call({ of: callee, args: given }: Of<'call'>): Evaluate {
    const of = this.required(callee)
    const args = given.map(arg => this.compile(arg))
    return env => {
      const value = of(env)
      if (!(value instanceof Callable) || value.kind === 'macro') {
        return this.fail(callee, `is ${kindOf(value)}, which is no function`)
      }
      return value.call(args.map(arg => arg(env)))
    }
  }

  #lambda({ parameter, body }: Of<'lambda'>): Evaluate {
    const evaluate = this.compile(body)
    return env => {
      const outer = env.frame
      return new Callable('lambda', ([value]) => {
        const variables = new Map([[parameter, value]])
        const frame = { variables, loops: new Map<string, Loop>(), outer, isMacro: false }
        return env.called(() => env.inFrame(frame, () => evaluate(env)))
      })
    }
  }

  #builtIn(term: Of<'built-in'>): Evaluate {
    const { name, of, args } = term
    if (name === 'default' || name === 'if_exists' || name === 'exists' || name === 'has_content') {
      return this.#existence(term)
    }
    if (name === 'then') return this.#then(term)
    if (name === 'switch') return this.#switch(term)
    const ofLoop = this.#ofLoop(term)
    if (ofLoop !== undefined) return ofLoop
    const run = BUILT_INS[name]!
    const target = this.required(of)
    const given = args.map(arg => this.required(arg))
    return env => {
      env.spend(1)
      const values = given.map(arg => arg(env))
      return run(new BuiltInCall(this, term, env, target(env), values))
    }
  }

  #existence({ name, of, args }: Of<'built-in'>): Evaluate {
    const target = this.lenient(of)
    if (name === 'exists') return env => !isMissing(target(env))
    if (name === 'has_content') return env => hasContent(target(env), names => env.spend(names))
    const others = args.map(arg => this.compile(arg))
    return env => {
      let value = target(env)
      for (const other of others) if (isMissing(value)) value = other(env)
      return isMissing(value) && name === 'if_exists' ? NOTHING : value
    }
  }

  #then({ of, args: [yes, no] }: Of<'built-in'>): Evaluate {
    const condition = this.condition(of)
    const [whenTrue, whenFalse] = [this.required(yes!), this.required(no!)]
    return env => (condition(env) ? whenTrue(env) : whenFalse(env))
  }

  #switch(term: Of<'built-in'>): Evaluate {
    const { of, args } = term
    const target = this.required(of)
    const terms = args.map(arg => this.required(arg))
    return env => {
      const value = target(env)
      for (let at = 0; at + 1 < terms.length; at += 2) {
        if (this.isEqual(value, terms[at]!(env), term)) return terms[at + 1]!(env)
      }
      if (terms.length % 2 === 1) return terms.at(-1)!(env)
      return this.fail(term, 'has no case for the value, and no default')
    }
  }

  /** Built-ins of loop variables; undefined for others. */
  #ofLoop(term: Of<'built-in'>): Evaluate | undefined {
    const { name, of, args } = term
    if (!Object.hasOwn(OF_LOOPS, name)) return undefined
    const read = OF_LOOPS[name]!
    const cycle = args.map(arg => this.required(arg))
    const variable = of.kind === 'variable' ? of.name : ''
    return env => {
      const loop = env.loop(variable)
      if (loop === undefined) return this.fail(of, `is no loop variable, whose ?${name} is known`)
      return name === 'item_cycle' ? cycle[loop.index % cycle.length]!(env) : read(loop)
    }
  }

  #operation({ operator, left: first, right: second, from, to }: Of<'operation'>): Evaluate {
    const span = { from, to }
    if (operator === '&&' || operator === '||') {
      const [left, right] = [this.condition(first), this.condition(second)]
      return operator === '&&' ? env => left(env) && right(env) : env => left(env) || right(env)
    }
    const [left, right] = [this.required(first), this.required(second)]
    if (operator === '+') return env => this.add(left(env), right(env), span, env)
    if (operator === '-' || operator === '*' || operator === '/' || operator === '%') {
      const [one, other] = [this.number(first), this.number(second)]
      return env => this.calculated(operator, one(env), other(env), span)
    }
    if (operator === '==') return env => this.isEqual(left(env), right(env), span)
    if (operator === '!=') return env => !this.isEqual(left(env), right(env), span)
    return env => this.#compares(operator, left(env), right(env), span)
  }

  calculated(operator: '-' | '*' | '/' | '%', left: number, right: number, span: Span): number {
    const isByZero = (operator === '/' && right === 0) || (operator === '%' && Math.trunc(right) === 0)
    return isByZero ? this.fail(span, 'divides by zero') : calculate(operator, left, right)
  }

  /** Numbers are added, sequences and hashes joined; all else is text. */
  add(left: TemplateValue, right: TemplateValue, span: Span, env: Environment): TemplateValue {
    if (isNumber(left) && isNumber(right)) return calculate('+', doubleOf(left), doubleOf(right))
    const [items, others] = [itemsOf(left), itemsOf(right)]
    const collect = (items: number, made: number): void => env.collects(items, made)
    const isNothing = left === NOTHING && right === NOTHING
    if (items !== undefined && others !== undefined && !isNothing) {
      return Sequence.joined(items, others, collect)
    }
    if (isListableHash(left) && isListableHash(right) && !isNothing) {
      const hash = left instanceof Hash ? left : new MapHash(new Map(membersOf(left)))
      return JoinedHash.joined(hash, membersOf(right), collect)
    }
    const text = this.printed(left, span, env) + this.printed(right, span, env)
    env.makes(text.length)
    return text
  }

  isEqual(left: TemplateValue, right: TemplateValue, span: Span): boolean {
    if (isNumber(left) && isNumber(right)) return doubleOf(left) === doubleOf(right)
    if (left instanceof DateValue && right instanceof DateValue) return left.ms === right.ms
    const texts = [textIn(left), textIn(right)] as const
    if (texts[0] !== undefined && texts[1] !== undefined) return texts[0] === texts[1]
    const truths = [truthOf(left), truthOf(right)] as const
    if (truths[0] !== undefined && truths[1] !== undefined) return truths[0] === truths[1]
    return this.fail(span, `compares ${kindOf(left)} with ${kindOf(right)}`)
  }

  #compares(operator: Operator, left: TemplateValue, right: TemplateValue, span: Span): boolean {
    const isOfDates = left instanceof DateValue && right instanceof DateValue
    if (!isOfDates && !(isNumber(left) && isNumber(right))) {
      return this.fail(span, `compares ${kindOf(left)} with ${kindOf(right)}`)
    }
    const [one, other] = isOfDates ? [left.ms, right.ms] : [doubleOf(left as number), doubleOf(right as number)]
    if (operator === '<') return one < other
    if (operator === '<=') return one <= other
    return operator === '>' ? one > other : one >= other
  }

  #range({ range, begin: first, end: last }: Of<'range'>): Evaluate {
    const begin = this.#whole(first)
    if (last === null) return env => new Range(begin(env), Number.POSITIVE_INFINITY, 1, false)
    const end = this.#whole(last)
    return env => rangeOf(range, begin(env), end(env))
  }

  #whole(term: Term): (env: Environment) => number {
    const number = this.number(term)
    return env => {
      const value = number(env)
      return Number.isSafeInteger(value) ? value : this.fail(term, 'is no whole number')
    }
  }
}

/** Members of a hash whose names are known. */
function membersOf(hash: TemplateValue): readonly (readonly [string, TemplateValue])[] {
  return namesOf(hash)!.map(name => [name, memberIn(hash, name)] as const)
}

function rangeOf(kind: RangeKind, begin: number, end: number): Range {
  if (kind === 'length') return new Range(begin, Math.abs(end), end < 0 ? -1 : 1, true)
  const step = end < begin ? -1 : 1
  return new Range(begin, Math.abs(end - begin) + (kind === 'inclusive' ? 1 : 0), step, false)
}
