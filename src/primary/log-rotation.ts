/**
 * Rotation of the access log by size and time: the primary renames the file, and the reactors open it anew. What a
 * reactor writes before that goes to the renamed file, so no line is lost.
 */
import { readdir, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { RotationPlan } from '../plan/access-log-planning.ts'

const LOOK_MS = 1000
/** Behind the name of the file: when it was renamed, and a number where two were in one second. */
const STAMP = /^\.\d{8}T\d{6}Z(?:\.\d{1,4})?$/
const SAME_SECOND_MAX = 1000

interface RotationOptions {
  /** The reactors open the file again. */
  readonly reopen: () => void
  /** True if another process takes over, and rotates the file from now on. */
  readonly isReplaced: () => boolean
  /** Called for the first failure after a success. */
  readonly onFailed: (cause: Error) => void
  /** Called for the first success after a failure. */
  readonly onRecovered: () => void
  /** Milliseconds since 1970. */
  readonly nowMs?: () => number
}

export class LogRotation {
  readonly #plan: RotationPlan
  readonly #options: RotationOptions
  readonly #nowMs: () => number
  readonly #timer: NodeJS.Timeout
  /** Null before the first look: the file's own time decides then. */
  #period: number | null = null
  #isFailing = false
  #looking: Promise<void> | null = null

  constructor(plan: RotationPlan, options: RotationOptions) {
    this.#plan = plan
    this.#options = options
    this.#nowMs = options.nowMs ?? Date.now
    this.#timer = setInterval(() => void this.look(), LOOK_MS)
    this.#timer.unref()
  }

  /** Rotates the file where its size or its time is over; one look at a time. */
  look(): Promise<void> {
    this.#looking ??= this.#rotateIfDue().finally(() => (this.#looking = null))
    return this.#looking
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  async #rotateIfDue(): Promise<void> {
    const { path, bytes, intervalMs } = this.#plan
    if (this.#options.isReplaced()) return
    try {
      const file = await stat(path)
      // A pipe or a terminal has no past.
      if (!file.isFile()) return
      const isFull = bytes > 0 && file.size >= bytes
      const period = intervalMs === 0 ? 0 : Math.floor(this.#nowMs() / intervalMs)
      this.#period ??= intervalMs === 0 ? 0 : Math.floor(file.mtimeMs / intervalMs)
      const isOver = period > this.#period && file.size > 0
      this.#period = period
      if (!isFull && !isOver) return
      await rename(path, await this.#freeName())
      this.#options.reopen()
      await this.#deleteOld()
      if (this.#isFailing) this.#options.onRecovered()
      this.#isFailing = false
    } catch (error) {
      // The reactors make the file with their first line after a rotation.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
      if (!this.#isFailing) this.#options.onFailed(error as Error)
      this.#isFailing = true
    }
  }

  async #freeName(): Promise<string> {
    const stamp = new Date(this.#nowMs()).toISOString().replace(/[-:]|\.\d+/g, '')
    const taken = new Set(await this.#earlier())
    for (let number = 0; number < SAME_SECOND_MAX; number++) {
      const name = `${basename(this.#plan.path)}.${stamp}${number === 0 ? '' : `.${number}`}`
      if (!taken.has(name)) return join(dirname(this.#plan.path), name)
    }
    throw new Error(`${this.#plan.path} was rotated ${SAME_SECOND_MAX} times in one second`)
  }

  /** Names of earlier files, the oldest first. */
  async #earlier(): Promise<readonly string[]> {
    const name = basename(this.#plan.path)
    const names = await readdir(dirname(this.#plan.path))
    const order = new Intl.Collator('en', { numeric: true })
    return names
      .filter(other => other.startsWith(name) && STAMP.test(other.slice(name.length)))
      .sort((one, other) => order.compare(one, other))
  }

  async #deleteOld(): Promise<void> {
    const earlier = await this.#earlier()
    const old = earlier.slice(0, Math.max(0, earlier.length - this.#plan.keep))
    for (const name of old) await rm(join(dirname(this.#plan.path), name), { force: true })
  }
}
