/**
 * The resources of an API as a tree, a level per segment of their templates. Of the templates that fit a path the most
 * specific one is found, segment by segment from the left: a literal before a segment with literal parts, of these the
 * one with more literal characters, before a variable, before `/*`. What leads nowhere is taken back; since a node
 * stands at one depth only, none is visited twice for one path, and no path costs more than the templates there are.
 */
import type { Resource, ResourceTable } from '../exchange/resource.ts'
import { isTemplateFault, type PathTemplate, readTemplate, type TemplateSegment } from '../structure/path-template.ts'
import { hashesOf, type ScannedPath } from '../structure/scanned-path.ts'
import { ResourcePlace } from './resource-place.ts'

/** More literals than these are looked up by their hashes, fewer compared with it one by one. */
const COMPARED_MAX = 8
const PERCENT = 37

interface Literal {
  readonly hash: number
  readonly text: Buffer
  /** The same. */
  readonly piece: string
  readonly node: Node
}

interface Mixed {
  readonly pieces: TemplateSegment
  readonly literalChars: number
  readonly node: Node
}

/** The templates that are the same up to here. */
class Node {
  readonly literals: Literal[] = []
  /** The same where there are many; null where not. */
  byHash: Map<number, Literal[]> | null = null
  /** Most literal characters first, once they are put in order. */
  readonly mixed: Mixed[] = []
  /** The same by all their pieces; null where there are none. */
  #byPieces: Map<string, Mixed> | null = null
  variable: Node | null = null
  /** Templates that end here: as they are, with a slash, with `/*`. */
  exact: ResourcePlace | null = null
  slashed: ResourcePlace | null = null
  open: ResourcePlace | null = null

  next(pieces: TemplateSegment): Node {
    if (pieces.length === 1) return this.#literal(pieces[0]!)
    if (pieces.length === 2 && pieces[0] === '' && pieces[1] === '') {
      this.variable ??= new Node()
      return this.variable
    }
    this.#byPieces ??= new Map()
    // No piece holds a brace.
    const key = pieces.join('{}')
    const same = this.#byPieces.get(key)
    if (same !== undefined) return same.node
    const added = { pieces, literalChars: pieces.join('').length, node: new Node() }
    this.#byPieces.set(key, added)
    this.mixed.push(added)
    return added.node
  }

  /** When all templates are there. Of those that are as specific the first stays the first. */
  order(): void {
    this.#byPieces = null
    this.mixed.sort((one, other) => other.literalChars - one.literalChars)
    for (const { node } of [...this.literals, ...this.mixed]) node.order()
    this.variable?.order()
  }

  #literal(piece: string): Node {
    const { last: hash, text } = hashesOf(`/${piece}`)
    const known = this.literalsOf(hash).find(literal => literal.hash === hash && literal.piece === piece)
    if (known !== undefined) return known.node
    const added = { hash, text: text.subarray(1), piece, node: new Node() }
    this.literals.push(added)
    if (this.byHash !== null) this.byHash.set(hash, [...this.literalsOf(hash), added])
    else if (this.literals.length > COMPARED_MAX) this.byHash = Map.groupBy(this.literals, literal => literal.hash)
    return added.node
  }

  /** Those with this hash among them. */
  literalsOf(hash: number): readonly Literal[] {
    return this.byHash === null ? this.literals : (this.byHash.get(hash) ?? NONE)
  }

  /** Where the resources of a template stand that ends here. */
  place({ isOpen, endsInSlash }: PathTemplate, template: string): ResourcePlace {
    const end = isOpen ? 'open' : endsInSlash ? 'slashed' : 'exact'
    this[end] ??= new ResourcePlace(template)
    return this[end]
  }
}

const NONE: readonly Literal[] = []

/** Visiting a segment with literal parts, in visits of a node: a text is made of it. */
const PARTS_EFFORT = 4

export class ResourceTree implements ResourceTable {
  readonly #resources: readonly Resource[]
  /** Grown when the first request comes: of thousands of APIs most wait long for theirs, and a start does not. */
  #root: Node | null = null
  #effort = 0

  /** Templates that no path can match are left out: whoever reads them reports them. */
  constructor(resources: readonly Resource[]) {
    this.#resources = resources
  }

  /** Nodes that may have to be visited for one path. */
  get effort(): number {
    if (this.#root === null) this.#grow()
    return this.#effort
  }

  find(path: ScannedPath, segments: number): ResourcePlace | null {
    return descend(this.#root ?? this.#grow(), path, segments)
  }

  #grow(): Node {
    const root = new Node()
    for (const resource of this.#resources) {
      const template = readTemplate(resource.template)
      if (isTemplateFault(template)) continue
      let node = root
      for (const pieces of template.segments) node = node.next(pieces)
      node.place(template, resource.template).add(resource)
    }
    root.order()
    this.#effort = effortOf(root)
    this.#root = root
    return root
  }
}

function effortOf({ literals, mixed, variable }: Node): number {
  const literal = literals.reduce((most, { node }) => Math.max(most, effortOf(node)), 0)
  const parts = mixed.reduce((sum, { node }) => sum + PARTS_EFFORT + effortOf(node), 0)
  return 1 + literal + parts + (variable === null ? 0 : effortOf(variable))
}

function descend(node: Node, path: ScannedPath, segment: number): ResourcePlace | null {
  if (segment < path.count) return below(node, path, segment) ?? node.open
  if (path.endsInSlash) return node.slashed ?? node.exact ?? node.open
  return node.exact ?? node.slashed ?? node.open
}

function below(node: Node, path: ScannedPath, segment: number): ResourcePlace | null {
  const hash = path.hashes[segment]!
  const literals = node.literalsOf(hash)
  for (let index = 0; index < literals.length; index++) {
    const literal = literals[index]!
    if (literal.hash !== hash || !path.holds(literal.text, path.startOf(segment), path.ends[segment]!)) continue
    const found = descend(literal.node, path, segment + 1)
    if (found !== null) return found
    break
  }
  const found = node.mixed.length === 0 ? null : belowMixed(node, path, segment)
  if (found !== null) return found
  return node.variable === null ? null : descend(node.variable, path, segment + 1)
}

function belowMixed(node: Node, path: ScannedPath, segment: number): ResourcePlace | null {
  const text = path.text(path.startOf(segment), path.ends[segment]!)
  for (const mixed of node.mixed) {
    const found = fits(mixed.pieces, text) ? descend(mixed.node, path, segment + 1) : null
    if (found !== null) return found
  }
  return null
}

/** Whether the pieces stand in the segment in order, at its beginning and end, with something between each two. */
function fits(pieces: TemplateSegment, segment: string): boolean {
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

/** `25` in `%25` is not the text 25. */
function isWithinEscape(segment: string, at: number): boolean {
  return segment.charCodeAt(at - 1) === PERCENT || segment.charCodeAt(at - 2) === PERCENT
}
