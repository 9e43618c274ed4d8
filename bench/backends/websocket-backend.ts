/**
 * The WebSocket backend: echoes every message. On a path that ends with stream/BYTES it answers the first message with
 * an endless stream of messages of that size. Not a general server: it expects the messages of the load generator.
 *
 *     node bench/backends/websocket-backend.ts PORT
 */
import { createServer, type Server, type Socket } from 'node:net'
import { acceptValue, unmaskedFrame, readFrame, unmask } from '../websocket.ts'

const HEAD_END = Buffer.from('\r\n\r\n')

class WebSocketConnection {
  readonly #socket: Socket
  /** Bytes of an incomplete head or frame. */
  #pending: Buffer | undefined
  /** Handles bytes from the client: reads a head, then frames, and ignores bytes once it streams. */
  #onBytes: (bytes: Buffer) => void
  #streamed: Buffer | undefined

  constructor(socket: Socket) {
    this.#socket = socket
    this.#onBytes = bytes => this.#readHead(bytes)
    socket.setNoDelay(true)
    socket.on('data', bytes => this.#onBytes(this.#withPending(bytes as Buffer)))
    socket.on('end', () => socket.end())
    socket.on('error', () => socket.destroy())
  }

  #withPending(fresh: Buffer): Buffer {
    const bytes = this.#pending === undefined ? fresh : Buffer.concat([this.#pending, fresh])
    this.#pending = undefined
    return bytes
  }

  #readHead(bytes: Buffer): void {
    const end = bytes.indexOf(HEAD_END)
    if (end < 0) {
      this.#pending = bytes
      return
    }
    const head = bytes.toString('latin1', 0, end)
    const key = /\r\nsec-websocket-key: *(\S+)/i.exec(head)?.[1]
    if (key === undefined || !/\r\nupgrade: *websocket/i.test(head)) {
      this.#socket.end('HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
      return
    }
    const messageBytes = /^\S+ \S*stream\/(\d+) /.exec(head)?.[1]
    if (messageBytes !== undefined) this.#streamed = unmaskedFrame(Buffer.alloc(Number(messageBytes), 'x'))
    const fields = `Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${acceptValue(key)}\r\n`
    this.#socket.write(`HTTP/1.1 101 Switching Protocols\r\n${fields}\r\n`, 'latin1')
    this.#onBytes = rest => this.#readFrames(rest)
    if (bytes.length > end + HEAD_END.length) this.#readFrames(bytes.subarray(end + HEAD_END.length))
  }

  #readFrames(bytes: Buffer): void {
    if (this.#streamed === undefined) this.#echo(bytes)
    else this.#stream(this.#streamed)
  }

  #echo(bytes: Buffer): void {
    let at = 0
    for (let frame = readFrame(bytes, 0); frame !== undefined; frame = readFrame(bytes, at)) {
      const { maskAt, payloadAt, end } = frame
      unmask(bytes, payloadAt, end, bytes.subarray(maskAt, payloadAt))
      // In place: the frame head moves to the place of the mask, and its mask bit is cleared.
      const headAt = at + payloadAt - maskAt
      bytes.copyWithin(headAt, at, maskAt)
      bytes[headAt + 1]! &= 0x7f
      this.#socket.write(bytes.subarray(headAt, end))
      at = end
    }
    if (at < bytes.length) this.#pending = bytes.subarray(at)
  }

  #stream(message: Buffer): void {
    this.#onBytes = () => {}
    const send = (): void => {
      while (this.#socket.writable && this.#socket.write(message));
    }
    this.#socket.on('drain', send)
    send()
  }
}

export function createWebSocketBackend(): Server {
  return createServer({ allowHalfOpen: true }, socket => new WebSocketConnection(socket))
}

if (import.meta.main)
  createWebSocketBackend().listen({ port: Number(process.argv[2]), host: '127.0.0.1', backlog: 4096 })
