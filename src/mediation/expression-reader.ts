/**
 * Texts of expressions as data. What needs no document becomes our own tree; what looks into the payload keeps its text
 * for the library, once everything in it is known to exist.
 */
import type { Expression, JsonPath, Operator } from './expression.ts'
import type { Parsers, XPathClass, XPathNode } from './expression-parsers.ts'
import { CHARSETS, EXTENSIONS, FUNCTIONS, FUNCTIONS_NAMESPACE, LATER_FUNCTIONS } from './functions.ts'
import { type Scope, SCOPE_PREFIXES, SCOPES } from './message.ts'
import { SEQUENCE_NAMESPACE } from './xml-format.ts'

interface ReadExpression {
  readonly expression?: Expression
  readonly why: string
  readonly remedy: string
}

/** Why a text is no expression; thrown within this file only. */
class Refused extends Error {
  override readonly name = 'Refused'
  readonly remedy: string

  constructor(why: string, remedy: string) {
    super(why)
    this.remedy = remedy
  }
}

const LENGTH_MAX = 8192
const DEPTH_MAX = 200
/** Of XPath, about nodes: the library has them. */
const NODE_FUNCTIONS: Readonly<Record<string, readonly [least: number, most: number]>> = {
  position: [0, 0],
  last: [0, 0],
  count: [1, 1],
  sum: [1, 1],
  name: [0, 1],
  'local-name': [0, 1],
  'namespace-uri': [0, 1],
}
/** These take the node they are asked about when they are given nothing. */
const ABOUT_CONTEXT = ['string', 'number', 'string-length', 'normalize-space']

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

/** One text under way. */
interface Sight {
  readonly namespaceOf: Namespaces
  readonly namespaces: Record<string, string>
  readonly jsonPaths: JsonPath[]
  looksIntoPayload: boolean
  depth: number
}

export class ExpressionReader {
  readonly #parsers: Parsers
  readonly #requestFields: Set<string>

  /** Names of the request fields that are read are added to `requestFields`, in lower case. */
  constructor(parsers: Parsers, requestFields: Set<string>) {
    this.#parsers = parsers
    this.#requestFields = requestFields
  }

  read(text: string, namespaceOf: Namespaces): ReadExpression {
    return attempt(() => {
      if (text.length > LENGTH_MAX) throw new Refused(`is longer than ${LENGTH_MAX} characters`, 'divide it')
      const quoted = withQuotedPaths(text)
      const sight: Sight = { namespaceOf, namespaces: {}, jsonPaths: [], looksIntoPayload: false, depth: 0 }
      const expression = this.#node(this.#parse(quoted), sight)
      if (!sight.looksIntoPayload) return expression
      return { kind: 'tree', text: quoted, namespaces: sight.namespaces, jsonPaths: sight.jsonPaths }
    })
  }

  readJsonPath(text: string): ReadExpression {
    return attempt(() => ({ kind: 'json-path', path: this.#jsonPath(text) }))
  }

  #parse(text: string): XPathNode {
    try {
      return this.#parsers.xpath(text)
    } catch {
      // What the library says of it is about its own states.
      throw new Refused('is no XPath', 'correct it')
    }
  }

  #jsonPath(text: string): JsonPath {
    try {
      return this.#parsers.jsonPath(text)
    } catch (error) {
      throw new Refused(`is no JSONPath: ${(error as Error).message}`, "correct it: $.a.b[0], $['a-b']")
    }
  }

  #node(node: XPathNode, sight: Sight): Expression {
    if (++sight.depth > DEPTH_MAX) throw new Refused(`is more than ${DEPTH_MAX} parts deep`, 'divide it')
    const expression = this.#nodeOf(node, sight)
    sight.depth--
    return expression
  }

