/**
 * The worker threads of one reactor: a service for messages of clients without TLS, one for those on TLS, and the
 * background pool. Threads start with their first task. A reload that changes their plan starts others; the old ones
 * end with their last task.
 */
import { existsSync } from 'node:fs'
import type { ApiMediationPlan, FlowNeeds } from '../mediation/flow-plan.ts'
import type { TaskCall } from '../mediation/task-calls.ts'
import { type PackedResult, packTask, unpackResult } from '../mediation/task-codec.ts'
import { ownBuffers } from '../mediation/transferred-body.ts'
import type { MountedTask } from '../plan/mounted-messages.ts'
import type { MountedService } from '../proxy/mediated/mounted-calls.ts'
import type { WorkerFailure, WorkerService } from '../mediation/worker-service.ts'
import type { FlowResult, FlowTask } from '../mediation/worker-task.ts'
import type { MetricsColumn } from '../observe/metrics.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import { type ApiChanges, apiIdentity, type ApiPlan, type LivePlan, type ReactorPlan } from '../plan/reactor-plan.ts'
import {
  heldPermits,
  type MountedPlan,
  PERMIT_ROWS,
  POOL_NAMES,
  type PermitRow,
  scriptThreadsEach,
  type WorkerPlan,
  workerThreadCount,
} from '../plan/worker-plan.ts'
import { databaseFile } from '../mounted/database-file.ts'
import { SharedPermits } from '../runtime/shared-permits.ts'
import { SharedWakes } from '../runtime/shared-wakes.ts'
import type { PlannedWork, WorkTimes } from './api-work.ts'
import { FormerSequences } from './former-sequences.ts'
import { LANES, type Lanes, laneSizes, MessageLanes } from './message-lanes.ts'
import { WorkScheduler } from './work-scheduler.ts'
import { type PoolKind, SUSPENDED_MAX, TaskIds, WorkerPool } from './worker-pool.ts'
import { WorkerThreads, type WorkerThreadsOptions } from './worker-threads.ts'

/** Earlier plans whose tasks have not ended; beyond, the threads of the oldest one are ended (D713). */
const RETIRED_MAX = 4

interface ReactorWorkersOptions {
  readonly report: Report
  readonly metrics: MetricsColumn
  /** Serves the calls of tasks. */
  readonly serve: (call: TaskCall) => unknown
  readonly left: WorkerThreadsOptions['left']
  readonly receive: WorkerThreadsOptions['receive']
  readonly count: WorkerThreadsOptions['count']
  /** For tests. */
  readonly entry?: WorkerThreadsOptions['entry']
  readonly watch?: WorkerThreadsOptions['watch']
  readonly workTimes?: Partial<WorkTimes> | undefined
}

type DatabasePlan = NonNullable<WorkerPlan['database']>

type ReactorShare = Pick<
  ReactorPlan,
  'reactor' | 'reactors' | 'permits' | 'wakes' | 'home' | 'database' | 'bodyChecks' | 'statistics'
>

export class ReactorWorkers {
  /** By the transport of the client. */
  readonly services: Readonly<Record<'plain' | 'secured', WorkerService>>
  /** Requests to mounted APIs, by the transport of the client. */
  readonly mounted: Readonly<Record<'plain' | 'secured', MountedService>>
  readonly #options: ReactorWorkersOptions
  readonly #share: ReactorShare
  readonly #permits: SharedPermits
  readonly #ids = new TaskIds()
  readonly #background: WorkerPool
  /** Null: another reactor schedules the work of mounted APIs. */
  readonly #work: WorkScheduler | null
  /** Mediation of the APIs with flows on workers, by identity. */
  readonly #apis = new Map<string, ApiMediationPlan>()
  readonly #former = new FormerSequences()
  /** By identity. */
  readonly #mounted = new Map<string, MountedPlan>()
  #live: LivePlan
  /** Null before the first task. */
  #generation: Generation | null = null
  readonly #retired = new Set<Generation>()
  readonly #lanes: MessageLanes

