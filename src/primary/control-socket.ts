/**
 * The way in for the command line: `control.sock` in the data folder, which only the gateway's own user may open. A
 * client sends one line of JSON and gets lines of JSON back, until the gateway ends the connection. Lives in the
 * primary and asks reactors by message, so that nothing of it stands in the way of traffic.
 */
import { chmodSync, lstatSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'

/** What a line of a client asks for. */
export interface ControlRequest {
  readonly command: string
  readonly [field: string]: unknown
}

export interface ControlClient {
  /** A line before the last one. */
  say(line: object): void
  /** Aborted when the client sends no more, which is how one that leaves is noticed. */
  readonly gone: AbortSignal
}

/** Answers the last line. What it throws becomes an error line. */
export type ControlCommand = (request: ControlRequest, client: ControlClient) => Promise<object> | object

const NAME = 'control.sock'
/** The least that systems allow for the path of a socket, with its end. */
const PATH_BYTES_MAX = 104
const CLIENTS_MAX = 8
const REQUEST_BYTES_MAX = 65_536
/** A client that sends no whole request, or takes no answer, for so long is given up. A command has its time. */
const SILENCE_MS = 30_000
/** No right for anybody else from the first moment on. */
const PRIVATE_UMASK = 0o177

/** An answer that says why there is none. */
export class Refused extends Error {
  override readonly name = 'Refused'
}

export function controlPath(dataDir: string): string {
  return join(dataDir, NAME)
}

/** Whether a socket of this path can be opened on every system. */
export function isTooLong(path: string): boolean {
  return Buffer.byteLength(path) >= PATH_BYTES_MAX
}

export class ControlSocket {
  readonly #path: string
  readonly #server: Server
  readonly #commands: Readonly<Record<string, ControlCommand>>
  readonly #silenceMs: number
  readonly #clients = new Set<Socket>()
  /** Also when the process ends in a hurry. */
  readonly #remove = (): void => rmSync(this.#path, { force: true })

  private constructor(path: string, commands: Readonly<Record<string, ControlCommand>>, silenceMs: number) {
    this.#path = path
    this.#commands = commands
    this.#silenceMs = silenceMs
    this.#server = createServer({ allowHalfOpen: true }, socket => this.#accept(socket))
  }

  /** Null where there can be none: the gateway runs all the same, and `warn` says why. `silenceMs`: for tests. */
  static async open(
    dataDir: string,
    commands: Readonly<Record<string, ControlCommand>>,
    warn: (cause: string) => void,
    silenceMs = SILENCE_MS,
  ): Promise<ControlSocket | null> {
    const path = controlPath(dataDir)
    try {
      if (isTooLong(path)) throw new Error(`its path has ${PATH_BYTES_MAX} bytes or more; a shorter --data allows it`)
      await removeStale(path)
      const socket = new ControlSocket(path, commands, silenceMs)
      await socket.#listen()
      return socket
    } catch (error) {
      warn(`no control socket ${path}: ${(error as Error).message}`)
      return null
    }
  }

  async #listen(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#server.once('error', reject)
    const before = process.umask(PRIVATE_UMASK)
    try {
      // Bound before it returns.
      this.#server.listen(this.#path, resolve)
    } finally {
      process.umask(before)
    }
    await promise
    chmodSync(this.#path, 0o600)
    process.once('exit', this.#remove)
    // One client that fails to connect is no reason to end.
    this.#server.on('error', () => {})
  }

  #accept(socket: Socket): void {
    socket.on('error', () => socket.destroy())
    socket.setTimeout(this.#silenceMs, () => socket.destroy())
    if (this.#clients.size >= CLIENTS_MAX) {
      socket.end(line({ error: `busy: ${CLIENTS_MAX} commands are under way` }))
      // Its end is only seen behind what it sends.
      socket.resume()
      return
    }
    this.#clients.add(socket)
    socket.on('close', () => this.#clients.delete(socket))
    socket.setEncoding('utf8')
    const gone = new AbortController()
    let received = ''
    socket.on('end', () => {
      gone.abort()
      if (!received.includes('\n')) socket.end(line({ error: 'expected a line of JSON' }))
    })
    socket.on('data', (piece: string) => {
      // One request for each connection: what follows its line is nobody's.
      if (received.includes('\n')) return
      received += piece
      const end = received.indexOf('\n')
      if (end !== -1) void this.#answer(socket, received.slice(0, end), gone.signal)
      else if (received.length > REQUEST_BYTES_MAX) {
        received = '\n'
        socket.end(line({ error: `a request has at most ${REQUEST_BYTES_MAX} bytes` }))
      }
    })
  }

  async #answer(socket: Socket, text: string, gone: AbortSignal): Promise<void> {
    const say = (told: object): void => {
      if (socket.writable) socket.write(line(told))
    }
    try {
      const request = readRequest(text)
      const command = Object.hasOwn(this.#commands, request.command) ? this.#commands[request.command] : undefined
      if (command === undefined) throw new Refused(`there is only: ${Object.keys(this.#commands).join(', ')}`)
      // Who waits is silent, and thousands of APIs take a reload a while.
      socket.setTimeout(0)
      say(await command(request, { say, gone }))
    } catch (error) {
      say({ error: error instanceof Refused ? error.message : `failed: ${String(error)}` })
    }
    socket.setTimeout(this.#silenceMs)
    socket.end()
  }

  /** Ends what is under way and takes the socket away. */
  close(): void {
    process.removeListener('exit', this.#remove)
    this.#server.close()
    for (const socket of this.#clients) socket.destroy()
    this.#remove()
  }
}

function line(told: object): string {
  return `${JSON.stringify(told)}\n`
}

function readRequest(text: string): ControlRequest {
  let request: unknown
  try {
    request = JSON.parse(text)
  } catch {
    throw new Refused('expected a line of JSON')
  }
  if (!isRequest(request)) throw new Refused('expected {"command": "…"}')
  return request
}

function isRequest(told: unknown): told is ControlRequest {
  return typeof told === 'object' && told !== null && 'command' in told && typeof told.command === 'string'
}

/** One that was left behind by a process that was killed. Whoever answers there keeps it, and so does what is none. */
async function removeStale(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isSocket()) throw new Error('something else has that name')
  const { promise, resolve } = Promise.withResolvers<string>()
  const probe = connect(path, () => resolve(''))
  probe.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'))
  const failure = await promise
  probe.destroy()
  if (failure === '') throw new Error('another process answers there')
  if (failure === 'ECONNREFUSED') rmSync(path, { force: true })
  else if (failure !== 'ENOENT') throw new Error(`what is there cannot be asked (${failure})`)
}
