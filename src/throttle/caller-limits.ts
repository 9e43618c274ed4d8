/**
 * The limits of one caller at one API, by resource: which policies apply, in which order, and under which keys they
 * count (`conf/guide/throttling.md` has the table of keys).
 */
import type { Caller, CallingApplication } from '../proxy/exchange/caller.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import type { Resource } from '../proxy/exchange/resource.ts'
import { networkOf } from '../runtime/ip-address.ts'
import { type ConditionGroups, NO_GROUP } from './conditions.ts'
import { countedAddress } from './denials.ts'
import { type Level, Limit } from './limit.ts'
import { LimitList } from './limit-list.ts'
import type { AdvancedPolicy, CustomPolicy, Quota, Sharing, SubscriptionPolicy } from './policy.ts'
import type { Throttle } from './throttle.ts'

/** An API, as limits see it. */
export interface LimitedApi {
  readonly name: string
  readonly version: string
  /** Context with version. */
  readonly path: string
  readonly provider: string
  /** Advanced policy of the whole API, in place of those of its resources; '' for none. */
  readonly tier: string
  /** By key type; null for none. */
  readonly hard: Readonly<Record<Caller['keyType'], Quota | null>>
  /** Names of the advanced policies of its resources. */
  readonly resourceTiers: readonly string[]
  /** Some resource requires credentials. */
  readonly hasCallers: boolean
}

/** Addresses of one caller whose limits are kept, where a key depends on the address; the oldest is dropped. */
const ADDRESSES_MAX = 64
const HARD: Sharing & { readonly name: string } = { name: 'maxTps', scope: 'node', failMode: 'local' }
const BY_ADDRESS = '$clientIp'

/** The limits of one resource. */
interface ResourceLimits {
  readonly policy: AdvancedPolicy | null
  readonly groups: ConditionGroups | null
  /** By group; the default limit is first. Used where no key depends on the address. */
  readonly lists: (LimitList | undefined)[]
  /** By group and network of the address; null until a limit depends on the address. */
  byAddress: Map<string, LimitList> | null
}

export class CallerLimits {
  readonly version: number
  /** A deny policy names the caller. */
  readonly isDenied: boolean
  readonly api: LimitedApi
  /** The list of the last request's resource, where it depends on nothing else; null: `#last` has to be asked. */
  #lastList: LimitList | null = null
  /** Null until a second resource is asked for: most anonymous callers come once. */
  #byResource: Map<Resource | null, ResourceLimits> | null = null
  /** The resource of the last request, nearly always that of the next one too. */
  #lastResource: Resource | null | undefined = undefined
  #last: ResourceLimits | undefined
  readonly #throttle: Throttle
  readonly #caller: Caller
  readonly #dependsOnAddress: boolean

  constructor(throttle: Throttle, api: LimitedApi, caller: Caller, isDenied: boolean) {
    this.version = throttle.policies.version
    this.isDenied = isDenied
    this.api = api
    this.#throttle = throttle
    this.#caller = caller
    this.#dependsOnAddress = throttle.policies.custom.some(({ keyTemplate }) => keyTemplate.includes(BY_ADDRESS))
  }

  /** Tells whether no request can meet a limit: of the caller, or of any caller without credentials. */
  static areNone(throttle: Throttle, { tier, hard, resourceTiers }: LimitedApi, caller: Caller | null): boolean {
    const { policies } = throttle
    const advanced = tier === '' ? resourceTiers : [tier]
    const isUnlimited = (name: string): boolean => {
      const { quota, groups } = policies.advanced(name).policy
      return quota === null && groups.length === 0
    }
    const { quota, burst } = policies.subscription(subscriptionTier(throttle, caller)).policy
    const hasOwn = quota !== null || burst !== null || hard.PRODUCTION !== null || hard.SANDBOX !== null
    const application = applicationOf(caller)
    if (hasOwn || (application !== null && policies.application(application.tier).policy.quota !== null)) return false
    return policies.custom.length === 0 && advanced.every(isUnlimited)
  }

