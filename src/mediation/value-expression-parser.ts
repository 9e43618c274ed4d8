/**
 * Parses `${…}` expressions: `payload`, `vars`, `headers`, `properties` and `params` with JSONPath behind them,
 * literals, operators with their usual precedence, `? :`, and functions. `xpath("…")` reads an XML payload.
 */
import type { Expression, JsonPath } from './expression.ts'
import { SCOPES } from './message.ts'
import { VALUE_FUNCTIONS } from './value-functions.ts'

/** What an expression needs of its surroundings. */
interface Context {
  jsonPath(text: string): JsonPath
  xpath(text: string): Expression
  /** A header field is read; in lower case. */
  readsField(name: string): void
  /** Throws. */
  refuse(why: string, hint: string): never
}

/** Binary operators, those that bind least first. */
const LEVELS = [
  ['or', '||'],
  ['and', '&&'],
  ['==', '!='],
  ['<=', '>=', '<', '>'],
  ['+', '-'],
  ['*', '/', '%'],
]
const DEPTH_MAX = 100
const SPACE = /\s*/y
const NUMBER = /\d+(?:\.\d+)?/y
const NAME = /[A-Za-z_][\w]*/y
const STRING = /"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'/y
const MEMBER = /\.([\w-]*[A-Za-z_][\w-]*)|\[\s*(?:"([^"]*)"|'([^']*)')\s*\]/y
const ROOTS = ['payload', 'vars', 'headers', 'properties', 'props', 'params', 'var']

export function parseValueExpression(text: string, context: Context): Expression {
  const parser = new ValueExpressionParser(text, context)
  return parser.whole()
}

class ValueExpressionParser {
  readonly #text: string
  readonly #context: Context
  #at = 0
  #depth = 0

  constructor(text: string, context: Context) {
    this.#text = text
    this.#context = context
  }

