/**
 * Paths of FHIRPath Patch: the subset of FHIRPath 2.0 that names elements of one resource. Children, indexes, `where`
 * with comparisons to literals, `first`, `last`, `single`, `ofType`, `as` and `extension`; anything else is refused.
 *
 *     HealthcareService.telecom.where(system = 'phone' and use = 'work')[0].value
 */
import { definitionOf, isPrimitive, type Member, resourceDefinition, type TypeDefinition } from './definition-table.ts'
import { isNumber, isObject, type JsonObject, numberText } from './json-text.ts'

/** A path that is malformed, not supported, or names elements that the type does not have. */
export class ElementPathError extends Error {
  override readonly name = 'ElementPathError'
}

export type ElementPath = readonly Step[]

type Step =
  | { readonly kind: 'child'; readonly name: string }
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'where'; readonly criteria: Criteria }
  | { readonly kind: 'first' | 'last' | 'single' }
  /** At the end of a path within `where`, not elsewhere. */
  | { readonly kind: 'exists' }
  | { readonly kind: 'type'; readonly type: string }

type Criteria =
  | { readonly kind: 'and'; readonly parts: readonly Criteria[] }
  | { readonly kind: 'or'; readonly parts: readonly Criteria[] }
  | { readonly kind: 'compare'; readonly isEqual: boolean; readonly path: ElementPath; readonly literal: string }
  | { readonly kind: 'exists'; readonly path: ElementPath }

/** One element of a resource. */
export interface ElementPlace {
  /** The object that has it; the resource itself for the root. */
  readonly owner: JsonObject
  /** '' for the root. */
  readonly jsonName: string
  /** Position in a list; -1 for an element that does not repeat. */
  readonly index: number
  /** Undefined for the root. */
  readonly member: Member | undefined
  /** Undefined for a primitive that has only extensions. */
  readonly value: unknown
}

const CHARACTERS_MAX = 1000
const STEPS_MAX = 64
const TOKEN = new RegExp(
  [
    String.raw`\s*(?:(?<name>[A-Za-z_][A-Za-z0-9_]*|\$this)`,
    '`(?<quoted>[^`\\\\]+)`',
    String.raw`'(?<text>(?:[^'\\]|\\.)*)'`,
    String.raw`(?<number>-?[0-9]+(?:\.[0-9]+)?)`,
    '@(?<date>T?[0-9][0-9T:.+Z-]*)',
    String.raw`(?<sign>!=|[.()[\]=]))`,
  ].join('|'),
  'y',
)
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', f: '\f' }

interface Token {
  readonly kind: 'name' | 'quoted' | 'text' | 'number' | 'date' | 'sign' | 'end'
  readonly text: string
}

/** The path behind the name of the resource type. Throws ElementPathError. */
export function parseElementPath(text: string, resourceType: string): ElementPath {
  if (text.length > CHARACTERS_MAX) throw new ElementPathError(`The path has more than ${CHARACTERS_MAX} characters`)
  return new PathParser(tokensOf(text)).document(resourceType)
}

/** The elements that a path names, in order; a list gives each of its items. Throws ElementPathError. */
export function elementsAt(resource: JsonObject, path: ElementPath): readonly ElementPlace[] {
  return walk([rootPlace(resource)], path)
}

/** The definition of the children of an element. Throws ElementPathError for a primitive one. */
export function typeOfPlace({ value, member }: ElementPlace): TypeDefinition {
  const name = member?.type ?? 'Resource'
  const type = name === 'Resource' ? resourceDefinition((value as JsonObject).resourceType) : definitionOf(name)
  if (type === undefined) throw new ElementPathError(`${name} has no children`)
  return type
}

function rootPlace(resource: JsonObject): ElementPlace {
  return { owner: resource, jsonName: '', index: -1, member: undefined, value: resource }
}

function walk(places: readonly ElementPlace[], path: ElementPath): readonly ElementPlace[] {
  return path.reduce(take, places)
}

