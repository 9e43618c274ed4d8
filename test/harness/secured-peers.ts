/** Scripted ends of a connection with TLS on it: the peers of `peers.ts`, and what is under them to break it off. */
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

/** What makes the backend of a test's API one on TLS; its plan is `default`. */
export const SECURED = { secured: true, tlsClient: 'default' }

/** One end of a connection, with the streams that it is made of. */
export interface SecuredPeer {
  readonly peer: Peer
  readonly tls: TLSSocket
  /** To end the connection without the end of TLS. */
  readonly tcp: Socket
}

/** The handshake is done, as this side sees it, when it resolves; rejects with what is wrong. */
export async function connectSecured(port: number, options: ConnectionOptions = {}): Promise<SecuredPeer> {
  const { peer, tls, tcp } = await startSecured(port, options)
  await once(tls, 'secureConnect')
  return { peer, tls, tcp }
}

/** The handshake has begun. */
export async function startSecured(port: number, options: ConnectionOptions = {}): Promise<SecuredPeer> {
  const tcp = connectTcp({ port, host: '127.0.0.1', allowHalfOpen: true })
  tcp.setNoDelay(true)
  tcp.on('error', () => undefined)
  await once(tcp, 'connect')
  const tls = connect({ socket: tcp, servername: 'localhost', ca: [CA.cert], ...options })
  return { peer: new Peer(tls), tls, tcp }
}

/** A listener on TLS whose connections are the test's to script. */
export class SecuredBackend {
  readonly port: number
  /** In order of their handshakes. */
  readonly connections: SecuredPeer[] = []
  /** Handshakes begun. */
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

  /** The next connection that was not asked for yet. */
  async next(): Promise<SecuredPeer> {
    const at = this.#taken++
    await eventually(`connection ${at + 1} to the back end`, () => this.connections.length > at)
    return this.connections[at]!
  }

  /** All connections so far count as asked for. */
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
