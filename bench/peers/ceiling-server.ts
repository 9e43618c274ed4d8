/**
 * The ceiling: a bare HTTP/1.1 proxy on libuv handles and llhttp, with the least work per request. Fields are offsets
 * into one memory, hop-by-hop fields are left out, X-Forwarded-For is added, and each head leaves in one write with the
 * body bytes that came with it. It has no limits, timeouts, retries, routes or logs: it serves the clients and backends
 * of the bench alone, whose bodies have a length or are chunked.
 *
 *     node ceiling-server.ts PORT DOWNLOAD_PORT UPLOAD_PORT
 */
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { bindHandles, type TcpHandle } from '../../src/socket/handle-socket.ts'

const [port, downloadPort, uploadPort] = process.argv.slice(2).map(Number)
const READ_BYTES = 65_536
const CONNECTIONS_MAX = 2048
const FIELDS_MAX = 128
const UPLOADS = '/upload/'

// ---- parser: what the last call has found --------------------------------------------------------------------------

interface Llhttp {
  readonly memory: WebAssembly.Memory
  _initialize(): void
  malloc(size: number): number
  llhttp_alloc(type: number): number
  llhttp_reset(parser: number): void
  llhttp_execute(parser: number, at: number, length: number): number
  llhttp_get_error_pos(parser: number): number
}

/** Names of fields: offset and length of each. */
const names = new Int32Array(2 * FIELDS_MAX)
/** `scanAt`: the empty line of the head is behind it. */
const found = { fields: 0, scanAt: 0, inName: false, head: false, message: false, skipsBody: false }
const head = { targetAt: 0, targetLength: 0, status: 0, persists: false }
const PAUSED = 21

function recordName(at: number, length: number): number {
  if (found.head) return 0
  if (found.inName) names[2 * found.fields - 1]! += length
  else {
    if (found.fields === FIELDS_MAX) return -1
    names[2 * found.fields] = at
    names[2 * found.fields + 1] = length
    found.fields++
  }
  found.inName = true
  found.scanAt = at + length
  return 0
}

const require = createRequire(import.meta.url)
const module = new WebAssembly.Module(require('undici/lib/llhttp/llhttp_simd-wasm.js') as Uint8Array<ArrayBuffer>)
const llhttp = new WebAssembly.Instance(module, {
  env: {
    wasm_on_message_begin: () => 0,
    wasm_on_status: () => 0,
    wasm_on_body: () => 0,
    wasm_on_url(_parser: number, at: number, length: number): number {
      if (head.targetLength === 0) head.targetAt = at
      head.targetLength += length
      return 0
    },
    wasm_on_header_field: (_parser: number, at: number, length: number) => recordName(at, length),
    wasm_on_header_value(_parser: number, at: number, length: number): number {
      found.inName = false
      if (length > 0 && !found.head) found.scanAt = at + length
      return 0
    },
    wasm_on_headers_complete(_parser: number, status: number, _upgrade: number, persists: number): number {
      found.head = true
      head.status = status
      head.persists = persists === 1
      return found.skipsBody ? 1 : 0
    },
    wasm_on_message_complete(): number {
      found.message = true
      return PAUSED
    },
  },
}).exports as unknown as Llhttp
llhttp._initialize()

/** Free parsers; memory must not grow later, because views of it would be lost. */
const parsers = [1, 2].map(type => Array.from({ length: CONNECTIONS_MAX }, () => llhttp.llhttp_alloc(type)))
const POOL_BYTES = 32 * 1024 * 1024
let nextFree = llhttp.malloc(POOL_BYTES)
const poolEnd = nextFree + POOL_BYTES
const bytes = Buffer.from(llhttp.memory.buffer)

function carve(size: number): number {
  const at = nextFree
  nextFree += (size + 63) & ~63
  if (nextFree > poolEnd) throw new Error('the ceiling is out of memory')
  return at
}

// ---- memory for reading and writing --------------------------------------------------------------------------------

/** All connections read into one view. An incomplete head is copied, and put in front of the next read. */
const readAt = carve(2 * READ_BYTES) + READ_BYTES
const readView = new Uint8Array(llhttp.memory.buffer, readAt, READ_BYTES)

/** Where messages are composed. While a write waits, its memory is not used. */
class Output {
  readonly at = carve(3 * READ_BYTES)
  readonly #views: Uint8Array[] = []

  view(length: number): Uint8Array {
    const known = this.#views[length]
    if (known !== undefined) return known
    const view = new Uint8Array(llhttp.memory.buffer, this.at, length)
    this.#views[length] = view
    return view
  }
}

const freeOutputs: Output[] = []
let output = new Output()

function put(at: number, text: Buffer): number {
  bytes.set(text, at)
  return at + text.length
}

const HOP_BY_HOP = ['te', 'upgrade', 'trailer', 'connection', 'keep-alive', 'proxy-connection', 'proxy-authorization']
/** Hop-by-hop fields (RFC 9110 7.6.1) by the length of their names. Bodies pass as they are framed. */
const STRIPPED = Array.from({ length: 20 }, (_, length) => HOP_BY_HOP.filter(name => name.length === length))

