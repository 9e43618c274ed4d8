/**
 * The message of a sequence: properties in scopes, header fields, a payload that is built when something reads it, and
 * its outcome. It stands for a request or response that passes, or for a response that a sequence makes (a fault).
 */
import { randomUUID } from 'node:crypto'
import { mediaTypeOf } from '../http1/media-type.ts'
import { cloneable, jsonPayload, writtenValue } from './formats/json-text.ts'
import { queryParameter, templateVariable } from './request-variables.ts'
import type { Gathering } from './copies.ts'
import { SecretValues } from './secret-values.ts'
import type { TaskServices } from './task-calls.ts'
import { parameterOf, type TemplateFrame } from './template-frame.ts'
import { type Json, textOf, type Value } from './value.ts'
import type { KeptRequest, MessageState, RaisedFault } from './worker-task.ts'
import type { XmlElementNode } from './xml-tree.ts'

/** `operation` and `variable` are kept from the request to its response, as `default` is. */
export type Scope = 'default' | 'axis2' | 'transport' | 'operation' | 'variable'
/** `func`: parameters of the sequence template that runs. */
export type ReadScope = Scope | 'func'

/** Scopes by the names that mediators use. */
export const SCOPES: ReadonlyMap<string, Scope> = new Map([
  ['default', 'default'],
  ['synapse', 'default'],
  ['axis2', 'axis2'],
  // Properties for the transport of the next request.
  ['axis2-client', 'axis2'],
  ['transport', 'transport'],
  ['operation', 'operation'],
])
/** Scopes by the prefixes of variables, as in `$ctx:name`. */
export const SCOPE_PREFIXES: ReadonlyMap<string, ReadScope> = new Map<string, ReadScope>([
  ['ctx', 'default'],
  ['axis2', 'axis2'],
  ['trp', 'transport'],
  ['operation', 'operation'],
  ['var', 'variable'],
  ['func', 'func'],
])

export type Payload =
  /** `text` is well-formed. */
  | { readonly kind: 'json'; readonly text: string }
  /** `root`: a SOAP Envelope, a SOAP Fault alone, or any other element. */
  | { readonly kind: 'xml'; readonly root: XmlElementNode }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'binary'; readonly bytes: Uint8Array }

/** Body of a received message. */
export interface BodySource {
  /**
   * Builds the payload; null for an empty body. `contentType`: in place of the one that was received; '' for that one.
   * A message and its copies build once, but where a sequence names a type. Throws MediationFault where the body is
   * malformed or beyond a limit.
   */
  build(contentType: string): Payload | null
  /**
   * The received body as one text, without its content coding. Bytes of forms with parts, and those that are no text,
   * are read as ISO-8859-1. Throws MediationFault.
   */
  text(): string
}

/**
 * `none`: no body was received or made. `unread` and `read`: the body is the one that was received. `replaced`: a
 * sequence made or removed it.
 */
type BodyState = 'none' | 'unread' | 'read' | 'replaced'

/** Start line of a message that passes. */
interface MessageHead {
  /** Method of the request. '' for a message that does not pass. */
  readonly method: string
  /** Path and query of the request behind the context of the API, as the backend gets them. */
  readonly target: string
  /** 0 for a request. */
  readonly status: number
  /** Reason phrase; '' for that of the status. */
  readonly reason: string
}

const NO_HEAD: MessageHead = { method: '', target: '', status: 0, reason: '' }
/** Properties of the scope axis2 that are the start line, and how they read it. */
const START_LINE: Readonly<Record<string, (head: MessageHead) => Value | undefined>> = {
  HTTP_METHOD: ({ method }) => method,
  REST_URL_POSTFIX: ({ target }) => target,
  HTTP_SC: ({ status }) => (status === 0 ? undefined : status),
  HTTP_SC_DESC: ({ reason }) => (reason === '' ? undefined : reason),
}
/** Properties of the scope `default` that describe the message itself. */
const OF_MESSAGE: Readonly<Record<string, (message: Message) => Value>> = {
  MessageID: message => {
    message.dependsOnRequest = true
    const id = `urn:uuid:${randomUUID()}`
    message.set('default', 'MessageID', id)
    return id
  },
  Action: message => textOf(message.get('transport', 'SOAPAction')).replace(/^"(.*)"$/, '$1'),
  MESSAGE_FORMAT: message => {
    const type = mediaTypeOf(textOf(message.get('transport', 'Content-Type')))
    return type === 'text/xml' ? 'soap11' : type === 'application/soap+xml' ? 'soap12' : 'pox'
  },
}
/** Properties of the scope axis2 that are about one message only. */
const OF_ONE_MESSAGE = [...Object.keys(START_LINE), 'messageType', 'ContentType', 'NO_ENTITY_BODY']

