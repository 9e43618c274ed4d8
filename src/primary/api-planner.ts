/**
 * From API definitions to what reactors are told of them. Rows in shared memory are given out here: a route, and an
 * endpoint by the path of its API, its URL and its place among equals, keep theirs for as long as they are there, and
 * with it connection counts and states, whatever a reload changes around them.
 */
import {
  type ApiDefinition,
  type CorsDefinition,
  type EndpointDefinition,
  type EndpointsDefinition,
  endpointsOf,
} from '../config/api-definition.ts'
import { identityOf } from '../api-identity.ts'
import { apiPaths } from '../config/api-paths.ts'
import { credentialPlans } from './backend-planning.ts'
import { accessPlan } from './identity-planning.ts'
import type { ForwardProxies } from './forward-proxies.ts'
import { monotonicMs } from '../structure/monotonic-clock.ts'
import type { ApiChanges, ApiPlan, EndpointPlan } from '../plan.ts'
import { RowBook } from './row-book.ts'
import { SharedGauge } from '../structure/shared-gauge.ts'
import { EndpointTable } from '../target/endpoint-table.ts'
import type { Route } from '../target/route.ts'

/** Rows for what reloads bring. Memory that nobody has touched costs nothing. */
const SPARE_ROWS = 65_536
/** Row 0 of the gauge is that of client connections. */
const FIRST_ROUTE = 1

const DEFAULT_PORTS = { 'http:': 80, 'ws:': 80, 'https:': 443, 'wss:': 443 } as const
type Scheme = keyof typeof DEFAULT_PORTS

/** The shared tables have no room for so many endpoints; they are as large as they were made at the start. */
export class RowsUsedUp extends Error {
  override readonly name = 'RowsUsedUp'
}

/** The plan of one API, and whose rows it has. */
interface PlannedApi {
  readonly plan: ApiPlan
  readonly routes: readonly string[]
  readonly endpoints: readonly string[]
}

export interface PlannedApis {
  readonly apis: readonly ApiPlan[]
  readonly dialsSecured: boolean
  readonly proxies: ForwardProxies
  /** Of `[apim.cors]`. */
  readonly cors: CorsDefinition
  readonly byDefinition: ReadonlyMap<ApiDefinition, PlannedApi>
}

export class ApiPlanner {
  /** For the reactors. */
  readonly gauge: SharedArrayBuffer
  readonly endpoints: SharedArrayBuffer
  readonly #states: EndpointTable
  readonly #routeRows: RowBook
  readonly #endpointRows: RowBook

  /** `endpoints`: how many there are to begin with. */
  constructor(reactors: number, endpoints: number, spare = SPARE_ROWS) {
    const rows = endpoints + spare
    this.gauge = SharedGauge.allocate(reactors, FIRST_ROUTE + rows)
    this.endpoints = EndpointTable.allocate(rows, reactors)
    this.#states = new EndpointTable(this.endpoints, 0, monotonicMs)
    const connections = new SharedGauge(this.gauge, reactors, 0)
    this.#routeRows = new RowBook(FIRST_ROUTE, FIRST_ROUTE + rows, row => connections.sum(row) === 0)
    this.#endpointRows = new RowBook(0, rows, row => this.#states.pending(row) === 0)
  }

