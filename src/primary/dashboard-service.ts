/**
 * Gathers what the dashboard shows: numbers of shared memory, states of connections, lists of endpoints, counters and
 * APIs, and the effective configuration. It runs when the control thread calls. Between two calls it keeps the numbers
 * that charts need of the last minutes.
 */
import { maskCredentials } from '../config/diagnostics.ts'
import { formatKeyValue, type ResolvedKey } from '../config/resolve.ts'
import { FREE_NAME } from '../config/key.ts'
import { DURATION_BOUNDS_SECONDS, NO_API_ROW, OTHER_APIS_ROW, readApiRow } from '../observe/api-metrics.ts'
import type { RecordedFailure } from '../observe/flight-recorder.ts'
import { snapshotMetrics } from '../observe/metrics.ts'
import { readThreads } from '../observe/thread-metrics.ts'
import type { DashboardCall } from '../plan/control-messages.ts'
import type { ConfigurationRow, DashboardPart, DashboardParts, Tree } from '../plan/dashboard-messages.ts'
import { apiIdentity, type ApiPlan, type ReactorPlan } from '../plan/reactor-plan.ts'
import type { Side } from '../protocol/machine.ts'
import type { ApiService } from './api-service.ts'
import type { EndpointService } from './endpoint-service.ts'
import { listFailures } from './failure-service.ts'
import type { PoolService } from './pool-service.ts'
import type { Readiness } from './readiness.ts'
import type { ReactorPool } from './reactor-pool.ts'
import type { ThrottleService } from './throttle-service.ts'

/** Rows of one list; the page says how many are left out. */
const ROWS_MAX = 2000
const COUNTERS_MAX = 50
const FAILURES_MAX = 50
/** Failures shown of one API, code and status: requests beyond a limit come by the hundred. */
const FAILURES_PER_SORT = 4
const VALUE_CHARS_MAX = 300
/** A reactor that does not tell its connections in time is left out of the sums. */
const REACTOR_MS = 900
/** Five minutes. A sample takes some kilobytes: counts by status, by code and state of faults, by bucket of time. */
const SAMPLES_MAX = 60
const SAMPLE_MS = 5000
const BOUNDS = numbered(DURATION_BOUNDS_SECONDS)
const NO_ROWS = { side: '', state: '', limit: 0 } as const

export interface DashboardSources {
  readonly metrics: SharedArrayBuffer
  /** True if the page can be opened; a reload may change it. */
  readonly isOpen: () => boolean
  readonly readiness: () => Readiness
  readonly keys: () => readonly ResolvedKey[]
  readonly apis: Pick<ApiService, 'list'>
  readonly plans: () => readonly ApiPlan[]
  /** Null on a node without reactors. */
  readonly gateway: {
    readonly reactors: Pick<ReactorPool, 'call'>
    readonly plan: Pick<ReactorPlan, 'reactors' | 'level' | 'apiMetrics'>
    readonly pools: Pick<PoolService, 'list'>
    readonly endpoints: Pick<EndpointService, 'list'>
    readonly throttling: Pick<ThrottleService, 'top'>
  } | null
}

export class DashboardService {
  readonly #sources: DashboardSources
  /** The oldest first. */
  readonly #samples: Tree[] = []

