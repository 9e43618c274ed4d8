/**
 * Resource tree of an API: one level per segment of its templates. A lookup finds the most specific template, segment
 * by segment from the left: a literal, then segments with partial literals (more literal characters first), then a
 * variable, then `/*` (D69). It backtracks from dead ends. Each node has one depth, so a lookup visits it at most once
 * and costs at most the number of templates.
 */
import { METHODS, type Resource, type ResourcePath, type ResourceTable } from '../proxy/exchange/resource.ts'
import { isTemplateError, type PathTemplate, parseTemplate, type TemplateSegment } from './path-template.ts'
import { hashPath, type ScannedPath } from './scanned-path.ts'

/** Up to so many literals of a node are compared one by one, more are looked up by hash. */
const COMPARED_MAX = 8
const PERCENT = 37

interface Literal {
  readonly hash: number
  readonly text: string
  readonly bytes: Buffer
  readonly node: Node
}

/** A segment with variables and literal text. */
interface Mixed {
  readonly pieces: TemplateSegment
  readonly literalChars: number
  readonly node: Node
}

/** Templates that are equal up to one segment. */
class Node {
  readonly literals: Literal[] = []
  /** Literals by hash where there are more than COMPARED_MAX; else null. */
  byHash: Map<number, Literal[]> | null = null
  /** Most literal characters first, after `sort`. */
  readonly mixed: Mixed[] = []
  /** `mixed` by pieces while the tree is built; else null. */
  #byPieces: Map<string, Mixed> | null = null
  variable: Node | null = null
  /** Templates that end here: without a slash, with a slash, with `/*`. */
  exact: TemplateResources | null = null
  slashed: TemplateResources | null = null
  open: TemplateResources | null = null

  /** The child for a segment; creates it where it is missing. */
  child(pieces: TemplateSegment): Node {
    if (pieces.length === 1) return this.#literalChild(pieces[0]!)
    if (pieces.length === 2 && pieces[0] === '' && pieces[1] === '') {
      this.variable ??= new Node()
      return this.variable
    }
    this.#byPieces ??= new Map()
    // No piece holds a brace, so the key is unique.
    const key = pieces.join('{}')
    const known = this.#byPieces.get(key)
    if (known !== undefined) return known.node
    const added = { pieces, literalChars: pieces.join('').length, node: new Node() }
    this.#byPieces.set(key, added)
    this.mixed.push(added)
    return added.node
  }

  /** Called once all templates are added. Equally specific segments keep the order of their declaration. */
  sort(): void {
    this.#byPieces = null
    this.mixed.sort((one, other) => other.literalChars - one.literalChars)
    for (const { node } of [...this.literals, ...this.mixed]) node.sort()
    this.variable?.sort()
  }

  #literalChild(text: string): Node {
    const { last: hash, bytes } = hashPath(`/${text}`)
    const known = this.literalsOf(hash).find(literal => literal.hash === hash && literal.text === text)
    if (known !== undefined) return known.node
    const added = { hash, text, bytes: bytes.subarray(1), node: new Node() }
    this.literals.push(added)
    if (this.byHash !== null) this.byHash.set(hash, [...this.literalsOf(hash), added])
    else if (this.literals.length > COMPARED_MAX) this.byHash = Map.groupBy(this.literals, literal => literal.hash)
    return added.node
  }

  /** Literals that may have this hash. */
  literalsOf(hash: number): readonly Literal[] {
    return this.byHash === null ? this.literals : (this.byHash.get(hash) ?? NONE)
  }

  /** Resources of a template that ends here. */
  resourcesOf({ isOpen, endsInSlash }: PathTemplate, template: string): TemplateResources {
    const end = isOpen ? 'open' : endsInSlash ? 'slashed' : 'exact'
    this[end] ??= new TemplateResources(template)
    return this[end]
  }
}

const NONE: readonly Literal[] = []

const ANY_METHOD = '*'

/** Resources of one template, by method. */
class TemplateResources implements ResourcePath {
  readonly template: string
  readonly #byVerb = new Map<string, Resource>()
  #allow: string | null = null

  constructor(template: string) {
    this.template = template
  }

