/** Client of the control socket of a running gateway (`primary/control-socket.ts`). */
import { connect, type Socket } from 'node:net'
import { controlSocketPath, isSocketPathTooLong } from '../primary/control-socket.ts'
import { EXIT_FAILED } from './arguments.ts'
import type { Terminal } from './terminal.ts'

/** Far longer than the longest response. */
const RESPONSE_CHARS_MAX = 256 * 1024 * 1024

/** No gateway can be called, or the gateway has refused the command; the message is for the operator. */
export class ControlError extends Error {
  override readonly name = 'ControlError'
}

type Request = { readonly command: string } & Readonly<Record<string, unknown>>

export class ControlClient {
  readonly #socket: Socket
  /** Whole lines that nobody has taken yet. */
  readonly #lines: string[] = []
  /** The line under way: searching all of it again with each piece takes minutes for a long one. */
  #pieces: string[] = []
  /** Characters of both. */
  #chars = 0
  #wake = Promise.withResolvers<void>()

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setEncoding('utf8')
    socket.on('data', (piece: string) => {
      this.#take(piece)
      if (this.#chars > RESPONSE_CHARS_MAX) socket.destroy()
      this.#notify()
    })
    socket.on('close', () => this.#notify())
    socket.on('error', () => socket.destroy())
  }

  /** Throws ControlError. */
  static async connect(dataDir: string): Promise<ControlClient> {
    const path = controlSocketPath(dataDir)
    if (isSocketPathTooLong(path)) throw new ControlError(`the path of the control socket is too long: ${path}`)
    const { promise, resolve, reject } = Promise.withResolvers<ControlClient>()
    const socket = connect(path, () => resolve(new ControlClient(socket)))
    socket.once('error', (error: NodeJS.ErrnoException) =>
      reject(new ControlError(connectionError(error.code, dataDir))),
    )
    return promise
  }

  /** Sends a request and returns the first line of its response. Throws ControlError. */
  async send<Response>(request: Request): Promise<Response> {
    this.#socket.write(`${JSON.stringify(request)}\n`)
    return this.receive()
  }

  /** Returns the next line of a response. Throws ControlError, also if the gateway closes the connection instead. */
  async receive<Response>(): Promise<Response> {
    for (;;) {
      const line = this.#lines.shift()
      if (line !== undefined) {
        this.#chars -= line.length
        const response = JSON.parse(line) as Response & { readonly error?: string }
        if (response.error !== undefined) throw new ControlError(response.error)
        return response
      }
      if (this.#socket.destroyed) throw new ControlError('the gateway has closed the control connection')
      await this.#wake.promise
    }
  }

  #take(piece: string): void {
    const [first = '', ...others] = piece.split('\n')
    this.#pieces.push(first)
    this.#chars += piece.length - others.length
    for (const other of others) {
      this.#lines.push(this.#pieces.join(''))
      this.#pieces = [other]
    }
  }

  #notify(): void {
    this.#wake.resolve()
    this.#wake = Promise.withResolvers()
  }

  close(): void {
    this.#socket.destroy()
  }
}

function connectionError(code: string | undefined, dataDir: string): string {
  if (code === 'ENOENT' || code === 'ECONNREFUSED') {
    return `no gateway runs with the data folder ${dataDir}; start one, or name the one that runs with --home or --data`
  }
  if (code === 'EACCES') return `the gateway that uses ${dataDir} belongs to another user`
  return `the gateway that uses ${dataDir} cannot be called (${code})`
}

/** Sends one request and returns its response. Throws ControlError. */
export async function sendCommand<Response>(dataDir: string, request: Request): Promise<Response> {
  const control = await ControlClient.connect(dataDir)
  try {
    return await control.send<Response>(request)
  } finally {
    control.close()
  }
}

/** Runs a command that is one request: `report` prints the response and returns the exit code. */
export function sendAndReport<Response>(
  dataDir: string,
  request: Request,
  errorOutput: Terminal,
  report: (response: Response) => number,
): Promise<number> {
  return orFail(errorOutput, async () => report(await sendCommand<Response>(dataDir, request)))
}

/** Prints a ControlError as the reason why the command has failed. */
export async function orFail(errorOutput: Terminal, command: () => Promise<number>): Promise<number> {
  try {
    return await command()
  } catch (error) {
    if (!(error instanceof ControlError)) throw error
    errorOutput.write(`${error.message}\n`)
    return EXIT_FAILED
  }
}
