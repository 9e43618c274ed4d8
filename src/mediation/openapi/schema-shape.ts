/**
 * The types that a schema allows for a text, and the shapes of its items and properties. Text that is no number stays
 * text, so that the schema refuses it.
 */
import { compilePattern, type Pattern } from '../../runtime/pattern.ts'
import { isExactDouble } from '../formats/json-text.ts'
import type { ApiContract } from './api-contract.ts'
import { type XmlTerms, xmlTermsOf } from './xml-terms.ts'

export type Definitions = ApiContract['schemas']
type Schema = Readonly<Record<string, unknown>>

const LISTS = ['allOf', 'oneOf', 'anyOf'] as const
/** Keywords that hold for one type, which a schema without `type` means. */
const IMPLIED: readonly (readonly [type: string, keywords: readonly string[]])[] = [
  ['number', ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']],
  ['array', ['items', 'prefixItems', 'minItems', 'maxItems', 'uniqueItems', 'contains']],
  ['object', ['properties', 'patternProperties', 'required', 'minProperties', 'maxProperties', 'propertyNames']],
  ['object', ['additionalProperties', 'unevaluatedProperties', 'dependentRequired', 'dependentSchemas']],
  ['string', ['minLength', 'maxLength', 'pattern']],
]
const COMPOSITES: ReadonlySet<string> = new Set(['array', 'object', 'null'])
const INTEGER = /^-?(?:0|[1-9]\d*)$/
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** Shapes of one document that a thread keeps: clients choose how deep a recursive schema nests. */
const KEPT_MAX = 10_000

/** Shapes by the schemas that they are made of, so that a recursive schema has a limited number. */
class KeptShapes {
  readonly #ids = new Map<unknown, number>()
  readonly #shapes = new Map<string, Shape>()

  /** `isKept`: false where no more shapes are kept. */
  of(schemas: readonly unknown[], definitions: Definitions): { readonly shape: Shape; readonly isKept: boolean } {
    const key = schemas.map(schema => this.#idOf(schema)).join()
    const known = this.#shapes.get(key)
    if (known !== undefined) return { shape: known, isKept: true }
    const shape = new Shape(schemas, definitions)
    const isKept = this.#shapes.size < KEPT_MAX
    if (isKept) this.#shapes.set(key, shape)
    return { shape, isKept }
  }

  #idOf(schema: unknown): number {
    const known = this.#ids.get(schema) ?? this.#ids.size
    this.#ids.set(schema, known)
    return known
  }
}

const KEPT = new WeakMap<Definitions, KeptShapes>()

export class Shape {
  readonly #definitions: Definitions
  readonly #schemas: readonly unknown[]
  readonly #types = new Set<string>()
  readonly #implied = new Set<string>()
  /** Texts that are values as they are. */
  readonly #literals = new Set<string>()
  readonly #items: unknown[] = []
  /** Schemas of the first items. */
  readonly #prefixes: (readonly unknown[])[] = []
  readonly #properties = new Map<string, unknown[]>()
  readonly #patterns: { readonly pattern: Pattern; readonly schema: unknown }[] = []
  readonly #others: unknown[] = []
  readonly #known = new Map<string, Shape>()
  #isClosed = false
  #xml: XmlTerms | undefined

  constructor(schemas: readonly unknown[], definitions: Definitions) {
    this.#definitions = definitions
    this.#schemas = schemas
    const seen = new Set<unknown>()
    for (const schema of schemas) this.#enter(schema, seen)
    if (this.#types.size === 0) for (const type of this.#implied) this.#types.add(type)
  }

  /** Returns the shape of a schema by its name; '' for any value. */
  static named(name: string, definitions: Definitions): Shape {
    return new Shape(name === '' ? [] : [definitions[name]], definitions)
  }

  get isList(): boolean {
    return this.#types.has('array')
  }

  get isObject(): boolean {
    return this.#types.has('object')
  }

  /** A text alone may be a value. */
  get isScalar(): boolean {
    return this.#types.size === 0 || !this.#types.isSubsetOf(COMPOSITES)
  }

  /** The schema says nothing about types. */
  get isAny(): boolean {
    return this.#types.size === 0
  }

  get isText(): boolean {
    return this.#types.size === 0 || this.#types.has('string')
  }

  /** No property may be there that the schema does not name. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  get propertyNames(): Iterable<string> {
    return this.#properties.keys()
  }

  /** How the value is written in XML. */
  get xml(): XmlTerms {
    this.#xml ??= xmlTermsOf(this.#schemas, this.#definitions)
    return this.#xml
  }

  /** The shape of all items, wherever they stand. */
  get anyItem(): Shape {
    return this.#shapeOf('any item', [...this.#items, ...this.#prefixes.flat()])
  }

  declares(name: string): boolean {
    return this.#properties.has(name)
  }

  /** The text is a value that the schema names. */
  isLiteral(text: string): boolean {
    return this.#literals.has(text)
  }

  item(at: number): Shape {
    const own = this.#prefixes.filter(({ length }) => at < length).map(prefix => prefix[at])
    return own.length === 0 ? this.#shapeOf('items', this.#items) : this.#shapeOf(`item ${at}`, own)
  }

  property(name: string): Shape {
    const own = this.#properties.get(name)
    if (own !== undefined) return this.#shapeOf(`property ${name}`, own)
    // Names of clients have no entries of their own.
    const matched = this.#patterns.filter(({ pattern }) => pattern.matcher(name).find())
    if (matched.length === 0) return this.#shapeOf('others', this.#others)
    const schemas = matched.map(({ schema }) => schema)
    // Clients choose which patterns match together, so that only those that match alone have an entry.
    if (matched.length > 1) return new Shape(schemas, this.#definitions)
    return this.#shapeOf(`pattern ${this.#patterns.indexOf(matched[0]!)}`, schemas)
  }

  scalar(text: string): unknown {
    if (this.#literals.has(text)) return text
    if (this.#types.has('integer') && INTEGER.test(text)) return numberOf(text)
    if (this.#types.has('number') && NUMBER.test(text)) return numberOf(text)
    if (this.#types.has('boolean') && (text === 'true' || text === 'false')) return text === 'true'
    return text === '' && this.#types.has('null') && !this.#types.has('string') ? null : text
  }

  #shapeOf(key: string, schemas: readonly unknown[]): Shape {
    let known = this.#known.get(key)
    if (known === undefined) {
      const kept = KEPT.get(this.#definitions) ?? new KeptShapes()
      KEPT.set(this.#definitions, kept)
      const { shape, isKept } = kept.of(schemas, this.#definitions)
      if (isKept) this.#known.set(key, shape)
      known = shape
    }
    return known
  }

  #enter(schema: unknown, seen: Set<unknown>): void {
    if (typeof schema !== 'object' || schema === null || seen.has(schema)) return
    seen.add(schema)
    const { $ref: ref, then, else: otherwise, if: condition } = schema as Schema
    if (typeof ref === 'string') this.#enter(this.#definitions[ref.slice(ref.lastIndexOf('/') + 1)], seen)
    this.#addTypes(schema as Schema)
    this.#addNested(schema as Schema)
    for (const keyword of LISTS) {
      const inner = (schema as Schema)[keyword]
      if (Array.isArray(inner)) for (const each of inner) this.#enter(each, seen)
    }
    // `nullable` and discriminators put the schema that holds into `else`.
    if ((condition as Schema | undefined)?.type === 'null') this.#types.add('null')
    this.#enter(then, seen)
    this.#enter(otherwise, seen)
  }

  #addTypes(schema: Schema): void {
    const { type, const: constant, enum: values } = schema
    for (const each of [type].flat()) if (typeof each === 'string') this.#types.add(each)
    const literals = [...(Array.isArray(values) ? (values as readonly unknown[]) : []), constant]
    for (const literal of literals) {
      if (typeof literal === 'string') this.#literals.add(literal)
      if (type === undefined && literal !== undefined) this.#types.add(typeOf(literal))
    }
    if (type !== undefined) return
    for (const [implied, keywords] of IMPLIED) {
      if (keywords.some(keyword => schema[keyword] !== undefined)) this.#implied.add(implied)
    }
  }

  #addNested({ items, prefixItems, properties, patternProperties, ...rest }: Schema): void {
    if (items !== undefined) this.#items.push(items)
    if (Array.isArray(prefixItems)) this.#prefixes.push(prefixItems)
    for (const [name, inner] of Object.entries(properties ?? {})) {
      this.#properties.set(name, [...(this.#properties.get(name) ?? []), inner])
    }
    for (const [pattern, inner] of Object.entries(patternProperties ?? {})) {
      this.#patterns.push({ pattern: compilePattern(pattern), schema: inner })
    }
    for (const others of [rest.additionalProperties, rest.unevaluatedProperties]) {
      if (others === false) this.#isClosed = true
      else if (others !== undefined) this.#others.push(others)
    }
  }
}

/** A number that a double does not hold keeps its digits. */
function numberOf(text: string): unknown {
  return isExactDouble(text) ? Number(text) : JSON.rawJSON(text)
}

function typeOf(literal: unknown): string {
  if (literal === null) return 'null'
  return Array.isArray(literal) ? 'array' : typeof literal
}
