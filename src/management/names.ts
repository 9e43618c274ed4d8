/** Ids in the form that clients of the reference platform expect, for what is known here by other names. */
import { namedUuid } from '../structure/named-uuid.ts'
import type { Page } from '../registry/registry.ts'

export function apiIdOf({ name, version }: { readonly name: string; readonly version: string }): string {
  return namedUuid('api', name, version)
}

export function keyMappingIdOf(consumerKey: string): string {
  return namedUuid('key', consumerKey)
}

export function keyManagerIdOf(issuer: string): string {
  return namedUuid('key manager', issuer)
}

/** The form of every list: how many stand in it, and where the others are. */
export function paged<T>(path: string, rows: readonly T[], { offset, limit }: Page, total: number) {
  const at = (from: number): string => `${path}${path.includes('?') ? '&' : '?'}limit=${limit}&offset=${from}`
  const next = offset + limit < total ? at(offset + limit) : ''
  const previous = offset > 0 ? at(Math.max(0, offset - limit)) : ''
  return { count: rows.length, list: rows, pagination: { offset, limit, total, next, previous } }
}
