/**
 * Sending half of a client connection: writes heads with the gateway's own fields and bodies framed for the client's
 * version, and advances machine and exchange. The connection owns the socket and handles the result of each write.
 */
import type { BodyPart } from '../exchange/contract.ts'
import { type CorsGrant, type Exchange, NO_OTHER_LINES } from '../exchange/exchange.ts'
import { type HeadEdit, putLinesExcept, stripTrailers } from '../exchange/head-edit.ts'
import type { KeptResponse } from '../exchange/outcome.ts'
import { MessageWriter } from '../exchange/message-writer.ts'
import type { WriteBuffer } from '../exchange/write-buffer.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'
import { fieldNamed, KIND } from '../../http1/field-kinds.ts'
import { spanBytes } from '../../http1/body.ts'
import { isBodiless, CHUNKED, UNTIL_CLOSE } from '../../http1/framing.ts'
import type { Head } from '../../http1/head.ts'
import { arena } from '../../http1/llhttp.ts'
import { CONNECTION_OPTION } from '../../http1/persistence.ts'
import {
  putFieldsExcept,
  putResponseStart,
  putStatusLine,
  type StrippedKinds,
  strippedKinds,
} from '../../http1/rewrite.ts'
import { upgradeResponseLines } from '../../http1/upgrade.ts'
import { encoded, putBlock, putLineEnd, putText } from '../../http1/writer.ts'
import { METRIC } from '../../observe/metrics.ts'
import type { Machine } from '../../protocol/machine.ts'
import { EVENT, STATE } from '../../protocol/states.ts'
import { type ByteSocket, WRITE, type Written } from '../../socket/byte-socket.ts'

const UPGRADE_REQUIRED = 426

/** Response fields that are stripped, by configuration. One per reactor. */
export class StrippedResponseFields {
  readonly plain = strippedKinds(KIND.CORRELATION, KIND.TRAILER)
  /** 1xx and 204 have no Content-Length (RFC 9110 8.6). */
  readonly bodiless = strippedKinds(KIND.CORRELATION, KIND.TRAILER, KIND.CONTENT_LENGTH)
  readonly chunked = strippedKinds(KIND.CORRELATION)

  constructor(settings: ConnectionContext['settings']) {
    this.update(settings)
  }

  /** Changes the tables in place, so that every user sees the new settings. */
  update({ preservesServer }: ConnectionContext['settings']): void {
    for (const table of [this.plain, this.bodiless, this.chunked]) table[KIND.SERVER] = preservesServer ? 0 : 1
  }
}

export class ResponseWriter {
  readonly #machine: Machine
  readonly #exchange: Exchange
  readonly #writer: MessageWriter
  readonly #context: ConnectionContext
  readonly #stripped: StrippedResponseFields

  constructor(
    socket: ByteSocket,
    machine: Machine,
    exchange: Exchange,
    context: ConnectionContext,
    stripped: StrippedResponseFields,
  ) {
    this.#machine = machine
    this.#exchange = exchange
    this.#context = context
    this.#stripped = stripped
    this.#writer = new MessageWriter(context.composer, context.metrics, METRIC.bytesToClients)
    this.#writer.open(socket)
  }

  get buffer(): WriteBuffer {
    return this.#writer.writeBuffer
  }

