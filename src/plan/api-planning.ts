/**
 * Plans of the APIs for reactors, and the slots of their routes and endpoints in shared memory. A slot is kept across
 * reloads, and with it connection count and state: by a route, and by an endpoint with the same API, URL and rank among
 * equal URLs.
 */
import {
  type ApiDefinition,
  type CorsDefinition,
  type EndpointDefinition,
  type EndpointsDefinition,
  endpointsOf,
} from '../apis/api-definition.ts'
import { apiPaths } from '../apis/api-paths.ts'
import { lookupIn } from '../mediation/endpoint-files.ts'
import { withMembers } from '../mediation/endpoint-groups.ts'
import { type EndpointAddress, type EndpointForm, memberName } from '../mediation/endpoint-plan.ts'
import type { BackendTokenPlan } from '../auth/auth-plan.ts'
import { allocateApiMetrics, API_ROWS_END, clearApiRow, FIRST_API_ROW, OTHER_APIS_ROW } from '../observe/api-metrics.ts'
import { NO_SEQUENCES, type SequenceSet } from '../mediation/sequence-files.ts'
import { EndpointTable } from '../proxy/target/endpoint-table.ts'
import { FIRST_ROUTE_SLOT, type Route } from '../proxy/target/route.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { SharedGauge } from '../runtime/shared-gauge.ts'
import { accessPlan, withoutAllowedScopes } from './auth-planning.ts'
import { credentialPlans } from './backend-planning.ts'
import type { ForwardProxies } from './forward-proxies.ts'
import { mediationPlan, type NeedsOf, NO_NEEDS } from './mediation-planning.ts'
import {
  type ApiChanges,
  apiIdentity,
  type ApiPlan,
  type EndpointPlan,
  type EndpointsPlan,
  type ProxyProfiles,
  type SequenceAddressPlan,
  type SequenceEndpointPlan,
  type SequenceEndpointsPlan,
} from './reactor-plan.ts'
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

/** The endpoints of sequences, and the owners of their slots. */
interface PlannedSequenceEndpoints {
  readonly plans: SequenceEndpointsPlan
  /** The access tokens that the control thread gets for them. */
  readonly tokens: readonly BackendTokenPlan[]
  readonly routes: readonly string[]
  readonly endpoints: readonly string[]
}

/** Where the owners of slots are collected. */
type SlotOwners = Record<'routes' | 'endpoints', string[]>

type KnownAddress = Exclude<EndpointAddress, { kind: 'group' | 'recipients' | 'instance' }>

/** By name; groups have the endpoints of the files that they name. */
type EndpointForms = ReadonlyMap<string, EndpointForm & { readonly address: KnownAddress }>

interface PlanningInput {
  readonly definitions: readonly ApiDefinition[]
  readonly proxies: ForwardProxies
  /** `[apim.cors]`. */
  readonly cors: CorsDefinition
  /** Patterns of scopes that no caller needs. */
  readonly allowedScopes: readonly string[]
  /** Plans of its unchanged APIs are used again. */
  readonly before?: PlannedApis
  /** Sequences of the home, which flows may run. */
  readonly sequences?: SequenceSet
  /** From `loadNeeds`. */
  readonly needsOf?: NeedsOf
  /** Fault sequence of AI APIs (`apim.ai.custom_error_response_sequence`); '' for the usual one. */
  readonly aiSequence?: string
}

export interface PlannedApis {
  readonly apis: readonly ApiPlan[]
  readonly ofSequences: PlannedSequenceEndpoints
  /** True if any endpoint is https or wss, or may be. */
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
  /** Metrics of the APIs; shared with the reactors. */
  readonly metrics: SharedArrayBuffer
  readonly #states: EndpointTable
  readonly #metricsRows = new SlotAllocator(FIRST_API_ROW, API_ROWS_END, () => true)
  readonly #routeSlots: SlotAllocator
  readonly #endpointSlots: SlotAllocator

