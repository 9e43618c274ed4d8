/**
 * Bodies of forms, and of other types with parts, as values: fields and parts by the encoding that the document
 * describes, or else by their schema.
 */
import { mediaTypeOf, namesSeveralTypes } from '../../http1/media-type.ts'
import { bodyFormatOf, isXmlFormat } from '../formats/body-types.ts'
import { charsetParameter, decodeText, parameterOf, requiredCharset } from '../formats/charset.ts'
import { decodeName } from '../formats/element-names.ts'
import { FormatError } from '../formats/format-error.ts'
import { bytesOfFile } from '../formats/forms.ts'
import { type Part, partFields, partName } from '../formats/multipart.ts'
import { MediationFault } from '../mediation-fault.ts'
import type { TaskServices } from '../task-calls.ts'
import { elementsOf, localName, textWithin, type XmlElementNode } from '../xml-tree.ts'
import type { FieldContract, MediaContract, Violation } from './api-contract.ts'
import { clipped, type ContractSchemas, VIOLATIONS_MAX } from './contract-schemas.ts'
import { rangeOf } from './media-ranges.ts'
import {
  formPairs,
  type ParameterReader,
  parameterReaders,
  parameterViolations,
  receivedHeaders,
} from './parameters.ts'
import { Shape } from './schema-shape.ts'
import { ABSENT, decodeQuery, jsonReading, type Reading, StyledValue, wrong } from './value-styles.ts'
import { XmlValue } from './xml-value.ts'

/** `violations`: of the text itself; the value lacks the fields that have one. */
export interface FormValue {
  readonly value: unknown
  readonly violations: readonly Violation[]
  /** Place of a JSON Pointer into the value. */
  placeOf(pointer: string): string
}

/** A field of a form, with its value as text. */
interface Field {
  readonly name: string
  readonly text: string
  /** '' for none. */
  readonly contentType: string
  /** Why the text cannot be read; '': it is read. */
  readonly problem: string
}

const NAME_MAX = 64
/** Codes of a body that is malformed, exceeds a limit, or has an unknown charset. */
const UNREADABLE = [102520, 102521, 102522]
/** Fields of a part that `encoding.headers` cannot describe (OpenAPI 3.1.1 4.8.15.1.1). */
const IGNORED = 'content-type'
/** Fields that two readers could take differently where they are repeated. */
const SINGLE = ['content-type', 'content-disposition']

/** Reads the XML of a part, as bodies of its type are read. */
type Parse = TaskServices['parse']

/** What the fields of one form are read with, and what they become beside their values. */
interface FormReading {
  readonly parse: Parse
  /** Parts of XML, by the pointer of the value. */
  readonly documents: Map<string, XmlValue>
  readonly violations: Violation[]
}

/** Reads forms of one media type. */
export class FormReader {
  readonly #schemas: ContractSchemas
  readonly #shape: Shape
  readonly #contracts: ReadonlyMap<string, FieldContract>
  readonly #styled: readonly StyledValue[]
  readonly #headers: ReadonlyMap<string, readonly ParameterReader[]>

