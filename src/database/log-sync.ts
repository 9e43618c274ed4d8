/**
 * Makes commits to an embedded database durable beside its thread. SQLite itself waits for the disk in each commit, and
 * its thread with it. Here one wait serves all commits before it, while the next ones are made.
 */
import { open } from 'node:fs/promises'

export class LogSync {
  readonly #log: string
  /** Waits for the disk; rejected for good once the disk has failed: commits behind the failure may be lost with it. */
  #running: Promise<void> = Promise.resolve()
  /** Serves everybody who asks before it begins. */
  #next: Promise<void> | null = null

  /** `file`: of the database. */
  constructor(file: string) {
    this.#log = `${file}-wal`
  }

  /** Resolves when every commit before the call is durable. Rejects with an error of the file system, then always. */
  sync(): Promise<void> {
    this.#next ??= this.#running.then(() => {
      this.#next = null
      this.#running = this.#sync()
      return this.#running
    })
    return this.#next
  }

  /** The log is another file where SQLite has begun a new one, so it is opened each time. */
  async #sync(): Promise<void> {
    const handle = await open(this.#log, 'r+')
    try {
      await handle.datasync()
    } finally {
      await handle.close()
    }
  }
}