  #nodeOf(node: XPathNode, sight: Sight): Expression {
    const kind = this.#parsers.classOf(node)
    if (kind === undefined) throw new Refused('has a part of a kind that is not known here', 'write it differently')
    const operator = OPERATIONS[kind]
    if (operator !== undefined) {
      return { kind: 'operation', operator, left: this.#node(node.lhs, sight), right: this.#node(node.rhs, sight) }
    }
    if (kind === 'UnaryMinusOperation') return { kind: 'negative', of: this.#node(node.rhs, sight) }
    if (kind === 'BarOperation') {
      sight.looksIntoPayload = true
      this.#node(node.lhs, sight)
      return this.#node(node.rhs, sight)
    }
    if (kind === 'XString') return { kind: 'literal', value: node.str }
    if (kind === 'XNumber') return { kind: 'literal', value: node.num }
    if (kind === 'VariableReference') return this.#variable(node.variable, sight)
    if (kind === 'FunctionCall') return this.#call(node, sight)
    return this.#path(node, sight)
  }

  #path({ filter, filterPredicates = [], locationPath }: XPathNode, sight: Sight): Expression {
    if (locationPath !== undefined || filterPredicates.length > 0) sight.looksIntoPayload = true
    for (const predicate of filterPredicates) this.#node(predicate, sight)
    for (const { nodeTest, predicates } of locationPath?.steps ?? []) {
      if (typeof nodeTest.prefix === 'string') resolve(nodeTest.prefix, sight)
      for (const predicate of predicates) this.#node(predicate, sight)
    }
    return filter === undefined ? { kind: 'literal', value: '' } : this.#node(filter, sight)
  }

  #variable(variable: string, sight: Sight): Expression {
    if (variable === 'body' || variable === 'header') {
      sight.looksIntoPayload = true
      return { kind: 'literal', value: '' }
    }
    const [prefix = '', name = ''] = variable.includes(':') ? variable.split(':') : ['', variable]
    const scope = SCOPE_PREFIXES.get(prefix)
    if (scope !== undefined) return this.#property(scope, name)
    throw new Refused(
      `there is no variable $${variable}`,
      'known are $ctx:name, $axis2:name, $trp:name, $body, $header',
    )
  }

  #property(scope: Scope, name: string): Expression {
    if (scope === 'transport') this.#requestFields.add(name.toLowerCase())
    return { kind: 'property', scope, name }
  }

  #call({ functionName, arguments: given }: XPathNode, sight: Sight): Expression {
    const name = this.#functionName(functionName, sight)
    const of = given.map(argument => this.#node(argument, sight))
    const row = FUNCTIONS[name]
    const [least, most] = arity(name)
    if (of.length === 0 && ABOUT_CONTEXT.includes(name)) sight.looksIntoPayload = true
    else if (of.length < least || of.length > most) {
      const wanted = least === most ? `${least}` : `${least} to ${most}`
      throw new Refused(`${functionName}() takes ${wanted} arguments`, 'correct it')
    }
    if (name === 'get-property') return this.#getProperty(of)
    if (name === 'json-eval') return this.#jsonEval(of[0]!, sight)
    if (row === undefined) sight.looksIntoPayload = true
    if (/^base64|^url-/.test(name) && of.length === 2) checkCharset(name, of[1]!)
    return { kind: 'call', name, of }
  }

  /** Its name in our table, without a prefix. */
  #functionName(qualified: string, sight: Sight): string {
    const at = qualified.indexOf(':')
    const name = qualified.slice(at + 1)
    const namespace = at === -1 ? '' : namespaceOfFunction(qualified.slice(0, at), sight)
    const isExtension = EXTENSIONS.includes(name)
    const isLater = LATER_FUNCTIONS.includes(name)
    const isXPath = !isExtension && (Object.hasOwn(FUNCTIONS, name) || Object.hasOwn(NODE_FUNCTIONS, name))
    if (namespace === '' && (isExtension || (isXPath && !isLater))) return name
    if (namespace === SEQUENCE_NAMESPACE && isExtension) return name
    if (namespace === FUNCTIONS_NAMESPACE && isXPath && !Object.hasOwn(NODE_FUNCTIONS, name)) return name
    const remedy = isLater ? `declare the prefix of ${FUNCTIONS_NAMESPACE}` : 'see the functions of sequences'
    throw new Refused(`there is no function ${qualified}()`, remedy)
  }

  #getProperty(of: readonly Expression[]): Expression {
    const texts = of.map(argument => (argument.kind === 'literal' ? String(argument.value) : ''))
    const [name = ''] = texts.slice(-1)
    if (texts.includes('')) throw new Refused('get-property() takes names in quotes', "write get-property('name')")
    const scope = SCOPES.get(texts.length === 1 ? 'default' : texts[0]!)
    if (scope === undefined) {
      throw new Refused(`there is no scope ${texts[0]}`, `known are ${[...SCOPES.keys()].join(', ')}`)
    }
    return texts.length === 1 && name === 'To' ? { kind: 'to' } : this.#property(scope, name)
  }

  #jsonEval(argument: Expression, sight: Sight): Expression {
    const text = argument.kind === 'literal' ? String(argument.value) : ''
    const path = this.#jsonPath(text)
    sight.jsonPaths.push(path)
    return { kind: 'json-path', path }
  }
}

