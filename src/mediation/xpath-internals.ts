/** The parts of the XPath library that its bounds use or replace. */
import type { DomNode } from './lazy-libraries.ts'

interface XPathNodeTest {
  /** The name, where the test is one for a name without a wildcard. */
  readonly localName?: string
  matches(node: DomNode, context: object): boolean
}

export interface XPathStep {
  readonly axis: number
  readonly nodeTest: XPathNodeTest
  readonly predicates: readonly XPathPredicate[]
}

export interface XPathContextInternals {
  contextNode: DomNode
  contextPosition: number
  contextSize: number
}

/** A value, which is an expression too. */
export interface XPathAny {
  stringValue(): string
  numberValue(): number
  booleanValue(): boolean
}

export interface XPathPart {
  evaluate(context: XPathContextInternals): XPathAny
}

export interface NodeSet extends XPathAny {
  nodes: DomNode[]
  size: number
  /** Its nodes in document order, once they are sorted. */
  tree: readonly DomNode[] | null
  stringForNode(node: DomNode): string
}

interface LocationPath {
  readonly absolute: boolean
  readonly steps: readonly XPathStep[]
}

export interface Path extends XPathPart {
  readonly filter?: XPathPart
  readonly filterPredicates?: readonly XPathPart[]
  readonly locationPath?: LocationPath
  applyFilter(
    context: XPathContextInternals,
    own: XPathContextInternals,
  ): { readonly nodes: readonly DomNode[] } | { readonly nonNodes: XPathAny }
}

/** Any expression, by what tells one kind from another. */
export type XPathPredicate = Partial<Path> & XPathPart

type Axis =
  | 'ATTRIBUTE'
  | 'CHILD'
  | 'DESCENDANT'
  | 'DESCENDANTORSELF'
  | 'FOLLOWING'
  | 'FOLLOWINGSIBLING'
  | 'PARENT'
  | 'PRECEDING'
  | 'PRECEDINGSIBLING'
  | 'SELF'

export type Comparison =
  | 'EqualsOperation'
  | 'NotEqualOperation'
  | 'LessThanOperation'
  | 'GreaterThanOperation'
  | 'LessThanOrEqualOperation'
  | 'GreaterThanOrEqualOperation'

/** Operations that have two operands. */
export type Operation =
  | Comparison
  | 'OrOperation'
  | 'AndOperation'
  | 'BarOperation'
  | 'PlusOperation'
  | 'MinusOperation'
  | 'MultiplyOperation'
  | 'DivOperation'
  | 'ModOperation'

export interface Binary extends XPathPart {
  readonly lhs: XPathPart
  readonly rhs: XPathPart
}

export interface Call extends XPathPart {
  readonly functionName: string
  readonly arguments: readonly XPathPart[]
}

type Class<Instance> = { new (...values: never[]): Instance; readonly prototype: Instance }
type Replaceable<Part extends XPathPart> = Omit<Part, 'evaluate'> & {
  evaluate(this: Part, context: XPathContextInternals): XPathAny
}

export interface XPathInternals extends Readonly<Record<Operation, { readonly prototype: Replaceable<Binary> }>> {
  readonly Step: Readonly<Record<Axis, number>>
  readonly NodeTest: { readonly nodeTest: XPathNodeTest }
  readonly XPathContext: { readonly prototype: object }
  readonly LocationPath: new (isAbsolute: boolean, steps: readonly XPathStep[]) => LocationPath
  readonly PathExpr: {
    new (filter: undefined, predicates: undefined, path: LocationPath): Path
    readonly prototype: Replaceable<Path>
    applyStep(step: XPathStep, context: object, node: DomNode): DomNode[]
    applySteps(
      steps: readonly XPathStep[],
      context: XPathContextInternals,
      nodes: readonly DomNode[],
    ): readonly DomNode[]
    applyLocationPath(
      path: LocationPath | undefined,
      context: XPathContextInternals,
      nodes: readonly DomNode[],
    ): readonly DomNode[]
  }
  readonly FunctionCall: { readonly prototype: Replaceable<Call> }
  readonly UnaryMinusOperation: { readonly prototype: Replaceable<XPathPart & { readonly rhs: XPathPart }> }
  readonly VariableReference: Class<XPathPart>
  readonly XBoolean: { new (value: boolean): XPathAny; readonly prototype: XPathAny }
  readonly XString: Class<XPathAny>
  readonly XNumber: { new (value: number | string): XPathAny; readonly prototype: XPathAny & { numberFormat: RegExp } }
  readonly XNodeSet: {
    new (): NodeSet
    readonly prototype: NodeSet & {
      addArray(this: NodeSet, nodes: readonly DomNode[]): void
      toArray(this: NodeSet): DomNode[]
      first(this: NodeSet): DomNode | null
    }
  }
}

/** Tells whether a part of an expression, or a value, is of a class of the library. */
export function isOf<Part>(part: unknown, kind: { readonly prototype: object }): part is Part {
  return isA(part, kind)
}

export function isA(part: unknown, { prototype }: { readonly prototype: object }): boolean {
  return Object.prototype.isPrototypeOf.call(prototype, part as object)
}
