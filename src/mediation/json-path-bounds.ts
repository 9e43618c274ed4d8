/**
 * Bounds the JSONPath library for documents that clients choose. Every step is counted, a walk needs no stack, and an
 * evaluation ends when its flow computes for too long, or has no room in the heap.
 */
import { hasHeapRoom } from '../runtime/heap-room.ts'
import { checkTime, ProcessorTimeLimit, TOO_LONG } from './flow-limits.ts'
import { isObject, isSameNumber, rawDigits } from './formats/json-text.ts'
import { MediationFault } from './mediation-fault.ts'
import type { Json } from './value.ts'

/** Nodes visited, or texts of 256 characters compared, between two looks at time and heap. */
const WORK_PER_LOOK = 4096
const TEXT_PER_WORK = 256
/** Keys of a location, which each node has of its own. */
const KEYS_PER_WORK = 32
/** Room that must be free at a look: more than the work until the next one needs. */
const ROOM_BYTES = 32 * 1_048_576

interface Node {
  readonly value: Json
  readonly location: readonly (string | number)[]
  readonly root: Json
}

interface Selector {
  lazyResolve(node: Node): Iterable<Node>
}

interface Segment {
  readonly selectors: readonly Selector[]
  resolve(nodes: readonly Node[]): Node[]
}

interface Query {
  readonly segments: readonly Segment[]
  query(value: Json): object
}

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

interface Infix {
  readonly operator: string
  readonly left: Operand
  readonly right: Operand
  evaluate(context: Context): unknown
}

/** The parts of the library that are replaced. */
export interface JsonPathInternals {
  readonly JSONPathNode: new (value: Json, location: Node['location'], root: Json) => Node
  readonly JSONPathNodeList: new (nodes: readonly Node[]) => { readonly nodes: readonly Node[] }
  readonly JSONPathQuery: { readonly prototype: Query }
  readonly Nothing: unknown
  readonly jsonpath: {
    readonly expressions: {
      readonly InfixExpression: { readonly prototype: Infix }
      readonly LogicalExpression: { readonly prototype: Operand }
      readonly RelativeQuery: { readonly prototype: FilterQuery }
      readonly RootQuery: { readonly prototype: FilterQuery }
    }
  }
  compile(path: string): Query
}

/** Longest processor time of one evaluation in milliseconds, as of an XPath expression. */
const EVALUATION_MS = 2000

let work = 0
/** This thread is in an evaluation. Evaluations are synchronous. */
let isRunning = false
const time = new ProcessorTimeLimit(EVALUATION_MS)

/** Counts work. Throws LimitReached where the flow computes for too long, MediationFault without room in the heap. */
export function spend(amount: number): void {
  work += amount
  if (work < WORK_PER_LOOK) return
  work = 0
  checkTime()
  if (isRunning && time.isOver) {
    const cause = `a JSONPath takes more than ${EVALUATION_MS} ms on this message`
    throw new MediationFault({ code: TOO_LONG.code, message: TOO_LONG.told, cause })
  }
  if (hasHeapRoom(ROOM_BYTES)) return
  const cause = 'a JSONPath needs more memory for this message than there is left'
  throw new MediationFault({ code: 102533, message: 'The message could not be processed', cause })
}

/** Counts the reading of a text. */
function spendText({ length }: string): void {
  spend(1 + Math.floor(length / TEXT_PER_WORK))
}

