/**
 * The HTTP backend of the bench: for uploads, and for downloads if nginx is missing. Responds to a GET of 1k, 10k, 100k
 * or 1m with as many bytes, and to a POST with the number of body bytes that it has read; a path that ends in `/echo`
 * gets the body itself, if its length is declared. Not a general server: it expects well-formed requests from the
 * proxies.
 *
 *     node bench/backends/http-backend.ts PORT
 */
import { createServer, type Server, type Socket } from 'node:net'
import { BODY_BYTES, type BodyName } from '../scenarios.ts'

const HEAD_END = Buffer.from('\r\n\r\n')
const ECHO = /^POST \S*\/echo /
const CHUNK_END = Buffer.from('\r\n0\r\n\r\n')

function okResponse(body: Buffer): Buffer {
  const fields = `Server: bench\r\nContent-Type: application/octet-stream\r\nContent-Length: ${body.length}\r\n`
  return Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\n${fields}\r\n`, 'latin1'), body])
}

const DOWNLOADS = new Map(
  Object.entries(BODY_BYTES).map(([name, bytes]) => [name as BodyName, okResponse(Buffer.alloc(bytes, 'x'))]),
)

function uploadResponse(bytes: number): Buffer {
  return okResponse(Buffer.from(String(bytes), 'latin1'))
}

class BackendConnection {
  readonly #socket: Socket
  /** Bytes of an incomplete head. */
  #pending: Buffer | undefined
  /** Body bytes still to come; -1 during a chunked body. */
  #bodyLeft = 0
  #bodyRead = 0
  /** The last bytes received of a chunked body, because its end may arrive in two parts. */
  #tail = Buffer.alloc(0)
  /** Parts of a body that is sent back; undefined for others. */
  #echo: Buffer[] | undefined

  constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', bytes => this.#read(bytes as Buffer))
    socket.on('error', () => socket.destroy())
  }

  #read(fresh: Buffer): void {
    let bytes = fresh
    while (bytes.length > 0) bytes = this.#bodyLeft === 0 ? this.#readHead(bytes) : this.#readBody(bytes)
  }

  #readHead(fresh: Buffer): Buffer {
    const bytes = this.#pending === undefined ? fresh : Buffer.concat([this.#pending, fresh])
    this.#pending = undefined
    const end = bytes.indexOf(HEAD_END)
    if (end < 0) {
      this.#pending = bytes
      return bytes.subarray(bytes.length)
    }
    const head = bytes.toString('latin1', 0, end)
    this.#bodyRead = 0
    this.#echo = ECHO.test(head) ? [] : undefined
    if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
      this.#bodyLeft = -1
      this.#tail = Buffer.from('\r\n')
    } else {
      this.#bodyLeft = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
      if (this.#bodyLeft === 0) this.#respond(head)
    }
    return bytes.subarray(end + HEAD_END.length)
  }

  #respond(head: string): void {
    const path = head.slice(head.indexOf(' ') + 1, head.indexOf(' ', head.indexOf(' ') + 1))
    const name = path.slice(path.lastIndexOf('/') + 1) as BodyName
    this.#socket.write(head.startsWith('GET ') ? (DOWNLOADS.get(name) ?? uploadResponse(0)) : uploadResponse(0))
  }

  #readBody(bytes: Buffer): Buffer {
    if (this.#bodyLeft < 0) return this.#readChunks(bytes)
    const taken = Math.min(this.#bodyLeft, bytes.length)
    this.#bodyLeft -= taken
    this.#bodyRead += taken
    this.#echo?.push(bytes.subarray(0, taken))
    if (this.#bodyLeft === 0) this.#socket.write(this.#bodyResponse())
    return bytes.subarray(taken)
  }

  #bodyResponse(): Buffer {
    return this.#echo === undefined ? uploadResponse(this.#bodyRead) : okResponse(Buffer.concat(this.#echo))
  }

  /** Bodies of the load contain no line ends, so only the end of the last chunk looks like one. */
  #readChunks(bytes: Buffer): Buffer {
    this.#bodyRead += bytes.length
    this.#tail = Buffer.concat([this.#tail, bytes.subarray(-CHUNK_END.length)]).subarray(-CHUNK_END.length)
    if (this.#tail.equals(CHUNK_END)) {
      this.#bodyLeft = 0
      this.#socket.write(uploadResponse(this.#bodyRead))
    }
    return bytes.subarray(bytes.length)
  }
}

export function createHttpBackend(): Server {
  return createServer(socket => new BackendConnection(socket))
}

if (import.meta.main) createHttpBackend().listen({ port: Number(process.argv[2]), host: '127.0.0.1', backlog: 4096 })