const SUBPROTOCOLS = 'Sec-WebSocket-Protocol'
const QUERY_PREFIX = 'query.param.'
const TEMPLATE_PREFIX = 'uri.var.'

interface Field {
  readonly name: string
  /** undefined: removed, which also hides the field of the request. */
  readonly value: Value | undefined
  /** The request has it, and no sequence has set it: a response does not get it. */
  readonly isOfRequest?: true
}

type Fields = Iterable<readonly [name: string, value: string]>

/**
 * Transport properties are header fields, with names in any case: sequences read those that were received until they
 * set or remove them.
 */
export class Message {
  /** Set by the mediator that ends the message; `ended`: none has. */
  outcome: 'sent' | 'responded' | 'looped' | 'dropped' | 'faulted' | 'ended' = 'ended'
  /** Fault that ended the message (`faulted`). */
  fault: RaisedFault | null = null
  /** Endpoint that `send` has chosen; '' for that of the API. */
  endpoint = ''
  /** Sequence that runs where the endpoint of `send` fails; '' for none. */
  sentOnError = ''
  /** The message is a backend's response. */
  isFromBackend = false
  /** The sequence has read values that differ by request: another request may get another response. */
  dependsOnRequest = false
  enteredSequences = 0
  /** Mediators that have run. */
  steps = 0
  /** Services of the task that runs the message on a worker; null on a reactor. */
  task: TaskServices | null = null
  /** Where copies of a message gather, of which this is one; null for none. */
  gathering: Gathering | null = null
  /** The copy whose own copies have become this message, an aggregate; null for no aggregate. */
  standsFor: Message | null = null
  /** A sequence, or the endpoint that it has chosen, names the method of the request. */
  namesMethod = false
  /** The message is a copy: the mediator that made it sends what `<send>` leaves. */
  isSentByCopier = false
  /** Sequence that sends the message while the client has its 202; '': the client waits for the response. */
  sendsLater = ''
  /** Parameters of the sequence template that runs; null outside of templates. */
  frame: TemplateFrame | null = null
  /** The request as the client sent it; null: the response flow asks for no part of it. */
  request: KeptRequest | null = null
  readonly secrets = new SecretValues()
  #receivedField: (name: string) => string | undefined
  #receivedFields: () => Fields
  readonly #scopes: Readonly<Record<Exclude<Scope, 'transport'>, Map<string, Value>>> = {
    default: new Map(),
    axis2: new Map(),
    operation: new Map(),
    variable: new Map(),
  }
  readonly #fields = new Map<string, Field>()
  /** Properties of the scope `default` or `axis2` that describe the request. */
  readonly #ofRequest = new Set<string>()
  /** Finds properties of caller and API (D826); null: the state has those that sequences read. */
  findsOuter: ((scope: Scope, name: string) => Value | undefined) | null = null
  #received: MessageHead = NO_HEAD
  #to = ''
  #body: BodySource | null = null
  #bodyState: BodyState = 'none'
  #payload: Payload | null = null
  /** The payload of a body that copies share, once one of them has read it; null: there are no copies. */
  #shared: { payload?: Payload | null } | null = null

  /**
   * `receivedField`: values of a received field, by its name in lower case, joined with commas (RFC 9110 5.3).
   * `receivedFields`: all of them in order; none for a message that only a sequence fills.
   */
  constructor(receivedField: (name: string) => string | undefined, receivedFields: () => Fields = () => []) {
    this.#receivedField = receivedField
    this.#receivedFields = receivedFields
  }

  /** The message passes: its start line, and its body, which nothing has read; null for no body or one out of reach. */
  receive(head: MessageHead, body: BodySource | null): void {
    this.#received = head
    this.#body = body
    this.#bodyState = body === null ? 'none' : 'unread'
    this.#payload = null
    this.#shared = null
  }

  /** The start line with the changes of sequences; not checked. */
  get head(): MessageHead {
    const text = (name: string) => textOf(this.get('axis2', name))
    const status = text('HTTP_SC')
    return {
      method: text('HTTP_METHOD'),
      target: text('REST_URL_POSTFIX'),
      status: /^\d{3}$/.test(status) ? Number(status) : this.#received.status,
      reason: text('HTTP_SC_DESC'),
    }
  }

  /** The start line as it was received. */
  get receivedHead(): MessageHead {
    return this.#received
  }

  /** Builds the payload with the first read. Throws MediationFault. */
  get payload(): Payload | null {
    if (this.#bodyState === 'unread') {
      const { payload } = this.#shared ?? {}
      if (payload === undefined) this.build('')
      else {
        this.#payload = payload
        this.#bodyState = 'read'
      }
      if (this.#shared !== null) this.#shared.payload = this.#payload
    }
    return this.#payload
  }

  set payload(payload: Payload | null) {
    this.#payload = payload
    this.#bodyState = 'replaced'
  }

  /** Builds the payload of a body that was not replaced. `contentType`: see BodySource. */
  build(contentType: string): void {
    if (this.#body === null || this.#bodyState === 'replaced') return
    this.#payload = this.#body.build(contentType)
    this.#bodyState = 'read'
  }

  /** The source of the received body; null for none. */
  get bodySource(): BodySource | null {
    return this.#body
  }

  get bodyState(): BodyState {
    return this.#bodyState
  }

  /** Destination; '' for none. */
  get to(): string {
    this.dependsOnRequest = true
    return this.#to
  }

  set to(destination: string) {
    this.#to = destination
  }

  get(scope: ReadScope, name: string): Value | undefined {
    if (scope === 'func') {
      const value = parameterOf(this, name)
      this.secrets.readProperty(value)
      return value
    }
    if (scope !== 'transport') {
      if (this.#ofRequest.has(name)) this.dependsOnRequest = true
      const value = this.#scopes[scope].get(name) ?? this.#derived(scope, name)
      this.secrets.readProperty(value)
      return value
    }
    const lower = name.toLowerCase()
    const field = this.#fields.get(lower)
    const value = field === undefined ? this.#receivedField(lower) : field.value
    if (value !== undefined) this.secrets.read(lower, textOf(value))
    return value
  }

  /** As `get`, for expressions: they also read the types of the content, where no sequence has set them. */
  read(scope: ReadScope, name: string): Value | undefined {
    const value = this.get(scope, name)
    if (value !== undefined || scope !== 'axis2' || !(name === 'ContentType' || name === 'messageType')) return value
    const type = this.#receivedField('content-type')
    if (type === undefined) return undefined
    this.dependsOnRequest = true
    return name === 'ContentType' ? type : mediaTypeOf(type)
  }

  /** Value of a property that no sequence has set: of the start line, or a variable of the request. */
  #derived(scope: Scope, name: string): Value | undefined {
    const outer = this.findsOuter === null ? undefined : this.findsOuter(scope, name)
    if (outer !== undefined) {
      this.dependsOnRequest = true
      return outer
    }
    if (scope === 'default' && Object.hasOwn(OF_MESSAGE, name)) return OF_MESSAGE[name]!(this)
    if (this.#received === NO_HEAD) return undefined
    if (scope === 'axis2') return Object.hasOwn(START_LINE, name) ? START_LINE[name]!(this.#received) : undefined
    if (scope !== 'default') return undefined
    if (name.startsWith(QUERY_PREFIX)) return queryParameter(this.#received.target, name.slice(QUERY_PREFIX.length))
    if (!name.startsWith(TEMPLATE_PREFIX)) return undefined
    const variable = name.slice(TEMPLATE_PREFIX.length)
    const own = { template: this.#described('API_ELECTED_RESOURCE'), path: this.#received.target }
    const context = { template: this.#described('REST_API_CONTEXT'), path: this.#described('REST_FULL_REQUEST_PATH') }
    return (
      templateVariable(own.template, own.path, variable) ?? templateVariable(context.template, context.path, variable)
    )
  }

  #described(name: string): string {
    return textOf(this.#scopes.default.get(name))
  }

  /** Sets a property that describes the request. */
  describe(scope: 'default' | 'axis2', name: string, value: Value): void {
    this.#ofRequest.add(name)
    this.set(scope, name, value)
  }

  /** `messageType` of axis2 also sets `ContentType`, which may be set to another type after it. */
  set(scope: Scope, name: string, value: Value): void {
    if (scope === 'transport') {
      this.#fields.set(name.toLowerCase(), { name, value })
      return
    }
    this.#scopes[scope].set(name, value)
    if (scope !== 'axis2') return
    if (name === 'messageType') this.#scopes.axis2.set('ContentType', value)
    else if (name === 'HTTP_METHOD') this.namesMethod = true
  }

  /** Without REST_URL_POSTFIX the request goes to the endpoint's own URL; TRANSPORT_HEADERS are all fields. */
  remove(scope: Scope, name: string): void {
    if (scope === 'transport') this.#fields.set(name.toLowerCase(), { name, value: undefined })
    else if (scope === 'axis2' && name === 'TRANSPORT_HEADERS') this.#removeFields()
    else if (scope === 'axis2' && name === 'REST_URL_POSTFIX' && this.#received !== NO_HEAD) this.set(scope, name, '')
    else this.#scopes[scope].delete(name)
  }

  #removeFields(): void {
    for (const [name] of [...this.keptFields(), ...this.fields()]) this.remove('transport', name)
  }

  /** Fields that a sequence has set and not removed. */
  *fields(): Iterable<readonly [name: string, value: Value]> {
    for (const { name, value } of this.#fields.values()) if (value !== undefined) yield [name, value]
  }

  /** Names of the fields that a sequence has set or removed, in lower case. */
  changedNames(): Iterable<string> {
    return this.#fields.keys()
  }

  /** The field is that of the request behind a call. */
  isOfRequest(name: string): boolean {
    return this.#fields.get(name.toLowerCase())?.isOfRequest === true
  }

  /** A received field, whatever sequences have done; `name`: in lower case. */
  receivedField(name: string): string | undefined {
    return this.#receivedField(name)
  }

  /** Received fields that no sequence has set or removed. */
  *keptFields(): Fields {
    for (const field of this.#receivedFields()) if (!this.#fields.has(field[0].toLowerCase())) yield field
  }

  /** Everything but header fields, start line and body. */
  state(): MessageState {
    const { default: own, axis2, operation, variable } = this.#scopes
    const state = {
      default: entriesOf(own),
      axis2: entriesOf(axis2),
      operation: entriesOf(operation),
      variables: entriesOf(variable),
    }
    const to = this.#to === '' ? {} : { to: this.#to }
    const request = this.request === null ? {} : { request: this.request }
    const secrets = [...this.secrets]
    return secrets.length === 0 ? { ...state, ...to, ...request } : { ...state, ...to, ...request, secrets }
  }

  /** Returns the state for the next flow of the same exchange, without what no later flow needs. */
  stateForNextFlow(): MessageState {
    const { request, ...state } = this.state()
    const kept = request === undefined || this.isFromBackend ? {} : { request }
    return { ...state, ...kept, axis2: state.axis2.filter(([name]) => !OF_ONE_MESSAGE.includes(name)) }
  }

  restore(state: MessageState): void {
    const { default: own, axis2, operation, variables, to = '', parameters, secrets = [], request } = state
    for (const [name, value] of own) this.#scopes.default.set(name, value)
    for (const [name, value] of axis2) this.#scopes.axis2.set(name, value)
    for (const [name, value] of operation) this.#scopes.operation.set(name, value)
    for (const [name, value] of variables) this.#scopes.variable.set(name, value)
    this.secrets.add(secrets)
    if (parameters !== undefined) this.frame = { values: new Map(parameters), deferred: new Map() }
    if (to !== '') this.#to = to
    if (request !== undefined) this.request = request
  }

  /** A message of its own with the same content; it counts its steps and has no outcome. */
  copy(): Message {
    const copy = new Message(this.#receivedField, this.#receivedFields)
    copy.receive(this.#received, this.#body)
    copy.restore(this.state())
    for (const [lower, field] of this.#fields) copy.#fields.set(lower, field)
    for (const name of this.#ofRequest) copy.#ofRequest.add(name)
    if (this.#bodyState === 'unread') this.#shared ??= {}
    copy.#shared = this.#shared
    copy.#payload = this.#payload
    copy.#bodyState = this.#bodyState
    copy.frame = this.frame
    copy.sendsLater = this.sendsLater
    copy.namesMethod = this.namesMethod
    copy.isFromBackend = this.isFromBackend
    copy.findsOuter = this.findsOuter
    copy.task = this.task
    copy.enteredSequences = this.enteredSequences
    copy.steps = this.steps
    return copy
  }

  /**
   * Becomes the response to a call: its status, fields and body; properties, method and target stay, and so do the
   * subprotocols of a WebSocket handshake, of which the backend chooses one.
   */
  becomeResponse(response: Message): void {
    const { method, target } = this.head
    const { status, reason } = response.#received
    const subprotocols = this.get('transport', SUBPROTOCOLS)
    this.#receivedField = response.#receivedField
    this.#receivedFields = response.#receivedFields
    this.#fields.clear()
    if (subprotocols !== undefined) {
      this.#fields.set(SUBPROTOCOLS.toLowerCase(), { name: SUBPROTOCOLS, value: subprotocols, isOfRequest: true })
    }
    for (const name of OF_ONE_MESSAGE) this.#scopes.axis2.delete(name)
    this.namesMethod = false
    this.receive({ method, target, status, reason }, response.#body)
  }

  /** Becomes another message, a copy of this one, with its outcome. */
  adopt(other: Message): void {
    this.#receivedField = other.#receivedField
    this.#receivedFields = other.#receivedFields
    this.receive(other.#received, other.#body)
    for (const values of Object.values(this.#scopes)) values.clear()
    this.restore(other.state())
    this.frame = other.frame
    this.sendsLater = other.sendsLater
    this.namesMethod = other.namesMethod
    this.#fields.clear()
    for (const [lower, field] of other.#fields) this.#fields.set(lower, field)
    this.#payload = other.#payload
    this.#bodyState = other.#bodyState
    this.#shared = other.#shared
    this.#to = other.#to
    this.steps = Math.max(this.steps, other.steps)
    this.outcome = other.outcome
    this.endpoint = other.endpoint
    this.sentOnError = other.sentOnError
    this.fault = other.fault
  }

  /** A backend's response, or marked as a response by a sequence. */
  get isResponse(): boolean {
    return this.isFromBackend || this.isMarkedResponse
  }

  /** A sequence has set the property RESPONSE. */
  get isMarkedResponse(): boolean {
    const marker = this.#scopes.default.get('RESPONSE')
    return marker === true || marker === 'true'
  }

  /** Makes a JSON payload of a value, which nobody changes any more. */
  set json(value: Json) {
    this.payload = jsonPayload(value)
  }

  /** Value of a JSON payload, in which each number keeps its notation; undefined for other payloads. */
  get json(): Json | undefined {
    const { payload } = this
    return payload?.kind === 'json' ? writtenValue(payload) : undefined
  }
}

/** Plain data, for another thread. */
function entriesOf(scope: ReadonlyMap<string, Value>): MessageState['default'] {
  const entries: [string, Value][] = []
  for (const [name, value] of scope) entries.push([name, cloneable(value)])
  return entries
}
