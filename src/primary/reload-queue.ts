/**
 * Reloads, one after the other. At most one of each scope waits; whoever asks meanwhile gets the same answer. Whatever
 * else changes what is in force stands in the same queue.
 */
import type { Log } from '../observe/log.ts'
import type { ReloadAnswer, ReloadScope } from './reload-report.ts'

export class ReloadQueue {
  readonly #run: (scope: ReloadScope) => Promise<ReloadAnswer>
  readonly #waiting = new Map<ReloadScope, Promise<ReloadAnswer>>()
  #last: Promise<unknown> = Promise.resolve()

  constructor(run: (scope: ReloadScope) => Promise<ReloadAnswer>) {
    this.#run = run
  }

  /** Of a reload that begins after this. */
  request(scope: ReloadScope): Promise<ReloadAnswer> {
    const known = this.#waiting.get(scope)
    if (known !== undefined) return known
    const answer = this.alone(() => {
      this.#waiting.delete(scope)
      return this.#run(scope)
    })
    this.#waiting.set(scope, answer)
    return answer
  }

  /** Nobody waits for the answer: what comes of it is in the log. */
  begin(scope: ReloadScope, log: Pick<Log, 'error'>): void {
    this.request(scope).catch((error: Error) => log.error({ CAUSE_OF_ERROR: error.message }, 'not reloaded'))
  }

  /** While `change` is under way no reload is, and no other change. */
  alone<T>(change: () => Promise<T>): Promise<T> {
    const answer = this.#last.then(change)
    this.#last = answer.catch(() => {})
    return answer
  }
}