function attempt(read: () => Expression): ReadExpression {
  try {
    return { expression: read(), why: '', remedy: '' }
  } catch (error) {
    if (error instanceof Refused) return { why: error.message, remedy: error.remedy }
    throw error
  }
}

function arity(name: string): readonly [least: number, most: number] {
  if (name === 'get-property') return [1, 2]
  if (name === 'json-eval') return [1, 1]
  const row = FUNCTIONS[name]
  return row === undefined ? NODE_FUNCTIONS[name]! : [row.least, row.most]
}

/** Sequences write `fn:concat()` and declare nothing, as the reference platform lets them. */
function namespaceOfFunction(prefix: string, sight: Sight): string {
  if (prefix !== 'fn' || sight.namespaceOf(prefix) !== undefined) return resolve(prefix, sight)
  sight.namespaces[prefix] = FUNCTIONS_NAMESPACE
  return FUNCTIONS_NAMESPACE
}

function resolve(prefix: string, sight: Sight): string {
  const namespace = sight.namespaceOf(prefix)
  if (namespace === undefined) throw new Refused(`the prefix ${prefix} is not declared`, `add xmlns:${prefix}="…"`)
  sight.namespaces[prefix] = namespace
  return namespace
}

function checkCharset(name: string, argument: Expression): void {
  const charset = argument.kind === 'literal' ? String(argument.value) : ''
  const known = Object.keys(CHARSETS).filter(one => one !== '')
  if (charset !== '' && Object.hasOwn(CHARSETS, charset)) return
  throw new Refused(`${name}() has no charset ${charset}`, `known are ${known.join(', ')}`)
}

/**
 * A JSONPath stands bare in `json-eval($.a)` and is no XPath: it gets quotes around it. What stands within quotes of
 * the expression is left alone.
 */
function withQuotedPaths(text: string): string {
  const CALL = /json-eval\(\s*/y
  let quoted = ''
  for (let at = 0; at < text.length; ) {
    const character = text[at]!
    if (character === "'" || character === '"') {
      const end = text.indexOf(character, at + 1)
      const next = end === -1 ? text.length : end + 1
      quoted += text.slice(at, next)
      at = next
      continue
    }
    CALL.lastIndex = at
    const call = CALL.exec(text)
    if (call === null || text[at + call[0].length] !== '$') {
      quoted += character
      at++
      continue
    }
    const start = at + call[0].length
    const end = closing(text, start)
    quoted += `${call[0]}${quote(text.slice(start, end).trimEnd())}`
    at = end
  }
  return quoted
}

/** Index of the bracket that closes the one in front of `from`. */
function closing(text: string, from: number): number {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    const character = text[at]!
    if (character === "'" || character === '"') {
      at = text.indexOf(character, at + 1)
      if (at === -1) break
    } else if (character === '(') depth++
    else if (character === ')' && depth-- === 0) return at
  }
  throw new Refused('json-eval() is not closed', 'add )')
}

/** XPath 1.0 has no escapes: a text with one kind of quotes stands in the other. */
function quote(path: string): string {
  if (!path.includes("'")) return `'${path}'`
  if (!path.includes('"')) return `"${path}"`
  throw new Refused('a JSONPath with both kinds of quotes', 'use one kind')
}
