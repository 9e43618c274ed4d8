/**
 * TLS on libuv handles: Node's TLSWrap over the TCP handle, without a stream or an emitter per connection. Written
 * against src/crypto/crypto_tls.cc and lib/internal/tls/wrap.js of Node 26; the self-test checks that they still fit.
 *
 * Rules of TLSWrap. One write at a time: a second one before the first has called back aborts the process. No write
 * inside a callback of OpenSSL (`onhandshakedone`). Bytes are encrypted, so copied, when a write returns; its end is
 * reported later. Reading does not stop at once: all records of one TCP read still come.
 */
import { getSystemErrorName } from 'node:util'
import {
  type ByteSocket,
  type ConnectingOwner,
  type SocketOwner,
  type TlsFailure,
  WRITE,
  type Written,
} from './byte-socket.ts'
import { addressesOf, peerAddressOf, type TcpHandle } from './handle-socket.ts'
import { nullOwner } from './null-owner.ts'
import type { ConnectionAddresses } from './proxy-header.ts'
import { ReadQueue, type ReadQueueOwner } from './read-queue.ts'
import { type SocketEvent, type SocketState, stateAfter } from './socket-states.ts'
import { handshakeAborted, handshakeError, isTlsCode, tlsError, TRUNCATED } from './tls-errors.ts'
import { bindings, type TlsHandle, type TlsWrite } from './tls-wrap.ts'

/** Most bytes of copies that wait for the write under way; a producer stops at the first. */
const QUEUE_MAX = 4 * 1024 * 1024
/** Longest plain text of a record (RFC 8446 5.1), which TLSWrap delivers at once. */
const RECORD_MAX = 16_384
/** Read buffer of sockets whose owner does not read at the moment; the bytes are copied out at once. */
const SCRATCH = new Uint8Array(RECORD_MAX)

/** Always a copy: the `slice` of a Buffer copies nothing. */
function copyOf(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes)
}

function onread(this: TlsHandle): Uint8Array | undefined {
  const { socket } = this
  const result = bindings.streamState[bindings.readResult]!
  try {
    return result > 0 ? socket.bytesRead(result) : socket.readFailed(result)
  } catch (error) {
    socket.owner.onError(error)
  }
  // The memory of the owner's view may belong to another connection by now.
  return socket.isClosed ? SCRATCH : undefined
}

function onwritten(this: TlsWrite, status: number): void {
  const { socket } = this
  try {
    socket.written(status)
  } catch (error) {
    socket.owner.onError(error)
  }
}

function onhandshakedone(this: TlsHandle): void {
  const { socket } = this
  try {
    socket.handshakeDone()
  } catch (error) {
    socket.owner.onError(error)
  }
}

function onerror(this: TlsHandle, error: NodeJS.ErrnoException): void {
  const { socket } = this
  try {
    socket.tlsFailed(error)
  } catch (thrown) {
    socket.owner.onError(thrown)
  }
}

function onsettled(socket: TlsHandleSocket): void {
  try {
    socket.settle()
  } catch (error) {
    socket.owner.onError(error)
  }
}

function onclosed(this: TcpHandle): void {
  const socket = this.socket as TlsHandleSocket
  socket.tls?.destroySSL()
}

/** Owner of a socket before it is attached, and once it is closed: ignores late callbacks. */
const NULL_OWNER = nullOwner()

export abstract class TlsHandleSocket implements ByteSocket, ReadQueueOwner {
  owner: ConnectingOwner | SocketOwner = NULL_OWNER
  tls: TlsHandle | null = null
  protected readonly tcp: TcpHandle
  protected view: Uint8Array = SCRATCH
  #state: SocketState = 'HANDSHAKE'
  readonly #readQueue = new ReadQueue(this)
  /** The view that the handle reads into: the owner's, or SCRATCH while the owner does not read. */
  #readView: Uint8Array = SCRATCH
  /** Copies of writes that wait for the handshake or for the write under way. */
  #writeQueue: Uint8Array[] = []
  #queuedBytes = 0

  constructor(tcp: TcpHandle) {
    this.tcp = tcp
    tcp.socket = this
  }

  /** Why the peer of a finished handshake is not accepted, or null. */
  protected abstract peerFailure(tls: TlsHandle): TlsFailure | null
  /** The handshake is done, and writing is allowed. */
  protected abstract opened(): void

