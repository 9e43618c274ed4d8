/**
 * Upgrade (RFC 9110 7.8): the protocols that a client may ask a backend to switch to, and the check of a 101 against
 * them. Runs once per upgrade, so strings are made.
 */
import { type BadMessage, bad } from './bad-message.ts'
import { KIND } from './field-kinds.ts'
import type { Head } from './head.ts'
import { CONNECTION_OPTION } from './persistence.ts'
import { TOKEN } from './token.ts'

const WEBSOCKET = 'websocket'

const BAD = {
  syntax: bad(400, 'Upgrade is not a list of protocols (RFC 9110 7.8)'),
  length: bad(400, 'Upgrade is longer than the limit (RFC 9110 7.8)'),
  required: bad(
    426,
    'this port takes WebSocket only (RFC 9110 15.5.22, RFC 6455 4.1)',
    'Upgrade: websocket\r\nConnection: Upgrade\r\n',
  ),
}
const VIOLATION = {
  unasked: '101 without a request to switch protocols (RFC 9110 15.2.2)',
  version: '101 in an HTTP/1.0 response (RFC 9110 7.8)',
  connection: '101 whose Connection does not name Upgrade (RFC 9110 7.8)',
  protocol: '101 to a protocol that was not asked for (RFC 9110 7.8)',
} as const

/** Most bytes of a list of protocols: the list is written behind the head for the backend. */
const LIST_BYTES_MAX = 256
const PROTOCOL = new RegExp(`^${TOKEN}(?:/${TOKEN})?$`)
/** Protocols that would carry further requests past the gateway: other versions of HTTP, and TLS (RFC 2817). */
const BYPASSING = /^(?:h2|h2c|h2c-\d+|h3|https?|tls)(?:\/|$)/i

/**
 * The protocols that a request may ask its backend for, '' for none; or the rule that its Upgrade field breaks. Follows
 * `readConnection`. The field is ignored unless Connection names it, in HTTP/1.0, and in a request with a body: an
 * early response would leave open what the rest of the body is. `framing`: body length of the request.
 */
export function requestedProtocols(bytes: Buffer, head: Head, framing: number): string | BadMessage {
  if (!namesUpgrade(head) || head.minorVersion === 0 || framing !== 0) return ''
  const list = head.list(bytes, KIND.UPGRADE)
  if (list.length > LIST_BYTES_MAX) return BAD.length
  const requested = elements(list)
  return requested.every(protocol => PROTOCOL.test(protocol)) ? withoutBypassing(requested) : BAD.syntax
}

function namesUpgrade(head: Head): boolean {
  return (head.connectionOptions & CONNECTION_OPTION.UPGRADE) !== 0
}

function withoutBypassing(protocols: readonly string[]): string {
  return protocols.filter(protocol => !BYPASSING.test(protocol)).join(', ')
}

/** On a port for WebSocket only: narrows the requested protocols to WebSocket, or returns the reason for a refusal. */
export function requireWebSocket(method: string, protocols: string): string | BadMessage {
  const isRequested = method === 'GET' && elements(protocols.toLowerCase()).includes(WEBSOCKET)
  return isRequested ? WEBSOCKET : BAD.required
}

/** Lines of a response that names protocols: a 101, or a 426 (RFC 9110 15.5.22). */
export function upgradeResponseLines(bytes: Buffer, head: Head): string {
  const protocols = withoutBypassing(elements(head.list(bytes, KIND.UPGRADE)))
  return protocols === '' ? '' : upgradeRequestLines(protocols)
}

/** Lines of a request that asks for these protocols. */
export function upgradeRequestLines(protocols: string): string {
  return `Upgrade: ${protocols}\r\nConnection: Upgrade\r\n`
}

/**
 * The rule that a 101 breaks, '' when it switches to one of the requested `protocols`. Follows `readConnection` of its
 * head.
 */
export function switchViolation(bytes: Buffer, head: Head, protocols: string): string {
  if (protocols === '') return VIOLATION.unasked
  if (head.minorVersion === 0) return VIOLATION.version
  if (!namesUpgrade(head)) return VIOLATION.connection
  const list = head.list(bytes, KIND.UPGRADE)
  const asked = elements(protocols.toLowerCase())
  const given = elements(list.toLowerCase())
  const isAsked = given.length > 0 && list.length <= LIST_BYTES_MAX && given.every(protocol => asked.includes(protocol))
  return isAsked ? '' : VIOLATION.protocol
}

/** Elements of a list (RFC 9110 5.6.1) without the empty ones. */
function elements(list: string): readonly string[] {
  return list
    .split(',')
    .map(element => element.trim())
    .filter(element => element !== '')
}
