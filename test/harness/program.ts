/** Starts the real program as operators do, in a home of its own, and waits for what it prints. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { openProject } from './open-project.ts'
import { connectPeer, GUARD_MS } from './peers.ts'
import { LEVEL } from './socket-level.ts'

const ROOT = resolve(import.meta.dirname, '../..')
/** Entry of the program: that of its built form where `npm test` has built it (`built-program.ts`). */
export const LAUNCHER = resolve(ROOT, process.env.SLUICE_LAUNCHER ?? 'src/launch.js')

/**
 * The first size of V8's young generation, in MiB: a program collects no garbage while it starts, which would take a
 * tenth of the processor time of its start.
 */
const YOUNG_GENERATION = '--min-semi-space-size=16'

interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** The output of a program so far; a test can wait for a text in it. */
class Printed {
  text = ''
  #hasEnded = false
  readonly #waiting = new Set<() => void>()

  add(piece: string): void {
    this.text += piece
    this.#look()
  }

  /** The output has ended. */
  end(): void {
    this.#hasEnded = true
    this.#look()
  }

  #look(): void {
    for (const look of [...this.#waiting]) look()
  }

  /** The first match, now or later. Rejects when the program ends without it. */
  async until(pattern: RegExp, guardMs = GUARD_MS): Promise<RegExpExecArray> {
    const { promise, resolve: found, reject } = Promise.withResolvers<RegExpExecArray>()
    const look = (): void => {
      const match = pattern.exec(this.text)
      if (match !== null) found(match)
      else if (this.#hasEnded) reject(new Error(`ended, and never printed ${pattern}: ${this.text}`))
    }
    const guard = setTimeout(() => reject(new Error(`never printed ${pattern}: ${this.text}`)), guardMs)
    this.#waiting.add(look)
    look()
    try {
      return await promise
    } finally {
      clearTimeout(guard)
      this.#waiting.delete(look)
    }
  }
}

export class Program {
  readonly child: ChildProcess
  readonly out = new Printed()
  readonly err = new Printed()
  /** The messages among the lines on stderr, a line each: what `start` announces where no terminal reads it. */
  readonly said = new Printed()
  readonly exited: Promise<Exit>

  constructor(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const flags = command === process.execPath ? [YOUNG_GENERATION] : []
    this.child = spawn(command, [...flags, ...args], {
      cwd: ROOT,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.child.stdout!.setEncoding('utf8').on('data', (piece: string) => this.out.add(piece))
    this.child.stderr!.setEncoding('utf8').on('data', (piece: string) => this.#addError(piece))
    this.exited = once(this.child, 'close').then(([code, signal]) => {
      for (const printed of [this.out, this.err, this.said]) printed.end()
      return { code, signal } as Exit
    })
  }

  #addError(piece: string): void {
    const begun = this.err.text.lastIndexOf('\n') + 1
    this.err.add(piece)
    const lines = this.err.text.slice(begun).split('\n').slice(0, -1)
    for (const line of lines) if (line.startsWith('{')) this.said.add(`${JSON.parse(line).msg}\n`)
  }

  /** The documents of the event log so far: JSON lines on stderr. */
  get events(): readonly Record<string, unknown>[] {
    return this.err.text
      .split('\n')
      .filter(line => line.startsWith('{'))
      .map(line => JSON.parse(line))
  }

  signal(name: NodeJS.Signals): void {
    this.child.kill(name)
  }

  /** Ends the program, if it still runs, by SIGKILL. */
  async kill(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill('SIGKILL')
    await this.exited
  }
}

export interface Home {
  readonly path: string
  readonly data: string
  remove(): void
}

/**
 * `kept`: data of a program that has started before. `new`: the program makes its data when it starts, for tests that
 * prove what a first start makes, or whose configuration has the password of the administrator.
 */
export type Data = 'new' | 'kept'

/** Makes a home with one API, `/t`, whose backend is a port of this machine. */
export function makeHome(backendPort: number, deployment = '', data: Data = 'kept'): Home {
  const path = mkdtempSync(join(tmpdir(), 'sluice-home-'))
  if (data === 'kept') copyKeptData(join(path, 'data'))
  writeFileSync(join(path, 'deployment.toml'), deployment)
  const api = join(path, 'apis', 'Test')
  mkdirSync(api, { recursive: true })
  const production_endpoints = { url: `http://127.0.0.1:${backendPort}` }
  const endpointConfig = { endpoint_type: 'http', production_endpoints }
  writeFileSync(join(api, 'api.yaml'), openProject({ name: 'Test', context: '/t', endpointConfig }))
  return { path, data: join(path, 'data'), remove: () => rmSync(path, { recursive: true, force: true }) }
}

/** Does nothing where `npm test` has made no such data (`kept-data.ts`). */
export function copyKeptData(to: string): void {
  const { SLUICE_KEPT_DATA: kept = '' } = process.env
  if (kept === '') return
  mkdirSync(to, { mode: 0o700 })
  for (const file of readdirSync(kept)) copyFileSync(join(kept, file), join(to, file))
}

/** Ports below those that Linux gives to sockets by itself: nobody but another caller of `freePort` takes one. */
const PORTS_FROM = 12_000
const PORTS = 16_000

/** A port that is free. Several reactors need one that is known beforehand. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = PORTS_FROM + randomInt(PORTS)
    const server = createServer()
    const isFree = await new Promise<boolean>(resolve => {
      server.once('error', () => resolve(false))
      server.listen(port, () => resolve(true))
    })
    if (!isFree) continue
    server.close()
    await once(server, 'close')
    return port
  }
}

/** A port whose successor is free too: gateways of the bench have their health port there. */
export async function freePortPair(): Promise<number> {
  for (;;) {
    const port = await freePort()
    const second = createServer().listen(port + 1, '127.0.0.1')
    const isFree = await once(second, 'listening').then(
      () => true,
      () => false,
    )
    second.close()
    if (isFree) return port
  }
}

export interface RunningGateway {
  readonly program: Program
  readonly home: Home
  readonly port: number
  readonly healthPort: number
}

/** For tests of the plain listener: the ports of the others may be taken. */
export const PLAIN_ONLY = [
  'transport.passthru_https.listener.enable=false',
  'transport.ws.listener.enable=false',
  'transport.wss.listener.enable=false',
  'management.enable=false',
]

/**
 * `sets`: `section.key=value`; the ports are free ones unless set. `words`: further ones of the command line.
 * `openFiles`: `ulimit -n` of the program; 0: that of the test.
 */
export function launch(
  home: Home,
  sets: readonly string[],
  env: Readonly<Record<string, string>> = {},
  words: readonly string[] = [],
  openFiles = 0,
): Program {
  const defaults = [
    ...PLAIN_ONLY,
    'transport.passthru_http.listener.parameters.port=0',
    'management.health_port=0',
    // Without the listener, its port would be a key without effect, and a warning.
    ...(sets.includes('management.enable=true') ? ['management.port=0'] : []),
    `transport.passthru_http.socket_level=${LEVEL}`,
  ]
  const args = [LAUNCHER, 'start', '--home', home.path, ...[...defaults, ...sets].flatMap(it => ['--set', it])]
  if (openFiles === 0) return new Program(process.execPath, [...args, ...words], env)
  const script = `ulimit -n ${openFiles} && exec "$0" "$@"`
  return new Program('sh', ['-c', script, process.execPath, ...args, ...words], env)
}

export async function startProgram(
  home: Home,
  sets: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
  words: readonly string[] = [],
  openFiles = 0,
): Promise<RunningGateway> {
  const program = launch(home, sets, env, words, openFiles)
  try {
    await program.said.until(/^ready$/m)
    const [, port] = await program.said.until(/^listening on http:\/\/\S*:(\d+)$/m)
    const [, health] = await program.said.until(/^health on http:\/\/\S*:(\d+)\/healthz$/m)
    return { program, home, port: Number(port), healthPort: Number(health) }
  } catch (error) {
    // A program that goes on would keep the test file from ending.
    await program.kill()
    const { code, signal } = await program.exited
    throw new Error(`ended with ${code ?? signal} before it was ready: ${program.err.text}`, { cause: error })
  }
}

/** Sends one request on a connection of its own; resolves with the whole response as text. */
export async function ask(port: number, method: string, path: string): Promise<string> {
  const peer = await connectPeer(port)
  peer.send(`${method} ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
  await peer.untilEnd()
  peer.destroy()
  return peer.text
}
