/** Ids for what is known by names: the same after a restart, and on every node. */
import { createHash } from 'node:crypto'

/** A UUID of version 8 (RFC 9562 5.8): the same for the same words. */
export function namedUuid(...words: readonly string[]): string {
  const bytes = createHash('sha256').update(words.join('\n')).digest().subarray(0, 16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x80
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
