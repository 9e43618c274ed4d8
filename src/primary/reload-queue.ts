/** Runs reloads, and other changes of the active state, one at a time and in the order of the requests. */
import type { Log } from '../observe/log.ts'
import type { ReloadReport, ReloadScope } from './reload-report.ts'
export class ReloadQueue {
  readonly #run: (scope: ReloadScope) => Promise<ReloadReport>
  /** At most one reload of each scope waits. */
  readonly #waiting = new Map<ReloadScope, Promise<ReloadReport>>()
  #last: Promise<unknown> = Promise.resolve()

  constructor(run: (scope: ReloadScope) => Promise<ReloadReport>) {
    this.#run = run
  }

  /** Settles as a reload that begins after this call; requests share the one that waits. */
  request(scope: ReloadScope): Promise<ReloadReport> {
    const waiting = this.#waiting.get(scope)
    if (waiting !== undefined) return waiting
    const report = this.exclusively(() => {
      this.#waiting.delete(scope)
      return this.#run(scope)
    })
    this.#waiting.set(scope, report)
    return report
  }

  /** Requests a reload whose outcome is in the log only. */
  start(scope: ReloadScope, log: Pick<Log, 'error'>): void {
    this.request(scope).catch((error: Error) => log.error({ CAUSE_OF_ERROR: error.message }, 'reload failed'))
  }

  /** Runs `change` while no reload runs and no other change. */
  exclusively<T>(change: () => Promise<T>): Promise<T> {
    const result = this.#last.then(change)
    this.#last = result.catch(() => {})
    return result
  }
}
