/** The time of one task. After its end the result has no receiver, and the task may begin nothing more. */
import { CallFailed } from '../runtime/call-channel.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'

export class TaskTime {
  /** End of the time by the monotonic clock; 0: the task has no limit. */
  readonly endMs: number
  #isOver = false
  /** Rejects at the end. Null: no call waits for that yet. */
  #end: PromiseWithResolvers<never> | null = null

  constructor(endMs: number) {
    this.endMs = endMs
  }

  /** Looks at the clock, because a thread that computes serves no timer. */
  get isOver(): boolean {
    this.#isOver ||= this.endMs !== 0 && monotonicMs() >= this.endMs
    return this.#isOver
  }

  /** Settles as `call` does. Rejects with CallFailed at the end of the time. */
  async within<T>(call: Promise<T>): Promise<T> {
    if (this.endMs === 0) return call
    this.#end ??= rejectable()
    return Promise.race([call, this.#end.promise])
  }

  /** Settles as `result` does, the result of the task; rejects with the error that `late` returns at the end. */
  async limit<T>(result: Promise<T>, late: () => Error): Promise<T> {
    const { promise, reject } = rejectable()
    const end = (): void => {
      const leftMs = this.endMs - monotonicMs()
      // A timer may fire some milliseconds early.
      if (leftMs > 0) timer = setTimeout(end, Math.ceil(leftMs))
      else {
        this.#isOver = true
        this.#end?.reject(new CallFailed('nobody waits for the message any more', 'late'))
        // Pending calls end first: without a task piscina stops the event loop of the thread.
        setImmediate(() => reject(late()))
      }
    }
    let timer = setTimeout(end, Math.max(1, Math.ceil(this.endMs - monotonicMs())))
    try {
      return await Promise.race([result, promise])
    } finally {
      clearTimeout(timer)
    }
  }
}

/** A promise whose rejection need not be heard. */
function rejectable(): PromiseWithResolvers<never> {
  const made = Promise.withResolvers<never>()
  made.promise.catch(() => undefined)
  return made
}