function isHopByHop(at: number, length: number): boolean {
  const candidates = STRIPPED[length]
  if (candidates === undefined) return false
  for (const name of candidates) {
    let same = 0
    while (same < length && (bytes[at + same]! | 0x20) === name.charCodeAt(same)) same++
    if (same === length) return true
  }
  return false
}

/** Composes the head from `from` to `end`, with `line` in front of its empty line; returns the position behind it. */
function compose(from: number, end: number, line: Buffer): number {
  let to = output.at
  let kept = from
  for (let field = 0; field < found.fields; field++) {
    const at = names[2 * field]!
    if (!isHopByHop(at, names[2 * field + 1]!)) continue
    bytes.copyWithin(to, kept, at)
    to += at - kept
    kept = field + 1 < found.fields ? names[2 * field + 2]! : end - 2
  }
  bytes.copyWithin(to, kept, end - 2)
  to = put(to + end - 2 - kept, line)
  bytes[to] = 13
  bytes[to + 1] = 10
  return to + 2
}

/** Position behind the empty line of the head that begins at `from`, which llhttp has accepted. */
function endOfHead(from: number): number {
  let at = Math.max(from, found.scanAt)
  while (bytes[at] !== 13 || bytes[at + 1] !== 10 || bytes[at + 2] !== 13) at++
  return at + 4
}

// ---- connections ---------------------------------------------------------------------------------------------------

const NOTHING = Buffer.alloc(0)
const CLOSE = Buffer.from('Connection: close\r\n')
const { TCP, TCPConnectWrap, SOCKET, streamState, readResult } = bindHandles()

/** A client or backend connection. An event that the ceiling does not handle closes both sides of the exchange. */
abstract class Connection {
  readonly handle: TcpHandle
  isOpen = true
  peer: Connection | null = null
  /** An incomplete head. */
  rest: Buffer = NOTHING
  /** The message under way ends the connection. */
  protected closes = false
  /** The head of the message under way is complete, its body is not. */
  protected inBody = false
  /** Where the last parsing stopped: behind the message, or at the end of the bytes. */
  protected end = 0
  readonly #parsers: number[]
  readonly #parser: number
  #pending = 0
  #isReading = false

  constructor(handle: TcpHandle, free: number[]) {
    const parser = free.pop()
    if (parser === undefined) throw new Error('the ceiling has no parser left')
    this.#parsers = free
    this.#parser = parser
    this.handle = handle
    handle.socket = this
    handle.onread = onread
  }

  start(): void {
    this.handle.useUserBuffer(readView)
    this.setReading(true)
  }

