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
    readonly functions: (
      name: string,
      namespace: string | null,
    ) => ((context: never, ...values: never[]) => unknown) | undefined
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

/** A function of filters (RFC 9535 2.4). */
interface JsonPathFunction {
  readonly argTypes: readonly unknown[]
  readonly returnType: unknown
  call(...values: readonly unknown[]): unknown
}

interface JsonPathEnvironment {
  /** Throws for what is no JSONPath. */
  compile(path: string): JsonPathQuery
  readonly functionRegister: Map<string, JsonPathFunction>
}

interface JsonPathLibrary {
  readonly JSONPathEnvironment: new () => JsonPathEnvironment
}

interface PatternMatcher {
  /** All of the text. */
  matches(): boolean
  /** A part of it. */
  find(): boolean
  group(group: number): string | null
}

interface CompiledPattern {
  matcher(text: string): PatternMatcher
  groupCount(): number
}

interface PatternLibrary {
  readonly RE2JS: {
    /** Throws for what is no pattern. */
    compile(pattern: string): CompiledPattern
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

let jsonPaths: JsonPathEnvironment | undefined

/** Its `match()` and `search()` take linear time, as everything does that matches what clients may have written. */
export function jsonPathLibrary(): Pick<JsonPathEnvironment, 'compile'> {
  jsonPaths ??= linearJsonPaths()
  return jsonPaths
}

function linearJsonPaths(): JsonPathEnvironment {
  const { JSONPathEnvironment } = require('json-p3') as JsonPathLibrary
  const environment = new JSONPathEnvironment()
  for (const name of ['match', 'search'] as const) {
    const { argTypes, returnType } = environment.functionRegister.get(name)!
    const call = (text: unknown, pattern: unknown): boolean => isFound(name, text, pattern)
    environment.functionRegister.set(name, { argTypes, returnType, call })
  }
  return environment
}

/** Of what is longer nothing is found. */
const PATTERN_MAX = 1024
const SUBJECT_MAX = 8192
/** A filter asks for the same one again and again. */
let last: { readonly pattern: string; readonly compiled: CompiledPattern | null } | undefined

/** False for what is no text and no pattern (RFC 9535 2.4.6, 2.4.7). */
function isFound(name: 'match' | 'search', text: unknown, pattern: unknown): boolean {
  if (typeof text !== 'string' || typeof pattern !== 'string') return false
  if (text.length > SUBJECT_MAX || pattern.length > PATTERN_MAX) return false
  if (last?.pattern !== pattern) last = { pattern, compiled: compiledOrNull(pattern) }
  const matcher = last.compiled?.matcher(text)
  return matcher !== undefined && (name === 'match' ? matcher.matches() : matcher.find())
}

function compiledOrNull(pattern: string): CompiledPattern | null {
  try {
    return patternLibrary().compile(pattern)
  } catch {
    return null
  }
}
