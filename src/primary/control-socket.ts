/**
 * The control socket for the command line: `control.sock` in the data folder, which only the node's own user can open.
 * A client sends one line of JSON and gets lines of JSON back until the node closes the connection. Commands reach the
 * threads by message, apart from the traffic.
 */
import { chmodSync, lstatSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'

/** The line of a client. */
export interface CommandRequest {
  readonly command: string
  readonly [field: string]: unknown
}

export interface CommandClient {
  /** Sends a line before the last one. */
  send(line: object): void
  /** Aborted when the client ends its side: a client that leaves shows in no other way. */
  readonly gone: AbortSignal
}

/** Returns the last line. An error becomes a line with `error`. */
export type CommandHandler = (request: CommandRequest, client: CommandClient) => Promise<object> | object

const NAME = 'control.sock'
/** The smallest limit of a system for the path of a socket, with its terminating zero. */
const PATH_BYTES_MAX = 104
const CLIENTS_MAX = 8
const REQUEST_BYTES_MAX = 65_536
/** For a client to send its whole line, and to take the response. A command may take as long as it needs. */
const SILENCE_MS = 30_000
/** No other user may open the socket, not even between its creation and chmod. */
const PRIVATE_UMASK = 0o177

/** A command is refused; the message is for the operator. */
export class CommandRefused extends Error {
  override readonly name = 'CommandRefused'
}

export function controlSocketPath(dataDir: string): string {
  return join(dataDir, NAME)
}

export function isSocketPathTooLong(path: string): boolean {
  return Buffer.byteLength(path) >= PATH_BYTES_MAX
}

export class ControlSocket {
  readonly #path: string
  readonly #server: Server
  readonly #commands: Readonly<Record<string, CommandHandler>>
  readonly #silenceMs: number
  readonly #clients = new Set<Socket>()
  /** Runs at every exit of the process. */
  readonly #remove = (): void => rmSync(this.#path, { force: true })

  private constructor(path: string, commands: Readonly<Record<string, CommandHandler>>, silenceMs: number) {
    this.#path = path
    this.#commands = commands
    this.#silenceMs = silenceMs
    this.#server = createServer({ allowHalfOpen: true }, socket => this.#accept(socket))
  }

  /** Null where the socket cannot be opened: `warn` gets the cause, and the node runs on. `silenceMs`: for tests. */
  static async open(
    dataDir: string,
    commands: Readonly<Record<string, CommandHandler>>,
    warn: (cause: string) => void,
    silenceMs = SILENCE_MS,
  ): Promise<ControlSocket | null> {
    const path = controlSocketPath(dataDir)
    try {
      if (isSocketPathTooLong(path))
        throw new Error(`its path has ${PATH_BYTES_MAX} bytes or more; use a shorter --data`)
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
      // `listen` binds before it returns.
      this.#server.listen(this.#path, resolve)
    } finally {
      process.umask(before)
    }
    await promise
    chmodSync(this.#path, 0o600)
    process.once('exit', this.#remove)
    // A client that fails to connect ends nothing else.
    this.#server.on('error', () => {})
  }

  #accept(socket: Socket): void {
    socket.on('error', () => socket.destroy())
    socket.setTimeout(this.#silenceMs, () => socket.destroy())
    if (this.#clients.size >= CLIENTS_MAX) {
      socket.end(line({ error: `busy: ${CLIENTS_MAX} commands are running` }))
      // The end of the client is seen only behind the bytes that it sends.
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
      // One request per connection: bytes behind its line are ignored.
      if (received.includes('\n')) return
      received += piece
      const end = received.indexOf('\n')
      if (end !== -1) void this.#run(socket, received.slice(0, end), gone.signal)
      else if (received.length > REQUEST_BYTES_MAX) {
        received = '\n'
        socket.end(line({ error: `a request has at most ${REQUEST_BYTES_MAX} bytes` }))
      }
    })
  }

  async #run(socket: Socket, text: string, gone: AbortSignal): Promise<void> {
    const send = (message: object): void => {
      if (socket.writable) socket.write(line(message))
    }
    try {
      const request = readRequest(text)
      const command = Object.hasOwn(this.#commands, request.command) ? this.#commands[request.command] : undefined
      if (command === undefined)
        throw new CommandRefused(`unknown command; the commands are ${Object.keys(this.#commands).join(', ')}`)
      // A client that waits is silent, and a reload of thousands of APIs takes a while.
      socket.setTimeout(0)
      send(await command(request, { send, gone }))
    } catch (error) {
      send({ error: error instanceof CommandRefused ? error.message : `failed: ${String(error)}` })
    }
    socket.setTimeout(this.#silenceMs)
    socket.end()
  }

  /** Ends running commands and removes the socket. */
  close(): void {
    process.removeListener('exit', this.#remove)
    this.#server.close()
    for (const socket of this.#clients) socket.destroy()
    this.#remove()
  }
}

function line(message: object): string {
  return `${JSON.stringify(message)}\n`
}

function readRequest(text: string): CommandRequest {
  let request: unknown
  try {
    request = JSON.parse(text)
  } catch {
    throw new CommandRefused('expected a line of JSON')
  }
  if (!isRequest(request)) throw new CommandRefused('expected {"command": "…"}')
  return request
}

function isRequest(value: unknown): value is CommandRequest {
  return typeof value === 'object' && value !== null && 'command' in value && typeof value.command === 'string'
}

/** Removes the socket of a killed process. A socket that is in use, or a file that is no socket, stays and throws. */
async function removeStale(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isSocket()) throw new Error('a file that is no socket has this name')
  const { promise, resolve } = Promise.withResolvers<string>()
  const probe = connect(path, () => resolve(''))
  probe.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'))
  const failure = await promise
  probe.destroy()
  if (failure === '') throw new Error('another process uses it')
  if (failure === 'ECONNREFUSED') rmSync(path, { force: true })
  else if (failure !== 'ENOENT') throw new Error(`it cannot be opened (${failure})`)
}
