/**
 * The receiving half of a backend connection: parses the response and hands it to the source side. Owns read buffer and
 * parser; the connection owns socket, request and endings.
 */
import { KIND } from '../../http1/field-kinds.ts'
import { announcesBody, responseBodyLength, UNTIL_CLOSE } from '../../http1/framing.ts'
import { checkResponse } from '../../http1/head-rules.ts'
import type { Head } from '../../http1/head.ts'
import type { MessageReader } from '../../http1/message-reader.ts'
import { arena } from '../../http1/llhttp.ts'
import { keepAliveTimeout, readConnection } from '../../http1/persistence.ts'
import { switchViolation } from '../../http1/upgrade.ts'
import type { Machine } from '../../protocol/machine.ts'
import { EVENT, STATE } from '../../protocol/states.ts'
import { recordBytes } from '../../protocol/timelines.ts'
import { MARGIN } from '../../runtime/arena.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { ReadBuffer } from '../exchange/read-buffer.ts'
import { stateRow } from './state-table.ts'
import type { StatusInspector } from './status-inspector.ts'
import type { TargetConnection } from './target-connection.ts'

/**
 * Most interim responses to one request. Each is forwarded by itself, so without a limit a backend could fill the
 * gateway's memory with them while a client does not read.
 */
const INTERIMS_MAX = 64
const SWITCHING_PROTOCOLS = 101
/** A response with a higher status can say something about the connection or the gateway. */
const STATUS_REPEATED_MAX = 399

/** Facts that the head of a response decides alone. */
export interface DecodedResponse {
  readonly persists: boolean
}

/** True if the head may be recognised when it comes again, on any connection. */
function isRepeatable(head: Head): boolean {
  return head.status <= STATUS_REPEATED_MAX && head.transferEncoding < 0
}

export class ResponseReader {
  readonly #connection: TargetConnection
  readonly #context: ConnectionContext
  readonly #machine: Machine
  readonly #reader: MessageReader<DecodedResponse>
  readonly #readBuffer: ReadBuffer
  readonly #inspector: StatusInspector
  #exchange: Exchange | null = null
  /** Time that the connection may wait for another request after this response; 0: it is not reused. */
  #idleMs = 0
  /** Body framing of the response. Not taken from llhttp, which lets a trailer section change it. */
  #framing = 0
  /** Interim responses to the current request. */
  #interims = 0

  constructor(
    connection: TargetConnection,
    machine: Machine,
    reader: MessageReader<DecodedResponse>,
    context: ConnectionContext,
    inspector: StatusInspector,
  ) {
    this.#connection = connection
    this.#context = context
    this.#machine = machine
    this.#reader = reader
    this.#readBuffer = new ReadBuffer(context.memory)
    this.#inspector = inspector
  }

  get firstView(): Uint8Array {
    return this.#readBuffer.firstView
  }

  /** No byte of a response has come since the last message ended. */
  get isEmpty(): boolean {
    return this.#readBuffer.length === 0
  }

