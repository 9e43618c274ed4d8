/**
 * Filters of JSONPath over documents that clients choose. A filter asks its queries for each item, and those with `..`
 * go through what is within: what they find below a value is kept until the evaluation ends.
 */
import { isObject, isSameNumber, rawDigits } from './formats/json-text.ts'
import { type JsonPathInternals, nodeOf, nodesOf, type Query, remembered } from './json-path-bounds.ts'
import { type Segment, selected, spend, spendText } from './json-path-bounds.ts'
import type { Json } from './value.ts'

interface Context {
  readonly currentValue: Json
  readonly rootValue: Json
}

interface Operand {
  evaluate(context: Context): unknown
}

interface FilterQuery extends Operand {
  readonly path: Query
}

interface Infix extends Operand {
  readonly operator: string
  readonly left: Operand
  readonly right: Operand
}

interface Call extends Operand {
  readonly name: string
  readonly args: readonly Operand[]
}

type Class<T> = (abstract new () => T) & { readonly prototype: T }

/** The parts of the library that are replaced. */
export interface JsonPathFilterInternals extends JsonPathInternals {
  readonly Nothing: unknown
  readonly jsonpath: {
    readonly expressions: {
      readonly FunctionExtension: Class<Call>
      readonly InfixExpression: Class<Infix>
      readonly LogicalExpression: Class<Operand & { readonly expression: Operand }>
      readonly PrefixExpression: Class<Operand & { readonly right: Operand }>
      readonly RelativeQuery: Class<FilterQuery>
      readonly RootQuery: Class<FilterQuery>
    }
  }
}

/** How many nodes a query finds, and the value of one of them. */
interface Finding {
  readonly count: number
  readonly value: Json
}

const NONE: Finding = { count: 0, value: null }

function sum(one: Finding, other: Finding): Finding {
  return one.count === 0 ? other : { count: one.count + other.count, value: one.value }
}

/** Nodes that a use of a query counts: an existence test ends at the first one. */
const COUNTED = { existence: 1, value: 2, count: Number.POSITIVE_INFINITY } as const

/** What one query finds below each value, in one evaluation. */
class Findings {
  readonly #library: JsonPathInternals
  readonly #segments: readonly Segment[]
  readonly #root: Json
  readonly #most: number
  /** What the segments from a `..` on find below a value. */
  readonly #known: readonly Map<Json, Finding>[]

  constructor(library: JsonPathInternals, { segments }: Query, root: Json, most: number) {
    this.#library = library
    this.#segments = segments
    this.#root = root
    this.#most = most
    this.#known = segments.map(() => new Map())
  }

  /** `at`: the first segment. */
  below(value: Json, at = 0): Finding {
    const segment = this.#segments[at]
    if (segment === undefined) return { count: 1, value }
    return segment.isDescendant ? this.#within(value, at) : this.#selected(value, at)
  }

