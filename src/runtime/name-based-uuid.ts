/** Makes UUIDs from names, for objects without a stored id: equal on every node and after every restart. */
import { createHash } from 'node:crypto'

/** Returns the UUID of the names, version 8 (RFC 9562 5.8). */
export function nameBasedUuid(...names: readonly string[]): string {
  const bytes = createHash('sha256').update(names.join('\n')).digest().subarray(0, 16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x80
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