  #advance(event: SocketEvent): void {
    this.#state = stateAfter(this.#state, event)
  }

  get remoteAddress(): string {
    return peerAddressOf(this.tcp)
  }

  get addresses(): ConnectionAddresses | null {
    return addressesOf(this.tcp)
  }

  get isClosed(): boolean {
    return this.#state === 'CLOSED' || this.#state === 'LEAVING'
  }

  get #isShaking(): boolean {
    return this.#state === 'HANDSHAKE' || this.#state === 'HANDSHAKE_ENDING'
  }

  get #isSettling(): boolean {
    return this.#state === 'SETTLING' || this.#state === 'SETTLING_ENDING'
  }

  protected get isOpen(): boolean {
    return !this.isClosed && !this.#isShaking && !this.#isSettling
  }

  attach(owner: SocketOwner, view: Uint8Array): void {
    this.owner = owner
    this.view = view
    if (this.#readView !== SCRATCH) this.#readInto(view)
    this.setReading(true)
  }

  serves(_authority: string): boolean {
    return true
  }

  get peerThumbprint(): string {
    return ''
  }

  /** Starts TLS on the handle. Bytes are read into the owner's view from now on. */
  protected startTls(tls: TlsHandle): void {
    this.tls = tls
    tls.socket = this
    tls.onread = onread
    tls.onerror = onerror
    tls.onhandshakedone = onhandshakedone
    this.#readInto(this.view)
    tls.readStart()
  }

  #readInto(view: Uint8Array): void {
    this.#readView = view
    this.tls?.useUserBuffer(view)
  }

  // ---- the handshake ----------------------------------------------------------------------------------------------

  /** Called by OpenSSL in the midst of its work: nothing may be written here. */
  handshakeDone(): void {
    if (!this.#isShaking) return
    const failure = this.peerFailure(this.tls!)
    if (failure !== null) {
      this.refuse(failure)
      return
    }
    this.#advance('SHAKEN')
    setImmediate(onsettled, this)
    if (!this.#readQueue.isReading) this.tls!.readStop()
  }

  settle(): void {
    if (!this.#isSettling) return
    this.#advance('OPEN')
    const ends = this.#state === 'ENDING'
    const hasQueued = this.#writeQueue.length > 0
    if (hasQueued) this.#advance('BLOCK')
    this.opened()
    if (hasQueued && this.isOpen) this.#sendQueue()
    else if (ends && this.#state === 'ENDING') this.#shut()
    if (this.isOpen) this.#readQueue.flushLater()
  }

  /** The handshake has failed, or its peer is not accepted. */
  refuse(failure: TlsFailure): void {
    if (!this.#isShaking) return
    const { owner } = this
    this.#close()
    owner.onTlsFailed(failure)
  }

  threw(error: unknown): void {
    this.owner.onError(error)
  }

  /** OpenSSL cannot go on. Its alert, if it had one to send, is with the kernel. */
  tlsFailed(error: NodeJS.ErrnoException): void {
    const code = error.code ?? 'ERR_SSL_UNKNOWN'
    if (this.#isShaking) this.refuse(handshakeError(code))
    else if (!isTlsCode(code)) this.#lost(code)
    else if (!this.isClosed) {
      const { owner } = this
      this.#close()
      owner.onTlsFailed(tlsError(code))
    }
  }

  // ---- reading ----------------------------------------------------------------------------------------------------

  /** `length` bytes were read into the view of the handle. Returns the view for the next read, undefined to keep it. */
  bytesRead(length: number): Uint8Array | undefined {
    if (this.#readView === this.view && this.isOpen && this.#readQueue.isClear) {
      const next = this.owner.onBytes(length)
      if (next !== undefined) this.view = next
      if (this.isClosed) return SCRATCH
      if (this.#readView === this.view) return undefined
      this.#readView = this.view
      return this.view
    }
    this.#readQueue.add(copyOf(this.#readView.subarray(0, length)))
    const next = !this.isClosed && this.#readQueue.isClear ? this.view : SCRATCH
    this.#readView = next
    return next
  }

  receive(bytes: Uint8Array): number {
    if (!this.isOpen) return 0
    const length = Math.min(bytes.length, this.view.length)
    this.view.set(length === bytes.length ? bytes : bytes.subarray(0, length))
    this.view = this.owner.onBytes(length) ?? this.view
    return this.isClosed ? 0 : length
  }

  resume(): void {
    if (!this.isClosed) this.tls!.readStart()
  }

  readFailed(result: number): undefined {
    if (this.isClosed) return
    const isEnd = result === bindings.endOfFile
    if (this.#isShaking) this.refuse(handshakeAborted(isEnd ? '' : getSystemErrorName(result)))
    else if (!isEnd) this.#lost(getSystemErrorName(result))
    // After close_notify TCP reads on, or was stopped before; only after a FIN can it be started again (D34).
    else if (this.#readQueue.isReading && this.tcp.readStart() === 0) this.#readQueue.end(() => this.#lost(TRUNCATED))
    else this.#readQueue.end(() => this.owner.onEnd())
  }

  setReading(on: boolean): void {
    if (on === this.#readQueue.isReading || this.isClosed) return
    const goesOn = this.#readQueue.setReading(on)
    if (!this.isOpen) return
    if (!on) this.tls!.readStop()
    else if (goesOn) this.tls!.readStart()
  }

  // ---- writing ----------------------------------------------------------------------------------------------------

  write(bytes: Uint8Array): Written {
    switch (this.#state) {
      case 'READY':
        return bytes.length === 0 ? WRITE.DONE : this.#send(bytes)
      case 'HANDSHAKE':
      case 'SETTLING':
        return this.#enqueue(bytes)
      case 'WRITING':
      case 'BLOCKED': {
        const written = this.#enqueue(bytes)
        if (written === WRITE.PENDING) this.#advance('BLOCK')
        return written
      }
      default:
        return WRITE.FAILED
    }
  }

  #enqueue(bytes: Uint8Array): Written {
    if (this.#queuedBytes + bytes.length > QUEUE_MAX) return WRITE.FAILED
    this.#writeQueue.push(copyOf(bytes))
    this.#queuedBytes += bytes.length
    return WRITE.PENDING
  }

  #send(bytes: Uint8Array): Written {
    const tls = this.tls!
    // Something of TLS itself may be on its way, and then these bytes leave behind it.
    const leavesNow = tls.writeQueueSize === 0
    const request = tls.writeBuffer(null, bytes)
    if (typeof request === 'number' || (request.writeStatus ?? 0) < 0) {
      this.#advance('FAIL')
      return WRITE.FAILED
    }
    request.socket = this
    request.oncomplete = onwritten
    if (leavesNow && this.tcp.writeQueueSize === 0) {
      this.#advance('SEND')
      return WRITE.DONE
    }
    this.#advance('BLOCK')
    return WRITE.PENDING
  }

  /** The write under way has called back. Most writes are done when they return, and nothing waits for them. */
  written(status: number): void {
    const state = this.#state
    if (state === 'CLOSED') return
    if (state === 'LEAVING') {
      if (status >= 0) this.#shut()
      this.#close()
    } else if (status < 0) {
      this.#advance('FAIL')
      if (state === 'BLOCKED' || state === 'ENDING_BLOCKED') this.owner.onWriteFailed(getSystemErrorName(status))
    } else if (this.#writeQueue.length > 0) this.#sendQueue()
    else {
      this.#advance('DRAIN')
      if (state === 'BLOCKED' || state === 'ENDING_BLOCKED') this.owner.onDrained()
      // A socket that was in ENDING cannot have been written to meanwhile.
      if (state !== 'WRITING' && state !== 'BLOCKED' && this.#state === 'ENDING') this.#shut()
    }
  }

  #sendQueue(): void {
    const bytes = this.#writeQueue.length === 1 ? this.#writeQueue[0]! : Buffer.concat(this.#writeQueue)
    this.#writeQueue = []
    this.#queuedBytes = 0
    const written = this.#send(bytes)
    if (written === WRITE.FAILED) this.owner.onWriteFailed('EPIPE')
    else if (written === WRITE.DONE) this.owner.onDrained()
  }

  // ---- endings ----------------------------------------------------------------------------------------------------

  end(): void {
    switch (this.#state) {
      case 'READY':
        this.#shut()
        return
      case 'HANDSHAKE':
      case 'SETTLING':
      case 'WRITING':
      case 'BLOCKED':
        this.#advance('END')
    }
  }

  /** Sends close_notify and FIN. */
  #shut(): void {
    this.#advance('SHUT')
    const request = new bindings.ShutdownWrap()
    request.oncomplete = () => this.#finished()
    if (this.tls!.shutdown(request) !== 0) this.#finished()
  }

  #finished(): void {
    if (this.#state === 'SHUTTING') this.#advance('FINISH')
  }

  /** The kernel has all bytes unless some wait; close_notify, which makes them whole for the peer, goes behind them. */
  destroy(): void {
    switch (this.#state) {
      case 'CLOSED':
      case 'LEAVING':
        return
      case 'WRITING':
      case 'ENDING':
        this.#advance('LEAVE')
        this.owner = NULL_OWNER
        this.#writeQueue = []
        this.tls!.readStop()
        return
      case 'READY':
        this.#shut()
    }
    this.#close()
  }

  reset(): void {
    if (this.isClosed) return
    // While a FIN is under way a reset is refused, and Node would take the handle for closed all the same (D50).
    const isShutting = this.#state === 'SHUTTING'
    this.#leave()
    if (isShutting) this.tcp.close(onclosed)
    else this.tcp.reset(onclosed)
  }

  #lost(code: string): void {
    if (this.isClosed) return
    const { owner } = this
    this.#close()
    owner.onLost(code)
  }

  #close(): void {
    this.#leave()
    this.tcp.close(onclosed)
  }

  #leave(): void {
    this.#advance('CLOSE')
    this.owner = NULL_OWNER
    this.#writeQueue = []
  }
}