  constructor(plan: ReactorPlan, options: ReactorWorkersOptions) {
    this.#options = options
    this.#share = plan
    this.#live = plan
    this.#lanes = new MessageLanes({
      current: () => this.#current().threads,
      retired: () => [...this.#retired].map(({ threads }) => threads),
      memoryMax: () => this.#live.bodies.memoryMax,
      metrics: options.metrics,
    })
    for (const api of plan.apis) this.#deploy(api)
    const { permits: shared, reactors, reactor } = plan
    const permits = new SharedPermits(shared, reactors, reactor)
    this.#permits = permits
    this.#background = this.#newPool('background', 'background', permits)
    const plain = this.#newPool('plain', 'mediation', permits)
    const secured = this.#newPool('secured', 'mediation', permits)
    this.services = { plain: this.#serviceOf(plain, 'plain'), secured: this.#serviceOf(secured, 'secured') }
    this.mounted = { plain: mountedService(plain), secured: mountedService(secured) }
    this.#work = reactor === 0 ? this.#newScheduler() : null
    this.#deployWork({ removed: [], deployed: plan.apis })
  }

  /** No job runs, or nobody waits for one any more. */
  get isWorkOver(): boolean {
    return this.#work?.isOver ?? true
  }

  /** Applies a reload: tasks from now on have the new plan. */
  deploy(live: LivePlan, changes: ApiChanges): void {
    const { removed, deployed } = changes
    this.#former.reload()
    this.#former.change(this.#live.faults.sequences, live.faults.sequences)
    this.#live = live
    this.#permits.wake()
    for (const identity of removed) {
      this.#deployFlows(identity, null)
      this.#mounted.delete(identity)
    }
    for (const api of deployed) this.#deploy(api)
    this.#renewThreads()
    this.#deployWork(changes)
  }

  /** Starts no job of a mounted API any more, and aborts those that run. Resolves once they have ended. */
  async stopWork(): Promise<void> {
    await this.#work?.stop()
  }

  /** Ends the wait for aborted jobs. */
  giveUpWork(): void {
    this.#work?.giveUp()
  }

  #renewThreads(): void {
    const old = this.#generation
    if (old === null || old.source === this.#source()) return
    const { threads } = this.#newGeneration()
    for (const kind of LANES) {
      if (old.threads[kind].isStarted) threads[kind].start()
      old.threads[kind].retire()
    }
    this.#retire(old)
  }

