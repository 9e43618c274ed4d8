/** Checks messages against the contract of their API: lists every violation. */
import { mediaTypeOf } from '../../http1/media-type.ts'
import { bodyFormatOf } from '../formats/body-types.ts'
import type { Message } from '../message.ts'
import { textOf } from '../value.ts'
import type { ApiContract, ContentContract, OperationContract, Violation } from './api-contract.ts'
import { clipped, ContractSchemas } from './contract-schemas.ts'
import { OperationIndex } from './operation-index.ts'
import { cookiesOf, formValue, ParameterReader, queryPairs, type ReceivedParameters } from './parameters.ts'

const TYPE_MAX = 100
/** Header parameters with these names are ignored (OpenAPI 3.1.1 4.8.12.2.1). */
const IGNORED_FIELDS = ['accept', 'content-type', 'authorization']

export class MessageCheck {
  readonly #index: OperationIndex
  readonly #schemas: ContractSchemas
  readonly #readers = new Map<OperationContract, readonly ParameterReader[]>()

  constructor({ operations, schemas }: ApiContract) {
    this.#index = new OperationIndex(operations)
    this.#schemas = new ContractSchemas(schemas)
  }

  /** A request as it was received. Throws MediationFault where its body cannot be built. */
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
    const ofParameters = this.#readersOf(operation).flatMap(reader => this.#parameter(reader, received))
    return [...ofParameters, ...this.#requestBody(operation, message)]
  }

  /** A response as it came from the backend. */
  response(message: Message): readonly Violation[] {
    const { method, target, status } = message.receivedHead
    const [path] = target.split('?', 1)
    const responses = this.#index.find(method, path!)?.operation.responses ?? null
    if (responses === null) return []
    const content = responses[status] ?? responses[`${String(status)[0]}XX`] ?? responses.default
    if (content === undefined) {
      // Failures of a backend are its own, and a conditional request may have a response of no other kind.
      if (status >= 400 || status === 304) return []
      return [{ place: 'status', rule: `must be one of ${Object.keys(responses).join(', ') || 'none'}` }]
    }
    const hasBody = method !== 'HEAD' && status !== 204 && status !== 304
    return hasBody ? this.#body(content, message) : []
  }

  #readersOf(operation: OperationContract): readonly ParameterReader[] {
    let readers = this.#readers.get(operation)
    if (readers === undefined) {
      readers = operation.parameters
        .filter(({ name, place }) => place !== 'header' || !IGNORED_FIELDS.includes(name.toLowerCase()))
        .map(parameter => new ParameterReader(parameter, this.#schemas.definitions))
      this.#readers.set(operation, readers)
    }
    return readers
  }

  #parameter(reader: ParameterReader, received: ReceivedParameters): readonly Violation[] {
    const { name, place, isRequired, schema } = reader.contract
    const where = `${place} parameter ${name}`
    const { value, wrong } = reader.read(received)
    if (wrong !== '') return [{ place: where, rule: wrong }]
    if (value === undefined) return isRequired ? [{ place: where, rule: 'is required' }] : []
    return this.#schemas.violations(schema, value, where)
  }

  #requestBody({ body }: OperationContract, message: Message): readonly Violation[] {
    if (body === null) return []
    if (message.bodySource === null) return body.isRequired ? [{ place: 'body', rule: 'is required' }] : []
    return this.#body(body.content, message)
  }

  /** The body of a message, by its content type. */
  #body(content: ContentContract, message: Message): readonly Violation[] {
    const types = Object.keys(content)
    if (types.length === 0) return []
    const { bodySource: source } = message
    const field = textOf(message.receivedField('content-type') ?? '')
    const type = mediaTypeOf(field)
    if (source === null) return mustHaveJson(types, content) ? [{ place: 'body', rule: 'is required' }] : []
    const range = rangeOf(types, type)
    if (range === undefined) {
      const rule = `must be one of ${types.join(', ')}`
      return [{ place: 'content type', rule: clipped(rule, TYPE_MAX) }]
    }
    const schema = content[range]!
    if (schema === '') return []
    const format = bodyFormatOf(type)
    if (format === 'json') return this.#json(schema, message)
    if (format !== 'form') return []
    return this.#form(schema, source.build('text/plain'))
  }

  #json(schema: string, message: Message): readonly Violation[] {
    const { payload } = message
    if (payload === null) return [{ place: 'body', rule: 'is required' }]
    // Another builder of the operator reads this type.
    if (payload.kind !== 'json') return []
    return this.#schemas.violations(schema, JSON.parse(payload.text) as unknown, 'body')
  }

  #form(schema: string, payload: ReturnType<NonNullable<Message['bodySource']>['build']>): readonly Violation[] {
    const text = payload?.kind === 'text' ? payload.text : ''
    try {
      return this.#schemas.violations(schema, formValue(text, schema, this.#schemas.definitions), 'body')
    } catch (error) {
      if (!(error instanceof URIError)) throw error
      return [{ place: 'body', rule: 'must have well-formed percent-escapes' }]
    }
  }
}

/** A response that the document describes with JSON alone has a body. */
function mustHaveJson(types: readonly string[], content: ContentContract): boolean {
  return types.every(type => content[type] !== '' && bodyFormatOf(type) === 'json')
}

/** The most specific range that holds a media type. */
function rangeOf(ranges: readonly string[], type: string): string | undefined {
  const [main] = type.split('/', 1)
  return [type, `${main}/*`, '*/*', '*'].find(range => ranges.includes(range))
}
