/**
 * Loads the libraries of rare expressions (XPath, JSONPath) with their first use: a reactor whose sequences need
 * none of them starts faster and smaller.
 */
import { createRequire } from 'node:module'
import { compilePattern, type Pattern } from '../runtime/pattern.ts'
import { isObject } from './formats/json-text.ts'
import { boundJsonPath, spend } from './json-path-bounds.ts'
import { boundFilters, type JsonPathFilterInternals } from './json-path-filters.ts'
import { standardPath } from './json-path-text.ts'
import { boundXPath } from './xpath-bounds.ts'
import { boundComparisons } from './xpath-comparisons.ts'
import { keepConstants } from './xpath-constants.ts'
import type { XPathInternals } from './xpath-internals.ts'
import { boundPaths } from './xpath-paths.ts'
import type { Json } from './value.ts'
import type { XmlElementNode } from './xml-tree.ts'

const require = createRequire(import.meta.url)

/** The used part of DOM nodes. */
export interface DomNode {
  readonly nodeType: number
  readonly nodeName: string
  /** Name without the prefix; elements, attributes and namespaces have one. */
  readonly localName?: string
  readonly ownerDocument: DomNode | null
  readonly nodeValue: string | null
  readonly childNodes: Iterable<DomNode>
  readonly attributes?: Iterable<DomNode>
  readonly firstChild: DomNode | null
  readonly nextSibling: DomNode | null
  readonly parentNode: DomNode | null
  /** Place in the order of the document; a namespace has none. */
  readonly order?: number
  /** The element of an attribute. */
  readonly ownerElement?: DomNode | null
  /** The tree that an element is made of, its levels, and the prefixes in it that are declared outside of it. */
  readonly tree?: XmlElementNode
  readonly height?: number
  readonly undeclared?: ReadonlySet<string>
  lookupNamespaceURI(prefix: string): string | null
}

/** A value of the XPath library; `b`, `num` and `toArray` exist on booleans, numbers and node sets only. */
export interface XPathValue {
  stringValue(): string
  readonly b?: boolean
  readonly num?: number
  toArray?(): DomNode[]
}

interface XPathEvaluator {
  evaluate(options: {
    readonly node: DomNode
    readonly namespaces: Readonly<Record<string, string>>
    readonly variables: (name: string, namespace: string) => unknown
    readonly functions: (
      name: string,
      namespace: string | null,
    ) => ((context: never, ...values: never[]) => unknown) | undefined
  }): XPathValue
}

interface XPathLibrary {
  parse(text: string): XPathEvaluator
}

interface JsonPathQuery {
  query(value: Json): { values(): Json[]; locations(): (string | number)[][] }
  /** The path leads to one place at most. */
  singularQuery(): boolean
  readonly segments: readonly { readonly selectors: readonly object[] }[]
}

/** A function extension (RFC 9535 2.4). */
interface JsonPathFunction {
  readonly argTypes: readonly unknown[]
  readonly returnType: unknown
  call(...values: readonly unknown[]): unknown
}

interface JsonPathEnvironment {
  /** Throws where the text is no JSONPath. */
  compile(path: string): JsonPathQuery
  /** Members of an object. */
  entries(value: Json): readonly (readonly [string, Json])[]
  readonly functionRegister: Map<string, JsonPathFunction>
}

interface JsonPathLibrary extends JsonPathFilterInternals {
  readonly JSONPathEnvironment: new () => JsonPathEnvironment
}

let xpaths: (XPathLibrary & XPathInternals) | undefined

/** The library, with bounds for documents that clients choose. */
export function xpathLibrary(): XPathLibrary {
  if (xpaths === undefined) {
    xpaths = require('xpath') as XPathLibrary & XPathInternals
    boundXPath(xpaths)
    boundComparisons(xpaths, boundPaths(xpaths))
    keepConstants(xpaths)
  }
  return xpaths
}

let jsonPaths: JsonPathEnvironment | undefined

/**
 * Throws where the text is no JSONPath. Evaluations have bounds for documents that clients choose; `match()` and
 * `search()` take linear time.
 */
export function compileJsonPath(text: string): JsonPathQuery {
  jsonPaths ??= boundedJsonPaths()
  return jsonPaths.compile(standardPath(text))
}

function boundedJsonPaths(): JsonPathEnvironment {
  const library = require('json-p3') as JsonPathLibrary
  boundJsonPath(library)
  boundFilters(library)
  const environment = new library.JSONPathEnvironment()
  // A number beyond a double is an object for the library.
  environment.entries = value => (isObject(value) ? Object.entries(value) : [])
  const { argTypes, returnType, call } = environment.functionRegister.get('length')!
  environment.functionRegister.set('length', { argTypes, returnType, call: value => lengthOf(value, call) })
  for (const name of ['match', 'search'] as const) {
    const { argTypes, returnType } = environment.functionRegister.get(name)!
    const call = (text: unknown, pattern: unknown): boolean => matches(name, text, pattern)
    environment.functionRegister.set(name, { argTypes, returnType, call })
  }
  return environment
}

/** The library makes a list of the names of an object. */
function lengthOf(value: unknown, call: JsonPathFunction['call']): unknown {
  const length = call(value)
  spend(typeof length === 'number' && isObject(value as Json) ? length : 1)
  return length
}

/** Longer patterns and subjects match nothing. */
const PATTERN_MAX = 1024
const SUBJECT_MAX = 8192
/** The last pattern, because a filter uses the same one for every item. */
let last: { readonly pattern: string; readonly compiled: Pattern | null } | undefined

/** RFC 9535 2.4.6, 2.4.7: false for arguments that are no strings and for a malformed pattern. */
function matches(name: 'match' | 'search', text: unknown, pattern: unknown): boolean {
  if (typeof text !== 'string' || typeof pattern !== 'string') return false
  if (text.length > SUBJECT_MAX || pattern.length > PATTERN_MAX) return false
  spend(1 + text.length + pattern.length)
  if (last?.pattern !== pattern) last = { pattern, compiled: compiledOrNull(pattern) }
  const matcher = last.compiled?.matcher(text)
  return matcher !== undefined && (name === 'match' ? matcher.matches() : matcher.find())
}

function compiledOrNull(pattern: string): Pattern | null {
  try {
    return compilePattern(pattern)
  } catch {
    return null
  }
}
