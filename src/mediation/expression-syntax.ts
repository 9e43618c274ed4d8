/** Syntax of XPath and JSONPath: the parsers of the libraries, for the primary. */
import type { JsonPath } from './expression.ts'
import { compileJsonPath } from './lazy-libraries.ts'

/** A node of the library's syntax tree; its class decides which fields it has. */
export interface XPathNode {
  readonly lhs: XPathNode
  readonly rhs: XPathNode
  readonly filter: XPathNode | undefined
  readonly filterPredicates: readonly XPathNode[] | undefined
  readonly locationPath: { readonly steps: readonly XPathStep[] } | undefined
  readonly functionName: string
  readonly arguments: readonly XPathNode[]
  readonly variable: string
  readonly str: string
  readonly num: number
}

interface XPathStep {
  readonly nodeTest: { readonly prefix?: string | null }
  readonly predicates: readonly XPathNode[]
}

/** Names of the library's classes. */
const CLASSES = [
  ...['PathExpr', 'FunctionCall', 'VariableReference', 'XString', 'XNumber', 'BarOperation', 'UnaryMinusOperation'],
  ...['OrOperation', 'AndOperation', 'EqualsOperation', 'NotEqualOperation', 'LessThanOperation'],
  ...['GreaterThanOperation', 'LessThanOrEqualOperation', 'GreaterThanOrEqualOperation', 'PlusOperation'],
  ...['MinusOperation', 'MultiplyOperation', 'DivOperation', 'ModOperation'],
] as const
export type XPathClass = (typeof CLASSES)[number]

export interface ExpressionSyntax {
  /** Throws where the text is no XPath. */
  xpath(text: string): XPathNode
  /** Undefined for a class that is not in CLASSES. */
  classOf(node: XPathNode): XPathClass | undefined
  /** Throws where the text is no JSONPath. */
  jsonPath(text: string): JsonPath
}

type XPathLibrary = {
  readonly parse: (text: string) => { readonly expression: { readonly expression: XPathNode } }
} & {
  readonly [name in XPathClass]: new () => object
}

/** Loads the XPath library. The JSONPath library comes with the first JSONPath: the default sequences have none. */
export async function loadExpressionSyntax(): Promise<ExpressionSyntax> {
  const { default: loaded } = await import('xpath')
  const library = loaded as unknown as XPathLibrary
  return {
    xpath: text => library.parse(text).expression.expression,
    classOf: node => CLASSES.find(name => node instanceof library[name]),
    jsonPath(text) {
      const query = compileJsonPath(text)
      if (!query.singularQuery()) return { text, keys: null }
      return { text, keys: query.segments.flatMap(({ selectors }) => selectors.map(keyOf)) }
    },
  }
}

/** `selector`: of a path to one place, which selects by name or by index. */
function keyOf(selector: object): string | number {
  return 'name' in selector ? String(selector.name) : Number((selector as { index: number }).index)
}
