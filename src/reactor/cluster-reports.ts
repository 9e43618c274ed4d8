/** Lifetime of what a reactor reports to traffic managers: it is there while the plan has traffic managers. */
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import { ClusterLimits, type UsageRow } from '../throttle/cluster-limits.ts'
import type { Throttle } from '../throttle/throttle.ts'

export class ClusterReports {
  readonly #throttle: Throttle
  readonly #metrics: Pick<MetricsColumn, 'add'>
  #timer: NodeJS.Timeout | undefined
  #intervalMs = 0

  constructor(throttle: Throttle, metrics: Pick<MetricsColumn, 'add'>) {
    this.#throttle = throttle
    this.#metrics = metrics
  }

  /** Reports at an interval in milliseconds; 0: no traffic manager decides. */
  use(intervalMs: number): void {
    if (intervalMs === this.#intervalMs) return
    this.#intervalMs = intervalMs
    clearInterval(this.#timer)
    this.#throttle.cluster?.report()
    if (intervalMs === 0) {
      this.#throttle.cluster = null
      return
    }
    const { state } = this.#throttle.auth
    const lost = (rows: number): void => this.#metrics.add(METRIC.throttleReportsLost, rows)
    const send = (rows: readonly UsageRow[]): Promise<true> => state.call({ kind: 'usage', rows })
    const cluster = this.#throttle.cluster ?? new ClusterLimits(state.decisions, send, lost)
    this.#throttle.cluster = cluster
    this.#timer = setInterval(() => cluster.report(), intervalMs)
    // A reactor that drains ends without it.
    this.#timer.unref()
  }

  /** Reports what has not been reported. */
  close(): void {
    clearInterval(this.#timer)
    this.#throttle.cluster?.report()
  }
}