  /** Forwards a 1xx head without hop-by-hop fields. */
  interim(head: Head, at: number): Written {
    // RFC 9110 15.2: HTTP/1.0 clients do not know 1xx.
    if (this.#exchange.minorVersion === 0) return WRITE.DONE
    this.#machine.advance(EVENT.RESPONSE_INTERIM)
    const { bytes } = arena
    const start = this.#context.composer.chunk.offset
    const end = putLineEnd(bytes, putResponseStart(bytes, start, at, head, this.#stripped.bodiless))
    return this.buffer.writeComposed(end - start)
  }

  /** Forwards a 101; the bytes behind it are no longer HTTP. */
  switchProtocols(head: Head, at: number): Written {
    const { composer } = this.#context
    this.#exchange.status = head.status
    this.#machine.advance(EVENT.SWITCH)
    const { bytes } = arena
    const start = composer.chunk.offset
    let position = this.#putStart(head, at, this.#stripped.bodiless)
    position = putText(bytes, position, upgradeResponseLines(bytes, head))
    return this.buffer.writeComposed(putLineEnd(bytes, position) - start)
  }

  /** Writes status line, passing fields and correlation id; returns the position behind them. */
  #putStart(head: Head, at: number, stripped: StrippedKinds): number {
    const { composer, settings } = this.#context
    const edit = this.#exchange.responseEdit
    let position =
      edit === null
        ? putResponseStart(arena.bytes, composer.chunk.offset, at, head, stripped)
        : putEditedStart(arena.bytes, composer.chunk.offset, at, head, stripped, edit)
    position = putBlock(arena.bytes, position, settings.correlationStart)
    return putLineEnd(arena.bytes, this.#exchange.correlation.put(arena.bytes, position))
  }

  /** True if only the end of the connection can end a body of this framing. */
  #endsWithConnection(framing: number): boolean {
    return this.#exchange.minorVersion === 0 && (framing === CHUNKED || framing === UNTIL_CLOSE)
  }

  /** Composes the final head, which leaves with the first part. */
  head(head: Head, at: number, framing: number): void {
    const exchange = this.#exchange
    exchange.status = statusOf(head, exchange.responseEdit)
    if (this.#context.isDraining || this.#endsWithConnection(framing)) exchange.persists = false
    // RFC 9110 10.1.1: a client that gets its response before its body was sent may never send the body, so its
    // connection closes. A backend that closes behind an early response does not take the rest either.
    const isEarly = this.#machine.advance(EVENT.RESPONSE_BEGIN) === STATE.EARLY_HEAD
    const closes = (head.connectionOptions & CONNECTION_OPTION.CLOSE) !== 0
    if (isEarly && (exchange.requestBodyBytes === 0 || closes)) exchange.persists = false
    this.#compose(head, at, framing)
    if (framing !== 0) this.#machine.advance(EVENT.RESPONSE_BODY)
  }

  #compose(head: Head, at: number, framing: number): void {
    const exchange = this.#exchange
    const { bytes } = arena
    const { corsGrant, responseLines, responseEdit, status } = exchange
    const unknownLength = framing === CHUNKED || framing === UNTIL_CLOSE
    const leaves = unknownLength ? (exchange.minorVersion === 1 ? CHUNKED : UNTIL_CLOSE) : framing
    const chunked = leaves === CHUNKED
    const stripped =
      status === 204 || status < 200 ? this.#stripped.bodiless : chunked ? this.#stripped.chunked : this.#stripped.plain
    const start = this.#context.composer.chunk.offset
    let position = this.#putStart(head, at, stripped)
    // RFC 9110 6.6.1: a recipient with a clock adds a missing Date (D2).
    if (!head.has(KIND.DATE)) position = putText(bytes, position, this.#context.dateLine)
    // CORS fields of a backend win: a mixture could grant what neither side grants (D78).
    if (corsGrant !== null) {
      if (hasCors(head, responseEdit)) position = putText(bytes, position, corsGrant.vary)
      else {
        bytes.set(corsGrant.bytes, position)
        position += corsGrant.bytes.length
      }
      if (corsGrant.others !== NO_OTHER_LINES)
        position = putAbsent(bytes, position, head, corsGrant.others, responseEdit)
    }
    if (responseLines !== '') {
      position =
        responseEdit === null
          ? putText(bytes, position, responseLines)
          : putLinesExcept(bytes, position, encoded(responseLines), responseEdit)
    }
    if (chunked) position = putText(bytes, position, 'Transfer-Encoding: chunked\r\n')
    if (head.status === UPGRADE_REQUIRED) position = putText(bytes, position, upgradeResponseLines(bytes, head))
    position = putText(bytes, position, connectionLine(exchange))
    this.#writer.compose(putLineEnd(bytes, position) - start, leaves)
  }

  /** `gathers`: the bytes may wait until this turn of the event loop ends. */
  part(part: BodyPart, gathers: boolean): Written {
    const edit = this.#exchange.responseEdit
    if (edit !== null && part.last && part.trailers.count > 0) stripTrailers(arena.bytes, part.trailers, edit)
    if (part.count > 0) {
      this.#machine.advance(EVENT.RESPONSE_DATA)
      this.#exchange.responseBodyBytes += spanBytes(part.spans, part.count)
    }
    return this.#writer.part(part, gathers)
  }

  /**
   * Writes a whole response that was composed for an earlier request. `isLast`: no further request was read, so the
   * bytes may wait until this turn of the event loop ends.
   */
  keptResponse({ status, start, body }: KeptResponse, isLast: boolean): Written {
    const exchange = this.#exchange
    const { composer, settings, dateLine } = this.#context
    const { bytes } = arena
    this.#beginLocal(status)
    const from = composer.chunk.offset
    let position = putBlock(bytes, from, start)
    if (exchange.correlation.isSet) {
      position = putBlock(bytes, position, settings.correlationStart)
      position = putLineEnd(bytes, exchange.correlation.put(bytes, position))
    }
    position = putText(bytes, position, dateLine)
    position = putLineEnd(bytes, putText(bytes, position, connectionLine(exchange)))
    if (!exchange.isHead) position = putBlock(bytes, position, body)
    this.#writer.discard()
    exchange.responseBodyBytes = exchange.isHead ? 0 : body.length
    return this.buffer.writeComposed(position - from, isLast && exchange.persists)
  }

  #beginLocal(status: number): void {
    this.#exchange.status = status
    // The rest of an incomplete request is not waited for.
    const isEarly = this.#machine.advance(EVENT.RESPONSE_BEGIN) === STATE.EARLY_HEAD
    if (isEarly || this.#context.isDraining) this.#exchange.persists = false
  }

  /** Writes a whole response of the gateway itself. `lines` end with CRLF each. */
  localResponse(status: number, reason: string, lines: string, body: string): Written {
    const exchange = this.#exchange
    this.#beginLocal(status)
    const content = Buffer.from(body)
    let head = `HTTP/1.1 ${status} ${reason}\r\n${lines}`
    if (!isBodiless(status)) head += `Content-Length: ${content.length}\r\n`
    if (exchange.correlation.isSet) head += `${this.#context.settings.correlationField}: ${exchange.correlationId}\r\n`
    head += `${this.#context.dateLine}${connectionLine(exchange)}\r\n`
    const message = exchange.isHead ? head : head + content.latin1Slice(0, content.length)
    this.#writer.discard()
    exchange.responseBodyBytes = exchange.isHead ? 0 : content.length
    return this.buffer.writeText(message)
  }
}

/** Writes status line, passing fields and added fields of a response that mediation has edited. */
function putEditedStart(
  bytes: Buffer,
  at: number,
  from: number,
  head: Head,
  stripped: StrippedKinds,
  edit: HeadEdit,
): number {
  const position =
    edit.status === 0
      ? putStatusLine(bytes, at, from, head)
      : putText(bytes, at, `HTTP/1.1 ${edit.status} ${edit.reason}\r\n`)
  return putBlock(bytes, putFieldsExcept(bytes, position, head, stripped, edit.removed), edit.lines)
}

/** True if the response brings CORS fields of its own: those of the backend that stay, and those of its edit. */
function hasCors(head: Head, edit: HeadEdit | null): boolean {
  if (edit === null) return head.has(KIND.CORS)
  if (edit.setsCors || !head.has(KIND.CORS)) return edit.setsCors
  const { bytes } = arena
  for (let field = 0; field < head.count; field++) {
    if (head.kinds[field] !== KIND.CORS) continue
    if (!edit.removed.include(bytes, head.nameAt(field), head.nameLength(field))) return true
  }
  return false
}

function statusOf({ status }: Head, edit: HeadEdit | null): number {
  return edit === null || edit.status === 0 ? status : edit.status
}

/** Connection line: HTTP/1.1 persists without `close`, HTTP/1.0 only with `keep-alive` (RFC 9112 9.3). */
function connectionLine({ persists, minorVersion }: Exchange): string {
  if (!persists) return 'Connection: close\r\n'
  return minorVersion === 0 ? 'Connection: keep-alive\r\n' : ''
}

/** Writes the lines of fields that the backend's response and its edit lack. */
function putAbsent(bytes: Buffer, at: number, head: Head, lines: CorsGrant['others'], edit: HeadEdit | null): number {
  let position = at
  for (const { name, line } of lines) {
    if (edit?.removed.names.includes(name) === true) continue
    if (fieldNamed(bytes, head, name) < 0) position = putText(bytes, position, line)
  }
  return position
}
