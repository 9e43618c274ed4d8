/** A dialer whose connections the test opens, and whose writes the test lets fail. */
import {
  type ByteSocket,
  type ConnectingOwner,
  type Dialer,
  type SocketOwner,
  WRITE,
  type Written,
} from '../../src/socket/byte-socket.ts'

/** A real socket that is dialled by `open`, and whose writes fail after `breakWrites`. */
export class ScriptedSocket implements ByteSocket {
  readonly peerThumbprint = ''
  readonly addresses = null
  readonly #dial: () => ByteSocket
  #inner: ByteSocket | null = null
  #owner: SocketOwner
  #isBroken = false
  isDestroyed = false

  constructor(dial: () => ByteSocket, owner: ConnectingOwner) {
    this.#dial = dial
    this.#owner = owner
  }

  open(): void {
    this.#inner = this.#dial()
  }

  /** Fails the pending write and all further writes; bytes of the peer are still read. */
  breakWrites(): void {
    this.#isBroken = true
    this.#owner.onWriteFailed('EPIPE')
  }

  get remoteAddress(): string {
    return this.#inner?.remoteAddress ?? ''
  }

  attach(owner: SocketOwner, view: Uint8Array): void {
    this.#owner = owner
    this.#inner!.attach(owner, view)
  }

  serves(): boolean {
    return true
  }

  write(bytes: Uint8Array): Written {
    return this.#isBroken ? WRITE.FAILED : this.#inner!.write(bytes)
  }

  setReading(on: boolean): void {
    this.#inner?.setReading(on)
  }

  end(): void {
    this.#inner?.end()
  }

  destroy(): void {
    this.isDestroyed = true
    this.#inner?.destroy()
  }

  reset(): void {
    this.isDestroyed = true
    this.#inner?.reset()
  }
}

export class ScriptedDialer {
  readonly sockets: ScriptedSocket[] = []
  /** Opens connections at once; otherwise the test opens them. */
  opensAtOnce = true

  wrap(dialer: Dialer): Dialer {
    return {
      dial: (address, port, owner, view) => {
        const socket = new ScriptedSocket(() => dialer.dial(address, port, owner, view), owner)
        this.sockets.push(socket)
        if (this.opensAtOnce) socket.open()
        return socket
      },
    }
  }
}
