/** Checks messages against the contract of their API: lists every violation. */
import { mediaTypeOf, namesSeveralTypes } from '../../http1/media-type.ts'
import { bodyFormatOf, isXmlFormat } from '../formats/body-types.ts'
import { FormatError, faultOfFormat } from '../formats/format-error.ts'
import { repeatedMembers } from '../formats/json-members.ts'
import { jsonOf } from '../formats/json-text.ts'
import { type Part, partsOf } from '../formats/multipart.ts'
import { MediationFault } from '../mediation-fault.ts'
import type { Message } from '../message.ts'
import type { ApiContract, MediaContract, OperationContract, ResponseContract, Violation } from './api-contract.ts'
import { clipped, ContractSchemas, PLACE_MAX, VIOLATIONS_MAX } from './contract-schemas.ts'
import { FormReader, type FormValue } from './form-body.ts'
import { isRange, rangeOf } from './media-ranges.ts'
import { OperationIndex } from './operation-index.ts'
import {
  cookiesOf,
  type ParameterReader,
  parameterReaders,
  parameterViolations,
  queryPairs,
  type ReceivedParameters,
  receivedHeaders,
} from './parameters.ts'
import { Shape } from './schema-shape.ts'
import { XmlValue } from './xml-value.ts'

const TYPE_MAX = 100
/** Header parameters with these names are ignored (OpenAPI 3.1.1 4.8.12.2.1). */
const IGNORED_FIELDS = ['accept', 'content-type', 'authorization']
/** Header fields of responses with this name are ignored (OpenAPI 3.1.1 4.8.17.1). */
const IGNORED_IN_RESPONSES = ['content-type']
const REQUIRED: Violation = { place: 'body', rule: 'is required' }

export class MessageCheck {
  readonly #index: OperationIndex
  readonly #schemas: ContractSchemas
  readonly #readers = new Map<OperationContract | ResponseContract, readonly ParameterReader[]>()
  readonly #shapes = new Map<string, Shape>()
  readonly #multipartForms = new Map<MediaContract, FormReader>()
  readonly #urlEncodedForms = new Map<MediaContract, FormReader>()

  constructor({ operations, schemas }: ApiContract) {
    this.#index = new OperationIndex(operations)
    this.#schemas = new ContractSchemas(schemas)
  }

  /** A request as it was received. Throws MediationFault where its body cannot be built and nothing else is wrong. */
  request(message: Message): readonly Violation[] {
    const { method, target } = message.receivedHead
    const [path] = target.split('?', 1)
    const found = this.#index.find(method, path!)
    if (found === undefined) return [{ place: 'request', rule: 'must be an operation of the OpenAPI document' }]
    const { operation, variables } = found
    const received: ReceivedParameters = {
      path: variables,
      query: queryPairs(target),
      header: name => message.receivedField(name),
      cookies: cookiesOf(message.receivedField('cookie') ?? ''),
    }
    const readers = this.#readersOf(operation, operation.parameters, IGNORED_FIELDS)
    const ofParameters = readers.flatMap(reader =>
      this.#parameter(reader, received, `${reader.contract.place} parameter`),
    )
    return this.#withBody(ofParameters, () => this.#requestBody(operation, message))
  }

  /** A response as it came from the backend. Throws MediationFault as `request` does. */
  response(message: Message): readonly Violation[] {
    const { method, target, status } = message.receivedHead
    const [path] = target.split('?', 1)
    const responses = this.#index.find(method, path!)?.operation.responses ?? null
    if (responses === null) return []
    const response = responses[status] ?? responses[`${String(status)[0]}XX`] ?? responses.default
    if (response === undefined) {
      // Failures of a backend are its own, and a conditional request may have a response of no other kind.
      if (status >= 400 || status === 304) return []
      return [{ place: 'status', rule: `must be one of ${Object.keys(responses).join(', ') || 'none'}` }]
    }
    // Responses to HEAD and those of 304 may leave fields out (RFC 9110 9.3.2, 15.4.5).
    const isPartial = method === 'HEAD' || status === 304
    const ofHeaders = this.#responseHeaders(response, message, isPartial)
    if (isPartial || status === 204) return ofHeaders
    return this.#withBody(ofHeaders, () => this.#body(response.content, message))
  }

