/**
 * Bounds the JSONPath library for documents that clients choose. Every step is counted, a walk needs no stack, and an
 * evaluation ends when its flow computes for too long, or has no room in the heap.
 */
import { hasHeapRoom } from '../runtime/heap-room.ts'
import { checkTime, ProcessorTimeLimit, TOO_LONG } from './flow-limits.ts'
import { isObject } from './formats/json-text.ts'
import { MediationFault } from './mediation-fault.ts'
import type { Json } from './value.ts'

/** Nodes visited, or texts of 256 characters compared, between two looks at time and heap. */
const WORK_PER_LOOK = 4096
const TEXT_PER_WORK = 256
/** Keys of a location that are listed, or compared, as one node is visited. */
const KEYS_PER_WORK = 32
/** Room that must be free at a look: more than the work until the next one needs. */
const ROOM_BYTES = 32 * 1_048_576

type Key = string | number

/**
 * Keys from the root to a node, linked, because lists of keys multiply the memory of a result by the depth of the
 * document. The selectors of the library only add a key.
 */
class Location {
  readonly parent: Location | null
  readonly key: Key

  constructor(parent: Location | null, key: Key) {
    this.parent = parent
    this.key = key
  }

  concat(key: Key): Location {
    return new Location(this, key)
  }

  keys(): Key[] {
    const keys: Key[] = []
    for (let at: Location = this; at.parent !== null; at = at.parent) keys.push(at.key)
    spend(1 + Math.floor(keys.length / KEYS_PER_WORK))
    return keys.reverse()
  }

  isSame(other: Location): boolean {
    let [one, two]: (Location | null)[] = [this, other]
    for (let keys = 1; one !== two; keys++) {
      if (one === null || two === null || one!.key !== two!.key) return false
      if (keys % KEYS_PER_WORK === 0) spend(1)
      ;[one, two] = [one!.parent, two!.parent]
    }
    return true
  }
}

interface Node {
  readonly value: Json
  readonly location: Location
  readonly root: Json
}

interface Selector {
  lazyResolve(node: Node): Iterable<Node>
}

export interface Segment {
  readonly selectors: readonly Selector[]
  /** It begins with `..`. */
  isDescendant?: boolean
  resolve(nodes: readonly Node[]): Node[]
}

export interface Query {
  readonly segments: readonly Segment[]
  query(value: Json): NodeList
}

interface NodeList {
  readonly nodes: readonly Node[]
  locations(): Key[][]
}

/** The parts of the library that are replaced. */
export interface JsonPathInternals {
  readonly JSONPathNode: new (value: Json, location: Location, root: Json) => Node
  readonly JSONPathNodeList: { new (nodes: readonly Node[]): NodeList; readonly prototype: NodeList }
  readonly JSONPathQuery: { readonly prototype: Query }
  compile(path: string): Query
}

/** Longest processor time of one evaluation in milliseconds, as of an XPath expression. */
const EVALUATION_MS = 2000

let work = 0
/** Answers of the evaluation that this thread is in; null: it is in none. Evaluations are synchronous. */
let answers: Map<object, unknown> | null = null
const time = new ProcessorTimeLimit(EVALUATION_MS)

/** Counts work. Throws LimitReached where the flow computes for too long, MediationFault without room in the heap. */
export function spend(amount: number): void {
  work += amount
  if (work < WORK_PER_LOOK) return
  work = 0
  checkTime()
  if (answers !== null && time.isOver) {
    const cause = `a JSONPath takes more than ${EVALUATION_MS} ms on this message`
    throw new MediationFault({ code: TOO_LONG.code, message: TOO_LONG.told, cause })
  }
  if (hasHeapRoom(ROOM_BYTES)) return
  const cause = 'a JSONPath needs more memory for this message than there is left'
  throw new MediationFault({ code: 102533, message: 'The message could not be processed', cause })
}

/** Counts the reading of a text. */
export function spendText({ length }: string): void {
  spend(1 + Math.floor(length / TEXT_PER_WORK))
}

/** What `find` returns, which one evaluation asks once for each `of`. */
export function remembered<T>(of: object, find: () => T): T {
  let answer = answers?.get(of)
  if (answer === undefined) {
    answer = find()
    answers?.set(of, answer)
  }
  return answer as T
}

/** Nodes that the selectors of a segment select from one node. */
export function* selected({ selectors }: Segment, node: Node): Generator<Node> {
  spend(selectors.length)
  // A number, which the library takes for an object.
  if (JSON.isRawJSON(node.value)) return
  for (const selector of selectors) {
    for (const each of selector.lazyResolve(node)) {
      spend(1)
      yield each
    }
  }
}

/** The root of a query. Within a filter `root` is that of the document, where queries with `$` begin. */
export function nodeOf({ JSONPathNode }: JsonPathInternals, value: Json, root: Json): Node {
  return new JSONPathNode(value, new Location(null, ''), root)
}

export function nodesOf(library: JsonPathInternals, { segments }: Query, value: Json, root: Json): NodeList {
  let nodes = [nodeOf(library, value, root)]
  for (const segment of segments) nodes = segment.resolve(nodes)
  return new library.JSONPathNodeList(nodes)
}

/** Replaces methods of the library; once per thread. */
export function boundJsonPath(library: JsonPathInternals): void {
  const { JSONPathNode, JSONPathNodeList, JSONPathQuery, compile } = library
  const [child, descendant] = ['$[*]', '$..*'].map(path => Object.getPrototypeOf(compile(path).segments[0]!) as Segment)

  child!.resolve = function (nodes) {
    const found: Node[] = []
    for (const node of nodes) for (const each of selected(this, node)) found.push(each)
    return found
  }

  descendant!.isDescendant = true
  descendant!.resolve = function (nodes) {
    const found: Node[] = []
    const walked = nodes.length > 1 ? new WalkedNodes() : null
    for (const top of nodes) {
      const pending = [top]
      for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
        if (walked?.has(node)) continue
        for (const each of selected(this, node)) found.push(each)
        for (const [key, value] of entriesFromLast(node.value)) {
          spend(1)
          pending.push(new JSONPathNode(value, node.location.concat(key), node.root))
        }
      }
    }
    return found
  }

  JSONPathQuery.prototype.query = function (value) {
    time.start()
    answers = new Map()
    try {
      return nodesOf(library, this, value, value)
    } finally {
      answers = null
    }
  }

  JSONPathNodeList.prototype.locations = function () {
    return this.nodes.map(({ location }) => location.keys())
  }
}

/**
 * Nodes with descendants that a segment has walked through. Without them each of `$..a..a..a` would multiply the time
 * by the depth of the document.
 */
class WalkedNodes {
  readonly #locations = new Map<object, Location>()

  /** Adds a node; true where it is in already. Sequences may put one object into two places. */
  has({ value, location }: Node): boolean {
    if (typeof value !== 'object' || value === null) return false
    const known = this.#locations.get(value)
    if (known === undefined) {
      this.#locations.set(value, location)
      return false
    }
    return known.isSame(location)
  }
}

function* entriesFromLast(value: Json): Generator<readonly [Key, Json]> {
  if (Array.isArray(value)) {
    for (let at = value.length - 1; at >= 0; at--) yield [at, value[at]!]
  } else if (isObject(value)) {
    yield* Object.entries(value).reverse()
  }
}