  constructor(sources: DashboardSources) {
    this.#sources = sources
    setInterval(() => this.#sample(), SAMPLE_MS).unref()
  }

  async serve(call: DashboardCall): Promise<object> {
    if (call.kind === 'configuration') return this.#configuration()
    const gathered = call.parts.map(async part => [part, await this.#part(part)] as const)
    return Object.fromEntries(await Promise.all(gathered)) satisfies DashboardParts
  }

  #part(part: DashboardPart): Promise<Tree> | Tree {
    if (part === 'history') return Object.fromEntries(this.#samples.entries())
    return part === 'live' ? this.#live() : part === 'lists' ? this.#lists() : this.#apis()
  }

  /** The page shows no gap where it was closed and opened again. */
  #sample(): void {
    const { metrics, gateway, isOpen } = this.#sources
    if (!isOpen()) this.#samples.length = 0
    else if (gateway !== null) {
      const { counts, ...numbers } = countsOf(metrics)
      const { requests, bytesToClients, bytesFromClients } = counts
      this.#samples.push({
        ...numbers,
        ...this.#exchanges(gateway.plan.apiMetrics),
        counts: { requests, bytesToClients, bytesFromClients },
      })
      if (this.#samples.length > SAMPLES_MAX) this.#samples.shift()
    }
  }

  async #live(): Promise<Tree> {
    const { metrics, gateway } = this.#sources
    const numbers = {
      ...countsOf(metrics),
      upS: Math.floor(process.uptime()),
      residentBytes: process.memoryUsage.rss(),
      threads: threadRows(metrics, gateway?.plan.reactors ?? 0),
    }
    if (gateway === null) return numbers
    const { pools, history, connections } = gateway.pools.list()
    return {
      ...numbers,
      ...(await connectionStates(gateway)),
      ...this.#exchanges(gateway.plan.apiMetrics),
      reactors: gateway.plan.reactors,
      level: gateway.plan.level,
      pools: byName(pools, ({ name }) => name),
      poolHistory: byName(history, ({ name }) => name),
      connections: byName(connections, ({ side }) => side),
    }
  }

  /** Sums over all APIs, and over requests to none: responses that the gateway made for want of another, and times. */
  #exchanges(memory: SharedArrayBuffer): Tree {
    const rows = new Set([NO_API_ROW, OTHER_APIS_ROW, ...this.#sources.plans().map(({ metricsRow }) => metricsRow)])
    const sums = [...rows].map(row => sumOfRow(memory, row))
    const durations = {
      total: numbered(added(sums.map(({ total }) => total))),
      backend: numbered(added(sums.map(({ backend }) => backend))),
    }
    return { gatewayFaults: sums.reduce((sum, { faults }) => sum + faults, 0), durations, bounds: BOUNDS }
  }

  async #lists(): Promise<Tree> {
    const { gateway, readiness } = this.#sources
    const { parts } = readiness()
    const ready = { readiness: byName(parts, ({ name }) => name) }
    if (gateway === null) return ready
    const endpoints = gateway.endpoints.list().map(row => ({ ...row, url: maskCredentials(row.url) }))
    const { counters, live, capacity } = gateway.throttling.top('limit', COUNTERS_MAX)
    return {
      ...ready,
      endpoints: byName(endpoints.slice(0, ROWS_MAX), ({ name }) => name),
      endpointsOmitted: Math.max(0, endpoints.length - ROWS_MAX),
      throttle: { live, capacity },
      counters: byName(counters, ({ key, policy }) => `${policy} ${key}`),
      ...(await failuresOf(gateway)),
    }
  }

  #apis(): Tree {
    const { apis } = this.#sources.apis.list()
    const memory = this.#sources.gateway?.plan.apiMetrics
    const rowOf = new Map(this.#sources.plans().map(plan => [apiIdentity(plan), plan.metricsRow]))
    const rows = apis.slice(0, ROWS_MAX).map(({ paths, hosts, transports, ...summary }) => {
      const identity = apiIdentity({ paths, hosts })
      const row = { ...summary, path: paths[0]!, hosts: hosts.join(', '), transports: transports.join(', ') }
      if (memory === undefined) return [identity, row] as const
      const { total, backend: _, ...numbers } = sumOfRow(memory, rowOf.get(identity) ?? OTHER_APIS_ROW)
      return [identity, { ...row, ...numbers, total: numbered(total) }] as const
    })
    return { apis: Object.fromEntries(rows), omitted: Math.max(0, apis.length - ROWS_MAX) }
  }

  #configuration(): readonly ConfigurationRow[] {
    return this.#sources
      .keys()
      .filter(({ path }) => !path.includes(FREE_NAME))
      .map(key => {
        const { path, where, settings, definition } = key
        const isInert = definition.inertReason !== ''
        return {
          key: path,
          value: formatKeyValue(key, VALUE_CHARS_MAX),
          where,
          overridden: settings.slice(0, -1).map(setting => setting.where),
          meaning: definition.meaning,
          appliesAfter: isInert ? ('none' as const) : definition.isLive ? ('reload' as const) : ('restart' as const),
        }
      })
  }
}

