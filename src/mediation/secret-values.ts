/** Values of secret header fields that sequences have read: the log masks them, wherever they were copied to. */
import { MASK, isSecretName } from '../observe/redact.ts'

/** Names that are secret in a header field, beside those that are secret in a query. */
const SECRET_FIELD = /^proxy-authorization$|^set-cookie$|token|api-?key|secret|password|jwt/
const VALUES_MAX = 64
/** Shorter values of the environment are no passwords, and occur in texts that have nothing to do with them. */
const OUTER_LENGTH_MIN = 4

export class SecretValues implements Iterable<string> {
  readonly #values = new Set<string>()
  #reads = 0

  /** Number of reads of secret fields. */
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

  /** Values that another message has read. */
  add(values: Iterable<string>): void {
    for (const value of values) if (this.#values.size < VALUES_MAX) this.#values.add(value)
  }

  /** The text without the values. */
  mask(text: string): string {
    let masked = text
    for (const value of this.#values) masked = masked.replaceAll(value, MASK)
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

function isSecret(name: string): boolean {
  return SECRET_FIELD.test(name) || isSecretName(name)
}
