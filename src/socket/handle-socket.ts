/**
 * Sockets on libuv handles: the level of HAProxy in CPU per request, at the price of Node's internals. Used only where
 * the self-test recognised them (see self-test.ts); the streams of stream-socket.ts do the same on public API.
 */
import { createServer, isIP } from 'node:net'
import { getSystemErrorName } from 'node:util'
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

/** The members of Node's TCP handle that are used here, as seen in Node 26. */
export interface TcpHandle {
  onread: (this: TcpHandle) => Uint8Array | undefined
  /** Who uses the handle; it lives as long as the handle is open. */
  sluice: unknown
  /** Bytes that the kernel has not taken yet. */
  readonly writeQueueSize: number
  useUserBuffer(view: Uint8Array): void
  readStart(): number
  readStop(): number
  /** A number when it completed (0) or failed; else the request, whose `oncomplete` is called. */
  writeBuffer(request: WriteRequest | null, bytes: Uint8Array): number | WriteRequest
  shutdown(request: ShutdownRequest): number
  setNoDelay(on: boolean): number
  getpeername(into: { address?: string }): number
  connect(request: ConnectRequest, address: string, port: number): number
  connect6(request: ConnectRequest, address: string, port: number): number
  close(onClosed?: (this: TcpHandle) => void): void
  reset(onClosed?: (this: TcpHandle) => void): number
}
interface ListeningHandle {
  onconnection: (status: number, handle: TcpHandle) => void
  setNoDelay(on: boolean): number
}
interface WriteRequest {
  sluice: HandleSocket
  bytes: Uint8Array
  oncomplete: (this: WriteRequest, status: number) => void
}
export interface ShutdownRequest {
  oncomplete: () => void
}
interface ConnectRequest {
  sluice: HandleSocket
  oncomplete: (this: ConnectRequest, status: number) => void
}
interface Bindings {
  readonly TCP: { new (type: number): TcpHandle }
  readonly TCPConnectWrap: { new (): ConnectRequest }
  readonly ShutdownWrap: { new (): ShutdownRequest }
  readonly SOCKET: number
  readonly streamState: Int32Array
  readonly readResult: number
  readonly endOfFile: number
}

/** Throws where the internals are not as expected or not permitted. */
export function bindHandles(): Bindings {
  const binding = (process as unknown as { binding(name: string): Record<string, never> }).binding
  const tcp = binding.call(process, 'tcp_wrap') as unknown as {
    TCP: Bindings['TCP']
    TCPConnectWrap: Bindings['TCPConnectWrap']
    constants: { SOCKET: number }
  }
  const stream = binding.call(process, 'stream_wrap') as unknown as {
    ShutdownWrap: Bindings['ShutdownWrap']
    streamBaseState: Int32Array
    kReadBytesOrError: number
  }
  const { UV_EOF } = binding.call(process, 'uv') as unknown as { UV_EOF: number }
  return {
    TCP: tcp.TCP,
    TCPConnectWrap: tcp.TCPConnectWrap,
    ShutdownWrap: stream.ShutdownWrap,
    SOCKET: tcp.constants.SOCKET,
    streamState: stream.streamBaseState,
    readResult: stream.kReadBytesOrError,
    endOfFile: UV_EOF,
  }
}

let bindings: Bindings

function onread(this: TcpHandle): Uint8Array | undefined {
  const result = bindings.streamState[bindings.readResult]!
  const sluice = this.sluice as HandleSocket
  const { owner } = sluice
  try {
    if (result > 0) return owner.onBytes(result)
    if (result < 0) sluice.readFailed(result)
  } catch (error) {
    owner.onBug(error)
  }
  return undefined
}

function onwritten(this: WriteRequest, status: number): void {
  const { owner } = this.sluice
  try {
    this.sluice.written(status)
  } catch (error) {
    owner.onBug(error)
  }
}

function onconnected(this: ConnectRequest, status: number): void {
  const { owner } = this.sluice
  try {
    this.sluice.connected(status)
  } catch (error) {
    owner.onBug(error)
  }
}

/** Before a socket is attached or dialled. */
const FRESH = nobody()
/** Once a socket is closed: callbacks that were under way find nobody. */
const NOBODY = nobody()

class HandleSocket implements ByteSocket {
  /** Without TLS nobody shows anything. */
  readonly peerThumbprint = ''
  owner: ConnectingOwner | SocketOwner = FRESH
  readonly #handle: TcpHandle
  #pendingWrites = 0
  #view: Uint8Array | null = null
  #isReading = false
  /** The end goes out behind the writes that wait. */
  #endAsked = false
  /** A FIN that has not called back. */
  #isShutting = false

  constructor(handle: TcpHandle) {
    this.#handle = handle
    handle.sluice = this
  }

  get remoteAddress(): string {
    const peer: { address?: string } = {}
    this.#handle.getpeername(peer)
    return peer.address ?? ''
  }

