/**
 * Makes commits to an embedded database durable beside its thread. SQLite itself waits for the disk in each commit, and
 * its thread with it. Here one wait serves all commits before it, while the next ones are made.
 */
import { open } from 'node:fs/promises'

export class LogSync {
  readonly #log: string
  /** Ends with the wait for the disk that has begun last. */
  #running: Promise<void> = Promise.resolve()
  /** Serves everybody who asks before it begins. */
  #next: Promise<void> | null = null
  /** The first failure of the disk. Commits behind it may be lost, although a later wait succeeds. */
  #failure: { readonly error: unknown } | null = null

  /** `file`: of the database. */
  constructor(file: string) {
    this.#log = `${file}-wal`
  }

  /**
   * Resolves when every commit before the call is durable. Rejects with an error of the file system: always once the
   * disk has failed, this time only where the log cannot be opened, as without a free file descriptor.
   */
  sync(): Promise<void> {
    this.#next ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#next = null
        this.#running = this.#sync()
        return this.#running
      })
    return this.#next
  }

  /** The log is another file where SQLite has begun a new one, so it is opened each time. */
  async #sync(): Promise<void> {
    if (this.#failure !== null) throw this.#failure.error
    const handle = await open(this.#log, 'r+')
    try {
      await handle.datasync()
    } catch (error) {
      this.#failure = { error }
      throw error
    } finally {
      await handle.close()
    }
  }
}
