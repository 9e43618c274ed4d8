/** Addresses that codes are sent to, as answers have them. */

/** With parameters added to what it has. */
export function withParameters(uri: string, parameters: Readonly<Record<string, string>>): string {
  const added = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== ''))
  return `${uri}${uri.includes('?') ? '&' : '?'}${added}`
}

/** As a policy of content names it: where a form may lead. */
export function sourceOf(uri: string): string {
  const { origin, protocol } = new URL(uri)
  return origin === 'null' ? protocol : origin
}
