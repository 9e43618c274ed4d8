/**
 * One client connection of the own load generator: writes the same request again and again and finds the end of each
 * response. It reads into one buffer that all connections share, because the core is shared with the backend and the
 * generator must leave it room.
 */
import { connect, type Socket } from 'node:net'

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
  #socket: Socket | undefined
  #held: Buffer | undefined
  #status = 0
  /** Body bytes still to come; -1 while the head lasts. */
  #left = -1
  /** True from a request until the end of its response. */
  awaiting = false
  /** When the request was meant to leave, in milliseconds of performance.now. */
  intendedMs = 0

  constructor(port: number, listener: LoadListener, closesEach: boolean) {
    this.#port = port
    this.#listener = listener
    this.#closesEach = closesEach
  }

  open(): void {
    const callback = (bytes: number, _buffer: Uint8Array): boolean => {
      this.#take(READ_BUFFER.subarray(0, bytes))
      return true
    }
    const socket = connect({
      port: this.#port,
      host: '127.0.0.1',
      noDelay: true,
      onread: { buffer: READ_BUFFER, callback },
    })
    socket.once('connect', () => this.#listener.opened(this))
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
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)
    if (length === null) throw new Error(`the load generator needs a Content-Length in every response:\n${head}`)
    this.#status = Number(head.slice(9, 12))
    this.#left = Number(length[1])
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
