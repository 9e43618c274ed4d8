/**
 * The APIs of a reactor, and the pools of connections that they share: built from plans, and changed while requests are
 * served. An exchange under way goes on with the target that it was given, whatever has come in its place.
 */
import { identityOf } from '../api-identity.ts'
import { isServed } from '../chain-of.ts'
import { type Api, EVERY_RESOURCE } from '../exchange/api.ts'
import type { Handler, Target } from '../exchange/contract.ts'
import type { ApiChanges, ApiPlan, EndpointPlan, EndpointsPlan } from '../plan.ts'
import { type ApiEntry, ApiTable } from '../route/api-table.ts'
import type { ResourceCache } from '../route/resource-cache.ts'
import { ResourceTree } from '../route/resource-tree.ts'
import { Endpoint } from '../target/endpoint.ts'
import { EndpointGroup } from '../target/endpoint-group.ts'
import type { EndpointTable } from '../target/endpoint-table.ts'
import { HostPool, type PoolContext } from '../target/host-pool.ts'
import type { Route } from '../target/route.ts'
import { HttpUpstream } from '../target/upstream.ts'

/** An API with what belongs to it alone, and the pools that it uses. */
interface Deployed {
  /** It under each of its paths. */
  readonly entries: readonly ApiEntry[]
  readonly pools: ReadonlySet<HostPool>
}

export class Deployment {
  readonly #chainOf: (api: ApiPlan) => readonly Handler[]
  readonly #context: PoolContext
  readonly #states: EndpointTable
  readonly #cache: ResourceCache
  /** By what they are known by. */
  readonly #apis = new Map<string, Deployed>()
  /** Of the routes in use, by all that makes a route: what differs in anything has connections of its own. */
  readonly #pools = new Map<string, HostPool>()
  /** How many APIs use a pool. */
  readonly #users = new Map<HostPool, number>()
  /** Where requests are looked up; it changes with what is deployed, so that a change costs what is changed. */
  readonly table = new ApiTable()

  constructor(
    chainOf: (api: ApiPlan) => readonly Handler[],
    context: PoolContext,
    states: EndpointTable,
    cache: ResourceCache,
  ) {
    this.#chainOf = chainOf
    this.#context = context
    this.#states = states
    this.#cache = cache
  }

  /** Of the routes in use. */
  get pools(): Iterable<HostPool> {
    return this.#pools.values()
  }

  /**
   * Builds what is new, and throws where that cannot be done. Nothing has changed before what it answers is called,
   * which cannot fail.
   */
  prepare({ removed, deployed }: ApiChanges): () => void {
    const pools = new Map<string, HostPool>()
    // What is created only or retired leaves its paths to others, and holds no connections.
    const built = deployed.filter(isServed).map(plan => [identityOf(plan), this.#build(plan, pools)] as const)
    return () => {
      const replaced = [...removed, ...deployed.map(identityOf)].map(identity => this.#take(identity))
      this.#cache.clear()
      for (const [route, pool] of pools) this.#pools.set(route, pool)
      for (const [identity, api] of built) this.#put(identity, api)
      for (const api of replaced) if (api !== undefined) this.#leave(api)
    }
  }

  #put(identity: string, api: Deployed): void {
    this.#apis.set(identity, api)
    for (const entry of api.entries) this.table.add(entry)
    for (const pool of api.pools) this.#users.set(pool, (this.#users.get(pool) ?? 0) + 1)
  }

  #take(identity: string): Deployed | undefined {
    const api = this.#apis.get(identity)
    this.#apis.delete(identity)
    for (const entry of api?.entries ?? []) this.table.remove(entry)
    return api
  }

  /** Pools that nobody uses any more are given up. */
  #leave({ pools }: Deployed): void {
    for (const pool of pools) {
      const users = this.#users.get(pool)! - 1
      this.#users.set(pool, users)
      if (users > 0) continue
      this.#users.delete(pool)
      this.#pools.delete(keyOf(pool.route))
      pool.retire()
    }
  }

  /** Endpoints with the same route share its pool; those that `pools` lacks are added. */
  #build(plan: ApiPlan, pools: Map<string, HostPool>): Deployed {
    const { name, paths, hosts, resources } = plan
    const used = new Set<HostPool>()
    const endpointOf = (endpoint: EndpointPlan): Endpoint => {
      const pool = this.#poolOf(endpoint.route, pools)
      used.add(pool)
      const { around, drops } = this.#context
      const upstream = new HttpUpstream(pool, endpoint.basePath, drops, around)
      return new Endpoint(endpoint, upstream, this.#states, around)
    }
    const targetOf = ({ kind, algorithm, failsOver, endpoints }: EndpointsPlan): Target | null => {
      const [first, ...others] = endpoints.map(endpointOf)
      if (first === undefined || kind === 'single') return first ?? null
      const order = kind === 'failover' ? 'in_order' : algorithm
      return new EndpointGroup(name, [first, ...others], order, failsOver, this.#context.around)
    }
    const production = targetOf(plan.endpoints)
    const sandbox = targetOf(plan.sandbox)
    if (production === null && sandbox === null) throw new Error(`the API ${name} has no endpoint`)
    const api: Api = {
      name,
      version: plan.version,
      path: paths[0]!,
      handlers: this.#chainOf(plan),
      resources: resources.length === 0 ? EVERY_RESOURCE : this.#cache.before(new ResourceTree(resources)),
      keyType: plan.keyType,
      production,
      sandbox,
      isAi: plan.isAi,
    }
    return { entries: paths.map(path => ({ path, api, hosts })), pools: used }
  }

  #poolOf(route: Route, fresh: Map<string, HostPool>): HostPool {
    const key = keyOf(route)
    let pool = this.#pools.get(key) ?? fresh.get(key)
    if (pool === undefined) {
      pool = new HostPool(route, this.#context)
      fresh.set(key, pool)
    }
    return pool
  }
}

/** All that makes a route. */
function keyOf(route: Route): string {
  return JSON.stringify(route)
}