  #selected(value: Json, at: number): Finding {
    let found = NONE
    for (const each of selected(this.#segments[at]!, nodeOf(this.#library, value, this.#root))) {
      found = sum(found, this.below(each.value, at + 1))
      if (found.count >= this.#most) break
    }
    return found
  }

  /** Without recursion into the value, because a document may be deeper than the stack. */
  #within(top: Json, at: number): Finding {
    const known = this.#known[at]!
    const open: { readonly value: Json; readonly inner: Json[]; found: Finding }[] = []
    const enter = (value: Json): void => {
      if (!known.has(value)) open.push({ value, inner: containersIn(value), found: this.#selected(value, at) })
    }
    enter(top)
    for (let around = open.at(-1); around !== undefined; around = open.at(-1)) {
      if (around.found.count >= this.#most) {
        for (const { value } of open) known.set(value, around.found)
        break
      }
      const inner = around.inner.at(-1)
      if (inner === undefined) {
        known.set(around.value, around.found)
        open.pop()
      } else if (known.has(inner)) {
        around.found = sum(around.found, known.get(inner)!)
        around.inner.pop()
      } else enter(inner)
    }
    return known.get(top)!
  }
}

/** Objects and arrays in a value, the last one first. */
function containersIn(value: Json): Json[] {
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return []
  const inner: readonly Json[] = Array.isArray(value) ? value : Object.values(value)
  spend(inner.length)
  return inner.filter(each => typeof each === 'object' && each !== null).reverse()
}

/** Replaces methods of the library; once per thread. */
export function boundFilters(library: JsonPathFilterInternals): void {
  const { Nothing, JSONPathNodeList } = library
  const { FunctionExtension, InfixExpression, LogicalExpression, ...others } = library.jsonpath.expressions
  const { PrefixExpression, RelativeQuery, RootQuery } = others
  const { evaluate: call } = FunctionExtension.prototype

  /** What a query finds; undefined for another operand. */
  function findingOf(operand: Operand, context: Context, use: keyof typeof COUNTED): Finding | undefined {
    if (!(operand instanceof RelativeQuery || operand instanceof RootQuery)) return undefined
    const { path } = operand
    // A node that several descendant segments find would be counted several times (D925).
    if (use !== 'existence' && path.segments.filter(({ isDescendant }) => isDescendant).length > 1) return undefined
    const findings = remembered(path, () => new Findings(library, path, context.rootValue, COUNTED[use]))
    if (operand instanceof RelativeQuery) return findings.below(context.currentValue)
    return remembered(operand, () => findings.below(context.rootValue))
  }

  function isTrue(operand: Operand, context: Context): boolean {
    spend(1)
    const finding = findingOf(operand, context, 'existence')
    return finding === undefined ? operand.evaluate(context) !== false : finding.count > 0
  }

  /** Operands that are the same for each item. */
  function isConstant(operand: Operand): boolean {
    if (operand instanceof FunctionExtension) return operand.args.every(isConstant)
    return !(operand instanceof RelativeQuery)
  }

  /** RFC 9535 2.3.5.2.2: a query that finds nothing is compared as nothing. */
  function comparable(operand: Operand, context: Context): unknown {
    const value = operand.evaluate(context)
    if (!(value instanceof JSONPathNodeList)) return value
    return value.nodes.length === 0 ? Nothing : value.nodes[0]!.value
  }

  LogicalExpression.prototype.evaluate = function (context) {
    return isTrue(this.expression, context)
  }
  PrefixExpression.prototype.evaluate = function (context) {
    return !isTrue(this.right, context)
  }
  InfixExpression.prototype.evaluate = function (context) {
    const { operator, left, right } = this
    if (operator === '&&') return isTrue(left, context) && isTrue(right, context)
    if (operator === '||') return isTrue(left, context) || isTrue(right, context)
    spend(1)
    return COMPARISONS[operator]!(comparable(left, context), comparable(right, context))
  }
  RelativeQuery.prototype.evaluate = function ({ currentValue, rootValue }) {
    return nodesOf(library, this.path, currentValue, rootValue)
  }
  RootQuery.prototype.evaluate = function ({ rootValue }) {
    return remembered(this, () => nodesOf(library, this.path, rootValue, rootValue))
  }
  FunctionExtension.prototype.evaluate = function (context) {
    const { name, args } = this
    if (name === 'count' || name === 'value') {
      const finding = findingOf(args[0]!, context, name)
      if (finding !== undefined) return name === 'count' ? finding.count : finding.count === 1 ? finding.value : Nothing
    }
    return isConstant(this) ? remembered(this, () => call.call(this, context)) : call.call(this, context)
  }
}

const COMPARISONS: Readonly<Record<string, (left: unknown, right: unknown) => boolean>> = {
  '==': isEqual,
  '!=': (left, right) => !isEqual(left, right),
  '<': isLess,
  '>': (left, right) => isLess(right, left),
  '<=': (left, right) => isLess(left, right) || isEqual(left, right),
  '>=': (left, right) => isLess(right, left) || isEqual(left, right),
}

function isLess(left: unknown, right: unknown): boolean {
  const [one, other] = [numberOf(left), numberOf(right)]
  if (one !== undefined && other !== undefined) return one < other
  if (typeof left !== 'string' || typeof right !== 'string') return false
  spendText(left)
  return left < right
}

function numberOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  return JSON.isRawJSON(value) ? Number(value.rawJSON) : undefined
}

/** RFC 9535 2.3.5.2.2; numbers beyond a double are equal by their texts. */
function isEqual(left: unknown, right: unknown): boolean {
  const pending: [Json, Json][] = [[left as Json, right as Json]]
  for (let pair = pending.pop(); pair !== undefined; pair = pending.pop()) {
    const [one, other] = pair
    spend(1)
    if (typeof one === 'string' && typeof other === 'string') spendText(one)
    if (one === other) continue
    const [digits, others] = [one, other].map(json => (typeof json === 'number' ? String(json) : rawDigits(json)))
    if (digits !== undefined && others !== undefined) {
      if (!isSameNumber(digits, others)) return false
    } else if (Array.isArray(one)) {
      if (!Array.isArray(other) || one.length !== other.length) return false
      spend(one.length)
      for (const [at, item] of one.entries()) pending.push([item, other[at]!])
    } else {
      if (!isObject(one) || !isObject(other)) return false
      const keys = keysOf(one)
      if (keys.length !== keysOf(other).length) return false
      spend(keys.length)
      for (const key of keys) {
        if (!Object.hasOwn(other, key)) return false
        pending.push([one[key]!, other[key]!])
      }
    }
  }
  return true
}

/** Names of an object; those of an object of the root would be listed for each item. */
function keysOf(object: object): readonly string[] {
  return remembered(object, () => {
    const keys = Object.keys(object)
    spend(keys.length)
    return keys
  })
}
