/**
 * Lists and shows the active APIs for the command line and the management API, and changes their lifecycle states. A
 * change is saved first, then applied, then reported.
 */
import { declaredState, sunsetAfterMs } from '../plan/lifecycle-planning.ts'
import {
  type ApiAccess,
  type ApiDefinition,
  type CorsDefinition,
  type Flow,
  FLOWS,
  type LifecycleState,
  type ResourceDefinition,
} from '../apis/api-definition.ts'
import { abbreviatedList, printable } from '../config/diagnostics.ts'
import { ACTIONS, actionsFrom, allowsTransition, targetState } from '../apis/lifecycle-states.ts'
import { nearest } from '../config/nearest.ts'
import { CommandRefused } from './control-socket.ts'
import type { ApiCall } from '../plan/control-messages.ts'
import type { EndpointService } from './endpoint-service.ts'
import type { ActiveState } from './active-state.ts'
import type { ManagedApi } from '../control/admin-api/admin-services.ts'
import type { Log } from '../observe/log.ts'
import { type FlowNeeds, type FlowsPlan, mostOf } from '../mediation/flow-plan.ts'
import { apiIdentity, type ApiPlan, type EndpointsPlan, TOKEN_API_NAMES } from '../plan/reactor-plan.ts'
import type { Reloader } from './reloader.ts'
import type { ReloadQueue } from './reload-queue.ts'
import type { LifecycleStore } from '../apis/lifecycle-file.ts'
import { withState, MOMENT_MS_MAX } from '../apis/lifecycle-records.ts'

export interface ApiSummary {
  readonly name: string
  readonly version: string
  /** The API is known by the first one. */
  readonly paths: readonly string[]
  readonly hosts: readonly string[]
  readonly transports: readonly string[]
  readonly state: LifecycleState
  /** State that the project declares. */
  readonly declared: LifecycleState
  /** When an operator set the state, ISO 8601; '' where it is the declared one. */
  readonly since: string
  /** ISO 8601; '' for none. */
  readonly sunset: string
  /** Where flows of the API run; '' for an API whose messages pass as they are. */
  readonly mediation: '' | 'reactor' | 'worker'
  /** Module of a mounted API; '' for an API with endpoints. */
  readonly mounted: string
}

export interface ApisReport {
  readonly apis: readonly ApiSummary[]
}

export interface EndpointsSummary {
  readonly kind: EndpointsPlan['kind']
  readonly algorithm: EndpointsPlan['algorithm']
  readonly failsOver: boolean
  readonly endpoints: readonly { readonly url: string; readonly state: string; readonly retryInMs: number }[]
}

/** A flow that has sequences. */
export interface FlowSummary {
  /** `VERB template`; '' for the operations without flows of their own. */
  readonly operation: string
  readonly flow: Flow
  /** In the order in which they run. */
  readonly sequences: readonly string[]
  readonly needs: FlowNeeds
}

export interface ApiDetails extends ApiSummary {
  /** Lifecycle actions that are possible now. */
  readonly actions: readonly string[]
  readonly isAi: boolean
  readonly access: ApiAccess
  readonly production: EndpointsSummary
  readonly sandbox: EndpointsSummary
  /** Null: no CORS. */
  readonly cors: CorsDefinition | null
  /** The filter chain, in order. */
  readonly filters: readonly { readonly name: string; readonly about: string }[]
  readonly flows: readonly FlowSummary[]
  /** Empty: every path and method. */
  readonly resources: readonly ResourceDefinition[]
}

export interface LifecycleReport extends ApiSummary {
  readonly from: LifecycleState
  /** Threads that have not applied the change, or not yet. */
  readonly failures: readonly string[]
}

interface ApiServiceOptions {
  readonly active: ActiveState
  readonly lifecycles: LifecycleStore
  readonly reloads: Pick<ReloadQueue, 'exclusively'>
  readonly reloader: Pick<Reloader, 'changeLifecycle'>
  /** Null on a node without reactors. */
  readonly endpoints: Pick<EndpointService, 'statusOf'> | null
  readonly log: Log
}

interface LifecycleChange {
  readonly name: unknown
  readonly action: unknown
  /** Milliseconds since 1970; undefined: as configured. */
  readonly sunsetMs: unknown
}

function flowsOf({ mediation }: ApiPlan): readonly FlowSummary[] {
  if (mediation === null) return []
  const all: readonly (readonly [string, FlowsPlan])[] = [
    ['', mediation.flows],
    ...Object.entries(mediation.byOperation),
  ]
  return all.flatMap(([operation, flows]) =>
    FLOWS.flatMap(flow => {
      const { sequences, needs } = flows[flow]
      return sequences.length === 0 ? [] : [{ operation, flow, sequences, needs }]
    }),
  )
}

