/** What stands behind `Basic` (RFC 7617 2): a name and a password. */

/** Undefined where there is no name, no colon, or base64 in another than its one form: a second spelling of a first. */
export function readBasic(encoded: string): readonly [name: string, password: string] | undefined {
  const bytes = Buffer.from(encoded, 'base64')
  if (bytes.toString('base64') !== encoded) return undefined
  const text = bytes.toString('utf8')
  const colon = text.indexOf(':')
  return colon < 1 ? undefined : [text.slice(0, colon), text.slice(colon + 1)]
}
