/**
 * One gateway per data folder: `data/lock` names the process that holds it. Because `reusePort` lets a second gateway
 * bind the same port in silence, this is what notices one (D18).
 */
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Somebody else holds the folder, or it cannot be one; the message says who or why, and what to do. */
export class DataLocked extends Error {
  override readonly name = 'DataLocked'
}

export class DataLock {
  readonly #file: string

  private constructor(file: string) {
    this.#file = file
  }

  /** Makes the folder if need be. Throws DataLocked. */
  static take(dataDir: string): DataLock {
    const file = join(dataDir, 'lock')
    const holder = acquireIn(dataDir, file)
    if (holder === undefined) return new DataLock(file)
    throw new DataLocked(`another gateway (process ${holder}) uses ${dataDir}; stop it, or give this one --data DIR`)
  }

  release(): void {
    if (contentOf(this.#file) === identity(process.pid)) rmSync(this.#file, { force: true })
  }
}

/** What the system refuses an operator can put right: the folder is a file, or belongs to somebody else. */
function acquireIn(dataDir: string, file: string): number | undefined {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    return acquire(file)
  } catch (error) {
    const { code, syscall, path = file } = error as NodeJS.ErrnoException
    if (code === undefined || syscall === undefined) throw error
    throw new DataLocked(
      `${dataDir} cannot be the data folder (${code}: ${path}); make room for it, or give --data DIR`,
    )
  }
}

/** Answers the living process that was faster, if one was. */
function acquire(file: string): number | undefined {
  // Linked and renamed into place, the lock is never seen half written.
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
 * The lock was left behind by a process that was killed. Two that find it so must not both replace it, so replacing
 * needs a lock of its own, and another look once that is had. A killed owner of that one is replaced in the same way.
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
      // Still there after its owner was found dead: no one but us can remove or replace it now.
      if (contentOf(file) !== text) continue
      renameSync(own, file)
      return undefined
    }
  } finally {
    rmSync(guard, { force: true })
  }
}

/** False where there is a lock already. */
function link(own: string, file: string): boolean {
  try {
    linkSync(own, file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return false
  }
}

/** Process id and, where the system tells, its start time: ids are used again. */
function identity(pid: number): string {
  return `${pid} ${startTime(pid)}`
}

function startTime(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // Field 22; the name in field 2 may hold spaces, but nothing behind its bracket does.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
  } catch {
    return ''
  }
}

/** Undefined where there is no such file. */
function contentOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'latin1')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return undefined
  }
}

/** The living process that a lock of this content belongs to. */
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
