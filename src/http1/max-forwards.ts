/** Max-Forwards (RFC 9110 7.6.2): how often a request may still be forwarded. */
import { fieldNamed } from './field-kinds.ts'
import type { Head } from './head.ts'

/** The head has no Max-Forwards. */
const FORWARDS_UNLIMITED = -1
/** Max-Forwards is no number, or there are several. */
export const FORWARDS_INVALID = -2

const DIGITS = /^\d+$/
/** A larger number is brought down to this one: a recipient may have a maximum. */
const FORWARDS_MAX = 255

/** Returns Max-Forwards, and writes one less in its place where it is more than 0. */
export function spendForward(bytes: Buffer, head: Head): number {
  const field = fieldNamed(bytes, head, 'max-forwards')
  if (field < 0) return FORWARDS_UNLIMITED
  const text = head.value(bytes, field)
  if (!DIGITS.test(text) || fieldNamed(bytes, head, 'max-forwards', field + 1) >= 0) return FORWARDS_INVALID
  const left = Math.min(Number(text), FORWARDS_MAX)
  // The spaces in front are white space around the value.
  if (left > 0) bytes.latin1Write(String(left - 1).padStart(head.valueLength(field)), head.valueAt(field))
  return left
}