  /** The texts of multipart forms have no escapes. */
  constructor({ schema, fields }: MediaContract, schemas: ContractSchemas, isMultipart: boolean) {
    const { definitions } = schemas
    this.#schemas = schemas
    this.#shape = Shape.named(schema, definitions)
    this.#contracts = new Map(fields.map(contract => [contract.name, contract]))
    this.#styled = fields.flatMap(({ style, ...contract }) => {
      if (style === '') return []
      const shape = this.#shape.property(contract.name)
      return [new StyledValue({ ...contract, style }, shape, isMultipart ? 'cookie' : 'query')]
    })
    const described = fields.map(({ name, headers }) => {
      return [name, headers.filter(header => header.name.toLowerCase() !== IGNORED)] as const
    })
    this.#headers = new Map(
      described
        .filter(([, headers]) => headers.length > 0)
        .map(([name, headers]) => [name, parameterReaders(headers, definitions)]),
    )
  }

  /** The document describes header fields of parts. */
  get hasHeaders(): boolean {
    return this.#headers.size > 0
  }

  /** `text`: of a URL-encoded form. Throws URIError. */
  urlEncoded(text: string, parse: Parse): FormValue {
    const pairs = formPairs(text)
    const plain = pairs
      .filter(([name]) => !this.#hasStyle(name))
      .map(([name, raw]) => ({ name, text: decodeQuery(raw), contentType: '', problem: '' }))
    return this.#form(pairs, plain, parse)
  }

  /** `root`: of a multipart form, as its builder has read it. */
  multipart(root: XmlElementNode, parse: Parse): FormValue {
    const fields = elementsOf(root).map(fieldOf)
    const pairs = fields.map(({ name, text }) => [name, text] as const)
    const form = this.#form(
      pairs,
      fields.filter(({ name }) => !this.#hasStyle(name)),
      parse,
    )
    return { ...form, violations: [...fields.flatMap(field => this.#wrongType(field)), ...form.violations] }
  }

  /** Violations of the header fields of parts, and of fields that a part repeats. Throws FormatError with the parts. */
  headersOfParts(parts: Iterable<Part>): readonly Violation[] {
    const found: Violation[] = []
    let at = 0
    for (const part of parts) {
      const { head } = part
      const place = placeOfPart(partName(part), at++)
      for (const name of SINGLE) {
        if (partFields(head, name).length > 1) found.push({ place, rule: `must have one field ${name}` })
      }
      for (const reader of this.#headers.get(partName(part)) ?? []) {
        const where = `${place} header ${reader.contract.name}`
        const received = receivedHeaders(name => partFields(head, name).join(', ') || undefined)
        const of = (schema: string, value: unknown) => this.#schemas.violations(schema, value, where)
        found.push(...parameterViolations(reader, received, where, of))
      }
      if (found.length >= VIOLATIONS_MAX) break
    }
    return found
  }

  /** Parts of a list are its items; those of an object are the properties that Content-Disposition names. */
  mixed(parts: readonly Part[], parse: Parse): FormValue {
    const fields = parts.map(fieldOfPart)
    const wrongTypes = fields.flatMap(field => this.#wrongType(field))
    if (this.#shape.isList && !this.#shape.isObject) {
      const form: FormReading = { parse, documents: new Map(), violations: [...wrongTypes] }
      const { documents, violations } = form
      const value = fields.map((field, at) => {
        const reading = this.#reading(field, this.#shape.item(at), String(at), form)
        if (reading.kind === 'wrong') violations.push({ place: placeOfPart('', at), rule: reading.rule })
        return reading.kind === 'value' ? reading.value : null
      })
      return { value, violations, placeOf: placesWith(documents) }
    }
    const unnamed = fields.flatMap(({ name }, at) => {
      return name === '' ? [{ place: placeOfPart('', at), rule: 'must have a name in Content-Disposition' }] : []
    })
    const form = this.#form(
      [],
      fields.filter(({ name }) => name !== ''),
      parse,
    )
    return { ...form, violations: [...unnamed, ...wrongTypes, ...form.violations] }
  }

  #hasStyle(name: string): boolean {
    return this.#styled.some(styled => styled.claims(name))
  }

  #form(pairs: readonly (readonly [name: string, text: string])[], plain: readonly Field[], parse: Parse): FormValue {
    const values: [string, unknown][] = []
    const form: FormReading = { parse, documents: new Map(), violations: [] }
    const { documents, violations } = form
    const add = (name: string, reading: Reading): void => {
      if (reading.kind === 'value') values.push([name, reading.value])
      else if (reading.kind === 'wrong') violations.push({ place: placeOf(name), rule: reading.rule })
    }
    for (const styled of this.#styled)
      add(
        styled.contract.name,
        styled.ofPairs(pairs, () => false),
      )
    for (const [name, own] of Map.groupBy(plain, field => field.name)) {
      add(name, this.#plain(name, own, form))
    }
    return { value: Object.fromEntries(values), violations, placeOf: placesWith(documents) }
  }

  /** A field that the schema alone describes. A repeated one is a list. */
  #plain(name: string, fields: readonly Field[], form: FormReading): Reading {
    const [first, ...others] = fields
    if (others.length === 0 && first!.text === '' && this.#contracts.get(name)?.allowsEmpty === true) return ABSENT
    const shape = this.#shape.property(name)
    const isWhole = others.length === 0 && (!shape.isList || isJson(first!.contentType) || isWholeList(first!, shape))
    if (isWhole) return this.#reading(first!, shape, pointerOf(name), form)
    const values: unknown[] = []
    for (const [at, field] of fields.entries()) {
      const own = shape.isList ? shape.item(at) : shape
      const reading = this.#reading(field, own, `${pointerOf(name)}/${at}`, form)
      if (reading.kind !== 'value') return reading
      values.push(reading.value)
    }
    return { kind: 'value', value: values }
  }

  /**
   * An object is written as JSON unless the document says otherwise (OpenAPI 3.1.1 4.8.15.1). `pointer`: of the value.
   * Adds what XML itself breaks to `violations`.
   */
  #reading(
    { name, text, contentType, problem }: Field,
    shape: Shape,
    pointer: string,
    { parse, documents, violations }: FormReading,
  ): Reading {
    if (problem !== '') return wrong(problem)
    if (isXml(contentType) && (shape.isObject || shape.isList)) {
      try {
        const place = name === '' ? `body /${pointer}` : placeOf(name)
        const payload = parse(Buffer.from(text, 'latin1'), contentType)
        // Another builder of the operator reads this type.
        if (payload?.kind !== 'xml') return payload === null ? wrong('must not be empty') : ABSENT
        const document = new XmlValue(payload.root, shape, place)
        violations.push(...document.violations)
        documents.set(pointer, document)
        return { kind: 'value', value: document.value }
      } catch (error) {
        return wrong(problemOf(error))
      }
    }
    if (isJson(contentType) || (shape.isObject && !shape.isText)) return jsonReading(text)
    return { kind: 'value', value: shape.scalar(text) }
  }

  /** A part without a type has the one that its schema asks for. */
  #wrongType({ name, contentType }: Field): readonly Violation[] {
    const types = this.#contracts.get(name)?.types ?? []
    if (types.length === 0 || contentType === '' || rangeOf(types, mediaTypeOf(contentType)) !== undefined) return []
    return [{ place: placeOf(name), rule: `must have the content type ${types.join(' or ')}` }]
  }
}

function isJson(contentType: string): boolean {
  return /[/+]json$/.test(mediaTypeOf(contentType))
}

function isXml(contentType: string): boolean {
  return isXmlFormat(bodyFormatOf(contentType))
}

/** One document of XML holds the whole of a list that has an element of its own. */
function isWholeList({ contentType }: Field, shape: Shape): boolean {
  return isXml(contentType) && shape.xml.isWrapped
}

/** Files are base64 in the element. */
function fieldOf(element: XmlElementNode): Field {
  const contentType = element.attributes.find(([name]) => name === 'content-type')?.[1] ?? ''
  const name = decodeName(localName(element.name), true)
  const file = bytesOfFile(element)
  if (file === null) return { name, text: textWithin(element), contentType, problem: '' }
  return {
    name,
    contentType,
    ...decoded(
      file,
      contentType,
      element.attributes.some(([each]) => each === 'filename'),
    ),
  }
}

function fieldOfPart(part: Part): Field {
  const [contentType = ''] = partFields(part.head, 'content-type')
  const isFile = partFields(part.head, 'content-disposition').some(each => parameterOf(each, 'filename') !== '')
  return { name: partName(part), contentType, ...decoded(part.content, contentType, isFile) }
}

/** A file is a text with a character per byte, so that limits of lengths count its bytes. JSON is always decoded. */
function decoded(bytes: Buffer, contentType: string, isFile: boolean): Pick<Field, 'text' | 'problem'> {
  if (namesSeveralTypes(contentType)) return { text: '', problem: 'must have one content type' }
  const isText = (!isFile && (contentType === '' || /^text\//i.test(contentType))) || isJson(contentType)
  try {
    if (!isText) return { text: bytes.toString('latin1'), problem: '' }
    return { text: decodeText(bytes, requiredCharset(charsetParameter(contentType) || 'utf-8')), problem: '' }
  } catch (error) {
    return { text: '', problem: problemOf(error) }
  }
}

/** Returns why a part cannot be read. Throws other errors. */
function problemOf(error: unknown): string {
  const isOfBody = error instanceof MediationFault && UNREADABLE.includes(error.raised.code)
  if (isOfBody) return `cannot be read: ${error.raised.cause}`
  if (!(error instanceof FormatError)) throw error
  return `cannot be read: ${error.message}`
}

function pointerOf(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}

/** Places within parts of XML are those of their elements. `documents`: by the pointer of the value. */
function placesWith(documents: ReadonlyMap<string, XmlValue>): (pointer: string) => string {
  if (documents.size === 0) return pointer => pointer
  return pointer => {
    const steps = pointer.split('/').slice(1)
    for (const count of [1, 2]) {
      const document = documents.get(steps.slice(0, count).join('/'))
      const rest = steps.slice(count)
      if (document === undefined || steps.length < count) continue
      const inner = document.placeOf(rest.length === 0 ? '' : `/${rest.join('/')}`)
      return `/${steps.slice(0, count).join('/')} ${inner}`
    }
    return pointer
  }
}

/** The place of a part: its name, else its number. */
function placeOfPart(name: string, at: number): string {
  return name === '' ? `body part ${at + 1}` : placeOf(name)
}

function placeOf(name: string): string {
  return `body /${clipped(name, NAME_MAX)}`
}
