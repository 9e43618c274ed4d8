/** Parses expressions of templates, with the precedence of FreeMarker 2.3. */
import { builtInProblem, snakeCase } from './built-in-names.ts'
import { type Token, tokensIn, unescaped } from './lexer.ts'
import type { Operator, RangeKind, Span, Term } from './plan.ts'
import { TemplateSyntaxError } from './template-error.ts'

const DEPTH_MAX = 100
const NUMBER_MAX = 100
/** Binary operators, loosest first; ranges stand between comparison and addition. */
const LEVELS: readonly Readonly<Record<string, Operator>>[] = [
  { '||': '||', or: '||' },
  { '&&': '&&', and: '&&' },
  { '==': '==', '=': '==', '!=': '!=' },
  { '<': '<', '<=': '<=', '>': '>', '>=': '>=', lt: '<', lte: '<=', gt: '>', gte: '>=' },
]
const SUMS: Readonly<Record<string, Operator>> = { '+': '+', '-': '-' }
const PRODUCTS: Readonly<Record<string, Operator>> = { '*': '*', '/': '/', '%': '%' }
const RANGES: Readonly<Record<string, RangeKind>> = { '..': 'inclusive', '..<': 'exclusive', '..*': 'length' }
/** Words that are no variables. */
const RESERVED = ['in', 'as', 'using', 'and', 'or', 'lt', 'lte', 'gt', 'gte']
const SPECIALS = ['now', 'data_model', 'main', 'globals', 'vars', 'locals', 'error', 'version', 'locale']
/** Built-ins that take a format. */
const WITH_FORMAT = ['string', 'date', 'time', 'datetime']
/** Names of nodes that begin with `@@`, and are known. */
const OF_NODES = ['@@', '@@markup', '@@nested_markup', '@@text', '@@qname', '@@local_name', '@@namespace']

/** Other keys that are XPath may be those of JSON, as `["/pets"]`. */
const XPATH = /^\.?\/\/[\p{L}_@*]/u

export class ExpressionParser {
  readonly #tokens: readonly Token[]
  /** The span of all terms within a text in quotes, whose own places are not those of the source. */
  readonly #span: Span | null
  #at = 0
  #depth: number

  constructor(tokens: readonly Token[], span: Span | null = null, depth = 0) {
    this.#tokens = tokens
    this.#span = span
    this.#depth = depth
  }

  get token(): Token {
    return this.#tokens[this.#at]!
  }

  get next(): Token {
    return this.#tokens[this.#at + 1] ?? this.token
  }

  get isAtEnd(): boolean {
    return this.token.kind === 'end'
  }

  /** Takes the token if it is that sign or word. */
  takes(text: string): boolean {
    const { kind } = this.token
    if (this.token.text !== text || (kind !== 'sign' && kind !== 'name')) return false
    this.#at++
    return true
  }

  requires(text: string): void {
    if (!this.takes(text)) this.fail(`expected ${text}`)
  }

  name(what: string): string {
    const { kind, text } = this.token
    if (kind !== 'name') this.fail(`expected ${what}`)
    this.#at++
    return text
  }

  /** A name, or a text in quotes that is one. */
  nameOrText(what: string): string {
    if (this.token.kind !== 'text') return this.name(what)
    const { text, from } = this.token
    this.#at++
    return unescaped(text, this.#span?.from ?? from)
  }

  end(): void {
    if (!this.isAtEnd) this.fail('has more than one expression')
  }

  fail(why: string, hint?: string): never {
    throw new TemplateSyntaxError(why, this.#span?.from ?? this.token.from, hint)
  }

  expression(): Term {
    if (++this.#depth > DEPTH_MAX) this.fail(`is nested more than ${DEPTH_MAX} levels deep`, 'divide it')
    const term = this.#isLambda() ? this.#lambda() : this.#binary(0)
    this.#depth--
    return term
  }

  /** The next token begins an expression. */
  get beginsExpression(): boolean {
    const { kind, text } = this.token
    if (kind === 'sign') return ['(', '[', '{', '-', '+', '!'].includes(text)
    return kind !== 'end' && !(kind === 'name' && RESERVED.includes(text))
  }

  #spanFrom(from: number): Span {
    return this.#span ?? { from, to: this.#tokens[this.#at - 1]?.to ?? from }
  }

  #isLambda(): boolean {
    if (this.next.text === '->') return this.token.kind === 'name'
    const [, name, close, arrow] = this.#tokens.slice(this.#at, this.#at + 4)
    return this.token.text === '(' && name?.kind === 'name' && close?.text === ')' && arrow?.text === '->'
  }

  #lambda(): Term {
    const { from } = this.token
    const isWrapped = this.takes('(')
    const parameter = this.name('a parameter')
    if (isWrapped) this.requires(')')
    this.requires('->')
    const body = this.expression()
    return { kind: 'lambda', parameter, body, ...this.#spanFrom(from) }
  }

  #binary(level: number): Term {
    const operators = LEVELS[level]
    if (operators === undefined) return this.#range()
    return this.#chain(operators, () => this.#binary(level + 1))
  }

