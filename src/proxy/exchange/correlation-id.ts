/**
 * Correlation id of a request, for logs, backends and clients. A generated id is the random prefix of the thread and a
 * count; its string is made only when it is read, because most ids are only written to two sockets.
 */
import { putText } from '../../http1/writer.ts'

const RADIX = 32
const RADIX_BITS = 5
const SHIFTED_MAX = 0x7fffffff
const DIGIT_0 = 48
const LETTER_A = 97

export class CorrelationId {
  readonly #prefix: string
  #count = 0
  #given: string | null = null

  /** `prefix`: random text, different in each thread. */
  constructor(prefix: string) {
    this.#prefix = prefix
  }

  /** Removes the id. */
  clear(): void {
    this.#count = 0
    this.#given = null
  }

  /** Sets a generated id; `count` must be unique in the thread. */
  generate(count: number): void {
    this.#count = count
    this.#given = null
  }

  /** Sets the id that the client sent. */
  take(given: string): void {
    this.#given = given
  }

  get isSet(): boolean {
    return this.#given !== null || this.#count !== 0
  }

  /** The id is generated, or there is none: plain letters, digits and a hyphen. */
  get isGenerated(): boolean {
    return this.#given === null
  }

  get text(): string {
    if (this.#given !== null) return this.#given
    return this.#count === 0 ? '' : this.#prefix + this.#count.toString(RADIX)
  }

  /** Writes the id; returns the position behind it. */
  put(bytes: Buffer, at: number): number {
    if (this.#given !== null) return putText(bytes, at, this.#given)
    if (this.#count === 0) return at
    const start = putText(bytes, at, this.#prefix)
    // Digits of 31 bits by shifts; a thread that counts further words the number as text.
    if (this.#count > SHIFTED_MAX) return putText(bytes, start, this.#count.toString(RADIX))
    const digits = Math.ceil((32 - Math.clz32(this.#count)) / RADIX_BITS)
    for (let i = digits - 1, rest = this.#count; i >= 0; i--, rest >>= RADIX_BITS) {
      const digit = rest & (RADIX - 1)
      bytes[start + i] = digit < 10 ? DIGIT_0 + digit : LETTER_A + digit - 10
    }
    return start + digits
  }
}

/** Makes a prefix that differs between threads and runs; ids are no secrets. */
export function newIdPrefix(): string {
  return `${randomText()}${randomText()}-`
}

/** Six random characters. */
function randomText(): string {
  return Math.floor(Math.random() * 36 ** 6)
    .toString(36)
    .padStart(6, '0')
}
