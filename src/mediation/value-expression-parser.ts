/**
 * Parses `${…}` expressions: `payload`, `vars`, `headers`, `properties`, `params` and `configs` with JSONPath behind
 * them, literals, operators with their usual precedence, `? :`, and functions. `xpath("…")` reads an XML payload.
 */
import { datePatternError } from './date-pattern.ts'
import type { Expression, JsonPath } from './expression.ts'
import { CHARSETS } from './functions.ts'
import { SCOPES } from './message.ts'
import { isVariableName } from './outer-values.ts'
import { VALUE_FUNCTIONS } from './value-functions.ts'

/** The services that the parser of an expression uses. */
interface Context {
  jsonPath(text: string): JsonPath
  /** `variable`: the path goes into that variable; '' for the payload. */
  xpath(text: string, variable: string): Expression
  /** A header field is read; in lower case. */
  readsField(name: string): void
  /** A variable of the environment is read. */
  readsVariable(name: string): void
  /** A parameter of the sequence template is read. */
  readsParameter(name: string): void
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
const ROOTS = ['payload', 'vars', 'headers', 'properties', 'props', 'params', 'configs', 'var', 'config']
/** Prefixes of parameters as names of properties. */
const PARAMETERS: Readonly<Record<string, string>> = {
  queryParams: 'query.param.',
  pathParams: 'uri.var.',
  uriParams: 'uri.var.',
}
const PARAMETERS_HINT = 'write queryParams, uriParams, pathParams or functionParams'
/** Functions of the reference platform that have no counterpart, and what to use instead. */
const ABSENT: Readonly<Record<string, string>> = {
  secret: 'there is no vault: write configs.NAME, which reads a variable of the environment',
  registry: 'there is no registry: write the value in a <variable>, or configs.NAME for a variable of the environment',
}
/** A value outside of the items that a filter looks at, and `$`. */
const OUTER = /\$|[A-Za-z_]\w*/y
const ESCAPES: Readonly<Record<string, string>> = { b: '\b', t: '\t', n: '\n', f: '\f', r: '\r' }

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
    if (string !== null) return { kind: 'literal', value: unescaped(string[1] ?? string[2]!) }
    if (this.#take('$')) return this.#pathInto({ kind: 'json-path', path: this.#context.jsonPath('$') })
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
    // Numbers can be added to the time.
    if (name === 'now' && of.length === 0) return { kind: 'apply', name: 'float', of: [{ kind: 'clock', pattern: '' }] }
    if (name === 'xpath' && of.length > 0 && of.length <= 2) return this.#xpath(of)
    const absent = Object.hasOwn(ABSENT, name) ? ABSENT[name] : undefined
    if (absent !== undefined) this.#context.refuse(`${name}() is not supported`, absent)
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
    this.#checkLiterals(name, of)
    if (name === 'exists' && of[0]!.kind === 'literal') return { kind: 'apply', name, of: [this.#quoted(of[0]!)] }
    const call: Expression = { kind: 'apply', name, of }
    return name === 'object' || name === 'array' ? this.#pathInto(call) : call
  }

  #xpath([path, variable]: readonly Expression[]): Expression {
    if (path?.kind !== 'literal' || (variable !== undefined && variable.kind !== 'literal')) {
      return this.#context.refuse('xpath() needs texts in quotes', "write xpath('//a') or xpath('//a', 'variable')")
    }
    return this.#context.xpath(String(path.value), variable === undefined ? '' : String(variable.value))
  }

  /** Refuses charsets and patterns of dates that are known to be wrong. */
  #checkLiterals(name: string, of: readonly Expression[]): void {
    if (name !== 'base64encode' && name !== 'formatDateTime') return
    for (const argument of of.slice(1)) {
      const text = argument.kind === 'literal' ? String(argument.value) : ''
      const why = name === 'formatDateTime' ? datePatternError(text) : ''
      if (why !== '') this.#context.refuse(`has a date pattern that ${why}`, 'write it like yyyy-MM-dd HH:mm:ss')
      if (name === 'base64encode' && !Object.hasOwn(CHARSETS, text)) {
        const known = Object.keys(CHARSETS).filter(charset => charset !== '')
        this.#context.refuse(`base64encode() has no charset ${text}`, `known charsets are ${known.join(', ')}`)
      }
    }
  }

