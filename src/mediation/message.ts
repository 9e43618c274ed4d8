/** What a sequence works on: properties in three scopes, a payload, and what is to become of it. */
import { MASK, namesSecret } from '../observe/redact.ts'
import { type Json, textOf, type Value } from './value.ts'
import type { XmlElementNode } from './xml-tree.ts'

export type Scope = 'default' | 'axis2' | 'transport'

/** Words for scopes, where a property is named. */
export const SCOPES: ReadonlyMap<string, Scope> = new Map([
  ['default', 'default'],
  ['synapse', 'default'],
  ['axis2', 'axis2'],
  ['transport', 'transport'],
])
/** Prefixes of variables, as `$ctx:name`. */
export const SCOPE_PREFIXES: ReadonlyMap<string, Scope> = new Map([
  ['ctx', 'default'],
  ['axis2', 'axis2'],
  ['trp', 'transport'],
])

export type Payload =
  /** `text` is well-formed. */
  | { readonly kind: 'json'; readonly text: string }
  /** Its root; a SOAP Envelope, a SOAP Fault without one, or anything else. */
  | { readonly kind: 'xml'; readonly root: XmlElementNode }
  | { readonly kind: 'text'; readonly text: string }

/** Fields whose values no log may show, beside those that would not be shown as parameters of a query. */
const SECRET_FIELD = /^proxy-authorization$|^set-cookie$|token|api-?key|secret|password|jwt/
const SECRETS_MAX = 64

/** `name`: in lower case. */
function isSecret(name: string): boolean {
  return SECRET_FIELD.test(name) || namesSecret(name)
}

interface Field {
  readonly name: string
  /** undefined: removed, also where the request has it. */
  readonly value: Value | undefined
}

/**
 * Transport properties are fields: names in any case. Those of the request can be read, but only those that a sequence
 * set leave with the answer.
 */
export class Message {
  /** What was met that ends a message; `ended`: nothing yet. */
  outcome: 'sent' | 'responded' | 'dropped' | 'ended' = 'ended'
  /** It came from a backend. */
  isReply = false
  payload: Payload | null = null
  /** Where it is meant to go; '' for nowhere. */
  to = ''
  /** How often a secret field was read. */
  secretsRead = 0
  /** Sequences entered so far. */
  calls = 0
  readonly #requestField: (name: string) => string | undefined
  readonly #default = new Map<string, Value>()
  readonly #axis2 = new Map<string, Value>()
  readonly #fields = new Map<string, Field>()
  readonly #secrets = new Set<string>()
  /** Of the payload whose text it was read from. */
  #parsed: { readonly payload: Payload; readonly value: Json } | undefined

  /** `requestField`: by its name in lower case. */
  constructor(requestField: (name: string) => string | undefined) {
    this.#requestField = requestField
  }

  get(scope: Scope, name: string): Value | undefined {
    if (scope === 'default') return this.#default.get(name)
    if (scope === 'axis2') return this.#axis2.get(name)
    const lower = name.toLowerCase()
    const field = this.#fields.get(lower)
    const value = field === undefined ? this.#requestField(lower) : field.value
    if (value !== undefined && isSecret(lower)) this.#keepSecret(textOf(value))
    return value
  }

  /** `messageType` of axis2 is also what is said of the payload, until `ContentType` is set after it. */
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

  /** Fields for the answer: those that a sequence set and did not remove. */
  *fields(): Iterable<readonly [name: string, value: Value]> {
    for (const { name, value } of this.#fields.values()) if (value !== undefined) yield [name, value]
  }

  #keepSecret(text: string): void {
    this.secretsRead++
    if (text !== '' && this.#secrets.size < SECRETS_MAX) this.#secrets.add(text)
  }

  /** Without the values of secret fields that were read, wherever they were copied to. */
  withoutSecrets(text: string): string {
    let masked = text
    for (const secret of this.#secrets) masked = masked.replaceAll(secret, MASK)
    return masked
  }

  /** Value of a field as a log may show it. */
  shown(name: string, text: string): string {
    return isSecret(name.toLowerCase()) ? MASK : this.withoutSecrets(text)
  }

  /** It is on its way back: it was from the start, or a sequence made it an answer. */
  get isResponse(): boolean {
    return this.isReply || this.isAnswer
  }

  /** A sequence made it the answer: the property RESPONSE says so. */
  get isAnswer(): boolean {
    const marker = this.#default.get('RESPONSE')
    return marker === true || marker === 'true'
  }

  /** Value of a JSON payload; undefined where there is none. */
  get json(): Json | undefined {
    const { payload } = this
    if (payload?.kind !== 'json') return undefined
    if (this.#parsed?.payload !== payload) this.#parsed = { payload, value: JSON.parse(payload.text) as Json }
    return this.#parsed.value
  }
}
