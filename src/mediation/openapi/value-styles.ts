/** Texts of parameters and form fields to values, by the style that the document names (OpenAPI 3.1.1 4.8.12.4). */
import { repeatedMembers } from '../formats/json-members.ts'
import { exactValue } from '../formats/json-text.ts'
import type { ParameterContract, ValueStyle } from './api-contract.ts'
import { clipped } from './contract-schemas.ts'
import type { Shape } from './schema-shape.ts'

type Place = ParameterContract['place']
type Pair = readonly [name: string, text: string]

/** A value to be validated, or what its text says in place of one. */
export type Reading =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'absent' }
  /** The parameter is there without a value, as the document allows. */
  | { readonly kind: 'empty' }
  /** The text itself breaks a rule. */
  | { readonly kind: 'wrong'; readonly rule: string }

export const ABSENT: Reading = { kind: 'absent' }
const EMPTY: Reading = { kind: 'empty' }
const REPEATED = wrong('must not be repeated')
const NAME_MAX = 64

export function wrong(rule: string): Reading {
  return { kind: 'wrong', rule }
}

/** The notation of texts in a place: its escapes, and the separators that are escaped in it. */
interface Notation {
  /** Throws URIError. */
  decode(text: string): string
  readonly separators: Readonly<Record<string, RegExp>>
  /** Equal texts are allowed: browsers send equal cookies of several paths. */
  readonly allowsEqual: boolean
}

const PLAIN: Notation = {
  decode: text => text,
  separators: { spaceDelimited: / /, pipeDelimited: /\|/, tabs: /\t/ },
  allowsEqual: false,
}
const NOTATIONS: Readonly<Record<Place, Notation>> = {
  query: {
    decode: decodeQuery,
    separators: { spaceDelimited: /%20|\+| /, pipeDelimited: /%7C|\|/i, tabs: /%09|\t/ },
    allowsEqual: false,
  },
  path: {
    decode: decodeURIComponent,
    separators: { spaceDelimited: /%20/, pipeDelimited: /%7C|\|/i, tabs: /%09/ },
    allowsEqual: false,
  },
  // Blanks beside commas belong to no item (RFC 9110 5.6.1).
  header: { ...PLAIN, decode: text => text.trim() },
  cookie: { ...PLAIN, allowsEqual: true },
}

/** Throws URIError. */
export function decodeQuery(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '))
}

