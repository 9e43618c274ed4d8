/** Rules for CORS settings, shared by `[apim.cors]`, API projects and the CORS policy of a reactor. */

/** A pattern whose host matches every host: `https://*`, `*://*:*`. */
const EVERY_HOST = /^[^:]*:\/\/[*.]*\*[*.]*(?::.*)?$/

/** One star, or several. */
export function isAnyOrigin(origin: string): boolean {
  return /^\*+$/.test(origin)
}

/**
 * Origins that any site can match: `*`, a pattern of every host, and `null`, which every sandboxed frame sends. The
 * gateway grants them no credentials, because any page could then act for its visitor.
 */
export function isWildcardOrigin(origin: string): boolean {
  return origin.toLowerCase() === 'null' || isAnyOrigin(origin) || EVERY_HOST.test(origin)
}

/** Longest list of names, in characters: a response carries it in one header line. */
const LINE_CHARS_MAX = 2000

export const CORS_LINE_LIMIT = `at most ${LINE_CHARS_MAX} characters long, because it is one header line`

export function fitsCorsLine(names: readonly string[]): boolean {
  return names.reduce((chars, name) => chars + name.length + 2, 0) <= LINE_CHARS_MAX + 2
}
