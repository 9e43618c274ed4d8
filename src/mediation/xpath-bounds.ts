/**
 * Bounds the XPath library for documents that clients choose. Node sets keep each node once, without searching; an
 * evaluation ends after a time, and remembers what it has found.
 */
import { hasHeapRoom } from '../runtime/heap-room.ts'
import { checkTime, noRoom, ProcessorTimeLimit, TOO_LONG } from './flow-limits.ts'
import type { DomNode } from './lazy-libraries.ts'
import { MediationFault } from './mediation-fault.ts'
import type { NodeSet, XPathInternals } from './xpath-internals.ts'

/** Longest evaluation of one expression in milliseconds: less than the silence after which its thread is terminated. */
const EVALUATION_MS = 2000
/** Nodes visited, or characters read, between two looks at the clock. */
const WORK_PER_LOOK = 4096
/** Room in the heap for the nodes and sets that are made until the next look. */
const ROOM_BYTES = 2_097_152

/** The evaluation that this thread is in. Evaluations are synchronous. `work`: since the last look. */
const running = { isLimited: false, work: 0, answers: new Map<object, Map<object, unknown>>() }
const time = new ProcessorTimeLimit(EVALUATION_MS)

/** Runs one evaluation. Throws MediationFault where it computes for too long. `limitMs`: for tests. */
export function withinTime<T>(evaluate: () => T, limitMs = EVALUATION_MS): T {
  running.isLimited = true
  time.start(limitMs)
  try {
    return evaluate()
  } finally {
    running.isLimited = false
    running.answers = new Map()
  }
}

/** Returns the answer of `find`, which an evaluation calls once for each part of its expression and each node. */
export function remembered<T>(part: object, node: object, find: () => T): T {
  if (!running.isLimited) return find()
  let answers = running.answers.get(part)
  if (answers === undefined) {
    answers = new Map()
    running.answers.set(part, answers)
  }
  let answer = answers.get(node)
  if (answer === undefined) {
    answer = find()
    answers.set(node, answer)
  }
  return answer as T
}

/** Counts work. Throws LimitReached where the flow computes for too long, MediationFault where the evaluation does. */
export function spend(work: number): void {
  running.work += work
  if (running.work < WORK_PER_LOOK) return
  running.work = 0
  checkTime()
  if (!hasHeapRoom(ROOM_BYTES)) throw noRoom('an XPath needs more memory for this message than the worker has left')
  if (!running.isLimited || !time.isOver) return
  const cause = `an XPath expression takes more than ${EVALUATION_MS} ms on this message`
  throw new MediationFault({ code: TOO_LONG.code, message: TOO_LONG.told, cause })
}

/** Texts that are numbers, matched in linear time: that of the library divides digits in every way before it fails. */
const NUMBER = /^\s*-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*$/

/** Replaces functions of the library; once per thread. */
export function boundXPath({ XNumber, XNodeSet }: XPathInternals): void {
  XNumber.prototype.numberFormat = NUMBER
  const { prototype } = XNodeSet
  const { stringForNode } = prototype

  prototype.addArray = function (nodes) {
    const all = new Set(this.nodes)
    for (const node of nodes) all.add(node)
    this.tree = null
    this.nodes = [...all]
    this.size = this.nodes.length
  }
  prototype.toArray = function () {
    return [...sorted(this)]
  }
  prototype.first = function () {
    return sorted(this)[0] ?? null
  }
  prototype.stringForNode = function (node) {
    const text = stringForNode.call(this, node)
    spend(text.length)
    return text
  }
}

function sorted(set: NodeSet): readonly DomNode[] {
  if (set.tree === null) {
    spend(set.size)
    const { nodes } = set
    const isSorted = nodes.every((node, at) => at === 0 || placeOf(nodes[at - 1]!) < placeOf(node))
    set.tree = isSorted ? nodes : nodes.toSorted((one, other) => placeOf(one) - placeOf(other))
  }
  return set.tree
}

/** A namespace, which the library makes, stands behind its element. */
export function placeOf({ order, ownerElement }: DomNode): number {
  return order ?? (ownerElement?.order ?? 0) + 0.5
}
