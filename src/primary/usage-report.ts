/** Use of the limits of a running gateway: metrics, sizes in effect, and the machine; for `sluice advise`. */
import { availableParallelism } from 'node:os'
import { openFileLimit } from '../plan/descriptor-planning.ts'
import type { LivePlan, ReactorPlan } from '../plan/reactor-plan.ts'
import type { UsageReport } from '../plan/usage-report.ts'
import { workerThreadCount } from '../plan/worker-plan.ts'

/** Sizes that a reload may change. */
export type LiveSizes = Pick<LivePlan, 'workers' | 'http' | 'https'>

export function usageReport(plan: ReactorPlan, live: LiveSizes, metrics: string): UsageReport {
  const { reactors, connectionLimits } = plan
  const { limits, threads } = live.workers
  return {
    metrics,
    values: {
      ...numbers('transport.passthru_http', live.http),
      ...numbers('transport.passthru_https', live.https),
      'mediation.synapse.core_threads': limits.background.core,
      'mediation.synapse.max_threads': limits.background.max,
      'mediation.synapse.threads_queue_length': limits.background.queueLength,
    },
    machine: {
      processors: availableParallelism(),
      reactors,
      workerThreads: workerThreadCount(threads, reactors),
      openFiles: openFileLimit(),
      ...connectionLimits,
    },
  }
}

function numbers(section: string, values: object): Readonly<Record<string, number>> {
  const rows = Object.entries(values).filter((row): row is [string, number] => typeof row[1] === 'number')
  return Object.fromEntries(rows.map(([key, value]) => [`${section}.${key}`, value]))
}
