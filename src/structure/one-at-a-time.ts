/**
 * Work of which one run goes on at a time and at most one waits: whoever asks while one waits shares it, because it
 * begins later than he has asked.
 */
export class OneAtATime {
  readonly #work: () => Promise<void>
  #last: Promise<void> = Promise.resolve()
  #waiting: Promise<void> | null = null

  constructor(work: () => Promise<void>) {
    this.#work = work
  }

  /** Settles as a run does that has begun after this was called. */
  run(): Promise<void> {
    if (this.#waiting !== null) return this.#waiting
    const run = this.#last.then(() => {
      this.#waiting = null
      return this.#work()
    })
    this.#waiting = run
    // Whoever has asked hears of it; the next one runs all the same.
    this.#last = run.catch(() => {})
    return run
  }
}