  static subscriptionPolicy(throttle: Throttle, caller: Caller): SubscriptionPolicy {
    return throttle.policies.subscription(subscriptionTier(throttle, caller)).policy
  }

  /** Limits of operations that one request asks for, each once, beside those of the request itself. */
  limitsOfOperations(exchange: Exchange, operations: readonly Resource[]): LimitList {
    // A policy of the whole API is one of the request.
    const limits = this.api.tier !== '' ? [] : operations.flatMap(operation => this.#ofOperation(exchange, operation))
    return new LimitList(limits, this.#throttle)
  }

  #ofOperation(exchange: Exchange, operation: Resource): readonly Limit[] {
    const { policy, groups } = this.#newResource(operation)
    if (policy === null) return []
    const group = groups === null ? NO_GROUP : groups.find(exchange, countedAddress(exchange))
    return this.#advanced(policy, operation, group)
  }

  limitsOf(exchange: Exchange): LimitList {
    const { resource } = exchange
    if (resource === this.#lastResource && this.#lastList !== null) return this.#lastList
    return this.#find(exchange, resource)
  }

  #find(exchange: Exchange, resource: Resource | null): LimitList {
    if (resource !== this.#lastResource) {
      this.#last = this.#otherResource(resource)
      this.#lastResource = resource
      this.#lastList = null
    }
    const own = this.#last!
    if (own.groups !== null || this.#dependsOnAddress) return this.#conditional(own, exchange)
    this.#lastList = own.lists[0] ?? this.#newList(own, resource, NO_GROUP)
    return this.#lastList
  }

  #conditional(own: ResourceLimits, exchange: Exchange): LimitList {
    const address = countedAddress(exchange)
    const group = own.groups === null ? NO_GROUP : own.groups.find(exchange, address)
    if (!this.#dependsOnAddress) return own.lists[group + 1] ?? this.#newList(own, exchange.resource, group)
    own.byAddress ??= new Map()
    const { byAddress } = own
    const network = networkOf(address)
    const key = `${group} ${network}`
    let list = byAddress.get(key)
    if (list === undefined) {
      if (byAddress.size >= ADDRESSES_MAX) byAddress.delete(byAddress.keys().next().value!)
      list = new LimitList(this.#limits(own, exchange.resource, group, network), this.#throttle)
      byAddress.set(key, list)
    }
    return list
  }

  #otherResource(resource: Resource | null): ResourceLimits {
    if (this.#last !== undefined) {
      this.#byResource ??= new Map()
      this.#byResource.set(this.#lastResource!, this.#last)
    }
    return this.#byResource?.get(resource) ?? this.#newResource(resource)
  }

  #newResource(resource: Resource | null): ResourceLimits {
    const { tier } = this.api
    const name = tier === '' ? (resource?.tier ?? '') : tier
    const policy = name === '' ? null : this.#throttle.policies.advanced(name).policy
    const groups = policy === null ? null : this.#throttle.groupsOf(policy)
    const own = { policy, groups, lists: [], byAddress: null }
    return own
  }

  #newList(own: ResourceLimits, resource: Resource | null, group: number): LimitList {
    const list = new LimitList(this.#limits(own, resource, group, ''), this.#throttle)
    own.lists[group + 1] = list
    return list
  }

  /** In the order in which they decide. */
  #limits({ policy }: ResourceLimits, resource: Resource | null, group: number, network: string): readonly Limit[] {
    return [
      ...(policy === null ? [] : this.#advanced(policy, resource, group)),
      ...this.#subscription(),
      ...this.#application(),
      ...this.#throttle.policies.custom.map(custom => this.#custom(custom, resource, network)),
      ...this.#hard(),
    ]
  }

  #advanced(policy: AdvancedPolicy, resource: Resource | null, group: number): readonly Limit[] {
    const quota = group === NO_GROUP ? policy.quota : policy.groups[group]!.quota
    if (quota === null) return []
    const isOfApi = this.api.tier !== ''
    const suffix = group === NO_GROUP ? '' : `:condition-${group + 1}`
    const user = policy.userLevel === 'PER_USER' ? `:${this.#user}` : ''
    const key = (isOfApi ? this.#apiKey : this.#resourceKey(resource)) + suffix + user
    return [this.#limit(isOfApi ? 'api' : 'resource', policy, key, quota)]
  }

  #subscription(): readonly Limit[] {
    const { policy } = this.#throttle.policies.subscription(subscriptionTier(this.#throttle, this.#caller))
    const key = `${this.#subscriber}:${this.#apiKey}:${policy.name}`
    const { quota, burst, stopOnQuotaReach } = policy
    return [
      quota === null ? null : this.#limit('subscription', policy, key, quota, stopOnQuotaReach),
      burst === null ? null : this.#limit('burst', policy, key, burst),
    ].filter(limit => limit !== null)
  }

  #application(): readonly Limit[] {
    const application = applicationOf(this.#caller)
    if (application === null) return []
    const { policy } = this.#throttle.policies.application(application.tier)
    if (policy.quota === null) return []
    return [this.#limit('application', policy, `${application.id}:${this.#user}`, policy.quota)]
  }

  #custom(policy: CustomPolicy, resource: Resource | null, network: string): Limit {
    const { user, tenant, application } = this.#caller
    const values: Readonly<Record<string, string>> = {
      resourceKey: this.#resourceKey(resource),
      userId: user,
      apiContext: this.api.path,
      apiVersion: this.api.version,
      appTenant: application?.tenant ?? tenant,
      apiTenant: tenantOf(this.api.provider),
      appId: application?.id ?? '',
      clientIp: network,
    }
    const key = policy.keyTemplate.replace(/\$([A-Za-z]+)/g, (whole, name: string) => values[name] ?? whole)
    return this.#limit('custom', policy, `${escaped(policy.name)}:${key}`, policy.quota)
  }

  #hard(): readonly Limit[] {
    const { keyType } = this.#caller
    const quota = this.api.hard[keyType]
    return quota === null ? [] : [this.#limit('hard', HARD, `${this.#apiKey}:${keyType}`, quota)]
  }

  #limit(level: Level, policy: Sharing & { readonly name: string }, ownKey: string, quota: Quota, stops = true): Limit {
    const key = `${level}:${ownKey}`
    const { table, shared } = this.#throttle
    const isShared = policy.scope === 'redis' && shared !== null
    const counted = isShared ? shared.localShare(quota) : quota
    const about = { key, quota: counted, overruns: !stops, policy: `${level}:${policy.name}` }
    const counter = table.counter({ ...about, failMode: policy.failMode })
    return new Limit(level, policy, key, quota, stops, counter)
  }

