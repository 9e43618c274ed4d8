/** Validates redirect URIs: before the registry stores one, and before a code is sent to it. */

/** Loopback hosts (RFC 8252 7.3, 8.3). */
const LOOPBACK = ['localhost', '127.0.0.1', '[::1]']
/** RFC 8252 7.1: a private-use scheme is a reversed domain name. The dot excludes schemes such as javascript. */
const PRIVATE_SCHEME = /^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:$/
/** Stricter than URL parsers: a `;` in a host could inject a Content-Security-Policy directive. */
const HOST = /^([a-z0-9.-]+|\[[0-9a-f:.]+\])$/
const CHARS_MAX = 2048

/** HTTPS, HTTP to a loopback host, or a private-use scheme; without a fragment (RFC 6749 3.1.2). */
export function isAllowedRedirectUri(uri: string): boolean {
  const parsed = uri.length > CHARS_MAX || !/^[\x21-\x7e]+$/.test(uri) || /[\\#*]/.test(uri) ? null : URL.parse(uri)
  if (parsed === null || parsed.username !== '' || parsed.password !== '') return false
  const { protocol, hostname } = parsed
  if (PRIVATE_SCHEME.test(protocol)) return hostname === '' || HOST.test(hostname)
  return HOST.test(hostname) && (protocol === 'https:' || (protocol === 'http:' && LOOPBACK.includes(hostname)))
}
