/**
 * The receiving half of a backend connection: what is parsed of the response, and how it reaches the client. Owns inbox
 * and reader; the connection owns socket, request and endings.
 */
import type { Exchange } from '../exchange/exchange.ts'
import { Inbox } from '../exchange/inbox.ts'
import type { Surroundings } from '../exchange/surroundings.ts'
import { announcesBody, responseBody, UNTIL_CLOSE } from '../http1/framing.ts'
import type { Head } from '../http1/head.ts'
import { found } from '../http1/llhttp.ts'
import type { MessageReader } from '../http1/message-reader.ts'
import { keepAliveTimeout, readConnection } from '../http1/persistence.ts'
import { checkResponse } from '../http1/strictness.ts'
import { brokenSwitch } from '../http1/upgrade.ts'
import { CONNECT_FAILED, CREDENTIALS_REFUSED } from '../protocol/fate.ts'
import type { Machine } from '../protocol/machine.ts'
import { EVENT, STATE } from '../protocol/states.ts'
import { MARGIN } from '../structure/arena.ts'
import type { StatusWatch } from './status-watch.ts'

/** What the receiving half needs of its connection. */
interface ResponseOwner {
  /** The backend has answered, if only with 1xx: from here on the request is not sent again. */
  answered(status: number): void
  /** A 101 to what was asked for, whose first byte stands at `at`; what is left in `inbox` came behind it. */
  switched(head: Head, at: number, inbox: Inbox): void
  /** The response breaks the protocol. */
  unreadable(rule: string): void
  /** The response is not the client's: a proxy in between, or the back end, refuses the gateway. `base`: its code. */
  refused(base: number, cause: string): void
  /** The response is complete. `idleMs`: how long the connection may wait for another request, 0: not at all. */
  completed(idleMs: number): void
}

/**
 * Interim responses to one request. Each is passed on by itself, so without a limit a backend could fill the gateway's
 * memory with them while a client does not read.
 */
const INTERIMS_MAX = 64
const SWITCHING_PROTOCOLS = 101

export class ResponseSide {
  readonly #owner: ResponseOwner
  readonly #around: Surroundings
  readonly #machine: Machine
  readonly #reader: MessageReader
  readonly #inbox: Inbox
  readonly #watch: StatusWatch
  #exchange: Exchange | null = null
  #idleMs = 0
  /** Of the response under way. llhttp is not asked: it lets a trailer section change its mind. */
  #framing = 0
  /** Interim responses to the request under way. */
  #interims = 0

  constructor(owner: ResponseOwner, machine: Machine, reader: MessageReader, around: Surroundings, watch: StatusWatch) {
    this.#owner = owner
    this.#around = around
    this.#machine = machine
    this.#reader = reader
    this.#inbox = new Inbox(around.memory)
    this.#watch = watch
  }

  get firstView(): Uint8Array {
    return this.#inbox.firstView
  }

  /** Nothing of a response has come since the last message ended. */
  get isEmpty(): boolean {
    return this.#inbox.length === 0
  }

  /** The body under way ends with the connection (RFC 9112 6.3, rule 8). */
  get endsWithConnection(): boolean {
    const { state } = this.#machine
    const inBody = state === STATE.RESPONSE_BODY || state === STATE.EARLY_BODY
    return inBody && this.#exchange !== null && this.#framing === UNTIL_CLOSE
  }

  /** A request goes out: a response to it may come. */
  expect(exchange: Exchange): void {
    this.#exchange = exchange
    this.#interims = 0
    this.#reader.begin(this.#inbox.from)
  }

  /** Deals with `length` bytes that were read. */
  receive(length: number): void {
    this.#inbox.begin(length)
    while (this.#step());
  }

  /** The connection ended, and with it the body. */
  end(): void {
    this.#inbox.begin(0)
    this.#reader.endWithConnection()
    this.#deliver(this.#inbox.to, 0, true)
  }

  /** The view for the next read; null when there is no memory for what must be kept. */
  settle(clientBlocked: boolean): Uint8Array | undefined | null {
    const { state } = this.#machine
    const inBody = state === STATE.RESPONSE_BODY || state === STATE.EARLY_BODY
    const view = this.#inbox.settle(inBody && !clientBlocked)
    this.#reader.moveBy(this.#inbox.moved)
    return view
  }

  dispose(): void {
    this.#exchange = null
    this.#inbox.dispose()
    this.#reader.dispose()
  }

  /** One step; false when there is nothing to do until more comes. */
  #step(): boolean {
    switch (this.#machine.state) {
      case STATE.REQUEST_BODY:
      case STATE.REQUEST_DONE:
        return this.#inbox.length > 0 && this.#readHead(this.#exchange!)
      case STATE.RESPONSE_HEAD:
      case STATE.RESPONSE_BODY:
      case STATE.EARLY_HEAD:
      case STATE.EARLY_BODY:
        return this.#inbox.to > this.#reader.parsedTo && this.#readBody()
      default:
        return false
    }
  }

