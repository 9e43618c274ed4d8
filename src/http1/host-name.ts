/** Host names: the canonical form, by which requests find APIs, and the names that always mean this machine. */

const ZERO = 0x30
const NINE = 0x39

/**
 * Host name of an authority, in lower case, without its port and without the dot at its end (RFC 3986 3.2.2). Text
 * behind a colon that is no port stays, so that the validation of names can refuse it.
 */
export function hostName(authority: string): string {
  let end = authority.length
  while (end > 0 && isDigit(authority.charCodeAt(end - 1))) end--
  // An IPv6 address in brackets never ends in a digit.
  end = authority[end - 1] === ':' ? end - 1 : authority.length
  if (end > 1 && authority[end - 1] === '.') end--
  return authority.slice(0, end).toLowerCase()
}

/** True if a host is always this machine (RFC 6761 6.3). IPv6 with brackets or without. */
export function isLoopbackHost(host: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|::1|\[::1\])$/i.test(host)
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE
}
