/**
 * From a complete request head to an exchange: the checks that need no API, and the few strings that decisions need.
 * One per listener and client address, shared by its connections: what it says of a request is read at once.
 */
import type { Exchange } from '../exchange/exchange.ts'
import type { Surroundings } from '../exchange/surroundings.ts'
import { type BadMessage, bad } from '../http1/bad-message.ts'
import { isName, KIND } from '../http1/field-kinds.ts'
import { ForwardedLines } from '../http1/forwarded.ts'
import { requestBody } from '../http1/framing.ts'
import type { Head } from '../http1/head.ts'
import { keptFields } from '../http1/kept-fields.ts'
import { methodName } from '../http1/llhttp.ts'
import { readConnection } from '../http1/persistence.ts'
import { absoluteFormPath, checkRequest, trimmedEnd } from '../http1/strictness.ts'
import { readUpgrade, requireWebSocket, upgrade } from '../http1/upgrade.ts'
import { isFieldText } from '../http1/writer.ts'
import type { Client } from './hall.ts'

/** RFC 9110 15.5.6: a 405 says what there is. */
const OFFERED = 'Allow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS\r\n'

const BAD = {
  targetLength: bad(414, 'request target is longer than target.max_bytes (RFC 9110 15.5.15)'),
  method: bad(405, 'CONNECT and TRACE are not offered (RFC 9110 9.3.6, 9.3.8)', OFFERED),
}
const CORRELATION_MAX = 128
const SLASH = 47

/** Counts the requests of a thread; each gets a number of its own. */
export class RequestNumbers {
  #last = 0

  next(): number {
    return ++this.#last
  }
}

export class RequestIntake {
  readonly #around: Surroundings
  readonly #numbers: RequestNumbers
  readonly #address: string
  readonly #scheme: 'http' | 'https'
  readonly #logsAgents: boolean
  #isTrusted: boolean
  #forwarded: ForwardedLines
  /** Whether the connection persists after the request taken last. */
  persists = true

  /** `logsAgents`: an access log wants User-Agent and Referer. */
  constructor(
    around: Surroundings,
    numbers: RequestNumbers,
    client: Pick<Client, 'address' | 'scheme'>,
    isTrusted: boolean,
    logsAgents: boolean,
  ) {
    this.#around = around
    this.#numbers = numbers
    this.#address = client.address
    this.#scheme = client.scheme
    this.#isTrusted = isTrusted
    this.#forwarded = this.#newLines()
    this.#logsAgents = logsAgents
  }

  /** Whether the client is a proxy of ours, and what is said of it: of now, for its next requests. */
  renew(isTrusted: boolean): void {
    this.#isTrusted = isTrusted
    this.#forwarded = this.#newLines()
  }

  #newLines(): ForwardedLines {
    return new ForwardedLines(this.#around.settings.forwardedFields, this.#address, this.#scheme, this.#isTrusted)
  }

  /** An exchange that never got a readable head still has an id, for its answer and its log line. */
  identify(exchange: Exchange): void {
    if (!exchange.correlation.isSet) exchange.correlation.generate(this.#numbers.next())
  }

  /** Fills the exchange from a head whose first byte stands at `at`; answers the rule that it broke. */
  take(exchange: Exchange, head: Head, at: number, method: number, { scheme, kind }: Client): BadMessage | undefined {
    const { bytes } = this.#around.arena
    this.persists = false
    exchange.method = methodName(method)
    exchange.requestTarget = bytes.latin1Slice(head.targetAt, head.targetAt + head.targetLength)
    exchange.kept = keptFields(bytes, head, this.#around.requestKinds)
    // Whatever is wrong with the rest: what is answered is for the page that asked.
    if (head.has(KIND.ORIGIN)) exchange.origin = head.list(bytes, KIND.ORIGIN)
    this.#correlate(exchange, head)
    if (head.targetLength > this.#around.settings.targetBytesMax) return BAD.targetLength
    if (exchange.method === 'CONNECT' || exchange.method === 'TRACE') return BAD.method
    const broken = checkRequest(bytes, head, at, scheme)
    exchange.minorVersion = Math.min(head.minorVersion, 1)
    if (broken !== undefined) return broken
    exchange.requestFraming = requestBody(bytes, head)
    exchange.acceptsTrailers = acceptsTrailers(bytes, head)
    this.persists = readConnection(bytes, head)
    const isWebSocketOnly = kind === 'ws' || kind === 'wss'
    if (head.has(KIND.UPGRADE) || isWebSocketOnly) {
      const refused = this.#takeUpgrade(exchange, head, isWebSocketOnly)
      if (refused !== undefined) return refused
    }
    this.#locate(exchange, head, scheme)
    if (this.#logsAgents) {
      exchange.userAgent = firstValue(bytes, head, KIND.USER_AGENT)
      exchange.referer = firstValue(bytes, head, KIND.REFERER)
    }
    return undefined
  }

  #takeUpgrade(exchange: Exchange, head: Head, isWebSocketOnly: boolean): BadMessage | undefined {
    const broken = readUpgrade(this.#around.arena.bytes, head, exchange.requestFraming)
    const refused = broken ?? (isWebSocketOnly ? requireWebSocket(exchange.method) : undefined)
    if (refused === undefined) exchange.upgrade = upgrade.protocols
    return refused
  }

  /** Path and host: an absolute-form target beats Host and never selects a backend (RFC 9112 3.2.2, D7). */
  #locate(exchange: Exchange, head: Head, scheme: string): void {
    const { bytes } = this.#around.arena
    let host = ''
    exchange.pathAt = 0
    if (bytes[head.targetAt] !== SLASH && head.targetLength > 1) {
      const end = head.targetAt + head.targetLength
      const path = absoluteFormPath(bytes, head.targetAt, end, scheme)
      exchange.pathAt = path - head.targetAt
      host = this.#forwarded.host(bytes, head.targetAt + scheme.length + '://'.length, path)
    } else if (head.host >= 0) {
      host = this.#forwarded.host(bytes, head.valueAt(head.host), trimmedEnd(bytes, head, head.host))
    }
    exchange.host = host
    exchange.isSecured = scheme === 'https'
    exchange.isTrusted = this.#isTrusted
    exchange.forwardedLines = this.#forwarded.lines(bytes, head, host)
  }

  /** The client's own id, when it has one that can be logged and returned; else a new one (D8). */
  #correlate(exchange: Exchange, head: Head): void {
    const { bytes } = this.#around.arena
    const field = head.find(KIND.CORRELATION)
    if (field >= 0) {
      const given = head.value(bytes, field)
      if (given.length > 0 && given.length <= CORRELATION_MAX && isFieldText(given)) {
        exchange.correlation.take(given)
        return
      }
    }
    exchange.correlation.generate(this.#numbers.next())
  }
}

function firstValue(bytes: Buffer, head: Head, kind: number): string {
  const field = head.find(kind as 0)
  return field < 0 ? '' : head.value(bytes, field)
}

/** RFC 9110 10.1.4: `TE: trailers`, alone or in a list. */
function acceptsTrailers(bytes: Buffer, head: Head): boolean {
  const field = head.find(KIND.TE)
  if (field < 0) return false
  const at = head.valueAt(field)
  if (isName(bytes, at, trimmedEnd(bytes, head, field) - at, 'trailers')) return true
  return /(?:^|,)\s*trailers\s*(?:;|,|$)/i.test(head.list(bytes, KIND.TE))
}
