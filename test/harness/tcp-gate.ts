/** A TCP proxy in front of a server. A test can shut the proxy: then its connections end, and new ones are refused. */
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

export class TcpGate {
  readonly port: number
  readonly #target: number
  readonly #sockets = new Set<Socket>()
  #server: Server | null = null
  #isHeld = false

  /** `port`: free; the gate begins shut. `target`: port of the server on this machine. */
  constructor(port: number, target: number) {
    this.port = port
    this.#target = target
  }

  async open(): Promise<void> {
    this.#server = createServer(client => this.#join(client)).listen(this.port, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  async shut(): Promise<void> {
    const server = this.#server
    this.#server = null
    for (const socket of this.#sockets) socket.destroy()
    if (server === null) return
    server.close()
    await once(server, 'close')
  }

  /** Passes nothing on until `release`, and keeps the connections open: the server seems to stop. */
  hold(): void {
    this.#isHeld = true
    for (const socket of this.#sockets) socket.pause()
  }

  release(): void {
    this.#isHeld = false
    for (const socket of this.#sockets) socket.resume()
  }

  #join(client: Socket): void {
    const server = connect(this.#target, '127.0.0.1')
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        this.#sockets.delete(from)
        to.destroy()
      })
      from.pipe(to)
      if (this.#isHeld) from.pause()
    }
  }
}
