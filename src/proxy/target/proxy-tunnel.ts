/**
 * A tunnel through a forward proxy: sends CONNECT and reads the proxy's response (RFC 9110 9.3.6). Owns the socket from
 * its connection to the proxy until the tunnel is open or refused; the connector owns the deadline.
 */
import { checkStatusLine } from '../../http1/head-rules.ts'
import { arena, Parser } from '../../http1/llhttp.ts'
import { MessageReader } from '../../http1/message-reader.ts'
import { type ByteSocket, type SocketOwner, type TlsFailure, WRITE } from '../../socket/byte-socket.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'
import { ReadBuffer } from '../exchange/read-buffer.ts'
import type { Connector } from './connector.ts'
import { type FailureCause, type ForwardProxy, outOfMemory, proxyName, proxyRefusal, type Route } from './route.ts'

/** Most interim responses to one CONNECT. */
const INTERIMS_MAX = 16

export class ProxyTunnel implements SocketOwner {
  readonly #proxy: ForwardProxy
  readonly #connector: Connector
  readonly #reader: MessageReader
  readonly #readBuffer: ReadBuffer
  /** Stays unchanged until it is written. */
  readonly #request: Uint8Array
  #interims = 0

  /** Null without memory for a parser. */
  static make(route: Route, proxy: ForwardProxy, context: ConnectionContext, connector: Connector): ProxyTunnel | null {
    const parser = Parser.forResponses(context.part.spans)
    return parser === undefined ? null : new ProxyTunnel(route, proxy, parser, context, connector)
  }

  private constructor(
    route: Route,
    proxy: ForwardProxy,
    parser: Parser,
    context: ConnectionContext,
    connector: Connector,
  ) {
    const { settings, responseKinds, responseHeads, trailerHeads } = context
    this.#proxy = proxy
    this.#connector = connector
    this.#reader = new MessageReader(parser, responseKinds, responseHeads, trailerHeads, {
      headBytesMax: settings.responseHeaderBytesMax,
      targetBytesMax: 0,
      extensionBytesMax: 0,
      trailerBytesMax: 0,
    })
    this.#readBuffer = new ReadBuffer(context.memory)
    this.#request = connectRequest(route, proxy)
  }

  /** Sends CONNECT. The connector hears `tunnelOpened` or `tunnelFailed`, and disposes of the tunnel then. */
  open(socket: ByteSocket): void {
    this.#reader.begin(this.#readBuffer.from)
    socket.attach(this, this.#readBuffer.firstView)
    if (socket.write(this.#request) === WRITE.FAILED) this.#fail('EPIPE')
  }

  dispose(): void {
    this.#readBuffer.dispose()
    this.#reader.dispose()
  }

  onBytes(length: number): Uint8Array | undefined {
    this.#readBuffer.begin(length)
    const result = this.#read()
    if (result === 'open') {
      this.#connector.tunnelOpened()
      return undefined
    }
    if (result !== null) {
      this.#connector.tunnelFailed(result)
      return undefined
    }
    const view = this.#readBuffer.settle(false)
    if (view === null)
      this.#connector.tunnelFailed(outOfMemory(`no memory for the answer of ${proxyName(this.#proxy)}`))
    else this.#reader.moveBy(this.#readBuffer.moved)
    return view ?? undefined
  }

  /** Null while the response is incomplete. */
  #read(): 'open' | FailureCause | null {
    const buffer = this.#readBuffer
    const reader = this.#reader
    while (buffer.length > 0) {
      const at = buffer.from
      // A 2xx to CONNECT has no body, whatever its fields announce; the body of another response is not needed.
      if (!reader.readHead(at, buffer.to, true)) return reader.error === null ? null : this.#broken(reader.error.rule)
      const { head } = reader
      const violation = checkStatusLine(arena.bytes, head, at)
      if (violation !== undefined) return this.#broken(violation.rule)
      if (head.status >= 200 || head.status === 101) return this.#result(head.status, buffer.to > head.end)
      if (++this.#interims > INTERIMS_MAX) return this.#broken(`more than ${INTERIMS_MAX} interim responses`)
      buffer.from = head.end
      reader.finish()
      reader.begin(buffer.from)
    }
    return null
  }

  #result(status: number, hasMore: boolean): 'open' | FailureCause {
    if (status < 200 || status > 299) return proxyRefusal(this.#proxy, status)
    // The backend has not got a byte yet, so these bytes respond to nothing.
    return hasMore ? this.#broken('bytes behind its answer to CONNECT') : 'open'
  }

  #broken(what: string): FailureCause {
    return { kind: 'transport', code: '', cause: `${proxyName(this.#proxy)}: ${what}` }
  }

  #fail(what: string): void {
    this.#connector.tunnelFailed(this.#broken(what))
  }

  onEnd(): void {
    const cause = `${proxyName(this.#proxy)} closed the connection instead of opening a tunnel`
    this.#connector.tunnelFailed({ kind: 'transport', code: '', cause })
  }

  onLost(code: string): void {
    this.#fail(code)
  }

  /** Never called: TLS starts when the tunnel is open. */
  onTlsFailed({ cause }: TlsFailure): void {
    this.#fail(cause)
  }

  onWriteFailed(code: string): void {
    this.#fail(code)
  }

  onBlocked(): void {}

  onDrained(): void {}

  onError(error: unknown): void {
    this.#connector.onError(error)
  }
}

/** RFC 9112 3.2.3: the port is always present. */
function connectRequest({ host, port }: Route, { authorization }: ForwardProxy): Uint8Array {
  const authority = `${host}:${port}`
  const credentials = authorization === '' ? '' : `Proxy-Authorization: ${authorization}\r\n`
  return Buffer.from(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${credentials}\r\n`, 'latin1')
}
