/** Rules of RFC 9111 for responses that are kept for others: Cache-Control, Expires, Age and Vary. */
import { textOf, type Value } from '../value.ts'

export type FieldLines = readonly (readonly [name: string, value: Value])[]

/** Directives by name in lower case; '' for those without a value. */
type Directives = ReadonlyMap<string, string>

/** A directive of RFC 9111 5.2, with its value as a quoted text or a token. */
const DIRECTIVE = /([!#$%&'*+.^`|~\w-]+)(?:[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*)))?/g

/** The first one of a name counts (RFC 9111 4.2.1). */
function directivesOf(fields: FieldLines): Directives {
  const directives = new Map<string, string>()
  for (const [, name = '', quoted, token = ''] of lineOf(fields, 'cache-control').matchAll(DIRECTIVE)) {
    const lower = name.toLowerCase()
    if (!directives.has(lower)) directives.set(lower, quoted ?? token)
  }
  return directives
}

/** The values of a field in one line; '' for none. */
export function lineOf(fields: FieldLines, name: string): string {
  return fields.flatMap(([each, value]) => (each.toLowerCase() === name ? [textOf(value)] : [])).join(', ')
}

/** The wishes of a request for the cache (RFC 9111 5.2.1). */
interface RequestControl {
  /** Its response is not kept. */
  readonly isStored: boolean
  /** Oldest response that it takes, in seconds; -1: none that is kept. */
  readonly ageMaxS: number
}

export function requestControl(fields: FieldLines): RequestControl {
  const directives = directivesOf(fields)
  const isRenewed =
    directives.has('no-cache') || (directives.size === 0 && /\bno-cache\b/i.test(lineOf(fields, 'pragma')))
  const age = directives.get('max-age')
  const ageMaxS = isRenewed ? -1 : age === undefined ? Number.MAX_SAFE_INTEGER : secondsOf(age) - 1
  return { isStored: !directives.has('no-store'), ageMaxS }
}

/**
 * How long a response may be kept, at most `mostMs`; 0 for not at all. `isOfCaller`: its request had an Authorization
 * that tells no responses apart (RFC 9111 3.5).
 */
export function lifetimeOf(fields: FieldLines, mostMs: number, isOfCaller: boolean): number {
  const directives = directivesOf(fields)
  if (['no-store', 'no-cache', 'private'].some(name => directives.has(name))) return 0
  if (isOfCaller && !['public', 's-maxage', 'must-revalidate'].some(name => directives.has(name))) return 0
  if (variedNames(fields).includes('*')) return 0
  const given = directives.get('s-maxage') ?? directives.get('max-age')
  const freshMs = given === undefined ? untilExpires(fields) : secondsOf(given) * 1000
  if (freshMs === null) return mostMs
  return Math.max(0, Math.min(mostMs, freshMs - secondsOf(lineOf(fields, 'age')) * 1000))
}

/** Names of the request fields that a response depends on, in lower case. */
export function variedNames(fields: FieldLines): readonly string[] {
  return lineOf(fields, 'vary')
    .toLowerCase()
    .split(/[\s,]+/)
    .filter(name => name !== '')
}

/** Null without Expires. One that cannot be read is in the past (RFC 9111 5.3). */
function untilExpires(fields: FieldLines): number | null {
  const expires = lineOf(fields, 'expires')
  if (expires === '') return null
  const atMs = dateMs(expires)
  return atMs === null ? 0 : Math.max(0, atMs - (dateMs(lineOf(fields, 'date')) ?? Date.now()))
}

function dateMs(text: string): number | null {
  const ms = / GMT$/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(ms) ? null : ms
}

/** Seconds in a directive or a field; 0 for a text that is no number. */
function secondsOf(text: string): number {
  return /^\d{1,9}$/.test(text) ? Number(text) : 0
}
