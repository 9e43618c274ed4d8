/**
 * A head on its way through: runs of fields that pass are copied byte for byte, fields that end at this hop are left
 * out (RFC 9110 7.6.1), ours are appended. Nothing is re-encoded, joined or reordered.
 */
import { KIND } from './field-kinds.ts'
import type { Head } from './head.ts'
import { putBytes, putText } from './writer.ts'

/** Which kinds are left out; indexed by KIND. */
export type Drops = Uint8Array

/** Kinds that no message carries further, whatever the configuration says. */
const ALWAYS = [KIND.CONNECTION, KIND.KEEP_ALIVE, KIND.HOP_BY_HOP, KIND.NOMINATED, KIND.TRANSFER_ENCODING, KIND.TE]

export function drops(...kinds: readonly number[]): Drops {
  const table = new Uint8Array(32)
  for (const kind of [...ALWAYS, ...kinds]) table[kind] = 1
  return table
}

/** The fields that pass, in order, as they came. */
export function putFields(bytes: Buffer, at: number, head: Head, left: Drops): number {
  const { kinds, count } = head
  let run = head.fieldsAt
  let position = at
  for (let field = 0; field < count; field++) {
    if (left[kinds[field]!] === 0) continue
    position = putBytes(bytes, position, run, head.nameAt(field))
    run = head.lineEnd(field)
  }
  return putBytes(bytes, position, run, head.end - 2)
}

/** What a request to a backend is made of besides the client's own fields; text is latin1. */
export interface RequestEdits {
  /** Method, a space, and the path of the endpoint; the rest of the target follows. */
  readonly start: string
  /** Bytes of the client's target that are kept: from … up to. */
  readonly targetFrom: number
  readonly targetTo: number
  /** Whole lines that follow the request line, with their CRLF: Host. */
  readonly first: string
  /** Whole lines behind the client's fields. */
  readonly last: string
  readonly drops: Drops
}

/** Bytes that `putRequestHead` may write at most besides the head itself and the texts. */
export const REQUEST_SLACK = 64

export function putRequestHead(bytes: Buffer, at: number, head: Head, edits: RequestEdits): number {
  let position = putText(bytes, at, edits.start)
  position = putBytes(bytes, position, edits.targetFrom, edits.targetTo)
  position = putText(bytes, position, ' HTTP/1.1\r\n')
  position = putText(bytes, position, edits.first)
  position = putFields(bytes, position, head, edits.drops)
  position = putText(bytes, position, edits.last)
  bytes[position] = 13
  bytes[position + 1] = 10
  return position + 2
}

/** `at0`: first byte of the response as it came. Its status and reason are kept, the version is ours (RFC 9110 2.5). */
export function putResponseHead(bytes: Buffer, at: number, at0: number, head: Head, left: Drops, last: string): number {
  let position = putText(bytes, at, 'HTTP/1.1')
  position = putBytes(bytes, position, at0 + 8, head.fieldsAt)
  position = putFields(bytes, position, head, left)
  position = putText(bytes, position, last)
  bytes[position] = 13
  bytes[position + 1] = 10
  return position + 2
}