  setReading(on: boolean): void {
    if (on === this.#isReading) return
    this.#isReading = on
    if (on) this.handle.readStart()
    else this.handle.readStop()
  }

  /** Takes the bytes from `from` to `to`. */
  abstract take(from: number, to: number): void

  /** Parses; false where the head is incomplete or wrong. */
  protected parse(from: number, to: number, skipsBody: boolean): boolean {
    if (!this.inBody) llhttp.llhttp_reset(this.#parser)
    found.head = this.inBody
    found.message = found.inName = false
    found.fields = found.scanAt = head.targetLength = 0
    found.skipsBody = skipsBody
    const result = llhttp.llhttp_execute(this.#parser, from, to - from)
    this.end = result === 0 ? to : llhttp.llhttp_get_error_pos(this.#parser)
    this.inBody = found.head && !found.message
    if (result !== 0 && result !== PAUSED) this.close()
    else if (!found.head) this.rest = Buffer.from(bytes.subarray(from, to))
    if (this.rest.length >= READ_BYTES) this.close()
    return this.isOpen && found.head
  }

  /** Writes the first `length` bytes of the output. While some of them wait, the peer is not read. */
  write(length: number): void {
    const result = this.handle.writeBuffer(null, output.view(length))
    if (result === 0) return
    if (typeof result === 'number') {
      this.close()
      return
    }
    const waiting = output
    output = freeOutputs.pop() ?? new Output()
    this.#pending++
    this.peer?.setReading(false)
    result.oncomplete = status => {
      freeOutputs.push(waiting)
      if (status < 0) this.close()
      else if (--this.#pending === 0) this.drained()
    }
  }

  /** Writes the head from `from`, with the body bytes that came with it. */
  protected writeMessage(to: Connection, from: number, line: Buffer): void {
    const headEnd = endOfHead(from)
    const at = compose(from, headEnd, line)
    bytes.copyWithin(at, headEnd, this.end)
    to.write(at + this.end - headEnd - output.at)
  }

  protected writeBody(to: Connection, from: number): void {
    if (this.end === from) return
    bytes.copyWithin(output.at, from, this.end)
    to.write(this.end - from)
  }

  protected get isDrained(): boolean {
    return this.#pending === 0
  }

  protected drained(): void {
    this.peer?.setReading(true)
  }

  close(): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.handle.close()
    this.#parsers.push(this.#parser)
    const { peer } = this
    this.peer = null
    peer?.close()
  }
}

function onread(this: TcpHandle): undefined {
  const count = streamState[readResult]!
  const connection = this.socket as Connection
  if (count < 0) connection.close()
  if (count <= 0) return
  const { rest } = connection
  if (rest.length > 0) put(readAt - rest.length, rest)
  connection.rest = NOTHING
  connection.take(readAt - rest.length, readAt + count)
}

class Client extends Connection {
  static readonly #lines = new Map<string, Buffer>()
  readonly #line: Buffer

  constructor(handle: TcpHandle) {
    super(handle, parsers[0]!)
    const peer: { address?: string } = {}
    handle.getpeername(peer)
    const text = `X-Forwarded-For: ${peer.address}\r\n`
    this.#line = Client.#lines.get(text) ?? Buffer.from(text)
    Client.#lines.set(text, this.#line)
  }

  take(from: number, to: number): void {
    const wasInBody = this.inBody
    // Requests in front of the last response are closed: the clients of the bench do not send them.
    if (!wasInBody && this.peer !== null) this.close()
    else if (this.parse(from, to, false)) {
      if (!wasInBody) this.#begin(from)
      else if (this.peer !== null) this.writeBody(this.peer, from)
      if (found.message && this.end < to) this.close()
    }
  }

  #begin(from: number): void {
    this.closes = !head.persists
    const isUpload = bytes.latin1Slice(head.targetAt, head.targetAt + UPLOADS.length) === UPLOADS
    const backend = Backend.of(isUpload ? uploadPort! : downloadPort!)
    this.peer = backend
    backend.begin(this, bytes[from] === 72)
    this.writeMessage(backend, from, this.#line)
  }

  get closesNext(): boolean {
    return this.closes
  }

  /** The response is complete. */
  served(): void {
    this.peer = null
    this.closes ||= this.inBody
    if (!this.closes) this.setReading(true)
    else if (this.isDrained) this.close()
  }

  protected override drained(): void {
    if (this.closes && this.peer === null) this.close()
    else super.drained()
  }
}

class Backend extends Connection {
  static readonly #pools = new Map<number, Backend[]>()
  readonly #idle: Backend[]
  #isHead = false
  /** Bytes to write once the connection is open; null: the connection is open. */
  #waiting: Buffer[] | null = []

  /** An idle connection, else a new one. */
  static of(backendPort: number): Backend {
    return Backend.#pools.get(backendPort)?.pop() ?? new Backend(backendPort)
  }

  constructor(backendPort: number) {
    super(new TCP(SOCKET), parsers[1]!)
    this.#idle = Backend.#pools.get(backendPort) ?? []
    Backend.#pools.set(backendPort, this.#idle)
    const request = new TCPConnectWrap()
    request.oncomplete = status => this.#connected(status)
    const failed = this.handle.connect(request, '127.0.0.1', backendPort)
    if (failed !== 0) setImmediate(() => this.close())
  }

  begin(client: Client, isHead: boolean): void {
    this.peer = client
    this.#isHead = isHead
  }

  #connected(status: number): void {
    if (status < 0) this.close()
    if (!this.isOpen) return
    const waiting = this.#waiting ?? []
    this.#waiting = null
    this.handle.setNoDelay(true)
    this.start()
    this.peer?.setReading(true)
    for (const message of waiting) this.write(put(output.at, message) - output.at)
  }

  override write(length: number): void {
    if (this.#waiting === null) super.write(length)
    else {
      this.#waiting.push(Buffer.from(output.view(length)))
      this.peer?.setReading(false)
    }
  }

  take(from: number, to: number): void {
    const client = this.peer as Client | null
    const wasInBody = this.inBody
    if (client === null) this.close()
    else if (this.parse(from, to, this.#isHead)) {
      if (!wasInBody) {
        this.closes = !head.persists
        this.writeMessage(client, from, client.closesNext ? CLOSE : NOTHING)
      } else this.writeBody(client, from)
      if (!found.message || !client.isOpen) return
      if (head.status >= 200 || wasInBody) this.#served(client, to)
      else if (this.end < to) this.take(this.end, to)
    }
  }

  #served(client: Client, to: number): void {
    this.peer = null
    client.served()
    if (this.closes || this.end < to) this.close()
    else this.#idle.push(this)
  }

  override close(): void {
    const at = this.#idle.indexOf(this)
    if (at >= 0) this.#idle.splice(at, 1)
    super.close()
  }
}

const server = createServer()
server.listen({ port, host: '127.0.0.1', backlog: 4096 }, () => {
  const listener = (server as unknown as { _handle: { onconnection(status: number, handle: TcpHandle): void } })._handle
  listener.onconnection = (status, handle) => {
    if (status !== 0) return
    handle.setNoDelay(true)
    new Client(handle).start()
  }
  const { port: listening } = server.address() as { port: number }
  console.log(`listening on ${listening}`)
})
