/** Tokens (RFC 9110 5.6.2): names of fields, methods and protocols. */

/** Source of a regular expression for one token. */
export const TOKEN = "[\\w!#$%&'*+.^`|~-]+"
const WHOLE = new RegExp(`^${TOKEN}$`)

export function isToken(text: string): boolean {
  return WHOLE.test(text)
}
