/** Names of hosts in the one form in which those of requests are compared with those of APIs. */

const ZERO = 0x30
const NINE = 0x39

/**
 * The name in an authority: in lower case, without its port and without the dot at its end (RFC 3986 3.2.2). What
 * stands behind a colon and is no port stays, for whoever judges names.
 */
export function hostName(authority: string): string {
  let end = authority.length
  while (end > 0 && isDigit(authority.charCodeAt(end - 1))) end--
  // Within the brackets of an IPv6 address no digit is the last.
  end = authority[end - 1] === ':' ? end - 1 : authority.length
  if (end > 1 && authority[end - 1] === '.') end--
  return authority.slice(0, end).toLowerCase()
}

/** RFC 6761 6.3: it leads to this machine and nowhere else. IPv6 with brackets or without. */
export function isLoopbackHost(host: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|::1|\[::1\])$/i.test(host)
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE
}
