/**
 * Sockets on Node's public stream API: work on every runtime and under `--permission`, about a quarter slower than
 * handles. What is read is copied into the view of the owner.
 */
import { connect, createServer, type Socket } from 'node:net'
import {
  type ByteSocket,
  type ConnectingOwner,
  type Listening,
  type ListenOptions,
  descriptorOf,
  listenTarget,
  type SocketLevel,
  type SocketOwner,
  WRITE,
  type Written,
} from './byte-socket.ts'
import { nullOwner } from './null-owner.ts'
import { type ConnectionAddresses, connectionAddresses } from './proxy-header.ts'
import { ReadQueue, type ReadQueueOwner } from './read-queue.ts'
import { type SocketEvent, type SocketState, stateAfter } from './socket-states.ts'

const EMPTY = Buffer.alloc(0)
/** Dialled sockets read into this buffer; the bytes are copied out at once. */
const READ_BUFFER = Buffer.allocUnsafeSlow(65_536)
/** Owner of a socket before it is attached, and once it is closed. */
const NULL_OWNER = nullOwner()

/** The stream itself knows what it has still to write and whether it ended; the state says what the owner waits for. */
export abstract class StreamSocket implements ByteSocket, ReadQueueOwner {
  protected owner: ConnectingOwner | SocketOwner = NULL_OWNER
  protected view: Uint8Array = EMPTY
  protected readonly queue = new ReadQueue(this)
  #state: SocketState

  constructor(state: SocketState) {
    this.#state = state
  }

  /** The stream that the owner reads and writes. */
  protected abstract readonly socket: Socket

  protected get state(): SocketState {
    return this.#state
  }

  protected advance(event: SocketEvent): void {
    this.#state = stateAfter(this.#state, event)
  }

  get remoteAddress(): string {
    return this.socket.remoteAddress ?? ''
  }

  get addresses(): ConnectionAddresses | null {
    const { remoteAddress, remotePort, localAddress, localPort } = this.socket
    return connectionAddresses(remoteAddress, remotePort, localAddress, localPort)
  }

  protected get hasOwner(): boolean {
    return this.owner !== NULL_OWNER
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

  /** Takes bytes that were read into memory that is used again. */
  protected arrived(bytes: Uint8Array): void {
    this.guarded(() => {
      if (this.queue.isClear && bytes.length <= this.view.length) this.receive(bytes)
      else this.queue.add(Uint8Array.from(bytes))
    })
  }

  receive(bytes: Uint8Array): number {
    if (!this.hasOwner) return 0
    const length = Math.min(bytes.length, this.view.length)
    this.view.set(length === bytes.length ? bytes : bytes.subarray(0, length))
    const next = this.owner.onBytes(length)
    if (next !== undefined) this.view = next
    return this.hasOwner ? length : 0
  }

  setReading(on: boolean): void {
    if (on === this.queue.isReading) return
    if (this.queue.setReading(on)) this.socket.resume()
    else if (!on) this.socket.pause()
  }

  resume(): void {
    if (this.hasOwner) this.socket.resume()
  }

  /** May come while the owner does not read: a paused stream that is empty reads on by itself. */
  protected ended(): void {
    this.guarded(() => this.queue.end(() => this.owner.onEnd()))
  }

  /** Both sides ended. What the owner has still to read is not lost. */
  protected closed(): void {
    if (!this.queue.hasPendingEnd) this.lost('ECONNRESET')
  }

  protected lost(code: string): void {
    this.guarded(owner => {
      this.destroy()
      owner.onLost(code)
    })
  }

  /** Calls the owner; an exception goes to the owner, not to the thread. */
  protected guarded(call: (owner: SocketOwner) => void): void {
    const { owner } = this
    try {
      call(owner)
    } catch (error) {
      owner.onError(error)
    }
  }

  threw(error: unknown): void {
    this.owner.onError(error)
  }

  // ---- writing and ending -----------------------------------------------------------------------------------------

  write(bytes: Uint8Array): Written {
    const { socket } = this
    if (!socket.writable) return WRITE.FAILED
    socket.write(bytes)
    if (socket.destroyed) return WRITE.FAILED
    if (socket.writableLength === 0) return WRITE.DONE
    if (!this.#isBlocked) {
      this.advance('BLOCK')
      this.#awaitDrain()
    }
    return WRITE.PENDING
  }

  get #isBlocked(): boolean {
    return this.#state === 'BLOCKED' || this.#state === 'ENDING_BLOCKED'
  }

  /** Puts an empty write behind the others: its callback reports that they have left, below the high-water mark too. */
  #awaitDrain(): void {
    this.socket.write(EMPTY, error => {
      if (error || !this.#isBlocked) return
      if (this.socket.writableLength === 0) {
        this.advance('DRAIN')
        this.guarded(owner => owner.onDrained())
      } else this.#awaitDrain()
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
    this.owner = NULL_OWNER
    if (this.#state !== 'CLOSED') this.advance('CLOSE')
  }
}

/**
 * While a FIN is under way a reset is refused, and the handle would stay open; all bytes are with the kernel then
 * (D50).
 */
export function resetStream(socket: Socket): void {
  if (socket.writableEnded && !socket.writableFinished && socket.writableLength === 0) socket.destroy()
  else socket.resetAndDestroy()
}

/** A TCP socket, which TLS may be put upon. */
abstract class PlainSocket extends StreamSocket {
  protected override readonly socket: Socket

  constructor(socket: Socket) {
    super('READY')
    this.socket = socket
    socket.setNoDelay(true)
  }

  /** Hands the stream over to TLS; `sink` gets what is read. The owner hears nothing more. */
  release(sink: (bytes: Buffer) => void): Socket {
    this.detach()
    for (const event of ['end', 'error', 'close', 'data', 'connect']) this.socket.removeAllListeners(event)
    this.readInto(sink)
    return this.socket
  }

  protected abstract readInto(sink: (bytes: Buffer) => void): void
}

/** Takes the stream out of a socket of this level, for TLS on top of it. `sink` gets what is read. */
export function releaseStream(socket: ByteSocket, sink: (bytes: Buffer) => void): Socket {
  if (!(socket instanceof PlainSocket)) throw new Error('not a socket on streams')
  return socket.release(sink)
}

class AcceptedSocket extends PlainSocket {
  override attach(owner: SocketOwner, view: Uint8Array): void {
    const isFirst = !this.hasOwner
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
      buffer: READ_BUFFER,
      callback: (length: number) => {
        this.#sink(READ_BUFFER.subarray(0, length))
        return true
      },
    }
    super(connect({ host: address, port, allowHalfOpen: true, onread }))
    this.owner = owner
    this.view = view
    this.listen(this.socket)
    this.socket.on('connect', () => {
      if (this.hasOwner) this.guarded(() => owner.onConnected())
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
    // Later errors are failed accepts, which concern no open connection.
    server.on('error', reject)
    server.listen(listenTarget(options, BACKLOG), () => {
      const { port } = server.address() as { port: number }
      resolve({ port, fd: descriptorOf(server), close: () => void server.close() })
    })
    return promise
  },
}