  /** `endpoints`: their number at the start. */
  constructor(reactors: number, endpoints: number, spare = SPARE_SLOTS) {
    const slots = endpoints + spare
    this.gauge = SharedGauge.allocate(reactors, FIRST_ROUTE_SLOT + slots)
    this.endpoints = EndpointTable.allocate(slots, reactors)
    this.metrics = allocateApiMetrics(reactors)
    this.#states = new EndpointTable(this.endpoints, 0, monotonicMs)
    const connections = new SharedGauge(this.gauge, reactors, 0)
    this.#routeSlots = new SlotAllocator(
      FIRST_ROUTE_SLOT,
      FIRST_ROUTE_SLOT + slots,
      slot => connections.sum(slot) === 0,
    )
    this.#endpointSlots = new SlotAllocator(0, slots, slot => this.#states.pending(slot) === 0)
  }

  /** Throws OutOfSlots; `release(before)` then returns the slots that were allocated. */
  plan(input: PlanningInput): PlannedApis {
    const { definitions, proxies, cors: globalCors, allowedScopes, before } = input
    const { sequences = NO_SEQUENCES, needsOf = NO_NEEDS, aiSequence = '' } = input
    const cors = before !== undefined && isEqual(before.cors, globalCors) ? before.cors : globalCors
    const shared: SharedCors = new Map()
    const byDefinition = new Map(
      definitions.map(definition => {
        const known = before?.byDefinition.get(definition)
        const declared = mediationPlan(definition, sequences, needsOf, aiSequence)
        const mediation = withoutAllowed(declared, allowedScopes)
        const hasSameSettings = cors === before?.cors && isEqual(allowedScopes, before.allowedScopes)
        if (known !== undefined && hasSameSettings && usesProxies(known.plan, proxies)) {
          const isSame = isEqual(known.plan.mediation, mediation)
          return [definition, isSame ? known : { ...known, plan: { ...known.plan, mediation } }]
        }
        const settings = {
          cors: mergedCors(definition, cors, shared),
          resources: withoutAllowedScopes(definition.resources, allowedScopes),
          mediation,
        }
        return [definition, this.#planApi(definition, proxies, settings)]
      }),
    )
    const apis = [...byDefinition.values()].map(({ plan }) => plan)
    const ofSequences = this.#planSequenceEndpoints(endpointForms(definitions, sequences), proxies)
    const usesTls =
      apis.some(api => endpointsOf(api).some(({ route }) => route.secured)) ||
      Object.values(ofSequences.plans).some(({ address }) => mayUseTls(address))
    return { apis, ofSequences, usesTls, proxies, cors, allowedScopes, byDefinition }
  }

  /** Frees the slots of everything but these APIs. */
  release({ byDefinition, ofSequences }: PlannedApis): void {
    const all = [...byDefinition.values(), ofSequences]
    this.#routeSlots.retain(new Set(all.flatMap(({ routes }) => routes)))
    this.#endpointSlots.retain(new Set(all.flatMap(({ endpoints }) => endpoints)))
    this.#metricsRows.retain(new Set(Array.from(byDefinition.values(), ({ plan }) => apiIdentity(plan))))
  }

  #planApi(
    definition: ApiDefinition,
    proxies: ForwardProxies,
    { cors, resources, mediation }: Pick<ApiPlan, 'cors' | 'resources' | 'mediation'>,
  ): PlannedApi {
    const { name, context, version, isDefaultVersion, isUnversioned } = definition
    const { hosts, transports, escapedSlashes, isAi } = definition
    const paths = apiPaths(context, version, isDefaultVersion, isUnversioned)
    const identity = apiIdentity({ hosts, paths })
    const owners: SlotOwners = { routes: [], endpoints: [] }
    const planEndpoint = (endpoint: EndpointDefinition): EndpointPlan => {
      const rank = owners.endpoints.filter(owner => owner.startsWith(`${identity} ${endpoint.url} `)).length
      const owner = `${identity} ${endpoint.url} ${rank}`
      return this.#planEndpoint(owner, endpoint, endpoint.settings.sendsProxyHeader, proxies, owners)
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
      metricsRow: this.#metricsRow(identity),
      access: accessPlan(definition),
      tier: definition.access.tier,
      hardLimits: definition.hardLimits,
      credentials: credentialPlans(definition),
      cors,
      resources,
      endpoints: planEndpoints(definition.endpoints),
      sandbox: planEndpoints(definition.sandbox),
      mounted: definition.mounted,
      mediation,
    }
    return { plan, ...owners }
  }

  #planSequenceEndpoints(forms: EndpointForms, proxies: ForwardProxies): PlannedSequenceEndpoints {
    const owners: SlotOwners = { routes: [], endpoints: [] }
    const planEndpoint = (name: string, endpoint: EndpointDefinition, rank: number): EndpointPlan =>
      this.#planEndpoint(`sequences ${name} ${endpoint.url} ${rank}`, endpoint, false, proxies, owners)
    const planAddress = (name: string, address: KnownAddress): SequenceAddressPlan => {
      if (address.kind === 'urls') {
        const { endpoints } = address
        const plans = endpoints.endpoints.map((endpoint, rank) => planEndpoint(name, endpoint, rank))
        return { ...address, endpoints: { ...endpoints, endpoints: plans } satisfies EndpointsPlan }
      }
      const { settings } = address
      if (address.kind === 'template' && address.origin !== '') {
        const endpoint = planEndpoint(name, { url: address.origin, settings }, 0)
        return { kind: 'template', endpoint, pieces: address.pieces }
      }
      owners.endpoints.push(DYNAMIC_OWNER)
      owners.routes.push(DYNAMIC_OWNER)
      const pieces = address.kind === 'template' ? address.pieces : null
      const slots = { routeSlot: this.#routeSlot(DYNAMIC_OWNER), slot: this.#endpointSlot(DYNAMIC_OWNER) }
      const own = { settings: { ...settings, suspensionMs: 0 }, proxies: proxies.profiles ?? NO_PROXIES }
      const kept = address.kind === 'template' ? address.kept : undefined
      return { kind: 'dynamic', pieces, ...slots, ...own, ...(kept === undefined ? {} : { kept }) }
    }
    const plans: [string, SequenceEndpointPlan][] = []
    const tokens: BackendTokenPlan[] = []
    for (const [name, { method, appendsPath, address, oauth }] of forms) {
      const token = oauth === undefined ? {} : { token: `sequences ${name}` }
      if (oauth !== undefined) tokens.push({ key: token.token!, ...oauth })
      plans.push([name, { method, appendsPath, address: planAddress(name, address), ...token }])
    }
    return { plans: Object.fromEntries(plans), tokens, ...owners }
  }

  /** Adds the owners of its slots to `owners`. */
  #planEndpoint(
    owner: string,
    { url: text, settings }: EndpointDefinition,
    sendsProxyHeader: boolean,
    proxies: ForwardProxies,
    owners: SlotOwners,
  ): EndpointPlan {
    const url = new URL(text)
    owners.endpoints.push(owner)
    const route = this.#planRoute(url, sendsProxyHeader, proxies)
    owners.routes.push(routeOwner(route, url.protocol))
    return { slot: this.#endpointSlot(owner), url: text, route, basePath: url.pathname.replace(/\/+$/, ''), settings }
  }

  #routeSlot(owner: string): number {
    const slot = this.#routeSlots.slotOf(owner) ?? this.#routeSlots.allocate(owner)
    if (slot === undefined) throw new OutOfSlots()
    return slot
  }

  #endpointSlot(owner: string): number {
    const known = this.#endpointSlots.slotOf(owner)
    if (known !== undefined) return known
    const slot = this.#endpointSlots.allocate(owner)
    if (slot === undefined) throw new OutOfSlots()
    this.#states.reset(slot)
    return slot
  }

  /** An API keeps its row as long as it exists; those beyond the limit share one. */
  #metricsRow(identity: string): number {
    const known = this.#metricsRows.slotOf(identity)
    if (known !== undefined) return known
    const row = this.#metricsRows.allocate(identity)
    if (row !== undefined) clearApiRow(this.metrics, row)
    return row ?? OTHER_APIS_ROW
  }

  #planRoute(url: URL, sendsProxyHeader: boolean, proxies: ForwardProxies): Route {
    const scheme = url.protocol as Scheme
    const secured = scheme === 'https:' || scheme === 'wss:'
    const target = { secured, host: url.hostname, port: url.port === '' ? DEFAULT_PORTS[scheme] : Number(url.port) }
    return {
      slot: this.#routeSlot(routeOwner(target, scheme)),
      ...target,
      tlsClient: scheme === 'https:' ? 'default' : scheme === 'wss:' ? 'wss' : '',
      proxy: proxies.proxyFor(secured, url.hostname),
      connectsThroughProxy: scheme === 'ws:',
      ...(sendsProxyHeader ? { sendsProxyHeader } : {}),
    }
  }
}

