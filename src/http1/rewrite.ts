/**
 * A head on its way through: runs of fields that pass are copied byte for byte, fields that end at this hop are left
 * out (RFC 9110 7.6.1), ours are appended. Nothing is re-encoded, joined or reordered.
 */
import { KIND } from './field-kinds.ts'
import type { Head } from './head.ts'
import { putBytes, putLineEnd, putText } from './writer.ts'

const CR = 13
const SPACE = 32
/** Bytes of "HTTP/1.1 200". */
const STATUS_END = 12

/** Which kinds are left out; indexed by KIND. */
export type Drops = Uint8Array

/** Kinds that no message carries further, whatever the configuration says. */
const ALWAYS = [
  KIND.CONNECTION,
  KIND.KEEP_ALIVE,
  KIND.HOP_BY_HOP,
  KIND.NOMINATED,
  KIND.TRANSFER_ENCODING,
  KIND.TE,
  KIND.UPGRADE,
]

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

/**
 * Status line and passing fields of a response whose first byte stands at `from`. Its status and reason are kept, the
 * version is ours (RFC 9110 2.5). Further lines and the empty one follow.
 */
export function putResponseStart(bytes: Buffer, at: number, from: number, head: Head, left: Drops): number {
  let position = putBytes(bytes, putText(bytes, at, 'HTTP/1.1'), from + 8, head.fieldsAt)
  // RFC 9112 4: the space behind the status stands there even if no reason follows.
  if (bytes[from + STATUS_END] === CR) {
    bytes[position - 2] = SPACE
    position = putLineEnd(bytes, position - 1)
  }
  return putFields(bytes, position, head, left)
}
