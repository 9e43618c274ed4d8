/**
 * Sockets on Node's public stream API: works on every runtime and under `--permission`, about a quarter slower. What is
 * read is copied into the view of the owner.
 */
import { connect, createServer, type Socket } from 'node:net'
import { Backlog, type Receiver } from './backlog.ts'
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
/** Where dialled sockets read; what is there is copied at once. */
const LANDING = Buffer.allocUnsafeSlow(65_536)
/** Before a socket is attached, and once it is closed. */
const NOBODY = nobody()

export abstract class StreamSocket implements ByteSocket, Receiver {
  protected owner: ConnectingOwner | SocketOwner = NOBODY
  protected view: Uint8Array = NOTHING
  protected readonly backlog = new Backlog(this)
  #waitsForDrain = false

  /** The stream that the owner reads and writes. */
  protected abstract readonly socket: Socket

  get remoteAddress(): string {
    return this.socket.remoteAddress ?? ''
  }

  protected get isClosed(): boolean {
    return this.owner === NOBODY
  }

  attach(owner: SocketOwner, view: Uint8Array): void {
    this.owner = owner
    this.view = view
    this.setReading(true)
  }

  serves(_authority: string): boolean {
    return true
  }

  get peerThumbprint(): string {
    return ''
  }

  protected listen(socket: Socket): void {
    socket.on('end', () => this.ended())
    socket.on('error', (error: NodeJS.ErrnoException) => this.lost(error.code ?? 'ERROR'))
    socket.on('close', () => this.closed())
  }

  // ---- reading ----------------------------------------------------------------------------------------------------

  /** Bytes were read, into memory that is used again. */
  protected arrived(bytes: Uint8Array): void {
    this.guarded(() => {
      if (this.backlog.isClear && bytes.length <= this.view.length) this.receive(bytes)
      else this.backlog.add(Uint8Array.from(bytes))
    })
  }

  receive(bytes: Uint8Array): number {
    if (this.isClosed) return 0
    const length = Math.min(bytes.length, this.view.length)
    this.view.set(length === bytes.length ? bytes : bytes.subarray(0, length))
    const next = this.owner.onBytes(length)
    if (next !== undefined) this.view = next
    return this.isClosed ? 0 : length
  }

  setReading(on: boolean): void {
    if (on === this.backlog.isReading) return
    if (this.backlog.setReading(on)) this.socket.resume()
    else if (!on) this.socket.pause()
  }

  resume(): void {
    if (!this.isClosed) this.socket.resume()
  }

  /** A paused stream that is empty reads on by itself, so this may come while the owner does not read. */
  protected ended(): void {
    this.guarded(() => this.backlog.end(() => this.owner.onEnd()))
  }

  /** Both sides ended: no loss of what the owner has still to read. */
  protected closed(): void {
    if (!this.backlog.owesEnd) this.lost('ECONNRESET')
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

  threw(error: unknown): void {
    this.owner.onBug(error)
  }

  // ---- writing and ending -----------------------------------------------------------------------------------------

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
    this.detach()
    this.socket.destroy()
  }

  reset(): void {
    this.detach()
    resetStream(this.socket)
  }

  /** The owner hears nothing more. */
  protected detach(): void {
    this.owner = NOBODY
  }
}

/** While a FIN is under way a reset is refused, and the handle would stay open; then all bytes are with the kernel. */
export function resetStream(socket: Socket): void {
  if (socket.writableEnded && !socket.writableFinished && socket.writableLength === 0) socket.destroy()
  else socket.resetAndDestroy()
}

/** A socket of TCP, which TLS may be put upon. */
abstract class PlainSocket extends StreamSocket {
  protected override readonly socket: Socket

  constructor(socket: Socket) {
    super()
    this.socket = socket
    socket.setNoDelay(true)
  }

  /** Hands the stream over to somebody else, who is given what is read. The owner hears nothing more. */
  release(sink: (bytes: Buffer) => void): Socket {
    this.detach()
    for (const event of ['end', 'error', 'close', 'data', 'connect']) this.socket.removeAllListeners(event)
    this.readInto(sink)
    return this.socket
  }

  protected abstract readInto(sink: (bytes: Buffer) => void): void
}

/** The stream of a socket of this level, for TLS on top of it. `sink` is given what is read. */
export function releaseStream(socket: ByteSocket, sink: (bytes: Buffer) => void): Socket {
  if (!(socket instanceof PlainSocket)) throw new Error('not a socket on streams')
  return socket.release(sink)
}

class AcceptedSocket extends PlainSocket {
  override attach(owner: SocketOwner, view: Uint8Array): void {
    const isFirst = this.isClosed
    super.attach(owner, view)
    if (!isFirst) return
    this.listen(this.socket)
    this.readInto(bytes => this.arrived(bytes))
  }

  protected override readInto(sink: (bytes: Buffer) => void): void {
    this.socket.on('data', sink)
  }
}

class DialledSocket extends PlainSocket {
  #sink: (bytes: Buffer) => void = bytes => this.arrived(bytes)

  constructor(address: string, port: number, owner: ConnectingOwner, view: Uint8Array) {
    const onread = {
      buffer: LANDING,
      callback: (length: number) => {
        this.#sink(LANDING.subarray(0, length))
        return true
      },
    }
    super(connect({ host: address, port, allowHalfOpen: true, onread }))
    this.owner = owner
    this.view = view
    this.listen(this.socket)
    this.socket.on('connect', () => {
      if (!this.isClosed) this.guarded(() => owner.onConnected())
    })
  }

  protected override readInto(sink: (bytes: Buffer) => void): void {
    this.#sink = bytes => sink(Buffer.from(bytes))
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
