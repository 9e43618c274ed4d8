/**
 * Upgrade (RFC 9110 7.8): which protocols a client may ask a backend to switch to, and whether a 101 switches to one of
 * them. Runs once per upgrade, so strings are made.
 */
import { type BadMessage, bad } from './bad-message.ts'
import { KIND } from './field-kinds.ts'
import type { Head } from './head.ts'
import { connection } from './persistence.ts'
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
const BROKEN = {
  unasked: '101 without a request to switch protocols (RFC 9110 15.2.2)',
  version: '101 in an HTTP/1.0 response (RFC 9110 7.8)',
  connection: '101 whose Connection does not name Upgrade (RFC 9110 7.8)',
  protocol: '101 to a protocol that was not asked for (RFC 9110 7.8)',
} as const

/** Bytes of a list of protocols: what the backend gets of it has to fit behind the head. */
const LIST_BYTES_MAX = 256
const PROTOCOL = new RegExp(`^${TOKEN}(?:/${TOKEN})?$`)
/**
 * Protocols that would carry further requests past the gateway: HTTP in the clear under another version, and TLS, which
 * hides what is asked in it (RFC 2817).
 */
const PAST_THE_GATEWAY = /^(?:h2|h2c|h2c-\d+|h3|https?|tls)(?:\/|$)/i

/** What is asked for by the request read last; filled by `readUpgrade`. */
export const upgrade = {
  /** List of protocols for the backend; '' for none. */
  protocols: '',
}

/**
 * Reads the Upgrade fields of a request, and answers the rule that they break. Connection was read just before: a field
 * that it does not name is ignored, as is that of HTTP/1.0, and that of a request with a body (`framing`), because an
 * early response would leave open what the rest of it is.
 */
export function readUpgrade(bytes: Buffer, head: Head, framing: number): BadMessage | undefined {
  upgrade.protocols = ''
  if (!connection.upgrade || head.minorVersion === 0 || framing !== 0) return undefined
  const list = head.list(bytes, KIND.UPGRADE)
  if (list.length > LIST_BYTES_MAX) return BAD.length
  const asked = elements(list)
  if (!asked.every(protocol => PROTOCOL.test(protocol))) return BAD.syntax
  upgrade.protocols = allowed(asked)
  return undefined
}

function allowed(protocols: readonly string[]): string {
  return protocols.filter(protocol => !PAST_THE_GATEWAY.test(protocol)).join(', ')
}

/** On a port that takes WebSocket only: narrows what is asked for to that, or answers why it is refused. */
export function requireWebSocket(method: string): BadMessage | undefined {
  const isAsked = method === 'GET' && elements(upgrade.protocols.toLowerCase()).includes(WEBSOCKET)
  upgrade.protocols = isAsked ? WEBSOCKET : ''
  return isAsked ? undefined : BAD.required
}

/** The lines of a response that names protocols: that of a 101, and what a 426 demands (RFC 9110 15.5.22). */
export function upgradeLines(bytes: Buffer, head: Head): string {
  const protocols = allowed(elements(head.list(bytes, KIND.UPGRADE)))
  return protocols === '' ? '' : askingFor(protocols)
}

/** The lines of a request that asks for these protocols. */
export function askingFor(protocols: string): string {
  return `Upgrade: ${protocols}\r\nConnection: Upgrade\r\n`
}

/**
 * What is wrong with a 101 to a request that asked for `protocols`, or '' when it switches to one of them. Its
 * Connection was read just before.
 */
export function brokenSwitch(bytes: Buffer, head: Head, protocols: string): string {
  if (protocols === '') return BROKEN.unasked
  if (head.minorVersion === 0) return BROKEN.version
  if (!connection.upgrade) return BROKEN.connection
  const list = head.list(bytes, KIND.UPGRADE)
  const asked = elements(protocols.toLowerCase())
  const given = elements(list.toLowerCase())
  const isAsked = given.length > 0 && list.length <= LIST_BYTES_MAX && given.every(protocol => asked.includes(protocol))
  return isAsked ? '' : BROKEN.protocol
}

/** Of a list (RFC 9110 5.6.1): empty elements do not count. */
function elements(list: string): readonly string[] {
  return list
    .split(',')
    .map(element => element.trim())
    .filter(element => element !== '')
}
