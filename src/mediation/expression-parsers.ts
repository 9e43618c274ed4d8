/** The parsers of XPath and JSONPath, for the primary: from a text to its parts. */
import type { JsonPath } from './expression.ts'
import { jsonPathLibrary } from './late-libraries.ts'

/** A node of XPath's expression tree. Which fields there are depends on its class. */
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

/** Those that are looked at: names of the library's own. */
const CLASSES = [
  ...['PathExpr', 'FunctionCall', 'VariableReference', 'XString', 'XNumber', 'BarOperation', 'UnaryMinusOperation'],
  ...['OrOperation', 'AndOperation', 'EqualsOperation', 'NotEqualOperation', 'LessThanOperation'],
  ...['GreaterThanOperation', 'LessThanOrEqualOperation', 'GreaterThanOrEqualOperation', 'PlusOperation'],
  ...['MinusOperation', 'MultiplyOperation', 'DivOperation', 'ModOperation'],
] as const
export type XPathClass = (typeof CLASSES)[number]

export interface Parsers {
  /** Throws for what is no XPath. */
  xpath(text: string): XPathNode
  /** Undefined for one that the library has and nobody looks at. */
  classOf(node: XPathNode): XPathClass | undefined
  /** Throws for what is no JSONPath. */
  jsonPath(text: string): JsonPath
}

type XPathLibrary = {
  readonly parse: (text: string) => { readonly expression: { readonly expression: XPathNode } }
} & {
  readonly [name in XPathClass]: new () => object
}

/** That of JSONPath only when there is one: the default sequences have none, and a start should not take longer. */
export async function loadParsers(): Promise<Parsers> {
  const { default: loaded } = await import('xpath')
  const library = loaded as unknown as XPathLibrary
  return {
    xpath: text => library.parse(text).expression.expression,
    classOf: node => CLASSES.find(name => node instanceof library[name]),
    jsonPath(text) {
      const query = jsonPathLibrary().compile(text)
      if (!query.singularQuery()) return { text, keys: null }
      return { text, keys: query.segments.flatMap(({ selectors }) => selectors.map(keyOf)) }
    },
  }
}

/** A path to one place has selectors by name and by index only. */
function keyOf(selector: object): string | number {
  return 'name' in selector ? String(selector.name) : Number((selector as { index: number }).index)
}
