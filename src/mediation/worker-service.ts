/** Interface of the worker threads to what asks them: a mediated exchange, and mediators that send copies. */
import type { FlowResult, FlowTask } from './worker-task.ts'

/**
 * Why a task has no result. `queue-full`: the bounded queue of the pool is full. `memory`: the messages that wait hold
 * `worker_pool_queue_bytes`. `late`: `mediation.synapse.global_timeout_interval` is over. `left`: whoever waited has
 * given it up. `loop`: the task would wait for tasks that wait for it. `died`: the thread died, hung or ran
 * out of memory. `busy`: the lock of the permits was not free in time. `failed`: the task threw, which is a bug, or its
 * thread could not start.
 */
export type WorkerFailureReason = 'queue-full' | 'memory' | 'late' | 'left' | 'loop' | 'busy' | 'died' | 'failed'

/** `message`: the cause, for the log, without any text of a client. */
export class WorkerFailure extends Error {
  override readonly name = 'WorkerFailure'
  readonly reason: WorkerFailureReason

  constructor(reason: WorkerFailureReason, cause: string) {
    super(cause)
    this.reason = reason
  }
}

/** Hears of a task, and of its wait for a permit. */
export interface TaskWait {
  /**
   * The pool has the task. `giveUp`: nobody waits for the result any more. A task that has begun ends at its next wait,
   * and its calls end, unless its client was not to wait (FORCE_SC_ACCEPTED, OUT_ONLY). Once it is over, its promise
   * rejects with `left`.
   */
  entered(giveUp: () => void): void
  /** The task is in the queue. `leave`: takes it off, unless it has begun; its promise then rejects with `left`. */
  queued(leave: () => void): void
  /** The task waits no longer, after so many milliseconds: it has a permit, or its promise rejects. */
  waited(ms: number): void
}

export interface WorkerService {
  /**
   * Runs a flow on a worker thread. `bytes`: length of the body. A body of kind `bytes` is transferred: its buffer
   * belongs to the task from now on, and counts for `worker_pool_queue_bytes` while the task waits. Rejects with a
   * `WorkerFailure`, and with nothing else. `wait`: is told of the wait for a permit.
   */
  mediate(task: FlowTask, bytes: number, wait?: TaskWait): Promise<FlowResult>
  /**
   * Runs a flow that no client waits for on a thread of the background pool. Its result is dropped, a failure logged;
   * the promise tells that it is over, and never rejects. Null: the pool refuses the task, which is counted.
   */
  background(task: FlowTask): Promise<void> | null
}
