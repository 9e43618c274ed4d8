/**
 * The object `mc` of scripts. Inline scripts get the class as text inside their own context, so that they can reach no
 * object of the thread. The class must use nothing from outside; JSON alone goes in and out.
 */
import type { ScriptChange, ScriptScope, ScriptState, ScriptValue, ScriptXml } from './script-task.ts'

export class ScriptMessage {
  readonly #json: JSON
  readonly #values: Record<string, Map<string, ScriptValue>>
  readonly #changes: ScriptChange[] = []
  readonly #envelope: string
  readonly #xml: ScriptXml
  #payload: { kind: ScriptState['kind']; text: string }
  #parsed: unknown
  #to: string
  #response: boolean
  /** The payload as the script has changed it. */
  #made: 'nothing' | 'payload' = 'nothing'

  /** `state`: JSON of a `ScriptState`. */
  constructor(state: string, payload: string, envelope: string, xml: ScriptXml) {
    const { parse, stringify } = JSON
    // A script may replace what the global object holds.
    this.#json = { parse, stringify } as JSON
    const { properties, kind, to, isResponse } = parse(state) as ScriptState
    this.#values = { default: new Map(), axis2: new Map(), transport: new Map(), operation: new Map() }
    this.#values.variable = new Map()
    for (const [scope, name, value] of properties) this.#values[scope]!.set(this.#key(scope, name), value)
    this.#payload = { kind, text: payload }
    this.#envelope = envelope
    this.#xml = xml
    this.#to = to
    this.#response = isResponse
  }

  /** Texts, numbers and booleans as such, JSON as objects, XML as text; null for none. */
  getProperty(name: string, scope = 'default'): unknown {
    const known = this.#scope(scope)
    const value = this.#values[known]!.get(this.#key(known, String(name)))
    if (value === undefined) return null
    if (typeof value !== 'object') return value
    return 'xml' in value ? value.xml : value.json
  }

  /** Null and undefined remove the property. */
  setProperty(name: string, value: unknown, scope = 'default'): void {
    if (value === null || value === undefined) {
      this.removeProperty(name, scope)
      return
    }
    const known = this.#scope(scope)
    const kept = this.#valueOf(value)
    this.#values[known]!.set(this.#key(known, String(name)), kept)
    this.#changes.push({ kind: 'set', scope: known, name: String(name), value: kept })
  }

  removeProperty(name: string, scope = 'default'): void {
    const known = this.#scope(scope)
    this.#values[known]!.delete(this.#key(known, String(name)))
    this.#changes.push({ kind: 'remove', scope: known, name: String(name) })
  }

  getPropertyKeySet(scope = 'default'): string[] {
    return [...this.#values[this.#scope(scope)]!.keys()]
  }

  /** The value of a JSON payload; null for other payloads. */
  getPayloadJSON(): unknown {
    const { kind, text } = this.#payload
    if (kind !== 'json') return null
    if (this.#parsed === undefined) this.#parsed = this.#json.parse(text)
    return this.#parsed
  }

  /** A value, or JSON as text. */
  setPayloadJSON(value: unknown): void {
    const json = typeof value === 'string' ? this.#json.parse(value) : value
    const text = this.#json.stringify(json)
    if (text === undefined) throw new TypeError('setPayloadJSON needs a value of JSON')
    this.#replace('json', text)
  }

  /**
   * The payload as XML text, of a SOAP message the content of the Body; JSON and text as XPath sees them. Null for
   * other payloads, and for JSON and text that an inline script has set.
   */
  getPayloadXML(): string | null {
    const { kind, text } = this.#payload
    if (kind === 'xml') return text
    if (kind !== 'json' && kind !== 'text') return null
    if (typeof this.#xml === 'function') return this.#xml(kind, text)
    return this.#made === 'nothing' && this.#xml !== '' ? this.#xml : null
  }

  /** XML as text. In a SOAP message it replaces the content of the Body. */
  setPayloadXML(xml: unknown): void {
    this.#replace('xml', String(xml))
  }

  /** The payload as text; '' without one. */
  getPayloadText(): string {
    return this.#payload.text
  }

  setPayloadText(text: unknown): void {
    this.#replace('text', String(text))
  }

  removePayload(): void {
    this.#replace('none', '')
  }

  /** The Envelope of a SOAP message as XML text; null for other messages. */
  getEnvelope(): string | null {
    return this.#envelope === '' ? null : this.#envelope
  }

  getEnvelopeXML(): string | null {
    return this.getEnvelope()
  }

  /** Adds a block, as XML text, to the header of the SOAP message. */
  addHeader(mustUnderstand: boolean, content: unknown): void {
    this.#changes.push({ kind: 'header', mustUnderstand: mustUnderstand === true, xml: String(content) })
  }

  getTo(): string {
    return this.#to
  }

  setTo(address: unknown): void {
    this.#to = String(address)
    this.#changes.push({ kind: 'to', value: this.#to })
  }

  getSoapAction(): unknown {
    return this.getProperty('SOAPAction', 'transport')
  }

  setSoapAction(action: unknown): void {
    this.setProperty('SOAPAction', String(action), 'transport')
  }

  isResponse(): boolean {
    return this.#response
  }

  setResponse(value: unknown): void {
    this.#response = value === true
    this.setProperty('RESPONSE', this.#response)
  }

  getServiceLog(): Record<'debug' | 'info' | 'warn' | 'error', (text: unknown) => void> {
    const log = (level: 'debug' | 'info' | 'warn' | 'error') => (text: unknown) => {
      this.#changes.push({ kind: 'log', level, text: String(text) })
    }
    return { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') }
  }

  /** The function that ends the script: JSON of the changes, and kind and text of a replaced payload. */
  static end(message: ScriptMessage): readonly string[] {
    const { kind, text } = message.#payload
    const changes = message.#json.stringify(message.#changes)
    return message.#made === 'nothing' ? [changes] : [changes, kind, text]
  }

  #replace(kind: 'json' | 'xml' | 'text' | 'none', text: string): void {
    this.#payload = { kind, text }
    this.#parsed = undefined
    this.#made = 'payload'
  }

  #valueOf(value: unknown): ScriptValue {
    if (typeof value === 'string' || typeof value === 'boolean') return value
    if (typeof value === 'number') return value
    if (typeof value !== 'object') return String(value)
    const text = this.#json.stringify(value)
    return text === undefined ? '' : { json: this.#json.parse(text) }
  }

  #scope(scope: string): ScriptScope {
    const known = scope === 'synapse' || scope === 'axis2-client' ? (scope === 'synapse' ? 'default' : 'axis2') : scope
    if (!Object.hasOwn(this.#values, known)) throw new RangeError('there is no such scope')
    return known as ScriptScope
  }

  /** Names of header fields are in any case. */
  #key(scope: string, name: string): string {
    return scope === 'transport' ? name.toLowerCase() : name
  }
}
