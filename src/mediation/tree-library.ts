/**
 * The libraries that evaluate what looks into trees: loaded by the first expression that needs one, because a reactor
 * whose sequences have none should not carry them.
 */
import { createRequire } from 'node:module'
import type { Json } from './value.ts'

const require = createRequire(import.meta.url)

/** What is used of the DOM's nodes. */
export interface DomNode {
  readonly nodeType: number
  readonly nodeName: string
  readonly nodeValue: string | null
  readonly childNodes: Iterable<DomNode>
  readonly attributes?: Iterable<DomNode>
  readonly firstChild: DomNode | null
  lookupNamespaceURI(prefix: string | null): string | null
}

/** A value of the library: of XPath's four kinds. */
export interface LibraryValue {
  stringValue(): string
  numberValue(): number
  booleanValue(): boolean
  toArray?(): DomNode[]
}

interface Evaluator {
  evaluate(options: {
    readonly node: DomNode
    readonly namespaces: Readonly<Record<string, string>>
    readonly variables: (name: string, namespace: string) => unknown
    readonly functions: (name: string) => ((context: never, ...values: never[]) => unknown) | undefined
  }): LibraryValue
}

interface XPathLibrary {
  parse(text: string): Evaluator
}

interface DomLibrary {
  readonly DOMParser: new (options: {
    readonly onError: () => void
  }) => { parseFromString(text: string, mediaType: string): DomNode }
}

interface JsonPathQuery {
  query(value: Json): { values(): Json[] }
  /** It leads to one place at most. */
  singularQuery(): boolean
  readonly segments: readonly { readonly selectors: readonly object[] }[]
}

interface JsonPathLibrary {
  /** Throws for what is no JSONPath. */
  compile(path: string): JsonPathQuery
}

export function xpathLibrary(): XPathLibrary {
  return require('xpath') as XPathLibrary
}

export function domLibrary(): DomLibrary {
  return require('@xmldom/xmldom') as DomLibrary
}

export function jsonPathLibrary(): JsonPathLibrary {
  return require('json-p3') as JsonPathLibrary
}