export function pairOf(text: string): Pair {
  const at = text.indexOf('=')
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

export function jsonReading(text: string): Reading {
  let value: unknown
  try {
    value = exactValue(text)
  } catch {
    return wrong('must be JSON')
  }
  return repeatedMembers(text, 1).length > 0 ? wrong('must not repeat a member') : { kind: 'value', value }
}

/** Reads values of one style and one shape, in one place. */
export class StyledValue {
  readonly contract: ValueStyle
  readonly #shape: Shape
  readonly #notation: Notation

  constructor(contract: ValueStyle, shape: Shape, place: Place) {
    this.contract = contract
    this.#shape = shape
    this.#notation = NOTATIONS[place]
  }

  /** Each property has a pair of its own. */
  get hasOwnPairs(): boolean {
    const { style, explodes } = this.contract
    return style === 'deepObject' || (style !== 'json' && explodes && this.#shape.isObject && !this.#shape.isList)
  }

  /** Each item has a pair of its own. */
  get isExplodedList(): boolean {
    return this.contract.style !== 'json' && this.contract.explodes && this.#shape.isList
  }

  /** True if pairs of this name belong to the value, whatever else is there. */
  claims(name: string): boolean {
    if (this.contract.style === 'deepObject') return this.#isDeep(name)
    return this.hasOwnPairs ? this.#shape.declares(name) : name === this.contract.name
  }

  /** `pairs`: of a query, a form or cookies, names decoded. `isFree`: no other value claims a name. Throws URIError. */
  ofPairs(pairs: readonly Pair[], isFree: (name: string) => boolean): Reading {
    const { name, style, allowsEmpty } = this.contract
    const { decode } = this.#notation
    if (style === 'deepObject' && pairs.some(([each]) => this.#isMalformed(each) && isFree(each))) {
      return wrong(`must have the form ${clipped(name, NAME_MAX)}[property]`)
    }
    if (this.hasOwnPairs) {
      const isOwn = (each: string): boolean =>
        this.claims(each) || (style !== 'deepObject' && !this.#shape.isClosed && isFree(each))
      const own = pairs.filter(([each]) => isOwn(each))
      const propertyOf = (each: string): string => (style === 'deepObject' ? each.slice(name.length + 1, -1) : each)
      return own.length === 0 ? ABSENT : this.#object(own.map(([each, text]) => [propertyOf(each), decode(text)]))
    }
    const texts = pairs.filter(([each]) => each === name).map(([, text]) => text)
    const [first] = texts
    if (first === undefined) return ABSENT
    if (allowsEmpty && texts.length === 1 && first === '') return EMPTY
    if (this.isExplodedList) return this.#list(texts.map(decode))
    const isRepeated = this.#notation.allowsEqual ? texts.some(text => text !== first) : texts.length > 1
    return isRepeated ? REPEATED : this.#ofWhole(first)
  }

  /** A text that has the whole value: of a path or a header. Throws URIError. */
  ofText(text: string): Reading {
    const { name, style, explodes } = this.contract
    const isComposite = this.#shape.isList || this.#shape.isObject
    if (style === 'label') {
      if (!text.startsWith('.')) return wrong('must begin with "."')
      return this.#split(text.slice(1), explodes && isComposite ? '.' : ',')
    }
    if (style !== 'matrix') return this.#ofWhole(text)
    if (explodes && this.#shape.isObject && !this.#shape.isList) {
      return text.startsWith(';') ? this.#split(text.slice(1), ';') : wrong('must begin with ";"')
    }
    const values = this.isExplodedList ? text.slice(1).split(';') : [text.slice(1)]
    const pairs = values.map(pairOf)
    if (!text.startsWith(';') || pairs.some(([each]) => each !== name)) return wrong(`must begin with ";${name}="`)
    if (this.isExplodedList) return this.#list(pairs.map(([, each]) => this.#notation.decode(each)))
    return this.#split(pairs[0]![1], ',')
  }

  #isDeep(name: string): boolean {
    return name.startsWith(`${this.contract.name}[`) && name.endsWith(']')
  }

  /** A name that readers of deep objects take for the whole object, a list, or an object in a property. */
  #isMalformed(name: string): boolean {
    const { name: own } = this.contract
    if (name === own) return true
    return name.startsWith(`${own}[`) && !/^[^[\]]+\]$/.test(name.slice(own.length + 1))
  }

  #ofWhole(text: string): Reading {
    const { style } = this.contract
    if (style === 'json') return jsonReading(this.#notation.decode(text))
    return this.#split(text, this.#notation.separators[style] ?? ',')
  }

  #split(text: string, separator: string | RegExp): Reading {
    const { decode } = this.#notation
    if (!this.#shape.isList && !this.#shape.isObject) return this.#valueOf(this.#shape.scalar(decode(text)))
    const parts = text === '' ? [] : text.split(separator)
    if (this.#shape.isList) return this.#list(parts.map(decode))
    if (this.contract.explodes) {
      return this.#object(parts.map(pairOf).map(([name, each]) => [decode(name), decode(each)] as const))
    }
    if (parts.length % 2 === 1) return wrong('must have a value for each name')
    const pairs = Array.from({ length: parts.length / 2 }, (_, at) => [parts[2 * at]!, parts[2 * at + 1]!] as const)
    return this.#object(pairs.map(([name, each]) => [decode(name), decode(each)] as const))
  }

  #list(texts: readonly string[]): Reading {
    return this.#valueOf(texts.map((text, at) => this.#shape.item(at).scalar(text)))
  }

  #object(pairs: readonly Pair[]): Reading {
    const texts = Map.groupBy(pairs, ([name]) => name)
    const values: [string, unknown][] = []
    for (const [name, own] of texts) {
      const shape = this.#shape.property(name)
      if (shape.isList) values.push([name, own.map(([, text], at) => shape.item(at).scalar(text))])
      else if (own.length === 1) values.push([name, shape.scalar(own[0]![1])])
      else return wrong(`must not repeat the property ${clipped(JSON.stringify(name), NAME_MAX)}`)
    }
    return this.#valueOf(Object.fromEntries(values))
  }

  #valueOf(value: unknown): Reading {
    return { kind: 'value', value }
  }
}
