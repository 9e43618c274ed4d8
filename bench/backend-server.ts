/**
 * The bench's own backend, for uploads always and for downloads where nginx is missing. It answers a GET of 1k, 10k,
 * 100k or 1m with that many bytes, and a POST with the number of body bytes it read and threw away. Not a general
 * server: it trusts the proxies in front of it to send well-formed requests.
 *
 *     node bench/backend-server.ts PORT
 */
import { createServer, type Server, type Socket } from 'node:net'
import { BODY_BYTES, type BodyName } from './scenarios.ts'

const HEAD_END = Buffer.from('\r\n\r\n')
const CHUNK_END = Buffer.from('\r\n0\r\n\r\n')

function response(body: Buffer): Buffer {
  const fields = `Server: bench\r\nContent-Type: application/octet-stream\r\nContent-Length: ${body.length}\r\n`
  return Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\n${fields}\r\n`, 'latin1'), body])
}

const DOWNLOADS = new Map(
  Object.entries(BODY_BYTES).map(([name, bytes]) => [name as BodyName, response(Buffer.alloc(bytes, 'x'))]),
)

function uploaded(bytes: number): Buffer {
  return response(Buffer.from(String(bytes), 'latin1'))
}

class BackendConnection {
  readonly #socket: Socket
  /** Bytes of a head that is not complete yet. */
  #held: Buffer | undefined
  /** Body bytes still to come; -1 while a chunked body lasts. */
  #bodyLeft = 0
  #bodyRead = 0
  /** The last bytes of a chunked body seen so far: its end may be cut in two. */
  #tail = Buffer.alloc(0)

  constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', bytes => this.#take(bytes as Buffer))
    socket.on('error', () => socket.destroy())
  }

  #take(fresh: Buffer): void {
    let bytes = fresh
    while (bytes.length > 0) bytes = this.#bodyLeft === 0 ? this.#takeHead(bytes) : this.#takeBody(bytes)
  }

  #takeHead(fresh: Buffer): Buffer {
    const bytes = this.#held === undefined ? fresh : Buffer.concat([this.#held, fresh])
    this.#held = undefined
    const end = bytes.indexOf(HEAD_END)
    if (end < 0) {
      this.#held = bytes
      return bytes.subarray(bytes.length)
    }
    const head = bytes.toString('latin1', 0, end)
    this.#bodyRead = 0
    if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
      this.#bodyLeft = -1
      this.#tail = Buffer.from('\r\n')
    } else {
      this.#bodyLeft = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
      if (this.#bodyLeft === 0) this.#answer(head)
    }
    return bytes.subarray(end + HEAD_END.length)
  }

  #answer(head: string): void {
    const path = head.slice(head.indexOf(' ') + 1, head.indexOf(' ', head.indexOf(' ') + 1))
    const name = path.slice(path.lastIndexOf('/') + 1) as BodyName
    this.#socket.write(head.startsWith('GET ') ? (DOWNLOADS.get(name) ?? uploaded(0)) : uploaded(0))
  }

  #takeBody(bytes: Buffer): Buffer {
    if (this.#bodyLeft < 0) return this.#takeChunked(bytes)
    const taken = Math.min(this.#bodyLeft, bytes.length)
    this.#bodyLeft -= taken
    this.#bodyRead += taken
    if (this.#bodyLeft === 0) this.#socket.write(uploaded(this.#bodyRead))
    return bytes.subarray(taken)
  }

  /** The load never contains a line end in its bodies, so the end of the last chunk cannot appear within one. */
  #takeChunked(bytes: Buffer): Buffer {
    this.#bodyRead += bytes.length
    this.#tail = Buffer.concat([this.#tail, bytes.subarray(-CHUNK_END.length)]).subarray(-CHUNK_END.length)
    if (this.#tail.equals(CHUNK_END)) {
      this.#bodyLeft = 0
      this.#socket.write(uploaded(this.#bodyRead))
    }
    return bytes.subarray(bytes.length)
  }
}

export function createBackend(): Server {
  return createServer(socket => new BackendConnection(socket))
}

if (import.meta.main) createBackend().listen({ port: Number(process.argv[2]), host: '127.0.0.1', backlog: 4096 })
