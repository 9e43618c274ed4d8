/**
 * Long bodies, generated while they are sent and compared byte by byte while they are received. Either end can be
 * paused and resumed.
 */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'

/** A prime, so that no buffer size divides the period of the pattern. */
const PERIOD = 65_521
const PIECE_MAX = 256 * 1024

const pattern = Buffer.alloc(PERIOD + PIECE_MAX)
for (let at = 0; at < pattern.length; at++) pattern[at] = ((at % PERIOD) * 2_654_435_761) >>> 13

/** `close`: the body ends with the connection. */
export type Framing = 'length' | 'chunked' | 'close'

/** The field line of a framing, '' for `close`. */
export function framingLine(framing: Framing, length: number): string {
  if (framing === 'close') return ''
  return framing === 'chunked' ? 'Transfer-Encoding: chunked\r\n' : `Content-Length: ${length}\r\n`
}

/** Sends a body as fast as the socket accepts it. */
export class Source {
  readonly #socket: Socket
  readonly #length: number
  readonly #framing: Framing
  /** Body bytes handed to the socket. */
  sent = 0
  #isEnded = false
  readonly #done = Promise.withResolvers<void>()

  constructor(socket: Socket, length: number, framing: Framing) {
    this.#socket = socket
    this.#length = length
    this.#framing = framing
    socket.on('drain', () => this.#pump())
    socket.on('close', () => this.#done.resolve())
    this.#pump()
  }

  /** Resolves when the kernel has all bytes, or the connection is closed. */
  get done(): Promise<void> {
    return this.#done.promise
  }

  #pump(): void {
    const socket = this.#socket
    let room = true
    while (room && this.sent < this.#length && !socket.destroyed) {
      // Irregular sizes that are the same in every run.
      const wanted = 1 + ((this.sent * 31 + 77_777) % PIECE_MAX)
      const length = Math.min(wanted, this.#length - this.sent)
      const at = this.sent % PERIOD
      this.sent += length
      socket.cork()
      if (this.#framing === 'chunked') socket.write(`${length.toString(16)}\r\n`)
      room = socket.write(pattern.subarray(at, at + length))
      if (this.#framing === 'chunked') room = socket.write('\r\n')
      socket.uncork()
    }
    if (!room || this.sent < this.#length || this.#isEnded) return
    this.#isEnded = true
    if (this.#framing === 'chunked') socket.write('0\r\n\r\n')
    if (this.#framing === 'close') socket.end()
    this.#done.resolve()
  }
}

/** Receives a message and compares its body with the pattern. */
export class Sink {
  readonly socket: Socket
  readonly #length: number
  /** Body bytes received. */
  received = 0
  head = ''
  #framing: Framing | null = null
  /** Bytes left of the current chunk; -1: the size line comes next. */
  #left = -1
  #line = ''
  readonly #done = Promise.withResolvers<void>()
  readonly #begun = Promise.withResolvers<void>()
  #wanted = Number.POSITIVE_INFINITY
  #reached = Promise.withResolvers<void>()

  constructor(socket: Socket, length: number) {
    this.socket = socket
    this.#length = length
    socket.on('data', (bytes: Buffer) => this.#take(bytes))
    socket.on('error', () => {})
    socket.on('close', () => {
      const error = new Error(`closed after ${this.received} of ${length} bytes: ${this.head}`)
      this.#begun.reject(error)
      this.#done.reject(error)
      this.#reached.reject(error)
    })
    for (const { promise } of [this.#done, this.#begun, this.#reached]) promise.catch(() => {})
  }

  get begun(): Promise<void> {
    return this.#begun.promise
  }

  /** Resolves when the whole body and its end have arrived. */
  get done(): Promise<void> {
    return this.#done.promise
  }

  /** Pauses the socket once `received` body bytes have arrived. */
  async stopAt(received: number): Promise<void> {
    if (this.received < received) {
      this.#reached = Promise.withResolvers()
      this.#wanted = received
      this.socket.resume()
      await this.#reached.promise
    }
    this.socket.pause()
  }

  #take(bytes: Buffer): void {
    let from = 0
    if (this.#framing === null) {
      this.head += bytes.toString('latin1')
      const end = this.head.indexOf('\r\n\r\n')
      if (end < 0) return
      from = bytes.length - (this.head.length - end - 4)
      this.head = this.head.slice(0, end + 4)
      this.#framing = /\r\nTransfer-Encoding: chunked\r\n/i.test(this.head) ? 'chunked' : 'length'
      this.#begun.resolve()
    }
    if (this.#framing === 'length') this.#check(bytes.subarray(from))
    else this.#dechunk(bytes, from)
    if (this.#framing === 'length' && this.received === this.#length) this.#done.resolve()
    if (this.received >= this.#wanted) {
      this.#wanted = Number.POSITIVE_INFINITY
      this.socket.pause()
      this.#reached.resolve()
    }
  }

  #dechunk(bytes: Buffer, start: number): void {
    let from = start
    while (from < bytes.length) {
      if (this.#left > 0) {
        const part = bytes.subarray(from, from + this.#left)
        this.#check(part)
        this.#left -= part.length
        from += part.length
        continue
      }
      // The line end after a chunk, then a size line.
      this.#line += String.fromCharCode(bytes[from++]!)
      const match = /^(?:\r\n)?([0-9a-f]+)\r\n(?:\r\n)?$/.exec(this.#line)
      if (match === null) continue
      this.#left = Number.parseInt(match[1]!, 16)
      if (this.#left > 0) this.#line = ''
      else if (this.#line.endsWith('\r\n\r\n')) {
        assert.equal(this.received, this.#length)
        this.#done.resolve()
      }
    }
  }

  #check(part: Buffer): void {
    for (let from = 0; from < part.length; from += PIECE_MAX) {
      const piece = part.subarray(from, from + PIECE_MAX)
      const at = this.received % PERIOD
      if (pattern.compare(piece, 0, piece.length, at, at + piece.length) !== 0)
        assert.fail(`the body differs between ${this.received} and ${this.received + piece.length}`)
      this.received += piece.length
    }
  }
}