/** Replaces methods of the library; once per thread. */
export function boundJsonPath(library: JsonPathInternals): void {
  const { JSONPathNode, JSONPathQuery, compile } = library
  const [child, descendant] = ['$[*]', '$..*'].map(path => Object.getPrototypeOf(compile(path).segments[0]!) as Segment)

  function select(selectors: readonly Selector[], node: Node, found: Node[]): void {
    spend(selectors.length)
    // A number, which the library takes for an object.
    if (JSON.isRawJSON(node.value)) return
    for (const selector of selectors) {
      for (const each of selector.lazyResolve(node)) {
        spend(1)
        found.push(each)
      }
    }
  }

  child!.resolve = function (nodes) {
    const found: Node[] = []
    for (const node of nodes) select(this.selectors, node, found)
    return found
  }

  descendant!.resolve = function (nodes) {
    const found: Node[] = []
    const walked = nodes.length > 1 ? new WalkedNodes() : null
    for (const top of nodes) {
      const pending = [top]
      for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
        if (walked?.has(node)) continue
        select(this.selectors, node, found)
        for (const [key, value] of entriesFromLast(node.value)) {
          spend(1 + Math.floor(node.location.length / KEYS_PER_WORK))
          pending.push(new JSONPathNode(value, [...node.location, key], node.root))
        }
      }
    }
    return found
  }

  JSONPathQuery.prototype.query = function (value) {
    time.start()
    isRunning = true
    try {
      return nodesOf(library, this, value, value)
    } finally {
      isRunning = false
    }
  }

  boundFilters(library)
}

/** Nodes that a query finds. Within a filter `root` is that of the document, where queries with `$` begin. */
function nodesOf({ JSONPathNode, JSONPathNodeList }: JsonPathInternals, { segments }: Query, value: Json, root: Json) {
  let nodes = [new JSONPathNode(value, [], root)]
  for (const segment of segments) nodes = segment.resolve(nodes)
  return new JSONPathNodeList(nodes)
}

/**
 * Nodes with descendants that a segment has walked through. Without them each of `$..a..a..a` would multiply the time
 * by the depth of the document.
 */
class WalkedNodes {
  readonly #locations = new Map<object, Node['location']>()

  /** Adds a node; true where it is in already. Sequences may put one object into two places. */
  has({ value, location }: Node): boolean {
    if (typeof value !== 'object' || value === null) return false
    const known = this.#locations.get(value)
    if (known === undefined) {
      this.#locations.set(value, location)
      return false
    }
    spend(1 + Math.floor(location.length / KEYS_PER_WORK))
    return known.length === location.length && known.every((key, at) => key === location[at])
  }
}

function* entriesFromLast(value: Json): Generator<readonly [string | number, Json]> {
  if (Array.isArray(value)) {
    for (let at = value.length - 1; at >= 0; at--) yield [at, value[at]!]
  } else if (isObject(value)) {
    yield* Object.entries(value).reverse()
  }
}

/** Filters count each item, and comparisons what they compare. */
function boundFilters(library: JsonPathInternals): void {
  const { JSONPathNodeList, Nothing } = library
  const { InfixExpression, LogicalExpression, RelativeQuery, RootQuery } = library.jsonpath.expressions
  const { evaluate: evaluateInfix } = InfixExpression.prototype
  const { evaluate: evaluateLogical } = LogicalExpression.prototype

  LogicalExpression.prototype.evaluate = function (context) {
    spend(1)
    return evaluateLogical.call(this, context)
  }

  // The library takes the item for the root of what is below it.
  RelativeQuery.prototype.evaluate = function ({ currentValue, rootValue }) {
    return nodesOf(library, this.path, currentValue, rootValue)
  }
  RootQuery.prototype.evaluate = function ({ rootValue }) {
    return nodesOf(library, this.path, rootValue, rootValue)
  }

  /** RFC 9535 2.3.5.2.2: a query that finds nothing is compared as nothing. */
  const comparable = (operand: Operand, context: Context): unknown => {
    const value = operand.evaluate(context)
    if (!(value instanceof JSONPathNodeList)) return value
    return value.nodes.length === 0 ? Nothing : value.nodes[0]!.value
  }

  InfixExpression.prototype.evaluate = function (context) {
    spend(1)
    const compare = COMPARISONS[this.operator]
    if (compare === undefined) return evaluateInfix.call(this, context)
    return compare(comparable(this.left, context), comparable(this.right, context))
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
      const keys = Object.keys(one)
      spend(keys.length)
      if (keys.length !== Object.keys(other).length) return false
      for (const key of keys) {
        if (!Object.hasOwn(other, key)) return false
        pending.push([one[key]!, other[key]!])
      }
    }
  }
  return true
}
