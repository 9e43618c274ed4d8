/** Messages between the primary and every thread that it supervises. */
import type { LogEvent } from '../observe/events.ts'

/** Data that a supervised thread is created with. */
export interface ThreadData {
  readonly compileCache: string
  /** One cell: 1 once the plan is in the thread's message queue. */
  readonly planPosted: Int32Array
}

export type ThreadReport<Started> =
  /** The thread does its work. */
  | { readonly kind: 'started'; readonly started: Started }
  /** The thread cannot do its work and is to be terminated. */
  | { readonly kind: 'failed'; readonly cause: string }
  /** The thread has finished, as it was told to, and is to be terminated. */
  | { readonly kind: 'stopped' }
  | { readonly kind: 'event'; readonly event: LogEvent }