  /** Ends all threads; their tasks fail. */
  close(): void {
    this.giveUpWork()
    this.#lanes.close()
    for (const generation of [this.#generation, ...this.#retired]) if (generation !== null) closeThreads(generation)
  }

  #retire(generation: Generation): void {
    this.#retired.add(generation)
    for (const each of this.#retired) if (pendingOf(each) === 0) this.#retired.delete(each)
    const [oldest] = this.#retired
    if (oldest === undefined || this.#retired.size <= RETIRED_MAX) return
    this.#retired.delete(oldest)
    const CAUSE_OF_ERROR = `tasks of ${RETIRED_MAX} later configurations have not ended either`
    const fields = { TASKS: pendingOf(oldest), CAUSE_OF_ERROR }
    this.#options.report('warn', 'worker threads of an earlier configuration are ended', fields)
    closeThreads(oldest, CAUSE_OF_ERROR)
  }

  #deploy(api: ApiPlan): void {
    const identity = apiIdentity(api)
    const { name, version, mounted } = api
    if (mounted === null) this.#mounted.delete(identity)
    else {
      const { module, digest, settings, work } = mounted
      this.#mounted.set(identity, { name, version, module, digest, settings, work })
    }
    // A checked body takes a request to a worker whatever its flow needs.
    const isOnWorkers = api.mediation !== null && (this.#share.bodyChecks !== null || needsWorker(api.mediation))
    this.#deployFlows(identity, isOnWorkers ? api.mediation : null)
  }

  /** Null: no flow of the API runs on workers any more. */
  #deployFlows(identity: string, mediation: ApiMediationPlan | null): void {
    this.#former.change(this.#apis.get(identity)?.sequences ?? [], mediation?.sequences ?? [], identity)
    if (mediation === null) this.#apis.delete(identity)
    else this.#apis.set(identity, mediation)
  }

  #newScheduler(): WorkScheduler {
    const { report, workTimes: times } = this.#options
    return new WorkScheduler({
      open: task => this.#background.open({ api: task.api, task, size: 'bound', transfer: [] }),
      // One permit is left, so that no API waits for the jobs of others until it is asked.
      jobsMax: () => Math.max(1, this.#live.workers.limits.background.core - 1),
      wakes: new SharedWakes(this.#share.wakes),
      ...{ report, times },
    })
  }

  #deployWork({ removed, deployed }: ApiChanges): void {
    if (this.#work === null) return
    const working = deployed.filter(hasWork)
    const others = deployed.filter(api => !hasWork(api)).map(apiIdentity)
    this.#work.deploy(
      [...removed, ...others],
      working.map(api => this.#plannedWork(api)),
    )
  }

  #plannedWork(api: ApiPlan): PlannedWork {
    const { name, version, mounted } = api
    const label = `${name}:${version}`
    return { identity: apiIdentity(api), label, begins: mounted?.work === 'start' || this.#hasDatabase(name) }
  }

  /** True if the API may have something to do: an embedded database begins with the first use of its API. */
  #hasDatabase(name: string): boolean {
    const { database } = this.#share
    if (database === null) return false
    return database.settings.server !== null || existsSync(databaseFile(database.folder, name))
  }

  #newPool(row: PermitRow, kind: PoolKind, permits: SharedPermits): WorkerPool {
    const { report, metrics } = this.#options
    return new WorkerPool({
      kind,
      name: POOL_NAMES[row],
      ids: this.#ids,
      row: PERMIT_ROWS[row],
      permits,
      settings: () => {
        const { workers, responseTimeoutMs } = this.#live
        return {
          limits: workers.limits[row],
          timeoutMs: responseTimeoutMs,
          queueWarningMs: row === 'background' ? 0 : workers.queueWarningMs,
        }
      },
      threads: size => (size === 'bound' ? this.#current().threads[kind] : this.#lanes.threadsFor(size)),
      report,
      metrics,
    })
  }

  #serviceOf(pool: WorkerPool, row: 'plain' | 'secured'): WorkerService {
    return {
      mediate: async (task, bytes, wait) => {
        const { calls = null } = task
        // The last one is that of the task itself.
        const held = heldPermits(calls === null ? null : { ...calls, [row]: calls[row] - 1 })
        const size = this.#lanes.sizeOf(task, bytes)
        const pooled = { api: task.api, ...packed(task), size, held }
        return unpackResult((await pool.run(pooled, wait)) as PackedResult)
      },
      background: task => this.#runInBackground(task),
    }
  }

  #runInBackground(task: FlowTask): Promise<void> | null {
    try {
      const result = this.#background.run({ api: task.api, ...packed(task), size: 'bound' })
      return result.then(
        result => this.#backgroundEnded(task, unpackResult(result as PackedResult)),
        error => this.#backgroundFailed(task, error as WorkerFailure),
      )
    } catch {
      return null
    }
  }

