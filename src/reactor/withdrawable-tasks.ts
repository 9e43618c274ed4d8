/**
 * Tasks of the worker threads of one plan that may be withdrawn until a thread begins them: each has a cell of shared
 * memory, and its thread gets a copy of its body.
 */
import type { TaskReply } from '../plan/worker-plan.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { TaskClaims, UNCLAIMED } from '../runtime/task-claims.ts'

const MIB = 1_048_576
/** Longest body of such a task. */
const COPIED_MAX = MIB
/** Bytes of such bodies under way; further ones are moved. */
const COPIES_MAX = 16 * MIB

export type MovableSize = 'short' | 'large'

/** A task that was offered, with the length of its body. */
interface Offered {
  readonly claim: number
  readonly bytes: number
  readonly size: MovableSize
}

interface Waiting extends Offered {
  /** Greater than those of all tasks that were sent before it. */
  readonly number: number
  /** Ends the wait for the task. */
  readonly withdrawn: () => void
}

const NOT_BEGUN: TaskReply = { kind: 'withdrawn' }

export class WithdrawableTasks {
  readonly #claims = new TaskClaims()
  /** In the order in which they were sent. Some have begun. */
  readonly #waiting = new Set<Waiting>()
  /** Bytes of the bodies that threads have copies of. */
  #copiedBytes = 0
  /** Number of the last task. */
  #sent = 0
  /** The greatest number of a task that a thread has begun, and when one was seen that had. */
  readonly #begun = { number: 0, seenMs: 0 }

  /** Cells of the claims, for the threads. */
  get memory(): SharedArrayBuffer {
    return this.#claims.memory
  }

  /** Number of tasks that no thread has begun. */
  get waiting(): number {
    const nowMs = monotonicMs()
    for (const task of this.#waiting) this.#look(task, nowMs)
    return this.#waiting.size
  }

  /** Returns the cell of another task; UNCLAIMED where it cannot be withdrawn. */
  offer(bytes: number): number {
    return bytes <= COPIED_MAX && this.#copiedBytes + bytes <= COPIES_MAX ? this.#claims.offer() : UNCLAIMED
  }

  /**
   * Settles as `sent`, the reply of the thread, or resolves as soon as the task is withdrawn: its thread may see that
   * much later. `isGone`: the error says that the thread is gone; then a task that had not begun is withdrawn (D952).
   */
  reply(sent: Promise<TaskReply>, offered: Offered, isGone: (error: Error) => boolean): Promise<TaskReply> {
    const { claim, bytes } = offered
    const { promise, resolve, reject } = Promise.withResolvers<TaskReply>()
    const task: Waiting = { ...offered, number: ++this.#sent, withdrawn: () => resolve(NOT_BEGUN) }
    this.#waiting.add(task)
    this.#copiedBytes += bytes
    const ended = sent
      .catch((error: Error) => {
        if (isGone(error) && this.#claims.withdraw(claim)) return NOT_BEGUN
        throw error
      })
      .finally(() => {
        this.#look(task, monotonicMs())
        this.#waiting.delete(task)
        this.#claims.free(claim)
        this.#copiedBytes -= bytes
      })
    ended.then(resolve, reject)
    return promise
  }

  /**
   * Withdraws tasks of these sizes that no thread gets to: where a later one has begun (D951), or none within `idleMs`.
   * A thread that is not held up, and has tasks to begin, begins one within that time. 0: all wait.
   */
  withdraw(hasSize: (size: MovableSize) => boolean, idleMs: number): void {
    const nowMs = monotonicMs()
    for (const task of this.#waiting) this.#look(task, nowMs)
    const isEach = nowMs - this.#begun.seenMs > idleMs || idleMs === 0
    for (const task of this.#waiting) {
      const { claim, number, size, withdrawn } = task
      if (!(isEach || number < this.#begun.number) || !hasSize(size) || !this.#claims.withdraw(claim)) continue
      this.#waiting.delete(task)
      withdrawn()
    }
  }

  /** Notes a task that has begun. */
  #look(task: Waiting, nowMs: number): void {
    if (!this.#claims.hasBegun(task.claim)) return
    this.#waiting.delete(task)
    this.#begun.number = Math.max(this.#begun.number, task.number)
    this.#begun.seenMs = nowMs
  }
}
