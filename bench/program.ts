/**
 * Child processes of the bench: pinned to a core, watched until they are ready, and stopped with everything they
 * started. All stay in the bench's session: the kernel shares a processor out between sessions first (autogroup), and
 * in sessions of their own the lowest-priority loops would get half of it.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { cpus } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { membersOf } from './process-tree.ts'

/** The proxy under test has the first core to itself; everything else shares the second. */
export const PROXY_CORE = 0
export const LOAD_CORE = 1

const STOP_PATIENCE_MS = 5000
const READY_PATIENCE_MS = 20_000
const KEPT_OUTPUT_CHARS = 4000

export function findExecutable(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
  return folders.map(folder => join(folder, name)).find(path => existsSync(path))
}

const taskset = cpus().length > LOAD_CORE ? findExecutable('taskset') : undefined

/** `cores` as taskset writes them: one core, or several parted by commas. */
export function pinned(cores: number | string, command: readonly string[]): string[] {
  return taskset === undefined ? [...command] : [taskset, '-c', String(cores), ...command]
}

/** Moves the bench itself, all threads of it, away from the proxy's core. */
export function pinSelf(): boolean {
  if (taskset === undefined) return false
  execFileSync(taskset, ['-a', '-c', '-p', String(LOAD_CORE), String(process.pid)], { stdio: 'ignore' })
  return true
}

/** How many files a program of the bench may have open. */
export function descriptorLimit(): number {
  const limits = readFileSync('/proc/self/limits', 'latin1')
  return Number(/^Max open files +\d+ +(\d+)/m.exec(limits)?.[1] ?? 1024)
}

/** Raises that limit for the bench and all it starts, where this is allowed. */
export function raiseDescriptorLimit(count: number): void {
  const prlimit = findExecutable('prlimit')
  if (prlimit === undefined || descriptorLimit() >= count) return
  spawnSync(prlimit, ['--pid', String(process.pid), `--nofile=${count}:${count}`], { stdio: 'ignore' })
}

const running = new Set<Program>()

export class Program {
  readonly name: string
  readonly child: ChildProcess
  readonly startedMs = performance.now()
  /** The last of what it printed, for the message when it fails. */
  output = ''
  #lines: ((line: string) => void)[] = []
  #rest = ''

  constructor(name: string, command: readonly string[], environment: Readonly<Record<string, string>> = {}) {
    this.name = name
    const [file, ...words] = command
    this.child = spawn(file!, words, {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...environment },
    })
    this.child.on('error', error => this.#keep(String(error)))
    this.child.stdin?.on('error', () => {}) // A program that ended does not read; its exit is reported elsewhere.
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => this.#keep(text))
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => this.#read(text))
    this.child.once('exit', () => running.delete(this))
    running.add(this)
  }

  get pid(): number {
    return this.child.pid ?? -1
  }

  get ended(): boolean {
    return this.child.pid === undefined || this.child.exitCode !== null || this.child.signalCode !== null
  }

  #keep(text: string): void {
    this.output = (this.output + text).slice(-KEPT_OUTPUT_CHARS)
  }

  #read(text: string): void {
    this.#keep(text)
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop()!
    for (const line of lines) for (const listener of this.#lines) listener(line)
  }

  /** Returns what takes the listener off again. */
  onLine(listener: (line: string) => void): () => void {
    this.#lines.push(listener)
    return () => {
      this.#lines = this.#lines.filter(other => other !== listener)
    }
  }

  #failure(what: string): Error {
    const said = this.output.trim()
    return new Error(`${this.name} ${what}${said === '' ? '' : `; it said:\n${said}`}`)
  }

  /** Resolves at the first line that matches; the time is taken when the line arrives. */
  async line(pattern: RegExp, patienceMs = READY_PATIENCE_MS): Promise<{ line: string; atMs: number }> {
    const { promise, resolve, reject } = Promise.withResolvers<{ line: string; atMs: number }>()
    const forget = this.onLine(line => {
      if (pattern.test(line)) resolve({ line, atMs: performance.now() })
    })
    const timer = setTimeout(() => reject(this.#failure(`did not print ${pattern} in time`)), patienceMs)
    const ended = (): void => reject(this.#failure('ended before it was ready'))
    this.child.once('close', ended)
    this.child.once('error', ended)
    try {
      return await promise
    } finally {
      forget()
      clearTimeout(timer)
      this.child.off('close', ended)
      this.child.off('error', ended)
    }
  }

  /** Resolves when the port accepts a connection. */
  async accepting(port: number): Promise<void> {
    const deadline = performance.now() + READY_PATIENCE_MS
    while (performance.now() < deadline) {
      if (this.ended) throw this.#failure('ended before it was ready')
      if (await canConnect(port)) return
      await sleep(20)
    }
    throw this.#failure(`does not accept connections on port ${port}`)
  }

  signal(name: NodeJS.Signals): void {
    if (this.ended) return
    for (const pid of membersOf(this.pid)) {
      try {
        process.kill(pid, name)
      } catch {
        // It ended by itself.
      }
    }
  }

  async stop(first: NodeJS.Signals = 'SIGTERM', patienceMs = STOP_PATIENCE_MS): Promise<void> {
    if (this.ended) return
    const gone = new Promise<void>(resolve => this.child.once('exit', () => resolve()))
    this.signal(first)
    const timer = setTimeout(() => this.signal('SIGKILL'), patienceMs)
    await gone
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

/** Runs a program to its end and gives what it printed on standard output. */
export function finished(
  name: string,
  command: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<string> {
  const program = new Program(name, command, environment)
  const lines: string[] = []
  program.onLine(line => lines.push(line))
  return new Promise((resolve, reject) => {
    program.child.once('error', reject)
    program.child.once('close', code => {
      if (code === 0) resolve(lines.join('\n'))
      else reject(new Error(`${name} failed with ${code}: ${program.output.trim()}`))
    })
  })
}

/** Idle scheduling: whatever else wants the processor gets it at once, and not at the end of somebody's time slice. */
export function lowestPriority(): string[] {
  return findExecutable('chrt') === undefined ? ['nice', '-n', '19'] : ['chrt', '--idle', '0']
}

/**
 * A lowest-priority loop on the proxy's core. A virtual processor that halts for want of work takes milliseconds to
 * come back, which at a low fixed rate looks like a tail of the proxy. The other core has the generator, which never
 * sleeps.
 */
export function startSpinner(): Program {
  const loop = [...lowestPriority(), 'sh', '-c', 'while :; do :; done']
  return new Program('the spinner', pinned(PROXY_CORE, loop))
}

process.on('exit', () => {
  // One that is stopped hears of its end when it goes on.
  for (const name of ['SIGTERM', 'SIGCONT'] as const) for (const program of running) program.signal(name)
})
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => process.exit(130))
