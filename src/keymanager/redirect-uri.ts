/** Addresses that codes are sent to. */

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]']
/** RFC 8252 7.1: a private scheme is a domain name turned around, so it has a dot; no scheme that does things has. */
const PRIVATE_SCHEME = /^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:$/
/** What more a parser takes (such as `;`) could say something in a policy of content. */
const HOST = /^([a-z0-9.-]+|\[[0-9a-f:.]+\])$/
const CHARS_MAX = 2048

/** HTTPS, HTTP to this machine, or the private scheme of an application; without a fragment (RFC 6749 3.1.2). */
export function mayReceiveCodes(uri: string): boolean {
  const parsed = uri.length > CHARS_MAX || !/^[\x21-\x7e]+$/.test(uri) || /[\\#*]/.test(uri) ? null : URL.parse(uri)
  if (parsed === null || parsed.username !== '' || parsed.password !== '') return false
  const { protocol, hostname } = parsed
  if (PRIVATE_SCHEME.test(protocol)) return hostname === '' || HOST.test(hostname)
  return HOST.test(hostname) && (protocol === 'https:' || (protocol === 'http:' && LOOPBACK.includes(hostname)))
}

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
