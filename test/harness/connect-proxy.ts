/** A minimal forward proxy that opens tunnels and records the heads of CONNECT requests. */
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

const HEAD_END = '\r\n\r\n'

export class ConnectProxy {
  readonly port: number
  /** Heads of the requests, in order. */
  readonly heads: string[] = []
  readonly #server: Server
  readonly #authorization: string
  readonly #sockets = new Set<Socket>()

  private constructor(server: Server, authorization: string) {
    this.#server = server
    this.#authorization = authorization
    this.port = (server.address() as { port: number }).port
    server.on('connection', socket => {
      this.#track(socket)
      this.#readHead(socket, Buffer.alloc(0))
    })
  }

  /** `authorization`: the required value of Proxy-Authorization; '': none is required. */
  static async listen(authorization = ''): Promise<ConnectProxy> {
    const server = createServer({ allowHalfOpen: true })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new ConnectProxy(server, authorization)
  }

  /** Number of open sockets. */
  get open(): number {
    return this.#sockets.size
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => undefined)
    socket.on('close', () => this.#sockets.delete(socket))
  }

  #readHead(client: Socket, before: Buffer): void {
    client.once('data', (bytes: Buffer) => {
      const all = Buffer.concat([before, bytes])
      const end = all.indexOf(HEAD_END)
      if (end === -1) this.#readHead(client, all)
      else this.#serve(client, all.toString('latin1', 0, end + HEAD_END.length))
    })
  }

  #serve(client: Socket, head: string): void {
    this.heads.push(head)
    const [, host, port] = /^CONNECT (\S+):(\d+) HTTP\/1\.1\r\n/.exec(head) ?? []
    const given = /^Proxy-Authorization: (.*)\r$/im.exec(head)?.[1] ?? ''
    if (host === undefined) client.end('HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n')
    else if (given !== this.#authorization) {
      client.end('HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm="x"\r\nContent-Length: 0\r\n\r\n')
    } else this.#tunnel(client, host, Number(port))
  }

  #tunnel(client: Socket, host: string, port: number): void {
    client.pause()
    const backend = connect({ host, port, allowHalfOpen: true })
    this.#track(backend)
    backend.once('error', () => client.end('HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n'))
    backend.once('connect', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      client.pipe(backend)
      backend.pipe(client)
      client.once('close', () => backend.destroy())
      backend.once('close', () => client.destroy())
    })
  }
}
