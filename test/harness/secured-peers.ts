/** Scripted ends of a TLS connection: a peer, its TLS socket and its TCP socket. */
import { once } from 'node:events'
import { connect as connectTcp, type Server, type Socket } from 'node:net'
import { type ConnectionOptions, connect, createServer, type TlsOptions, type TLSSocket } from 'node:tls'
import type { TlsClientPlan, TlsServerPlan } from '../../src/socket/tls.ts'
import { CA, SERVER } from './certificates.ts'
import { eventually, Peer } from './peers.ts'

const VERSIONS = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3', ciphers: '' } as const

export function serverPlan(changes: Partial<TlsServerPlan> = {}): TlsServerPlan {
  const host = { identity: SERVER, verifyClient: 'none', ca: [] } as const
  return { ...VERSIONS, ...host, hosts: [], ticketKeys: new Uint8Array(48).fill(7), ...changes }
}

export function clientPlan(changes: Partial<TlsClientPlan> = {}): TlsClientPlan {
  return { ...VERSIONS, ca: [CA.cert], identity: null, hostname: 'strict', ...changes }
}

/** The route overrides of a TLS backend; its TLS plan is `default`. */
export const SECURED = { secured: true, tlsClient: 'default' }

/** One end of a TLS connection, with its sockets. */
export interface SecuredPeer {
  readonly peer: Peer
  readonly tls: TLSSocket
  /** The TCP socket, to end the connection without close_notify. */
  readonly tcp: Socket
}

/** Connects and completes the handshake; rejects with the error of the handshake. */
export async function connectSecured(port: number, options: ConnectionOptions = {}): Promise<SecuredPeer> {
  const { peer, tls, tcp } = await startSecured(port, options)
  await once(tls, 'secureConnect')
  return { peer, tls, tcp }
}

/** Connects and starts the handshake. */
export async function startSecured(port: number, options: ConnectionOptions = {}): Promise<SecuredPeer> {
  const tcp = connectTcp({ port, host: '127.0.0.1', allowHalfOpen: true })
  tcp.setNoDelay(true)
  tcp.on('error', () => undefined)
  await once(tcp, 'connect')
  const tls = connect({ socket: tcp, servername: 'localhost', ca: [CA.cert], ...options })
  return { peer: new Peer(tls), tls, tcp }
}

/** A TLS listener whose connections the test scripts. */
export class SecuredBackend {
  readonly port: number
  /** Connections in the order of their completed handshakes. */
  readonly connections: SecuredPeer[] = []
  /** Number of accepted TCP connections. */
  accepted = 0
  readonly #server: Server
  #taken = 0

  private constructor(server: Server) {
    this.#server = server
    this.port = (server.address() as { port: number }).port
  }

  static async listen(options: TlsOptions = {}, onPeer: (peer: Peer) => void = () => {}): Promise<SecuredBackend> {
    const server = createServer({ ...SERVER, ...options, allowHalfOpen: true } as TlsOptions)
    const streams = new Map<number, Socket>()
    let backend: SecuredBackend
    server.on('connection', (tcp: Socket) => {
      backend.accepted++
      streams.set(tcp.remotePort!, tcp)
    })
    server.on('secureConnection', tls => {
      const peer = new Peer(tls)
      backend.connections.push({ peer, tls, tcp: streams.get(tls.remotePort!)! })
      onPeer(peer)
    })
    server.on('tlsClientError', () => undefined)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    backend = new SecuredBackend(server)
    return backend
  }

  /** Waits for the next connection that no earlier call returned. */
  async next(): Promise<SecuredPeer> {
    const at = this.#taken++
    await eventually(`connection ${at + 1} to the backend`, () => this.connections.length > at)
    return this.connections[at]!
  }

  /** Skips all connections so far. */
  skip(): void {
    this.#taken = this.connections.length
  }

  close(): void {
    this.#server.close()
    for (const { tls, tcp } of this.connections) {
      tls.destroy()
      tcp.destroy()
    }
  }
}
