/** Both ends of TLS for tests: ours on the socket level of this run, and owners that note what they are told. */
import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import type { ByteSocket, ConnectingOwner, Listening, TlsFailure } from '../../src/socket/byte-socket.ts'
import { handleLevel } from '../../src/socket/handle-socket.ts'
import { streamLevel } from '../../src/socket/stream-socket.ts'
import type { TlsClient, TlsClientPlan, TlsServer, TlsServerPlan } from '../../src/socket/tls.ts'
import { handleTls } from '../../src/socket/tls-handle.ts'
import { streamTls } from '../../src/socket/tls-stream.ts'
import { CA, SERVER } from '../harness/certificates.ts'
import { eventually } from '../harness/peers.ts'

const IS_STREAMS = process.env.SLUICE_LEVEL === 'streams'
export const level = IS_STREAMS ? streamLevel : handleLevel()
export const tls = IS_STREAMS ? streamTls : handleTls()

const VERSIONS = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3' } as const
export const TICKET_KEYS = new Uint8Array(48).fill(7)

export function serverPlan(changes: Partial<TlsServerPlan> = {}): TlsServerPlan {
  const host = { identity: SERVER, verifyClient: 'none', ca: [] } as const
  return { ...VERSIONS, ciphers: '', ...host, hosts: [], ticketKeys: TICKET_KEYS, ...changes }
}

export function clientPlan(changes: Partial<TlsClientPlan> = {}): TlsClientPlan {
  return { ...VERSIONS, ciphers: '', ca: [CA.cert], identity: null, hostname: 'strict', ...changes }
}

/** An owner that records every call and every byte. */
export class Recorder implements ConnectingOwner {
  readonly calls: string[] = []
  readonly view: Uint8Array
  socket!: ByteSocket
  #pieces: Buffer[] = []
  /** Bytes read so far. */
  length = 0
  /** The last failure of TLS. */
  tlsFailure: TlsFailure | null = null
  /** Further actions in `onBytes` and `onConnected`. */
  onData: (bytes: Buffer) => void = () => undefined
  onOpen: () => void = () => undefined

  constructor(viewBytes = 65_536) {
    this.view = Buffer.alloc(viewBytes)
  }

  get text(): string {
    return Buffer.concat(this.#pieces).toString('latin1')
  }

  onConnected(): void {
    this.calls.push('CONNECTED')
    this.onOpen()
  }

  onBytes(length: number): undefined {
    const bytes = Buffer.from(this.view.subarray(0, length))
    this.#pieces.push(bytes)
    this.length += length
    this.onData(bytes)
  }

  onEnd(): void {
    this.calls.push('END')
  }

  onLost(code: string): void {
    this.calls.push(`LOST ${code}`)
  }

  onTlsFailed(failure: TlsFailure): void {
    this.tlsFailure = failure
    this.calls.push(`${failure.kind === 'tls' ? 'LOST' : 'REFUSED'} ${failure.cause}`)
  }

  onWriteFailed(code: string): void {
    this.calls.push(`WRITE ${code}`)
  }

  onBlocked(): void {
    this.calls.push('BLOCKED')
  }

  onDrained(): void {
    this.calls.push('DRAINED')
  }

  onError(error: unknown): void {
    this.calls.push(`ERROR ${error}`)
    this.socket.destroy()
  }

  /** Waits until a call begins like this, and answers it. */
  async called(start: string): Promise<string> {
    await eventually(`${start}, but there was ${JSON.stringify(this.calls)}`, () => this.has(start))
    return this.calls.find(call => call.startsWith(start))!
  }

  has(start: string): boolean {
    return this.calls.some(call => call.startsWith(start))
  }
}

/** A listener of ours with TLS. */
export class SecuredListener {
  readonly server: TlsServer
  readonly accepted: Recorder[] = []
  readonly #listening: Listening
  #taken = 0

  private constructor(server: TlsServer, listening: Listening) {
    this.server = server
    this.#listening = listening
  }

  static async open(
    plan: TlsServerPlan,
    { viewBytes = 65_536, onData = (_self: Recorder, _bytes: Buffer): void => undefined } = {},
  ): Promise<SecuredListener> {
    const server = tls.server(plan)
    let self: SecuredListener
    const listening = await level.listen({ host: '127.0.0.1', port: 0, reusePort: false }, socket => {
      const owner = new Recorder(viewBytes)
      owner.onData = bytes => onData(owner, bytes)
      owner.socket = server.wrap(socket)
      self.accepted.push(owner)
      owner.socket.attach(owner, owner.view)
    })
    self = new SecuredListener(server, listening)
    return self
  }

  get port(): number {
    return this.#listening.port
  }

  /** The next connection that was not asked for yet. */
  async next(): Promise<Recorder> {
    const at = this.#taken++
    await eventually(`connection ${at + 1}`, () => this.accepted.length > at)
    return this.accepted[at]!
  }

  close(): void {
    this.#listening.close()
    for (const { socket } of this.accepted) socket.destroy()
  }
}

/** Dials with our client side. The connection is made, or refused, when this resolves. */
export async function dialSecured(client: TlsClient, port: number, host = 'localhost', viewBytes = 65_536) {
  const owner = startSecured(client, port, host, viewBytes)
  await eventually('the handshake', () => owner.calls.length > 0)
  return owner
}

export function startSecured(client: TlsClient, port: number, host = 'localhost', viewBytes = 65_536): Recorder {
  const plain = new Recorder()
  const owner = new Recorder(viewBytes)
  plain.onOpen = () => {
    owner.socket = client.wrap(plain.socket, host, owner, owner.view)
  }
  plain.socket = level.dial('127.0.0.1', port, plain, plain.view)
  owner.socket = plain.socket
  return owner
}

/** A client by Node. Its errors are noted, not thrown. */
export interface NodeClient {
  readonly socket: TLSSocket
  readonly errors: NodeJS.ErrnoException[]
  readonly text: string
  /** The newest session that came, for another connection. */
  readonly session: Buffer | undefined
  readonly isClosed: boolean
}

export function nodeClient(port: number, options: ConnectionOptions = {}): NodeClient {
  const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ca: [CA.cert], ...options })
  const client = { socket, errors: [] as NodeJS.ErrnoException[], text: '', session: undefined, isClosed: false }
  socket.on('error', error => client.errors.push(error))
  socket.on('data', (bytes: Buffer) => (client.text += bytes.toString('latin1')))
  socket.on('session', session => Object.assign(client, { session }))
  socket.on('close', () => (client.isClosed = true))
  return client
}

/** Whether a client gets an answer to its first bytes: a handshake that only one side likes is none. */
export async function isServed(port: number, options: ConnectionOptions = {}): Promise<boolean> {
  const client = nodeClient(port, options)
  client.socket.on('secureConnect', () => client.socket.write('ping'))
  await eventually('an answer or an end', () => client.text === 'pong' || client.isClosed)
  client.socket.destroy()
  return client.text === 'pong'
}

export const PONG = { onData: (self: Recorder) => void self.socket.write(Buffer.from('pong')) }

export async function tcpClient(port: number): Promise<Socket> {
  const socket = connectTcp(port, '127.0.0.1')
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}