  #chain(operators: Readonly<Record<string, Operator>>, operand: () => Term): Term {
    const { from } = this.token
    let left = operand()
    for (let operator = this.#operator(operators); operator !== null; operator = this.#operator(operators)) {
      left = { kind: 'operation', operator, left, right: operand(), ...this.#spanFrom(from) }
    }
    return left
  }

  #operator(operators: Readonly<Record<string, Operator>>): Operator | null {
    const { kind, text } = this.token
    if ((kind !== 'sign' && kind !== 'name') || !Object.hasOwn(operators, text)) return null
    // `<#assign a=b c=d>`: the name of a further assignment is no operator, as `=` of one is not.
    if (kind === 'name' && this.next.text === '=') return null
    this.#at++
    return operators[text]!
  }

  #range(): Term {
    const { from } = this.token
    const begin = this.#chain(SUMS, () => this.#chain(PRODUCTS, () => this.#unary()))
    const range = this.token.kind === 'sign' && Object.hasOwn(RANGES, this.token.text) ? RANGES[this.token.text]! : null
    if (range === null) return begin
    this.#at++
    if (range === 'inclusive' && !this.beginsExpression) {
      return { kind: 'range', range: 'open', begin, end: null, ...this.#spanFrom(from) }
    }
    const end = this.#chain(SUMS, () => this.#chain(PRODUCTS, () => this.#unary()))
    return { kind: 'range', range, begin, end, ...this.#spanFrom(from) }
  }

  #unary(): Term {
    const { from, kind, text } = this.token
    if (kind !== 'sign' || !['!', '-', '+'].includes(text)) return this.#postfix()
    if (++this.#depth > DEPTH_MAX) this.fail(`is nested more than ${DEPTH_MAX} levels deep`, 'divide it')
    this.#at++
    const of = this.#unary()
    this.#depth--
    return { kind: text === '!' ? 'not' : text === '-' ? 'negative' : 'positive', of, ...this.#spanFrom(from) }
  }

  #postfix(): Term {
    const { from } = this.token
    let of = this.#primary()
    for (let levels = 0; ; levels++) {
      const { kind, text } = this.token
      if (kind !== 'sign') return of
      if (levels > DEPTH_MAX) this.fail(`has more than ${DEPTH_MAX} steps`, 'divide it')
      if (text === '.') of = this.#member(of, from)
      else if (text === '[') of = this.#index(of, from)
      else if (text === '(') of = { kind: 'call', of, args: this.#arguments(), ...this.#spanFrom(from) }
      else if (text === '?') of = this.#builtIn(of, from)
      else if (text === '??') {
        this.#at++
        of = { kind: 'exists', of, ...this.#spanFrom(from) }
      } else if (text === '!') of = this.#default(of, from)
      else return of
    }
  }

  /** As in FreeMarker 2.3, all that follows the mark and is an expression is the default: `a!b + c` is `a!(b + c)`. */
  #default(of: Term, from: number): Term {
    this.#at++
    const isNextAssignment = this.token.kind === 'name' && this.next.text === '='
    const otherwise = this.beginsExpression && !isNextAssignment ? this.expression() : null
    return { kind: 'default', of, otherwise, ...this.#spanFrom(from) }
  }

  #member(of: Term, from: number): Term {
    this.#at++
    const given = this.takes('**') ? '**' : this.takes('*') ? '*' : this.name('a name behind the dot')
    const name = given === '@' && this.takes('*') ? '@*' : given
    if (name.startsWith('@@') && !OF_NODES.includes(name)) {
      this.fail(`has ${name}, which is not supported`, `known are ${OF_NODES.join(', ')}`)
    }
    return { kind: 'member', of, name, ...this.#spanFrom(from) }
  }

  #index(of: Term, from: number): Term {
    this.#at++
    const key = this.expression()
    this.requires(']')
    if (key.kind === 'literal' && typeof key.value === 'string' && XPATH.test(key.value)) {
      const hint = 'write ["**"] for descendants, and ?filter or <#list> to choose among nodes'
      throw new TemplateSyntaxError('has XPath in brackets, which is not supported', this.#span?.from ?? from, hint)
    }
    return { kind: 'index', of, key, ...this.#spanFrom(from) }
  }

  #builtIn(of: Term, from: number): Term {
    this.#at++
    const name = snakeCase(this.name('the name of a built-in'))
    const args = WITH_FORMAT.includes(name) ? this.#formats() : this.#argumentsIfAny()
    const { why, hint } = builtInProblem(name, args)
    if (why !== '') {
      throw new TemplateSyntaxError(`has ?${name}, which ${why}`, this.#span?.from ?? from, hint)
    }
    return { kind: 'built-in', of, name, args, ...this.#spanFrom(from) }
  }

  /** Arguments, or a format as in `?string.short` and `?string["0.0"]`. */
  #formats(): readonly Term[] {
    if (this.takes('.')) {
      const { from } = this.token
      return [{ kind: 'literal', value: this.name('the name of a format'), ...this.#spanFrom(from) }]
    }
    return this.takes('[') ? this.#list(']') : this.#argumentsIfAny()
  }

  #argumentsIfAny(): readonly Term[] {
    return this.token.kind === 'sign' && this.token.text === '(' ? this.#arguments() : []
  }

  #arguments(): readonly Term[] {
    this.requires('(')
    return this.#list(')')
  }

  #list(close: string): readonly Term[] {
    const terms: Term[] = []
    while (!this.takes(close)) {
      terms.push(this.expression())
      if (!this.takes(',') && this.token.text !== close && !this.beginsExpression) this.fail(`expected ${close}`)
    }
    return terms
  }

  #primary(): Term {
    const { kind, text, from } = this.token
    if (kind === 'end') this.fail('ends where an expression is expected')
    this.#at++
    switch (kind) {
      case 'number':
        if (text.length > NUMBER_MAX) this.fail(`has a number of more than ${NUMBER_MAX} digits`)
        return { kind: 'literal', value: Number(text), ...this.#spanFrom(from) }
      case 'raw-text':
        return { kind: 'literal', value: text, ...this.#spanFrom(from) }
      case 'text':
        return this.#text(text, from)
      case 'name':
        if (RESERVED.includes(text)) this.fail(`has ${text} where an expression is expected`)
        if (text === 'true' || text === 'false') {
          return { kind: 'literal', value: text === 'true', ...this.#spanFrom(from) }
        }
        return { kind: 'variable', name: text, ...this.#spanFrom(from) }
      default:
        return this.#bracketed(text, from)
    }
  }

  #bracketed(sign: string, from: number): Term {
    if (sign === '(') {
      const of = this.expression()
      this.requires(')')
      return { kind: 'group', of, ...this.#spanFrom(from) }
    }
    if (sign === '[') return { kind: 'sequence', of: this.#list(']'), ...this.#spanFrom(from) }
    if (sign === '{') return this.#hash(from)
    if (sign === '.' && this.token.kind === 'name') {
      const name = snakeCase(this.name('a name'))
      if (!SPECIALS.includes(name))
        this.fail(`has .${name}, which is not supported`, `known are .${SPECIALS.join(', .')}`)
      return { kind: 'special', name, ...this.#spanFrom(from) }
    }
    this.#at--
    return this.fail(`has ${sign} where an expression is expected`)
  }

  #hash(from: number): Term {
    const entries: [Term, Term][] = []
    while (!this.takes('}')) {
      const name = this.expression()
      if (!this.takes(',')) this.requires(':')
      entries.push([name, this.expression()])
      if (this.token.text !== '}') this.requires(',')
    }
    return { kind: 'hash', entries, ...this.#spanFrom(from) }
  }

  #text(written: string, from: number): Term {
    const span = this.#spanFrom(from)
    const text = unescaped(written, span.from)
    const parts = written.includes('${') ? this.#parts(text, span) : [text]
    const [only = ''] = parts
    if (parts.length <= 1 && typeof only === 'string') return { kind: 'literal', value: only, ...span }
    return { kind: 'text', parts, ...span }
  }

  /** Texts and interpolations within a text in quotes. */
  #parts(text: string, span: Span): readonly (string | Term)[] {
    const parts: (string | Term)[] = []
    let from = 0
    for (let at = text.indexOf('${'); at !== -1; at = text.indexOf('${', from)) {
      if (at > from) parts.push(text.slice(from, at))
      const { tokens, end } = relocated(() => tokensIn(text, at + 2, '}'), span)
      const parser = new ExpressionParser(tokens, span, this.#depth + 1)
      parts.push(parser.expression())
      parser.end()
      from = end
    }
    if (from < text.length) parts.push(text.slice(from))
    return parts
  }
}

/** An error within a text in quotes stands where the text does. */
function relocated<T>(lex: () => T, { from }: Span): T {
  try {
    return lex()
  } catch (error) {
    throw error instanceof TemplateSyntaxError ? new TemplateSyntaxError(error.message, from, error.hint) : error
  }
}
