/**
 * Plans of the APIs for reactors, and the slots of their routes and endpoints in shared memory. A route, and an
 * endpoint of the same API, URL and rank among equal URLs, keeps its slot across reloads, and with it its connection
 * count and its state.
 */
import {
  type ApiDefinition,
  type CorsDefinition,
  type EndpointDefinition,
  type EndpointsDefinition,
  endpointsOf,
} from '../apis/api-definition.ts'
import { apiPaths } from '../apis/api-paths.ts'
import { EndpointTable } from '../proxy/target/endpoint-table.ts'
import { FIRST_ROUTE_SLOT, type Route } from '../proxy/target/route.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { SharedGauge } from '../runtime/shared-gauge.ts'
import { accessPlan, withoutAllowedScopes } from './auth-planning.ts'
import { credentialPlans } from './backend-planning.ts'
import type { ForwardProxies } from './forward-proxies.ts'
import { type ApiChanges, apiIdentity, type ApiPlan, type EndpointPlan } from './reactor-plan.ts'
import { SlotAllocator } from './slot-allocator.ts'

/** Slots for endpoints of later reloads. Untouched shared memory costs nothing. */
const SPARE_SLOTS = 65_536

const DEFAULT_PORTS = { 'http:': 80, 'ws:': 80, 'https:': 443, 'wss:': 443 } as const
type Scheme = keyof typeof DEFAULT_PORTS

/** The shared tables, whose size is fixed at the start, have no slot left. */
export class OutOfSlots extends Error {
  override readonly name = 'OutOfSlots'
}

/** The plan of one API, and the owners of its slots. */
interface PlannedApi {
  readonly plan: ApiPlan
  readonly routes: readonly string[]
  readonly endpoints: readonly string[]
}

export interface PlannedApis {
  readonly apis: readonly ApiPlan[]
  /** Whether any endpoint is https or wss. */
  readonly usesTls: boolean
  readonly proxies: ForwardProxies
  /** `[apim.cors]`. */
  readonly cors: CorsDefinition
  /** Patterns of scopes that no caller needs. */
  readonly allowedScopes: readonly string[]
  readonly byDefinition: ReadonlyMap<ApiDefinition, PlannedApi>
}

export class ApiPlanner {
  /** Shared with the reactors. */
  readonly gauge: SharedArrayBuffer
  /** Shared with the reactors. */
  readonly endpoints: SharedArrayBuffer
  readonly #states: EndpointTable
  readonly #routeSlots: SlotAllocator
  readonly #endpointSlots: SlotAllocator

