/**
 * Runs one piece of work at a time. At most one run waits; callers that arrive meanwhile share it, because it starts
 * after their call.
 */
export class SerialQueue {
  readonly #work: () => Promise<void>
  #last: Promise<void> = Promise.resolve()
  #waiting: Promise<void> | null = null

  constructor(work: () => Promise<void>) {
    this.#work = work
  }

  /** Settles with a run that starts after this call. */
  run(): Promise<void> {
    if (this.#waiting !== null) return this.#waiting
    const run = this.#last.then(() => {
      this.#waiting = null
      return this.#work()
    })
    this.#waiting = run
    // A failed run rejects for its callers only; the next run starts all the same.
    this.#last = run.catch(() => {})
    return run
  }
}
