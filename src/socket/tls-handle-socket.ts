/**
 * TLS on libuv handles: Node's TLSWrap over the TCP handle, without a stream or an emitter per connection. Read against
 * src/crypto/crypto_tls.cc and lib/internal/tls/wrap.js of Node 26; the self-test sees that it is still so.
 *
 * What TLSWrap demands of its user. One write at a time: a second one while the first has not called back aborts the
 * process. No write from inside a callback of OpenSSL (`onhandshakedone`). Bytes are encrypted, so copied, when a write
 * returns; that it is over is always told later. Reading does not stop at once: the records of one TCP read all come.
 */
import { getSystemErrorName } from 'node:util'
import { Backlog, type Receiver } from './backlog.ts'
import { type ByteSocket, type ConnectingOwner, type SocketOwner, WRITE, type Written } from './byte-socket.ts'
import type { TcpHandle } from './handle-socket.ts'
import { nobody } from './nobody.ts'
import { brokenOffFault, handshakeFault, lossOf, TRUNCATED } from './tls-verdict.ts'
import { bindings, type TlsHandle, type TlsWrite } from './tls-wrap.ts'

/** Copies of writes that wait for the one under way; a producer stops at the first. */
const QUEUE_MAX = 4 * 1024 * 1024
/** Longest plain text of a record (RFC 8446 5.1): what TLSWrap delivers at once. */
const RECORD_MAX = 16_384
/** Where bytes land that the owner does not read at the moment; they are copied out at once. */
const SCRATCH = new Uint8Array(RECORD_MAX)

/** A view of an owner can be a Buffer, whose `slice` copies nothing. */
function copyOf(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes)
}

function onread(this: TlsHandle): Uint8Array | undefined {
  const { sluice } = this
  const result = bindings.streamState[bindings.readResult]!
  try {
    return result > 0 ? sluice.landed(result) : sluice.readFailed(result)
  } catch (error) {
    sluice.owner.onBug(error)
  }
  // The memory of the owner's view may be somebody else's by now.
  return sluice.isClosed ? SCRATCH : undefined
}

function onwritten(this: TlsWrite, status: number): void {
  const { sluice } = this
  try {
    sluice.written(status)
  } catch (error) {
    sluice.owner.onBug(error)
  }
}

function onhandshakedone(this: TlsHandle): void {
  const { sluice } = this
  try {
    sluice.shaken()
  } catch (error) {
    sluice.owner.onBug(error)
  }
}

function onerror(this: TlsHandle, error: NodeJS.ErrnoException): void {
  const { sluice } = this
  try {
    sluice.failed(error)
  } catch (bug) {
    sluice.owner.onBug(bug)
  }
}

function onsettled(sluice: TlsHandleSocket): void {
  try {
    sluice.settle()
  } catch (error) {
    sluice.owner.onBug(error)
  }
}

function onclosed(this: TcpHandle): void {
  const sluice = this.sluice as TlsHandleSocket
  sluice.tls?.destroySSL()
}

/** Before a socket is attached, and once it is closed: callbacks that were under way find nobody. */
const NOBODY = nobody()

const STAGE = {
  HANDSHAKE: 0,
  /** The handshake is done, but OpenSSL has not returned from it. */
  SETTLING: 1,
  OPEN: 2,
  CLOSED: 3,
} as const
type Stage = (typeof STAGE)[keyof typeof STAGE]

export abstract class TlsHandleSocket implements ByteSocket, Receiver {
  owner: ConnectingOwner | SocketOwner = NOBODY
  tls: TlsHandle | null = null
  protected readonly tcp: TcpHandle
  protected view: Uint8Array = SCRATCH
  #stage: Stage = STAGE.HANDSHAKE
  readonly #backlog = new Backlog(this)
  /** The view that the handle reads into: the owner's, or SCRATCH while the owner does not read. */
  #landing: Uint8Array = SCRATCH
  /** A write has not called back. */
  #isWriting = false
  /** The owner was told that it waits. */
  #isPending = false
  #isBroken = false
  #isShut = false
  /** A FIN that has not called back. */
  #isShutting = false
  #endAsked = false
  #queue: Uint8Array[] = []
  #queued = 0

  constructor(tcp: TcpHandle) {
    this.tcp = tcp
    tcp.sluice = this
  }

