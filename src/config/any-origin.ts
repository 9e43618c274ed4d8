/**
 * Origins that are everybody's, however they are written: a star, a pattern whose host is one (`https://*`), `null`,
 * which any page can become in a frame that hides where it comes from. None of them is given credentials: with those,
 * any page could act for its visitor.
 */
const EVERY_HOST = /^[^:]*:\/\/[*.]*\*[*.]*(?::.*)?$/

/** A star, or several. */
export function isAnyOrigin(origin: string): boolean {
  return /^\*+$/.test(origin)
}

export function isEverybodys(origin: string): boolean {
  return origin.toLowerCase() === 'null' || isAnyOrigin(origin) || EVERY_HOST.test(origin)
}
