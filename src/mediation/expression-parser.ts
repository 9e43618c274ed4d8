/**
 * Parses expressions. One that needs no document becomes an Expression tree. One with location paths keeps its text for
 * the XPath library, after every function, prefix and variable in it was checked.
 */
import { DATE_PATTERN, datePatternError } from './date-pattern.ts'
import type { Expression, JsonPath, Operator } from './expression.ts'
import type { ExpressionSyntax, XPathClass, XPathNode } from './expression-syntax.ts'
import { CHARSETS, EXTENSIONS, FUNCTIONS, FUNCTIONS_NAMESPACE, SEQUENCE_NAMESPACE } from './functions.ts'
import { jsonPathError } from './json-path-text.ts'
import { type ReadScope, SCOPE_PREFIXES, SCOPES } from './message.ts'
import { isSystemProperty, isVariableName, SYSTEM_PROPERTIES } from './outer-values.ts'
import { VALUE_FUNCTIONS } from './value-functions.ts'
import { parseValueExpression } from './value-expression-parser.ts'
import { ExpressionError, withoutPrefixes, withQuotedPaths } from './xpath-text.ts'

interface ParsedExpression {
  /** undefined where the text is refused. */
  readonly expression?: Expression
  /** Reason of a refusal, and what to do about it; '' otherwise. */
  readonly why: string
  readonly hint: string
}

const LENGTH_MAX = 8192
const DEPTH_MAX = 200
/** XPath functions about nodes, which the library evaluates. */
const NODE_FUNCTIONS: Readonly<Record<string, readonly [least: number, most: number]>> = {
  position: [0, 0],
  last: [0, 0],
  count: [1, 1],
  sum: [1, 1],
  name: [0, 1],
  'local-name': [0, 1],
  'namespace-uri': [0, 1],
}
/** Variables that are elements of the Envelope: `$env` is the Envelope itself. */
const DOCUMENT_VARIABLES = ['body', 'header', 'env']
/** Without arguments these are about the context node. */
const ABOUT_CONTEXT = ['string', 'number', 'string-length', 'normalize-space']

/** Scopes of the reference platform that have no counterpart, and what to use instead. */
const ABSENT_SCOPES: Readonly<Record<string, string>> = {
  file: "property files are not read: write get-property('env', 'NAME')",
  registry: 'there is no registry: write the value in a <property> or read a variable of the environment',
}

const OPERATIONS: Partial<Record<XPathClass, Operator>> = {
  OrOperation: 'or',
  AndOperation: 'and',
  EqualsOperation: '=',
  NotEqualOperation: '!=',
  LessThanOperation: '<',
  GreaterThanOperation: '>',
  LessThanOrEqualOperation: '<=',
  GreaterThanOrEqualOperation: '>=',
  PlusOperation: '+',
  MinusOperation: '-',
  MultiplyOperation: '*',
  DivOperation: 'div',
  ModOperation: 'mod',
}

type Namespaces = (prefix: string) => string | undefined

/** Stands for nodes of a document: the library evaluates the expression around them. */
const OF_DOCUMENT: Expression = { kind: 'literal', value: '' }

/** State of parsing one expression. */
interface Parse {
  readonly namespaceOf: Namespaces
  readonly namespaces: Record<string, string>
  readonly jsonPaths: JsonPath[]
  /** Variables of the environment that it reads. */
  readonly environment: string[]
  /** The expression has a location path, or a function about nodes. */
  needsDocument: boolean
  /** The name of a function that cannot stand beside a location path; '' without one. */
  alone: string
  depth: number
}