  /** Why the peer of a finished handshake is not to be talked to, or null. */
  protected abstract fault(tls: TlsHandle): string | null
  /** The handshake is done, and writing is allowed. */
  protected abstract opened(): void

  get remoteAddress(): string {
    const peer: { address?: string } = {}
    this.tcp.getpeername(peer)
    return peer.address ?? ''
  }

  get isClosed(): boolean {
    return this.#stage === STAGE.CLOSED
  }

  protected get isOpen(): boolean {
    return this.#stage === STAGE.OPEN
  }

  attach(owner: SocketOwner, view: Uint8Array): void {
    this.owner = owner
    this.view = view
    if (this.#landing !== SCRATCH) this.#land(view)
    this.setReading(true)
  }

  serves(_authority: string): boolean {
    return true
  }

  get peerThumbprint(): string {
    return ''
  }

  /** Starts TLS on the handle. What is read lands in the owner's view from now on. */
  protected secure(tls: TlsHandle): void {
    this.tls = tls
    tls.sluice = this
    tls.onread = onread
    tls.onerror = onerror
    tls.onhandshakedone = onhandshakedone
    this.#land(this.view)
    tls.readStart()
  }

  #land(view: Uint8Array): void {
    this.#landing = view
    this.tls?.useUserBuffer(view)
  }

  // ---- the handshake ----------------------------------------------------------------------------------------------

