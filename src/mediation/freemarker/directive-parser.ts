/** Parses the tags of a template, each with its content. */
import { datePatternError } from '../date-pattern.ts'
import { ExpressionParser } from './expression-parser.ts'
import { numberFormatProblem } from './numbers.ts'
import {
  type AssignmentOperator,
  type AssignmentScope,
  type Branch,
  type Directive,
  type LoopNames,
  type MacroPlan,
  SETTINGS,
  type SettingName,
  type Span,
  type Term,
} from './plan.ts'
import type { Piece, TagPiece } from './tags.ts'
import type { TemplateParser } from './template-parser.ts'

type Around = 'list' | 'items' | 'switch' | 'macro' | 'function'

type ParseTag = (tag: TagPiece, parser: ExpressionParser) => readonly Directive[]

const OPERATORS: Readonly<Record<string, AssignmentOperator>> = {
  '=': '=',
  '+=': '+',
  '-=': '-',
  '*=': '*',
  '/=': '/',
  '%=': '%',
}
const LOCALES = ['en', 'en_US']

/** `<#escape name as term>`. */
interface Escape {
  readonly name: string
  readonly term: Term
  /** How often the term has the name. */
  readonly uses: number
  /** Other parts of the term. */
  readonly parts: number
}

/** Parts of the expressions of one template that stand within escapes. */
const ESCAPED_PARTS_MAX = 100_000

