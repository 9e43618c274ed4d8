/**
 * One gateway per data folder: `data/lock` names the process that holds it. Because `reusePort` lets a second gateway
 * bind the same port in silence, this is what notices one (D18).
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Somebody else holds the folder; the message says who, and what to do. */
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
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    const file = join(dataDir, 'lock')
    for (let attempt = 0; attempt < 2; attempt++) {
      try {
        writeFileSync(file, identity(process.pid), { flag: 'wx', mode: 0o600 })
        return new DataLock(file)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      }
      const holder = holderOf(file)
      if (holder !== undefined) {
        throw new DataLocked(
          `another gateway (process ${holder}) uses ${dataDir}; stop it, or give this one --data DIR`,
        )
      }
      // Left behind by a process that was killed.
      rmSync(file, { force: true })
    }
    throw new DataLocked(`${file} cannot be taken: another gateway is starting on the same folder`)
  }

  release(): void {
    rmSync(this.#file, { force: true })
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

/** The living process that holds the lock. */
function holderOf(file: string): number | undefined {
  let text: string
  try {
    text = readFileSync(file, 'latin1')
  } catch {
    return undefined
  }
  const pid = Number.parseInt(text, 10)
  if (!(pid > 0)) return undefined
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return undefined
  }
  return text === identity(pid) ? pid : undefined
}
