/**
 * Values of parameters: text of a request to JSON, by the style that the document names and the types that its schema
 * allows. Text that is no number stays text, so that the schema refuses it.
 */
import type { ApiContract, ParameterContract } from './api-contract.ts'

/** Types that a value may have, and the schemas of its items and properties. */
interface Shape {
  readonly types: Set<string>
  readonly items: unknown[]
  readonly properties: Map<string, unknown[]>
}

type Definitions = ApiContract['schemas']
type Schema = Readonly<Record<string, unknown>>

const NESTED = ['allOf', 'oneOf', 'anyOf'] as const
const HOPS_MAX = 16
const INTEGER = /^-?(?:0|[1-9]\d*)$/
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

function shapeOf(schemas: readonly unknown[], definitions: Definitions): Shape {
  const shape: Shape = { types: new Set(), items: [], properties: new Map() }
  const enter = (schema: unknown, hops: number): void => {
    if (typeof schema !== 'object' || schema === null || hops > HOPS_MAX) return
    const { $ref: ref, type, items, properties, else: otherwise } = schema as Schema
    if (typeof ref === 'string') enter(definitions[ref.slice(ref.lastIndexOf('/') + 1)], hops + 1)
    for (const each of [type].flat()) if (typeof each === 'string') shape.types.add(each)
    if (items !== undefined) shape.items.push(items)
    for (const [name, inner] of Object.entries(properties ?? {})) {
      shape.properties.set(name, [...(shape.properties.get(name) ?? []), inner])
    }
    for (const keyword of NESTED) {
      const inner = (schema as Schema)[keyword]
      if (Array.isArray(inner)) for (const each of inner) enter(each, hops + 1)
    }
    // `nullable` and discriminators put the schema that holds into `else`.
    enter(otherwise, hops + 1)
  }
  for (const schema of schemas) enter(schema, 0)
  return shape
}

function scalarOf(text: string, { types }: Shape): unknown {
  const isNumber = types.has('integer') ? INTEGER.test(text) : types.has('number') && NUMBER.test(text)
  if (isNumber || (types.has('number') && NUMBER.test(text))) return Number(text)
  if (types.has('boolean') && (text === 'true' || text === 'false')) return text === 'true'
  return text === '' && types.has('null') && !types.has('string') ? null : text
}

/** The received text of a parameter: still with percent-escapes where its place has them. */
export interface ReceivedParameters {
  readonly path: ReadonlyMap<string, string>
  readonly query: readonly (readonly [name: string, text: string])[]
  /** `name`: in lower case. */
  header(name: string): string | undefined
  readonly cookies: ReadonlyMap<string, string>
}

/** `value`: to be validated; undefined: it is absent. `wrong`: a rule that the text itself breaks; '' for none. */
interface ParameterValue {
  readonly value: unknown
  readonly wrong: string
}

const ABSENT: ParameterValue = { value: undefined, wrong: '' }
const MALFORMED: ParameterValue = { value: undefined, wrong: 'must have well-formed percent-escapes' }
const REPEATED: ParameterValue = { value: undefined, wrong: 'must not be repeated' }

/** Reads one parameter of its requests. */
export class ParameterReader {
  readonly contract: ParameterContract
  readonly #definitions: Definitions
  readonly #shape: Shape
  readonly #items: Shape

  constructor(contract: ParameterContract, definitions: Definitions) {
    this.contract = contract
    this.#definitions = definitions
    const schema = contract.schema === '' ? [] : [definitions[contract.schema]]
    this.#shape = shapeOf(schema, definitions)
    this.#items = shapeOf(this.#shape.items, definitions)
  }

  /** The value that the request has for the parameter. */
  read(received: ReceivedParameters): ParameterValue {
    try {
      return this.#read(received)
    } catch (error) {
      if (error instanceof URIError) return MALFORMED
      throw error
    }
  }

