/** Receives the reports of gateways: listener, greeting, and rows for the traffic manager, each counted once. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { once } from 'node:events'
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import type { EventLog } from '../observe/events.ts'
import type { TlsIdentity, TlsProtocolSettings } from '../socket/tls.ts'
import {
  decodeHello,
  decodeReport,
  FRAME,
  FRAME_BYTES_MAX,
  frame,
  FrameReader,
  type UsageReport,
  ReportMalformed,
} from './report-codec.ts'

export interface ReceiverSettings {
  /** '' for all addresses. */
  readonly host: string
  readonly port: number
  /** Null: without TLS. */
  readonly tls: (TlsProtocolSettings & { readonly identity: TlsIdentity }) | null
  readonly username: string
  readonly password: string
}

interface ReceiverContext {
  readonly report: EventLog['report']
  readonly metrics: Pick<MetricsColumn, 'add'>
  receive(report: UsageReport): void
}

const CONNECTIONS_MAX = 1024
/** A peer that has not greeted by then is cut. */
const HELLO_MS = 5000
const HELLO_BYTES_MAX = 8192
/** A refused peer has this long to read why; what it sends meanwhile is dropped. */
const LINGER_MS = 500
const MESSAGE = 'a gateway is refused'

export class ReportServer {
  readonly #settings: ReceiverSettings
  readonly #context: ReceiverContext
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  constructor(settings: ReceiverSettings, context: ReceiverContext) {
    this.#settings = settings
    this.#context = context
    const { tls } = settings
    const serve = (socket: Socket): void => this.#serve(socket)
    this.#server =
      tls === null
        ? createServer({ noDelay: true }, serve)
        : createTlsServer(
            {
              ...{ cert: tls.identity.cert, key: tls.identity.key, noDelay: true, handshakeTimeout: HELLO_MS },
              ...{ minVersion: tls.minVersion, maxVersion: tls.maxVersion },
              ...(tls.ciphers === '' ? {} : { ciphers: tls.ciphers }),
            },
            serve,
          )
    this.#server.maxConnections = CONNECTIONS_MAX
    this.#server.on('tlsClientError', error => this.#refused('', error.message))
  }

  /** Resolves with the port. Rejects with an errno error. */
  async listen(): Promise<number> {
    const { host, port } = this.#settings
    this.#server.listen({ port, ...(host === '' ? {} : { host }) })
    await once(this.#server, 'listening')
    return (this.#server.address() as { port: number }).port
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    if (this.#server.listening) await once(this.#server, 'close')
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    const address = socket.remoteAddress ?? ''
    let timer = setTimeout(() => socket.destroy(), HELLO_MS)
    const reader = new FrameReader(HELLO_BYTES_MAX)
    let state: 'unknown' | 'greeted' | 'refused' = 'unknown'
    socket.on('data', (chunk: Buffer) => {
      if (state === 'refused') return
      try {
        for (const { type, body } of reader.read(chunk)) {
          if (state === 'greeted') this.#receive(socket, type, body)
          else {
            this.#greet(type, body)
            state = 'greeted'
            reader.bytesMax = FRAME_BYTES_MAX
            clearTimeout(timer)
            socket.write(ack(0))
          }
        }
      } catch (error) {
        const cause = error instanceof ReportMalformed ? error.message : 'internal error'
        state = 'refused'
        clearTimeout(timer)
        timer = setTimeout(() => socket.destroy(), LINGER_MS)
        socket.end(frame(FRAME.REFUSED, Buffer.from(cause)))
        this.#refused(address, (error as Error).message)
      }
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(timer)
      this.#sockets.delete(socket)
    })
  }

  /** Throws ReportMalformed. */
  #greet(type: number, body: Buffer): void {
    if (type !== FRAME.HELLO) throw new ReportMalformed('the first frame is no greeting')
    const { username, password } = decodeHello(body)
    const isName = isSame(username, this.#settings.username)
    if (!isSame(password, this.#settings.password) || !isName) {
      throw new ReportMalformed('receiver_username or receiver_password is wrong')
    }
  }

  #receive(socket: Socket, type: number, body: Buffer): void {
    if (type !== FRAME.REPORT) throw new ReportMalformed('a frame of this type is unknown')
    const report = decodeReport(body)
    this.#context.receive(report)
    socket.write(ack(report.number))
  }

  #refused(CLIENT_ADDRESS: string, CAUSE_OF_ERROR: string): void {
    this.#context.metrics.add(METRIC.throttleReportsRefused, 1)
    this.#context.report('warn', MESSAGE, { CLIENT_ADDRESS, CAUSE_OF_ERROR })
  }
}

function ack(number: number): Buffer {
  const body = Buffer.alloc(4)
  body.writeUInt32BE(number)
  return frame(FRAME.ACK, body)
}

/** In constant time. */
function isSame(given: string, expected: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(expected))
}
