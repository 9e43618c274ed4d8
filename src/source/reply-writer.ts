/**
 * The sending half of a client connection: heads with the gateway's own fields, bodies framed for the client's version,
 * and what the machine and the exchange must know of them. The connection owns the socket and looks after each write.
 */
import type { BodyPart } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { MessageWriter } from '../exchange/message-writer.ts'
import type { Outbox } from '../exchange/outbox.ts'
import type { Surroundings } from '../exchange/surroundings.ts'
import { KIND } from '../http1/field-kinds.ts'
import { bodiless, CHUNKED, UNTIL_CLOSE } from '../http1/framing.ts'
import type { Head } from '../http1/head.ts'
import { connection } from '../http1/persistence.ts'
import { bodySpans } from '../http1/llhttp.ts'
import { type Drops, drops, putResponseStart } from '../http1/rewrite.ts'
import { upgradeLines } from '../http1/upgrade.ts'
import { putLineEnd, putText } from '../http1/writer.ts'
import { METRIC } from '../observe/metrics.ts'
import type { Machine } from '../protocol/machine.ts'
import { EVENT, STATE } from '../protocol/states.ts'
import { type ByteSocket, WRITE, type Written } from '../socket/byte-socket.ts'

const UPGRADE_REQUIRED = 426

/** Response fields left out, by configuration. One for all connections of a thread. */
export class ResponseDrops {
  readonly plain = drops(KIND.CORRELATION, KIND.TRAILER)
  // 1xx and 204 have no Content-Length (RFC 9110 8.6).
  readonly bodiless = drops(KIND.CORRELATION, KIND.TRAILER, KIND.CONTENT_LENGTH)
  readonly chunked = drops(KIND.CORRELATION)

  constructor(settings: Surroundings['settings']) {
    this.renew(settings)
  }

  /** The tables themselves are changed: whoever has one in hand has that of now. */
  renew({ preservesServer }: Surroundings['settings']): void {
    for (const table of [this.plain, this.bodiless, this.chunked]) table[KIND.SERVER] = preservesServer ? 0 : 1
  }
}

export class ReplyWriter {
  readonly #machine: Machine
  readonly #exchange: Exchange
  readonly #writer: MessageWriter
  readonly #around: Surroundings
  readonly #drops: ResponseDrops

  constructor(socket: ByteSocket, machine: Machine, exchange: Exchange, around: Surroundings, left: ResponseDrops) {
    this.#machine = machine
    this.#exchange = exchange
    this.#around = around
    this.#drops = left
    this.#writer = new MessageWriter(around.composer, around.metrics, METRIC.bytesToClients)
    this.#writer.open(socket)
  }

  get outbox(): Outbox {
    return this.#writer.outbox
  }