  #readHead(exchange: Exchange): boolean {
    const inbox = this.#inbox
    const reader = this.#reader
    const at = inbox.from
    if (!reader.readHead(at, inbox.to, exchange.isHead)) {
      if (reader.broken !== null) this.#owner.unreadable(reader.broken.rule)
      return false
    }
    const { head } = reader
    const { bytes } = this.#around.arena
    const broken = checkResponse(bytes, head, at)
    if (broken !== undefined) {
      this.#owner.unreadable(broken.rule)
      return false
    }
    if (head.status === SWITCHING_PROTOCOLS) return this.#switch(exchange, at)
    const isWatched = head.status === 407 || head.status === 500
    const objection = isWatched ? this.#watch.objection(exchange, head) : ''
    if (objection !== '') {
      this.#owner.refused(CONNECT_FAILED, objection)
      return false
    }
    this.#owner.answered(head.status)
    if (head.status === 401 && exchange.ownCredential !== null) {
      exchange.ownCredential.refused()
      this.#owner.refused(CREDENTIALS_REFUSED, "the back end refuses the gateway's credentials")
      return false
    }
    if (head.status < 200) return this.#interim(exchange, at)
    const framing = responseBody(bytes, head, exchange.isHead)
    this.#framing = framing
    this.#idleMs = this.#allowedIdle(framing)
    exchange.firstByteMs = this.#around.now()
    this.#machine.advance(EVENT.RESPONSE_BEGIN)
    exchange.downstream.reply(head, at, framing)
    if (this.#machine.state === STATE.CLOSED) return false
    if (framing !== 0) this.#machine.advance(EVENT.RESPONSE_BODY)
    reader.unpinHead()
    inbox.from = reader.keptFrom(at)
    this.#deliver(head.end, found.body, found.message)
    return true
  }

  #switch(exchange: Exchange, at: number): boolean {
    const { head } = this.#reader
    const { bytes } = this.#around.arena
    // Marks the fields that end here.
    readConnection(bytes, head)
    const rule = brokenSwitch(bytes, head, exchange.upgrade)
    if (rule !== '') {
      this.#owner.unreadable(rule)
      return false
    }
    this.#owner.answered(head.status)
    exchange.firstByteMs = this.#around.now()
    this.#machine.advance(EVENT.SWITCH)
    this.#inbox.from = head.end
    this.#owner.switched(head, at, this.#inbox)
    this.#reader.finish()
    return false
  }

  /** How long the connection may wait for another request; 0: it must not serve again (RFC 9112 9.3). */
  #allowedIdle(framing: number): number {
    const { settings, arena } = this.#around
    const { head } = this.#reader
    const persists = readConnection(arena.bytes, head)
    if (!persists || settings.closesTargets || framing === UNTIL_CLOSE) return 0
    // A 204 that announces a body may send it yet, and it would be read as the answer to the next request.
    if (head.status === 204 && announcesBody(arena.bytes, head)) return 0
    const seconds = keepAliveTimeout(arena.bytes, head)
    if (seconds < 0) return settings.targetKeepAliveMs
    // The backend counts from its side; leave it a grace, of ten seconds where it says that many.
    return Math.min(settings.targetKeepAliveMs, Math.max(seconds - 10, seconds / 2) * 1000)
  }

  #interim(exchange: Exchange, at: number): boolean {
    const { head } = this.#reader
    if (++this.#interims > INTERIMS_MAX) {
      this.#owner.unreadable(`more than ${INTERIMS_MAX} interim responses`)
      return false
    }
    // Marks the fields that end here.
    readConnection(this.#around.arena.bytes, head)
    this.#machine.advance(EVENT.RESPONSE_INTERIM)
    exchange.downstream.interim(head, at)
    if (this.#machine.state === STATE.CLOSED) return false
    this.#reader.finish()
    this.#inbox.from = head.end
    this.#reader.begin(head.end)
    return true
  }

  #readBody(): boolean {
    const reader = this.#reader
    const from = reader.parsedTo
    if (!reader.readBody(this.#inbox.to)) {
      this.#owner.unreadable(reader.broken!.rule)
      return false
    }
    this.#inbox.from = reader.keptFrom(this.#inbox.from)
    this.#deliver(from, found.body, found.message)
    return false
  }

  /** Hands body bytes to the client. `from`: where they were read from; in front of it everything is used up. */
  #deliver(from: number, spans: number, last: boolean): void {
    const { part } = this.#around
    part.spans = spans
    part.floor = from - MARGIN
    part.last = last
    part.trailers = this.#reader.trailers
    part.inbox = this.#inbox
    if (spans > 0) this.#machine.advance(EVENT.RESPONSE_DATA)
    const exchange = this.#exchange!
    if (last) exchange.targetState = this.#machine.reported
    exchange.downstream.replyPart(part)
    if (last && this.#machine.state !== STATE.CLOSED) this.#complete()
  }

  #complete(): void {
    this.#exchange = null
    this.#reader.finish()
    this.#machine.advance(EVENT.RESPONSE_END)
    // Bytes behind a complete response answer nothing we asked: the connection must not serve again.
    const stray = this.#inbox.to > this.#reader.parsedTo
    this.#inbox.from = this.#inbox.to
    this.#owner.completed(stray ? 0 : this.#idleMs)
  }
}
