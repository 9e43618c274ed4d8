/** Sides of a node in an XPath: its siblings, and the nodes of its document, in front of it or behind it. */
import type { DomNode } from './lazy-libraries.ts'
import { placeOf, spend } from './xpath-bounds.ts'

/** Places are whole numbers, and one half behind an element for its namespaces. */
export const HALF = 0.25
export const NOT_OUTSIDE: ReadonlySet<DomNode> = new Set()

/** A part of a list in document order: behind a node, or in front of it, nearest first, without its ancestors. */
export class Side {
  readonly #list: readonly DomNode[]
  readonly #from: number
  readonly #to: number
  /** Null: behind the node. */
  readonly #without: ReadonlySet<DomNode> | null

  constructor(list: readonly DomNode[], from: number, to: number, without: ReadonlySet<DomNode> | null = null) {
    this.#list = list
    this.#from = from
    this.#to = to
    this.#without = without
  }

  get size(): number {
    return this.#to - this.#from - (this.#without?.size ?? 0)
  }

  /** In the order of the axis. */
  get nodes(): DomNode[] {
    spend(this.#to - this.#from)
    const nodes = this.#list.slice(this.#from, this.#to)
    if (this.#without === null) return nodes
    return (this.#without.size === 0 ? nodes : nodes.filter(node => !this.#without!.has(node))).reverse()
  }

  /** The node with a number from 0 in the order of the axis. */
  at(index: number): DomNode | undefined {
    if (!Number.isInteger(index) || index < 0 || index >= this.size) return undefined
    if (this.#without === null) return this.#list[this.#from + index]
    return this.#without.size === 0 ? this.#list[this.#to - 1 - index] : this.nodes[index]
  }
}

export const NO_SIDE = new Side([], 0, 0)

/** Index of the first node of a list behind a place. */
export function firstBehind(list: readonly DomNode[], place: number): number {
  let [from, to] = [0, list.length]
  while (from < to) {
    const middle = (from + to) >>> 1
    if (placeOf(list[middle]!) > place) to = middle
    else from = middle + 1
  }
  return from
}

/** A place behind all descendants of a node, and in front of what follows. */
export function endOf(node: DomNode): number {
  if (node.ownerElement !== undefined) return placeOf(node)
  let next: DomNode | null = node
  while (next !== null && next.nextSibling === null) next = next.parentNode
  return next === null ? Infinity : placeOf(next.nextSibling!) - HALF
}

export function parentOf({ ownerElement, parentNode }: DomNode): DomNode | null {
  return ownerElement ?? parentNode ?? null
}

export function documentOf(node: DomNode): DomNode {
  return node.ownerDocument ?? node
}
