/** Finds the operation of a contract that a request belongs to, with the values of its path parameters. */
import { compilePattern, type Pattern } from '../../runtime/pattern.ts'
import type { OperationContract } from './api-contract.ts'

/** One segment of a template: a text, or a pattern with a group for each variable. */
type Segment = string | { readonly names: readonly string[]; readonly pattern: Pattern | null }

interface Template {
  readonly segments: readonly Segment[]
  /** The template ends with a segment `*`: any further segments match, also none. */
  readonly isOpen: boolean
  /** Methods in capitals. */
  readonly operations: Map<string, OperationContract>
}

interface FoundOperation {
  readonly operation: OperationContract
  /** Still with percent-escapes. */
  readonly variables: ReadonlyMap<string, string>
}

export class OperationIndex {
  readonly #templates: readonly Template[]

  constructor(operations: readonly OperationContract[]) {
    const byTemplate = new Map<string, Template>()
    for (const operation of operations) {
      const { template, method } = operation
      const known = byTemplate.get(template) ?? templateOf(template)
      known.operations.set(method, operation)
      byTemplate.set(template, known)
    }
    // Concrete paths come before templated ones (OpenAPI 3.1.1 4.8.8).
    this.#templates = [...byTemplate.values()].sort(compareTemplates)
  }

  /** `path`: without query. HEAD belongs to GET unless the document has both. Undefined: there is none. */
  find(method: string, path: string): FoundOperation | undefined {
    const parts = path.split('/').slice(1)
    for (const { segments, isOpen, operations } of this.#templates) {
      const operation = operations.get(method) ?? (method === 'HEAD' ? operations.get('GET') : undefined)
      if (operation === undefined) continue
      const variables = match(segments, isOpen ? parts.slice(0, segments.length) : parts)
      if (variables !== undefined) return { operation, variables }
    }
    return undefined
  }
}

function templateOf(text: string): Template {
  const texts = text.split('/').slice(1)
  const isOpen = texts.at(-1) === '*'
  return { segments: (isOpen ? texts.slice(0, -1) : texts).map(segmentOf), isOpen, operations: new Map() }
}

function segmentOf(text: string): Segment {
  const names = Array.from(text.matchAll(/\{([^}]*)\}/g), ([, name]) => name!)
  if (names.length === 0) return text
  if (/^\{[^}]*\}$/.test(text)) return { names, pattern: null }
  const escaped = text.split(/\{[^}]*\}/).map(part => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
  return { names, pattern: compilePattern(escaped.join('([^/]+?)')) }
}

/** The first segment that differs decides: a text, then a pattern, then a variable, then any rest. */
function compareTemplates(one: Template, other: Template): number {
  for (let at = 0; at < Math.max(one.segments.length, other.segments.length); at++) {
    const difference = rankOf(one.segments[at]) - rankOf(other.segments[at])
    if (difference !== 0) return difference
  }
  return Number(one.isOpen) - Number(other.isOpen)
}

/** Undefined: the template has no such segment. */
function rankOf(segment: Segment | undefined): number {
  if (segment === undefined) return 3
  if (typeof segment === 'string') return 0
  return segment.pattern === null ? 2 : 1
}

function match(segments: readonly Segment[], parts: readonly string[]): Map<string, string> | undefined {
  if (segments.length !== parts.length) return undefined
  const variables = new Map<string, string>()
  for (const [at, segment] of segments.entries()) {
    const part = parts[at]!
    if (typeof segment === 'string') {
      if (segment !== part) return undefined
    } else if (segment.pattern === null) {
      if (part === '') return undefined
      variables.set(segment.names[0]!, part)
    } else {
      const matcher = segment.pattern.matcher(part)
      if (!matcher.matches()) return undefined
      for (const [group, name] of segment.names.entries()) variables.set(name, matcher.group(group + 1) ?? '')
    }
  }
  return variables
}
