/** The time of one task. After its end the result has no receiver, and the task may begin nothing more. */
import { CallFailed } from '../runtime/call-channel.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'

/** Numbers that are remembered: a message may overtake the task, which comes over another port. */
const LEFT_MAX = 1000

export class TaskTime {
  /** End of the time by the monotonic clock; 0: the task has no limit. */
  readonly endMs: number
  /** Number of the task. */
  readonly id: number
  #isOver = false
  /** Rejects at the end. Null: no call waits for that yet. */
  #end: PromiseWithResolvers<never> | null = null
  /** Tells whether the task goes on although its client has left. */
  goesOn: () => boolean = () => false
  /** Ends the wait for the result; null: nobody waits. */
  #giveUp: (() => void) | null = null

  constructor(endMs: number, id: number) {
    this.endMs = endMs
    this.id = id
  }

  /** Looks at the clock, because a thread that computes serves no timer. */
  get isOver(): boolean {
    this.#isOver ||= this.endMs !== 0 && monotonicMs() >= this.endMs
    return this.#isOver
  }

  /** Settles as `call` does. Rejects with CallFailed at the end of the time. */
  async within<T>(call: Promise<T>): Promise<T> {
    this.#end ??= rejectable()
    return Promise.race([call, this.#end.promise])
  }

  /** Ends the time: nobody waits for the result any more. */
  end(): void {
    this.#isOver = true
    this.#end?.reject(new CallFailed('nobody waits for the message any more', 'late'))
    // Pending calls end first: without a task piscina stops the event loop of the thread.
    setImmediate(() => this.#giveUp?.())
  }

  /** Settles as `result` does, the result of the task; rejects with the error that `late` returns at the end. */
  async limit<T>(result: Promise<T>, late: () => Error): Promise<T> {
    const { promise, reject } = rejectable()
    this.#giveUp = () => reject(late())
    const atEnd = (): void => {
      const leftMs = this.endMs - monotonicMs()
      // A timer may fire some milliseconds early.
      if (leftMs > 0) timer = setTimeout(atEnd, Math.ceil(leftMs))
      else this.end()
    }
    let timer = this.endMs === 0 ? undefined : setTimeout(atEnd, Math.max(1, Math.ceil(this.endMs - monotonicMs())))
    try {
      return await Promise.race([result, promise])
    } finally {
      clearTimeout(timer)
    }
  }
}

/**
 * The times of the tasks of one thread. A reactor tells all its threads of a task for which nobody waits any more. A
 * task that does not wait hears of nothing meanwhile, and is in no table.
 */
export class TaskTimes {
  readonly #waiting = new Map<number, TaskTime>()
  /** Tasks that may come yet, or are those of other threads; in the order of the messages. */
  readonly #left = new Set<number>()

  /** `endMs`: as of `TaskTime`. */
  begin(id: number, endMs: number): TaskTime {
    const time = new TaskTime(endMs, id)
    if (this.#left.delete(id)) time.end()
    return time
  }

  /** The task waits for something: `leave` ends it from now on. */
  waits(time: TaskTime): void {
    this.#waiting.set(time.id, time)
  }

  ended(id: number): void {
    this.#waiting.delete(id)
  }

  /** Nobody waits for the result of the task any more. Returns whether a task ends for that. */
  leave(id: number): boolean {
    const time = this.#waiting.get(id)
    if (time !== undefined) {
      const ends = !time.goesOn()
      if (ends) time.end()
      return ends
    }
    this.#left.add(id)
    const [first] = this.#left
    if (this.#left.size > LEFT_MAX) this.#left.delete(first!)
    return false
  }
}

/** A promise whose rejection need not be heard. */
function rejectable(): PromiseWithResolvers<never> {
  const made = Promise.withResolvers<never>()
  made.promise.catch(() => undefined)
  return made
}
