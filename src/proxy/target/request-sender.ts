/** Composes the requests of one endpoint in HTTP/1.1 and sends each over a connection of the endpoint's pool. */
import { CHUNKED } from '../../http1/framing.ts'
import { arena } from '../../http1/llhttp.ts'
import { putFields, putFieldsExcept } from '../../http1/rewrite.ts'
import { upgradeRequestLines } from '../../http1/upgrade.ts'
import { putBytes } from '../../http1/arena-copy.ts'
import { encoded, putBlock, putLineEnd, putText } from '../../http1/writer.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { type HeadEdit, putLinesExcept } from '../exchange/head-edit.ts'
import { type ConnectionPool, OUT_OF_MEMORY } from './connection-pool.ts'
import type { Endpoint } from './endpoint.ts'
import { RetryBuffer } from './retry-buffer.ts'
import { isForwarded } from './route.ts'
import type { StrippedRequestFields } from './stripped-request-fields.ts'

const SLASH = 47
export class RequestSender {
  /** Leading bytes of the last composed head that depend on the endpoint: start line, Host, Proxy-Authorization. */
  #prefixLength = 0
  readonly #context: ConnectionContext
  readonly #pool: ConnectionPool
  readonly #stripped: StrippedRequestFields
  /** Path of the endpoint without a trailing slash. */
  readonly #basePath: string
  /** Address of the endpoint, for traces. */
  readonly #url: string
  /** Start of the request line by method. */
  readonly #starts = new Map<string, string>()
  /** End of the start line, Host, and the line for a proxy. */
  readonly #prefixEnd: Uint8Array
  /**
   * For a proxy that reads each request (RFC 9112 3.2.2): scheme and authority, and a line; '' without such a proxy.
   */
  readonly #origin: string
  readonly #proxyLine: string

  constructor(pool: ConnectionPool, basePath: string, stripped: StrippedRequestFields, context: ConnectionContext) {
    this.#pool = pool
    this.#basePath = basePath
    this.#url = `${pool.scheme}://${pool.authority}${basePath}`
    this.#context = context
    this.#stripped = stripped
    this.#origin = isForwarded(pool.route) ? `${pool.scheme}://${pool.authority}` : ''
    const credentials = isForwarded(pool.route) ? pool.route.proxy!.authorization : ''
    this.#proxyLine = credentials === '' ? '' : `Proxy-Authorization: ${credentials}\r\n`
    this.#prefixEnd = encoded(` HTTP/1.1\r\nHost: ${pool.authority}\r\n${this.#proxyLine}`)
  }

