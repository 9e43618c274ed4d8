/**
 * One client connection of the own load generator: writes the same request again and again and finds the end of each
 * response. It reads into one buffer that all connections share, because the core is shared with the backend and the
 * generator must leave it room.
 */
import { connect, type Socket } from 'node:net'
import { connectSecurely } from '../certificate.ts'

const READ_BUFFER = Buffer.allocUnsafe(256 * 1024)
const HEAD_END = Buffer.from('\r\n\r\n')

export interface LoadListener {
  /** The connection is open and unused. */
  opened(connection: LoadConnection): void
  answered(connection: LoadConnection, status: number): void
  lost(connection: LoadConnection): void
}

export class LoadConnection {
  readonly #port: number
  readonly #listener: LoadListener
  readonly #closesEach: boolean
  readonly #chainFile: string | undefined
  #socket: Socket | undefined
  #held: Buffer | undefined
  #status = 0
  /** Body bytes still to come; -1 while the head lasts. */
  #left = -1
  /** True from a request until the end of its response. */
  awaiting = false
  /** When the request was meant to leave, in milliseconds of performance.now. */
  intendedMs = 0

  /** The head of the last response. */
  head = ''

  /** With the file of a certificate the connection is a TLS connection. */
  constructor(port: number, listener: LoadListener, closesEach: boolean, chainFile?: string) {
    this.#chainFile = chainFile
    this.#port = port
    this.#listener = listener
    this.#closesEach = closesEach
  }

  open(): void {
    const callback = (bytes: number, _buffer: Uint8Array): boolean => {
      this.#take(READ_BUFFER.subarray(0, bytes))
      return true
    }
    const opened = (): void => this.#listener.opened(this)
    const onread = { buffer: READ_BUFFER, callback }
    const socket =
      this.#chainFile === undefined
        ? connect({ port: this.#port, host: '127.0.0.1', noDelay: true, onread }, opened)
        : connectSecurely({ port: this.#port, onread }, this.#chainFile, opened)
    socket.once('error', () => this.#end(socket))
    socket.once('end', () => this.#end(socket))
    socket.once('close', () => this.#end(socket))
    this.#socket = socket
  }

  send(request: Uint8Array, intendedMs: number): void {
    this.awaiting = true
    this.intendedMs = intendedMs
    this.#left = -1
    this.#socket?.write(request)
  }

  close(): void {
    const socket = this.#socket
    this.#socket = undefined
    socket?.destroy()
  }

  #end(socket: Socket): void {
    if (this.#socket !== socket) return // Closed by us, or reported already.
    this.close()
    this.#held = undefined
    this.#listener.lost(this)
  }

  #take(fresh: Buffer): void {
    if (!this.awaiting)
      this.#socket?.destroy() // Bytes that nobody asked for; counted when the close is reported.
    else if (this.#left >= 0) this.#takeBody(fresh.length)
    else this.#takeHead(this.#held === undefined ? fresh : Buffer.concat([this.#held, fresh]))
  }

  #takeHead(bytes: Buffer): void {
    const end = bytes.indexOf(HEAD_END)
    if (end < 0) {
      this.#held = Buffer.from(bytes)
      return
    }
    this.#held = undefined
    const head = bytes.toString('latin1', 0, end)
    this.head = head
    this.#status = Number(head.slice(9, 12))
    const length = this.#status === 101 ? '0' : /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    if (length === undefined) throw new Error(`the load generator needs a Content-Length in every response:\n${head}`)
    this.#left = Number(length)
    this.#takeBody(bytes.length - end - HEAD_END.length)
  }

  #takeBody(bytes: number): void {
    this.#left -= bytes
    if (this.#left > 0) return
    this.awaiting = false
    if (this.#closesEach) this.close()
    this.#listener.answered(this, this.#status)
  }
}
