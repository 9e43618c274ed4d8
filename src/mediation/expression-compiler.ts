/** Compiles expressions to closures. A closure that needs a library loads it when it first runs. */
import type { Expression, JsonPath, Operator, XPathExpression } from './expression.ts'
import { formatDate } from './date-pattern.ts'
import { isSameNumber } from './formats/json-text.ts'
import { FUNCTIONS } from './functions.ts'
import { propertyOf } from './get-property.ts'
import { jsonView } from './json-xml.ts'
import type { Message } from './message.ts'
import { compileJsonPath } from './lazy-libraries.ts'
import { environmentReader } from './outer-values.ts'
import { TEXT_MAX, tooLong } from './property-type.ts'
import { isTrue, plain, VALUE_FUNCTIONS } from './value-functions.ts'
import { booleanOf, digitsOf, type Json, memberOf, numberOf, textOf, type Value, valueOfJson } from './value.ts'
import { compileNodes as compileXPathNodes, compileXPath, type FindNodes } from './xpath-expression.ts'

/** A missing property is ''. */
export type Evaluate = (message: Message) => Value

/** `warn`: called when an expression cannot be evaluated; its value is '' then. */
export function compileExpression(expression: Expression, warn: (cause: string) => void): Evaluate {
  switch (expression.kind) {
    case 'literal': {
      const { value } = expression
      return () => value
    }
    case 'property': {
      const { scope, name } = expression
      return message => message.read(scope, name) ?? ''
    }
    case 'environment': {
      const read = environmentReader(expression.name)
      return message => read(message.secrets)
    }
    case 'lookup': {
      const of = expression.of.map(argument => compileExpression(argument, warn))
      return message =>
        propertyOf(
          message,
          of.map(evaluate => textOf(evaluate(message))),
        )
    }
    case 'to':
      return message => message.to
    case 'json-path': {
      const find = compilePath(expression.path)
      return message => valueOfJson(find(jsonView(message)))
    }
    case 'call': {
      const of = expression.of.map(argument => compileExpression(argument, warn))
      const { apply } = FUNCTIONS[expression.name]!
      return message => apply(of.map(evaluate => evaluate(message)))
    }
    case 'clock': {
      const { pattern } = expression
      return message => {
        message.dependsOnRequest = true
        return pattern === '' ? String(Date.now()) : formatDate(new Date(), pattern)
      }
    }
    case 'path': {
      const [of, find] = [compileExpression(expression.of, warn), compilePath(expression.path)]
      return message => valueOfJson(find(structured(of(message))))
    }
    case 'filter': {
      const [of, ...outer] = [expression.of, ...expression.outer].map(value => compileExpression(value, warn))
      return compileFilter(of!, outer, compilePath(expression.path))
    }
    case 'apply': {
      const of = expression.of.map(argument => compileExpression(argument, warn))
      return compileFunction(expression.name, of, warn)
    }
    case 'choice': {
      const { condition, yes, otherwise } = expression
      const [when, then, no] = [condition, yes, otherwise].map(each => compileExpression(each, warn))
      return message => (isTrue(when!(message)) ? then!(message) : no!(message))
    }
    case 'negative': {
      const of = compileExpression(expression.of, warn)
      return message => -numberOf(of(message))
    }
    case 'operation': {
      const [left, right] = [expression.left, expression.right].map(side => compileExpression(side, warn))
      return compileOperation(expression.operator, left!, right!)
    }
    case 'xpath':
      return compileXPath(expression, compilePath, warn)
  }
}

/** Compiles an expression that finds the nodes of a document. */
export function compileNodes(expression: XPathExpression, warn: (cause: string) => void): FindNodes {
  return compileXPathNodes(expression, compilePath, warn)
}

/** A value that is too long is a fault on a worker; a reactor, which words faults, leaves it out. */
function compileFunction(name: string, of: readonly Evaluate[], warn: (cause: string) => void): Evaluate {
  const { apply } = VALUE_FUNCTIONS[name]!
  const cause = `${name} makes a value beyond the limits of bodies`
  return message => {
    const { task } = message
    const values = of.map(evaluate => evaluate(message))
    const value = apply(values, task === null ? TEXT_MAX : task.limits.textLength)
    if (value !== undefined) return value
    if (task !== null) throw tooLong(cause)
    warn(cause)
    return ''
  }
}

/** The values from elsewhere are parts of the root, so that no text of a client becomes part of the path. */
function compileFilter(of: Evaluate, outer: readonly Evaluate[], find: ReturnType<typeof compilePath>): Evaluate {
  return message => {
    const root = { of: structured(of(message)), outer: outer.map(evaluate => plain(evaluate(message))) }
    return valueOfJson(find(root))
  }
}

/** JSON that a path goes into; a text may be JSON. */
function structured(value: Value): Json {
  const json = typeof value === 'string' ? (VALUE_FUNCTIONS.object!.apply([value], TEXT_MAX) ?? '') : value
  return plain(json)
}

function compileOperation(operator: Operator, left: Evaluate, right: Evaluate): Evaluate {
  if (operator === 'or') return message => booleanOf(left(message)) || booleanOf(right(message))
  if (operator === 'and') return message => booleanOf(left(message)) && booleanOf(right(message))
  if (operator === '=') return message => isSame(left(message), right(message))
  if (operator === '!=') return message => !isSame(left(message), right(message))
  const apply = ARITHMETIC[operator]
  return message => apply(numberOf(left(message)), numberOf(right(message)))
}

const ARITHMETIC: Readonly<Record<Exclude<Operator, 'or' | 'and' | '=' | '!='>, (a: number, b: number) => Value>> = {
  '<': (a, b) => a < b,
  '>': (a, b) => a > b,
  '<=': (a, b) => a <= b,
  '>=': (a, b) => a >= b,
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  div: (a, b) => a / b,
  mod: (a, b) => a % b,
}

/** XPath 1.0 3.4, except that the texts true and false equal booleans, as sequences compare BOOLEAN properties. */
function isSame(left: Value, right: Value): boolean {
  const [one, other] = [left, right].map(value => (value === 'true' ? true : value === 'false' ? false : value))
  if (typeof left === 'boolean' || typeof right === 'boolean') return booleanOf(one!) === booleanOf(other!)
  const [ofLeft, ofRight] = [left, right].map(digitsOf)
  if (ofLeft !== undefined && ofRight !== undefined) return isSameNumber(ofLeft, ofRight)
  if (ofLeft !== undefined || ofRight !== undefined) return numberOf(left) === numberOf(right)
  return textOf(left) === textOf(right)
}

/** The closure returns undefined where the path finds nothing, and an array for a path to several places. */
function compilePath({ text, keys }: JsonPath): (json: Json | undefined) => Json | undefined {
  if (keys !== null) return json => keys.reduce(memberOf, json)
  let query: ReturnType<typeof compileJsonPath> | undefined
  return json => {
    if (json === undefined) return undefined
    query ??= compileJsonPath(text)
    const found = query.query(json).values()
    return found.length === 0 ? undefined : found
  }
}