  /** `exists('vars.x')`, as the documentation of the reference platform writes it, asks for `vars.x`. */
  #quoted(literal: Expression & { readonly kind: 'literal' }): Expression {
    const text = String(literal.value)
    const [root = ''] = /^(?:\$|\w+(?=[.[]))/.exec(text) ?? []
    return root === '$' || ROOTS.includes(root) ? parseValueExpression(text, this.#context) : literal
  }

  #root(name: string): Expression {
    switch (name) {
      case 'payload':
        return this.#pathInto({ kind: 'json-path', path: this.#context.jsonPath('$') })
      case 'vars':
      case 'var':
        return this.#pathInto({ kind: 'property', scope: 'variable', name: this.#member(name) })
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
        return this.#pathInto({ kind: 'property', scope, name: this.#member(name) })
      }
      case 'params': {
        const kind = this.#member(name)
        if (kind === 'functionParams') {
          const parameter = this.#member(name)
          this.#context.readsParameter(parameter)
          return this.#pathInto({ kind: 'property', scope: 'func', name: parameter })
        }
        const prefix = Object.hasOwn(PARAMETERS, kind) ? PARAMETERS[kind] : undefined
        if (prefix === undefined) return this.#context.refuse(`there are no params of ${kind}`, PARAMETERS_HINT)
        return { kind: 'property', scope: 'default', name: prefix + this.#member(name) }
      }
      case 'configs':
      case 'config': {
        const variable = this.#member(name)
        if (isVariableName(variable)) {
          this.#context.readsVariable(variable)
          return { kind: 'environment', name: variable }
        }
        return this.#context.refuse(`there is no variable ${variable}`, 'write letters, digits and _')
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

  /** The value, or what a path behind it finds in it. Filters may compare items with values from elsewhere. */
  #pathInto(of: Expression): Expression {
    const outer: Expression[] = []
    let path = ''
    for (;;) {
      const part = this.#match(/\.{1,2}(?:\*|[\w\u0080-\uffff]+)/y) ?? this.#match(/(?:\.\.)?\[/y)
      if (part === null) break
      path += part[0]
      if (part[0].endsWith('[')) path += this.#bracket(outer)
    }
    if (outer.length > 0) return { kind: 'filter', of, path: this.#context.jsonPath(`$.of${path}`), outer }
    if (of.kind === 'json-path') return { kind: 'json-path', path: this.#context.jsonPath(`$${path}`) }
    return path === '' ? of : { kind: 'path', of, path: this.#context.jsonPath(`$${path}`) }
  }

  /**
   * Text up to the end of a bracket that is open. In a filter, what begins with a root stands for a value of `outer`,
   * which the path finds at `$.outer`.
   */
  #bracket(outer: Expression[]): string {
    let text = ''
    let isFilter = false
    for (let open = 1; open > 0; ) {
      const string = this.#match(STRING)
      const name = isFilter && string === null && !/[\w.@]$/.test(text) ? this.#match(OUTER)?.[0] : undefined
      if (string !== null) text += string[0]
      else if (name !== undefined) text += this.#outer(name, outer)
      else {
        const character = this.#text.charAt(this.#at++)
        if (character === '') this.#unexpected()
        if (character === '[') open++
        else if (character === ']') open--
        else if (character === '?') isFilter = true
        text += character
      }
    }
    return text
  }

  /** Returns the text that stands for a value in a path. The library evaluates a path into the payload. */
  #outer(name: string, outer: Expression[]): string {
    if (name !== '$' && !ROOTS.includes(name)) return name
    const isPayload = name === '$' || name === 'payload'
    outer.push(isPayload ? { kind: 'json-path', path: this.#context.jsonPath('$') } : this.#root(name))
    return `$.outer[${outer.length - 1}]`
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

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, (_, character: string) => ESCAPES[character] ?? character)
}
