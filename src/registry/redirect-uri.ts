/** Where a client may have codes sent: asked before it is kept, and again before one is sent. */

/** RFC 8252 7.3, 8.3; no other name or address of this machine. */
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
