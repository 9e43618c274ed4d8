/** Bodies of forms as values: fields by the encoding that the document describes, or else by their schema. */
import { mediaTypeOf } from '../../http1/media-type.ts'
import { decodeName } from '../formats/element-names.ts'
import { bytesOfFile } from '../formats/forms.ts'
import { elementsOf, localName, textWithin, type XmlElementNode } from '../xml-tree.ts'
import type { FieldContract, MediaContract, Violation } from './api-contract.ts'
import { clipped } from './contract-schemas.ts'
import { rangeOf } from './media-ranges.ts'
import { formPairs } from './parameters.ts'
import { type Definitions, Shape } from './schema-shape.ts'
import { ABSENT, decodeQuery, jsonReading, type Reading, StyledValue } from './value-styles.ts'

/** `violations`: of the text itself; the value lacks the fields that have one. */
interface FormValue {
  readonly value: Readonly<Record<string, unknown>>
  readonly violations: readonly Violation[]
}

/** A field of a form, with its value as text. */
interface Field {
  readonly name: string
  readonly text: string
  /** '' for none. */
  readonly contentType: string
}

const NAME_MAX = 64

/** Reads forms of one media type. */
export class FormReader {
  readonly #shape: Shape
  readonly #contracts: ReadonlyMap<string, FieldContract>
  readonly #styled: readonly StyledValue[]

  /** The texts of multipart forms have no escapes. */
  constructor({ schema, fields }: MediaContract, definitions: Definitions, isMultipart: boolean) {
    this.#shape = Shape.named(schema, definitions)
    this.#contracts = new Map(fields.map(contract => [contract.name, contract]))
    this.#styled = fields.flatMap(({ style, ...contract }) => {
      if (style === '') return []
      const shape = this.#shape.property(contract.name)
      return [new StyledValue({ ...contract, style }, shape, isMultipart ? 'cookie' : 'query')]
    })
  }

  /** `text`: of a URL-encoded form. Throws URIError. */
  urlEncoded(text: string): FormValue {
    const pairs = formPairs(text)
    const plain = pairs
      .filter(([name]) => !this.#hasStyle(name))
      .map(([name, raw]) => ({ name, text: decodeQuery(raw), contentType: '' }))
    return this.#form(pairs, plain)
  }

  /** `root`: of a multipart form, as its builder has read it. */
  multipart(root: XmlElementNode): FormValue {
    const fields = elementsOf(root).map(fieldOf)
    const pairs = fields.map(({ name, text }) => [name, text] as const)
    const form = this.#form(
      pairs,
      fields.filter(({ name }) => !this.#hasStyle(name)),
    )
    return { ...form, violations: [...fields.flatMap(field => this.#wrongType(field)), ...form.violations] }
  }

  #hasStyle(name: string): boolean {
    return this.#styled.some(styled => styled.claims(name))
  }

  #form(pairs: readonly (readonly [name: string, text: string])[], plain: readonly Field[]): FormValue {
    const values: [string, unknown][] = []
    const violations: Violation[] = []
    const add = (name: string, reading: Reading): void => {
      if (reading.kind === 'value') values.push([name, reading.value])
      else if (reading.kind === 'wrong') violations.push({ place: placeOf(name), rule: reading.rule })
    }
    for (const styled of this.#styled)
      add(
        styled.contract.name,
        styled.ofPairs(pairs, () => false),
      )
    for (const [name, own] of Map.groupBy(plain, field => field.name)) add(name, this.#plain(name, own))
    return { value: Object.fromEntries(values), violations }
  }

  /** A field that the schema alone describes. A repeated one is a list. */
  #plain(name: string, fields: readonly Field[]): Reading {
    const [first, ...others] = fields
    if (others.length === 0 && first!.text === '' && this.#contracts.get(name)?.allowsEmpty === true) return ABSENT
    const shape = this.#shape.property(name)
    const isWhole = others.length === 0 && (!shape.isList || isJson(first!.contentType))
    if (isWhole) return readingOf(first!, shape)
    const values: unknown[] = []
    for (const [at, field] of fields.entries()) {
      const reading = readingOf(field, shape.isList ? shape.item(at) : shape)
      if (reading.kind !== 'value') return reading
      values.push(reading.value)
    }
    return { kind: 'value', value: values }
  }

  /** A part without a type has the one that its schema asks for. */
  #wrongType({ name, contentType }: Field): readonly Violation[] {
    const types = this.#contracts.get(name)?.types ?? []
    if (types.length === 0 || contentType === '' || rangeOf(types, mediaTypeOf(contentType)) !== undefined) return []
    return [{ place: placeOf(name), rule: `must have the content type ${types.join(' or ')}` }]
  }
}

/** An object is written as JSON unless the document says otherwise (OpenAPI 3.1.1 4.8.15.1). */
function readingOf({ text, contentType }: Field, shape: Shape): Reading {
  if (isJson(contentType) || (shape.isObject && !shape.isText)) return jsonReading(text)
  return { kind: 'value', value: shape.scalar(text) }
}

function isJson(contentType: string): boolean {
  return /[/+]json$/.test(mediaTypeOf(contentType))
}

/** Files are base64 in the element; each of their bytes is a character here, so that lengths are those of the file. */
function fieldOf(element: XmlElementNode): Field {
  const contentType = element.attributes.find(([name]) => name === 'content-type')?.[1] ?? ''
  const file = bytesOfFile(element)
  return {
    name: decodeName(localName(element.name), true),
    text: file === null ? textWithin(element) : file.toString(isJson(contentType) ? 'utf8' : 'latin1'),
    contentType,
  }
}

function placeOf(name: string): string {
  return `body /${clipped(name, NAME_MAX)}`
}
