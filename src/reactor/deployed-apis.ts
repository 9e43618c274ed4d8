/**
 * The APIs of a reactor and the connection pools that they share: built from plans, and changed while requests are
 * served. A pending exchange keeps its target when its API is replaced.
 */
import { authenticatesCallers, isServed } from '../filters/build-chain.ts'
import { type Api, EVERY_RESOURCE } from '../proxy/exchange/api.ts'
import type { Filter, Target } from '../proxy/exchange/contract.ts'
import {
  type ApiChanges,
  apiIdentity,
  type ApiPlan,
  type EndpointPlan,
  type EndpointsPlan,
} from '../plan/reactor-plan.ts'
import { type ApiEntry, ApiTable } from '../route/api-table.ts'
import type { ResourceCache } from '../route/resource-cache.ts'
import { ResourceTree } from '../route/resource-tree.ts'
import { Endpoint } from '../proxy/target/endpoint.ts'
import { EndpointGroup } from '../proxy/target/endpoint-group.ts'
import type { EndpointTable } from '../proxy/target/endpoint-table.ts'
import { ConnectionPool, type PoolContext } from '../proxy/target/connection-pool.ts'
import type { Route } from '../proxy/target/route.ts'
import { RequestSender } from '../proxy/target/request-sender.ts'
import type { ReactorMediation } from './reactor-mediation.ts'
import { TemplatedTarget } from './templated-target.ts'

/** A deployed API: its routing entries and its pools. */
interface DeployedApi {
  /** One entry per path. */
  readonly entries: readonly ApiEntry[]
  readonly pools: ReadonlySet<ConnectionPool>
}

export class DeployedApis {
  readonly #chainOf: (api: ApiPlan) => readonly Filter[]
  readonly #mediationFor: (api: ApiPlan) => ReactorMediation | null
  readonly #shared: PoolContext
  readonly #states: EndpointTable
  readonly #cache: ResourceCache
  readonly #hostName: string
  /** By identity. */
  readonly #apis = new Map<string, DeployedApi>()
  /** Pools of the routes in use, by all properties of a route: routes that differ share no connections. */
  readonly #pools = new Map<string, ConnectionPool>()
  /** Number of APIs that use a pool. */
  readonly #users = new Map<ConnectionPool, number>()
  /** Routing table; changed entry by entry, so that a reload costs only what it changes. */
  readonly table = new ApiTable()

  constructor(
    chainOf: (api: ApiPlan) => readonly Filter[],
    mediationFor: (api: ApiPlan) => ReactorMediation | null,
    shared: PoolContext,
    states: EndpointTable,
    cache: ResourceCache,
    hostName: string,
  ) {
    this.#chainOf = chainOf
    this.#mediationFor = mediationFor
    this.#shared = shared
    this.#states = states
    this.#cache = cache
    this.#hostName = hostName
  }

  /** Builds new and changed APIs; throws where that fails. The returned function applies them and cannot fail. */
  prepare({ removed, deployed }: ApiChanges): () => void {
    const pools = new Map<string, ConnectionPool>()
    // CREATED and RETIRED APIs have neither paths nor connections (D75).
    const built = deployed.filter(isServed).map(plan => [apiIdentity(plan), this.#build(plan, pools)] as const)
    return () => {
      const replaced = [...removed, ...deployed.map(apiIdentity)].map(identity => this.#take(identity))
      this.#cache.clear()
      for (const [route, pool] of pools) this.#pools.set(route, pool)
      for (const [identity, api] of built) this.#put(identity, api)
      for (const api of replaced) if (api !== undefined) this.#leave(api)
    }
  }

  #put(identity: string, api: DeployedApi): void {
    this.#apis.set(identity, api)
    for (const entry of api.entries) this.table.add(entry)
    for (const pool of api.pools) this.#users.set(pool, (this.#users.get(pool) ?? 0) + 1)
  }

  #take(identity: string): DeployedApi | undefined {
    const api = this.#apis.get(identity)
    this.#apis.delete(identity)
    for (const entry of api?.entries ?? []) this.table.remove(entry)
    return api
  }

  /** Retires the pools that no API uses any more. */
  #leave({ pools }: DeployedApi): void {
    for (const pool of pools) {
      const users = this.#users.get(pool)! - 1
      this.#users.set(pool, users)
      if (users > 0) continue
      this.#users.delete(pool)
      this.#pools.delete(keyOf(pool.route))
      pool.retire()
    }
  }

  /** Endpoints with the same route share its pool. New pools are added to `pools`. */
  #build(plan: ApiPlan, pools: Map<string, ConnectionPool>): DeployedApi {
    const { name, version, paths, hosts, resources } = plan
    const { provider } = plan.access
    const used = new Set<ConnectionPool>()
    const endpointOf = (endpoint: EndpointPlan): Endpoint => {
      const pool = this.#poolOf(endpoint.route, pools)
      used.add(pool)
      const sender = new RequestSender(pool, endpoint.basePath, pool.stripped, pool.context)
      return new Endpoint(endpoint, sender, this.#states, pool.context)
    }
    const targetOf = (endpoints: EndpointsPlan): Target | null => {
      const target = plainTargetOf(endpoints)
      const { template } = endpoints
      return target === null || template === undefined ? target : new TemplatedTarget(target, template)
    }
    const plainTargetOf = ({ kind, algorithm, failsOver, endpoints }: EndpointsPlan): Target | null => {
      const [first, ...others] = endpoints.map(endpointOf)
      if (first === undefined || kind === 'single') return first ?? null
      const order = kind === 'failover' ? 'in_order' : algorithm
      return new EndpointGroup(name, [first, ...others], order, failsOver, this.#shared.contexts.plain)
    }
    const mediation = this.#mediationFor(plan)
    const mounted = mediation?.mountedOf(plan) ?? null
    const { keyTypes = null } = plan.mounted ?? {}
    const production = mounted === null ? targetOf(plan.endpoints) : keyTypes?.production ? mounted : null
    const sandbox = mounted === null ? targetOf(plan.sandbox) : keyTypes?.sandbox ? mounted : null
    if (production === null && sandbox === null) throw new Error(`the API ${name} has no endpoint`)
    const api: Api = {
      name,
      version,
      fullName: provider === '' ? `${name}:v${version}` : `${provider}--${name}:v${version}`,
      provider,
      hostName: this.#hostName,
      path: paths[0]!,
      filters: this.#chainOf(plan),
      isOpen: !authenticatesCallers(plan),
      resources: resources.length === 0 ? EVERY_RESOURCE : this.#cache.wrap(new ResourceTree(resources)),
      escapedSlashes: plan.escapedSlashes,
      keyType: plan.keyType,
      production,
      sandbox,
      isAi: plan.isAi,
      metricsRow: plan.metricsRow,
      wordFault: mediation?.faultWordingOf(plan),
      mediation: mediation?.mediationOf(plan) ?? null,
    }
    return { entries: paths.map(path => ({ path, api, hosts })), pools: used }
  }

  #poolOf(route: Route, fresh: Map<string, ConnectionPool>): ConnectionPool {
    const key = keyOf(route)
    let pool = this.#pools.get(key) ?? fresh.get(key)
    if (pool === undefined) {
      pool = new ConnectionPool(route, this.#shared)
      fresh.set(key, pool)
    }
    return pool
  }
}

/** All properties of a route as text. */
function keyOf(route: Route): string {
  return JSON.stringify(route)
}
