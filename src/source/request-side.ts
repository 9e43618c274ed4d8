/**
 * The receiving half of a client connection: which bytes are read, what they are parsed to, and where they go. Owns
 * inbox and reader; the connection owns socket, replies and endings, and is told what must be refused.
 */
import type { Exchange } from '../exchange/exchange.ts'
import { Inbox } from '../exchange/inbox.ts'
import type { Surroundings } from '../exchange/surroundings.ts'
import { type BadMessage, bad } from '../http1/bad-message.ts'
import type { Head } from '../http1/head.ts'
import { bodySpans, found } from '../http1/llhttp.ts'
import type { MessageReader } from '../http1/message-reader.ts'
import { METRIC } from '../observe/metrics.ts'
import type { Machine } from '../protocol/machine.ts'
import { EVENT, STATE } from '../protocol/states.ts'
import type { ByteSocket } from '../socket/byte-socket.ts'
import { MARGIN } from '../structure/arena.ts'
import type { Client } from './hall.ts'

/** What the receiving half needs of its connection. */
export interface RequestOwner {
  /** The client takes no bytes now. */
  readonly isBlocked: boolean
  /** A request begins: whatever was waited for is here. */
  began(): void
  /** The head is still incomplete. */
  awaitHead(): void
  /** The head is known. A promise when it is not yet known where the request goes. */
  walk(): Promise<() => void> | undefined
  /** What the request waited for is here: the client may be read again. */
  resumeRequest(): void
  /** Everything that came in front of the client's FIN was dealt with, as far as that is possible. */
  onEnd(): void
  refuseHead(bad: BadMessage): void
  refuseBody(cause: string): void
  refuseSize(): void
  /** Something threw that no caller would catch. */
  onBug(error: unknown): void
}

/** Each stretch of a request body of this length gets `body.read_timeout` anew (D10). */
const PROGRESS_BYTES = 65_536
const MISDIRECTED = bad(
  421,
  'the host asks clients for other certificates than the name in the handshake (RFC 9110 7.4)',
)
const CR = 13
const LF = 10

export class RequestSide {
  readonly #owner: RequestOwner
  readonly #around: Surroundings
  readonly #machine: Machine
  readonly #exchange: Exchange
  readonly #client: Client
  readonly #reader: MessageReader
  readonly #socket: Pick<ByteSocket, 'serves'>
  readonly inbox: Inbox
  /** `body.max_bytes` as it was when the body under way began; -1: unlimited. */
  #bodyMax = -1
  /** Body bytes at which `body.read_timeout` starts anew, and when it ends. */
  #progressAt = 0
  #progressDueMs = 0
  /** The client has sent FIN: no byte will follow those in the inbox. */
  hasEnded = false
  /** How often `serve` is on the stack: a reply given inside it is picked up by the loop, not by recursion. */
  #depth = 0

  constructor(
    owner: RequestOwner,
    machine: Machine,
    exchange: Exchange,
    reader: MessageReader,
    client: Client,
    around: Surroundings,
    socket: Pick<ByteSocket, 'serves'>,
  ) {
    this.#owner = owner
    this.#around = around
    this.#machine = machine
    this.#exchange = exchange
    this.#client = client
    this.#reader = reader
    this.#socket = socket
    this.inbox = new Inbox(around.memory)
  }

  get firstView(): Uint8Array {
    return this.inbox.firstView
  }

  /** Nothing that was read waits to be dealt with. */
  get isEmpty(): boolean {
    return this.inbox.length === 0
  }

  /** `length` bytes were read. */
  receive(length: number): void {
    this.inbox.begin(length)
  }

  /** Drops what was read. */
  discard(): void {
    this.inbox.from = this.inbox.to
  }