function placeOf(needs: FlowNeeds): ApiSummary['mediation'] {
  return needs === 'nothing' ? '' : needs === 'worker' ? 'worker' : 'reactor'
}

type ActiveApi = readonly [definition: ApiDefinition, plan: ApiPlan]

const NAMES_SHOWN = 20
const NAME_CHARS_SHOWN = 200

export class ApiService {
  readonly #options: ApiServiceOptions

  constructor(options: ApiServiceOptions) {
    this.#options = options
  }

  list(): ApisReport {
    return { apis: this.#apis().map(api => this.#summaryOf(api)) }
  }

  /** `name`: of an API, with or without version, or a path. Rejects with CommandRefused. */
  async show(name: unknown): Promise<ApiDetails> {
    // Only this part of the primary needs the filters.
    const { describeFilterChain } = await import('../filters/build-chain.ts')
    const api = this.#find(name)
    const [definition, plan] = api
    return {
      ...this.#summaryOf(api),
      actions: actionsFrom(plan.lifecycle.state),
      isAi: plan.isAi,
      access: definition.access,
      production: this.#endpointsOf(plan.endpoints),
      sandbox: this.#endpointsOf(plan.sandbox),
      cors: plan.cors,
      filters: describeFilterChain(plan),
      flows: flowsOf(plan),
      resources: plan.resources,
    }
  }

  /** Serves a call of the management API. Rejects with CommandRefused. */
  async serve(call: ApiCall): Promise<object> {
    if (call.kind === 'lifecycle') {
      const { name, action, sunsetMs } = call
      const { state } = await this.change({ name, action, sunsetMs })
      return { state }
    }
    return this.#apis().map(api => managedApi(api, this.#summaryOf(api)))
  }

  /** Runs behind earlier changes and reloads. Rejects with CommandRefused: then nothing has changed. */
  async change({ name, action, sunsetMs }: LifecycleChange): Promise<LifecycleReport> {
    const target = typeof action === 'string' ? targetState(action) : undefined
    if (target === undefined) {
      throw new CommandRefused(`unknown action ${quoted(action)}; the actions are ${ACTIONS.join(', ')}`)
    }
    if (sunsetMs !== undefined && target !== 'DEPRECATED') throw new CommandRefused('only Deprecate takes a sunset')
    return this.#options.reloads.exclusively(() => this.#move(name, target, sunsetMs))
  }

  async #move(name: unknown, target: LifecycleState, wantedMs: unknown): Promise<LifecycleReport> {
    const { lifecycles, reloader, log } = this.#options
    const [definition, plan] = this.#find(name)
    const label = labelOf(plan)
    const { state: from } = plan.lifecycle
    if (!allowsTransition(from, target)) throw new CommandRefused(`${label} is ${from}${impossible(from, target)}`)
    const nowMs = Date.now()
    const sunsetMs = target === 'DEPRECATED' ? this.#sunset(wantedMs, nowMs) : 0
    const records = withState(lifecycles.records, declaredState(definition, plan), target, { nowMs, sunsetMs })
    const failures = await reloader.changeLifecycle(definition, records)
    const fields = { API: label, ADDRESS: apiIdentity(plan), FROM: from, TO: target }
    log.info(sunsetMs === 0 ? fields : { ...fields, SUNSET: isoOf(sunsetMs) }, 'lifecycle changed')
    for (const CAUSE_OF_ERROR of failures) {
      log.error({ API: label, CAUSE_OF_ERROR }, 'a thread has not applied the lifecycle change')
    }
    const { planned } = this.#options.active
    return { ...this.#summaryOf([definition, planned.byDefinition.get(definition)!.plan]), from, failures }
  }

  #sunset(wantedMs: unknown, nowMs: number): number {
    if (wantedMs === undefined) {
      const afterMs = sunsetAfterMs(this.#options.active.configured.configuration)
      return afterMs === 0 ? 0 : nowMs + afterMs
    }
    if (typeof wantedMs !== 'number' || !Number.isInteger(wantedMs) || wantedMs > MOMENT_MS_MAX) {
      throw new CommandRefused('a sunset is a time before the year 10000')
    }
    if (wantedMs <= nowMs) throw new CommandRefused(`a sunset must be in the future, and ${isoOf(wantedMs)} is not`)
    return wantedMs
  }

  #apis(): readonly ActiveApi[] {
    const all = [...this.#options.active.planned.byDefinition]
    // The gateway adds the token APIs itself, and nobody changes them.
    const declared = all.filter(([{ name }]) => !TOKEN_API_NAMES.includes(name))
    return declared.map(([definition, { plan }]) => [definition, plan])
  }

  #summaryOf([definition, plan]: ActiveApi): ApiSummary {
    const { name, version, paths, hosts, transports, lifecycle } = plan
    const record = this.#options.lifecycles.records.get(apiIdentity(plan))
    return {
      name,
      version,
      paths,
      hosts,
      transports,
      state: lifecycle.state,
      declared: definition.lifecycle,
      since: record === undefined ? '' : isoOf(record.sinceMs),
      sunset: lifecycle.sunsetMs === 0 ? '' : isoOf(lifecycle.sunsetMs),
      mounted: plan.mounted?.module ?? '',
      mediation: placeOf(mostOf(...flowsOf(plan).map(({ needs }) => needs))),
    }
  }

