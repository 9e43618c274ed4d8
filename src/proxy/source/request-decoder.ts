/**
 * Decodes a complete request head into an exchange: checks that need no API, and the few strings that decisions need.
 * One per listener and client address, shared by its connections: it keeps no state of a request.
 */
import { TokenMemo } from '../exchange/caller.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'
import { type BadMessage, bad } from '../../http1/bad-message.ts'
import { isName, KIND } from '../../http1/field-kinds.ts'
import { callChainOf } from '../../http1/call-chain.ts'
import { ForwardedLines, viaEntriesOf } from '../../http1/forwarded.ts'
import { requestBodyLength } from '../../http1/framing.ts'
import type { Head } from '../../http1/head.ts'
import { type CapturedFields, captureFields } from '../../http1/captured-fields.ts'
import { arena, methodName } from '../../http1/llhttp.ts'
import { readConnection } from '../../http1/persistence.ts'
import { absoluteFormPath, checkRequestFields, checkRequestStart, trimmedEnd } from '../../http1/head-rules.ts'
import { requestedProtocols, requireWebSocket } from '../../http1/upgrade.ts'
import { isFieldText } from '../../http1/writer.ts'
import type { Client } from './connection-callbacks.ts'

/** RFC 9110 15.5.6: a 405 lists the methods that are offered. */
const ALLOW = 'Allow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS\r\n'

/** Largest number of times that a request comes back to the gateway: APIs may call other APIs of the same node. */
const HOPS_MAX = 10

const BAD = {
  targetLength: bad(414, 'request target is longer than target.max_bytes (RFC 9110 15.5.15)'),
  loop: bad(508, `the request has come back to the gateway more than ${HOPS_MAX} times (RFC 9110 7.6.3)`),
  method: bad(405, 'CONNECT and TRACE are not offered (RFC 9110 9.3.6, 9.3.8)', ALLOW),
}
const CORRELATION_MAX = 128
const SLASH = 47

/** Facts that the fields of a request decide alone. */
export interface DecodedFields {
  readonly captured: CapturedFields
  readonly origin: string
  readonly persists: boolean
  readonly acceptsTrailers: boolean
  readonly userAgent: string
  readonly referer: string
  readonly tokenMemo: TokenMemo
}

/** Fields of these kinds are decoded each time: they frame a body, are for this hop, or are new in each request. */
const UNREPEATABLE =
  (1 << KIND.CONTENT_LENGTH) |
  (1 << KIND.TRANSFER_ENCODING) |
  (1 << KIND.EXPECT) |
  (1 << KIND.UPGRADE) |
  (1 << KIND.CORRELATION) |
  (1 << KIND.TRACE_PARENT) |
  (1 << KIND.TRACE_STATE)

/** Returns the parts of a valid request without body that may repeat; null: they are decoded each time. */
export function repeatableFields(exchange: Exchange, head: Head): DecodedFields | null {
  if (head.minorVersion !== 1 || (head.present & UNREPEATABLE) !== 0 || exchange.calls !== null) return null
  const { captured, origin, persists, acceptsTrailers, userAgent, referer } = exchange
  return { captured, origin, persists, acceptsTrailers, userAgent, referer, tokenMemo: new TokenMemo() }
}

/** Numbers the requests of a thread. */
export class RequestCounter {
  #last = 0

  next(): number {
    return ++this.#last
  }
}

export class RequestDecoder {
  readonly #context: ConnectionContext
  readonly #counter: RequestCounter
  readonly #address: string
  readonly #scheme: 'http' | 'https'
  readonly #logsAgents: boolean
  #isTrusted: boolean
  #forwarded: ForwardedLines

  /** `isTrusted`: the client is a trusted proxy. `logsAgents`: the access log needs User-Agent and Referer. */
  constructor(
    context: ConnectionContext,
    counter: RequestCounter,
    client: Pick<Client, 'address' | 'scheme'>,
    isTrusted: boolean,
    logsAgents: boolean,
  ) {
    this.#context = context
    this.#counter = counter
    this.#address = client.address
    this.#scheme = client.scheme
    this.#isTrusted = isTrusted
    this.#forwarded = this.#newLines()
    this.#logsAgents = logsAgents
  }

  /** Updates trust and forwarding lines for the next requests. */
  update(isTrusted: boolean): void {
    this.#isTrusted = isTrusted
    this.#forwarded = this.#newLines()
  }

  #newLines(): ForwardedLines {
    const { settings, pseudonym } = this.#context
    return new ForwardedLines(settings.forwardedFields, this.#address, this.#scheme, this.#isTrusted, pseudonym)
  }

