/**
 * Forwards heads: copies runs of passing fields byte for byte and leaves out the fields that end at this hop (RFC 9110
 * 7.6.1). Nothing is re-encoded, joined or reordered. Callers append the gateway's own fields.
 */
import { isName, KIND } from './field-kinds.ts'
import type { Head } from './head.ts'
import { putBytes } from './arena-copy.ts'
import { putLineEnd, putText } from './writer.ts'

const CR = 13
const SPACE = 32
/** Length of "HTTP/1.1 200". */
const STATUS_END = 12

/** Kinds of fields that are left out: 1 at the index of such a KIND. */
export type StrippedKinds = Uint8Array

/** Kinds that are never forwarded, whatever the configuration says. */
const ALWAYS = [
  KIND.CONNECTION,
  KIND.KEEP_ALIVE,
  KIND.HOP_BY_HOP,
  KIND.NOMINATED,
  KIND.TRANSFER_ENCODING,
  KIND.TE,
  KIND.UPGRADE,
]

export function strippedKinds(...kinds: readonly number[]): StrippedKinds {
  const table = new Uint8Array(32)
  for (const kind of [...ALWAYS, ...kinds]) table[kind] = 1
  return table
}

/** Writes the fields that pass, in order and unchanged; returns the position behind them. */
export function putFields(bytes: Buffer, at: number, head: Head, stripped: StrippedKinds): number {
  const { kinds, count } = head
  let run = head.fieldsAt
  let position = at
  for (let field = 0; field < count; field++) {
    if (stripped[kinds[field]!] === 0) continue
    position = putBytes(bytes, position, run, head.nameAt(field))
    run = head.lineEnd(field)
  }
  return putBytes(bytes, position, run, head.end - 2)
}

/** Names of fields, to be found in heads: nearly every other name differs from all of them in its length. */
export class FieldNames {
  /** In lower case. */
  readonly names: readonly string[]
  /** Bit per length, modulo 32. */
  readonly #lengths: number

  constructor(names: readonly string[]) {
    this.names = names
    this.#lengths = names.reduce((bits, { length }) => bits | (1 << length), 0)
  }

  /** True if the bytes at `at` are one of the names, in any case. */
  include(bytes: Uint8Array, at: number, length: number): boolean {
    if ((this.#lengths & (1 << length)) === 0) return false
    for (const name of this.names) if (isName(bytes, at, length, name)) return true
    return false
  }
}

/** Like `putFields`, and leaves out the fields of some names. The kinds of the head stay: other messages share them. */
export function putFieldsExcept(
  bytes: Buffer,
  at: number,
  head: Head,
  stripped: StrippedKinds,
  removed: FieldNames,
): number {
  const { kinds, count } = head
  let run = head.fieldsAt
  let position = at
  for (let field = 0; field < count; field++) {
    const nameAt = head.nameAt(field)
    if (stripped[kinds[field]!] === 0 && !removed.include(bytes, nameAt, head.nameLength(field))) continue
    position = putBytes(bytes, position, run, nameAt)
    run = head.lineEnd(field)
  }
  return putBytes(bytes, position, run, head.end - 2)
}

/**
 * Writes status line and passing fields of a response that begins at `from`. Status and reason are kept, the version is
 * the gateway's (RFC 9110 2.5). Callers add further lines and the empty one.
 */
export function putResponseStart(bytes: Buffer, at: number, from: number, head: Head, stripped: StrippedKinds): number {
  return putFields(bytes, putStatusLine(bytes, at, from, head), head, stripped)
}

/** Writes the status line of a response that begins at `from`, as `putResponseStart` does. */
export function putStatusLine(bytes: Buffer, at: number, from: number, head: Head): number {
  const position = putBytes(bytes, putText(bytes, at, 'HTTP/1.1'), from + 8, head.fieldsAt)
  // RFC 9112 4: the space behind the status is required even without a reason.
  if (bytes[from + STATUS_END] !== CR) return position
  bytes[position - 2] = SPACE
  return putLineEnd(bytes, position - 1)
}
