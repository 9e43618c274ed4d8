/**
 * Request fields that a fault may need once the head is gone: Accept and Content-Type where they mention XML, and the
 * fields that fault sequences read. Nearly every request captures nothing, and then no string is made.
 */
import { type FieldKinds, isName, KIND } from './field-kinds.ts'
import type { Head } from './head.ts'

/** Names in lower case and values as received, alternating. */
export type CapturedFields = readonly string[]

export const NO_CAPTURED_FIELDS: CapturedFields = []

/** A longer Accept is cut: what follows does not decide. */
const NEGOTIATED_CHARS_MAX = 1024
const X = 120
const M = 109
const L = 108

export function captureFields(bytes: Buffer, head: Head, known: FieldKinds): CapturedFields {
  if ((head.present & known.capturedKinds) === 0) return NO_CAPTURED_FIELDS
  let captured: string[] | null = null
  for (let field = 0; field < head.count; field++) {
    const kind = head.kinds[field]!
    if ((known.capturedKinds & (1 << kind)) === 0) continue
    const isNegotiated = kind === KIND.NEGOTIATED
    const name = isNegotiated ? xmlName(bytes, head, field) : nameAmong(bytes, head, field, known.capturedNames)
    if (name === '') continue
    captured ??= []
    const value = head.value(bytes, field)
    captured.push(name, isNegotiated ? value.slice(0, NEGOTIATED_CHARS_MAX) : value)
  }
  return captured ?? NO_CAPTURED_FIELDS
}

/** The name of a field whose value mentions XML, else ''. */
function xmlName(bytes: Buffer, head: Head, field: number): string {
  const at = head.valueAt(field)
  const end = at + head.valueLength(field)
  // Every third byte suffices: "xml" always covers one of them.
  for (let i = at + 2; i < end; i += 3) {
    const letter = bytes[i]! | 32
    if (letter !== X && letter !== M && letter !== L) continue
    const from = letter === L ? i - 2 : letter === M ? i - 1 : i
    if (from + 3 <= end && isName(bytes, from, 3, 'xml')) {
      return head.nameLength(field) === 'accept'.length ? 'accept' : 'content-type'
    }
  }
  return ''
}

/** The name of a field that a sequence reads, else ''. */
function nameAmong(bytes: Buffer, head: Head, field: number, names: readonly string[]): string {
  const at = head.nameAt(field)
  const length = head.nameLength(field)
  for (const name of names) if (isName(bytes, at, length, name)) return name
  return ''
}

/** All values of a name as a list (RFC 9110 5.3); undefined when the request has no such field. */
export function capturedValue(captured: CapturedFields, name: string): string | undefined {
  let value: string | undefined
  for (let i = 0; i < captured.length; i += 2) {
    if (captured[i] === name) value = value === undefined ? captured[i + 1] : `${value}, ${captured[i + 1]}`
  }
  return value
}
