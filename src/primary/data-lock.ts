/**
 * One node per data folder: `data/lock` names the process that holds it. `reusePort` would let a second node bind the
 * same ports without an error; the lock refuses the start of that node (D18).
 */
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { recordProcessName } from '../runtime/process-name.ts'

/** Another process holds the folder, or the folder cannot be used; the message says why and what to do. */
export class DataLocked extends Error {
  override readonly name = 'DataLocked'
}

/** Time that a process which was killed may take to end: its memory is freed first. */
const ENDING_MS = 5000
const PAUSE_MS = 20
/** States of a process that does nothing any more: its parent has not asked about it yet. */
const ENDED = ['Z', 'X']

export class DataLock {
  readonly #file: string

  private constructor(file: string) {
    this.#file = file
  }

  /** Creates the folder where there is none. Throws DataLocked. */
  static take(dataDir: string): DataLock {
    const file = join(dataDir, 'lock')
    const holder = acquireIn(dataDir, file)
    if (holder === undefined) return new DataLock(file)
    throw new DataLocked(`another gateway (process ${holder}) uses ${dataDir}; stop it, or give this one --data DIR`)
  }

  /** As `take`, behind a process that is gone or about to end: it may still live for a moment. */
  static async takeOver(dataDir: string): Promise<DataLock> {
    for (let waitedMs = 0; waitedMs < ENDING_MS; waitedMs += PAUSE_MS) {
      try {
        return DataLock.take(dataDir)
      } catch (error) {
        if (!(error instanceof DataLocked)) throw error
      }
      await wait(PAUSE_MS)
    }
    return DataLock.take(dataDir)
  }

  release(): void {
    if (contentOf(this.#file) === identity(process.pid)) rmSync(this.#file, { force: true })
  }
}

/** A refusal of the file system becomes DataLocked: the operator can mend it. */
function acquireIn(dataDir: string, file: string): number | undefined {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    const holder = acquire(file)
    if (holder === undefined) recordProcessName(dataDir)
    return holder
  } catch (error) {
    const { code, syscall, path = file } = error as NodeJS.ErrnoException
    if (code === undefined || syscall === undefined) throw error
    throw new DataLocked(
      `${dataDir} cannot be the data folder (${code}: ${path}); make room for it, or give --data DIR`,
    )
  }
}

/** Returns the living process that holds the lock; undefined: this process holds it now. */
function acquire(file: string): number | undefined {
  // The lock is linked or renamed into place, so that no process reads half of it.
  const own = `${file}.${process.pid}`
  writeFileSync(own, identity(process.pid), { mode: 0o600 })
  try {
    if (link(own, file)) return undefined
    return holderOf(contentOf(file) ?? '') ?? takeOver(own, file)
  } finally {
    rmSync(own, { force: true })
  }
}

/**
 * Replaces the lock of a process that was killed. Two processes must not both replace it, so replacing needs a second
 * lock, and the first one is read again under it. The second lock of a killed process is replaced in the same way.
 */
function takeOver(own: string, file: string): number | undefined {
  const guard = `${file}.over`
  const faster = acquire(guard)
  if (faster !== undefined) return faster
  try {
    for (;;) {
      if (link(own, file)) return undefined
      const text = contentOf(file)
      if (text === undefined) continue
      const holder = holderOf(text)
      if (holder !== undefined) return holder
      // The same content after its owner was found dead: only the holder of the second lock can replace it now.
      if (contentOf(file) !== text) continue
      renameSync(own, file)
      return undefined
    }
  } finally {
    rmSync(guard, { force: true })
  }
}

/** False: there is a lock already. */
function link(own: string, file: string): boolean {
  try {
    linkSync(own, file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return false
  }
}

/** Process id and start time, where the system tells it: ids are used again. One that has ended has no start time. */
function identity(pid: number): string {
  return `${pid} ${startTime(pid)}`
}

function startTime(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // Fields 3 and 22. The name in field 2 may hold spaces and brackets, the fields behind it do not.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return ENDED.includes(fields[0]!) ? '' : (fields[19] ?? '')
  } catch {
    return ''
  }
}

/** Undefined: there is no such file. */
function contentOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'latin1')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return undefined
  }
}

/** The process that a lock of this content belongs to; undefined where it does not live any more. */
function holderOf(text: string): number | undefined {
  const pid = Number.parseInt(text, 10)
  if (!(pid > 0)) return undefined
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return undefined
  }
  return text === identity(pid) ? pid : undefined
}
