/**
 * The WebSocket backend: sends every message back, or, after a first message on a path that ends with flow/BYTES,
 * messages of that size for as long as somebody takes them. Not a general server: it trusts the proxies in front of it
 * to pass on what the load sends.
 *
 *     node bench/echo-backend.ts PORT
 */
import { createServer, type Server, type Socket } from 'node:net'
import { acceptOf, plainFrame, readFrame, unmask } from './websocket.ts'

const HEAD_END = Buffer.from('\r\n\r\n')

class EchoConnection {
  readonly #socket: Socket
  /** Bytes of a head or of a frame that is not complete yet. */
  #held: Buffer | undefined
  /** What is done with bytes from the client: read a head, then frames, then nothing. */
  #take: (bytes: Buffer) => void
  #flow: Buffer | undefined

  constructor(socket: Socket) {
    this.#socket = socket
    this.#take = bytes => this.#takeHead(bytes)
    socket.setNoDelay(true)
    socket.on('data', bytes => this.#take(this.#whole(bytes as Buffer)))
    socket.on('end', () => socket.end())
    socket.on('error', () => socket.destroy())
  }

  #whole(fresh: Buffer): Buffer {
    const bytes = this.#held === undefined ? fresh : Buffer.concat([this.#held, fresh])
    this.#held = undefined
    return bytes
  }

  #takeHead(bytes: Buffer): void {
    const end = bytes.indexOf(HEAD_END)
    if (end < 0) {
      this.#held = bytes
      return
    }
    const head = bytes.toString('latin1', 0, end)
    const key = /\r\nsec-websocket-key: *(\S+)/i.exec(head)?.[1]
    if (key === undefined || !/\r\nupgrade: *websocket/i.test(head)) {
      this.#socket.end('HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
      return
    }
    const messageBytes = /^\S+ \S*flow\/(\d+) /.exec(head)?.[1]
    if (messageBytes !== undefined) this.#flow = plainFrame(Buffer.alloc(Number(messageBytes), 'x'))
    const fields = `Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${acceptOf(key)}\r\n`
    this.#socket.write(`HTTP/1.1 101 Switching Protocols\r\n${fields}\r\n`, 'latin1')
    this.#take = rest => this.#takeFrames(rest)
    if (bytes.length > end + HEAD_END.length) this.#takeFrames(bytes.subarray(end + HEAD_END.length))
  }

  #takeFrames(bytes: Buffer): void {
    if (this.#flow === undefined) this.#echo(bytes)
    else this.#startFlow(this.#flow)
  }

  #echo(bytes: Buffer): void {
    let at = 0
    for (let frame = readFrame(bytes, 0); frame !== undefined; frame = readFrame(bytes, at)) {
      const { maskAt, payloadAt, end } = frame
      unmask(bytes, payloadAt, end, bytes.subarray(maskAt, payloadAt))
      // In place: the head moves up to where the mask stood, and no longer says that there is one.
      const headAt = at + payloadAt - maskAt
      bytes.copyWithin(headAt, at, maskAt)
      bytes[headAt + 1]! &= 0x7f
      this.#socket.write(bytes.subarray(headAt, end))
      at = end
    }
    if (at < bytes.length) this.#held = bytes.subarray(at)
  }

  #startFlow(message: Buffer): void {
    this.#take = () => {}
    const send = (): void => {
      while (this.#socket.writable && this.#socket.write(message));
    }
    this.#socket.on('drain', send)
    send()
  }
}

export function createEchoBackend(): Server {
  return createServer({ allowHalfOpen: true }, socket => new EchoConnection(socket))
}

if (import.meta.main) createEchoBackend().listen({ port: Number(process.argv[2]), host: '127.0.0.1', backlog: 4096 })
