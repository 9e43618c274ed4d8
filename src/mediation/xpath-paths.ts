/**
 * Steps of location paths over documents that clients choose, in place of those of the XPath library. A step visits no
 * node twice; axes to the sides of a node are parts of lists that an evaluation makes once for each parent or document.
 */
import type { DomNode } from './lazy-libraries.ts'
import { placeOf, remembered, spend } from './xpath-bounds.ts'
import {
  isA,
  isOf,
  type NodeSet,
  type Path,
  type XPathAny,
  type XPathContextInternals as Context,
  type XPathInternals,
  type XPathPart,
  type XPathPredicate as Predicate,
  type XPathStep as Step,
} from './xpath-internals.ts'
import { documentOf, endOf, firstBehind, HALF, NO_SIDE, NOT_OUTSIDE, parentOf, Side } from './xpath-sides.ts'

/** The last argument: for each node that the step finds. */
type Visit = (node: DomNode) => void

/** Replaces the steps of the library; once per thread. Returns the steps, for comparisons. */
export function boundPaths(library: XPathInternals): Paths {
  const paths = new Paths(library)
  const { PathExpr, XNodeSet } = library
  PathExpr.applySteps = (steps, context, nodes) => paths.along(steps, context, nodes)
  PathExpr.prototype.evaluate = function (context) {
    const own = paths.copyOf(context)
    const { filter, locationPath } = this
    if (filter === undefined && locationPath?.absolute === false && locationPath.steps.length === 1) {
      const side = paths.side(locationPath.steps[0]!, own, context.contextNode)
      if (side !== null) return side
    }
    const found = this.applyFilter(context, own)
    if ('nonNodes' in found) return found.nonNodes
    const set = new XNodeSet()
    set.nodes = [...PathExpr.applyLocationPath(locationPath, own, found.nodes)]
    set.size = set.nodes.length
    return set
  }
  return paths
}

export class Paths {
  readonly #library: XPathInternals
  /** Steps as they are taken: `//a` is one step. */
  readonly #merged = new WeakMap<readonly Step[], readonly Step[]>()

  constructor(library: XPathInternals) {
    this.#library = library
  }

  /** The library makes tables of functions for each copy. */
  copyOf(context: Context): Context {
    return Object.assign(Object.create(this.#library.XPathContext.prototype) as Context, context)
  }

  /** Nodes that steps lead to, each once. `nodes`: each once. */
  along(steps: readonly Step[], context: Context, nodes: readonly DomNode[]): readonly DomNode[] {
    let from = nodes
    for (const step of this.#mergedOf(steps)) {
      if (from.length === 1) from = this.#filtered(step, context, this.#from(from[0]!, step, context))
      else if (step.predicates.length === 0 && this.#isDownward(step)) from = this.#below(step, context, from)
      else {
        const found = new Set<DomNode>()
        const isOfAll = step.predicates.length === 0 && this.#isSideward(step)
        for (const node of isOfAll ? this.#outermost(step, from) : from) {
          for (const each of this.#filtered(step, context, this.#from(node, step, context))) found.add(each)
        }
        from = [...found]
      }
    }
    return from
  }

  #mergedOf(steps: readonly Step[]): readonly Step[] {
    const { NodeTest, Step } = this.#library
    let merged = this.#merged.get(steps)
    if (merged !== undefined) return merged
    const taken: Step[] = []
    for (const step of steps) {
      const last = taken.at(-1)
      const isAny = last?.axis === Step.DESCENDANTORSELF && last.nodeTest === NodeTest.nodeTest
      if (isAny && last.predicates.length === 0 && step.axis === Step.CHILD && step.predicates.length === 0) {
        taken[taken.length - 1] = { axis: Step.DESCENDANT, nodeTest: step.nodeTest, predicates: [] }
      } else taken.push(step)
    }
    merged = taken
    this.#merged.set(steps, merged)
    return merged
  }

  #isDownward({ axis }: Step): boolean {
    const { Step } = this.#library
    return axis === Step.DESCENDANT || axis === Step.DESCENDANTORSELF
  }

  #isSideward({ axis }: Step): boolean {
    const { Step } = this.#library
    return [Step.FOLLOWING, Step.PRECEDING, Step.FOLLOWINGSIBLING, Step.PRECEDINGSIBLING].includes(axis)
  }

  /** Nodes whose sides hold those of all others: of each parent, or document, the first or last one. */
  #outermost(step: Step, nodes: readonly DomNode[]): Iterable<DomNode> {
    const { Step } = this.#library
    const { axis } = step
    const isBehind = axis === Step.FOLLOWING || axis === Step.FOLLOWINGSIBLING
    const outermost = new Map<DomNode | null, { readonly node: DomNode; readonly at: number }>()
    for (const node of nodes) {
      const group = this.#groupOf(step, node)
      const at = axis === Step.FOLLOWING ? -endOf(node) : isBehind ? -placeOf(node) : placeOf(node)
      const known = outermost.get(group)
      if (known === undefined || at > known.at) outermost.set(group, { node, at })
    }
    return Iterator.from(outermost.values()).map(({ node }) => node)
  }

