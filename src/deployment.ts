/**
 * The APIs of a reactor, and the pools of connections that they share: built from plans, and changed while requests are
 * served. An exchange under way goes on with the target that it was given, whatever has come in its place.
 */
import { isServed } from './chain-of.ts'
import { type Api, EVERY_RESOURCE } from './exchange/api.ts'
import type { Handler, Target } from './exchange/contract.ts'
import type { ApiChanges, ApiPlan, EndpointPlan, EndpointsPlan } from './plan.ts'
import { ApiTable } from './route/api-table.ts'
import { Endpoint } from './target/endpoint.ts'
import { EndpointGroup } from './target/endpoint-group.ts'
import type { EndpointTable } from './target/endpoint-table.ts'
import { HostPool, type PoolContext } from './target/host-pool.ts'
import type { Route } from './target/route.ts'
import { HttpUpstream } from './target/upstream.ts'

/** An API with what belongs to it alone, and the pools that it uses. */
interface Deployed {
  /** It under each of its paths. */
  readonly entries: readonly { readonly path: string; readonly api: Api }[]
  readonly pools: ReadonlySet<HostPool>
}

export class Deployment {
  readonly #chainOf: (api: ApiPlan) => readonly Handler[]
  readonly #context: PoolContext
  readonly #states: EndpointTable
  /** By the first of their paths. */
  #apis: ReadonlyMap<string, Deployed> = new Map()
  /** Of the routes in use, by all that makes a route: what differs in anything has connections of its own. */
  #pools: ReadonlyMap<string, HostPool> = new Map()
  #table = new ApiTable([])

  constructor(chainOf: (api: ApiPlan) => readonly Handler[], context: PoolContext, states: EndpointTable) {
    this.#chainOf = chainOf
    this.#context = context
    this.#states = states
  }

  /** Where requests are looked up that come from now on. */
  get table(): ApiTable {
    return this.#table
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
    if (removed.length === 0 && deployed.length === 0) return () => undefined
    const apis = new Map(this.#apis)
    const pools = new Map(this.#pools)
    for (const path of removed) apis.delete(path)
    for (const plan of deployed) {
      if (isServed(plan)) apis.set(plan.paths[0]!, this.#build(plan, pools))
      // What is created only or retired leaves its paths to others, and holds no connections.
      else apis.delete(plan.paths[0]!)
    }
    const table = new ApiTable(entriesOf(apis.values()))
    return () => {
      this.#apis = apis
      this.#pools = pools
      this.#table = table
      this.#retireUnused(pools)
    }
  }

  #retireUnused(pools: Map<string, HostPool>): void {
    const used = new Set<HostPool>()
    for (const api of this.#apis.values()) for (const pool of api.pools) used.add(pool)
    for (const [route, pool] of pools) {
      if (used.has(pool)) continue
      pools.delete(route)
      pool.retire()
    }
  }

  /** Endpoints with the same route share its pool; those that `pools` lacks are added. */
  #build(plan: ApiPlan, pools: Map<string, HostPool>): Deployed {
    const { name, paths } = plan
    const used = new Set<HostPool>()
    const endpointOf = (endpoint: EndpointPlan): Endpoint => {
      const pool = poolOf(endpoint.route, pools, this.#context)
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
      resources: EVERY_RESOURCE,
      keyType: plan.keyType,
      production,
      sandbox,
      isAi: plan.isAi,
    }
    return { entries: paths.map(path => ({ path, api })), pools: used }
  }
}

function entriesOf(apis: Iterable<Deployed>): Deployed['entries'] {
  const all: Deployed['entries'][number][] = []
  for (const { entries } of apis) all.push(...entries)
  return all
}

function poolOf(route: Route, pools: Map<string, HostPool>, context: PoolContext): HostPool {
  const key = JSON.stringify(route)
  let pool = pools.get(key)
  if (pool === undefined) {
    pool = new HostPool(route, context)
    pools.set(key, pool)
  }
  return pool
}
