/** Messages that a worker thread gets from its reactor: plan, tasks, results. All plain data. */
import type { StatisticsSettings } from '../mediation/flow-statistics.ts'
import type { FormatSettings } from '../mediation/formats/format-settings.ts'
import type { MountedDefinition } from '../apis/api-definition.ts'
import type { SequencePlan } from '../mediation/sequence-plan.ts'
import type { DatabasePlan } from '../mounted/database-access.ts'
import type { CallChain } from '../http1/call-chain.ts'
import type { HeldPermits, PermitLimits } from '../runtime/shared-permits.ts'

/**
 * Rows of the permits: messages of clients on plain listeners, those of clients on TLS, and tasks that no client waits
 * for.
 */
export const PERMIT_ROWS = { plain: 0, secured: 1, background: 2 } as const
export type PermitRow = keyof typeof PERMIT_ROWS
/** Names of the pools of these rows for people. */
export const POOL_NAMES = { plain: 'http', secured: 'https', background: 'background' } as const
export type PoolName = (typeof POOL_NAMES)[PermitRow]

/** The permits whose tasks wait for a message that calls have brought; `chain`: those calls, null for none. */
export function heldPermits(chain: CallChain | null): HeldPermits {
  const { plain, secured, isParallel = false } = chain ?? { plain: 0, secured: 0 }
  return { permits: [plain, secured], isAlone: !isParallel }
}

/** Threads of scripts; those of one worker thread where they stand in its plan. */
interface ScriptSettings {
  readonly threads: number
  /** Longest time of one script in milliseconds. */
  readonly timeoutMs: number
  /** Heap of one thread in bytes. */
  readonly heapBytes: number
}

/** Sizes of the pools of worker threads; a reload changes them. */
export interface WorkerSettings {
  readonly limits: Readonly<Record<PermitRow, PermitLimits>>
  /** Threads of the whole process; each reactor has at least one of each kind. */
  readonly threads: { readonly mediation: number; readonly background: number }
  /** A longer wait for a permit is logged; 0: none is. */
  readonly queueWarningMs: number
  /** Heap of one thread in bytes. */
  readonly heapBytes: number
  /** Settings of scripts, for the whole process. */
  readonly scripts: ScriptSettings
}

/** Bytes that a waiting task holds beside its body: its head and state. */
export const TASK_BYTES = 1024

/** Threads of each reactor beside those of the settings: for long bodies, and the spare one. */
const FURTHER_THREADS = 2

/** Most worker threads of the whole process. */
export function workerThreadCount(threads: WorkerSettings['threads'], reactors: number): number {
  return Object.values(threads).reduce((sum, count) => sum + Math.max(count, reactors), FURTHER_THREADS * reactors)
}

/** Script threads of one worker thread: its share of those of the process, one at least. */
export function scriptThreadsEach(threads: number, workers: number): number {
  return Math.max(1, Math.floor(threads / workers))
}

/** The data for all tasks of a thread. It goes as JSON, made once for all threads of a pool. */
export interface WorkerPlan {
  readonly logLevel: string
  /** The home folder, for modules of the operator. */
  readonly home: string
  readonly formats: FormatSettings
  readonly scripts: ScriptSettings
  /** Null: flows are not counted. */
  readonly statistics: StatisticsSettings | null
  /** Sequences of the home. */
  readonly sequences: readonly SequencePlan[]
  /** Sequences of each API with flows on workers, by its identity (`apiIdentity`). */
  readonly apis: Readonly<Record<string, readonly SequencePlan[]>>
  /** Sequences that reloads have changed or removed, by identity, and '' for those of the home. */
  readonly former: Readonly<Record<string, readonly SequencePlan[]>>
  /** Mounted APIs, by identity. */
  readonly mounted: Readonly<Record<string, MountedPlan>>
  /** Database of mounted APIs, with one thread's share of its connections; null also without mounted APIs. */
  readonly database: DatabasePlan | null
}

export interface MountedPlan extends Pick<MountedDefinition, 'module' | 'digest' | 'settings' | 'work'> {
  readonly name: string
  readonly version: string
}

/** `workerData` of a worker thread. */
export interface WorkerData {
  /** JSON of a `WorkerPlan`. */
  readonly plan: string
  /** Folder of Node's compile cache; undefined for none. */
  readonly compileCache: string | undefined
  /** Wake-ups of the work of mounted APIs (runtime/shared-wakes.ts). */
  readonly wakes: SharedArrayBuffer
  /** Claims of tasks (runtime/task-claims.ts). */
  readonly claims: SharedArrayBuffer
}

/** A task on its way to a thread. */
export interface TaskEnvelope<Task extends { readonly kind: string } = { readonly kind: string }> {
  readonly task: Task
  /** Unique in the reactor. */
  readonly id: number
  /** Time until which the reactor waits for the result, by the monotonic clock; 0: no limit. */
  readonly endMs: number
  /** Cell of `TaskClaims`; the task has none where it is left out. */
  readonly claim?: number
}

/** `cause`: without any text of a client. `kind`: the reactor has withdrawn the task. */
export type TaskReply = { readonly value: unknown } | { readonly cause: string } | { readonly kind: 'withdrawn' }
