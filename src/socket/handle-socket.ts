/**
 * Sockets on libuv handles, which are internals of Node: a quarter less CPU per request than streams. Used only where
 * self-test.ts has passed (D17); stream-socket.ts does the same on public API.
 */
import { createServer, isIP } from 'node:net'
import { getSystemErrorName } from 'node:util'
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
import { gather, releaseSlot, type Slot } from './gathered-writes.ts'
import { nullOwner } from './null-owner.ts'
import { type ConnectionAddresses, connectionAddresses } from './proxy-header.ts'
import { type SocketEvent, type SocketState, stateAfter } from './socket-states.ts'

/** The members of Node's TCP handle that are used here, as seen in Node 26. */
export interface TcpHandle {
  onread: (this: TcpHandle) => Uint8Array | undefined
  /** The socket that uses the handle; set as long as the handle is open. */
  socket: unknown
  /** Bytes that the kernel has not taken yet. */
  readonly writeQueueSize: number
  useUserBuffer(view: Uint8Array): void
  readStart(): number
  readStop(): number
  /** Returns 0 when all is written, a negative number on failure, else the request, whose `oncomplete` is called. */
  writeBuffer(request: WriteRequest | null, bytes: Uint8Array): number | WriteRequest
  shutdown(request: ShutdownRequest): number
  setNoDelay(on: boolean): number
  getpeername(into: AddressOut): number
  getsockname(into: AddressOut): number
  connect(request: ConnectRequest, address: string, port: number): number
  connect6(request: ConnectRequest, address: string, port: number): number
  close(onClosed?: (this: TcpHandle) => void): void
  reset(onClosed?: (this: TcpHandle) => void): number
}
/** Filled in by Node; empty where the address is not known any more. */
interface AddressOut {
  address?: string
  port?: number
}
interface ListeningHandle {
  onconnection: (status: number, handle: TcpHandle) => void
  setNoDelay(on: boolean): number
}
interface WriteRequest {
  socket: HandleSocket
  bytes: Uint8Array
  /** The slot of the bytes, if they were gathered. */
  slot: Slot | null
  oncomplete: (this: WriteRequest, status: number) => void
}
export interface ShutdownRequest {
  oncomplete: () => void
}
interface ConnectRequest {
  socket: HandleSocket
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
  const socket = this.socket as HandleSocket
  if (socket.hasGathered) socket.flush()
  const { owner } = socket
  try {
    if (result > 0) {
      const view = owner.onBytes(result)
      return socket.owner === owner ? view : socket.showTo(view)
    }
    if (result < 0) socket.readFailed(result)
  } catch (error) {
    owner.onError(error)
  }
  return undefined
}

function onwritten(this: WriteRequest, status: number): void {
  const { owner } = this.socket
  if (this.slot !== null) releaseSlot(this.slot)
  try {
    this.socket.written(status)
  } catch (error) {
    owner.onError(error)
  }
}

function onconnected(this: ConnectRequest, status: number): void {
  const { owner } = this.socket
  try {
    this.socket.connected(status)
  } catch (error) {
    owner.onError(error)
  }
}

/** Owner of a socket before it is attached or dialled, and once it is closed: ignores late callbacks. */
const NULL_OWNER = nullOwner()

/** Node sets known properties in half the time of new ones. Nobody reads it but `peerAddressOf`, at once. */
const PEER = { address: '', family: '', port: 0 }

/** Address of the peer of a handle; '' where it is not known any more. */
export function peerAddressOf(handle: TcpHandle): string {
  PEER.address = ''
  handle.getpeername(PEER)
  return PEER.address
}

/** Both ends of the connection of a handle. */
export function addressesOf(handle: TcpHandle): ConnectionAddresses | null {
  const [peer, own]: [AddressOut, AddressOut] = [{}, {}]
  handle.getpeername(peer)
  handle.getsockname(own)
  return connectionAddresses(peer.address, peer.port, own.address, own.port)
}

class HandleSocket implements ByteSocket {
  /** Without TLS a peer has no certificate. */
  readonly peerThumbprint = ''
  owner: ConnectingOwner | SocketOwner = NULL_OWNER
  readonly #handle: TcpHandle
  #state: SocketState = 'READY'
  #pendingWrites = 0
  #view: Uint8Array | null = null
  /** The handle was told to read. */
  #isReading = false
  /** Bytes that leave when this turn of the event loop ends. */
  #gathered: Slot | null = null

  constructor(handle: TcpHandle) {
    this.#handle = handle
    handle.socket = this
  }

