/** A backend over HTTP/1.1: composes the request, picks a connection, hands over. */
import type { Exchange } from '../exchange/exchange.ts'
import type { Surroundings } from '../exchange/surroundings.ts'
import { CHUNKED } from '../http1/framing.ts'
import { putFields } from '../http1/rewrite.ts'
import { askingFor } from '../http1/upgrade.ts'
import { putBytes, putLineEnd, putText } from '../http1/writer.ts'
import type { HostPool } from './host-pool.ts'
import type { RequestDrops } from './request-drops.ts'
import { isForwarded } from './route.ts'
import { SavedRequest } from './saved-request.ts'
import type { Sender } from './sender.ts'

const SLASH = 47
const NO_MEMORY = { base: 101504, state: 0, cause: 'no memory for a request', status: 503 }

export class HttpUpstream {
  /** Bytes of the head composed last that belong to this endpoint: start line, Host, Proxy-Authorization. */
  #prefix = 0
  readonly #around: Surroundings
  readonly #pool: HostPool
  readonly #drops: RequestDrops
  /** Path of the endpoint without a slash at its end. */
  readonly #basePath: string
  readonly #starts = new Map<string, string>()
  readonly #hostLine: string
  /** What a proxy needs that reads each request (RFC 9112 3.2.2): in front of the path, and a line; '' without one. */
  readonly #origin: string
  readonly #proxyLine: string

  constructor(pool: HostPool, basePath: string, drops: RequestDrops, around: Surroundings) {
    this.#pool = pool
    this.#basePath = basePath
    this.#around = around
    this.#drops = drops
    this.#hostLine = `Host: ${pool.authority}\r\n`
    this.#origin = isForwarded(pool.route) ? `${pool.scheme}://${pool.authority}` : ''
    const credentials = isForwarded(pool.route) ? pool.route.proxy!.authorization : ''
    this.#proxyLine = credentials === '' ? '' : `Proxy-Authorization: ${credentials}\r\n`
  }

  /** `sender` hears what becomes of it. */
  send(exchange: Exchange, sender: Sender): void {
    exchange.backend = this.#pool.authority
    const length = this.#compose(exchange)
    const idle = this.#pool.takeIdle()
    if (idle !== undefined) {
      exchange.reusesConnection = true
      idle.serve(exchange, length, this.#prefix, sender)
      return
    }
    const saved = SavedRequest.of(this.#around.composer, length, this.#prefix)
    if (saved !== null) this.#pool.connect(exchange, saved, sender)
    else this.#pool.refuse(exchange, NO_MEMORY)
  }

  /** Sends a request that was saved for another endpoint; `saved` is this one's from now on. */
  resend(exchange: Exchange, saved: SavedRequest, sender: Sender): void {
    exchange.backend = this.#pool.authority
    const { composer } = this.#around
    const rest = exchange.target.slice(exchange.restAt)
    const end = this.#putStart(exchange, composer.chunk.offset, rest === '' || rest[0] !== '/')
    const { bytes } = this.#around.arena
    this.#putPrefixEnd(exchange, putText(bytes, end, rest))
    if (saved.address(composer, this.#prefix)) this.#pool.connect(exchange, saved, sender)
    else {
      saved.release()
      this.#pool.refuse(exchange, NO_MEMORY)
    }
  }

  /** Puts the head of the request into the composer; answers its length. */
  #compose(exchange: Exchange): number {
    const { arena, composer, settings } = this.#around
    const { bytes } = arena
    const head = exchange.head!
    const chunked = exchange.requestFraming === CHUNKED
    const start = composer.chunk.offset
    const { target, restAt } = exchange
    let at = this.#putStart(exchange, start, restAt === target.length || target.charCodeAt(restAt) !== SLASH)
    if (target !== exchange.requestTarget) at = putText(bytes, at, target.slice(restAt))
    else at = putBytes(bytes, at, head.targetAt + restAt, head.targetAt + head.targetLength)
    at = this.#putPrefixEnd(exchange, at)
    const expects = exchange.minorVersion === 1
    at = putFields(bytes, at, head, this.#drops.table(chunked, exchange.isTrusted, expects))
    at = putText(bytes, at, exchange.forwardedLines)
    if (exchange.callerLines !== '') at = putText(bytes, at, exchange.callerLines)
    at = putText(bytes, at, settings.correlationStart)
    at = putLineEnd(bytes, exchange.correlation.put(bytes, at))
    if (chunked) at = putText(bytes, at, 'Transfer-Encoding: chunked\r\n')
    if (!settings.preservesUserAgent) at = putText(bytes, at, 'User-Agent: Sluice\r\n')
    if (exchange.upgrade !== '') at = putText(bytes, at, askingFor(exchange.upgrade))
    else if (settings.closesTargets) at = putText(bytes, at, 'Connection: close\r\n')
    else if (exchange.acceptsTrailers) at = putText(bytes, at, 'TE: trailers\r\nConnection: TE\r\n')
    return putLineEnd(bytes, at) - start
  }

  /** A target must not become empty: what is left of it may begin with its query, or with nothing. */
  #putStart(exchange: Exchange, start: number, lacksSlash: boolean): number {
    const { bytes } = this.#around.arena
    const at = putText(bytes, start, this.#start(exchange.method))
    return this.#basePath === '' && lacksSlash ? putText(bytes, at, '/') : at
  }

  /**
   * Rest of the start line, Host, and what a proxy needs. A preserved Host may be missing in a 1.0 request; one is due
   * all the same (RFC 9112 3.2).
   */
  #putPrefixEnd(exchange: Exchange, position: number): number {
    const { arena, composer, settings } = this.#around
    const { bytes } = arena
    let at = putText(bytes, position, ' HTTP/1.1\r\n')
    if (settings.preservesHost && exchange.host !== '') {
      at = putLineEnd(bytes, putText(bytes, putText(bytes, at, 'Host: '), exchange.host))
    } else at = putText(bytes, at, this.#hostLine)
    if (this.#proxyLine !== '') at = putText(bytes, at, this.#proxyLine)
    this.#prefix = at - composer.chunk.offset
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