  whole(): Expression {
    const expression = this.#choice()
    this.#space()
    if (this.#at < this.#text.length) this.#unexpected()
    return expression
  }

  #unexpected(): never {
    const found = this.#at < this.#text.length ? `does not go on at character ${this.#at + 1}` : 'ends too early'
    return this.#context.refuse(found, 'correct it')
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)
    if (found !== null) this.#at += found[0].length
    return found
  }

  #space(): void {
    this.#match(SPACE)
  }

  /** Takes the token, if it is next. A word is not the start of a longer one. */
  #take(token: string): boolean {
    this.#space()
    if (!this.#text.startsWith(token, this.#at)) return false
    const after = this.#text.charAt(this.#at + token.length)
    if (/\w$/.test(token) && /\w/.test(after)) return false
    this.#at += token.length
    return true
  }

  #expect(token: string): void {
    if (!this.#take(token)) this.#unexpected()
  }

  #choice(): Expression {
    if (++this.#depth > DEPTH_MAX) this.#context.refuse(`is nested more than ${DEPTH_MAX} deep`, 'divide it')
    const condition = this.#binary(0)
    let expression = condition
    if (this.#take('?')) {
      const yes = this.#choice()
      this.#expect(':')
      expression = { kind: 'choice', condition, yes, otherwise: this.#choice() }
    }
    this.#depth--
    return expression
  }

  #binary(level: number): Expression {
    const operators = LEVELS[level]
    if (operators === undefined) return this.#unary()
    let left = this.#binary(level + 1)
    for (;;) {
      const operator = operators.find(each => this.#take(each))
      if (operator === undefined) return left
      const right = this.#binary(level + 1)
      left = combined(operator, left, right)
    }
  }

  #unary(): Expression {
    if (++this.#depth > DEPTH_MAX) this.#context.refuse(`is nested more than ${DEPTH_MAX} deep`, 'divide it')
    const expression = this.#operand()
    this.#depth--
    return expression
  }

  #operand(): Expression {
    if (this.#take('!')) return { kind: 'apply', name: 'not', of: [this.#unary()] }
    if (this.#take('-')) return { kind: 'negative', of: this.#unary() }
    if (this.#take('(')) {
      const inner = this.#choice()
      this.#expect(')')
      return inner
    }
    const number = this.#match(NUMBER)
    if (number !== null) return { kind: 'literal', value: Number(number[0]) }
    const string = this.#match(STRING)
    if (string !== null) return { kind: 'literal', value: (string[1] ?? string[2]!).replace(/\\(.)/g, '$1') }
    if (this.#take('$')) return { kind: 'json-path', path: this.#path('$') }
    const name = this.#match(NAME)?.[0]
    if (name === undefined) return this.#unexpected()
    if (name === 'true' || name === 'false') return { kind: 'call', name, of: [] }
    if (name === 'null') return { kind: 'literal', value: '' }
    if (name === 'not' && !this.#take('(')) return { kind: 'apply', name, of: [this.#unary()] }
    if (name === 'not') {
      const inner = this.#choice()
      this.#expect(')')
      return { kind: 'apply', name, of: [inner] }
    }
    return this.#take('(') ? this.#call(name) : this.#root(name)
  }

  #call(name: string): Expression {
    const of: Expression[] = []
    if (!this.#take(')')) {
      do of.push(this.#choice())
      while (this.#take(','))
      this.#expect(')')
    }
    if (name === 'now' && of.length === 0) return { kind: 'clock', pattern: '' }
    const [first] = of
    if (name === 'xpath' && of.length === 1 && first?.kind === 'literal')
      return this.#context.xpath(String(first.value))
    const row = Object.hasOwn(VALUE_FUNCTIONS, name) ? VALUE_FUNCTIONS[name] : undefined
    if (row === undefined) {
      const known = Object.keys(VALUE_FUNCTIONS).filter(each => /^\w+$/.test(each))
      return this.#context.refuse(
        `there is no function ${name}()`,
        `known functions are ${known.join(', ')}, now, xpath`,
      )
    }
    if (of.length < row.least || of.length > row.most) {
      const wanted = row.least === row.most ? `${row.least}` : `${row.least} to ${row.most}`
      this.#context.refuse(`${name}() takes ${wanted} arguments`, 'correct it')
    }
    return { kind: 'apply', name, of }
  }

  #root(name: string): Expression {
    switch (name) {
      case 'payload':
        return { kind: 'json-path', path: this.#path('$') }
      case 'vars':
      case 'var':
        return this.#within({ kind: 'property', scope: 'variable', name: this.#member(name) })
      case 'headers': {
        const field = this.#member(name)
        this.#context.readsField(field.toLowerCase())
        return { kind: 'property', scope: 'transport', name: field }
      }
      case 'properties':
      case 'props': {
        const given = this.#member(name)
        const scope = SCOPES.get(given)
        if (scope === undefined || scope === 'transport') {
          return this.#context.refuse(`there are no properties of ${given}`, 'write properties.synapse.name')
        }
        return this.#within({ kind: 'property', scope, name: this.#member(name) })
      }
      case 'params': {
        const kind = this.#member(name)
        const prefix = kind === 'queryParams' ? 'query.param.' : kind === 'pathParams' ? 'uri.var.' : ''
        if (prefix === '')
          return this.#context.refuse(`there are no params of ${kind}`, 'write queryParams or pathParams')
        return { kind: 'property', scope: 'default', name: prefix + this.#member(name) }
      }
      default:
        return this.#context.refuse(`there is no ${name}`, `known are ${ROOTS.join(', ')}`)
    }
  }

  /** Name behind a dot or in brackets. */
  #member(root: string): string {
    const found = this.#match(MEMBER)
    if (found === null) return this.#context.refuse(`${root} needs a name`, `write ${root}.name or ${root}["name"]`)
    return found[1] ?? found[2] ?? found[3]!
  }

  /** A path into the value, if one follows. */
  #within(of: Expression): Expression {
    return /^(?:\.|\[)/.test(this.#text.slice(this.#at)) ? { kind: 'path', of, path: this.#path('$') } : of
  }

  /** JSONPath: names behind dots, and brackets with all that is in them. */
  #path(root: string): JsonPath {
    const start = this.#at
    for (;;) {
      if (this.#match(/\.{1,2}(?:\*|[\w\u0080-\uffff]+)/y) !== null) continue
      if (this.#match(/(?:\.\.)?\[/y) === null) break
      this.#bracket()
    }
    return this.#context.jsonPath(root + this.#text.slice(start, this.#at))
  }

  /** Skips to the end of a bracket that is open. */
  #bracket(): void {
    for (let open = 1; open > 0; ) {
      if (this.#match(STRING) !== null) continue
      const character = this.#text.charAt(this.#at++)
      if (character === '') this.#unexpected()
      if (character === '[') open++
      else if (character === ']') open--
    }
  }
}

function combined(operator: string, left: Expression, right: Expression): Expression {
  if (operator === 'or' || operator === '||') {
    return { kind: 'choice', condition: left, yes: { kind: 'call', name: 'true', of: [] }, otherwise: truth(right) }
  }
  if (operator === 'and' || operator === '&&') {
    return { kind: 'choice', condition: left, yes: truth(right), otherwise: { kind: 'call', name: 'false', of: [] } }
  }
  return { kind: 'apply', name: operator, of: [left, right] }
}

/** The expression as a boolean. */
function truth(of: Expression): Expression {
  return { kind: 'apply', name: 'not', of: [{ kind: 'apply', name: 'not', of: [of] }] }
}
