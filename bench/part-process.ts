/**
 * Runs a part of `bench:all` as a process in a session of its own. All its descendants stay in that session, also those
 * that outlive their parents, so the end of a part finds and ends every one of them.
 */
import { spawn } from 'node:child_process'
import { allProcesses } from './process-tree.ts'
import { setTimeout as sleep } from 'node:timers/promises'

/** From the signal to the part itself to those for all processes of its session. */
const OWN_END_MS = 5000
/** From SIGTERM to SIGKILL. */
const END_MS = 3000
const POLL_MS = 50
const OUTPUT_CHARS_MAX = 1_000_000

/** Streams that get what a part prints, at once. */
export interface PartOutput {
  readonly stdout: { write(text: string): unknown }
  readonly stderr: { write(text: string): unknown }
}

export interface PartEnd {
  /** Null: ended by a signal. */
  readonly code: number | null
  readonly seconds: number
  readonly output: string
  /** The end of standard error. */
  readonly complaints: string
  /** Processes that the part left behind, and that have been ended. */
  readonly leftovers: number
}

export class PartProcess {
  readonly #child
  readonly #ended: Promise<number | null>
  readonly #startedMs = performance.now()
  #output = ''
  #complaints = ''

  /** `words`: arguments of node. */
  constructor(words: readonly string[], environment: Readonly<Record<string, string>>, printed: PartOutput) {
    this.#child = spawn(process.execPath, words, {
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
      env: { ...process.env, ...environment },
    })
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => {
      printed.stdout.write(text)
      this.#output = (this.#output + text).slice(-OUTPUT_CHARS_MAX)
    })
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      printed.stderr.write(text)
      this.#complaints = (this.#complaints + text).slice(-OUTPUT_CHARS_MAX)
    })
    // Not `close`: a process that was left behind may hold the pipes.
    this.#ended = new Promise(resolve => {
      this.#child.once('exit', code => resolve(code))
      this.#child.once('error', error => {
        this.#complaints += String(error)
        resolve(null)
      })
    })
  }

  /** Resolves when no process of the session is left. */
  async end(): Promise<PartEnd> {
    const code = await this.#ended
    const seconds = (performance.now() - this.#startedMs) / 1000
    const leftovers = await this.#endSession()
    return { code, seconds, output: this.#output, complaints: this.#complaints, leftovers }
  }

  /** Asks the part to end, and ends it where it does not. `end` resolves then. */
  async stop(): Promise<void> {
    this.#child.kill('SIGINT')
    const patience = new AbortController()
    const waited = sleep(OWN_END_MS, undefined, { signal: patience.signal }).catch(() => {})
    await Promise.race([this.#ended, waited])
    patience.abort()
    this.#child.kill('SIGKILL')
  }

  #members(): readonly number[] {
    const { pid } = this.#child
    const left = allProcesses().filter(({ session, isZombie }) => session === pid && !isZombie)
    return left.map(each => each.pid)
  }

  /** Ends what is left of the session; resolves with the number of processes. */
  async #endSession(): Promise<number> {
    const leftovers = this.#members().length
    const deadlineMs = performance.now() + END_MS
    for (let members = this.#members(); members.length > 0; members = this.#members()) {
      // A suspended process takes no other signal before SIGCONT.
      const signals = performance.now() < deadlineMs ? (['SIGTERM', 'SIGCONT'] as const) : (['SIGKILL'] as const)
      for (const pid of members) for (const signal of signals) endProcess(pid, signal)
      await sleep(POLL_MS)
    }
    return leftovers
  }
}

function endProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // The process ended by itself.
  }
}