  /** Called by OpenSSL in the midst of its work: nothing may be written here. */
  shaken(): void {
    if (this.#stage !== STAGE.HANDSHAKE) return
    const fault = this.fault(this.tls!)
    if (fault !== null) {
      this.refuse(fault)
      return
    }
    this.#stage = STAGE.SETTLING
    setImmediate(onsettled, this)
    if (!this.#backlog.isReading) this.tls!.readStop()
  }

  settle(): void {
    if (this.#stage !== STAGE.SETTLING) return
    this.#stage = STAGE.OPEN
    this.opened()
    if (this.isOpen && !this.#isWriting) this.#sendQueue()
    if (this.isOpen) this.#backlog.flushLater()
  }

  /** The handshake has failed, or its outcome is not acceptable. */
  refuse(cause: string): void {
    if (this.#stage !== STAGE.HANDSHAKE) return
    const { owner } = this
    this.#close()
    owner.onHandshakeFailed(cause)
  }

  threw(error: unknown): void {
    this.owner.onBug(error)
  }

  /** OpenSSL cannot go on. An alert, if it had one to send, is with the kernel. */
  failed(error: NodeJS.ErrnoException): void {
    const code = error.code ?? 'ERR_SSL_UNKNOWN'
    if (this.#stage === STAGE.HANDSHAKE) this.refuse(handshakeFault(code))
    else this.#lost(lossOf(code))
  }

  // ---- reading ----------------------------------------------------------------------------------------------------

  /** `length` bytes are in the view of the handle. Answers the view for the next ones, undefined to keep it. */
  landed(length: number): Uint8Array | undefined {
    if (this.#landing === this.view && this.#stage === STAGE.OPEN && this.#backlog.isClear) {
      const next = this.owner.onBytes(length)
      if (next !== undefined) this.view = next
      if (this.isClosed) return SCRATCH
      if (this.#landing === this.view) return undefined
      this.#landing = this.view
      return this.view
    }
    this.#backlog.add(copyOf(this.#landing.subarray(0, length)))
    const next = !this.isClosed && this.#backlog.isClear ? this.view : SCRATCH
    this.#landing = next
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
    if (this.#stage === STAGE.HANDSHAKE) this.refuse(brokenOffFault(isEnd ? '' : getSystemErrorName(result)))
    else if (!isEnd) this.#lost(getSystemErrorName(result))
    // After close_notify TCP reads on, or was stopped before; only after a FIN it can be started again.
    else if (this.#backlog.isReading && this.tcp.readStart() === 0) this.#backlog.end(() => this.#lost(TRUNCATED))
    else this.#backlog.end(() => this.owner.onEnd())
  }

  setReading(on: boolean): void {
    if (on === this.#backlog.isReading || this.isClosed) return
    const goesOn = this.#backlog.setReading(on)
    if (!this.isOpen) return
    if (!on) this.tls!.readStop()
    else if (goesOn) this.tls!.readStart()
  }

  // ---- writing ----------------------------------------------------------------------------------------------------

  write(bytes: Uint8Array): Written {
    if (this.#isBroken || this.#endAsked || this.isClosed) return WRITE.FAILED
    if (this.#stage !== STAGE.OPEN || this.#isWriting) return this.#enqueue(bytes)
    if (bytes.length === 0) return WRITE.DONE
    const written = this.#send(bytes)
    if (written === WRITE.PENDING) this.#isPending = true
    return written
  }

  #enqueue(bytes: Uint8Array): Written {
    if (this.#queued + bytes.length > QUEUE_MAX) return WRITE.FAILED
    this.#queue.push(copyOf(bytes))
    this.#queued += bytes.length
    this.#isPending = true
    return WRITE.PENDING
  }

  #send(bytes: Uint8Array): Written {
    const tls = this.tls!
    // Something of TLS itself may be on its way, and then these bytes leave behind it.
    const goesOut = tls.writeQueueSize === 0
    const request = tls.writeBuffer(null, bytes)
    if (typeof request === 'number' || (request.writeStatus ?? 0) < 0) {
      this.#isBroken = true
      return WRITE.FAILED
    }
    request.sluice = this
    request.oncomplete = onwritten
    this.#isWriting = true
    return goesOut && this.tcp.writeQueueSize === 0 ? WRITE.DONE : WRITE.PENDING
  }

  written(status: number): void {
    this.#isWriting = false
    if (status < 0) {
      this.#isBroken = true
      if (this.isClosed) this.#closeHandle()
      else if (this.#isPending) this.owner.onWriteFailed(getSystemErrorName(status))
      return
    }
    // Most writes are done when they return, and nothing waits for them to be over.
    if (this.#isPending || this.#endAsked) this.#sendQueue()
  }

  /** Goes on behind the write that has called back. */
  #sendQueue(): void {
    if (this.#queue.length > 0) {
      const bytes = this.#queue.length === 1 ? this.#queue[0]! : Buffer.concat(this.#queue)
      this.#queue = []
      this.#queued = 0
      const written = this.#send(bytes)
      if (written === WRITE.FAILED) this.owner.onWriteFailed('EPIPE')
      if (written !== WRITE.DONE) return
    }
    if (this.#isPending) {
      this.#isPending = false
      this.owner.onDrained()
    }
    if (this.#isWriting) return
    if (this.#endAsked) this.#shut()
    if (this.isClosed) this.#closeHandle()
  }

  // ---- endings ----------------------------------------------------------------------------------------------------

  end(): void {
    if (this.isClosed || this.#endAsked) return
    this.#endAsked = true
    if (this.#stage === STAGE.OPEN && !this.#isWriting && this.#queue.length === 0) this.#shut()
  }

  /** close_notify and FIN. */
  #shut(): void {
    if (this.#isShut || this.#isBroken) return
    this.#isShut = true
    const request = new bindings.ShutdownWrap()
    request.oncomplete = () => {
      this.#isShutting = false
    }
    this.#isShutting = this.tls!.shutdown(request) === 0
  }

  destroy(): void {
    if (this.isClosed) return
    const wasOpen = this.#stage === STAGE.OPEN
    this.owner = NOBODY
    this.#stage = STAGE.CLOSED
    this.#queue = []
    // With the kernel are the bytes already; the end of TLS, which makes them whole for the peer, comes behind them.
    this.#endAsked = wasOpen && !this.#isPending && !this.#isShut
    if (this.#endAsked && this.#isWriting) this.tls!.readStop()
    else {
      if (this.#endAsked) this.#shut()
      this.#closeHandle()
    }
  }

  reset(): void {
    if (this.isClosed) return
    this.owner = NOBODY
    this.#stage = STAGE.CLOSED
    // While a FIN is under way a reset is refused, and Node would take the handle for closed all the same.
    if (this.#isShutting) this.tcp.close(onclosed)
    else this.tcp.reset(onclosed)
  }

  #lost(code: string): void {
    if (this.isClosed) return
    const { owner } = this
    this.#close()
    owner.onLost(code)
  }

  /** Closes a connection to which there is nothing more to say. */
  #close(): void {
    this.owner = NOBODY
    this.#stage = STAGE.CLOSED
    this.#closeHandle()
  }

  #closeHandle(): void {
    this.tcp.close(onclosed)
  }
}
