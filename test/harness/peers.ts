/**
 * Scripted ends of a connection: a client and a backend that send exactly the given bytes, in pieces of any size, and
 * record the bytes that they receive. Tests wait for conditions, never for a time; the error of a wait that fails says
 * what was received instead.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** Ends a wait for what never comes. Where the processors are busy, a worker has a tenth of one (D321). */
export const GUARD_MS = 120_000
const POLL_MS = 10
/** The address that a connection to this machine has without being bound to one. */
const OWN_ADDRESS = '127.0.0.1'

/** One turn of the event loop: all readable sockets are read between two turns. */
export function turn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

/** Waits enough turns for bytes in flight on this machine to arrive, and for a reaction to arrive as well. */
export async function quiet(): Promise<void> {
  for (let i = 0; i < 20; i++) await turn()
}

/** Waits before the next question to another process or thread, because each answer takes its processor time. */
export function pollPause(): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, POLL_MS))
}

export class Peer {
  readonly #socket: Socket
  #pieces: Buffer[] = []
  #length = 0
  #wake = Promise.withResolvers<void>()
  /** How the other side ended: '' while it has not. */
  ending: '' | 'FIN' | 'RST' = ''
  /** The socket is closed on both sides. */
  isClosed = false

  constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', (bytes: Buffer) => {
      this.#pieces.push(bytes)
      this.#length += bytes.length
      this.#changed()
    })
    socket.on('end', () => {
      this.ending ||= 'FIN'
      this.#changed()
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNRESET' || error.code === 'EPIPE') this.ending ||= 'RST'
      this.#changed()
    })
    socket.on('close', () => {
      this.isClosed = true
      this.#changed()
    })
  }

  /** Resolves when bytes arrive, or the connection ends. */
  changed(): Promise<void> {
    return this.#wake.promise
  }

  #changed(): void {
    const { resolve } = this.#wake
    this.#wake = Promise.withResolvers()
    resolve()
  }

  /** Bytes received and not yet taken. */
  get received(): Buffer {
    if (this.#pieces.length > 1) this.#pieces = [Buffer.concat(this.#pieces)]
    return this.#pieces[0] ?? Buffer.alloc(0)
  }

  get length(): number {
    return this.#length
  }

  /** `received` as a string, one character per byte. */
  get text(): string {
    return this.received.toString('latin1')
  }

  /** Removes and returns the first `length` received bytes, or all. */
  take(length = this.#length): string {
    const text = this.received.toString('latin1', 0, length)
    this.drop(length)
    return text
  }

  /** Removes the first `length` received bytes. */
  drop(length: number): void {
    const { received } = this
    this.#pieces = length === received.length ? [] : [received.subarray(length)]
    this.#length = received.length - length
  }

  /** Sends bytes, or a string of bytes, in one write. */
  send(bytes: string | Uint8Array): void {
    if (this.#socket.writable) this.#socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
  }

  /** Sends in pieces that the receiver reads one by one; `cuts` are ascending positions in the bytes. */
  async sendCut(bytes: string | Uint8Array, cuts: readonly number[]): Promise<void> {
    const whole = typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes
    let from = 0
    // Only from the second turn on are all readable sockets read between two turns.
    if (cuts.length > 0) await turn()
    for (const cut of [...cuts, whole.length]) {
      if (cut <= from) continue
      if (this.ending !== '' || !this.#socket.writable) return
      this.send(whole.subarray(from, cut))
      from = cut
      await turn()
    }
  }

  /** Sends byte by byte; the receiver reads each byte by itself. */
  sendBytewise(bytes: string): Promise<void> {
    return this.sendCut(
      bytes,
      Array.from(bytes, (_, at) => at + 1),
    )
  }

  /** Sends FIN after the sent bytes; receiving continues. */
  end(): void {
    this.#socket.end()
  }

  reset(): void {
    this.#socket.resetAndDestroy()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  /** Stops reading, so that the buffers of the sender fill up. */
  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  /** Bytes that the kernel has not yet accepted. */
  get unsent(): number {
    return this.#socket.writableLength
  }

  /** Waits for the head of a request or the end of the connection, without a deadline. */
  async untilRequest(): Promise<void> {
    while (!this.text.includes('\r\n\r\n') && this.ending === '' && !this.isClosed) await this.changed()
  }

  /** Waits until `holds`; checked whenever bytes arrive or the connection ends. */
  async until(what: string, holds: (peer: Peer) => boolean): Promise<void> {
    const guard = Promise.withResolvers<void>()
    const timer = setTimeout(() => guard.reject(new Error(this.#complaint(what))), GUARD_MS)
    try {
      while (!holds(this)) {
        if (this.isClosed) throw new Error(this.#complaint(what))
        await Promise.race([this.#wake.promise, guard.promise])
      }
    } finally {
      clearTimeout(timer)
    }
  }

  #complaint(what: string): string {
    const tail = JSON.stringify(this.text.slice(-400))
    const end = this.isClosed ? 'closed' : 'open'
    return `waited in vain for ${what}; connection ${end}, ending "${this.ending}", received ${this.length}: …${tail}`
  }

  untilText(text: string): Promise<void> {
    return this.until(JSON.stringify(text), () => this.text.includes(text))
  }

  untilLength(length: number): Promise<void> {
    return this.until(`${length} bytes`, () => this.#length >= length)
  }

  /** Waits for the end by FIN or RST. */
  async untilEnd(): Promise<'FIN' | 'RST'> {
    await this.until('the end', () => this.ending !== '' || this.isClosed)
    return this.ending === '' ? 'FIN' : this.ending
  }
}

/**
 * Connects to a port of this machine. `localAddress`: the address of the peer itself. Only another address than the
 * usual one is bound: the system compares a bound socket with all connections that have closed lately, which takes half
 * of the processor time of a test with thousands of connections.
 */
export async function connectPeer(port: number, localAddress = OWN_ADDRESS): Promise<Peer> {
  const bound = localAddress === OWN_ADDRESS ? {} : { localAddress }
  const socket = connect({ port, host: OWN_ADDRESS, allowHalfOpen: true, ...bound })
  const peer = new Peer(socket)
  await once(socket, 'connect')
  // Where nobody listens, a connection may get the port that it asks for, and is its own peer.
  if (socket.localPort === port && localAddress === OWN_ADDRESS) {
    socket.resetAndDestroy()
    throw new Error(`nobody listens on port ${port}`)
  }
  return peer
}

/** A condition is checked at each of so many turns, and then each millisecond to spare the processor. */
const BUSY_TURNS = 50

/** Waits for a condition that no event of a peer announces. */
export async function eventually(what: string, holds: () => boolean): Promise<void> {
  const end = performance.now() + GUARD_MS
  for (let turns = 0; !holds(); turns++) {
    if (performance.now() > end) throw new Error(`waited in vain for ${what}`)
    await (turns < BUSY_TURNS ? turn() : new Promise(resolve => setTimeout(resolve, 1)))
  }
}

/** A port without a listener, which no listener gets either: that of the client's end of a connection. */
export async function refusingPort(): Promise<{ readonly port: number; close(): void }> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = connect(port, '127.0.0.1')
  await once(client, 'connect')
  return {
    port: client.localPort!,
    close() {
      client.destroy()
      server.close()
    },
  }
}

/** A listener whose connections the test scripts. */
export class ScriptedBackend {
  readonly port: number
  readonly peers: Peer[] = []
  readonly #server: Server
  #taken = 0

  private constructor(server: Server, onPeer: (peer: Peer) => void) {
    this.#server = server
    this.port = (server.address() as { port: number }).port
    server.on('connection', socket => {
      const peer = new Peer(socket)
      this.peers.push(peer)
      onPeer(peer)
    })
  }

  /** Calls `onPeer` for each accepted connection. */
  static async listen(onPeer: (peer: Peer) => void = () => {}): Promise<ScriptedBackend> {
    const server = createServer({ allowHalfOpen: true })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new ScriptedBackend(server, onPeer)
  }

  /** Waits for the next accepted connection that no earlier call returned. */
  async next(): Promise<Peer> {
    const index = this.#taken++
    await eventually(`connection ${index + 1} to the backend`, () => this.peers.length > index)
    return this.peers[index]!
  }

  /** Removes a closed connection. */
  forget(peer: Peer): void {
    const at = this.peers.indexOf(peer)
    if (at >= 0) this.peers.splice(at, 1)
  }

  /** Skips all connections accepted so far. */
  skip(): void {
    this.#taken = this.peers.length
  }

  /** Ends all connections; further ones are accepted, and do not keep the process. */
  reset(): void {
    this.#server.unref()
    for (const peer of this.peers.splice(0)) peer.destroy()
    this.#taken = 0
  }

  close(): void {
    this.#server.close()
    for (const peer of this.peers) peer.destroy()
  }
}