  attach(owner: SocketOwner, view: Uint8Array): void {
    this.owner = owner
    this.#handle.onread = onread
    this.#handle.useUserBuffer(view)
    this.#isReading = true
    this.#handle.readStart()
  }

  serves(): boolean {
    return true
  }

  dial(address: string, port: number, owner: ConnectingOwner, view: Uint8Array): void {
    this.owner = owner
    this.#view = view
    const request = new bindings.TCPConnectWrap()
    request.sluice = this
    request.oncomplete = onconnected
    const handle = this.#handle
    const failed =
      isIP(address) === 6 ? handle.connect6(request, address, port) : handle.connect(request, address, port)
    if (failed !== 0) process.nextTick(() => onconnected.call(request, failed))
  }

  connected(status: number): void {
    const owner = this.owner as ConnectingOwner
    if (owner === NOBODY) return
    if (status !== 0) this.#lost(status)
    else {
      this.#handle.setNoDelay(true)
      this.attach(owner, this.#view!)
      this.#view = null
      owner.onConnected()
    }
  }

  write(bytes: Uint8Array): Written {
    const result = this.#handle.writeBuffer(null, bytes)
    if (result === 0) return WRITE.DONE
    if (typeof result === 'number') return WRITE.FAILED
    result.sluice = this
    result.bytes = bytes
    result.oncomplete = onwritten
    this.#pendingWrites++
    return WRITE.PENDING
  }

  written(status: number): void {
    this.#pendingWrites--
    if (status < 0) this.owner.onWriteFailed(getSystemErrorName(status))
    else if (this.#pendingWrites === 0) {
      this.owner.onDrained()
      if (this.#endAsked && this.owner !== NOBODY) this.#shut()
    }
  }

  readFailed(result: number): void {
    if (result === bindings.endOfFile) this.owner.onEnd()
    else this.#lost(result)
  }

  setReading(on: boolean): void {
    if (on === this.#isReading || this.owner === NOBODY) return
    this.#isReading = on
    if (on) this.#handle.readStart()
    else this.#handle.readStop()
  }

  end(): void {
    if (this.owner === NOBODY || this.#endAsked) return
    this.#endAsked = true
    if (this.#pendingWrites === 0) this.#shut()
  }

  /** Never before all writes are done: from here on a reset is refused until the FIN has left. */
  #shut(): void {
    const request = new bindings.ShutdownWrap()
    request.oncomplete = () => {
      this.#isShutting = false
    }
    this.#isShutting = this.#handle.shutdown(request) === 0
  }

  destroy(): void {
    if (this.owner === NOBODY) return
    this.owner = NOBODY
    this.#handle.close()
  }

  reset(): void {
    if (this.owner === NOBODY) return
    this.owner = NOBODY
    // While a FIN is under way a reset is refused, and Node would take the handle for closed all the same: it would
    // stay open for good, with the bytes that wait. All of those are with the kernel by now, so a close has to do.
    if (this.#isShutting) this.#handle.close()
    else this.#handle.reset()
  }

  #lost(status: number): void {
    const { owner } = this
    if (owner === NOBODY) return
    this.destroy()
    owner.onLost(getSystemErrorName(status))
  }

  /** Hands the handle over to somebody else. The owner hears nothing more; the socket is of no more use. */
  release(): TcpHandle {
    this.owner = NOBODY
    return this.#handle
  }
}

/** The handle of a socket of this level, for TLS on top of it. */
export function releaseHandle(socket: ByteSocket): TcpHandle {
  if (!(socket instanceof HandleSocket)) throw new Error('not a socket on handles')
  return socket.release()
}

const BACKLOG = 4096

/** Throws where Node's internals are not as expected. */
export function handleLevel(): SocketLevel {
  bindings = bindHandles()
  return {
    name: 'handles',
    dial(address, port, owner, view) {
      const socket = new HandleSocket(new bindings.TCP(bindings.SOCKET))
      socket.dial(address, port, owner, view)
      return socket
    },
    listen: listenOnHandles,
  }
}

function listenOnHandles(options: ListenOptions, onConnection: (socket: ByteSocket) => void): Promise<Listening> {
  const server = createServer()
  const { promise, resolve, reject } = Promise.withResolvers<Listening>()
  server.once('error', reject)
  const where = options.host === '' ? { port: options.port } : { port: options.port, host: options.host }
  server.listen({ ...where, backlog: BACKLOG, reusePort: options.reusePort }, () => {
    const listener = (server as unknown as { _handle: ListeningHandle })._handle
    // Linux hands the option on to accepted sockets: one system call less for each.
    const inherits = process.platform === 'linux'
    if (inherits) listener.setNoDelay(true)
    listener.onconnection = (status, handle) => {
      // A failed accept (out of descriptors) concerns no connection we have; the next one may succeed.
      if (status !== 0) return
      if (!inherits) handle.setNoDelay(true)
      onConnection(new HandleSocket(handle))
    }
    resolve({ port: (server.address() as { port: number }).port, close: () => void server.close() })
  })
  return promise
}