export class DirectiveParser {
  readonly #template: TemplateParser
  /** `<#escape name as term>` around what is parsed, the innermost one last. */
  readonly #escapes: Escape[] = []
  /** Parts of all expressions that escapes have made. */
  #escapedParts = 0
  /** Loops, switches and macros around what is parsed. */
  readonly #around: Around[] = []
  readonly #tags: Readonly<Record<string, ParseTag>> = {
    if: (tag, parser) => this.#if(tag, parser),
    list: (tag, parser) => this.#list(tag, parser),
    items: (tag, parser) => this.#items(tag, parser),
    sep: tag => this.#sep(tag),
    break: tag => this.#jump(tag, 'break', ['list', 'items', 'switch']),
    continue: tag => this.#jump(tag, 'continue', ['list', 'items']),
    assign: (tag, parser) => this.#assign(tag, parser, 'template'),
    global: (tag, parser) => this.#assign(tag, parser, 'template'),
    local: (tag, parser) => this.#local(tag, parser),
    switch: (tag, parser) => this.#switch(tag, parser),
    macro: (tag, parser) => this.#macro(tag, parser, false),
    function: (tag, parser) => this.#macro(tag, parser, true),
    '@': (tag, parser) => this.#invoke(tag, parser),
    nested: (tag, parser) => this.#nested(tag, parser),
    return: (tag, parser) => this.#return(tag, parser),
    compress: tag => [{ kind: 'compress', body: this.#whole(tag) }],
    attempt: tag => this.#attempt(tag),
    setting: (tag, parser) => this.#setting(tag, parser),
    stop: (tag, parser) => [{ kind: 'stop', message: parser.isAtEnd ? null : parser.expression(), ...spanOf(tag) }],
    escape: (tag, parser) => this.#escape(tag, parser),
    noescape: tag => this.#noescape(tag),
    ftl: tag => this.#template.fail(tag, 'has <#ftl> behind its beginning', 'move it to the top'),
  }

  constructor(template: TemplateParser) {
    this.#template = template
  }

  get names(): readonly string[] {
    return Object.keys(this.#tags).filter(name => name !== '@')
  }

  /** Returns undefined for a tag of no known name. */
  parse(tag: TagPiece): readonly Directive[] | undefined {
    if (!Object.hasOwn(this.#tags, tag.name)) return undefined
    const parser = new ExpressionParser(tag.tokens)
    const directives = this.#tags[tag.name]!(tag, parser)
    parser.end()
    return directives
  }

  print(piece: Extract<Piece, { readonly kind: 'print' }>): Directive {
    const parser = new ExpressionParser(piece.tokens)
    let value = parser.expression()
    parser.end()
    if (this.#escapes.length > 0) this.#countEscaped(piece, partsOf(value))
    for (const { name, term } of this.#escapes.toReversed()) value = substituted(term, name, value)
    return { kind: 'print', value, ...spanOf(piece) }
  }

  /** Each escape that uses its value twice doubles the expression. `parts`: of the value. */
  #countEscaped(piece: Span, parts: number): void {
    let made = parts
    for (const { parts: own, uses } of this.#escapes.toReversed()) made = own + uses * made
    this.#escapedParts += made
    if (this.#escapedParts <= ESCAPED_PARTS_MAX) return
    const why = `makes, with its <#escape>s, expressions of more than ${ESCAPED_PARTS_MAX} parts`
    this.#template.fail(piece, why, 'nest fewer of them, or name the value once in each')
  }

  /** The content of a tag up to its end. */
  #whole(tag: TagPiece, name = tag.name): readonly Directive[] {
    return this.#template.body(tag, [`/${name}`]).body
  }

  #within<T>(around: Around, parse: () => T): T {
    this.#around.push(around)
    const parsed = parse()
    this.#around.pop()
    return parsed
  }

  #if(tag: TagPiece, first: ExpressionParser): readonly Directive[] {
    const branches: Branch[] = []
    let condition: Term | null = first.expression()
    for (;;) {
      const ends = condition === null ? ['/if'] : ['elseif', 'else', '/if']
      const { body, tag: end } = this.#template.body(tag, ends)
      branches.push({ condition, body })
      if (end.kind === 'close') return [{ kind: 'if', branches, ...spanOf(tag) }]
      const parser = new ExpressionParser(end.tokens)
      condition = end.name === 'elseif' ? parser.expression() : null
      parser.end()
    }
  }

  #list(tag: TagPiece, parser: ExpressionParser): readonly Directive[] {
    const of = parser.expression()
    const names = parser.takes('as') ? loopNames(parser) : null
    const parse = () => this.#template.body(tag, ['else', '/list'])
    const { body, tag: end } = this.#within('list', parse)
    const otherwise = end.kind === 'open' ? this.#whole(tag) : []
    return [{ kind: 'list', of, names, body, otherwise, ...spanOf(tag) }]
  }

  #items(tag: TagPiece, parser: ExpressionParser): readonly Directive[] {
    if (this.#around.at(-1) !== 'list') this.#template.fail(tag, 'has <#items> outside of <#list>', 'move it')
    parser.requires('as')
    const names = loopNames(parser)
    return [{ kind: 'items', names, body: this.#within('items', () => this.#whole(tag)), ...spanOf(tag) }]
  }

  /** Its end may be left out: then the end of the list is its end. */
  #sep(tag: TagPiece): readonly Directive[] {
    if (!this.#around.some(each => each === 'list' || each === 'items')) {
      this.#template.fail(tag, 'has <#sep> outside of <#list>', 'move it')
    }
    return [{ kind: 'sep', body: this.#template.sepBody(tag), ...spanOf(tag) }]
  }

  #jump(tag: TagPiece, kind: 'break' | 'continue', within: readonly Around[]): readonly Directive[] {
    if (!this.#around.some(each => within.includes(each))) {
      this.#template.fail(tag, `has <#${kind}> outside of <#list>`, 'remove it')
    }
    return [{ kind }]
  }

  #local(tag: TagPiece, parser: ExpressionParser): readonly Directive[] {
    if (!this.#around.some(each => each === 'macro' || each === 'function')) {
      this.#template.fail(tag, 'has <#local> outside of a macro or function', 'use <#assign>')
    }
    return this.#assign(tag, parser, 'local')
  }

  #assign(tag: TagPiece, parser: ExpressionParser, scope: AssignmentScope): readonly Directive[] {
    const span = spanOf(tag)
    const assignments: Directive[] = []
    while (!parser.isAtEnd) {
      const name = parser.nameOrText('a name')
      const { text } = parser.token
      if (Object.hasOwn(OPERATORS, text)) {
        parser.takes(text)
        assignments.push({
          kind: 'assign',
          scope,
          name,
          operator: OPERATORS[text]!,
          value: parser.expression(),
          ...span,
        })
      } else if (text === '++' || text === '--') {
        parser.takes(text)
        const value: Term = { kind: 'literal', value: 1, ...span }
        assignments.push({ kind: 'assign', scope, name, operator: text === '++' ? '+' : '-', value, ...span })
      } else if (parser.isAtEnd && assignments.length === 0) {
        return [{ kind: 'capture', scope, name, body: this.#whole(tag), ...span }]
      } else parser.fail(text === 'in' ? 'has an assignment to a namespace' : 'expected =')
      parser.takes(',')
    }
    if (assignments.length === 0) parser.fail('expected a name')
    return assignments
  }

  #switch(tag: TagPiece, parser: ExpressionParser): readonly Directive[] {
    const value = parser.expression()
    const branches: Branch[] = []
    const ends = ['case', 'default', '/switch']
    let { tag: end } = this.#template.body(tag, ends)
    while (end.kind === 'open') {
      const of = new ExpressionParser(end.tokens)
      const condition = end.name === 'case' ? of.expression() : null
      of.end()
      const { body, tag: next } = this.#within('switch', () => this.#template.body(tag, ends))
      branches.push({ condition, body })
      end = next
    }
    return [{ kind: 'switch', value, branches, ...spanOf(tag) }]
  }

  #macro(tag: TagPiece, parser: ExpressionParser, isFunction: boolean): readonly Directive[] {
    const name = parser.nameOrText('a name')
    const parameters: MacroPlan['parameters'][number][] = []
    let rest = ''
    const isWrapped = parser.takes('(')
    while (!parser.isAtEnd && !parser.takes(')')) {
      const parameter = parser.name('a parameter')
      if (parser.takes('...')) rest = parameter
      else parameters.push({ name: parameter, otherwise: parser.takes('=') ? parser.expression() : null })
      parser.takes(',')
    }
    if (isWrapped) parser.end()
    const around = this.#around.splice(0)
    const body = this.#within(isFunction ? 'function' : 'macro', () => this.#whole(tag))
    this.#around.push(...around)
    return [{ kind: 'macro', name, isFunction, parameters, rest, body, ...spanOf(tag) }]
  }

  #invoke(tag: TagPiece, parser: ExpressionParser): readonly Directive[] {
    const { from } = parser.token
    const name = parser.name('the name of a macro')
    const of: Term = { kind: 'variable', name, from, to: from + name.length }
    const args: Term[] = []
    const named: [string, Term][] = []
    const isNamed = parser.token.kind === 'name' && parser.next.text === '='
    while (!parser.isAtEnd && parser.token.text !== ';') {
      if (isNamed) {
        const parameter = parser.name('a parameter')
        parser.requires('=')
        named.push([parameter, parser.expression()])
      } else args.push(parser.expression())
      parser.takes(',')
    }
    const bodyParameters: string[] = []
    if (parser.takes(';')) {
      while (!parser.isAtEnd) {
        bodyParameters.push(parser.name('a loop variable'))
        parser.takes(',')
      }
    }
    const body = tag.isEmpty ? null : this.#whole(tag)
    return [{ kind: 'invoke', of, args, named, body, bodyParameters, ...spanOf(tag) }]
  }

  #nested(tag: TagPiece, parser: ExpressionParser): readonly Directive[] {
    if (!this.#around.includes('macro')) this.#template.fail(tag, 'has <#nested> outside of a macro', 'remove it')
    const args: Term[] = []
    while (!parser.isAtEnd) {
      args.push(parser.expression())
      parser.takes(',')
    }
    return [{ kind: 'nested', args, ...spanOf(tag) }]
  }

  #return(tag: TagPiece, parser: ExpressionParser): readonly Directive[] {
    if (!this.#around.some(each => each === 'macro' || each === 'function')) {
      this.#template.fail(tag, 'has <#return> outside of a macro or function', 'remove it')
    }
    return [{ kind: 'return', value: parser.isAtEnd ? null : parser.expression(), ...spanOf(tag) }]
  }

  #attempt(tag: TagPiece): readonly Directive[] {
    const { body } = this.#template.body(tag, ['recover'])
    const { body: recover } = this.#template.body(tag, ['/attempt', '/recover'])
    return [{ kind: 'attempt', body, recover }]
  }

