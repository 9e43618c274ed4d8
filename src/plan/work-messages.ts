/** Work beside requests of a mounted API: the tasks that its scheduler gives to background threads. Plain data. */
import type { DueWork } from '../mounted/interface.ts'

/** Jobs that `due` may name at once; further ones are named again. */
export const JOBS_MAX = 1000
export const JOB_CHARS_MAX = 500

/** Asks what is due. Its result is a `DueWork`, or null: the API has no work. */
export interface DueTask {
  readonly kind: 'due'
  /** Identity of the API (`apiIdentity`). */
  readonly api: string
  /** Milliseconds until the question has failed. */
  readonly timeoutMs: number
}
export type DueResult = DueWork | null

/** Runs one job. */
export interface JobTask {
  readonly kind: 'job'
  readonly api: string
  readonly job: string
  /** One Int32 cell: 1 aborts the job. The thread sets it at the end of the job. */
  readonly abort: SharedArrayBuffer
  /** Milliseconds until a job that has not ended is aborted. */
  readonly lateMs: number
  /** Milliseconds from its abort until a job that has not ended costs its thread. */
  readonly endMs: number
}