function take(places: readonly ElementPlace[], step: Step): readonly ElementPlace[] {
  switch (step.kind) {
    case 'child':
      return places.flatMap(place => childrenOf(place, step.name))
    case 'index':
      return places.slice(step.index, step.index + 1)
    case 'where':
      return places.filter(place => meets(place, step.criteria))
    case 'first':
      return places.slice(0, 1)
    case 'last':
      return places.slice(-1)
    case 'single':
      if (places.length > 1) throw new ElementPathError('single() got several elements')
      return places
    case 'type':
      return places.filter(({ member }) => member?.type === step.type)
    default:
      throw new ElementPathError('exists() stands only at the end of a criterion')
  }
}

/** Children of a primitive are its id and its extensions, which stand in the member with an underscore. */
function childrenOf(place: ElementPlace, name: string): readonly ElementPlace[] {
  const { member, value } = place
  const isOfPrimitive = member !== undefined && isPrimitive(member.type)
  const type = isOfPrimitive ? definitionOf('Element')! : typeOfPlace(place)
  const owner = isOfPrimitive ? shadowOf(place) : value
  const element = type.elements.find(child => child.name === name)
  if (element === undefined) throw new ElementPathError(`${type.name} has no element of this name`)
  if (!isObject(owner)) return []
  return element.jsonNames.flatMap(jsonName => placesOf(owner, jsonName, type.members.get(jsonName)!))
}

function shadowOf({ owner, jsonName, index }: ElementPlace): unknown {
  const shadow = owner[`_${jsonName}`]
  return Array.isArray(shadow) ? shadow[index] : shadow
}

function placesOf(owner: JsonObject, jsonName: string, member: Member): readonly ElementPlace[] {
  const value = owner[jsonName]
  const shadow = member.hasShadow ? owner[`_${jsonName}`] : undefined
  if (value === undefined && shadow === undefined) return []
  if (!member.element.isList) return [{ owner, jsonName, index: -1, member, value }]
  const values = Array.isArray(value) ? (value as unknown[]) : []
  const length = Math.max(values.length, Array.isArray(shadow) ? shadow.length : 0)
  return Array.from({ length }, (_, index) => ({ owner, jsonName, index, member, value: values[index] ?? undefined }))
}

function meets(place: ElementPlace, criteria: Criteria): boolean {
  if (criteria.kind === 'and') return criteria.parts.every(part => meets(place, part))
  if (criteria.kind === 'or') return criteria.parts.some(part => meets(place, part))
  const found = walk([place], criteria.path)
  if (criteria.kind === 'exists') return found.length > 0
  // Several elements are never equal to one literal; without elements both comparisons are empty, which is not true.
  if (found.length === 0) return false
  const isEqual = found.length === 1 && literalOf(found[0]!.value) === criteria.literal
  return isEqual === criteria.isEqual
}

/** Text in which a primitive value is compared; undefined for others. */
function literalOf(value: unknown): string | undefined {
  if (isNumber(value)) return String(Number(numberText(value)))
  return typeof value === 'string' || typeof value === 'boolean' ? String(value) : undefined
}

function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = []
  const end = text.trimEnd().length
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < end) {
    const at = TOKEN.lastIndex
    const groups = TOKEN.exec(text)?.groups
    if (groups === undefined) throw new ElementPathError(`The path is malformed at character ${at + 1}`)
    const [kind, value] = Object.entries(groups).find(([, value]) => value !== undefined)!
    tokens.push({ kind: kind as Token['kind'], text: value! })
  }
  return tokens
}

