/**
 * A tunnel through a forward proxy: CONNECT, and what the proxy says to it (RFC 9110 9.3.6). Owns the socket from the
 * moment that it is connected to the proxy until the tunnel is open or refused; the time it may take is its taker's.
 */
import type { Surroundings } from '../exchange/surroundings.ts'
import { arena, Parser } from '../http1/llhttp.ts'
import { MessageReader } from '../http1/message-reader.ts'
import { checkStatusLine } from '../http1/strictness.ts'
import { Inbox } from '../exchange/inbox.ts'
import { type ByteSocket, type SocketOwner, WRITE } from '../socket/byte-socket.ts'
import { type ForwardProxy, nameOfProxy, type Route, withoutCredentials } from './route.ts'

/** Interim responses to one CONNECT. */
const INTERIMS_MAX = 16

/** Whoever wants the tunnel. The socket is to be attached to somebody else, or destroyed, before these return. */
interface TunnelTaker {
  /** What is written to the socket from now on reaches the backend. */
  opened(): void
  refused(cause: string): void
  onBug(error: unknown): void
}

export class ProxyTunnel implements SocketOwner {
  readonly #proxy: ForwardProxy
  readonly #taker: TunnelTaker
  readonly #reader: MessageReader
  readonly #inbox: Inbox
  /** Stays as it is until it is written. */
  readonly #request: Uint8Array
  #interims = 0
  #isOver = false

  /** Null when there is no memory for it. */
  static make(route: Route, proxy: ForwardProxy, around: Surroundings, taker: TunnelTaker): ProxyTunnel | null {
    const parser = Parser.forResponses()
    return parser === undefined ? null : new ProxyTunnel(route, proxy, parser, around, taker)
  }

  private constructor(route: Route, proxy: ForwardProxy, parser: Parser, around: Surroundings, taker: TunnelTaker) {
    const { settings, kinds, responseHeads, trailerHeads } = around
    this.#proxy = proxy
    this.#taker = taker
    this.#reader = new MessageReader(parser, arena, kinds, responseHeads, trailerHeads, {
      headBytesMax: settings.responseHeaderBytesMax,
      targetBytesMax: 0,
      extensionBytesMax: 0,
      trailerBytesMax: 0,
    })
    this.#inbox = new Inbox(around.memory)
    this.#request = connectRequest(route, proxy)
  }

  /** Asks for the tunnel. */
  open(socket: ByteSocket): void {
    this.#reader.begin(this.#inbox.from)
    socket.attach(this, this.#inbox.firstView)
    if (socket.write(this.#request) === WRITE.FAILED) this.#refuse(this.#wrong('EPIPE'))
  }

  /** Nobody wants it any more. */
  dispose(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#inbox.dispose()
    this.#reader.dispose()
  }

  onBytes(length: number): Uint8Array | undefined {
    this.#inbox.begin(length)
    const objection = this.#read()
    if (objection === '') {
      this.dispose()
      this.#taker.opened()
      return undefined
    }
    const view = objection === null ? this.#inbox.settle(false) : undefined
    if (objection !== null) this.#refuse(objection)
    else if (view === null) this.#refuse(this.#wrong('no memory for its answer'))
    else this.#reader.moveBy(this.#inbox.moved)
    return view ?? undefined
  }

  /** '' when the tunnel is open, why it is not, or null while the answer is not complete. */
  #read(): string | null {
    const inbox = this.#inbox
    const reader = this.#reader
    while (inbox.length > 0) {
      const at = inbox.from
      // Whatever it announces, no body follows an answer that opens a tunnel, and that of another one is of no use.
      if (!reader.readHead(at, inbox.to, true)) return reader.broken === null ? null : this.#wrong(reader.broken.rule)
      const { head } = reader
      const broken = checkStatusLine(arena.bytes, head, at)
      if (broken !== undefined) return this.#wrong(broken.rule)
      if (head.status >= 200 || head.status === 101) return this.#verdict(head.status, inbox.to > head.end)
      if (++this.#interims > INTERIMS_MAX) return this.#wrong(`more than ${INTERIMS_MAX} interim responses`)
      inbox.from = head.end
      reader.finish()
      reader.begin(inbox.from)
    }
    return null
  }

  #verdict(status: number, hasMore: boolean): string {
    if (status === 407) return withoutCredentials(this.#proxy)
    if (status < 200 || status > 299) return `${nameOfProxy(this.#proxy)} answered ${status} to CONNECT`
    // The backend has not been spoken to: whoever says this, it is no answer to anything of ours.
    return hasMore ? this.#wrong('bytes behind its answer to CONNECT') : ''
  }

  #wrong(what: string): string {
    return `${nameOfProxy(this.#proxy)}: ${what}`
  }

  #refuse(cause: string): void {
    if (this.#isOver) return
    this.dispose()
    this.#taker.refused(cause)
  }

  onEnd(): void {
    this.#refuse(`${nameOfProxy(this.#proxy)} closed the connection instead of opening a tunnel`)
  }

  onLost(code: string): void {
    this.#refuse(this.#wrong(code))
  }

  /** Never called: TLS begins behind the tunnel. */
  onHandshakeFailed(cause: string): void {
    this.#refuse(this.#wrong(cause))
  }

  onWriteFailed(code: string): void {
    this.#refuse(this.#wrong(code))
  }

  onDrained(): void {}

  onBug(error: unknown): void {
    this.dispose()
    this.#taker.onBug(error)
  }
}

/** RFC 9112 3.2.3: the port is always there. */
function connectRequest({ host, port }: Route, { authorization }: ForwardProxy): Uint8Array {
  const authority = `${host}:${port}`
  const credentials = authorization === '' ? '' : `Proxy-Authorization: ${authorization}\r\n`
  return Buffer.from(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${credentials}\r\n`, 'latin1')
}
