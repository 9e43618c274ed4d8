/**
 * The endpoints of sequences of a reactor, and the pools of their connections. Addresses that messages choose share
 * one limit of connections; the pools that were used longest ago are closed.
 */
import { LRUCache } from 'lru-cache'
import { ProxyChoice } from '../config/proxy-choice.ts'
import { hasDotSegment } from '../mediation/field-rules.ts'
import type { CacheUsage } from '../runtime/cache-usage.ts'
import type { EndpointPlan, EndpointsPlan, SequenceAddressPlan, SequenceEndpointsPlan } from '../plan/reactor-plan.ts'
import type { TransferredMessage } from '../mediation/worker-task.ts'
import type { Target } from '../proxy/exchange/contract.ts'
import {
  expand,
  joinTargets,
  type ResolvedEndpoint,
  type SequenceEndpoints,
  type TokenSource,
} from '../proxy/mediated/sequence-endpoint.ts'
import { ConnectionPool, type PoolContext } from '../proxy/target/connection-pool.ts'
import { Endpoint } from '../proxy/target/endpoint.ts'
import { EndpointGroup } from '../proxy/target/endpoint-group.ts'
import type { EndpointTable } from '../proxy/target/endpoint-table.ts'
import { RequestSender } from '../proxy/target/request-sender.ts'
import type { Route } from '../proxy/target/route.ts'

type DynamicAddress = Extract<SequenceAddressPlan, { kind: 'dynamic' }>

/** A planned endpoint as requests use it. */
interface BuiltEndpoint {
  readonly method: string
  /** Null: path and query of the message follow. Else the slashes at the end of its URL. */
  readonly ending: string | null
  readonly address: SequenceAddressPlan
  /** Null for a dynamic address. */
  readonly target: Target | null
  /** Null: requests need no token. */
  readonly tokens: TokenSource | null
}

const DOT_SEGMENT = 'the path that a message makes has a dot segment'
/** Addresses that messages chose, kept with their idle connections. */
const DYNAMIC_MAX = 128
const URL_CHARS_MAX = 8192
/** Scheme, authority, path with query. Host names and addresses only: the URL parser would repair others. */
const URL_PARTS = /^(https?):\/\/((?:\[[\da-f:.]+\]|[\w.-]+)(?::\d{1,5})?)((?:[/?][\x21-\x22\x24-\x7e]*)?)$/i

