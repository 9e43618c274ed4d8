/** Tokens: names of fields, methods, protocols (RFC 9110 5.6.2). */

/** Source of an expression. */
export const TOKEN = "[\\w!#$%&'*+.^`|~-]+"
const WHOLE = new RegExp(`^${TOKEN}$`)

export function isToken(text: string): boolean {
  return WHOLE.test(text)
}