  /** Adds the violations of the body. A body that cannot be built is one beside others; alone, its error is thrown. */
  #withBody(others: readonly Violation[], ofBody: () => readonly Violation[]): readonly Violation[] {
    try {
      return [...others, ...ofBody()]
    } catch (error) {
      if (others.length === 0 || !(error instanceof MediationFault)) throw error
      return [...others, { place: 'body', rule: `cannot be read: ${error.message}` }]
    }
  }

  #readersOf(
    owner: OperationContract | ResponseContract,
    parameters: OperationContract['parameters'],
    ignored: readonly string[],
  ): readonly ParameterReader[] {
    let readers = this.#readers.get(owner)
    if (readers === undefined) {
      const read = parameters.filter(({ name, place }) => place !== 'header' || !ignored.includes(name.toLowerCase()))
      readers = parameterReaders(read, this.#schemas.definitions)
      this.#readers.set(owner, readers)
    }
    return readers
  }

  #parameter(reader: ParameterReader, received: ReceivedParameters, what: string): readonly Violation[] {
    const where = `${what} ${reader.contract.name}`
    return parameterViolations(reader, received, where, (schema, value) =>
      this.#schemas.violations(schema, value, where),
    )
  }

  #responseHeaders(response: ResponseContract, message: Message, isPartial: boolean): readonly Violation[] {
    const header = (name: string) => message.receivedField(name)
    const received = receivedHeaders(header)
    return this.#readersOf(response, response.headers, IGNORED_IN_RESPONSES)
      .filter(({ contract }) => !isPartial || header(contract.name.toLowerCase()) !== undefined)
      .flatMap(reader => this.#parameter(reader, received, 'header'))
  }

  #requestBody({ body }: OperationContract, message: Message): readonly Violation[] {
    if (body === null) return []
    if (message.bodySource === null) return body.isRequired ? [REQUIRED] : []
    return this.#body(body.content, message)
  }

  /** The body of a message, by its content type. */
  #body(content: ResponseContract['content'], message: Message): readonly Violation[] {
    const types = Object.keys(content)
    if (types.length === 0) return []
    const field = message.receivedField('content-type') ?? ''
    const type = mediaTypeOf(field)
    if (message.bodySource === null) return mustHaveBody(types, content) ? [REQUIRED] : []
    if (namesSeveralTypes(field)) return [{ place: 'content type', rule: 'must be one type' }]
    const range = rangeOf(types, type)
    if (range === undefined) {
      const rule = `must be one of ${types.join(', ')}`
      return [{ place: 'content type', rule: clipped(rule, TYPE_MAX) }]
    }
    const media = content[range]!
    if (media.schema === '') return []
    const format = bodyFormatOf(type)
    if (format === 'json') return this.#json(media.schema, message)
    if (format === 'form') return this.#urlEncoded(media, message)
    if (format === 'multipart') return this.#multipart(media, message)
    if (isXmlFormat(format)) return this.#xml(media.schema, message)
    if (type.startsWith('multipart/')) return this.#parts(media, message)
    const shape = this.#shapeOf(media.schema)
    if (format === 'text' && shape.isScalar) return this.#text(media.schema, message)
    // A client could choose any type of a range, also one whose bodies nothing here reads.
    if (!isRange(range) || message.isFromBackend || shape.isText) return []
    return [{ place: 'content type', rule: 'must be one that the schema can be checked with' }]
  }

  #json(schema: string, message: Message): readonly Violation[] {
    const { payload } = message
    if (payload === null) return [REQUIRED]
    // Another builder of the operator reads this type.
    if (payload.kind !== 'json') return []
    const { text } = payload
    const repeated = repeatedMembers(text, VIOLATIONS_MAX).map(pointer => {
      return { place: `body ${clipped(pointer, PLACE_MAX)}`, rule: 'must not be repeated' }
    })
    return [...repeated, ...this.#schemas.violations(schema, jsonOf(payload), 'body')]
  }

  #urlEncoded(media: MediaContract, message: Message): readonly Violation[] {
    const payload = message.bodySource!.build('text/plain')
    try {
      const form = this.#formReader(media, false).urlEncoded(
        payload?.kind === 'text' ? payload.text : '',
        message.task!.parse,
      )
      return this.#formViolations(media, form)
    } catch (error) {
      if (!(error instanceof URIError)) throw error
      return [{ place: 'body', rule: 'must have well-formed percent-escapes' }]
    }
  }

  #xml(schema: string, message: Message): readonly Violation[] {
    const { payload } = message
    if (payload === null) return [REQUIRED]
    // Another builder of the operator reads this type.
    if (payload.kind !== 'xml') return []
    const shape = this.#shapeOf(schema)
    // A schema of texts alone that says nothing about XML describes the text of the body.
    if (shape.isText && !shape.isList && !shape.isObject && !shape.isAny && shape.xml.names.length === 0) {
      return this.#schemas.violations(schema, message.bodySource!.text(), 'body')
    }
    return readable(message, () => {
      const xml = new XmlValue(payload.root, shape, 'body')
      const { value, violations } = xml
      return [...violations, ...this.#schemas.violations(schema, value, 'body', pointer => xml.placeOf(pointer))]
    })
  }

  /** A form. */
  #multipart(media: MediaContract, message: Message): readonly Violation[] {
    const { payload } = message
    if (payload === null) return [REQUIRED]
    // Another builder of the operator reads this type.
    if (payload.kind !== 'xml') return []
    const { root } = payload
    const reader = this.#formReader(media, true)
    return readable(message, () => {
      const ofHeaders = reader.hasHeaders
        ? reader.headersOfParts(partsIn(message, Buffer.from(message.bodySource!.text(), 'latin1'), 'the form'))
        : []
      return [...ofHeaders, ...this.#formViolations(media, reader.multipart(root, message.task!.parse))]
    })
  }

  /** Another body with parts, as `multipart/mixed`. */
  #parts(media: MediaContract, message: Message): readonly Violation[] {
    const { payload } = message
    if (payload === null) return [REQUIRED]
    // Another builder of the operator reads this type.
    if (payload.kind !== 'binary') return []
    const { bytes } = payload
    const reader = this.#formReader(media, true)
    return readable(message, () => {
      const parts = [...partsIn(message, bytes, 'the body')]
      return [...reader.headersOfParts(parts), ...this.#formViolations(media, reader.mixed(parts, message.task!.parse))]
    })
  }

  #formViolations({ schema }: MediaContract, { value, violations, placeOf }: FormValue): readonly Violation[] {
    return [...violations, ...this.#schemas.violations(schema, value, 'body', placeOf)]
  }

  #text(schema: string, message: Message): readonly Violation[] {
    const { payload } = message
    if (payload !== null && payload.kind !== 'text') return []
    const value = this.#shapeOf(schema).scalar(payload?.text ?? '')
    return this.#schemas.violations(schema, value, 'body')
  }

  #shapeOf(schema: string): Shape {
    let shape = this.#shapes.get(schema)
    if (shape === undefined) {
      shape = Shape.named(schema, this.#schemas.definitions)
      this.#shapes.set(schema, shape)
    }
    return shape
  }

  #formReader(media: MediaContract, isMultipart: boolean): FormReader {
    const forms = isMultipart ? this.#multipartForms : this.#urlEncodedForms
    let reader = forms.get(media)
    if (reader === undefined) {
      reader = new FormReader(media, this.#schemas, isMultipart)
      forms.set(media, reader)
    }
    return reader
  }
}

/** Throws FormatError with the parts. */
function partsIn(message: Message, bytes: Uint8Array, subject: string): Iterable<Part> {
  return partsOf(bytes, message.receivedField('content-type') ?? '', message.task!.limits, subject)
}

/** Throws MediationFault where the body cannot be read. */
function readable<T>(message: Message, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof FormatError)) throw error
    throw new MediationFault(faultOfFormat(error, message.isFromBackend))
  }
}

/** A response that the document describes with JSON or XML alone has a body: nothing is neither. */
function mustHaveBody(types: readonly string[], content: ResponseContract['content']): boolean {
  return types.every(type => {
    const format = bodyFormatOf(type)
    return content[type]!.schema !== '' && (format === 'json' || isXmlFormat(format))
  })
}
