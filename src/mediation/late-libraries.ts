/**
 * The libraries that evaluate what is rare in sequences, paths and regular expressions: loaded by the first that needs
 * one, because a thread whose sequences have none should not carry them.
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

/** A value of the library, of XPath's four kinds: what tells them apart is which of these it has. */
export interface LibraryValue {
  stringValue(): string
  readonly b?: boolean
  readonly num?: number
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

interface PatternMatcher {
  /** All of the text. */
  matches(): boolean
  group(group: number): string | null
}

interface PatternLibrary {
  readonly RE2JS: {
    /** Throws for what is no pattern. */
    compile(pattern: string): { matcher(text: string): PatternMatcher; groupCount(): number }
  }
}

export function patternLibrary(): PatternLibrary['RE2JS'] {
  return (require('re2js') as PatternLibrary).RE2JS
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