/** Function of a JSONPath as the language has it: items of an array, members of an object, characters of a text. */
const LENGTH = '.length()'
/** A JSONPath that begins in a property, whose name ends at a dot or bracket. */
const INTO_PROPERTY = /^\$(\w+):([^.[\s]+)(.*)$/s

export class ExpressionParser {
  readonly #syntax: ExpressionSyntax
  readonly #requestFields: Set<string>
  /** Names of the parameters of templates that the last expression reads. */
  readonly parameters = new Set<string>()
  /** Names of the variables of the environment that the last expression reads. */
  readonly variables = new Set<string>()

  /** Adds the names of the request fields that expressions read to `requestFields`, in lower case. */
  constructor(syntax: ExpressionSyntax, requestFields: Set<string>) {
    this.#syntax = syntax
    this.#requestFields = requestFields
  }

  parse(text: string, namespaceOf: Namespaces): ParsedExpression {
    this.parameters.clear()
    this.variables.clear()
    return attempt(() => {
      if (text.length > LENGTH_MAX) throw new ExpressionError(`is longer than ${LENGTH_MAX} characters`, 'divide it')
      const inner = /^\s*\$\{([\s\S]*)\}\s*$/.exec(text)?.[1]
      return inner === undefined ? this.#xpath(text, namespaceOf) : this.#valueExpression(inner, namespaceOf)
    })
  }

  #xpath(text: string, namespaceOf: Namespaces): Expression {
    const quoted = withQuotedPaths(text)
    const none = { needsDocument: false, alone: '', depth: 0 }
    const state: Parse = { namespaceOf, namespaces: {}, jsonPaths: [], environment: [], ...none }
    const expression = this.#node(this.#parse(quoted), state)
    if (!state.needsDocument) return expression
    if (state.alone !== '')
      throw new ExpressionError(`has ${state.alone} beside a location path`, 'set a property with one of them')
    const { namespaces, jsonPaths, environment } = state
    const own = withoutPrefixes(quoted, prefix => namespaces[prefix] === FUNCTIONS_NAMESPACE)
    const parsed = { kind: 'xpath', text: own, namespaces, jsonPaths } as const
    return environment.length === 0 ? parsed : { ...parsed, environment }
  }

  /** `variable`: where its location paths go; '' for the payload. */
  #xpathInto(text: string, namespaceOf: Namespaces, variable: string): Expression {
    const expression = this.#xpath(text, namespaceOf)
    return expression.kind === 'xpath' && variable !== '' ? { ...expression, variable } : expression
  }

  parseJsonPath(text: string): ParsedExpression {
    return attempt(() => ({ kind: 'json-path', path: this.#jsonPath(text) }))
  }

  #valueExpression(text: string, namespaceOf: Namespaces): Expression {
    return parseValueExpression(text, {
      jsonPath: path => this.#jsonPath(path),
      xpath: (path, variable) => this.#xpathInto(path, namespaceOf, variable),
      readsField: name => void this.#requestFields.add(name),
      readsVariable: name => void this.variables.add(name),
      readsParameter: name => void this.parameters.add(name),
      refuse: (why, hint) => {
        throw new ExpressionError(why, hint)
      },
    })
  }

  #parse(text: string): XPathNode {
    try {
      return this.#syntax.xpath(text)
    } catch {
      // The message of the library is about the states of its parser.
      throw new ExpressionError('is not valid XPath', 'correct it')
    }
  }

  #jsonPath(text: string): JsonPath {
    try {
      return this.#syntax.jsonPath(text)
    } catch (error) {
      const { token } = error as { readonly token?: { readonly index: number } }
      const { why, hint } = jsonPathError(text, token?.index ?? 0)
      throw new ExpressionError(`is not valid JSONPath: ${why}`, hint)
    }
  }

  #node(node: XPathNode, state: Parse): Expression {
    if (++state.depth > DEPTH_MAX) throw new ExpressionError(`is nested more than ${DEPTH_MAX} deep`, 'divide it')
    const expression = this.#nodeOf(node, state)
    state.depth--
    return expression
  }

  #nodeOf(node: XPathNode, state: Parse): Expression {
    const kind = this.#syntax.classOf(node)
    if (kind === undefined) throw new ExpressionError('has a part of an unsupported kind', 'write it differently')
    const operator = OPERATIONS[kind]
    if (operator !== undefined) {
      return { kind: 'operation', operator, left: this.#node(node.lhs, state), right: this.#node(node.rhs, state) }
    }
    if (kind === 'UnaryMinusOperation') return { kind: 'negative', of: this.#node(node.rhs, state) }
    if (kind === 'BarOperation') {
      state.needsDocument = true
      this.#node(node.lhs, state)
      return this.#node(node.rhs, state)
    }
    if (kind === 'XString') return { kind: 'literal', value: node.str }
    if (kind === 'XNumber') return { kind: 'literal', value: node.num }
    if (kind === 'VariableReference') return this.#variable(node.variable, state)
    if (kind === 'FunctionCall') return this.#call(node, state)
    return this.#path(node, state)
  }

  #path({ filter, filterPredicates = [], locationPath }: XPathNode, state: Parse): Expression {
    if (locationPath !== undefined || filterPredicates.length > 0) state.needsDocument = true
    for (const predicate of filterPredicates) this.#node(predicate, state)
    for (const { nodeTest, predicates } of locationPath?.steps ?? []) {
      if (typeof nodeTest.prefix === 'string') resolve(nodeTest.prefix, state)
      for (const predicate of predicates) this.#node(predicate, state)
    }
    return filter === undefined ? OF_DOCUMENT : this.#node(filter, state)
  }

  #variable(variable: string, state: Parse): Expression {
    if (DOCUMENT_VARIABLES.includes(variable)) {
      state.needsDocument = true
      return OF_DOCUMENT
    }
    const [prefix = '', name = ''] = variable.includes(':') ? variable.split(':') : ['', variable]
    if (prefix === 'url') return this.#property('default', `query.param.${name}`)
    const scope = SCOPE_PREFIXES.get(prefix)
    if (scope !== undefined) return this.#property(scope, name)
    throw new ExpressionError(
      `there is no variable $${variable}`,
      'known are $ctx:name, $axis2:name, $trp:name, $operation:name, $var:name, $func:name, $url:name, ' +
        '$body, $header, $env',
    )
  }

  #property(scope: ReadScope, name: string): Expression {
    if (scope === 'func') this.parameters.add(name)
    if (scope === 'transport') this.#requestFields.add(name.toLowerCase())
    return { kind: 'property', scope, name }
  }

  #call({ functionName, arguments: given }: XPathNode, state: Parse): Expression {
    const name = this.#functionName(functionName, state)
    const of = given.map(argument => this.#node(argument, state))
    const row = FUNCTIONS[name]
    const [least, most] = arity(name)
    if (of.length === 0 && ABOUT_CONTEXT.includes(name)) state.needsDocument = true
    else if (of.length < least || of.length > most) {
      const wanted = least === most ? `${least}` : `${least} to ${most}`
      throw new ExpressionError(`${functionName}() takes ${wanted} arguments`, 'correct it')
    }
    if (name === 'get-property') return this.#getProperty(of, state)
    if (name === 'json-eval') return this.#jsonEval(of[0]!, state)
    if (row === undefined) state.needsDocument = true
    if (/^base64|^url-/.test(name) && of.length === 2) checkCharset(name, of[1]!)
    return { kind: 'call', name, of }
  }

  /** The name without its prefix, as in FUNCTIONS. */
  #functionName(qualified: string, state: Parse): string {
    const at = qualified.indexOf(':')
    const name = qualified.slice(at + 1)
    if (name === 'vault-lookup')
      throw new ExpressionError('vault-lookup() has no vault to read', "write get-property('env', 'NAME')")
    const namespace = at === -1 ? '' : namespaceOfFunction(qualified.slice(0, at), state)
    const isExtension = EXTENSIONS.includes(name)
    const isXPath = !isExtension && (Object.hasOwn(FUNCTIONS, name) || Object.hasOwn(NODE_FUNCTIONS, name))
    if (namespace === '' && (isExtension || isXPath)) return name
    if (namespace === SEQUENCE_NAMESPACE && isExtension) return name
    if (namespace === FUNCTIONS_NAMESPACE && isXPath) return name
    throw new ExpressionError(`there is no function ${qualified}()`, knownFunctions(name))
  }

  #getProperty(of: readonly Expression[], state: Parse): Expression {
    const texts = of.map(each => (each.kind === 'literal' && each !== OF_DOCUMENT ? String(each.value) : null))
    if (texts.includes('')) throw new ExpressionError('get-property() has an empty name', "write get-property('name')")
    const [scope, name] = texts.length === 1 ? ['default', texts[0]!] : [texts[0]!, texts[1]!]
    if (scope === 'env') {
      if (name !== null) this.variables.add(name)
      return environmentVariable(name, state)
    }
    if (scope !== null) checkScope(scope, name)
    // Only the message tells which property it is.
    if (scope === null || name === null) return { kind: 'lookup', of }
    if (scope === 'SYSTEM_DATE') return clock(name)
    if (scope === 'system') return { kind: 'lookup', of }
    if (texts.length === 2) return this.#property(scope === 'func' ? scope : SCOPES.get(scope)!, name)
    if (name === 'SYSTEM_DATE') return clock(DATE_PATTERN)
    if (name === 'SYSTEM_TIME') return { kind: 'clock', pattern: '' }
    // Whether the payload is a SOAP Fault.
    if (name === 'FAULT') state.needsDocument = true
    return name === 'To' ? { kind: 'to' } : this.#property('default', name)
  }

  #jsonEval(argument: Expression, state: Parse): Expression {
    const text = argument.kind === 'literal' ? String(argument.value) : ''
    const counted = text.endsWith(LENGTH) ? text.slice(0, -LENGTH.length) : null
    const found = this.#jsonOf(counted ?? text, state)
    if (counted === null) return found
    state.alone = 'length()'
    return { kind: 'apply', name: 'length', of: [found] }
  }

  /** `$ctx:name.path` goes into a property. */
  #jsonOf(text: string, state: Parse): Expression {
    const [, prefix = '', name = '', rest = ''] = INTO_PROPERTY.exec(text.trim()) ?? []
    const scope = SCOPE_PREFIXES.get(prefix)
    if (scope !== undefined) {
      state.alone = 'json-eval() of a property'
      return { kind: 'path', of: this.#property(scope, name), path: this.#jsonPath(`$${rest}`) }
    }
    const path = this.#jsonPath(text)
    state.jsonPaths.push(path)
    return { kind: 'json-path', path }
  }
}

