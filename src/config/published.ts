/** What pages, schema and `explain` say of a key in the same words. */
import type { Key } from './key.ts'

/** A default as it may be read: 'none' for what is empty, and never that of a secret. */
export function defaultOf({ fallback, secret, required, ceiling, follows }: Key<unknown>): string {
  if (required) return 'none: it must be set'
  if (follows !== '') return `same as ${follows.startsWith('.') ? follows.slice(1) : follows}`
  if (secret || fallback === '' || (Array.isArray(fallback) && fallback.length === 0)) return 'none'
  const written = JSON.stringify(fallback)
  return ceiling === '' ? written : `${written}, or ${ceiling} where that is less`
}

/** Why a key is not acted on, as a sentence without its full stop; '' for one that is. */
export function inertNote({ inertReason }: Key<unknown>): string {
  if (inertReason === '') return ''
  return inertReason.startsWith(NOT_YET) ? `N${inertReason.slice(1)}` : `Not acted on: ${inertReason}`
}

const NOT_YET = 'not built yet'