  /** Throws URIError. */
  #read({ path, query, header, cookies }: ReceivedParameters): ParameterValue {
    const { name, place } = this.contract
    if (place === 'query') return this.#fromQuery(query)
    const text = {
      path: () => path.get(name),
      header: () => header(name.toLowerCase()),
      cookie: () => cookies.get(name),
    }[place]()
    return text === undefined ? ABSENT : this.#fromText(text, place === 'path' ? decodeURIComponent : same)
  }

  #fromText(text: string, decode: (text: string) => string): ParameterValue {
    const { name, style, explodes } = this.contract
    if (style === 'json') return jsonOf(decode(text))
    const { types } = this.#shape
    const isComposite = types.has('array') || types.has('object')
    if (style === 'label') {
      if (!text.startsWith('.')) return { value: undefined, wrong: 'must begin with "."' }
      return this.#composed(text.slice(1), explodes && isComposite ? '.' : ',', decode)
    }
    if (style === 'matrix') {
      const start = `;${name}=`
      const isExplodedObject = explodes && types.has('object')
      if (!isExplodedObject && !text.startsWith(start)) return { value: undefined, wrong: `must begin with "${start}"` }
      if (isExplodedObject) return this.#composed(text.slice(1), ';', decode)
      const rest = text.slice(start.length)
      return this.#composed(explodes ? rest.replaceAll(start, ',') : rest, ',', decode)
    }
    return this.#composed(text, ',', decode)
  }

  /** A text with separators. Header fields may have blanks beside commas. */
  #composed(text: string, separator: string, decode: (text: string) => string): ParameterValue {
    const { types } = this.#shape
    const { explodes, place } = this.contract
    if (!types.has('array') && !types.has('object')) return { value: scalarOf(decode(text), this.#shape), wrong: '' }
    const split = text === '' ? [] : text.split(separator)
    const parts = split.map(part => decode(place === 'header' ? part.trim() : part))
    if (types.has('array')) return this.#list(parts)
    if (explodes) return this.#object(parts.map(part => pairOf(part)))
    const pairs = Array.from({ length: Math.ceil(parts.length / 2) }, (_, at) => [
      parts[2 * at]!,
      parts[2 * at + 1] ?? '',
    ])
    return this.#object(pairs as [string, string][])
  }

  #list(texts: readonly string[]): ParameterValue {
    return { value: texts.map(text => scalarOf(text, this.#items)), wrong: '' }
  }

  #object(pairs: readonly (readonly [string, string])[]): ParameterValue {
    const entries = pairs.map(([name, text]) => {
      const schemas = this.#shape.properties.get(name) ?? []
      return [name, scalarOf(text, shapeOf(schemas, this.#definitions))] as const
    })
    return { value: Object.fromEntries(entries), wrong: '' }
  }

  #fromQuery(query: ReceivedParameters['query']): ParameterValue {
    const { name, style, explodes } = this.contract
    const { types, properties } = this.#shape
    if (style === 'deepObject') {
      const own = query.filter(([each]) => each.startsWith(`${name}[`) && each.endsWith(']'))
      const pairs = own.map(([each, text]) => [each.slice(name.length + 1, -1), decodeQuery(text)] as const)
      return pairs.length === 0 ? ABSENT : this.#object(pairs)
    }
    if (style === 'form' && explodes && types.has('object') && !types.has('array')) {
      const pairs = query
        .filter(([each]) => properties.has(each))
        .map(([each, text]) => [each, decodeQuery(text)] as const)
      return pairs.length === 0 ? ABSENT : this.#object(pairs)
    }
    const texts = query.filter(([each]) => each === name).map(([, text]) => text)
    if (texts.length === 0) return ABSENT
    if (style === 'json') return texts.length > 1 ? REPEATED : jsonOf(decodeQuery(texts[0]!))
    if (types.has('array') && style === 'form' && explodes) return this.#list(texts.map(decodeQuery))
    if (texts.length > 1) return REPEATED
    const separators = { spaceDelimited: /%20|\+| /, pipeDelimited: /%7C|\|/i, tabs: /%09/ }
    const separator = Object.hasOwn(separators, style) ? separators[style as keyof typeof separators] : null
    if (separator !== null && types.has('array')) return this.#list(texts[0]!.split(separator).map(decodeQuery))
    return this.#composed(texts[0]!, ',', decodeQuery)
  }
}

function pairOf(text: string): readonly [string, string] {
  const at = text.indexOf('=')
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

function jsonOf(text: string): ParameterValue {
  try {
    return { value: JSON.parse(text) as unknown, wrong: '' }
  } catch {
    return { value: undefined, wrong: 'must be JSON' }
  }
}

function same(text: string): string {
  return text
}

/** Throws URIError. */
function decodeQuery(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '))
}

/** Names are decoded, texts are not. A malformed name is kept as it is. */
export function queryPairs(target: string): readonly (readonly [string, string])[] {
  const at = target.indexOf('?')
  if (at < 0 || at === target.length - 1) return []
  return target
    .slice(at + 1)
    .split('&')
    .filter(pair => pair !== '')
    .map(pair => {
      const [name, text] = pairOf(pair)
      try {
        return [decodeQuery(name), text] as const
      } catch {
        return [name, text] as const
      }
    })
}

/** Pairs of a Cookie field (RFC 6265 4.2.1); the first of a name counts. */
export function cookiesOf(field: string): ReadonlyMap<string, string> {
  const pairs = field.split(';').map(pair => pairOf(pair.trim()))
  return new Map(pairs.reverse())
}

/** A form as JSON, by the schema of its content: a repeated field is a list. Throws URIError. */
export function formValue(text: string, schema: string, definitions: Definitions): unknown {
  const shape = shapeOf(schema === '' ? [] : [definitions[schema]], definitions)
  const shapes = new Map<string, { readonly own: Shape; readonly item: Shape }>()
  const shapesOf = (name: string) => {
    let found = shapes.get(name)
    if (found === undefined) {
      const own = shapeOf(shape.properties.get(name) ?? [], definitions)
      found = { own, item: own.types.has('array') ? shapeOf(own.items, definitions) : own }
      shapes.set(name, found)
    }
    return found
  }
  const values = new Map<string, unknown[]>()
  for (const [name, raw] of queryPairs(`?${text}`)) {
    const value = scalarOf(decodeQuery(raw), shapesOf(name).item)
    const known = values.get(name)
    if (known === undefined) values.set(name, [value])
    else known.push(value)
  }
  const isList = (name: string, all: readonly unknown[]) => all.length > 1 || shapesOf(name).own.types.has('array')
  return Object.fromEntries(Array.from(values, ([name, all]) => [name, isList(name, all) ? all : all[0]]))
}
