/** The message of a sequence: properties in three scopes, a payload, and its outcome. */
import { MASK, isSecretName } from '../observe/redact.ts'
import { type Json, textOf, type Value } from './value.ts'
import type { XmlElementNode } from './xml-tree.ts'

export type Scope = 'default' | 'axis2' | 'transport'

/** Scopes by the names that mediators use. */
export const SCOPES: ReadonlyMap<string, Scope> = new Map([
  ['default', 'default'],
  ['synapse', 'default'],
  ['axis2', 'axis2'],
  ['transport', 'transport'],
])
/** Scopes by the prefixes of variables, as in `$ctx:name`. */
export const SCOPE_PREFIXES: ReadonlyMap<string, Scope> = new Map([
  ['ctx', 'default'],
  ['axis2', 'axis2'],
  ['trp', 'transport'],
])

export type Payload =
  /** `text` is well-formed. */
  | { readonly kind: 'json'; readonly text: string }
  /** `root`: a SOAP Envelope, a SOAP Fault alone, or any other element. */
  | { readonly kind: 'xml'; readonly root: XmlElementNode }
  | { readonly kind: 'text'; readonly text: string }

/** Header fields whose values must not be logged, beside the names that are secret in a query. */
const SECRET_FIELD = /^proxy-authorization$|^set-cookie$|token|api-?key|secret|password|jwt/
const SECRETS_MAX = 64

/** `name`: in lower case. */
function isSecret(name: string): boolean {
  return SECRET_FIELD.test(name) || isSecretName(name)
}

interface Field {
  readonly name: string
  /** undefined: removed, which also hides the field of the request. */
  readonly value: Value | undefined
}

/**
 * Transport properties are header fields, with names in any case. Sequences can read the fields of the request, but
 * only fields that a sequence sets are sent with the response.
 */
export class Message {
  /** Set by the mediator that ends the message; `ended`: none has. */
  outcome: 'sent' | 'responded' | 'dropped' | 'ended' = 'ended'
  /** The message is a backend's response. */
  isFromBackend = false
  payload: Payload | null = null
  /** What the sequence has read is not the same for every request: another request may get another response. */
  dependsOnRequest = false
  /** Number of reads of secret fields. */
  secretsRead = 0
  enteredSequences = 0
  readonly #requestField: (name: string) => string | undefined
  readonly #default = new Map<string, Value>()
  readonly #axis2 = new Map<string, Value>()
  readonly #fields = new Map<string, Field>()
  readonly #secrets = new Set<string>()
  /** Properties of the scope `default` or `axis2` that describe the request. */
  readonly #ofRequest = new Set<string>()
  #to = ''
  /** Parsed JSON of the payload. */
  #parsed: { readonly payload: Payload; readonly value: Json } | undefined

  /** `requestField`: a field of the request, by its name in lower case. */
  constructor(requestField: (name: string) => string | undefined) {
    this.#requestField = requestField
  }

  /** Destination; '' for none. */
  get to(): string {
    this.dependsOnRequest = true
    return this.#to
  }

  set to(destination: string) {
    this.#to = destination
  }

  get(scope: Scope, name: string): Value | undefined {
    if (scope !== 'transport' && this.#ofRequest.has(name)) this.dependsOnRequest = true
    if (scope === 'default') return this.#default.get(name)
    if (scope === 'axis2') return this.#axis2.get(name)
    const lower = name.toLowerCase()
    const field = this.#fields.get(lower)
    const value = field === undefined ? this.#requestField(lower) : field.value
    if (value !== undefined && isSecret(lower)) this.#keepSecret(textOf(value))
    return value
  }

  /** Sets a property that describes the request. */
  describe(scope: 'default' | 'axis2', name: string, value: Value): void {
    this.#ofRequest.add(name)
    this.set(scope, name, value)
  }

  /** `messageType` of axis2 also sets `ContentType`, which may be set to another type after it. */
  set(scope: Scope, name: string, value: Value): void {
    if (scope === 'default') this.#default.set(name, value)
    else if (scope === 'axis2') {
      this.#axis2.set(name, value)
      if (name === 'messageType') this.#axis2.set('ContentType', value)
    } else this.#fields.set(name.toLowerCase(), { name, value })
  }

  remove(scope: Scope, name: string): void {
    if (scope === 'default') this.#default.delete(name)
    else if (scope === 'axis2') this.#axis2.delete(name)
    else this.#fields.set(name.toLowerCase(), { name, value: undefined })
  }

  /** Response fields: those that a sequence has set and not removed. */
  *fields(): Iterable<readonly [name: string, value: Value]> {
    for (const { name, value } of this.#fields.values()) if (value !== undefined) yield [name, value]
  }

  #keepSecret(text: string): void {
    this.secretsRead++
    if (text !== '' && this.#secrets.size < SECRETS_MAX) this.#secrets.add(text)
  }

  /** Masks the values of all secret fields that were read, wherever they were copied to. */
  maskSecrets(text: string): string {
    let masked = text
    for (const secret of this.#secrets) masked = masked.replaceAll(secret, MASK)
    return masked
  }

  /** Value of a field for the log. */
  maskField(name: string, text: string): string {
    return isSecret(name.toLowerCase()) ? MASK : this.maskSecrets(text)
  }

  /** A backend's response, or marked as a response by a sequence. */
  get isResponse(): boolean {
    return this.isFromBackend || this.isMarkedResponse
  }

  /** A sequence has set the property RESPONSE. */
  get isMarkedResponse(): boolean {
    const marker = this.#default.get('RESPONSE')
    return marker === true || marker === 'true'
  }

  /** Value of a JSON payload; undefined for other payloads. */
  get json(): Json | undefined {
    const { payload } = this
    if (payload?.kind !== 'json') return undefined
    if (this.#parsed?.payload !== payload) this.#parsed = { payload, value: JSON.parse(payload.text) as Json }
    return this.#parsed.value
  }
}