  /** Sends a request whose head is valid. `endpoint` gets the result. */
  send(exchange: Exchange, endpoint: Endpoint): void {
    exchange.backend = this.#pool.authority
    const length = this.#compose(exchange)
    const idle = this.#pool.takeIdle()
    if (idle !== undefined) {
      exchange.reusesConnection = true
      idle.serve(exchange, length, this.#prefixLength, endpoint)
      return
    }
    const buffer = RetryBuffer.ofHead(this.#context.composer, length, this.#prefixLength, false)
    if (buffer !== null) this.#pool.connect(exchange, buffer, endpoint)
    else this.#pool.refuse(exchange, OUT_OF_MEMORY)
  }

  /** Sends a request that was buffered for another endpoint. Takes over the buffer. */
  sendBuffered(exchange: Exchange, buffer: RetryBuffer, endpoint: Endpoint): void {
    exchange.backend = this.#pool.authority
    if (exchange.trace !== null) exchange.trace.sent(this.#url)
    const { composer } = this.#context
    const path = exchange.requestEdit?.target ?? exchange.canonicalTarget.slice(exchange.backendPathAt)
    const end = this.#putStart(exchange, composer.chunk.offset, path[0] !== '/')
    this.#putPrefixEnd(exchange, putText(arena.bytes, end, path))
    if (buffer.replacePrefix(composer, this.#prefixLength)) this.#pool.connect(exchange, buffer, endpoint)
    else {
      buffer.release()
      this.#pool.refuse(exchange, OUT_OF_MEMORY)
    }
  }

  /** Writes the head of the request into the composer; returns its length. */
  #compose(exchange: Exchange): number {
    const { composer, settings } = this.#context
    const { bytes } = arena
    const head = exchange.head!
    const chunked = exchange.requestFraming === CHUNKED
    const { handlers, trace } = exchange
    if (trace !== null) trace.sent(this.#url)
    const edit = handlers === null ? exchange.requestEdit : handlers.requestEdit(exchange.requestEdit)
    const start = composer.chunk.offset
    let at = edit === null || edit.target === null ? this.#putTarget(exchange, start) : this.#putEdited(exchange, edit)
    at = this.#putPrefixEnd(exchange, at)
    const expects = exchange.minorVersion === 1
    const stripped = this.#stripped.table(chunked, exchange.isTrusted, expects, trace !== null)
    if (edit === null) {
      at = putFields(bytes, at, head, stripped)
      at = putBlock(bytes, at, exchange.forwardedLines)
    } else {
      at = putFieldsExcept(bytes, at, head, stripped, edit.removed)
      at = edit.editsForwarding
        ? putLinesExcept(bytes, at, exchange.forwardedLines, edit)
        : putBlock(bytes, at, exchange.forwardedLines)
      at = putBlock(bytes, at, exchange.ownCredential === null ? edit.lines : edit.linesBesideOwn)
    }
    if (exchange.callerLines !== '') at = putText(bytes, at, exchange.callerLines)
    at = putBlock(bytes, at, settings.correlationStart)
    at = putLineEnd(bytes, exchange.correlation.put(bytes, at))
    if (trace !== null) at = trace.put(bytes, at, edit)
    if (chunked) at = putText(bytes, at, 'Transfer-Encoding: chunked\r\n')
    if (!settings.preservesUserAgent && edit?.editsUserAgent !== true) at = putText(bytes, at, 'User-Agent: Sluice\r\n')
    if (exchange.upgrade !== '') at = putText(bytes, at, upgradeRequestLines(exchange.upgrade))
    else if (settings.closesTargets || this.#pool.route.sendsProxyHeader === true)
      at = putText(bytes, at, 'Connection: close\r\n')
    else if (exchange.acceptsTrailers) at = putText(bytes, at, 'TE: trailers\r\nConnection: TE\r\n')
    return putLineEnd(bytes, at) - start
  }

  /** Writes the request line up to its end as the client has sent it, behind the base path. */
  #putTarget(exchange: Exchange, start: number): number {
    const { bytes } = arena
    const head = exchange.head!
    const { canonicalTarget, backendPathAt } = exchange
    const lacksSlash = backendPathAt === canonicalTarget.length || canonicalTarget.charCodeAt(backendPathAt) !== SLASH
    const at = this.#putStart(exchange, start, lacksSlash)
    if (canonicalTarget !== exchange.requestTarget) return putText(bytes, at, canonicalTarget.slice(backendPathAt))
    return putBytes(bytes, at, head.targetAt + backendPathAt, head.targetAt + head.targetLength)
  }

  #putEdited(exchange: Exchange, { target }: HeadEdit): number {
    const start = this.#context.composer.chunk.offset
    return putText(arena.bytes, this.#putStart(exchange, start, target![0] !== '/'), target!)
  }

  /** Writes method and base path. `lacksSlash`: the rest of the target is empty or begins with its query. */
  #putStart(exchange: Exchange, start: number, lacksSlash: boolean): number {
    const { bytes } = arena
    const at = putText(bytes, start, this.#start(exchange.sentMethod))
    return this.#basePath === '' && lacksSlash ? putText(bytes, at, '/') : at
  }

  /**
   * Writes the rest of the start line, Host, and the line for a proxy. Host of a 1.0 request may be missing although it
   * is preserved; HTTP/1.1 requires one all the same (RFC 9112 3.2).
   */
  #putPrefixEnd(exchange: Exchange, position: number): number {
    const { composer, settings } = this.#context
    const { bytes } = arena
    let at = position
    const edited = exchange.requestEdit === null ? '' : exchange.requestEdit.host
    const host = edited === '' && settings.preservesHost ? exchange.host : edited
    if (host !== '') {
      at = putText(bytes, putText(bytes, at, ' HTTP/1.1\r\nHost: '), host)
      at = putText(bytes, putLineEnd(bytes, at), this.#proxyLine)
    } else at = putBlock(bytes, at, this.#prefixEnd)
    this.#prefixLength = at - composer.chunk.offset
    return at
  }

  #start(method: string): string {
    let start = this.#starts.get(method)
    if (start === undefined) {
      start = `${method} ${this.#origin}${this.#basePath}`
      this.#starts.set(method, start)
    }
    return start
  }
}
