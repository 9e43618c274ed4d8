/** Ids in the form that clients of the reference platform expect, for what is known here by other names. */
import { createHash } from 'node:crypto'
import type { Page } from '../registry/registry.ts'

/** A UUID of version 8 (RFC 9562 5.8): the same for the same words, on every node. */
export function uuidOf(...words: readonly string[]): string {
  const bytes = createHash('sha256').update(words.join('\n')).digest().subarray(0, 16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x80
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

export function apiIdOf({ name, version }: { readonly name: string; readonly version: string }): string {
  return uuidOf('api', name, version)
}

export function keyMappingIdOf(consumerKey: string): string {
  return uuidOf('key', consumerKey)
}

/** The form of every list: how many stand in it, and where the others are. */
export function paged<T>(path: string, rows: readonly T[], { offset, limit }: Page, total: number) {
  const at = (from: number): string => `${path}${path.includes('?') ? '&' : '?'}limit=${limit}&offset=${from}`
  const next = offset + limit < total ? at(offset + limit) : ''
  const previous = offset > 0 ? at(Math.max(0, offset - limit)) : ''
  return { count: rows.length, list: rows, pagination: { offset, limit, total, next, previous } }
}
