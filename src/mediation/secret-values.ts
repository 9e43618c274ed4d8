/**
 * Values of secret header fields and of the environment that sequences have read, and what properties compute from
 * them: the log masks them, wherever they were copied to.
 */
import { MASK, isSecretName } from '../observe/redact.ts'
import type { Value } from './value.ts'

/** Names that are secret in a header field, beside those that are secret in a query. */
const SECRET_FIELD = /^proxy-authorization$|^set-cookie$|token|api-?key|secret|password|jwt/
const VALUES_MAX = 64
/** Shorter values of the environment are no passwords, and occur in texts that have nothing to do with them. */
const OUTER_LENGTH_MIN = 4
/** Shorter values that are computed from a secret tell little of it, as `true` and `Bearer`. */
const COMPUTED_LENGTH_MIN = 8

export class SecretValues implements Iterable<string> {
  readonly #values = new Set<string>()
  /** Longest first, because one value may begin another one; null: to be made. */
  #spellings: readonly string[] | null = null
  #reads = 0
  #copies = 0

  /** Number of reads of secrets. */
  get reads(): number {
    return this.#reads
  }

  /** A field was read. `name`: in lower case. */
  read(name: string, text: string): void {
    if (!isSecret(name)) return
    this.#reads++
    if (text !== '') this.add([text])
  }

  /** A variable of the environment was read. */
  readOuter(text: string): void {
    this.#reads++
    if (text.length >= OUTER_LENGTH_MIN) this.add([text])
  }

  /** Number of reads of secrets and of properties that hold one. */
  get uses(): number {
    return this.#reads + this.#copies
  }

  /** A property was read. */
  readProperty(value: Value | undefined): void {
    if (this.#values.size > 0 && typeof value === 'string' && this.#values.has(value)) this.#copies++
  }

  /**
   * Adds a value that was computed since there were so many `uses`, if there are more now: it comes from a secret. A
   * value that shows the secret as it is needs no mask of its own.
   */
  computed(value: Value, usesBefore: number): void {
    if (this.uses === usesBefore || typeof value !== 'string' || value.length < COMPUTED_LENGTH_MIN) return
    if (this.mask(value) === value) this.add([value])
  }

  /** Values that another message has read. */
  add(values: Iterable<string>): void {
    for (const value of values) if (this.#values.size < VALUES_MAX) this.#values.add(value)
    this.#spellings = null
  }

  /** Masks the values in a text, as they are and with the escapes of JSON, XML and URLs. */
  mask(text: string): string {
    if (this.#values.size === 0) return text
    this.#spellings ??= [...new Set([...this.#values].flatMap(spellingsOf))].sort((one, two) => two.length - one.length)
    let masked = text
    for (const spelling of this.#spellings) masked = masked.replaceAll(spelling, MASK)
    return masked
  }

  /** Value of a field for the log. */
  maskField(name: string, text: string): string {
    return isSecret(name.toLowerCase()) ? MASK : this.mask(text)
  }

  [Symbol.iterator](): Iterator<string> {
    return this.#values.values()
  }
}

/** Masks these values in a text. */
export function maskedBy(values: readonly string[], text: string): string {
  if (values.length === 0) return text
  const secrets = new SecretValues()
  secrets.add(values)
  return secrets.mask(text)
}

function isSecret(name: string): boolean {
  return SECRET_FIELD.test(name) || isSecretName(name)
}

function spellingsOf(value: string): readonly string[] {
  const inXml = value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  const inUrl = encodeURIComponent(value.toWellFormed())
  return [value, JSON.stringify(value).slice(1, -1), inXml, inXml.replaceAll('"', '&quot;'), inUrl]
}
