/**
 * Bounds the XPath library for documents that clients choose. Node sets keep each node once, without searching; a path
 * visits no node twice for one step; an evaluation ends after a time.
 */
import { checkTime, ProcessorTimeLimit, TOO_LONG } from './flow-limits.ts'
import type { DomNode } from './lazy-libraries.ts'
import { MediationFault } from './mediation-fault.ts'

/** Longest evaluation of one expression in milliseconds: less than the silence after which its thread is terminated. */
const EVALUATION_MS = 2000
/** Nodes visited, or characters read, between two looks at the clock. */
const WORK_PER_LOOK = 4096
interface Step {
  readonly axis: number
  readonly nodeTest: { matches(node: DomNode, context: object): boolean }
  readonly predicates: readonly unknown[]
}

interface NodeSet {
  nodes: DomNode[]
  size: number
  /** Its nodes in document order, once they are sorted. */
  tree: readonly DomNode[] | null
  stringForNode(node: DomNode): string
}

/** The parts of the library that are replaced. */
export interface XPathInternals {
  readonly Step: { readonly DESCENDANTORSELF: number }
  readonly PathExpr: {
    applyStep(step: Pick<Step, 'axis' | 'nodeTest'>, context: object, node: DomNode): DomNode[]
    applySteps(steps: readonly Step[], context: object, nodes: readonly DomNode[]): readonly DomNode[]
  }
  readonly XBoolean: new (value: boolean) => object
  readonly XNumber: { readonly prototype: { numberFormat: RegExp } }
  readonly XNodeSet: {
    readonly prototype: {
      equals(this: NodeSet, other: object): object
      notequal(this: NodeSet, other: object): object
      addArray(this: NodeSet, nodes: readonly DomNode[]): void
      toArray(this: NodeSet): DomNode[]
      first(this: NodeSet): DomNode | null
      stringForNode(this: NodeSet, node: DomNode): string
    }
  }
}

/** The evaluation that this thread is in. Evaluations are synchronous. `work`: since the last look. */
const running = { isLimited: false, work: 0 }
const time = new ProcessorTimeLimit(EVALUATION_MS)

/** Runs one evaluation. Throws MediationFault where it computes for too long. `limitMs`: for tests. */
export function withinTime<T>(evaluate: () => T, limitMs = EVALUATION_MS): T {
  running.isLimited = true
  time.start(limitMs)
  try {
    return evaluate()
  } finally {
    running.isLimited = false
  }
}

/** Counts work. Throws LimitReached where the flow computes for too long, MediationFault where the evaluation does. */
export function spend(work: number): void {
  running.work += work
  if (running.work < WORK_PER_LOOK) return
  running.work = 0
  checkTime()
  if (!running.isLimited || !time.isOver) return
  const cause = `an XPath expression takes more than ${EVALUATION_MS} ms on this message`
  throw new MediationFault({ code: TOO_LONG.code, message: TOO_LONG.told, cause })
}

/** Texts that are numbers, matched in linear time: that of the library divides digits in every way before it fails. */
const NUMBER = /^\s*-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*$/

/** Replaces functions of the library; once per thread. */
export function boundXPath(library: XPathInternals): void {
  library.XNumber.prototype.numberFormat = NUMBER
  boundPaths(library)
  boundNodeSets(library)
}

function boundPaths({ PathExpr, Step: { DESCENDANTORSELF } }: XPathInternals): void {
  const { applyStep, applySteps } = PathExpr
  const counted = new WeakMap<object, Pick<Step, 'axis' | 'nodeTest'>>()

  PathExpr.applyStep = (step, context, node) => {
    let counting = counted.get(step)
    if (counting === undefined) {
      const { axis, nodeTest } = step
      const matches = (node: DomNode, context: object): boolean => {
        spend(1)
        return nodeTest.matches(node, context)
      }
      counting = { axis, nodeTest: { matches } }
      counted.set(step, counting)
    }
    spend(1)
    return applyStep(counting, context, node)
  }

  PathExpr.applySteps = (steps, context, nodes) => {
    let from: Iterable<DomNode> = nodes
    for (const step of steps) {
      const found = new Set<DomNode>()
      // A node that is found already has its descendants found, too.
      const isWhole = step.axis === DESCENDANTORSELF && step.predicates.length === 0
      for (const node of from) {
        if (isWhole && found.has(node)) continue
        for (const each of applySteps([step], context, [node])) found.add(each)
      }
      from = found
    }
    return [...from]
  }
}

function boundNodeSets({ XNodeSet, XBoolean }: XPathInternals): void {
  const { prototype } = XNodeSet
  const { stringForNode, equals, notequal } = prototype

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

  /** Two sets are compared by their texts, not each node with each node. One node ends where it finds its equal. */
  const areLarge = (set: NodeSet, other: object): other is NodeSet => {
    return other instanceof (XNodeSet as never) && set.size > 1 && (other as NodeSet).size > 1
  }
  prototype.equals = function (other) {
    if (!areLarge(this, other)) return equals.call(this, other)
    const texts = textsOf(this)
    return new XBoolean(other.nodes.some(node => texts.has(other.stringForNode(node))))
  }
  prototype.notequal = function (other) {
    if (!areLarge(this, other)) return notequal.call(this, other)
    return new XBoolean(textsOf(this).union(textsOf(other)).size > 1)
  }
}

/** Texts of nodes, each once. */
function textsOf(set: NodeSet): Set<string> {
  return new Set(set.nodes.map(node => set.stringForNode(node)))
}

function sorted(set: NodeSet): readonly DomNode[] {
  if (set.tree === null) {
    spend(set.size)
    set.tree = set.nodes.toSorted((one, other) => placeOf(one) - placeOf(other))
  }
  return set.tree
}

/** A namespace, which the library makes, stands behind its element. */
function placeOf({ order, ownerElement }: DomNode): number {
  return order ?? (ownerElement?.order ?? 0) + 0.5
}
