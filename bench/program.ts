/**
 * Child processes of the bench: pinned to a core, watched until they are ready, stopped with all their descendants.
 * The processes stay in the session of the bench: the kernel divides processors between sessions first (autogroup), so
 * an idle-priority loop in a session of its own would get half a processor.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { cpus } from 'node:os'
import { delimiter, join } from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { processTreeIds } from './process-tree.ts'

/** The core of the proxy under test; everything else shares the other one. */
export const PROXY_CORE = 0
export const LOAD_CORE = 1

const STOP_TIMEOUT_MS = 5000
const READY_TIMEOUT_MS = 20_000
const OUTPUT_CHARS_MAX = 4000

export function findExecutable(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
  return folders.map(folder => join(folder, name)).find(path => existsSync(path))
}

const taskset = cpus().length > LOAD_CORE ? findExecutable('taskset') : undefined

/** `cores` in the notation of taskset: one core, or several separated by commas. */
export function pinned(cores: number | string, command: readonly string[]): string[] {
  return taskset === undefined ? [...command] : [taskset, '-c', String(cores), ...command]
}

/** Moves all threads of the bench itself to the load core; false if that is impossible. */
export function pinSelf(): boolean {
  if (taskset === undefined) return false
  execFileSync(taskset, ['-a', '-c', '-p', String(LOAD_CORE), String(process.pid)], { stdio: 'ignore' })
  return true
}

/** Limit of open files for programs of the bench. */
export function descriptorLimit(): number {
  const limits = readFileSync('/proc/self/limits', 'latin1')
  return Number(/^Max open files +\d+ +(\d+)/m.exec(limits)?.[1] ?? 1024)
}

/** Raises the limit of open files for the bench and its child processes, where this is allowed. */
export function raiseDescriptorLimit(count: number): void {
  const prlimit = findExecutable('prlimit')
  if (prlimit === undefined || descriptorLimit() >= count) return
  spawnSync(prlimit, ['--pid', String(process.pid), `--nofile=${count}:${count}`], { stdio: 'ignore' })
}

const running = new Set<Program>()
let endsProgramsAtExit = false

/** `isOutput`: the line is of standard output, else of standard error. */
type LineListener = (line: string, isOutput: boolean) => void

export class Program {
  readonly name: string
  readonly child: ChildProcess
  readonly startedMs = performance.now()
  /** The end of its output, for error messages. */
  output = ''
  #lineListeners: LineListener[] = []

  constructor(name: string, command: readonly string[], environment: Readonly<Record<string, string>> = {}) {
    this.name = name
    // Not before: a process that starts none handles signals by itself.
    if (!endsProgramsAtExit) endProgramsAtExit()
    endsProgramsAtExit = true
    const [file, ...words] = command
    this.child = spawn(file!, words, {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...environment },
    })
    this.child.on('error', error => this.#appendOutput(String(error)))
    this.child.stdin?.on('error', () => {}) // The exit of the program is reported elsewhere.
    // The gateway logs that it is ready to the one or the other.
    this.#readLines(this.child.stdout, true)
    this.#readLines(this.child.stderr, false)
    this.child.once('exit', () => running.delete(this))
    running.add(this)
  }

  get pid(): number {
    return this.child.pid ?? -1
  }

  get ended(): boolean {
    return this.child.pid === undefined || this.child.exitCode !== null || this.child.signalCode !== null
  }

