/** A provider of messages on real sockets: records the bytes of each request, and answers with the bytes it is told. */
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { TlsIdentity } from '../../src/socket/tls.ts'

const HEAD_END = '\r\n\r\n'

/** Writes a response, or does something else with the connection. */
export type Answer = (socket: Socket) => void

/** A response without a body; `fields` as lines. */
export function status(code: number, ...fields: readonly string[]): Answer {
  const lines = [`HTTP/1.1 ${code} Reason`, 'Content-Length: 0', ...fields]
  return socket => socket.write(`${lines.join('\r\n')}${HEAD_END}`)
}

export class ScriptedProvider {
  readonly port: number
  /** Bytes of the requests, in order. */
  readonly requests: string[] = []
  /** Connections so far. */
  connections = 0
  answer: Answer = status(202)
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(server: Server) {
    this.#server = server
    this.port = (server.address() as { port: number }).port
    server.on(server instanceof Object && 'setSecureContext' in server ? 'secureConnection' : 'connection', socket =>
      this.#serve(socket as Socket),
    )
  }

  static async listen(identity?: TlsIdentity): Promise<ScriptedProvider> {
    const server = identity === undefined ? createServer() : createTlsServer({ cert: identity.cert, key: identity.key })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new ScriptedProvider(server)
  }

  /** Open connections. */
  get open(): number {
    return this.#sockets.size
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #serve(socket: Socket): void {
    this.connections++
    this.#sockets.add(socket)
    let received = ''
    socket.on('error', () => {})
    socket.on('close', () => this.#sockets.delete(socket))
    socket.on('data', (bytes: Buffer) => {
      received += bytes.toString('latin1')
      const end = received.indexOf(HEAD_END)
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(received)?.[1] ?? 0)
      if (end < 0 || received.length < end + HEAD_END.length + length) return
      this.requests.push(received)
      received = ''
      this.answer(socket)
    })
  }
}