export class SequenceTargets implements SequenceEndpoints {
  readonly #shared: PoolContext
  readonly #states: EndpointTable
  readonly #tokensOf: (key: string) => TokenSource
  #plans: SequenceEndpointsPlan = {}
  #built: ReadonlyMap<string, BuiltEndpoint> = new Map()
  /** By all properties of a route. */
  #pools: ReadonlyMap<string, ConnectionPool> = new Map()
  /** By name of the endpoint and origin. */
  readonly #dynamic = new LRUCache<string, { readonly target: Target; readonly pool: ConnectionPool }>({
    max: DYNAMIC_MAX,
    dispose: ({ pool }, _key, reason) => {
      if (reason === 'evict') this.#evictions++
      pool.retire()
    },
  })
  #evictions = 0
  #hits = 0
  #misses = 0

  /** `tokensOf`: access tokens by the key of their plan. */
  constructor(shared: PoolContext, states: EndpointTable, tokensOf: (key: string) => TokenSource) {
    this.#shared = shared
    this.#states = states
    this.#tokensOf = tokensOf
  }

  /** Builds the endpoints of a plan, and throws where that fails. The returned function applies them. */
  prepare(plans: SequenceEndpointsPlan): () => void {
    if (JSON.stringify(plans) === JSON.stringify(this.#plans)) return () => undefined
    const pools = new Map<string, ConnectionPool>()
    const built = new Map(
      Object.entries(plans).map(([name, { method, appendsPath, address, token }]) => {
        const ending = appendsPath ? null : endingOf(address)
        const tokens = token === undefined ? null : this.#tokensOf(token)
        return [name, { method, ending, address, target: this.#targetOf(name, address, pools), tokens }] as const
      }),
    )
    return () => {
      const old = this.#pools
      this.#plans = plans
      this.#built = built
      this.#pools = pools
      for (const [key, pool] of old) if (pools.get(key) !== pool) pool.retire()
      this.#dynamic.clear()
    }
  }

  /** Usage of the addresses that messages chose. */
  usage(): CacheUsage {
    return { entries: this.#dynamic.size, evictions: this.#evictions, hits: this.#hits, misses: this.#misses }
  }

  resolve(name: string, message: TransferredMessage): ResolvedEndpoint | string {
    const built = this.#built.get(name)
    if (built === undefined) return 'there is no such endpoint'
    const resolved = this.#resolve(name, built, message)
    return built.tokens === null || typeof resolved === 'string' ? resolved : { ...resolved, tokens: built.tokens }
  }

  #resolve(name: string, built: BuiltEndpoint, message: TransferredMessage): ResolvedEndpoint | string {
    const { address, target, ending } = built
    const appended = ending ?? message.target
    const method = built.method === '' ? message.method : built.method
    switch (address.kind) {
      case 'urls': {
        const { pieces, endpoints } = address
        const own = pieces === undefined ? '' : expand(pieces, message)
        if (hasDotSegment(own)) return DOT_SEGMENT
        const path = pieces === undefined ? appended : joinTargets(own, appended)
        return { target: target!, secured: endpoints.endpoints[0]!.route.secured, method, path }
      }
      case 'template': {
        const own = expand(address.pieces, message)
        if (hasDotSegment(own)) return DOT_SEGMENT
        const { secured } = address.endpoint.route
        return { target: target!, secured, method, path: joinTargets(own, appended) }
      }
      default:
        return this.#resolveDynamic(name, method, address, message, appended)
    }
  }

  #resolveDynamic(
    name: string,
    method: string,
    address: DynamicAddress,
    message: TransferredMessage,
    appended: string,
  ): ResolvedEndpoint | string {
    const { pieces } = address
    const url = pieces === null ? (message.state.to ?? '') : expand(pieces, message)
    if (url === '') return 'the message has no destination (To)'
    const parts = url.length > URL_CHARS_MAX ? null : URL_PARTS.exec(url)
    const origin = parts === null ? null : URL.parse(`${parts[1]}://${parts[2]}`)
    if (parts === null || origin === null) return 'the destination is not an http or https URL'
    const rest = parts[3]!
    // <rewrite> with a host has put path and query of the message into the destination.
    const isOfMessage = pieces === null && rest === appended
    if (!isOfMessage && hasDotSegment(rest)) return DOT_SEGMENT
    const path = isOfMessage ? rest : joinTargets(rest, appended)
    const key = `${name} ${origin.origin}`
    const kept = this.#dynamic.get(key)
    if (kept === undefined) this.#misses++
    else this.#hits++
    const known = kept ?? this.#openDynamic(key, origin, address)
    if (kept === undefined && address.kept !== undefined) this.#bound(name, address.kept)
    return { target: known.target, secured: origin.protocol === 'https:', method, path }
  }

  /** Closes the addresses of an endpoint that were used longest ago, beyond so many. */
  #bound(name: string, count: number): void {
    const own = [...this.#dynamic.keys()].filter(key => key.startsWith(`${name} `))
    for (const key of own.slice(count)) {
      this.#evictions++
      this.#dynamic.delete(key)
    }
  }

  #openDynamic(
    key: string,
    { protocol, hostname, port, origin }: URL,
    { routeSlot, slot, settings, proxies }: DynamicAddress,
  ) {
    const secured = protocol === 'https:'
    const route: Route = {
      slot: routeSlot,
      secured,
      host: hostname,
      port: port === '' ? (secured ? 443 : 80) : Number(port),
      tlsClient: secured ? 'default' : '',
      // Once per address and endpoint, so nothing of it is kept.
      proxy: new ProxyChoice(proxies[secured ? 'secured' : 'plain']).proxyFor(hostname),
      connectsThroughProxy: false,
    }
    const pool = new ConnectionPool(route, this.#shared)
    const target = this.#endpointOf({ slot, url: origin, route, basePath: '', settings }, pool)
    const opened = { target, pool }
    this.#dynamic.set(key, opened)
    return opened
  }

  #targetOf(name: string, address: SequenceAddressPlan, pools: Map<string, ConnectionPool>): Target | null {
    if (address.kind === 'dynamic') return null
    const endpointOf = (plan: EndpointPlan) => this.#endpointOf(plan, this.#poolOf(plan.route, pools))
    if (address.kind === 'template') return endpointOf(address.endpoint)
    const { kind, algorithm, failsOver, endpoints, parts }: EndpointsPlan = address.endpoints
    const [first, ...others] = endpoints.map(endpointOf)
    if (first === undefined) throw new Error(`the endpoint ${name} has no address`)
    if (kind === 'single') return first
    const order = kind === 'failover' ? 'in_order' : algorithm
    const context = this.#shared.contexts.plain
    if (parts === undefined) return new EndpointGroup(name, [first, ...others], order, failsOver, context)
    const nesting = { parts, isInOrder: order === 'in_order', failsOver }
    const anyFailsOver = failsOver || parts.some(part => part.failsOver)
    return new EndpointGroup(name, [first, ...others], nesting, anyFailsOver, context)
  }

  #endpointOf(plan: EndpointPlan, pool: ConnectionPool): Endpoint {
    const sender = new RequestSender(pool, plan.basePath, pool.stripped, pool.context)
    return new Endpoint(plan, sender, this.#states, pool.context)
  }

  #poolOf(route: Route, fresh: Map<string, ConnectionPool>): ConnectionPool {
    const key = JSON.stringify(route)
    const pool = this.#pools.get(key) ?? fresh.get(key) ?? new ConnectionPool(route, this.#shared)
    fresh.set(key, pool)
    return pool
  }
}

/** A base path has none. */
function endingOf(address: SequenceAddressPlan): string {
  if (address.kind !== 'urls' || address.pieces !== undefined) return ''
  return /[^/](\/+)$/.exec(new URL(address.endpoints.endpoints[0]!.url).pathname)?.[1] ?? ''
}
