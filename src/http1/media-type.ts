/** Media types (RFC 9110 8.3.1). */

/** Text within quotes, where a comma separates nothing. */
const QUOTED = /"(?:[^"\\]|\\.)*"/g

/** More than one media type, in several fields or in one: two readers may take a different one. */
export function namesSeveralTypes(text: string): boolean {
  return text.includes(',') && text.replace(QUOTED, '').includes(',')
}

/** Media type without its parameters, in lower case, because case does not count. */
export function mediaTypeOf(text: string): string {
  const end = text.indexOf(';')
  return (end < 0 ? text : text.slice(0, end)).trim().toLowerCase()
}