  #endpointsOf({ kind, algorithm, failsOver, endpoints }: EndpointsPlan): EndpointsSummary {
    const shown = endpoints.map(({ url, slot }) => {
      const { state, retryInMs } = this.#options.endpoints!.statusOf(slot)
      return { url, state, retryInMs }
    })
    return { kind, algorithm, failsOver, endpoints: shown }
  }

  #find(word: unknown): ActiveApi {
    if (typeof word !== 'string' || word === '') throw new CommandRefused('expected the name of an API')
    const all = this.#apis()
    const named = all.filter(([, { name, version }]) => {
      return word.startsWith(name) && (word === name || word === `${name}:${version}`)
    })
    const meant = named.length > 0 ? named : apisAt(all, word)
    const [one, ...others] = meant
    if (one === undefined) throw new CommandRefused(unknown(word, all))
    if (others.length > 0) throw new CommandRefused(`${quoted(word)} is ambiguous: ${listed(meant)}`)
    return one
  }
}

function managedApi([{ access, isDefaultVersion }, { resources }]: ActiveApi, summary: ApiSummary): ManagedApi {
  const operations = resources.map(({ template, verb, authType, tier, scopes }) => {
    return { target: template, verb, authType, throttlingPolicy: tier, scopes }
  })
  return {
    ...{
      name: summary.name,
      version: summary.version,
      context: summary.paths[0]!,
      hosts: summary.hosts,
      provider: access.provider,
      state: summary.state,
    },
    ...{
      since: summary.since,
      tiers: access.plans,
      tier: access.tier,
      transports: summary.transports,
      isDefaultVersion,
      operations,
    },
    actions: actionsFrom(summary.state),
  }
}

/** By a path, with or without its leading slash, or by the identity of an API: hosts and first path. */
function apisAt(all: readonly ActiveApi[], address: string): readonly ActiveApi[] {
  const path = address.startsWith('/') ? address : `/${address}`
  return all.filter(([, plan]) => apiIdentity(plan) === address || plan.paths.includes(path))
}

function unknown(word: string, all: readonly ActiveApi[]): string {
  if (all.length === 0) return `there is no API ${quoted(word)}; this node has none`
  const lower = word.toLowerCase()
  const alike = all.filter(([, plan]) => labelOf(plan).toLowerCase().includes(lower))
  // A long word is no typing error, and comparing it with thousands of names takes long.
  const names = word.length > NAME_CHARS_SHOWN ? [] : all.flatMap(([, plan]) => [plan.name, labelOf(plan)])
  const near = nearest(word, names)
  const meant = alike.length > 0 ? alike : all.filter(([, plan]) => plan.name === near || labelOf(plan) === near)
  return meant.length > 0
    ? `there is no API ${quoted(word)}; did you mean ${listed(meant)}?`
    : `there is no API ${quoted(word)}; the APIs are ${listed(all)}`
}

/** With the identity: names and versions need not be unique. */
function listed(apis: readonly ActiveApi[]): string {
  const names = apis.map(([, plan]) => `${printable(labelOf(plan))} (${apiIdentity(plan)})`)
  return abbreviatedList(names, NAMES_SHOWN)
}

function impossible(from: LifecycleState, target: LifecycleState): string {
  const actions = actionsFrom(from)
  if (actions.length === 0) return ': no action is possible; only its project can declare another state'
  return ` and cannot become ${target}; possible actions: ${actions.join(', ')}`
}

function labelOf({ name, version }: Pick<ApiPlan, 'name' | 'version'>): string {
  return `${name}:${version}`
}

function quoted(word: unknown): string {
  return typeof word === 'string' ? `"${printable(word.slice(0, NAME_CHARS_SHOWN))}"` : 'of that kind'
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString()
}