  /** A 1xx head, as it came but for hop-by-hop fields. */
  interim(head: Head, at: number): Written {
    // RFC 9110 15.2: a 1.0 client does not know 1xx.
    if (this.#exchange.minorVersion === 0) return WRITE.DONE
    this.#machine.advance(EVENT.RESPONSE_INTERIM)
    const { bytes } = this.#around.arena
    const start = this.#around.composer.chunk.offset
    const end = putLineEnd(bytes, putResponseStart(bytes, start, at, head, this.#drops.bodiless))
    return this.outbox.writeComposed(end - start)
  }

  /** The head of a 101 to what the client asked for; what follows it is no longer HTTP. */
  switchProtocols(head: Head, at: number): Written {
    const { arena, composer } = this.#around
    this.#exchange.status = head.status
    this.#machine.advance(EVENT.SWITCH)
    const { bytes } = arena
    const start = composer.chunk.offset
    let position = this.#putOwnStart(head, at, this.#drops.bodiless)
    position = putText(bytes, position, upgradeLines(bytes, head))
    return this.outbox.writeComposed(putLineEnd(bytes, position) - start)
  }

  /** The passing fields and the correlation id; answers where they end. */
  #putOwnStart(head: Head, at: number, left: Drops): number {
    const { arena, composer, settings } = this.#around
    let position = putResponseStart(arena.bytes, composer.chunk.offset, at, head, left)
    position = putText(arena.bytes, position, settings.correlationStart)
    return putLineEnd(arena.bytes, this.#exchange.correlation.put(arena.bytes, position))
  }

  /** Whether the connection must close behind a body of this framing: nothing else would end it. */
  #endsWithConnection(framing: number): boolean {
    return this.#exchange.minorVersion === 0 && (framing === CHUNKED || framing === UNTIL_CLOSE)
  }

  /** The final head; it leaves with the first part. */
  head(head: Head, at: number, framing: number): void {
    const exchange = this.#exchange
    exchange.status = head.status
    if (this.#around.isDraining || this.#endsWithConnection(framing)) exchange.persists = false
    // RFC 9110 10.1.1: a client that was refused before it sent its body may never send it, and has to know that it
    // need not. Nor will a backend that closes behind its early answer take the rest.
    const isEarly = this.#machine.state === STATE.REQUEST_BODY
    if (isEarly && (exchange.requestBodyBytes === 0 || connection.close)) exchange.persists = false
    this.#machine.advance(EVENT.RESPONSE_BEGIN)
    this.#compose(head, at, framing)
    if (framing !== 0) this.#machine.advance(EVENT.RESPONSE_BODY)
  }

  #compose(head: Head, at: number, framing: number): void {
    const exchange = this.#exchange
    const { bytes } = this.#around.arena
    const { grant, replyLines } = exchange
    const unknownLength = framing === CHUNKED || framing === UNTIL_CLOSE
    const leaves = unknownLength ? (exchange.minorVersion === 1 ? CHUNKED : UNTIL_CLOSE) : framing
    const chunked = leaves === CHUNKED
    const left =
      head.status === 204 || head.status < 200
        ? this.#drops.bodiless
        : chunked
          ? this.#drops.chunked
          : this.#drops.plain
    const start = this.#around.composer.chunk.offset
    let position = this.#putOwnStart(head, at, left)
    // RFC 9110 6.6.1: a recipient with a clock adds the Date that an origin left out (D2).
    if (!head.has(KIND.DATE)) position = putText(bytes, position, this.#around.dateLine)
    // A backend that speaks of CORS has the say: half of its words and half of ours could grant what neither does.
    if (grant !== null) {
      if (head.has(KIND.CORS)) position = putText(bytes, position, grant.vary)
      else {
        bytes.set(grant.bytes, position)
        position += grant.bytes.length
      }
    }
    if (replyLines !== '') position = putText(bytes, position, replyLines)
    if (chunked) position = putText(bytes, position, 'Transfer-Encoding: chunked\r\n')
    if (head.status === UPGRADE_REQUIRED) position = putText(bytes, position, upgradeLines(bytes, head))
    position = putText(bytes, position, connectionLine(exchange))
    this.#writer.compose(putLineEnd(bytes, position) - start, leaves)
  }

  part(part: BodyPart): Written {
    if (part.spans > 0) {
      this.#machine.advance(EVENT.RESPONSE_DATA)
      for (let i = 0; i < part.spans; i++) this.#exchange.responseBodyBytes += bodySpans[2 * i + 1]!
    }
    return this.#writer.part(part)
  }

  /** A whole answer of the gateway's own. `lines` end with CRLF each. */
  answer(status: number, reason: string, lines: string, body: string): Written {
    const exchange = this.#exchange
    exchange.status = status
    // The rest of an unfinished request is not waited for.
    if (this.#machine.state !== STATE.REQUEST_DONE || this.#around.isDraining) exchange.persists = false
    this.#machine.advance(EVENT.RESPONSE_BEGIN)
    const content = Buffer.from(body)
    let head = `HTTP/1.1 ${status} ${reason}\r\n${lines}`
    if (!bodiless(status)) head += `Content-Length: ${content.length}\r\n`
    if (exchange.correlation.isSet) head += `${this.#around.settings.correlationStart}${exchange.correlationId}\r\n`
    head += `${this.#around.dateLine}${connectionLine(exchange)}\r\n`
    const message = exchange.isHead ? head : head + content.latin1Slice(0, content.length)
    this.#writer.discard()
    exchange.responseBodyBytes = exchange.isHead ? 0 : content.length
    return this.outbox.writeText(message)
  }
}

/** HTTP/1.1 persists unless it says close, HTTP/1.0 closes unless both say keep-alive (RFC 9112 9.3). */
function connectionLine({ persists, minorVersion }: Exchange): string {
  if (!persists) return 'Connection: close\r\n'
  return minorVersion === 0 ? 'Connection: keep-alive\r\n' : ''
}
