/**
 * Client connections of the load generators. Each repeats a request and finds the end of each response. All of them
 * read into one shared buffer, because the generator must leave most of its core to the backend.
 */
import { connect, type Socket } from 'node:net'
import { connectTls } from '../certificate.ts'

const READ_BUFFER = Buffer.allocUnsafe(256 * 1024)
const HEAD_END = Buffer.from('\r\n\r\n')

export interface LoadConnectionCallbacks {
  /** The connection is open and idle. */
  onOpened(connection: LoadConnection): void
  onResponse(connection: LoadConnection, status: number): void
  onLost(connection: LoadConnection): void
}

export class LoadConnection {
  readonly #port: number
  readonly #callbacks: LoadConnectionCallbacks
  readonly #closesAfterResponse: boolean
  readonly #chainFile: string | undefined
  #socket: Socket | undefined
  #pending: Buffer | undefined
  #status = 0
  /** Body bytes still to come; -1 before the end of the head. */
  #bodyLeft = -1
  /** A request was sent, and its response is not complete. */
  awaiting = false
  /** The time at which the request was due, in milliseconds of performance.now. */
  intendedMs = 0

  /** The head of the last response. */
  head = ''

  /** `chainFile`: certificate of the peer for a TLS connection. */
  constructor(port: number, listener: LoadConnectionCallbacks, closesAfterResponse: boolean, chainFile?: string) {
    this.#chainFile = chainFile
    this.#port = port
    this.#callbacks = listener
    this.#closesAfterResponse = closesAfterResponse
  }

  open(): void {
    const callback = (bytes: number, _buffer: Uint8Array): boolean => {
      this.#read(READ_BUFFER.subarray(0, bytes))
      return true
    }
    const opened = (): void => this.#callbacks.onOpened(this)
    const onread = { buffer: READ_BUFFER, callback }
    const socket =
      this.#chainFile === undefined
        ? connect({ port: this.#port, host: '127.0.0.1', noDelay: true, onread }, opened)
        : connectTls({ port: this.#port, onread }, this.#chainFile, opened)
    socket.once('error', () => this.#lose(socket))
    socket.once('end', () => this.#lose(socket))
    socket.once('close', () => this.#lose(socket))
    this.#socket = socket
  }

  send(request: Uint8Array, intendedMs: number): void {
    this.awaiting = true
    this.intendedMs = intendedMs
    this.#bodyLeft = -1
    this.#socket?.write(request)
  }

  close(): void {
    const socket = this.#socket
    this.#socket = undefined
    socket?.destroy()
  }

  #lose(socket: Socket): void {
    if (this.#socket !== socket) return // Closed by the generator, or reported already.
    this.close()
    this.#pending = undefined
    this.#callbacks.onLost(this)
  }

  #read(fresh: Buffer): void {
    if (!this.awaiting)
      this.#socket?.destroy() // Bytes without a request are an error, counted when the close is reported.
    else if (this.#bodyLeft >= 0) this.#readBody(fresh.length)
    else this.#readHead(this.#pending === undefined ? fresh : Buffer.concat([this.#pending, fresh]))
  }

  #readHead(bytes: Buffer): void {
    const end = bytes.indexOf(HEAD_END)
    if (end < 0) {
      this.#pending = Buffer.from(bytes)
      return
    }
    this.#pending = undefined
    const head = bytes.toString('latin1', 0, end)
    this.head = head
    this.#status = Number(head.slice(9, 12))
    const length = this.#status === 101 ? '0' : /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    if (length === undefined) throw new Error(`the load generator needs a Content-Length in every response:\n${head}`)
    this.#bodyLeft = Number(length)
    this.#readBody(bytes.length - end - HEAD_END.length)
  }

  #readBody(bytes: number): void {
    this.#bodyLeft -= bytes
    if (this.#bodyLeft > 0) return
    this.awaiting = false
    if (this.#closesAfterResponse) this.close()
    this.#callbacks.onResponse(this, this.#status)
  }
}
