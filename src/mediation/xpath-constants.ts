/**
 * Parts of an XPath whose value does not depend on the node that a predicate looks at: `//id` in `//item[ref = //id]`.
 * An evaluation finds the value of such a part once for each document, and of a path upwards (`../id`) once for the
 * node where it turns.
 */
import type { DomNode } from './lazy-libraries.ts'
import { remembered } from './xpath-bounds.ts'
import { keepFacts } from './xpath-comparisons.ts'
import {
  type Binary,
  type Call,
  isA,
  isOf,
  type Operation,
  type Path,
  type XPathAny,
  type XPathContextInternals as Context,
  type XPathInternals,
  type XPathPart,
} from './xpath-internals.ts'

const OPERATIONS: readonly Operation[] = [
  ...(['EqualsOperation', 'NotEqualOperation', 'LessThanOperation', 'GreaterThanOperation'] as const),
  ...(['LessThanOrEqualOperation', 'GreaterThanOrEqualOperation', 'OrOperation', 'AndOperation'] as const),
  ...([
    'BarOperation',
    'PlusOperation',
    'MinusOperation',
    'MultiplyOperation',
    'DivOperation',
    'ModOperation',
  ] as const),
]

/** A path upwards: how many parents, and the path from there. */
interface Ascent {
  readonly tests: Path['locationPath']
  readonly rest: Path
}

/** Replaces the evaluation of expressions; once per thread, after the other replacements. */
export function keepConstants(library: XPathInternals): void {
  const constants = new Constants(library)
  const { PathExpr, FunctionCall } = library
  const { evaluate: evaluatePath } = PathExpr.prototype
  PathExpr.prototype.evaluate = function (context) {
    if (constants.isAlone(this)) return evaluatePath.call(this, context)
    if (constants.has(this)) return constants.valueOf(this, context, evaluatePath)
    const ascent = constants.ascentOf(this)
    if (ascent === null) return evaluatePath.call(this, context)
    const top = constants.topOf(ascent, context)
    if (top === null) return new library.XNodeSet()
    return remembered(this, top, () => {
      const value = evaluatePath.call(ascent.rest, constants.at(context, top))
      keepFacts(library, value)
      return value
    })
  }
  const { evaluate: evaluateCall } = FunctionCall.prototype
  FunctionCall.prototype.evaluate = function (context) {
    return constants.has(this) ? constants.valueOf(this, context, evaluateCall) : evaluateCall.call(this, context)
  }
  for (const name of OPERATIONS) {
    const { prototype } = library[name]
    const { evaluate } = prototype
    prototype.evaluate = function (context) {
      return constants.has(this) ? constants.valueOf(this, context, evaluate) : evaluate.call(this, context)
    }
  }
}

class Constants {
  readonly #library: XPathInternals
  readonly #known = new WeakMap<XPathPart, boolean>()
  readonly #ascents = new WeakMap<Path, { readonly ascent: Ascent | null }>()

  constructor(library: XPathInternals) {
    this.#library = library
  }

  /** The path is another expression in parentheses, or a literal. */
  isAlone({ filter, filterPredicates, locationPath }: Path): boolean {
    return filter !== undefined && locationPath === undefined && (filterPredicates?.length ?? 0) === 0
  }

  /** Tells whether the expression has one value in a document. */
  has(part: XPathPart): boolean {
    let is = this.#known.get(part)
    if (is === undefined) {
      is = this.#isConstant(part)
      this.#known.set(part, is)
    }
    return is
  }

  #isConstant(part: XPathPart): boolean {
    const { PathExpr, FunctionCall, UnaryMinusOperation, VariableReference, XString, XNumber } = this.#library
    if ([XString, XNumber, VariableReference].some(kind => isA(part, kind))) return true
    if (isOf<Path>(part, PathExpr)) {
      // Predicates look at the nodes of their path.
      return part.filter === undefined ? part.locationPath?.absolute === true : this.has(part.filter)
    }
    if (isOf<Call>(part, FunctionCall)) {
      const { functionName, arguments: values } = part
      if (values.length === 0) return functionName === 'true' || functionName === 'false'
      return functionName !== 'lang' && values.every(value => this.has(value))
    }
    if (isOf<Binary>(part, UnaryMinusOperation)) return this.has(part.rhs)
    return OPERATIONS.some(name => isA(part, this.#library[name])) && this.#hasBoth(part as Binary)
  }

  #hasBoth({ lhs, rhs }: Binary): boolean {
    return this.has(lhs) && this.has(rhs)
  }

  valueOf<Part extends XPathPart>(part: Part, context: Context, evaluate: Part['evaluate']): XPathAny {
    const { contextNode } = context
    return remembered(part, contextNode.ownerDocument ?? contextNode, () => {
      const value = evaluate.call(part, context)
      keepFacts(this.#library, value)
      return value
    })
  }

  /** Null for a path that does not begin with parents, or ends with them. */
  ascentOf(path: Path): Ascent | null {
    let known = this.#ascents.get(path)
    if (known === undefined) {
      known = { ascent: this.#findAscent(path) }
      this.#ascents.set(path, known)
    }
    return known.ascent
  }

  #findAscent({ filter, locationPath }: Path): Ascent | null {
    if (filter !== undefined || locationPath === undefined || locationPath.absolute) return null
    const { PathExpr, LocationPath, Step } = this.#library
    const { steps } = locationPath
    const turn = steps.findIndex(({ axis, predicates }) => axis !== Step.PARENT || predicates.length > 0)
    if (turn < 1) return null
    const rest = new PathExpr(undefined, undefined, new LocationPath(false, steps.slice(turn)))
    return { tests: new LocationPath(false, steps.slice(0, turn)), rest }
  }

  /** The node where a path turns; null where its parents are others. */
  topOf({ tests }: Ascent, context: Context): DomNode | null {
    const [top] = this.#library.PathExpr.applySteps(tests!.steps, context, [context.contextNode])
    return top ?? null
  }

  at(context: Context, node: DomNode): Context {
    const copy = Object.assign(Object.create(this.#library.XPathContext.prototype) as Context, context)
    copy.contextNode = node
    return copy
  }
}