/** Refuses a scope of `get-property` that is none, and a name that it lacks. `name`: null where a message tells it. */
function checkScope(scope: string, name: string | null): void {
  if (scope === 'system') {
    if (name !== null && isSystemProperty(name)) return
    const known = `known ones are ${SYSTEM_PROPERTIES.join(', ')}; others: get-property('env', 'NAME')`
    throw new ExpressionError(`there is no system property ${name ?? 'that a message names'}`, known)
  }
  if (scope === 'SYSTEM_DATE' || scope === 'func' || SCOPES.has(scope)) return
  const known = [...SCOPES.keys(), 'func', 'env', 'system'].join(', ')
  const hint = Object.hasOwn(ABSENT_SCOPES, scope) ? ABSENT_SCOPES[scope]! : `known scopes are ${known}`
  throw new ExpressionError(`there is no scope ${scope}`, hint)
}

/** A message does not choose which variable is read: its value is a secret of the operator. */
function environmentVariable(name: string | null, state: Parse): Expression {
  if (name === null)
    throw new ExpressionError("get-property('env') needs a name in quotes", "write get-property('env', 'NAME')")
  if (!isVariableName(name)) throw new ExpressionError(`there is no variable ${name}`, 'write letters, digits and _')
  state.environment.push(name)
  return { kind: 'environment', name }
}

