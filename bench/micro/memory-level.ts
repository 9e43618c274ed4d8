/** Sockets without a kernel: what is received is copied into the view of the owner, what is written is dropped. */
import type { ByteSocket, ConnectingOwner, SocketLevel, SocketOwner } from '../../src/socket/byte-socket.ts'

export class MemorySocket implements ByteSocket {
  readonly remoteAddress = '127.0.0.1'
  readonly addresses = null
  readonly peerThumbprint = ''
  writes = 0
  closes = 0
  /** The last write, where it is recorded. */
  text = ''
  records = true
  #owner!: SocketOwner
  #view!: Uint8Array

  attach(owner: SocketOwner, view: Uint8Array): void {
    this.#owner = owner
    this.#view = view
  }

  write(bytes: Uint8Array): 0 {
    this.writes++
    if (this.records) this.text = Buffer.from(bytes).toString('latin1')
    return 0
  }

  /** Puts bytes where the owner reads them; `announce` follows. */
  fill(bytes: Uint8Array): void {
    this.#view.set(bytes)
  }

  /** Tells the owner that so many bytes have come. */
  announce(length: number): void {
    this.#view = this.#owner.onBytes(length) ?? this.#view
  }

  serves(): boolean {
    return true
  }

  setReading(): void {}

  end(): void {
    this.closes++
  }

  destroy(): void {
    this.closes++
  }

  reset(): void {
    this.closes++
  }
}

export class MemoryLevel implements SocketLevel {
  readonly name = 'handles'
  readonly dialled: MemorySocket[] = []
  accept!: (socket: ByteSocket) => void

  async listen(_options: unknown, onConnection: (socket: ByteSocket) => void) {
    this.accept = onConnection
    return { port: 1, fd: -1, close: () => {} }
  }

  dial(_address: string, _port: number, owner: ConnectingOwner, view: Uint8Array): MemorySocket {
    const socket = new MemorySocket()
    socket.attach(owner, view)
    this.dialled.push(socket)
    queueMicrotask(() => owner.onConnected())
    return socket
  }
}