  /** Of `before` is taken over what has not changed. Throws RowsUsedUp; `release` then gives back what was taken. */
  plan(
    definitions: readonly ApiDefinition[],
    proxies: ForwardProxies,
    corsNow: CorsDefinition,
    before?: PlannedApis,
  ): PlannedApis {
    const cors = before !== undefined && isSame(before.cors, corsNow) ? before.cors : corsNow
    const merged: MergedCors = new Map()
    const byDefinition = new Map(
      definitions.map(definition => {
        const known = before?.byDefinition.get(definition)
        const isAsBefore = known !== undefined && cors === before?.cors && goThrough(known.plan, proxies)
        return [definition, isAsBefore ? known : this.#planApi(definition, proxies, corsOf(definition, cors, merged))]
      }),
    )
    const apis = [...byDefinition.values()].map(({ plan }) => plan)
    const dialsSecured = apis.some(api => endpointsOf(api).some(({ route }) => route.secured))
    return { apis, dialsSecured, proxies, cors, byDefinition }
  }

  /** What has rows beside these APIs has them no longer. */
  release({ byDefinition }: PlannedApis): void {
    const all = [...byDefinition.values()]
    freeOthers(this.#routeRows, new Set(all.flatMap(({ routes }) => routes)))
    freeOthers(this.#endpointRows, new Set(all.flatMap(({ endpoints }) => endpoints)))
  }

  #planApi(definition: ApiDefinition, proxies: ForwardProxies, cors: ApiPlan['cors']): PlannedApi {
    const { name, context, version, isDefaultVersion, hosts, transports, isAi, resources } = definition
    const paths = apiPaths(context, version, isDefaultVersion)
    const identity = identityOf({ hosts, paths })
    const routes: string[] = []
    const owners: string[] = []
    const planEndpoint = ({ url: text, settings }: EndpointDefinition): EndpointPlan => {
      const url = new URL(text)
      const equals = owners.filter(owner => owner.startsWith(`${identity} ${text} `)).length
      owners.push(`${identity} ${text} ${equals}`)
      const route = this.#planRoute(url, proxies)
      routes.push(ownerOf(route, url.protocol))
      const row = this.#endpointRow(owners.at(-1)!)
      return { row, url: text, route, basePath: url.pathname.replace(/\/+$/, ''), settings }
    }
    const planned = (endpoints: EndpointsDefinition) => ({
      ...endpoints,
      endpoints: endpoints.endpoints.map(planEndpoint),
    })
    const plan: ApiPlan = {
      name,
      version,
      paths,
      hosts,
      transports,
      lifecycle: { state: definition.lifecycle, deprecatedAtMs: 0, sunsetMs: 0 },
      keyType: definition.keyType,
      isAi,
      access: accessPlan(definition),
      credentials: credentialPlans(definition),
      cors,
      resources,
      endpoints: planned(definition.endpoints),
      sandbox: planned(definition.sandbox),
    }
    return { plan, routes, endpoints: owners }
  }

  #endpointRow(owner: string): number {
    const known = this.#endpointRows.rowOf(owner)
    if (known !== undefined) return known
    const row = this.#endpointRows.take(owner)
    if (row === undefined) throw new RowsUsedUp()
    this.#states.reset(row)
    return row
  }

  #planRoute(url: URL, proxies: ForwardProxies): Route {
    const scheme = url.protocol as Scheme
    const secured = scheme === 'https:' || scheme === 'wss:'
    const place = { secured, host: url.hostname, port: url.port === '' ? DEFAULT_PORTS[scheme] : Number(url.port) }
    const owner = ownerOf(place, scheme)
    const row = this.#routeRows.rowOf(owner) ?? this.#routeRows.take(owner)
    if (row === undefined) throw new RowsUsedUp()
    return {
      row,
      ...place,
      tlsClient: scheme === 'https:' ? 'default' : scheme === 'wss:' ? 'wss' : '',
      proxy: proxies.proxyFor(secured, url.hostname),
      connectsThroughProxy: scheme === 'ws:',
    }
  }
}

/** What came of merging, by its text: APIs that have the same get the same object, and share what is made of it. */
type MergedCors = Map<string, CorsDefinition>

/** What an API says of itself wins, whatever `[apim.cors]` says of all; null: no CORS. */
function corsOf({ cors }: ApiDefinition, all: CorsDefinition, merged: MergedCors): CorsDefinition | null {
  const { enabled } = cors ?? all
  if (!enabled) return null
  if (cors === null) return all
  const own = { ...all, ...cors }
  const text = JSON.stringify(own)
  const known = merged.get(text) ?? own
  merged.set(text, known)
  return known
}

function isSame(one: CorsDefinition, other: CorsDefinition): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

/** Whether these proxies are those of its routes. */
function goThrough(api: ApiPlan, { proxyFor }: ForwardProxies): boolean {
  return endpointsOf(api).every(({ route: { secured, host, proxy } }) => {
    const now = proxyFor(secured, host)
    return now === proxy || JSON.stringify(now) === JSON.stringify(proxy)
  })
}

/** What makes routes one: their connections are counted together. */
function ownerOf({ host, port }: Pick<Route, 'host' | 'port'>, scheme: string): string {
  return `${scheme}//${host}:${port}`
}

function freeOthers(book: RowBook, owners: ReadonlySet<string>): void {
  for (const owner of [...book.owners]) if (!owners.has(owner)) book.free(owner)
}

/** How an API is called in answers and in the log, as its endpoints are. */
export function labelOfApi(api: Pick<ApiPlan, 'hosts' | 'paths'>): string {
  return identityOf(api).replace(/^\//, '')
}

export function changesBetween(before: readonly ApiPlan[], after: readonly ApiPlan[]): ApiChanges {
  const known = new Map(before.map(api => [identityOf(api), api]))
  const stays = new Set(after.map(identityOf))
  return {
    removed: [...known.keys()].filter(identity => !stays.has(identity)),
    deployed: after.filter(api => {
      const old = known.get(identityOf(api))
      return old !== api && JSON.stringify(old) !== JSON.stringify(api)
    }),
  }
}