  #backgroundEnded({ api }: FlowTask, result: FlowResult): void {
    if (result.kind !== 'faults') return
    const { code, cause } = result.fault
    this.#options.report('warn', 'background task failed', { API: api, ERROR_CODE: code, CAUSE_OF_ERROR: cause })
  }

  #backgroundFailed({ api }: FlowTask, { reason, message }: WorkerFailure): void {
    this.#options.report('error', 'background task failed', { API: api, REASON: reason, CAUSE_OF_ERROR: message })
  }

  #current(): Generation {
    return this.#generation ?? this.#newGeneration()
  }

  #newGeneration(): Generation {
    const { limits, threads: counts, heapBytes } = this.#live.workers
    const plan = this.#plan(this.#former.plans)
    const newThreads = (kind: keyof Lanes, threads: number, tasksMax: number): WorkerThreads => {
      const { wakes } = this.#share
      return new WorkerThreads({ ...this.#options, kind, plan, wakes, threads, tasksMax, heapBytes })
    }
    // Suspended tasks stay on their threads.
    const messagesMax = limits.plain.max + limits.secured.max + 2 * SUSPENDED_MAX
    const { mediation, long, spare } = laneSizes(shareOf(counts.mediation, this.#share))
    const threads = {
      mediation: newThreads('mediation', mediation, messagesMax),
      long: newThreads('long', long, messagesMax),
      spare: newThreads('spare', spare, messagesMax),
      background: newThreads('background', shareOf(counts.background, this.#share), limits.background.max),
    }
    this.#generation = { source: this.#source(), threads }
    return this.#generation
  }

  /** JSON of a `WorkerPlan`. `former`: sequences that reloads have changed or removed. */
  #plan(former: WorkerPlan['former']): string {
    const { faults, logLevel, formats } = this.#live
    const { home, statistics } = this.#share
    const apis = Object.fromEntries([...this.#apis].map(([identity, { sequences }]) => [identity, sequences]))
    const sequences = { sequences: faults.sequences, apis, former }
    const parts = { ...sequences, ...this.#mountedParts(), scripts: this.#scriptSettings() }
    return JSON.stringify({ logLevel, home, formats, statistics, ...parts } satisfies WorkerPlan)
  }

  /** The share of each worker thread, which has script threads of its own. */
  #scriptSettings(): WorkerPlan['scripts'] {
    const { threads, scripts } = this.#live.workers
    const workers = workerThreadCount(threads, this.#share.reactors)
    return { ...scripts, threads: scriptThreadsEach(scripts.threads, workers) }
  }

  #mountedParts(): Pick<WorkerPlan, 'mounted' | 'database'> {
    const { database, reactors } = this.#share
    if (this.#mounted.size === 0) return { mounted: {}, database: null }
    const { mediation, background } = this.#live.workers.threads
    const works = [...this.#mounted.values()].some(isWorking)
    const working = works ? shareOf(background, { ...this.#share, reactor: 0 }) : 0
    const threads = Math.max(mediation, reactors) + working
    return { mounted: Object.fromEntries(this.#mounted), database: database && shareOfDatabase(database, threads) }
  }

  /** All that threads are made from; they may keep former sequences for longer. */
  #source(): string {
    const { limits, threads, heapBytes } = this.#live.workers
    const maxima = Object.values(limits).map(({ max }) => max)
    return `${JSON.stringify({ maxima, threads, heapBytes })}${this.#plan({})}`
  }
}

function packed(task: FlowTask) {
  const { task: own, transfer } = ownBuffers(task)
  return { task: packTask(own), transfer }
}

/** The connections of the pool, which counts for the process, divided among its threads: each has at least one. */
function shareOfDatabase(plan: DatabasePlan, threads: number): DatabasePlan {
  const { settings } = plan
  const maxActive = Math.max(1, Math.floor(settings.pool.maxActive / threads))
  return { ...plan, settings: { ...settings, pool: { ...settings.pool, maxActive } } }
}

function mountedService(pool: WorkerPool): MountedService {
  return {
    // Requests to mounted APIs stay on the threads that have their state.
    open: (task: MountedTask, { transfer, held, evicted }) =>
      pool.open({ api: task.api, task, size: 'bound', transfer, held }, evicted) as ReturnType<MountedService['open']>,
  }
}

/** The threads of one plan. */
interface Generation {
  /** All that the threads are made from. */
  readonly source: string
  readonly threads: Lanes
}

/** Tasks that have not ended. */
function pendingOf({ threads }: Generation): number {
  return LANES.reduce((sum, lane) => sum + threads[lane].pending, 0)
}

function closeThreads({ threads }: Generation, cause = ''): void {
  for (const lane of LANES) threads[lane].close(cause)
}

/** Threads of one reactor, of those of the process: at least one. */
function shareOf(threads: number, { reactor, reactors }: ReactorShare): number {
  return Math.max(1, Math.floor(threads / reactors) + (reactor < threads % reactors ? 1 : 0))
}

function hasWork({ mounted }: ApiPlan): boolean {
  return mounted !== null && isWorking(mounted)
}

function isWorking({ work }: Pick<MountedPlan, 'work'>): boolean {
  return work === 'start' || work === 'use'
}

function needsWorker({ flows, byOperation }: ApiMediationPlan): boolean {
  const all = [flows, ...Object.values(byOperation)].flatMap(({ request, response, fault }) => [
    request,
    response,
    fault,
  ])
  return all.some(({ needs }) => needs === ('worker' satisfies FlowNeeds))
}
