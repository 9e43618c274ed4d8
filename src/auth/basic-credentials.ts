/** Credentials of the scheme Basic (RFC 7617 2): a name and a password. */

/** Value of Authorization, in UTF-8 (RFC 7617 2.1). `name` has no colon. */
export function basicAuthorization(name: string, password: string): string {
  return `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`
}

/** Undefined without a name or a colon, and for base64 that is not canonical: credentials have one spelling. */
export function parseBasicCredentials(encoded: string): readonly [name: string, password: string] | undefined {
  const bytes = Buffer.from(encoded, 'base64')
  if (bytes.toString('base64') !== encoded) return undefined
  const text = bytes.toString('utf8')
  const colon = text.indexOf(':')
  return colon < 1 ? undefined : [text.slice(0, colon), text.slice(colon + 1)]
}