function countsOf(metrics: SharedArrayBuffer) {
  const { counts, statuses, faults } = snapshotMetrics(metrics)
  return {
    nowMs: Date.now(),
    counts,
    statuses: Object.fromEntries(statuses),
    faults: Object.fromEntries(faults.map(({ side, base, state, count }) => [`${side} ${base} ${state}`, count])),
  }
}

function threadRows(metrics: SharedArrayBuffer, reactors: number): Tree {
  const rows = readThreads(metrics, reactors).map(({ thread, delays, delaySeconds, memory }) => {
    const { heap_used: heapUsed, heap_limit: heapLimit, external } = memory
    return [thread, { delayed: delays.reduce((sum, one) => sum + one, 0), delaySeconds, heapUsed, heapLimit, external }]
  })
  return Object.fromEntries(rows)
}

/** Sums over the reactors; a state without connections is left out. */
async function connectionStates({ reactors }: NonNullable<DashboardSources['gateway']>): Promise<Tree> {
  const lists = await Promise.all(reactors.call({ kind: 'connections', query: NO_ROWS }, REACTOR_MS))
  const states: Record<Side, Record<string, number>> = { source: {}, target: {} }
  for (const list of lists) {
    for (const side of ['source', 'target'] as const) {
      for (const [state, count] of Object.entries(list?.counts[side] ?? {})) {
        states[side][state] = (states[side][state] ?? 0) + count
      }
    }
  }
  return { states, silent: lists.filter(list => list === null).length }
}

interface ApiSums {
  readonly requests: number
  readonly faults: number
  readonly responseBytes: number
  /** Requests per bucket of time. */
  readonly total: readonly number[]
  readonly backend: readonly number[]
}

function sumOfRow(memory: SharedArrayBuffer, row: number): ApiSums {
  const samples = readApiRow(memory, row)
  const sum = (read: (sample: (typeof samples)[number]) => number) => samples.reduce((all, it) => all + read(it), 0)
  return {
    requests: sum(({ requests }) => requests),
    faults: sum(({ faults }) => faults),
    responseBytes: sum(({ responseBytes }) => responseBytes),
    total: added(samples.map(({ durations }) => durations.total?.buckets ?? [])),
    backend: added(samples.map(({ durations }) => durations.backend?.buckets ?? [])),
  }
}

/** Sums of lists, place by place. */
function added(lists: readonly (readonly number[])[]): readonly number[] {
  return [...DURATION_BOUNDS_SECONDS, 0].map((_, at) => lists.reduce((sum, list) => sum + (list[at] ?? 0), 0))
}

/** Members `0`, `1`, …; zeros are left out. */
function numbered(values: readonly number[]): Readonly<Record<string, number>> {
  return Object.fromEntries(values.flatMap((value, at) => (value === 0 ? [] : [[String(at), value]])))
}

/** The last failures of all reactors, by their ids; a few of each sort. */
async function failuresOf({ reactors }: NonNullable<DashboardSources['gateway']>): Promise<Tree> {
  const query = { limit: FAILURES_MAX, perSort: FAILURES_PER_SORT }
  const { rows, omitted } = await listFailures(query, call => reactors.call(call, REACTOR_MS))
  return { failures: Object.fromEntries(rows.map(row => [row.id, failureRow(row)])), failuresOmitted: omitted }
}

/** Steps as one text: `us side event state`, one per line. */
function failureRow({ steps, ...failure }: RecordedFailure): Tree {
  return { ...failure, steps: steps.map(({ us, side, event, state }) => `${us} ${side} ${event} ${state}`).join('\n') }
}

type Row = Readonly<Record<string, number | string | boolean>>

/** Rows as members of one object, by their names. */
function byName<One extends object>(rows: readonly One[], nameOf: (row: One) => string): Readonly<Record<string, Row>> {
  return Object.fromEntries(rows.map(row => [nameOf(row), { ...row } as Row]))
}