  /** Generates an id for an exchange without a readable head, for its response and its log lines. */
  ensureCorrelationId(exchange: Exchange): void {
    if (!exchange.correlation.isSet) exchange.correlation.generate(this.#counter.next())
  }

  /**
   * Fills the exchange from a head whose first byte is at `at`; returns the rule that it breaks. `repeated`: the fields
   * have passed all checks before, in an earlier request of the connection or its client.
   */
  decode(
    exchange: Exchange,
    head: Head,
    at: number,
    method: number,
    { scheme, kind }: Client,
    repeated: DecodedFields | null,
  ): BadMessage | undefined {
    const { bytes } = arena
    exchange.method = methodName(method)
    exchange.requestTarget = bytes.latin1Slice(head.targetAt, head.targetAt + head.targetLength)
    // Set before any refusal, whose sequence reads captured fields and whose response needs CORS fields for the origin.
    if (repeated === null) {
      exchange.captured = captureFields(bytes, head, this.#context.requestKinds)
      if (head.has(KIND.ORIGIN)) exchange.origin = head.list(bytes, KIND.ORIGIN)
      this.#correlate(exchange, head)
    } else {
      exchange.captured = repeated.captured
      exchange.origin = repeated.origin
      exchange.correlation.generate(this.#counter.next())
    }
    if (exchange.trace !== null) exchange.trace.start(bytes, head)
    const broken = this.#checkStart(exchange, head, at, scheme)
    if (broken !== undefined) return broken
    if (repeated === null) {
      const refused = this.#decodeFields(exchange, head, kind)
      if (refused !== undefined) return refused
    } else {
      exchange.tokenMemo = repeated.tokenMemo
      exchange.acceptsTrailers = repeated.acceptsTrailers
      exchange.persists = repeated.persists
      exchange.userAgent = repeated.userAgent
      exchange.referer = repeated.referer
    }
    this.#locate(exchange, head, scheme)
    return undefined
  }

  /** Checks all that does not depend on the fields; every request passes here, also one with repeated fields. */
  #checkStart(exchange: Exchange, head: Head, at: number, scheme: string): BadMessage | undefined {
    if (head.targetLength > this.#context.settings.targetBytesMax) return BAD.targetLength
    if (exchange.method === 'CONNECT' || exchange.method === 'TRACE') return BAD.method
    const broken = checkRequestStart(arena.bytes, head, at, scheme)
    exchange.minorVersion = Math.min(head.minorVersion, 1)
    return broken
  }

  /** Checks and decodes the fields. What it sets, `repeatableFields` keeps or refuses to keep. */
  #decodeFields(exchange: Exchange, head: Head, kind: Client['kind']): BadMessage | undefined {
    const { bytes } = arena
    const broken = checkRequestFields(bytes, head)
    if (broken !== undefined) return broken
    if (head.has(KIND.VIA)) {
      const list = head.list(bytes, KIND.VIA)
      const { pseudonym, callToken } = this.#context
      exchange.calls = callChainOf(list, pseudonym, callToken)
      if (viaEntriesOf(list, pseudonym) > HOPS_MAX || (exchange.calls?.depth ?? 0) > HOPS_MAX) return BAD.loop
    }
    exchange.requestFraming = requestBodyLength(bytes, head)
    exchange.acceptsTrailers = acceptsTrailers(bytes, head)
    const persists = readConnection(bytes, head)
    const isWebSocketOnly = kind === 'ws' || kind === 'wss'
    if (head.has(KIND.UPGRADE) || isWebSocketOnly) {
      const refused = this.#decodeUpgrade(exchange, head, isWebSocketOnly)
      if (refused !== undefined) return refused
    }
    exchange.persists = persists
    if (this.#logsAgents) {
      exchange.userAgent = firstValue(bytes, head, KIND.USER_AGENT)
      exchange.referer = firstValue(bytes, head, KIND.REFERER)
    }
    return undefined
  }

  #decodeUpgrade(exchange: Exchange, head: Head, isWebSocketOnly: boolean): BadMessage | undefined {
    const requested = requestedProtocols(arena.bytes, head, exchange.requestFraming)
    const isNarrowed = isWebSocketOnly && typeof requested === 'string'
    const protocols = isNarrowed ? requireWebSocket(exchange.method, requested) : requested
    if (typeof protocols !== 'string') return protocols
    exchange.upgrade = protocols
    return undefined
  }

  /** Sets path and host: an absolute-form target wins over Host and never selects a backend (RFC 9112 3.2.2, D7). */
  #locate(exchange: Exchange, head: Head, scheme: string): void {
    const { bytes } = arena
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

  /** Sets the client's own correlation id if it is valid field text; else generates one (D8). */
  #correlate(exchange: Exchange, head: Head): void {
    const { bytes } = arena
    const field = head.find(KIND.CORRELATION)
    if (field >= 0) {
      const given = head.value(bytes, field)
      if (given.length > 0 && given.length <= CORRELATION_MAX && isFieldText(given)) {
        exchange.correlation.take(given)
        return
      }
    }
    exchange.correlation.generate(this.#counter.next())
  }
}

function firstValue(bytes: Buffer, head: Head, kind: number): string {
  const field = head.find(kind as 0)
  return field < 0 ? '' : head.value(bytes, field)
}

/** True if TE lists `trailers` (RFC 9110 10.1.4). */
function acceptsTrailers(bytes: Buffer, head: Head): boolean {
  const field = head.find(KIND.TE)
  if (field < 0) return false
  const at = head.valueAt(field)
  if (isName(bytes, at, trimmedEnd(bytes, head, field) - at, 'trailers')) return true
  return /(?:^|,)\s*trailers\s*(?:;|,|$)/i.test(head.list(bytes, KIND.TE))
}
