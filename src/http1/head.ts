/**
 * A message head as offsets into the arena: start line and ordered field list. Nothing is decoded; strings are made
 * only where a decision needs them. The bytes must stay in place as long as the head is used.
 */
import type { Kind } from './field-kinds.ts'

/** Ints per field in `spans`: name start, name length, value start, value length. */
export const SPAN = 4

export class Head {
  readonly spans: Int32Array
  readonly kinds: Uint8Array
  readonly capacity: number
  count = 0
  /** Position of a request's target; its length is 0 in a response. */
  targetAt = 0
  targetLength = 0
  status = 0
  minorVersion = 1
  /** First byte behind the start line and its CRLF; set when the head is complete. */
  fieldsAt = 0
  /** First byte behind the empty line that ends the head; set when the head is complete. */
  end = 0
  /** The span that was parsed last is a value, not a name. */
  lastWasValue = true
  /** Bit per KIND: the head has a field of it, or more than one; set by `classify`. */
  present = 0
  repeated = 0
  /** The message has more fields than the head has room for. */
  overflowed = false
  /** Index of the first field of a kind, -1 when absent; set by `classify`. */
  host = -1
  contentLength = -1
  transferEncoding = -1
  connection = -1
  /** CONNECTION_OPTION bits; set by `readConnection`. */
  connectionOptions = 0

  constructor(capacity: number) {
    this.capacity = capacity
    this.spans = new Int32Array(capacity * SPAN)
    this.kinds = new Uint8Array(capacity)
  }

  clear(): void {
    this.count = 0
    this.targetAt = 0
    this.targetLength = 0
    this.status = 0
    this.fieldsAt = 0
    this.end = 0
    this.lastWasValue = true
    this.overflowed = false
    this.present = 0
    this.repeated = 0
    this.host = -1
    this.contentLength = -1
    this.transferEncoding = -1
    this.connection = -1
    this.connectionOptions = 0
  }

  /** Takes over everything from a head with as many fields as this one has room for. */
  copy(other: Head): void {
    const { count } = other
    for (let i = 0; i < count * SPAN; i++) this.spans[i] = other.spans[i]!
    for (let field = 0; field < count; field++) this.kinds[field] = other.kinds[field]!
    this.count = count
    this.targetAt = other.targetAt
    this.targetLength = other.targetLength
    this.status = other.status
    this.minorVersion = other.minorVersion
    this.fieldsAt = other.fieldsAt
    this.end = other.end
    this.lastWasValue = other.lastWasValue
    this.overflowed = other.overflowed
    this.present = other.present
    this.repeated = other.repeated
    this.host = other.host
    this.contentLength = other.contentLength
    this.transferEncoding = other.transferEncoding
    this.connection = other.connection
    this.connectionOptions = other.connectionOptions
  }

  /** Follows bytes that were moved by `delta`. */
  moveBy(delta: number): void {
    for (let i = 0; i < this.count * SPAN; i += SPAN) {
      this.spans[i] = this.spans[i]! + delta
      this.spans[i + 2] = this.spans[i + 2]! + delta
    }
    this.targetAt += delta
    this.fieldsAt += delta
    this.end += delta
  }

  nameAt(field: number): number {
    return this.spans[field * SPAN]!
  }

  nameLength(field: number): number {
    return this.spans[field * SPAN + 1]!
  }

  valueAt(field: number): number {
    return this.spans[field * SPAN + 2]!
  }

  valueLength(field: number): number {
    return this.spans[field * SPAN + 3]!
  }

  /** Start of the line behind this field: the next field's name, or the empty line. */
  lineEnd(field: number): number {
    return field + 1 < this.count ? this.spans[(field + 1) * SPAN]! : this.end - 2
  }

  /** The value as a string of its bytes (latin1), without surrounding white space. */
  value(bytes: Buffer, field: number): string {
    const at = this.valueAt(field)
    return bytes.latin1Slice(at, at + this.valueLength(field)).trim()
  }

  has(kind: Kind): boolean {
    return (this.present & (1 << kind)) !== 0
  }

  isRepeated(kind: Kind): boolean {
    return (this.repeated & (1 << kind)) !== 0
  }

  /** The first field of a kind, or -1. */
  find(kind: Kind): number {
    if (!this.has(kind)) return -1
    for (let field = 0; field < this.count; field++) if (this.kinds[field] === kind) return field
    return -1
  }

  /** All values of a kind, joined as a list (RFC 9110 5.3); '' without any. */
  list(bytes: Buffer, kind: Kind): string {
    let list = ''
    for (let field = 0; field < this.count; field++) {
      if (this.kinds[field] === kind)
        list = list === '' ? this.value(bytes, field) : `${list}, ${this.value(bytes, field)}`
    }
    return list
  }
}

/** Most unpinned heads that a pool keeps. */
const SPARE_MAX = 64

/** Heads of a thread: one scratch head that every complete read uses, and spares for messages that come in pieces. */
export class HeadPool {
  readonly #capacity: number
  readonly #spare: Head[] = []
  scratch: Head

  /** `capacity`: fields per head. */
  constructor(capacity: number) {
    this.#capacity = capacity
    this.scratch = new Head(capacity)
  }

  /** Gives the scratch head to the caller, and replaces it. */
  pin(): Head {
    const pinned = this.scratch
    this.scratch = this.#spare.pop() ?? new Head(this.#capacity)
    return pinned
  }

  unpin(head: Head): void {
    if (this.#spare.length < SPARE_MAX) this.#spare.push(head)
  }
}
