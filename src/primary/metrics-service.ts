/**
 * Everything that `/metrics` shows: memory that threads share, the state of connections, which reactors tell when they
 * are asked, and the process.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { FIRST_API_ROW, NO_API_ROW, OTHER_APIS_ROW, readApiRow } from '../observe/api-metrics.ts'
import { readChildThreads } from '../observe/child-threads.ts'
import { type ConnectionRows, CLIENT_ROWS, renderConnectionMarks } from '../observe/connection-marks.ts'
import { DeliveryCounts } from '../observe/delivery-counts.ts'
import { renderDeliveryMetrics } from '../observe/delivery-metrics.ts'
import { renderMetrics, snapshotMetrics } from '../observe/metrics.ts'
import { type LabelledApi, renderApiMetrics, renderConnections, renderThreads } from '../observe/metrics-text.ts'
import { renderPoolCounts } from '../observe/pool-counts.ts'
import { renderOperationTimes } from '../observe/operation-times.ts'
import { renderProcessMetrics } from '../observe/process-metrics.ts'
import { readThreads } from '../observe/thread-metrics.ts'
import { openFileLimit } from '../plan/descriptor-planning.ts'
import type { ApiPlan, LivePlan, ReactorPlan } from '../plan/reactor-plan.ts'
import { ALL_ROUTES_SLOT } from '../proxy/target/route.ts'
import { SharedGauge } from '../runtime/shared-gauge.ts'
import type { ReactorPool } from './reactor-pool.ts'

/** State that a reload changes. */
interface Active {
  readonly live: Pick<LivePlan, 'http' | 'https'>
  readonly apis: readonly ApiPlan[]
}

interface MetricsSources {
  readonly metrics: SharedArrayBuffer
  readonly reactors: number
  /** Null on a node without reactors. */
  readonly plan: Pick<ReactorPlan, 'apiMetrics' | 'gauge' | 'connectionLimits'> | null
  readonly active: () => Active
  readonly pool: Pick<ReactorPool, 'call'>
  /** Text of other services. */
  readonly more: () => string
}

/** A reactor that does not tell its connections in time is left out. */
const REACTOR_MS = 1000
const COUNTS_ONLY = { kind: 'connections', query: { side: '', state: '', limit: 0 } } as const

export class MetricsService {
  readonly #sources: MetricsSources
  readonly #build = { version: installedVersion(), runtime: process.version }

  constructor(sources: MetricsSources) {
    this.#sources = sources
  }

  /** Metrics of each API that has had requests, in the order of the APIs. */
  apis(): readonly LabelledApi[] {
    const { plan, active } = this.#sources
    if (plan === null) return []
    const rows = [
      { api: 'none', version: '', row: NO_API_ROW },
      { api: 'other', version: '', row: OTHER_APIS_ROW },
      ...active()
        .apis.filter(({ metricsRow }) => metricsRow >= FIRST_API_ROW)
        .map(({ name, version, metricsRow: row }) => ({ api: name, version, row })),
    ]
    // Names and versions need not be unique: then the first context tells APIs apart.
    const seen = new Set<string>()
    return rows.flatMap(({ api, version, row }) => {
      const samples = readApiRow(plan.apiMetrics, row)
      if (samples.length === 0) return []
      const isKnown = seen.has(`${api}:${version}`)
      seen.add(`${api}:${version}`)
      return [{ api: isKnown ? `${api}#${row}` : api, version, samples }]
    })
  }

  /** Text format of Prometheus. */
  async text(): Promise<string> {
    const { metrics, reactors, more } = this.#sources
    return [
      renderMetrics(snapshotMetrics(metrics)),
      await this.#connections(),
      renderApiMetrics(this.apis()),
      renderThreads(readThreads(metrics, reactors), readChildThreads(metrics, reactors)),
      renderOperationTimes(metrics, reactors + 1),
      renderPoolCounts(),
      renderDeliveryMetrics(DeliveryCounts.ofProcess()),
      renderProcessMetrics(this.#build, openFileLimit()),
      more(),
    ].join('')
  }

  async #connections(): Promise<string> {
    const { plan, pool, reactors } = this.#sources
    if (plan === null) return ''
    const lists = await Promise.all(pool.call(COUNTS_ONLY, REACTOR_MS))
    const gauge = new SharedGauge(plan.gauge, reactors, 0)
    return renderConnections(lists.filter(list => list !== null)) + renderConnectionMarks(gauge, this.#rows(plan))
  }

  #rows({ connectionLimits }: Pick<ReactorPlan, 'connectionLimits'>): ConnectionRows {
    const { live, apis } = this.#sources.active()
    const limitOf = (secured: boolean) => live[secured ? 'https' : 'http']['http.max.connection.per.host.port']
    const backends = new Map<number, ConnectionRows['backends'][number]>()
    for (const { endpoints, sandbox } of apis) {
      for (const { route } of [...endpoints.endpoints, ...sandbox.endpoints]) {
        const { slot: row, secured, host, port } = route
        backends.set(row, { row, label: `${host}:${port}`, limit: limitOf(secured) })
      }
    }
    const labels = new Map([...backends.values()].map(entry => [entry.label, entry]))
    return {
      clients: [
        { row: CLIENT_ROWS.http, label: 'http', limit: live.http.max_open_connections },
        { row: CLIENT_ROWS.https, label: 'https', limit: live.https.max_open_connections },
      ],
      backends: [{ row: ALL_ROUTES_SLOT, label: 'all', limit: connectionLimits.backends }, ...labels.values()],
    }
  }
}

/** Version in the nearest package.json: the same in the repository and in a package. */
export function installedVersion(): string {
  let folder = import.meta.dirname
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder)
    if (parent === folder) return 'unknown'
    folder = parent
  }
  return String((JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version?: unknown }).version)
}