  /** Descendants of many nodes. A node within one that has been walked is left out: its descendants are found. */
  #below(step: Step, context: Context, nodes: readonly DomNode[]): readonly DomNode[] {
    const found = new Set<DomNode>()
    const visit = (node: DomNode): void => void found.add(node)
    let [document, start, end]: [DomNode | null, number, number] = [null, 0, 0]
    for (const node of nodes) {
      const [at, root] = [placeOf(node), documentOf(node)]
      const isWalked = root === document && at > start && at <= end
      if (step.axis === this.#library.Step.DESCENDANTORSELF) this.#visit(node, step, context, visit)
      if (isWalked) continue
      document = root
      start = at
      end = this.#walk(node, step, context, visit)
    }
    return [...found]
  }

  /** Visits descendants in document order. Returns the place of the last one. */
  #walk(top: DomNode, step: Step, context: Context, visit: Visit): number {
    let end = placeOf(top)
    for (let node = top.firstChild; node !== null && node !== undefined; ) {
      this.#visit(node, step, context, visit)
      end = placeOf(node)
      if (node.firstChild !== null) {
        node = node.firstChild
        continue
      }
      while (node !== top && node.nextSibling === null) node = node.parentNode!
      if (node === top) break
      node = node.nextSibling
    }
    return end
  }

  #visit(node: DomNode, { nodeTest }: Step, context: Context, visit: Visit): void {
    spend(1)
    const { localName } = nodeTest
    if (localName !== undefined && (node.localName || node.nodeName) !== localName) return
    if (nodeTest.matches(node, context)) visit(node)
  }

  /** Nodes on an axis of one node, in the order of the axis. */
  #from(node: DomNode, step: Step, context: Context): readonly DomNode[] {
    const { PathExpr, Step } = this.#library
    const found: DomNode[] = []
    const visit = (each: DomNode): void => void found.push(each)
    switch (step.axis) {
      case Step.CHILD:
        for (let child = node.firstChild ?? null; child !== null; child = child.nextSibling) {
          this.#visit(child, step, context, visit)
        }
        return found
      case Step.ATTRIBUTE:
        for (const attribute of node.attributes ?? []) this.#visit(attribute, step, context, visit)
        return found
      case Step.DESCENDANTORSELF:
      case Step.DESCENDANT:
        if (step.axis === Step.DESCENDANTORSELF) this.#visit(node, step, context, visit)
        this.#walk(node, step, context, visit)
        return found
      case Step.SELF:
        this.#visit(node, step, context, visit)
        return found
      case Step.PARENT: {
        const parent = parentOf(node)
        if (parent !== null) this.#visit(parent, step, context, visit)
        return found
      }
      case Step.FOLLOWING:
      case Step.PRECEDING:
      case Step.FOLLOWINGSIBLING:
      case Step.PRECEDINGSIBLING:
        return this.#sideOf(node, step, context).nodes
      default: {
        const nodes = PathExpr.applyStep(step, context, node)
        spend(1 + nodes.length)
        return nodes
      }
    }
  }

  /** The nodes that pass all predicates. */
  #filtered({ predicates }: Step, context: Context, nodes: readonly DomNode[]): readonly DomNode[] {
    if (predicates.length === 0 || nodes.length === 0) return nodes
    let left = nodes
    const own = this.copyOf(context)
    for (const predicate of predicates) {
      const place = this.#placeIn(predicate)
      if (place !== undefined) {
        const node = left[place - 1]
        left = node === undefined ? [] : [node]
        continue
      }
      own.contextSize = left.length
      left = left.filter((node, at) => {
        own.contextNode = node
        own.contextPosition = at + 1
        const value = predicate.evaluate(own)
        return isA(value, this.#library.XNumber) ? value.numberValue() === at + 1 : value.booleanValue()
      })
    }
    return left
  }

  /** The number that a predicate is; undefined for another predicate. */
  #placeIn(predicate: Predicate): number | undefined {
    const { filter = predicate, filterPredicates, locationPath } = predicate
    const isAlone = locationPath === undefined && (filterPredicates?.length ?? 0) === 0
    return isAlone && isOf<XPathAny>(filter, this.#library.XNumber) ? filter.numberValue() : undefined
  }

  /** The set of nodes on a side of one node: its size is known before its nodes are. Null for another step. */
  side(step: Step, context: Context, node: DomNode): NodeSet | null {
    const { XNodeSet } = this.#library
    if (!this.#isSideward(step)) return null
    const [first, ...others] = step.predicates
    const place = first === undefined ? undefined : this.#placeIn(first)
    if (first !== undefined && (place === undefined || others.length > 0)) return null
    const side = this.#sideOf(node, step, context)
    const set = new XNodeSet()
    if (place === undefined) {
      set.size = side.size
      Object.defineProperty(set, 'nodes', { get: () => side.nodes })
      return set
    }
    const found = side.at(place - 1)
    set.nodes = found === undefined ? [] : [found]
    set.size = set.nodes.length
    return set
  }

  #sideOf(node: DomNode, step: Step, context: Context): Side {
    const { Step } = this.#library
    const group = this.#groupOf(step, node)
    if (group === null) return NO_SIDE
    const list = this.#listOf(step, group, context)
    const at = placeOf(node)
    if (step.axis === Step.FOLLOWINGSIBLING) return new Side(list, firstBehind(list, at), list.length)
    if (step.axis === Step.PRECEDINGSIBLING) return new Side(list, 0, firstBehind(list, at - HALF), NOT_OUTSIDE)
    if (step.axis === Step.FOLLOWING) return new Side(list, firstBehind(list, endOf(node)), list.length)
    const ancestors = new Set<DomNode>()
    for (let each = parentOf(node); each !== null; each = parentOf(each)) {
      spend(1)
      this.#visit(each, step, context, ancestor => void (ancestor !== group && ancestors.add(ancestor)))
    }
    return new Side(list, 0, firstBehind(list, at - HALF), ancestors)
  }

  /** The node that holds a node and those aside: the parent, or the document. */
  #groupOf({ axis }: Step, node: DomNode): DomNode | null {
    const { Step } = this.#library
    const isOfSiblings = axis === Step.FOLLOWINGSIBLING || axis === Step.PRECEDINGSIBLING
    return isOfSiblings ? (node.parentNode ?? null) : documentOf(node)
  }

  /** Nodes of a group, in their order, that may be aside of another one. */
  #listOf(step: Step, group: DomNode, context: Context): readonly DomNode[] {
    const { Step } = this.#library
    const isOfSiblings = step.axis === Step.FOLLOWINGSIBLING || step.axis === Step.PRECEDINGSIBLING
    const axis = isOfSiblings ? Step.CHILD : Step.DESCENDANT
    return remembered(step, group, () => this.#from(group, { ...step, axis }, context))
  }

  /**
   * Tells whether a path to a side, such as `preceding::a/@id`, leads to one of the texts. Undefined for another path.
   * An evaluation finds once, for each text, the node to which the path leads from the most nodes.
   */
  leadsTo(part: XPathPart, texts: () => readonly string[] | undefined, context: Context): boolean | undefined {
    const { PathExpr, Step } = this.#library
    const path = isOf<Path>(part, PathExpr) && part.filter === undefined ? part.locationPath : undefined
    const [step, ...rest] = path?.absolute === false ? path.steps : []
    if (step === undefined || step.predicates.length > 0 || !this.#isSideward(step)) return undefined
    const wanted = texts()
    if (wanted === undefined) return undefined
    const { contextNode: node } = context
    const group = this.#groupOf(step, node)
    if (group === null) return false
    const isBehind = step.axis === Step.FOLLOWING || step.axis === Step.FOLLOWINGSIBLING
    const places = remembered(part, group, () => this.#placesOf(step, rest, group, isBehind, context))
    const at = step.axis === Step.FOLLOWING ? endOf(node) : placeOf(node)
    return wanted.some(text => {
      const place = places.get(text)
      return place !== undefined && (isBehind ? place > at : place < at)
    })
  }

  /** By text: the last place behind which no node leads to it, or the first one. */
  #placesOf(
    step: Step,
    rest: readonly Step[],
    group: DomNode,
    isBehind: boolean,
    context: Context,
  ): ReadonlyMap<string, number> {
    const { prototype } = this.#library.XNodeSet
    const places = new Map<string, number>()
    for (const node of this.#listOf(step, group, context)) {
      const place = isBehind ? placeOf(node) : endOf(node)
      for (const found of rest.length === 0 ? [node] : this.along(rest, context, [node])) {
        const text = prototype.stringForNode(found)
        const known = places.get(text)
        if (known === undefined || (isBehind ? place > known : place < known)) places.set(text, place)
      }
    }
    return places
  }
}
