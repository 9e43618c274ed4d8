/**
 * Body length of a message by the eight rules of RFC 9112 6.3. Takes only heads that passed `head-rules.ts`: then
 * Content-Length is a number, a transfer coding is chunked, and a head has at most one of them.
 */
import type { Head } from './head.ts'
import { decimal, trimmedEnd } from './head-rules.ts'

/** Body lengths are bytes from 0 up, or one of these when the length is not known in advance. */
export const CHUNKED = -1
export const UNTIL_CLOSE = -2

/** Value of Content-Length, or -1 without one. */
function declaredLength(bytes: Uint8Array, head: Head): number {
  const field = head.contentLength
  return field < 0 ? -1 : decimal(bytes, head.valueAt(field), trimmedEnd(bytes, head, field))
}

/** Body length of a request: rules 4, 6 and 7. */
export function requestBodyLength(bytes: Uint8Array, head: Head): number {
  if (head.transferEncoding >= 0) return CHUNKED
  return Math.max(declaredLength(bytes, head), 0)
}

/** Body length of a response: rules 1, 4, 6 and 8. `toHead`: the request was HEAD. CONNECT is never sent. */
export function responseBodyLength(bytes: Uint8Array, head: Head, toHead: boolean): number {
  if (toHead || isBodiless(head.status)) return 0
  if (head.transferEncoding >= 0) return CHUNKED
  const length = declaredLength(bytes, head)
  return length < 0 ? UNTIL_CLOSE : length
}

/** True if the fields announce a body, sent or not. */
export function announcesBody(bytes: Uint8Array, head: Head): boolean {
  return head.transferEncoding >= 0 || declaredLength(bytes, head) > 0
}

/** Has content of the length 0 (RFC 9110 15.3.6). */
export const RESET_CONTENT = 205

/** Responses that never have a body, whatever their fields say (RFC 9110 6.4.1). */
export function isBodiless(status: number): boolean {
  return status < 200 || status === 204 || status === 304
}
