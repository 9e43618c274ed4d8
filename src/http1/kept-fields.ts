/**
 * What of a request's fields a fault may be worded after. It is taken when the head is there, because a backend fails
 * when the head is gone. For nearly every request no string is made: it has no such field, or one that accepts
 * anything.
 */
import { type FieldKinds, isName, KIND } from './field-kinds.ts'
import type { Head } from './head.ts'

/** Names in lower case and values, in turn, as they came. */
export type KeptFields = readonly string[]

export const NOTHING_KEPT: KeptFields = []

/** A longer Accept is cut: what stands beyond does not decide. */
const NEGOTIATED_CHARS_MAX = 1024
const X = 120
const M = 109
const L = 108

export function keptFields(bytes: Buffer, head: Head, known: FieldKinds): KeptFields {
  if ((head.present & known.keptKinds) === 0) return NOTHING_KEPT
  let kept: string[] | null = null
  for (let field = 0; field < head.count; field++) {
    const kind = head.kinds[field]!
    if ((known.keptKinds & (1 << kind)) === 0) continue
    const name = kind === KIND.NEGOTIATED ? negotiated(bytes, head, field) : wanted(bytes, head, field, known.keptNames)
    if (name === '') continue
    kept ??= []
    const value = head.value(bytes, field)
    kept.push(name, kind === KIND.NEGOTIATED ? value.slice(0, NEGOTIATED_CHARS_MAX) : value)
  }
  return kept ?? NOTHING_KEPT
}

/** The name where the value speaks of XML, else ''. */
function negotiated(bytes: Buffer, head: Head, field: number): string {
  const at = head.valueAt(field)
  const end = at + head.valueLength(field)
  // Every third byte: one of the three letters stands there, wherever they stand.
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

/** The name where a sequence reads it, else ''. */
function wanted(bytes: Buffer, head: Head, field: number, names: readonly string[]): string {
  const at = head.nameAt(field)
  const length = head.nameLength(field)
  for (const name of names) if (isName(bytes, at, length, name)) return name
  return ''
}

/** All values of a name as a list (RFC 9110 5.3); undefined where there is none. */
export function keptValue(kept: KeptFields, name: string): string | undefined {
  let value: string | undefined
  for (let i = 0; i < kept.length; i += 2) {
    if (kept[i] === name) value = value === undefined ? kept[i + 1] : `${value}, ${kept[i + 1]}`
  }
  return value
}