  /** Deals with everything that was read, request after request, as far as replies allow. */
  serve(): void {
    if (this.#depth > 0) return
    this.#depth++
    while (this.#step());
    this.#depth--
    if (this.hasEnded) this.#owner.onEnd()
  }

  /** One step; false when there is nothing to do until something else happens. */
  #step(): boolean {
    switch (this.#machine.state) {
      case STATE.REQUEST_READY:
        return this.#beginRequest()
      case STATE.REQUEST_HEAD:
        return this.#readHead()
      case STATE.REQUEST_BODY:
      case STATE.EARLY_HEAD:
      case STATE.EARLY_BODY:
        return this.#readBody()
      case STATE.CLOSING:
        this.discard()
        return false
      default:
        return false
    }
  }

  #beginRequest(): boolean {
    const inbox = this.inbox
    this.#skipEmptyLines()
    // A client that does not read its answers gets no further ones. A single CR may become an empty line.
    if (inbox.length === 0 || this.#owner.isBlocked) return false
    if (inbox.length === 1 && this.#around.arena.bytes[inbox.from] === CR) return false
    this.#machine.advance(EVENT.REQUEST_BEGIN)
    this.#reader.begin(inbox.from)
    this.#exchange.begin(this.#around.now())
    this.#around.metrics.add(METRIC.requests, 1)
    this.#owner.began()
    return true
  }

  /** RFC 9112 2.2: empty lines in front of a request line are ignored; a bare CR or LF is no line. */
  #skipEmptyLines(): void {
    const inbox = this.inbox
    const { bytes } = this.#around.arena
    while (inbox.length > 1 && bytes[inbox.from] === CR && bytes[inbox.from + 1] === LF) inbox.from += 2
  }

  #readHead(): boolean {
    const inbox = this.inbox
    const reader = this.#reader
    const exchange = this.#exchange
    if (!reader.readHead(inbox.from, inbox.to, false)) {
      if (reader.broken !== null) this.#owner.refuseHead(reader.broken)
      else this.#owner.awaitHead()
      return false
    }
    const { head } = reader
    const { intake } = this.#client
    const bad = intake.take(exchange, head, inbox.from, reader.method, this.#client)
    if (bad !== undefined) {
      this.#owner.refuseHead(bad)
      return false
    }
    const isLast = this.hasEnded && reader.parsedTo === inbox.to
    exchange.persists = intake.persists && !isLast
    // "Content-Length: 0" announces a body that needs no bytes.
    if (found.message || (exchange.requestFraming === 0 && reader.readBody(reader.parsedTo) && found.message)) {
      exchange.requestDoneMs = exchange.startedMs
      this.#machine.advance(EVENT.REQUEST_END)
    } else {
      this.#machine.advance(EVENT.REQUEST_BODY)
      this.#progressAt = PROGRESS_BYTES
      this.#progressDueMs = this.#around.now() + this.#around.settings.bodyReadMs
      this.#bodyMax = this.#around.settings.bodyBytesMax
      if (this.#isTooLong(exchange.requestFraming)) this.#owner.refuseSize()
    }
    // Read whole it does not end the connection, which serves other hosts.
    if (exchange.isSecured && exchange.status === 0 && !this.#socket.serves(exchange.host)) {
      this.#owner.refuseHead(MISDIRECTED)
    }
    if (exchange.status === 0) this.#walk(head)
    else inbox.from = reader.parsedTo
    return true
  }

  #walk(head: Head): void {
    const exchange = this.#exchange
    exchange.head = head
    const waiting = this.#owner.walk()
    if (waiting === undefined) {
      this.#walked()
      return
    }
    // The head must outlive this read; nothing more is read until it is known where the body goes.
    exchange.head = this.#reader.pinHead()
    const goOn = (enter: () => void): void => {
      // The client may be gone by now.
      if (this.#machine.state === STATE.CLOSED) return
      enter()
      this.#walked()
      this.serve()
      this.#owner.resumeRequest()
    }
    waiting.then(goOn).catch((error: unknown) => this.#owner.onBug(error))
  }

  /** The exchange has its upstream, or is answered already. */
  #walked(): void {
    if (this.#machine.state === STATE.CLOSED) return
    this.#reader.unpinHead()
    this.inbox.from = this.#reader.parsedTo
    this.#exchange.head = null
    if (this.#exchange.upstream === null) return
    if (this.#machine.state !== STATE.REQUEST_BODY) this.#deliver(0, true)
    // The head leaves with the first body bytes, if they are here already.
    else if (this.inbox.length === 0) this.#deliver(0, false)
  }

  #readBody(): boolean {
    const exchange = this.#exchange
    const reader = this.#reader
    // Nobody to take it yet, or nothing to take.
    if (this.isUndecided || this.inbox.to === reader.parsedTo) return false
    const from = reader.parsedTo
    if (!reader.readBody(this.inbox.to)) {
      this.#owner.refuseBody(reader.broken!.rule)
      return true
    }
    const last = found.message
    for (let i = 0; i < found.body; i++) exchange.requestBodyBytes += bodySpans[2 * i + 1]!
    if (this.#isTooLong(exchange.requestBodyBytes)) {
      this.#owner.refuseSize()
      return true
    }
    if (found.body > 0) this.#machine.advance(EVENT.REQUEST_DATA)
    if (last) {
      exchange.requestDoneMs = this.#around.now()
      this.#machine.advance(EVENT.REQUEST_END)
    }
    if (exchange.upstream !== null) this.#deliver(from, last)
    if (this.#machine.state === STATE.CLOSED) return false
    // A trailer section that came in pieces was kept until now; left in the inbox it would be the next request.
    if (last) reader.finish()
    this.inbox.from = reader.keptFrom(this.inbox.from)
    return last
  }

  /** The request waits for some step of the walk; its body stays where it is. */
  get isUndecided(): boolean {
    return this.#machine.state === STATE.REQUEST_BODY && this.#exchange.upstream === null
  }

  /** Hands what was found to the target. `from`: first byte that was parsed, or 0 when none was. */
  #deliver(from: number, last: boolean): void {
    const { part } = this.#around
    part.spans = from === 0 ? 0 : found.body
    // What stands in front was used up, or is the margin of the chunk.
    part.floor = from - MARGIN
    part.last = last
    part.trailers = this.#reader.trailers
    part.inbox = this.inbox
    this.#exchange.upstream!.requestPart(part)
  }

  #isTooLong(bytes: number): boolean {
    return bytes > this.#bodyMax && this.#bodyMax >= 0
  }

  /** After a read was dealt with: the view for the next one; null when there is no memory for what must be kept. */
  settle(): Uint8Array | undefined | null {
    const { state } = this.#machine
    const inBody = state === STATE.REQUEST_BODY || state === STATE.EARLY_BODY || state === STATE.EARLY_HEAD
    const view = this.inbox.settle(inBody && this.wantsBytes)
    this.#reader.moveBy(this.inbox.moved)
    return view
  }

  /** Whether the client should be read now. */
  get wantsBytes(): boolean {
    const { upstream } = this.#exchange
    switch (this.#machine.state) {
      case STATE.REQUEST_BODY:
        return upstream !== null && !upstream.isBlocked
      case STATE.EARLY_HEAD:
      case STATE.EARLY_BODY:
        return upstream === null || !upstream.isBlocked
      case STATE.REQUEST_HEAD:
      case STATE.CLOSING:
        return true
      default:
        // Pipelined bytes wait in the inbox, up to a limit. Reading on is how a client that leaves is noticed.
        return this.inbox.length < this.#around.settings.pipelineBytesMax && this.inbox.room > 0
    }
  }

  /** Milliseconds that the client has for the next piece of its body; 0: no more than it was given before. */
  bodyWaitMs(): number {
    const { socketTimeoutMs, bodyReadMs } = this.#around.settings
    if (bodyReadMs === 0) return socketTimeoutMs
    const now = this.#around.now()
    if (this.#exchange.requestBodyBytes >= this.#progressAt) {
      this.#progressAt = this.#exchange.requestBodyBytes + PROGRESS_BYTES
      this.#progressDueMs = now + bodyReadMs
    }
    return Math.min(socketTimeoutMs, Math.max(0, this.#progressDueMs - now))
  }

  /** The client is not read for the target's sake: once it is again, it has its whole time. */
  holdBody(): void {
    this.#progressAt = 0
  }

  /** The connection is gone. */
  dispose(): void {
    this.inbox.dispose()
    this.#reader.dispose()
  }
}
