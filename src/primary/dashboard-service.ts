/**
 * Gathers what the dashboard shows: numbers of shared memory, states of connections, lists of endpoints, counters and
 * APIs, and the effective configuration. It runs when the control thread calls, and keeps nothing between two calls.
 */
import { maskCredentials } from '../config/diagnostics.ts'
import { formatKeyValue, type ResolvedKey } from '../config/resolve.ts'
import { FREE_NAME } from '../config/key.ts'
import { snapshotMetrics } from '../observe/metrics.ts'
import type { DashboardCall } from '../plan/control-messages.ts'
import type { ConfigurationRow, DashboardPart, DashboardParts, Tree } from '../plan/dashboard-messages.ts'
import type { ReactorPlan } from '../plan/reactor-plan.ts'
import type { Side } from '../protocol/machine.ts'
import type { ApiService } from './api-service.ts'
import type { EndpointService } from './endpoint-service.ts'
import type { PoolService } from './pool-service.ts'
import type { ReactorPool } from './reactor-pool.ts'
import type { ThrottleService } from './throttle-service.ts'

/** Rows of one list; the page says how many are left out. */
const ROWS_MAX = 2000
const COUNTERS_MAX = 50
const VALUE_CHARS_MAX = 300
/** A reactor that does not tell its connections in time is left out of the sums. */
const REACTOR_MS = 900
const NO_ROWS = { side: '', state: '', limit: 0 } as const

export interface DashboardSources {
  readonly metrics: SharedArrayBuffer
  readonly keys: () => readonly ResolvedKey[]
  readonly apis: Pick<ApiService, 'list'>
  /** Null on a node without reactors. */
  readonly gateway: {
    readonly reactors: Pick<ReactorPool, 'call'>
    readonly plan: Pick<ReactorPlan, 'reactors' | 'level'>
    readonly pools: Pick<PoolService, 'list'>
    readonly endpoints: Pick<EndpointService, 'list'>
    readonly throttling: Pick<ThrottleService, 'top'>
  } | null
}

export class DashboardService {
  readonly #sources: DashboardSources

  constructor(sources: DashboardSources) {
    this.#sources = sources
  }

  async serve(call: DashboardCall): Promise<object> {
    if (call.kind === 'configuration') return this.#configuration()
    const gathered = call.parts.map(async part => [part, await this.#part(part)] as const)
    return Object.fromEntries(await Promise.all(gathered)) satisfies DashboardParts
  }

  #part(part: DashboardPart): Promise<Tree> | Tree {
    return part === 'live' ? this.#live() : part === 'lists' ? this.#lists() : this.#apis()
  }

  async #live(): Promise<Tree> {
    const { metrics, gateway } = this.#sources
    const { counts, statuses, faults } = snapshotMetrics(metrics)
    const numbers = {
      nowMs: Date.now(),
      upS: Math.floor(process.uptime()),
      residentBytes: process.memoryUsage.rss(),
      counts,
      statuses: Object.fromEntries(statuses),
      faults: Object.fromEntries(faults.map(({ side, base, state, count }) => [`${side} ${base} ${state}`, count])),
    }
    if (gateway === null) return numbers
    const { pools, history, connections } = gateway.pools.list()
    return {
      ...numbers,
      ...(await connectionStates(gateway)),
      reactors: gateway.plan.reactors,
      level: gateway.plan.level,
      pools: byName(pools, ({ name }) => name),
      poolHistory: byName(history, ({ name }) => name),
      connections: byName(connections, ({ side }) => side),
    }
  }

  #lists(): Tree {
    const { gateway } = this.#sources
    if (gateway === null) return {}
    const endpoints = gateway.endpoints.list().map(row => ({ ...row, url: maskCredentials(row.url) }))
    const { counters, live, capacity } = gateway.throttling.top('limit', COUNTERS_MAX)
    return {
      endpoints: byName(endpoints.slice(0, ROWS_MAX), ({ name }) => name),
      endpointsOmitted: Math.max(0, endpoints.length - ROWS_MAX),
      throttle: { live, capacity },
      counters: byName(counters, ({ key, policy }) => `${policy} ${key}`),
    }
  }

  #apis(): Tree {
    const { apis } = this.#sources.apis.list()
    const rows = apis.slice(0, ROWS_MAX).map(({ paths, hosts, transports, ...summary }) => {
      return { ...summary, path: paths[0]!, hosts: hosts.join(', '), transports: transports.join(', ') }
    })
    return { apis: byName(rows, ({ path, hosts }) => `${hosts}${path}`), omitted: Math.max(0, apis.length - ROWS_MAX) }
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

type Row = Readonly<Record<string, number | string | boolean>>

/** Rows as members of one object, by their names. */
function byName<One extends object>(rows: readonly One[], nameOf: (row: One) => string): Readonly<Record<string, Row>> {
  return Object.fromEntries(rows.map(row => [nameOf(row), { ...row } as Row]))
}
