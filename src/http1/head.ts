/**
 * A message head as offsets into the arena: start line and ordered field list. Nothing is decoded; strings are made
 * only for what a decision needs. The bytes must stay where they are as long as the head is used.
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
  /** llhttp's method number; see `methodName`. */
  method = 0
  status = 0
  minorVersion = 1
  /** Just past the start line and its CRLF; set when the head is complete. */
  fieldsAt = 0
  /** Just past the empty line that ends the head; set when the head is complete. */
  end = 0
  /** Where parsing of the last span stands: a value (true) or a name. */
  lastWasValue = true
  /** Bit per KIND: whether there is a field of it, and more than one; filled by `classify`. */
  present = 0
  repeated = 0
  /** More fields came than there is room for. */
  overflowed = false
  /** Index of the first field of a kind, -1 when absent; filled by `classify`. */
  host = -1
  contentLength = -1
  transferEncoding = -1
  connection = -1

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
  }

  /** The bytes were moved by `delta`. */
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

  /** Where the line after this field starts: the next field's name, or the empty line. */
  lineEnd(field: number): number {
    return field + 1 < this.count ? this.spans[(field + 1) * SPAN]! : this.end - 2
  }

  kind(field: number): Kind {
    return this.kinds[field] as Kind
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

  /** All values of a kind, joined as a list (RFC 9110 5.3); '' when there is none. */
  list(bytes: Buffer, kind: Kind): string {
    let list = ''
    for (let field = 0; field < this.count; field++) {
      if (this.kinds[field] === kind)
        list = list === '' ? this.value(bytes, field) : `${list}, ${this.value(bytes, field)}`
    }
    return list
  }
}