  /** The current body ends with the connection (RFC 9112 6.3, rule 8). */
  get endsWithConnection(): boolean {
    return stateRow(this.#machine.state).reads === 'body' && this.#framing === UNTIL_CLOSE
  }

  /** A request goes out: its response may come. */
  expect(exchange: Exchange): void {
    this.#exchange = exchange
    this.#interims = 0
    this.#reader.begin(this.#readBuffer.from)
  }

  /** Parses `length` bytes that were read. */
  receive(length: number): void {
    this.#readBuffer.begin(length)
    while (this.#step());
  }

  /** The connection ended, and with it the body. */
  end(): void {
    this.#readBuffer.begin(0)
    this.#reader.endWithConnection()
    this.#deliver(this.#readBuffer.to, 0, true)
  }

  /** The view for the next read; null without memory for bytes that must stay. */
  settle(isClientBlocked: boolean): Uint8Array | undefined | null {
    const isBody = stateRow(this.#machine.state).reads === 'body'
    const view = this.#readBuffer.settle(isBody && !isClientBlocked)
    this.#reader.moveBy(this.#readBuffer.moved)
    return view
  }

  dispose(): void {
    this.#exchange = null
    this.#readBuffer.dispose()
    this.#reader.dispose()
  }

  /** Takes one step; false when nothing can be done until more bytes come. */
  #step(): boolean {
    switch (stateRow(this.#machine.state).reads) {
      case 'head':
        return this.#readBuffer.length > 0 && this.#readHead(this.#exchange!)
      case 'body':
        return this.#readBuffer.to > this.#reader.parsedTo && this.#readBody()
      default:
        return false
    }
  }

  #readHead(exchange: Exchange): boolean {
    const buffer = this.#readBuffer
    const reader = this.#reader
    const at = buffer.from
    if (!exchange.isHead && reader.repeatsHead(at, buffer.to)) return this.#repeatHead(exchange, at)
    if (!reader.readHead(at, buffer.to, exchange.isHead)) {
      if (reader.error !== null) this.#connection.unreadable(reader.error.rule)
      return false
    }
    const { head } = reader
    const { bytes } = arena
    const violation = checkResponse(bytes, head, at)
    if (violation !== undefined) {
      this.#connection.unreadable(violation.rule)
      return false
    }
    if (head.status === SWITCHING_PROTOCOLS) return this.#switch(exchange, at)
    if (head.status === 407 || head.status === 500) {
      const refusal = this.#inspector.inspect(exchange, head)
      if (refusal !== null) {
        this.#connection.proxyRefused(refusal)
        return false
      }
    }
    this.#connection.responded(head.status)
    if (head.status === 401 && exchange.ownCredential !== null) {
      exchange.ownCredential.refused()
      this.#connection.credentialsRefused()
      return false
    }
    // Marks the fields that end at this hop, for interim responses too.
    const persists = readConnection(bytes, head)
    if (head.status < 200) return this.#interim(exchange, at)
    const framing = responseBodyLength(bytes, head, exchange.isHead)
    if (framing >= 0 && isRepeatable(head) && !exchange.isHead && reader.countHead()) {
      reader.keepSection(at, framing, { persists })
    }
    return this.#begin(exchange, at, framing, persists)
  }

  /** Takes a head that has passed all checks before. */
  #repeatHead(exchange: Exchange, at: number): boolean {
    const { head, repeated } = this.#reader
    this.#connection.responded(head.status)
    return this.#begin(exchange, at, repeated!.bodyBytes, repeated!.decoded.persists)
  }

  /** Hands the final head on, with the body bytes that came with it. */
  #begin(exchange: Exchange, at: number, framing: number, persists: boolean): boolean {
    const reader = this.#reader
    const { head } = reader
    this.#framing = framing
    this.#idleMs = persists ? this.#keepAliveMs(framing) : 0
    exchange.firstByteMs = this.#context.now()
    this.#machine.advance(EVENT.RESPONSE_BEGIN)
    exchange.source.responseHead(head, at, framing)
    if (this.#machine.state === STATE.CLOSED) return false
    if (framing !== 0) this.#machine.advance(EVENT.RESPONSE_BODY)
    reader.unpinHead()
    this.#readBuffer.from = reader.retainFrom(at)
    this.#deliver(head.end, reader.spanCount, reader.isComplete)
    return true
  }

  #switch(exchange: Exchange, at: number): boolean {
    const { head } = this.#reader
    const { bytes } = arena
    // Marks the fields that end at this hop.
    readConnection(bytes, head)
    const rule = switchViolation(bytes, head, exchange.upgrade)
    if (rule !== '') {
      this.#connection.unreadable(rule)
      return false
    }
    exchange.tunnelProtocol = head.list(bytes, KIND.UPGRADE)
    this.#connection.responded(head.status)
    exchange.firstByteMs = this.#context.now()
    this.#machine.advance(EVENT.SWITCH)
    this.#readBuffer.from = head.end
    this.#connection.switchProtocols(head, at, this.#readBuffer)
    this.#reader.finish()
    return false
  }

  /** Time that a persistent connection may wait for another request; 0: it must not be reused (RFC 9112 9.3). */
  #keepAliveMs(framing: number): number {
    const { settings } = this.#context
    const { head } = this.#reader
    if (settings.closesTargets || framing === UNTIL_CLOSE) return 0
    // A 204 that announces a body may still send it, and the body would be read as the next response.
    if (head.status === 204 && announcesBody(arena.bytes, head)) return 0
    const seconds = keepAliveTimeout(arena.bytes, head)
    if (seconds < 0) return settings.targetKeepAliveMs
    // The backend's time began earlier, so ten seconds are taken off, or half of a shorter time (D23).
    return Math.min(settings.targetKeepAliveMs, Math.max(seconds - 10, seconds / 2) * 1000)
  }

  #interim(exchange: Exchange, at: number): boolean {
    const { head } = this.#reader
    if (++this.#interims > INTERIMS_MAX) {
      this.#connection.unreadable(`more than ${INTERIMS_MAX} interim responses`)
      return false
    }
    this.#machine.advance(EVENT.RESPONSE_INTERIM)
    exchange.source.interimResponse(head, at)
    if (this.#machine.state === STATE.CLOSED) return false
    this.#reader.finish()
    this.#readBuffer.from = head.end
    this.#reader.begin(head.end)
    return true
  }

  #readBody(): boolean {
    const reader = this.#reader
    const from = reader.parsedTo
    if (!reader.readBody(this.#readBuffer.to)) {
      this.#connection.unreadable(reader.error!.rule)
      return false
    }
    this.#readBuffer.from = reader.retainFrom(this.#readBuffer.from)
    this.#deliver(from, reader.spanCount, reader.isComplete)
    return false
  }

  /** Hands body bytes to the client. `from`: start of the read; all bytes in front of it are used up. */
  #deliver(from: number, count: number, last: boolean): void {
    const { part } = this.#context
    part.count = count
    part.floor = from - MARGIN
    part.last = last
    part.trailers = this.#reader.trailers
    part.buffer = this.#readBuffer
    if (count > 0) this.#machine.advance(EVENT.RESPONSE_DATA)
    const exchange = this.#exchange!
    if (last) exchange.targetState = this.#machine.reported
    else recordBytes(exchange.timeline, true)
    exchange.source.responseBody(part)
    if (last && this.#machine.state !== STATE.CLOSED) this.#complete()
  }

  #complete(): void {
    this.#exchange = null
    this.#reader.finish()
    this.#machine.advance(EVENT.RESPONSE_END)
    // Bytes behind a complete response respond to no request: the connection must not be reused.
    const hasStrayBytes = this.#readBuffer.to > this.#reader.parsedTo
    this.#readBuffer.from = this.#readBuffer.to
    this.#connection.completed(hasStrayBytes ? 0 : this.#idleMs)
  }
}
