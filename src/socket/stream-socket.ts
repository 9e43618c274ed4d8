/**
 * Sockets on Node's public stream API: works on every runtime and under `--permission`, about a quarter slower.
 * Outgoing connections read through the public `onread` option; accepted ones have none, so their bytes are copied.
 */
import { connect, createServer, type Socket } from 'node:net'
import {
  type ByteSocket,
  type ConnectingOwner,
  type Listening,
  type ListenOptions,
  type SocketLevel,
  type SocketOwner,
  WRITE,
  type Written,
} from './byte-socket.ts'
import { nobody } from './nobody.ts'

const NOTHING = Buffer.alloc(0)
/** Before a socket is attached, and once it is closed. */
const NOBODY = nobody()

abstract class StreamSocket implements ByteSocket {
  protected socket!: Socket
  protected owner: SocketOwner = NOBODY
  protected view: Uint8Array = NOTHING
  #waitsForDrain = false

  get remoteAddress(): string {
    return this.socket.remoteAddress ?? ''
  }

  abstract attach(owner: SocketOwner, view: Uint8Array): void
  abstract setReading(on: boolean): void

  protected listen(): void {
    const { socket } = this
    socket.setNoDelay(true)
    socket.on('end', () => this.ended())
    socket.on('error', (error: NodeJS.ErrnoException) => this.lost(error.code ?? 'ERROR'))
    socket.on('close', () => this.closed())
  }

  protected ended(): void {
    this.guarded(owner => owner.onEnd())
  }

  protected closed(): void {
    this.lost('ECONNRESET')
  }

  protected lost(code: string): void {
    this.guarded(owner => {
      this.destroy()
      owner.onLost(code)
    })
  }

  /** Calls the owner; what it throws is its own affair, not the thread's. */
  protected guarded(call: (owner: SocketOwner) => void): void {
    const { owner } = this
    try {
      call(owner)
    } catch (error) {
      owner.onBug(error)
    }
  }

  write(bytes: Uint8Array): Written {
    const { socket } = this
    if (!socket.writable) return WRITE.FAILED
    socket.write(bytes)
    if (socket.destroyed) return WRITE.FAILED
    if (socket.writableLength === 0) return WRITE.DONE
    if (!this.#waitsForDrain) this.#awaitDrain()
    return WRITE.PENDING
  }

  /** An empty write behind the others: its callback says that they have left, below the high-water mark too. */
  #awaitDrain(): void {
    this.#waitsForDrain = true
    this.socket.write(NOTHING, error => {
      this.#waitsForDrain = false
      if (error) return
      // More may have been written meanwhile.
      if (this.socket.writableLength === 0) this.guarded(owner => owner.onDrained())
      else this.#awaitDrain()
    })
  }

  end(): void {
    this.socket.end()
  }

  destroy(): void {
    this.owner = NOBODY
    this.socket.destroy()
  }

  reset(): void {
    this.owner = NOBODY
    this.socket.resetAndDestroy()
  }
}

class AcceptedSocket extends StreamSocket {
  /** Bytes that came with others after which the owner paused. */
  #rest: Uint8Array = NOTHING
  /** What the owner asked for last; the stream follows once the rest is delivered. */
  #isReading = true
  #isQueued = false
  /** FIN came while the owner did not read: a paused stream that is empty reads on by itself. */
  #owesEnd = false

  constructor(socket: Socket) {
    super()
    this.socket = socket
  }

  override attach(owner: SocketOwner, view: Uint8Array): void {
    this.owner = owner
    this.view = view
    this.listen()
    this.socket.on('data', (bytes: Buffer) => this.guarded(() => this.#deliver(bytes)))
  }

  override setReading(on: boolean): void {
    if (on === this.#isReading) return
    this.#isReading = on
    if (!on) this.socket.pause()
    else if (this.#rest.length === 0 && !this.#owesEnd) this.socket.resume()
    else if (!this.#isQueued) {
      // Not from inside the owner's own call.
      this.#isQueued = true
      queueMicrotask(() => this.guarded(() => this.#redeliver()))
    }
  }

  /** The end of what is still to be delivered must not overtake it. */
  protected override ended(): void {
    if (this.#isReading && this.#rest.length === 0) super.ended()
    else this.#owesEnd = true
  }

  /** Both sides ended: no loss of what the owner has still to read. */
  protected override closed(): void {
    if (!this.#owesEnd) super.closed()
  }

  #redeliver(): void {
    this.#isQueued = false
    // It may have stopped again before this ran.
    if (this.owner === NOBODY || !this.#isReading) return
    const rest = this.#rest
    this.#rest = NOTHING
    this.#deliver(rest)
    if (!this.#isReading) return
    if (this.#owesEnd) {
      this.#owesEnd = false
      super.ended()
    } else this.socket.resume()
  }

  #deliver(bytes: Uint8Array): void {
    let from = 0
    while (from < bytes.length && this.owner !== NOBODY) {
      if (!this.#isReading || this.#rest.length > 0) {
        this.#rest = this.#rest.length === 0 ? bytes.subarray(from) : Buffer.concat([this.#rest, bytes.subarray(from)])
        return
      }
      const length = Math.min(this.view.length, bytes.length - from)
      this.view.set(bytes.subarray(from, from + length))
      from += length
      this.guarded(owner => {
        this.view = owner.onBytes(length) ?? this.view
      })
    }
  }
}

class DialledSocket extends StreamSocket {
  constructor(address: string, port: number, owner: ConnectingOwner, view: Uint8Array) {
    super()
    this.owner = owner
    this.view = view
    this.socket = connect({
      host: address,
      port,
      allowHalfOpen: true,
      onread: {
        buffer: () => this.view,
        callback: (length: number) => {
          this.guarded(reader => {
            this.view = reader.onBytes(length) ?? this.view
          })
          return true
        },
      },
    })
    this.listen()
    this.socket.on('connect', () => {
      if (this.owner !== NOBODY) this.guarded(() => owner.onConnected())
    })
  }

  override attach(): void {
    throw new Error('a dialled socket is attached from the start')
  }

  override setReading(on: boolean): void {
    if (on !== this.socket.isPaused()) return
    if (on) this.socket.resume()
    else this.socket.pause()
  }
}

const BACKLOG = 4096

export const streamLevel: SocketLevel = {
  name: 'streams',
  dial: (address, port, owner, view) => new DialledSocket(address, port, owner, view),
  listen(options: ListenOptions, onConnection: (socket: ByteSocket) => void): Promise<Listening> {
    const { promise, resolve, reject } = Promise.withResolvers<Listening>()
    const server = createServer({ allowHalfOpen: true }, socket => onConnection(new AcceptedSocket(socket)))
    server.once('error', reject)
    const where = options.host === '' ? { port: options.port } : { port: options.port, host: options.host }
    server.listen({ ...where, backlog: BACKLOG, reusePort: options.reusePort }, () =>
      resolve({ port: (server.address() as { port: number }).port, close: () => void server.close() }),
    )
    return promise
  },
}