  /** `endpoints`: their number at the start. */
  constructor(reactors: number, endpoints: number, spare = SPARE_SLOTS) {
    const slots = endpoints + spare
    this.gauge = SharedGauge.allocate(reactors, FIRST_ROUTE_SLOT + slots)
    this.endpoints = EndpointTable.allocate(slots, reactors)
    this.#states = new EndpointTable(this.endpoints, 0, monotonicMs)
    const connections = new SharedGauge(this.gauge, reactors, 0)
    this.#routeSlots = new SlotAllocator(
      FIRST_ROUTE_SLOT,
      FIRST_ROUTE_SLOT + slots,
      slot => connections.sum(slot) === 0,
    )
    this.#endpointSlots = new SlotAllocator(0, slots, slot => this.#states.pending(slot) === 0)
  }

  /**
   * Reuses the plans of unchanged APIs of `before`. Throws OutOfSlots; `release(before)` then returns the slots that
   * were allocated.
   */
  plan(
    definitions: readonly ApiDefinition[],
    proxies: ForwardProxies,
    globalCors: CorsDefinition,
    allowedScopes: readonly string[],
    before?: PlannedApis,
  ): PlannedApis {
    const cors = before !== undefined && isEqual(before.cors, globalCors) ? before.cors : globalCors
    const shared: SharedCors = new Map()
    const byDefinition = new Map(
      definitions.map(definition => {
        const known = before?.byDefinition.get(definition)
        const hasSameSettings = cors === before?.cors && isEqual(allowedScopes, before.allowedScopes)
        if (known !== undefined && hasSameSettings && usesProxies(known.plan, proxies)) return [definition, known]
        const resources = withoutAllowedScopes(definition.resources, allowedScopes)
        return [definition, this.#planApi(definition, proxies, mergedCors(definition, cors, shared), resources)]
      }),
    )
    const apis = [...byDefinition.values()].map(({ plan }) => plan)
    const usesTls = apis.some(api => endpointsOf(api).some(({ route }) => route.secured))
    return { apis, usesTls, proxies, cors, allowedScopes, byDefinition }
  }

  /** Frees the slots of everything but these APIs. */
  release({ byDefinition }: PlannedApis): void {
    const all = [...byDefinition.values()]
    this.#routeSlots.retain(new Set(all.flatMap(({ routes }) => routes)))
    this.#endpointSlots.retain(new Set(all.flatMap(({ endpoints }) => endpoints)))
  }

  #planApi(
    definition: ApiDefinition,
    proxies: ForwardProxies,
    cors: ApiPlan['cors'],
    resources: ApiPlan['resources'],
  ): PlannedApi {
    const { name, context, version, isDefaultVersion, hosts, transports, escapedSlashes, isAi } = definition
    const paths = apiPaths(context, version, isDefaultVersion)
    const identity = apiIdentity({ hosts, paths })
    const routes: string[] = []
    const owners: string[] = []
    const planEndpoint = ({ url: text, settings }: EndpointDefinition): EndpointPlan => {
      const url = new URL(text)
      const rank = owners.filter(owner => owner.startsWith(`${identity} ${text} `)).length
      const owner = `${identity} ${text} ${rank}`
      owners.push(owner)
      const route = this.#planRoute(url, settings.sendsProxyHeader, proxies)
      routes.push(routeOwner(route, url.protocol))
      return { slot: this.#endpointSlot(owner), url: text, route, basePath: url.pathname.replace(/\/+$/, ''), settings }
    }
    const planEndpoints = (endpoints: EndpointsDefinition) => ({
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
      escapedSlashes,
      isAi,
      access: accessPlan(definition),
      tier: definition.access.tier,
      hardLimits: definition.hardLimits,
      credentials: credentialPlans(definition),
      cors,
      resources,
      endpoints: planEndpoints(definition.endpoints),
      sandbox: planEndpoints(definition.sandbox),
    }
    return { plan, routes, endpoints: owners }
  }

  #endpointSlot(owner: string): number {
    const known = this.#endpointSlots.slotOf(owner)
    if (known !== undefined) return known
    const slot = this.#endpointSlots.allocate(owner)
    if (slot === undefined) throw new OutOfSlots()
    this.#states.reset(slot)
    return slot
  }

  #planRoute(url: URL, sendsProxyHeader: boolean, proxies: ForwardProxies): Route {
    const scheme = url.protocol as Scheme
    const secured = scheme === 'https:' || scheme === 'wss:'
    const target = { secured, host: url.hostname, port: url.port === '' ? DEFAULT_PORTS[scheme] : Number(url.port) }
    const owner = routeOwner(target, scheme)
    const slot = this.#routeSlots.slotOf(owner) ?? this.#routeSlots.allocate(owner)
    if (slot === undefined) throw new OutOfSlots()
    return {
      slot,
      ...target,
      tlsClient: scheme === 'https:' ? 'default' : scheme === 'wss:' ? 'wss' : '',
      proxy: proxies.proxyFor(secured, url.hostname),
      connectsThroughProxy: scheme === 'ws:',
      ...(sendsProxyHeader ? { sendsProxyHeader } : {}),
    }
  }
}

/** Routes of one scheme, host and port are one: their connections are counted together. */
function routeOwner({ host, port }: Pick<Route, 'host' | 'port'>, scheme: string): string {
  return `${scheme}//${host}:${port}`
}

/** Merged settings by their JSON text: APIs with equal settings share one object, and what reactors derive from it. */
type SharedCors = Map<string, CorsDefinition>

/** The API's own settings over `[apim.cors]`; null for no CORS. */
function mergedCors({ cors }: ApiDefinition, all: CorsDefinition, shared: SharedCors): CorsDefinition | null {
  const { enabled } = cors ?? all
  if (!enabled) return null
  if (cors === null) return all
  const merged = { ...all, ...cors }
  const text = JSON.stringify(merged)
  const known = shared.get(text) ?? merged
  shared.set(text, known)
  return known
}

function isEqual(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other)
}

/** Whether the routes of an API already go through these proxies. */
function usesProxies(api: ApiPlan, { proxyFor }: ForwardProxies): boolean {
  return endpointsOf(api).every(({ route: { secured, host, proxy } }) => isEqual(proxyFor(secured, host), proxy))
}

/** The name of an API in responses, in the log and in the names of its endpoints. */
export function apiLabel(api: Pick<ApiPlan, 'hosts' | 'paths'>): string {
  return apiIdentity(api).replace(/^\//, '')
}

export function diffApis(before: readonly ApiPlan[], after: readonly ApiPlan[]): ApiChanges {
  const known = new Map(before.map(api => [apiIdentity(api), api]))
  const remaining = new Set(after.map(apiIdentity))
  return {
    removed: [...known.keys()].filter(identity => !remaining.has(identity)),
    deployed: after.filter(api => !isEqual(known.get(apiIdentity(api)), api)),
  }
}
