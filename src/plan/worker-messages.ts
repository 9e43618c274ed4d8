/** Messages between a worker thread and its reactor, beside the tasks. */
import type { MessagePort } from 'node:worker_threads'
import type { StepCounts } from '../mediation/flow-statistics.ts'
import type { TaskCall } from '../mediation/task-calls.ts'
import type { LogEvent } from '../observe/events.ts'
import type { FromMounted, ToMounted } from './mounted-messages.ts'
import type { CallMessage, ResultMessage } from '../runtime/call-channel.ts'

/** First message of a thread, on the port of its parent. */
export interface WorkerHello {
  readonly kind: 'hello'
  readonly threadId: number
  /** Id of the thread in the system; 0 where it is not known. */
  readonly systemThreadId: number
  /** Carries `FromWorker` one way and `ToWorker` the other. */
  readonly port: MessagePort
  /** Signs of life: `BEATS`, `RUNNING`, `TURN_MS`. */
  readonly life: SharedArrayBuffer
  /** Memory of the thread in row 0, of its script threads behind it (runtime/thread-memory.ts). */
  readonly memory: SharedArrayBuffer
  /** Delays of its event loop, and what it uses of its pools (observe/worker-marks.ts). */
  readonly marks: SharedArrayBuffer
}

/** Cell that a thread counts up while it lives, and with each task that begins or ends. */
export const BEATS = 0
/** Cell with the number of tasks that run. A thread without tasks shows no sign of life. */
export const RUNNING = 1
/**
 * Cell with the time at which the thread with tasks was last in no task, in milliseconds of the monotonic clock, modulo
 * 2^32.
 */
export const TURN_MS = 2
export const LIFE_BYTES = 3 * Int32Array.BYTES_PER_ELEMENT

export type FromWorker =
  | { readonly kind: 'event'; readonly event: LogEvent }
  | { readonly kind: 'counts'; readonly counts: readonly StepCounts[] }
  | CallMessage<TaskCall>
  | FromMounted
  /** The calls of a task end, for whose result nobody waits any more. */
  | { readonly kind: 'left'; readonly task: number }
/** `left`: nobody waits for the result of a task any more, by the number in its envelope; any thread may have it. */
export type ToWorker = ResultMessage | ToMounted | { readonly kind: 'left'; readonly task: number }

/** Kind of a task that collects the garbage of its thread. */
export const TRIM = 'trim'
