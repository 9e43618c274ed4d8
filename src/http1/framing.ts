/**
 * How long is the body of a message: RFC 9112 6.3, its eight rules in order. Asks only heads that passed `strictness`,
 * so Content-Length is a number and a transfer coding is chunked, never both.
 */
import type { Head } from './head.ts'
import { decimal, trimmedEnd } from './strictness.ts'

/** Lengths in bytes from 0 up; two that are not known in advance. */
export const CHUNKED = -1
export const UNTIL_CLOSE = -2

/** The number in Content-Length, or -1 when there is none. */
function declaredLength(bytes: Uint8Array, head: Head): number {
  const field = head.contentLength
  return field < 0 ? -1 : decimal(bytes, head.valueAt(field), trimmedEnd(bytes, head, field))
}

/** Body length of a request: rules 4, 6 and 7. */
export function requestBody(bytes: Uint8Array, head: Head): number {
  if (head.transferEncoding >= 0) return CHUNKED
  return Math.max(declaredLength(bytes, head), 0)
}

/** Body length of a response to a request that was HEAD or not: rules 1, 4, 6 and 8. CONNECT is never sent. */
export function responseBody(bytes: Uint8Array, head: Head, toHead: boolean): number {
  if (toHead || bodiless(head.status)) return 0
  if (head.transferEncoding >= 0) return CHUNKED
  const length = declaredLength(bytes, head)
  return length < 0 ? UNTIL_CLOSE : length
}

/** Whether the fields speak of a body, sent or not. */
export function announcesBody(bytes: Uint8Array, head: Head): boolean {
  return head.transferEncoding >= 0 || declaredLength(bytes, head) > 0
}

/** Responses that never have a body, whatever their fields say (RFC 9110 6.4.1). */
export function bodiless(status: number): boolean {
  return status < 200 || status === 204 || status === 304
}
