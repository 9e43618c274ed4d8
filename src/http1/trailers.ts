/**
 * Trailer fields, forwarded as trailers and never as headers. Fields that a recipient could mistake for part of the
 * head are left out: framing, routing, authentication, content, and the gateway's own (RFC 9110 6.5.1, D20). Every
 * field with a KIND of its own is one of them, credentials included.
 */
import { isName, KIND } from './field-kinds.ts'
import type { Head } from './head.ts'
import { putBytes } from './arena-copy.ts'
import { putText } from './writer.ts'

const FORBIDDEN = [
  'cookie',
  'set-cookie',
  'content-type',
  'content-encoding',
  'content-range',
  'cache-control',
  'max-forwards',
  'expires',
  'location',
  'vary',
  'via',
  'age',
  'pragma',
  'range',
  'retry-after',
  'www-authenticate',
  'content-disposition',
  'if-match',
  'if-none-match',
  'if-modified-since',
  'if-unmodified-since',
  'if-range',
]

function mayPass(bytes: Buffer, trailers: Head, field: number): boolean {
  const kind = trailers.kinds[field]!
  if (kind !== KIND.OTHER && kind !== KIND.NEGOTIATED && kind !== KIND.CAPTURED) return false
  const at = trailers.nameAt(field)
  const length = trailers.nameLength(field)
  for (const name of FORBIDDEN) if (isName(bytes, at, length, name)) return false
  return true
}

/** Writes the last chunk, the trailer fields that may pass, and the empty line; returns the position behind them. */
export function putTrailers(bytes: Buffer, at: number, trailers: Head): number {
  let position = putText(bytes, at, '0\r\n')
  for (let field = 0; field < trailers.count; field++) {
    if (!mayPass(bytes, trailers, field)) continue
    const valueAt = trailers.valueAt(field)
    position = putBytes(bytes, position, trailers.nameAt(field), trailers.nameAt(field) + trailers.nameLength(field))
    position = putText(bytes, position, ': ')
    position = putBytes(bytes, position, valueAt, valueAt + trailers.valueLength(field))
    position = putText(bytes, position, '\r\n')
  }
  return putText(bytes, position, '\r\n')
}
