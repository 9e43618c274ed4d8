/** Media types (RFC 9110 8.3.1). */

/** Media type without its parameters, in lower case, because case does not count. */
export function mediaTypeOf(text: string): string {
  const end = text.indexOf(';')
  return (end < 0 ? text : text.slice(0, end)).trim().toLowerCase()
}