  #setting(tag: TagPiece, parser: ExpressionParser): readonly Directive[] {
    const name = parser.name('the name of a setting')
    parser.requires('=')
    const value = parser.expression()
    if (value.kind !== 'literal') this.#template.fail(tag, 'has a setting that is no literal', 'write its value')
    if (name === 'locale' && LOCALES.includes(String(value.value))) return []
    if (!SETTINGS.includes(name as SettingName)) {
      const hint = `known are ${SETTINGS.join(', ')}, and the locale en_US`
      this.#template.fail(tag, `has the setting ${name}, which is not supported in this form`, hint)
    }
    const given = String(value.value)
    const problem = name === 'number_format' ? numberFormatProblem(given) : dateFormatProblem(name, given)
    if (problem !== '') this.#template.fail(tag, `has the ${name} ${given}, which ${problem}`)
    return [{ kind: 'setting', name: name as SettingName, value: given }]
  }

  #escape(tag: TagPiece, parser: ExpressionParser): readonly Directive[] {
    const name = parser.name('a name')
    parser.requires('as')
    const term = parser.expression()
    const uses = partsOf(term, part => part.kind === 'variable' && part.name === name)
    this.#escapes.push({ name, term, uses, parts: partsOf(term) - uses })
    const body = this.#whole(tag)
    this.#escapes.pop()
    return body
  }

  #noescape(tag: TagPiece): readonly Directive[] {
    const innermost = this.#escapes.pop()
    if (innermost === undefined) return this.#template.fail(tag, 'has <#noescape> outside of <#escape>', 'remove it')
    const body = this.#whole(tag)
    this.#escapes.push(innermost)
    return body
  }
}

function dateFormatProblem(name: string, format: string): string {
  const isNamed = ['', 'iso', 'xs', 'short', 'medium', 'long', 'full'].includes(format)
  return name === 'boolean_format' || isNamed ? '' : datePatternError(format)
}

function spanOf({ from, to }: Span): Span {
  return { from, to }
}

function loopNames(parser: ExpressionParser): LoopNames {
  const name = parser.name('a loop variable')
  return parser.takes(',') ? { key: name, item: parser.name('a loop variable') } : { key: '', item: name }
}

/** Counts the terms within a term, with itself. */
function partsOf(term: unknown, counts: (part: Term) => boolean = () => true): number {
  if (typeof term !== 'object' || term === null) return 0
  const own = 'kind' in term && counts(term as Term) ? 1 : 0
  return Object.values(term).reduce<number>((sum, part) => sum + partsOf(part, counts), own)
}

/** The term with the value in place of the name. */
function substituted(term: Term, name: string, value: Term): Term {
  if (term.kind === 'variable' && term.name === name) return value
  const within = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(within)
    if (typeof part !== 'object' || part === null) return part
    if ('kind' in part) return substituted(part as Term, name, value)
    return part
  }
  const parts = Object.entries(term).map(([key, part]) => [key, within(part)])
  return Object.fromEntries(parts) as Term
}