  #appendOutput(text: string): void {
    this.output = (this.output + text).slice(-OUTPUT_CHARS_MAX)
  }

  #readLines(stream: Readable | null, isOutput: boolean): void {
    let partial = ''
    stream?.setEncoding('utf8').on('data', (text: string) => {
      this.#appendOutput(text)
      const lines = (partial + text).split('\n')
      partial = lines.pop()!
      for (const line of lines) for (const listener of this.#lineListeners) listener(line, isOutput)
    })
  }

  /** Returns a function that removes the listener. */
  onLine(listener: LineListener): () => void {
    this.#lineListeners.push(listener)
    return () => {
      this.#lineListeners = this.#lineListeners.filter(other => other !== listener)
    }
  }

  #failure(what: string): Error {
    const said = this.output.trim()
    return new Error(`${this.name} ${what}${said === '' ? '' : `; it said:\n${said}`}`)
  }

  /** Resolves with the first line that matches and the time of its arrival; rejects if the program ends before. */
  async waitForLine(pattern: RegExp, timeoutMs = READY_TIMEOUT_MS): Promise<{ line: string; atMs: number }> {
    const { promise, resolve, reject } = Promise.withResolvers<{ line: string; atMs: number }>()
    const removeListener = this.onLine(line => {
      if (pattern.test(line)) resolve({ line, atMs: performance.now() })
    })
    const timer = setTimeout(() => reject(this.#failure(`did not print ${pattern} in time`)), timeoutMs)
    const ended = (): void => reject(this.#failure('ended before it was ready'))
    this.child.once('close', ended)
    this.child.once('error', ended)
    try {
      return await promise
    } finally {
      removeListener()
      clearTimeout(timer)
      this.child.off('close', ended)
      this.child.off('error', ended)
    }
  }

  /** Resolves when the port accepts a connection. */
  async waitForPort(port: number): Promise<void> {
    const deadline = performance.now() + READY_TIMEOUT_MS
    while (performance.now() < deadline) {
      if (this.ended) throw this.#failure('ended before it was ready')
      if (await canConnect(port)) return
      await sleep(20)
    }
    throw this.#failure(`does not accept connections on port ${port}`)
  }

  signal(name: NodeJS.Signals): void {
    if (this.ended) return
    for (const pid of processTreeIds(this.pid)) {
      try {
        process.kill(pid, name)
      } catch {
        // The process ended by itself.
      }
    }
  }

  /** Stops the process tree; sends SIGKILL if it does not end in time. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (this.ended) return
    const ended = new Promise<void>(resolve => this.child.once('exit', () => resolve()))
    this.signal(signal)
    const timer = setTimeout(() => this.signal('SIGKILL'), STOP_TIMEOUT_MS)
    await ended
    clearTimeout(timer)
  }
}

export function canConnect(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

/** Ports from one block of ports to the next. */
const BLOCK = 100
const BLOCKS_MAX = 20

/**
 * The first port of so many that nothing listens on: from `first` on, else a hundred further. Throws where all are
 * taken, because a peer would fail later with a less helpful message.
 */
export async function freePorts(first: number, count: number): Promise<number> {
  const taken = async (from: number): Promise<boolean> => {
    for (let port = from; port < from + count; port++) if (await canConnect(port)) return true
    return false
  }
  for (let block = 0; block < BLOCKS_MAX; block++) {
    const from = first + block * BLOCK
    if (!(await taken(from))) return from
  }
  throw new Error(`no ${count} free ports from ${first} on: choose others with --base-port`)
}

/** Runs a program to its end; resolves with its standard output, rejects if its exit code is not 0. */
export function runToEnd(
  name: string,
  command: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<string> {
  const program = new Program(name, command, environment)
  const lines: string[] = []
  program.onLine((line, isOutput) => {
    if (isOutput) lines.push(line)
  })
  return new Promise((resolve, reject) => {
    program.child.once('error', reject)
    program.child.once('close', code => {
      if (code === 0) resolve(lines.join('\n'))
      else reject(new Error(`${name} failed with ${code}: ${program.output.trim()}`))
    })
  })
}

/** Command for idle scheduling: any other process gets the processor at once, not at the end of a time slice. */
export function lowestPriority(): string[] {
  return findExecutable('chrt') === undefined ? ['nice', '-n', '19'] : ['chrt', '--idle', '0']
}

/**
 * An idle-priority loop on the proxy's core. A virtual processor that halts takes milliseconds to wake up, which at a
 * low constant rate looks like tail latency of the proxy. The other core needs no loop: its generator never sleeps.
 */
export function startSpinner(): Program {
  const loop = [...lowestPriority(), 'sh', '-c', 'while :; do :; done']
  return new Program('the spinner', pinned(PROXY_CORE, loop))
}

/** Ends all programs with this process; a signal ends both. */
function endProgramsAtExit(): void {
  process.on('exit', () => {
    // A suspended process handles SIGTERM only after SIGCONT.
    for (const name of ['SIGTERM', 'SIGCONT'] as const) for (const program of running) program.signal(name)
  })
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => process.exit(130))
}
