/** Metrics of the connection pool of one database: connections in use, their highest number and limit, and waits. */
import { METRIC, type MetricsColumn } from '../../observe/metrics.ts'

const CELLS = {
  'database.apim_db': {
    used: METRIC.apimDatabaseUsed,
    highest: METRIC.apimDatabaseHighest,
    limit: METRIC.apimDatabaseLimit,
    waits: METRIC.apimDatabaseWaits,
  },
  'database.shared_db': {
    used: METRIC.sharedDatabaseUsed,
    highest: METRIC.sharedDatabaseHighest,
    limit: METRIC.sharedDatabaseLimit,
    waits: METRIC.sharedDatabaseWaits,
  },
} as const

export class DatabaseUsage {
  readonly #cells: (typeof CELLS)[keyof typeof CELLS]
  readonly #metrics: Pick<MetricsColumn, 'add'>
  #used = 0
  #highest = 0

  /** `limit`: largest number of connections. */
  constructor(section: keyof typeof CELLS, limit: number, metrics: Pick<MetricsColumn, 'add'>) {
    this.#cells = CELLS[section]
    this.#metrics = metrics
    metrics.add(this.#cells.limit, limit)
  }

  used(connections: number): void {
    this.#metrics.add(this.#cells.used, connections - this.#used)
    this.#used = connections
    if (connections <= this.#highest) return
    this.#metrics.add(this.#cells.highest, connections - this.#highest)
    this.#highest = connections
  }

  waits(): void {
    this.#metrics.add(this.#cells.waits, 1)
  }
}