  get #apiKey(): string {
    return `${this.api.path}:${this.api.version}`
  }

  #resourceKey(resource: Resource | null): string {
    return `${this.api.path}${resource?.template ?? '/*'}:${resource?.verb ?? '*'}`
  }

  /** Whoever the quota of a subscription counts for. */
  get #subscriber(): string {
    return applicationOf(this.#caller)?.id ?? this.#user
  }

  /** Callers without credentials count by address; IPv6 ones by the network of 64 bits that one client may vary. */
  get #user(): string {
    const { method, application, user } = this.#caller
    return method === 'none' && application !== null ? networkOf(application.id) : escaped(user)
  }
}

/** An anonymous caller has its address in the place of an application. */
function applicationOf(caller: Caller | null): CallingApplication | null {
  return caller === null || caller.method === 'none' ? null : caller.application
}

/** A subscription, or the certificate that stands for one, names the tier. */
function subscriptionTier({ plan }: Throttle, caller: Caller | null): string {
  const isSubscribed = caller?.method === 'mutual_tls' || applicationOf(caller) !== null
  return isSubscribed ? caller!.subscriptionTier : plan.unauthenticatedTier
}

/** Names that hold the separator of keys must not make the key of another name. */
function escaped(name: string): string {
  return name.replace(/[%:]/g, encodeURIComponent)
}

/** `admin@example.org` is of the tenant example.org. */
function tenantOf(account: string): string {
  const at = account.lastIndexOf('@')
  return at < 0 ? 'carbon.super' : account.slice(at + 1)
}