  /** The first resource of a verb wins. */
  add(resource: Resource): void {
    if (!this.#byVerb.has(resource.verb)) this.#byVerb.set(resource.verb, resource)
  }

  /** Composed with the first use, because few templates are ever asked. */
  get allow(): string {
    this.#allow ??= allowOf([...this.#byVerb.keys()])
    return this.#allow
  }

  resource(method: string): Resource | undefined {
    const own = this.#byVerb.get(method)
    if (own !== undefined) return own
    const served = method === 'HEAD' ? this.#byVerb.get('GET') : undefined
    return served ?? this.#byVerb.get(ANY_METHOD)
  }
}

/** Value of Allow: known methods in the order of METHODS, then others as declared. */
function allowOf(verbs: readonly string[]): string {
  const offered = new Set(verbs.includes(ANY_METHOD) ? METHODS : verbs.includes('GET') ? ['HEAD'] : [])
  for (const verb of verbs) if (verb !== ANY_METHOD) offered.add(verb)
  const known = METHODS.filter(method => offered.has(method))
  return [...known, ...[...offered].filter(verb => !METHODS.includes(verb))].join(', ')
}

/** Cost of a segment with partial literals, in node visits: its text must be decoded. */
const MIXED_COST = 4

export class ResourceTree implements ResourceTable {
  readonly #resources: readonly Resource[]
  /** Built with the first request, because most of thousands of APIs wait long for theirs. */
  #root: Node | null = null
  #cost = 0

  /** Leaves out templates that no path can match; the reader of the API reports them. */
  constructor(resources: readonly Resource[]) {
    this.#resources = resources
  }

  /** Cost of the worst lookup, in node visits. */
  get cost(): number {
    if (this.#root === null) this.#build()
    return this.#cost
  }

  find(path: ScannedPath, segments: number): ResourcePath | null {
    return descend(this.#root ?? this.#build(), path, segments)
  }

  #build(): Node {
    const root = new Node()
    for (const resource of this.#resources) {
      const template = parseTemplate(resource.template)
      if (isTemplateError(template)) continue
      let node = root
      for (const pieces of template.segments) node = node.child(pieces)
      node.resourcesOf(template, resource.template).add(resource)
    }
    root.sort()
    this.#cost = costOf(root)
    this.#root = root
    return root
  }
}

function costOf({ literals, mixed, variable }: Node): number {
  const literal = literals.reduce((most, { node }) => Math.max(most, costOf(node)), 0)
  const parts = mixed.reduce((sum, { node }) => sum + MIXED_COST + costOf(node), 0)
  return 1 + literal + parts + (variable === null ? 0 : costOf(variable))
}

function descend(node: Node, path: ScannedPath, segment: number): ResourcePath | null {
  if (segment < path.segmentCount) return descendInto(node, path, segment) ?? node.open
  if (path.endsInSlash) return node.slashed ?? node.exact ?? node.open
  return node.exact ?? node.slashed ?? node.open
}

function descendInto(node: Node, path: ScannedPath, segment: number): ResourcePath | null {
  const hash = path.segmentHashes[segment]!
  const literals = node.literalsOf(hash)
  for (let index = 0; index < literals.length; index++) {
    const literal = literals[index]!
    if (literal.hash !== hash) continue
    if (!path.matches(literal.bytes, path.segmentStart(segment), path.segmentEnds[segment]!)) continue
    const found = descend(literal.node, path, segment + 1)
    if (found !== null) return found
    break
  }
  const found = node.mixed.length === 0 ? null : descendMixed(node, path, segment)
  if (found !== null) return found
  return node.variable === null ? null : descend(node.variable, path, segment + 1)
}

function descendMixed(node: Node, path: ScannedPath, segment: number): ResourcePath | null {
  const text = path.textOf(path.segmentStart(segment), path.segmentEnds[segment]!)
  for (const mixed of node.mixed) {
    const found = matchesPieces(mixed.pieces, text) ? descend(mixed.node, path, segment + 1) : null
    if (found !== null) return found
  }
  return null
}

/** True if the pieces stand in the segment in order: first at its start, last at its end, text between each two. */
function matchesPieces(pieces: TemplateSegment, segment: string): boolean {
  const first = pieces[0]!
  const last = pieces[pieces.length - 1]!
  const lastAt = segment.length - last.length
  if (!segment.startsWith(first) || !segment.endsWith(last) || isWithinEscape(segment, lastAt)) return false
  let at = first.length
  for (let index = 1; index < pieces.length - 1; index++) {
    const piece = pieces[index]!
    let found = segment.indexOf(piece, at + 1)
    while (found >= 0 && isWithinEscape(segment, found)) found = segment.indexOf(piece, found + 1)
    if (found < 0) return false
    at = found + piece.length
  }
  return at < lastAt
}

/** True if `at` lies within an escape: "25" in "%25" is not the text 25. */
function isWithinEscape(segment: string, at: number): boolean {
  return segment.charCodeAt(at - 1) === PERCENT || segment.charCodeAt(at - 2) === PERCENT
}