function clock(pattern: string): Expression {
  const why = datePatternError(pattern)
  if (why !== '') throw new ExpressionError(`has a date pattern that ${why}`, 'write it like yyyy-MM-dd HH:mm:ss')
  return { kind: 'clock', pattern }
}

function attempt(read: () => Expression): ParsedExpression {
  try {
    return { expression: read(), why: '', hint: '' }
  } catch (error) {
    if (error instanceof ExpressionError) return { why: error.message, hint: error.hint }
    throw error
  }
}

function knownFunctions(name: string): string {
  if (Object.hasOwn(VALUE_FUNCTIONS, name)) return `write it as \${${name}(…)}`
  const known = [...Object.keys(FUNCTIONS), ...Object.keys(NODE_FUNCTIONS), 'get-property', 'json-eval']
  return `known functions are ${known.join(', ')}`
}

function arity(name: string): readonly [least: number, most: number] {
  if (name === 'get-property') return [1, 2]
  if (name === 'json-eval') return [1, 1]
  const row = FUNCTIONS[name]
  return row === undefined ? NODE_FUNCTIONS[name]! : [row.least, row.most]
}

/** The prefix `fn` needs no declaration, as on the reference platform. */
function namespaceOfFunction(prefix: string, state: Parse): string {
  if (prefix !== 'fn' || state.namespaceOf(prefix) !== undefined) return resolve(prefix, state)
  state.namespaces[prefix] = FUNCTIONS_NAMESPACE
  return FUNCTIONS_NAMESPACE
}

function resolve(prefix: string, state: Parse): string {
  const namespace = state.namespaceOf(prefix)
  if (namespace === undefined)
    throw new ExpressionError(`the prefix ${prefix} is not declared`, `add xmlns:${prefix}="…"`)
  state.namespaces[prefix] = namespace
  return namespace
}

function checkCharset(name: string, argument: Expression): void {
  const charset = argument.kind === 'literal' ? String(argument.value) : ''
  const known = Object.keys(CHARSETS).filter(one => one !== '')
  if (charset !== '' && Object.hasOwn(CHARSETS, charset)) return
  throw new ExpressionError(`${name}() has no charset ${charset}`, `known charsets are ${known.join(', ')}`)
}
