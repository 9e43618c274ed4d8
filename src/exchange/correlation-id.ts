/**
 * The id under which a request is logged, passed on and answered. Generated ids are a random prefix of the thread and a
 * count; their text is made only when somebody reads it, because most are only ever written to two sockets.
 */
import { putText } from '../http1/writer.ts'

const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz'
const RADIX = 32

export class CorrelationId {
  readonly #prefix: string
  #count = 0
  #given: string | null = null

  /** `prefix`: random text that no other thread uses. */
  constructor(prefix: string) {
    this.#prefix = prefix
  }

  /** None yet. */
  clear(): void {
    this.#count = 0
    this.#given = null
  }

  /** A generated one; `count` must differ from that of every other id of the thread. */
  generate(count: number): void {
    this.#count = count
    this.#given = null
  }

  /** The client's own. */
  take(given: string): void {
    this.#given = given
  }

  get isSet(): boolean {
    return this.#given !== null || this.#count !== 0
  }

  get text(): string {
    if (this.#given !== null) return this.#given
    return this.#count === 0 ? '' : this.#prefix + this.#count.toString(RADIX)
  }

  /** Writes it; answers the position behind it. */
  put(bytes: Buffer, at: number): number {
    if (this.#given !== null) return putText(bytes, at, this.#given)
    const start = putText(bytes, at, this.#prefix)
    let digits = 1
    for (let rest = this.#count; rest >= RADIX; rest = Math.floor(rest / RADIX)) digits++
    for (let i = digits - 1, rest = this.#count; i >= 0; i--, rest = Math.floor(rest / RADIX)) {
      bytes[start + i] = DIGITS.charCodeAt(rest % RADIX)
    }
    return start + digits
  }
}

/** Ids must differ between threads and runs; nobody is kept out by not knowing them. */
export function newIdPrefix(): string {
  return `${randomText()}${randomText()}-`
}

/** Six characters. */
function randomText(): string {
  return Math.floor(Math.random() * 36 ** 6)
    .toString(36)
    .padStart(6, '0')
}
