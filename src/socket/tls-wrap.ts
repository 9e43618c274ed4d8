/** Node's TLSWrap: the members used here, and its constructor. Throws on import where the runtime does not offer it. */
import { bindHandles, type ShutdownRequest, type TcpHandle } from './handle-socket.ts'
import type { TlsHandleSocket } from './tls-handle-socket.ts'

export const bindings = bindHandles()

/** The members of Node's TLSWrap that are used here, as seen in Node 26. */
export interface TlsHandle {
  socket: TlsHandleSocket
  onread: (this: TlsHandle) => Uint8Array | undefined
  onerror: (this: TlsHandle, error: NodeJS.ErrnoException) => void
  onhandshakedone: (this: TlsHandle) => void
  onnewsession: (this: TlsHandle, id: Buffer, session: Buffer) => void
  /** Encrypted bytes that are not known to be with the kernel. */
  readonly writeQueueSize: number
  useUserBuffer(view: Uint8Array): void
  readStart(): number
  readStop(): number
  receive(bytes: Uint8Array): void
  /** Returns a number on failure, else the request, whose `oncomplete` is called. */
  writeBuffer(request: null, bytes: Uint8Array): number | TlsWrite
  shutdown(request: ShutdownRequest): number
  setVerifyMode(request: boolean, require: boolean): void
  setALPNProtocols(protocols: Uint8Array): void
  setServername(name: string): void
  setSession(session: Buffer): void
  enableSessionCallbacks(): void
  start(): void
  isSessionReused(): boolean
  verifyError(): NodeJS.ErrnoException | null
  getPeerCertificate(): object | undefined
  destroySSL(): void
}
export interface TlsWrite {
  socket: TlsHandleSocket
  /** The status of a write that completed before `oncomplete` was set. */
  writeStatus: number | null
  oncomplete: (this: TlsWrite, status: number) => void
}

interface TlsBinding {
  wrap(tcp: TcpHandle, context: unknown, isServer: boolean, hasWrites: boolean): TlsHandle
}

const { binding } = process as unknown as { binding(name: string): TlsBinding }
const tlsBinding = binding.call(process, 'tls_wrap')

/** Puts TLS on a handle. `context`: the native one. */
export function wrapHandle(tcp: TcpHandle, context: unknown, side: 'server' | 'client'): TlsHandle {
  return tlsBinding.wrap(tcp, context, side === 'server', false)
}