  #advance(event: SocketEvent): void {
    this.#state = stateAfter(this.#state, event)
  }

  get remoteAddress(): string {
    return peerAddressOf(this.#handle)
  }

  get addresses(): ConnectionAddresses | null {
    return addressesOf(this.#handle)
  }

  attach(owner: SocketOwner, view: Uint8Array): void {
    this.owner = owner
    this.#handle.onread = onread
    this.#handle.useUserBuffer(view)
    this.#isReading = true
    this.#handle.readStart()
  }

  /** The view of an owner that came within this read: a returned one would go to the listener of the old owner. */
  showTo(view: Uint8Array | undefined): undefined {
    if (view !== undefined && this.owner !== NULL_OWNER) this.#handle.useUserBuffer(view)
  }

  serves(): boolean {
    return true
  }

  dial(address: string, port: number, owner: ConnectingOwner, view: Uint8Array): void {
    this.owner = owner
    this.#view = view
    const request = new bindings.TCPConnectWrap()
    request.socket = this
    request.oncomplete = onconnected
    const handle = this.#handle
    const failed =
      isIP(address) === 6 ? handle.connect6(request, address, port) : handle.connect(request, address, port)
    if (failed !== 0) process.nextTick(() => onconnected.call(request, failed))
  }

  connected(status: number): void {
    if (this.#state === 'CLOSED') return
    const owner = this.owner as ConnectingOwner
    if (status !== 0) this.#lost(status)
    else {
      this.#handle.setNoDelay(true)
      this.attach(owner, this.#view!)
      this.#view = null
      owner.onConnected()
    }
  }

  write(bytes: Uint8Array, gathers = false): Written {
    if (this.#gathered !== null && this.#sendGathered() < 0) this.#advance('FAIL')
    const state = this.#state
    if (state === 'BROKEN') return WRITE.FAILED
    if (gathers && state === 'READY') {
      this.#gathered = gather(this, bytes)
      if (this.#gathered !== null) return WRITE.DONE
    }
    const result = this.#send(bytes, null)
    return result < 0 ? WRITE.FAILED : (result as Written)
  }

  /** Writes to the kernel; returns DONE, PENDING, or a negative number on failure. */
  #send(bytes: Uint8Array, slot: Slot | null): number {
    const result = this.#handle.writeBuffer(null, bytes)
    if (typeof result === 'number') return result
    result.socket = this
    result.bytes = bytes
    result.slot = slot
    result.oncomplete = onwritten
    this.#pendingWrites++
    this.#advance('BLOCK')
    return WRITE.PENDING
  }

  get hasGathered(): boolean {
    return this.#gathered !== null
  }

  #sendGathered(): number {
    const slot = this.#gathered!
    this.#gathered = null
    const result = this.#send(slot.content, slot)
    if (result !== WRITE.PENDING) releaseSlot(slot)
    return result
  }

  /** Sends gathered bytes. Only the event loop calls, because the owner may hear of it. */
  flush(): void {
    if (this.#gathered === null) return
    const { owner } = this
    try {
      const result = this.#sendGathered()
      if (result === WRITE.PENDING) owner.onBlocked()
      else if (result < 0) {
        this.#advance('FAIL')
        owner.onWriteFailed(getSystemErrorName(result))
      }
    } catch (error) {
      owner.onError(error)
    }
  }

  written(status: number): void {
    this.#pendingWrites--
    const state = this.#state
    if (state !== 'BLOCKED' && state !== 'ENDING_BLOCKED') return
    if (status < 0) {
      this.#advance('FAIL')
      this.owner.onWriteFailed(getSystemErrorName(status))
    } else if (this.#pendingWrites === 0) {
      this.#advance('DRAIN')
      this.owner.onDrained()
      if (this.#state === 'ENDING') this.#shut()
    }
  }

  readFailed(result: number): void {
    if (result === bindings.endOfFile) this.owner.onEnd()
    else this.#lost(result)
  }

  setReading(on: boolean): void {
    if (on === this.#isReading || this.#state === 'CLOSED') return
    this.#isReading = on
    if (on) this.#handle.readStart()
    else this.#handle.readStop()
  }

  end(): void {
    if (this.#gathered !== null && this.#sendGathered() < 0) this.#advance('FAIL')
    if (this.#state === 'READY') this.#shut()
    else if (this.#state === 'BLOCKED') this.#advance('END')
  }

  /** Never before all writes are done: from here on a reset is refused until the FIN has left (D50). */
  #shut(): void {
    this.#advance('SHUT')
    const request = new bindings.ShutdownWrap()
    request.oncomplete = () => this.#finished()
    if (this.#handle.shutdown(request) !== 0) this.#finished()
  }

  #finished(): void {
    if (this.#state === 'SHUTTING') this.#advance('FINISH')
  }

  destroy(): void {
    if (this.#state === 'CLOSED') return
    this.#leave()
    this.#handle.close()
  }

  reset(): void {
    if (this.#state === 'CLOSED') return
    // While a FIN is under way libuv refuses a reset, but Node takes the handle for closed. The socket would stay
    // open for good, with the bytes that wait. All of those are with the kernel by now, so a close has to do.
    const isShutting = this.#state === 'SHUTTING'
    this.#leave()
    if (isShutting) this.#handle.close()
    else this.#handle.reset()
  }

  #lost(status: number): void {
    if (this.#state === 'CLOSED') return
    const { owner } = this
    this.destroy()
    owner.onLost(getSystemErrorName(status))
  }

  /** Gathered bytes leave as far as the kernel takes them at once. */
  #leave(): void {
    if (this.#gathered !== null) this.#sendGathered()
    this.#advance('CLOSE')
    this.owner = NULL_OWNER
  }

  /** Hands the handle over to TLS. The owner hears nothing more; the socket is of no more use. */
  release(): TcpHandle {
    this.#leave()
    return this.#handle
  }
}

/** Takes the handle out of a socket of this level, for TLS on top of it. */
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
  server.listen(listenTarget(options, BACKLOG), () => {
    const listener = (server as unknown as { _handle: ListeningHandle })._handle
    // On Linux accepted sockets inherit the option, which saves a system call for each.
    const inherits = process.platform === 'linux'
    if (inherits) listener.setNoDelay(true)
    listener.onconnection = (status, handle) => {
      // A failed accept concerns no open connection; the next one may succeed.
      if (status !== 0) return
      if (!inherits) handle.setNoDelay(true)
      onConnection(new HandleSocket(handle))
    }
    const { port } = server.address() as { port: number }
    resolve({ port, fd: descriptorOf(server), close: () => void server.close() })
  })
  return promise
}