/** Endpoints of the home, and those within its sequences and within those of APIs. */
function endpointForms(definitions: readonly ApiDefinition[], sequences: SequenceSet): EndpointForms {
  const ofApis = definitions.flatMap(({ mediation }) => mediation?.sequences ?? [])
  const forms = new Map(Array.from(sequences.endpoints, ([name, { form }]) => [name, form]))
  for (const { endpoints = [] } of [...Array.from(sequences.files.values(), ({ plan }) => plan), ...ofApis]) {
    for (const { name, form } of endpoints) if (form !== null) forms.set(name, form)
  }
  const known = new Map<string, EndpointForm & { readonly address: KnownAddress }>()
  const add = (name: string, given: EndpointForm): void => {
    const form = withMembers(given, lookupIn(sequences.endpoints))
    // A sequence that names a missing file is reported, and each of its calls is a fault.
    if ('hint' in form || form.address.kind === 'group' || form.address.kind === 'instance') return
    if (form.address.kind !== 'recipients') known.set(name, { ...form, address: form.address })
    else {
      for (const [at, member] of form.address.members.entries()) {
        if (typeof member !== 'string' && !('name' in member)) add(memberName(name, at), member)
      }
    }
  }
  for (const [name, form] of forms) add(name, form)
  return known
}

/** True if a sequence sends requests over TLS, or may do so because its messages choose the address. */
export function sequencesMayUseTls(definitions: readonly ApiDefinition[], sequences: SequenceSet): boolean {
  return Array.from(endpointForms(definitions, sequences).values()).some(({ address, oauth }) => {
    if (oauth !== undefined && /^https:/i.test(oauth.tokenUrl)) return true
    if (address.kind === 'urls') return address.endpoints.endpoints.some(({ url }) => /^https:/i.test(url))
    return address.kind === 'message' || !/^http:/i.test(address.origin)
  })
}

const NO_PROXIES: ProxyProfiles = { plain: [], secured: [] }
/** Owner of the slots of addresses that messages choose. */
const DYNAMIC_OWNER = 'dynamic addresses'

function mayUseTls(address: SequenceAddressPlan): boolean {
  if (address.kind === 'dynamic') return true
  const endpoints = address.kind === 'urls' ? address.endpoints.endpoints : [address.endpoint]
  return endpoints.some(({ route }) => route.secured)
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

/** The mediation without scopes that no caller needs. */
function withoutAllowed(mediation: ApiPlan['mediation'], allowedScopes: readonly string[]): ApiPlan['mediation'] {
  if (mediation?.admission === undefined) return mediation
  const operations = withoutAllowedScopes(mediation.admission.operations, allowedScopes)
  return { ...mediation, admission: { ...mediation.admission, operations } }
}

function isEqual(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other)
}

/** True if the routes of an API already go through these proxies. */
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
