/**
 * Comparisons of node sets in XPath (XPath 1.0, 3.4) in linear time. A set keeps its texts, its numbers, and the
 * least and the greatest of them.
 */
import {
  type Binary,
  type Comparison,
  isA,
  isOf,
  type NodeSet,
  type XPathAny,
  type XPathContextInternals,
  type XPathInternals,
  type XPathPart,
} from './xpath-internals.ts'
import type { Paths } from './xpath-paths.ts'

type Name = 'equals' | 'notequal' | 'lessthan' | 'greaterthan' | 'lessthanorequal' | 'greaterthanorequal'

const NAMES: Readonly<Record<Comparison, Name>> = {
  EqualsOperation: 'equals',
  NotEqualOperation: 'notequal',
  LessThanOperation: 'lessthan',
  GreaterThanOperation: 'greaterthan',
  LessThanOrEqualOperation: 'lessthanorequal',
  GreaterThanOrEqualOperation: 'greaterthanorequal',
}

/** `a < b` is `b > a`. */
const SWAPPED: Readonly<Record<Name, Name>> = {
  equals: 'equals',
  notequal: 'notequal',
  lessthan: 'greaterthan',
  greaterthan: 'lessthan',
  lessthanorequal: 'greaterthanorequal',
  greaterthanorequal: 'lessthanorequal',
}

type Comparable = XPathAny & Readonly<Record<Name, (other: XPathAny) => XPathAny>>

/** Texts, numbers and range of the nodes of a set, each found when it is first asked for. */
class Facts {
  readonly #set: NodeSet
  readonly #numberOf: (text: string) => number
  #texts: ReadonlySet<string> | undefined
  #numbers: ReadonlySet<number> | undefined
  #range: { readonly least: number; readonly most: number } | undefined

  constructor(set: NodeSet, numberOf: (text: string) => number) {
    this.#set = set
    this.#numberOf = numberOf
  }

  get texts(): ReadonlySet<string> {
    this.#texts ??= new Set(this.#set.nodes.map(node => this.#set.stringForNode(node)))
    return this.#texts
  }

  get numbers(): ReadonlySet<number> {
    this.#numbers ??= new Set(Array.from(this.texts, this.#numberOf))
    return this.#numbers
  }

  /** The least and the greatest of the numbers; NaN where the set has no number. */
  get range(): { readonly least: number; readonly most: number } {
    if (this.#range !== undefined) return this.#range
    let [least, most] = [Infinity, -Infinity]
    let isEmpty = true
    for (const number of this.numbers) {
      if (Number.isNaN(number)) continue
      isEmpty = false
      least = Math.min(least, number)
      most = Math.max(most, number)
    }
    this.#range = isEmpty ? { least: NaN, most: NaN } : { least, most }
    return this.#range
  }
}

/** Sets that an evaluation has kept, with what it knows of them. */
const kept = new WeakMap<object, Facts>()

/** Replaces the comparisons of the library; once per thread. */
export function boundComparisons(library: XPathInternals, paths: Paths): void {
  const { XBoolean } = library
  for (const [operation, name] of Object.entries(NAMES) as [Comparison, Name][]) {
    library[operation].prototype.evaluate = function (context: XPathContextInternals) {
      if (name === 'equals') {
        const leads = ledTo(library, paths, this, context)
        if (leads !== undefined) return new XBoolean(leads)
      }
      const [one, other] = [this.lhs.evaluate(context), this.rhs.evaluate(context)]
      const compared = comparedSets(library, one, other, name) ?? comparedSets(library, other, one, SWAPPED[name])
      return compared === undefined ? (one as Comparable)[name](other) : new XBoolean(compared)
    }
  }
}

/** `@id = preceding::a/@id`: undefined for another comparison. */
function ledTo(
  library: XPathInternals,
  paths: Paths,
  { lhs, rhs }: Binary,
  context: XPathContextInternals,
): boolean | undefined {
  const textsOf = (part: XPathPart) => () => {
    const value = part.evaluate(context)
    if (isOf<NodeSet>(value, library.XNodeSet)) return value.nodes.map(node => value.stringForNode(node))
    return isA(value, library.XString) ? [value.stringValue()] : undefined
  }
  return paths.leadsTo(rhs, textsOf(lhs), context) ?? paths.leadsTo(lhs, textsOf(rhs), context)
}

/** Further comparisons with the set find what the first one has found. */
export function keepFacts(library: XPathInternals, value: XPathAny): void {
  if (isOf<NodeSet>(value, library.XNodeSet) && !kept.has(value)) kept.set(value, factsOf(library, value))
}

function factsOf({ XNumber }: XPathInternals, set: NodeSet): Facts {
  return kept.get(set) ?? new Facts(set, text => new XNumber(text).numberValue())
}

/** Tells how a set compares; undefined where the library compares it node by node, and ends where it can. */
function comparedSets(library: XPathInternals, set: XPathAny, other: XPathAny, name: Name): boolean | undefined {
  const { XNodeSet, XString, XBoolean } = library
  if (!isOf<NodeSet>(set, XNodeSet) || isA(other, XBoolean)) return undefined
  if (isOf<NodeSet>(other, XNodeSet)) return comparedWithSet(library, set, other, name)
  const facts = kept.get(set)
  if (facts === undefined) return undefined
  if (set.size === 0) return false
  const isText = isA(other, XString)
  if (isText && name === 'equals') return facts.texts.has(other.stringValue())
  if (isText && name === 'notequal') return facts.texts.size > 1 || !facts.texts.has(other.stringValue())
  const number = other.numberValue()
  // NaN equals nothing, not even itself.
  const isIn = !Number.isNaN(number) && facts.numbers.has(number)
  if (name === 'equals') return isIn
  if (name === 'notequal') return facts.numbers.size > 1 || !isIn
  return isOrdered(name, facts.range, { least: number, most: number })
}

function comparedWithSet(library: XPathInternals, set: NodeSet, other: NodeSet, name: Name): boolean | undefined {
  if (set.size === 0 || other.size === 0) return false
  // The library ends where it finds the node that it needs, and makes no list of texts.
  if (!kept.has(set) && (set.size === 1 || other.size === 1)) return undefined
  const facts = factsOf(library, set)
  if (name === 'equals') return other.nodes.some(node => facts.texts.has(other.stringForNode(node)))
  if (name === 'notequal') {
    return facts.texts.size > 1 || other.nodes.some(node => !facts.texts.has(other.stringForNode(node)))
  }
  return isOrdered(name, facts.range, factsOf(library, other).range)
}

type Range = Facts['range']

/** Tells whether a number of one range is so to one of the other; never without numbers. */
function isOrdered(name: Name, one: Range, other: Range): boolean {
  switch (name) {
    case 'lessthan':
      return one.least < other.most
    case 'lessthanorequal':
      return one.least <= other.most
    case 'greaterthan':
      return one.most > other.least
    default:
      return one.most >= other.least
  }
}
