/**
 * The pools of worker threads as the primary sees them: their permits, in memory that it shares with the reactors, for
 * `sluice pools` and for metrics.
 */
import { heading, snapshotMetrics } from '../observe/metrics.ts'
import type { ReactorPlan } from '../plan/reactor-plan.ts'
import { PERMIT_ROWS, type PermitRow, POOL_NAMES, type PoolName } from '../plan/worker-plan.ts'
import { type PermitCounts, type PermitLimits, SharedPermits } from '../runtime/shared-permits.ts'
import type { UsageReport } from '../plan/usage-report.ts'
import { type LiveSizes, usageReport } from './usage-report.ts'

/** Messages of clients of one transport, or those without a waiting client. */
export interface ListedPool extends PermitCounts, PermitLimits {
  readonly name: PoolName
}

/** Results of the tasks of a pool since the start; `mediation` is that of both transports. */
export interface PoolHistory {
  readonly name: 'mediation' | 'background'
  readonly tasks: number
  readonly waited: number
  readonly waitSeconds: number
  readonly queueFull: number
  readonly memory: number
  /** Refused because of a loop of calls; because the lock of the permits was not free. */
  readonly loop: number
  readonly busy: number
  readonly late: number
  /** Given up: the client has left. */
  readonly left: number
  readonly died: number
  readonly failed: number
}

/** Connections that are open, and how many may be; -1: the limit is unknown. */
interface ListedConnections {
  readonly side: 'clients' | 'backends'
  readonly open: number
  readonly limit: number
}

export interface PoolsReport {
  readonly pools: readonly ListedPool[]
  readonly history: readonly PoolHistory[]
  /** Worker threads now, and those that died since the start. */
  readonly threads: number
  readonly deaths: number
  /** Short messages given to threads for large ones, because the others computed for too long, since the start. */
  readonly diversions: number
  readonly connections: readonly ListedConnections[]
}

type Gauge = 'running' | 'waiting' | 'waitingBytes' | 'suspended' | 'highest' | 'max'
const GAUGES: readonly (readonly [Gauge, series: string, help: string])[] = [
  ['running', 'worker_permits', 'Messages that are mediated now, and jobs in the background.'],
  ['max', 'worker_permits_limit', 'Messages that may be mediated at once.'],
  ['highest', 'worker_permits_highest', 'Most messages that were mediated at once.'],
  ['waiting', 'worker_queue_messages', 'Messages that wait for a worker.'],
  ['waitingBytes', 'worker_queue_bytes', 'Bytes of the messages that wait for a worker.'],
  ['suspended', 'worker_suspended', 'Requests to mounted APIs that wait for their clients, without a permit.'],
]

export class PoolService {
  readonly #plan: ReactorPlan
  readonly #live: () => LiveSizes

  /** `live`: what the last reload has applied. */
  constructor(plan: ReactorPlan, live: () => LiveSizes) {
    this.#plan = plan
    this.#live = live
  }

  list(): PoolsReport {
    const { counts } = snapshotMetrics(this.#plan.metrics)
    const { clients, backends } = this.#plan.connectionLimits
    return {
      pools: this.#pools(),
      history: [
        {
          name: 'mediation',
          tasks: counts.workerTasks,
          waited: counts.workerWaits,
          waitSeconds: counts.workerWaitSeconds,
          queueFull: counts.workerRefusedQueueFull,
          memory: counts.workerRefusedMemory,
          loop: counts.workerRefusedLoop,
          busy: counts.workerRefusedBusy,
          late: counts.workerTimeouts,
          left: counts.workerTasksLeft,
          died: counts.workerTasksDied,
          failed: counts.workerTasksFailed,
        },
        {
          name: 'background',
          tasks: counts.backgroundTasks,
          waited: counts.backgroundWaits,
          waitSeconds: counts.backgroundWaitSeconds,
          queueFull: counts.backgroundRefusedQueueFull,
          memory: counts.backgroundRefusedMemory,
          loop: 0,
          busy: counts.backgroundRefusedBusy,
          late: counts.backgroundTimeouts,
          left: counts.backgroundTasksLeft,
          died: counts.backgroundTasksDied,
          failed: counts.backgroundTasksFailed,
        },
      ],
      threads: counts.workerThreads,
      deaths: counts.workerDeaths,
      diversions: counts.workerDiversions,
      connections: [
        { side: 'clients', open: counts.connectionsOpen, limit: clients },
        { side: 'backends', open: counts.targetsOpen, limit: backends },
      ],
    }
  }

  /** Returns how far limits were used since the start. `metrics`: those of the node. */
  usage(metrics: string): UsageReport {
    return usageReport(this.#plan, this.#live(), metrics)
  }

  /** Text format of Prometheus. */
  metrics(): string {
    const pools = this.#pools()
    const lines = GAUGES.flatMap(([gauge, series, help]) => [
      ...heading(series, 'gauge', help),
      ...pools.map(pool => `sluice_${series}{pool="${pool.name}"} ${pool[gauge]}`),
    ])
    return `${lines.join('\n')}\n`
  }

  #pools(): readonly ListedPool[] {
    const { permits, reactors } = this.#plan
    const { limits } = this.#live().workers
    return (Object.keys(PERMIT_ROWS) as PermitRow[]).map(row => ({
      name: POOL_NAMES[row],
      ...limits[row],
      ...SharedPermits.counts(permits, reactors, PERMIT_ROWS[row]),
    }))
  }
}