class PathParser {
  readonly #tokens: readonly Token[]
  #at = 0
  #count = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  document(resourceType: string): ElementPath {
    if (this.#name() !== resourceType) throw new ElementPathError(`The path does not begin with ${resourceType}`)
    const path = this.#steps()
    if (this.#peek().kind !== 'end') throw this.#unexpected()
    return path
  }

  #steps(): ElementPath {
    const steps: Step[] = []
    for (;;) {
      if (++this.#count > STEPS_MAX) throw new ElementPathError(`The path has more than ${STEPS_MAX} steps`)
      if (this.#takes('.')) steps.push(...this.#step())
      else if (this.#takes('[')) {
        steps.push({ kind: 'index', index: this.#number() })
        this.#expect(']')
      } else return steps
    }
  }

  /** A function gives one step or two. */
  #step(): readonly Step[] {
    const isQuoted = this.#peek().kind === 'quoted'
    const name = this.#name()
    if (isQuoted || !this.#takes('(')) return [{ kind: 'child', name }]
    const steps = this.#function(name)
    this.#expect(')')
    return steps
  }

  #function(name: string): readonly Step[] {
    switch (name) {
      case 'first':
      case 'last':
      case 'single':
      case 'exists':
        return [{ kind: name }]
      case 'where':
        return [{ kind: 'where', criteria: this.#either() }]
      case 'ofType':
      case 'as':
        return [{ kind: 'type', type: this.#name() }]
      case 'extension': {
        const url: ElementPath = [{ kind: 'child', name: 'url' }]
        const criteria: Criteria = { kind: 'compare', isEqual: true, path: url, literal: this.#text() }
        return [
          { kind: 'child', name: 'extension' },
          { kind: 'where', criteria },
        ]
      }
      default:
        throw new ElementPathError(`The function ${name}() is not supported in paths of patches`)
    }
  }

  #either(): Criteria {
    const parts = [this.#both()]
    while (this.#takesName('or')) parts.push(this.#both())
    return parts.length === 1 ? parts[0]! : { kind: 'or', parts }
  }

  #both(): Criteria {
    const parts = [this.#comparison()]
    while (this.#takesName('and')) parts.push(this.#comparison())
    return parts.length === 1 ? parts[0]! : { kind: 'and', parts }
  }

  #comparison(): Criteria {
    if (this.#takes('(')) {
      const criteria = this.#either()
      this.#expect(')')
      return criteria
    }
    const isItself = this.#takesName('$this')
    const path: ElementPath = [...(isItself ? [] : [{ kind: 'child', name: this.#name() } as const]), ...this.#steps()]
    if (path.at(-1)?.kind === 'exists') return { kind: 'exists', path: path.slice(0, -1) }
    if (this.#takes('=')) return { kind: 'compare', isEqual: true, path, literal: this.#literal() }
    if (this.#takes('!=')) return { kind: 'compare', isEqual: false, path, literal: this.#literal() }
    throw this.#unexpected()
  }

  #literal(): string {
    const token = this.#next()
    if (token.kind === 'number') return String(Number(token.text))
    if (token.kind === 'text') return unescaped(token.text)
    if (token.kind === 'date') return token.text.replace(/^T/, '')
    if (token.kind === 'name' && (token.text === 'true' || token.text === 'false')) return token.text
    throw new ElementPathError('A comparison needs a literal at its right side')
  }

  #name(): string {
    const { kind, text } = this.#next()
    if (kind !== 'name' && kind !== 'quoted') throw this.#unexpected()
    return text
  }

  #text(): string {
    const { kind, text } = this.#next()
    if (kind !== 'text') throw this.#unexpected()
    return unescaped(text)
  }

  #number(): number {
    const { kind, text } = this.#next()
    if (kind !== 'number' || !/^\d{1,9}$/.test(text)) throw this.#unexpected()
    return Number(text)
  }

  #peek(): Token {
    return this.#tokens[this.#at] ?? { kind: 'end', text: '' }
  }

  #next(): Token {
    const token = this.#peek()
    this.#at++
    return token
  }

  #takes(sign: string): boolean {
    const { kind, text } = this.#peek()
    if (kind !== 'sign' || text !== sign) return false
    this.#at++
    return true
  }

  #takesName(name: string): boolean {
    const { kind, text } = this.#peek()
    if (kind !== 'name' || text !== name) return false
    this.#at++
    return true
  }

  #expect(sign: string): void {
    if (!this.#takes(sign)) throw this.#unexpected()
  }

  #unexpected(): ElementPathError {
    return new ElementPathError('The path is malformed or uses more of FHIRPath than paths of patches may')
  }
}

function unescaped(text: string): string {
  return text.replace(/\\(?:u([0-9a-fA-F]{4})|(.))/gs, (_, digits: string | undefined, char: string) =>
    digits === undefined ? (ESCAPES[char] ?? char) : String.fromCharCode(Number.parseInt(digits, 16)),
  )
}
