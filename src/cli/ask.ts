/** The command line's end of the control socket of a running gateway. */
import { connect, type Socket } from 'node:net'
import { controlPath, isTooLong } from '../primary/control-socket.ts'
import { EXIT_FAILED } from './exit-codes.ts'
import type { Terminal } from './terminal.ts'

/** Far more than the longest answer. */
const ANSWER_CHARS_MAX = 256 * 1024 * 1024

/** There is no gateway to ask, or it has refused; the message says which, and what to do. */
export class CannotAsk extends Error {
  override readonly name = 'CannotAsk'
}

export class Control {
  readonly #socket: Socket
  #received = ''
  #wake = Promise.withResolvers<void>()

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setEncoding('utf8')
    socket.on('data', (piece: string) => {
      this.#received += piece
      if (this.#received.length > ANSWER_CHARS_MAX) socket.destroy()
      this.#changed()
    })
    socket.on('close', () => this.#changed())
    socket.on('error', () => socket.destroy())
  }

  /** Throws CannotAsk. */
  static async connect(dataDir: string): Promise<Control> {
    const path = controlPath(dataDir)
    if (isTooLong(path)) throw new CannotAsk(`the path of the control socket is too long: ${path}`)
    const { promise, resolve, reject } = Promise.withResolvers<Control>()
    const socket = connect(path, () => resolve(new Control(socket)))
    socket.once('error', (error: NodeJS.ErrnoException) => reject(new CannotAsk(whyNot(error.code, dataDir))))
    return promise
  }

  /** Asks, and answers the first line. Throws CannotAsk. */
  async ask<Answer>(request: { readonly command: string } & Readonly<Record<string, unknown>>): Promise<Answer> {
    this.#socket.write(`${JSON.stringify(request)}\n`)
    return this.next()
  }

  /** The next line. Throws CannotAsk, also when none comes any more. */
  async next<Answer>(): Promise<Answer> {
    for (;;) {
      const end = this.#received.indexOf('\n')
      if (end !== -1) {
        const told = JSON.parse(this.#received.slice(0, end)) as Answer & { readonly error?: string }
        this.#received = this.#received.slice(end + 1)
        if (told.error !== undefined) throw new CannotAsk(told.error)
        return told
      }
      if (this.#socket.destroyed) throw new CannotAsk('the gateway has ended the conversation')
      await this.#wake.promise
    }
  }

  #changed(): void {
    this.#wake.resolve()
    this.#wake = Promise.withResolvers()
  }

  close(): void {
    this.#socket.destroy()
  }
}

function whyNot(code: string | undefined, dataDir: string): string {
  if (code === 'ENOENT' || code === 'ECONNREFUSED') {
    return `no gateway runs with the data folder ${dataDir}; start one, or name the one that runs with --home or --data`
  }
  if (code === 'EACCES') return `the gateway that uses ${dataDir} belongs to another user`
  return `the gateway that uses ${dataDir} cannot be asked (${code})`
}

type Asked = { readonly command: string } & Readonly<Record<string, unknown>>

/** A command that is one question: what `tell` makes of the answer is its exit code. */
export async function askAndTell<Answer>(
  dataDir: string,
  request: Asked,
  complaints: Terminal,
  tell: (answer: Answer) => number,
): Promise<number> {
  try {
    return tell(await askOnce<Answer>(dataDir, request))
  } catch (error) {
    if (!(error instanceof CannotAsk)) throw error
    complaints.write(`${error.message}\n`)
    return EXIT_FAILED
  }
}

/** One question with one answer. Throws CannotAsk. */
export async function askOnce<Answer>(dataDir: string, request: Asked): Promise<Answer> {
  const control = await Control.connect(dataDir)
  try {
    return await control.ask<Answer>(request)
  } finally {
    control.close()
  }
}
