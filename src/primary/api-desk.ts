/**
 * The primary's view of the APIs: lists and shows them for the command line as they are in force, and changes where
 * they stand in their lives. A change is in the file before it is in force, and in force before it is answered.
 */
import { identityOf } from '../api-identity.ts'
import { livingApi, sunsetAfterMs } from './api-lifecycles.ts'
import type {
  AccessTerms,
  ApiDefinition,
  CorsDefinition,
  LifecycleState,
  ResourceDefinition,
} from '../config/api-definition.ts'
import { fewOf, printable } from '../config/fault.ts'
import { ACTIONS, actionsFrom, leadsTo, targetOf } from '../config/lifecycle.ts'
import { nearest } from '../config/nearest.ts'
import { Refused } from './control-socket.ts'
import type { PrimaryQuestion } from '../authority-messages.ts'
import type { EndpointDesk } from './endpoint-desk.ts'
import type { InForce } from './in-force.ts'
import type { ManagedApi } from '../management/room.ts'
import type { Log } from '../observe/log.ts'
import type { ApiPlan, EndpointsPlan } from '../plan.ts'
import type { Reloader } from './reload.ts'
import type { ReloadQueue } from './reload-queue.ts'
import { TOKEN_APIS } from '../token-apis.ts'
import type { LifecycleBook } from '../store/lifecycle-book.ts'
import { changed, MOMENT_MS_MAX } from '../store/lifecycles.ts'

export interface ApiRow {
  readonly name: string
  readonly version: string
  /** The first is that by which it is known. */
  readonly paths: readonly string[]
  readonly hosts: readonly string[]
  readonly transports: readonly string[]
  readonly state: LifecycleState
  /** What its project says. */
  readonly declared: LifecycleState
  /** As of ISO 8601; '' where it is as declared. */
  readonly since: string
  /** '' where there is none. */
  readonly sunset: string
}

export interface ApisAnswer {
  readonly apis: readonly ApiRow[]
}

export interface EndpointsShown {
  readonly kind: EndpointsPlan['kind']
  readonly algorithm: EndpointsPlan['algorithm']
  readonly failsOver: boolean
  readonly endpoints: readonly { readonly url: string; readonly state: string; readonly retryInMs: number }[]
}

export interface ApiAnswer extends ApiRow {
  /** What can be done to it. */
  readonly actions: readonly string[]
  readonly isAi: boolean
  readonly access: AccessTerms
  readonly production: EndpointsShown
  readonly sandbox: EndpointsShown
  /** null: none. */
  readonly cors: CorsDefinition | null
  /** What its requests pass, in order. */
  readonly handlers: readonly { readonly name: string; readonly about: string }[]
  /** None: every path and method. */
  readonly resources: readonly ResourceDefinition[]
}

export interface LifecycleAnswer extends ApiRow {
  readonly from: LifecycleState
  /** What reactors could not take over, or not yet. */
  readonly failures: readonly string[]
}

interface ApiDeskOptions {
  readonly inForce: InForce
  readonly lifecycles: LifecycleBook
  readonly reloads: Pick<ReloadQueue, 'alone'>
  readonly reloader: Pick<Reloader, 'changeLifecycle'>
  readonly endpoints: Pick<EndpointDesk, 'reading'>
  readonly log: Log
}

interface LifecycleChange {
  readonly name: unknown
  readonly action: unknown
  /** Milliseconds since 1970; undefined where nobody says when. */
  readonly sunsetMs: unknown
}

type Known = readonly [definition: ApiDefinition, plan: ApiPlan]

const NAMES_SHOWN = 20
const NAME_CHARS_SHOWN = 200

export class ApiDesk {
  readonly #options: ApiDeskOptions

  constructor(options: ApiDeskOptions) {
    this.#options = options
  }

  list(): ApisAnswer {
    return { apis: this.#known().map(known => this.#rowOf(known)) }
  }

  /** `name`: as of `apis`, with or without version, or a path. Throws Refused. */
  async show(name: unknown): Promise<ApiAnswer> {
    // Handlers are of no other use to the primary.
    const { explainChain } = await import('../chain-of.ts')
    const known = this.#find(name)
    const [definition, plan] = known
    return {
      ...this.#rowOf(known),
      actions: actionsFrom(plan.lifecycle.state),
      isAi: plan.isAi,
      access: definition.access,
      production: this.#endpointsOf(plan.endpoints),
      sandbox: this.#endpointsOf(plan.sandbox),
      cors: plan.cors,
      handlers: explainChain(plan),
      resources: plan.resources,
    }
  }

  /** What the management API asks. Throws Refused. */
  async answer(question: PrimaryQuestion): Promise<object> {
    if (question.kind === 'lifecycle') {
      const { name, action, sunsetMs } = question
      const { state } = await this.change({ name, action, sunsetMs })
      return { state }
    }
    return this.#known().map(known => managedApi(known, this.#rowOf(known)))
  }

  /** Behind changes and reloads that were asked for before. Throws Refused, and nothing has changed. */
  async change({ name, action, sunsetMs }: LifecycleChange): Promise<LifecycleAnswer> {
    const target = typeof action === 'string' ? targetOf(action) : undefined
    if (target === undefined) {
      throw new Refused(`there is no action ${quoted(action)}; there is ${ACTIONS.join(', ')}`)
    }
    if (sunsetMs !== undefined && target !== 'DEPRECATED') throw new Refused('only deprecation has a sunset')
    return this.#options.reloads.alone(() => this.#move(name, target, sunsetMs))
  }

  async #move(name: unknown, target: LifecycleState, wantedMs: unknown): Promise<LifecycleAnswer> {
    const { lifecycles, reloader, log } = this.#options
    const [definition, plan] = this.#find(name)
    const label = labelOf(plan)
    const { state: from } = plan.lifecycle
    if (!leadsTo(from, target)) throw new Refused(`${label} is ${from}: ${possible(from, target)}`)
    const nowMs = Date.now()
    const sunsetMs = target === 'DEPRECATED' ? this.#sunset(wantedMs, nowMs) : 0
    const records = changed(lifecycles.records, livingApi(definition, plan), target, { nowMs, sunsetMs })
    const failures = await reloader.changeLifecycle(definition, records)
    const fields = { API: label, ADDRESS: identityOf(plan), FROM: from, TO: target }
    log.info(sunsetMs === 0 ? fields : { ...fields, SUNSET: isoOf(sunsetMs) }, 'lifecycle changed')
    for (const CAUSE_OF_ERROR of failures) {
      log.error({ API: label, CAUSE_OF_ERROR }, 'a reactor has not taken the lifecycle change')
    }
    const { planned } = this.#options.inForce
    return { ...this.#rowOf([definition, planned.byDefinition.get(definition)!.plan]), from, failures }
  }

  #sunset(wantedMs: unknown, nowMs: number): number {
    if (wantedMs === undefined) {
      const afterMs = sunsetAfterMs(this.#options.inForce.configured.configuration)
      return afterMs === 0 ? 0 : nowMs + afterMs
    }
    if (typeof wantedMs !== 'number' || !Number.isInteger(wantedMs) || wantedMs > MOMENT_MS_MAX) {
      throw new Refused('a sunset is a moment before the year 10000')
    }
    if (wantedMs <= nowMs) throw new Refused(`a sunset lies ahead, and ${isoOf(wantedMs)} does not`)
    return wantedMs
  }

  #known(): readonly Known[] {
    const all = [...this.#options.inForce.planned.byDefinition]
    // Nobody has declared those for tokens, and nobody changes them.
    const declared = all.filter(([{ name }]) => !TOKEN_APIS.includes(name))
    return declared.map(([definition, { plan }]) => [definition, plan])
  }

  #rowOf([definition, plan]: Known): ApiRow {
    const { name, version, paths, hosts, transports, lifecycle } = plan
    const record = this.#options.lifecycles.records.get(identityOf(plan))
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
    }
  }

  #endpointsOf({ kind, algorithm, failsOver, endpoints }: EndpointsPlan): EndpointsShown {
    const shown = endpoints.map(({ url, row }) => {
      const { state, retryInMs } = this.#options.endpoints.reading(row)
      return { url, state, retryInMs }
    })
    return { kind, algorithm, failsOver, endpoints: shown }
  }

  #find(word: unknown): Known {
    if (typeof word !== 'string' || word === '') throw new Refused('expected the name of an API')
    const all = this.#known()
    const named = all.filter(([, { name, version }]) => {
      return word.startsWith(name) && (word === name || word === `${name}:${version}`)
    })
    const meant = named.length > 0 ? named : at(all, word)
    const [one, ...others] = meant
    if (one === undefined) throw new Refused(unknown(word, all))
    if (others.length > 0) throw new Refused(`${quoted(word)} may be ${listed(meant)}`)
    return one
  }
}

function managedApi([{ access, isDefaultVersion }, { resources }]: Known, row: ApiRow): ManagedApi {
  const operations = resources.map(({ template, verb, authType, tier, scopes }) => {
    return { target: template, verb, authType, throttlingPolicy: tier, scopes }
  })
  return {
    ...{ name: row.name, version: row.version, context: row.paths[0]!, provider: access.provider, state: row.state },
    ...{ since: row.since, tiers: access.plans, transports: row.transports, isDefaultVersion, operations },
    actions: actionsFrom(row.state),
  }
}

/** With or without the slash at its beginning; with its hosts where other hosts have the same. */
function at(all: readonly Known[], address: string): readonly Known[] {
  const path = address.startsWith('/') ? address : `/${address}`
  return all.filter(([, plan]) => identityOf(plan) === address || plan.paths.includes(path))
}

function unknown(word: string, all: readonly Known[]): string {
  if (all.length === 0) return `there is no API ${quoted(word)}, and no other one`
  const lower = word.toLowerCase()
  const alike = all.filter(([, plan]) => labelOf(plan).toLowerCase().includes(lower))
  // Nobody has slipped in so long a word, and it would be compared with thousands.
  const names = word.length > NAME_CHARS_SHOWN ? [] : all.flatMap(([, plan]) => [plan.name, labelOf(plan)])
  const near = nearest(word, names)
  const meant = alike.length > 0 ? alike : all.filter(([, plan]) => plan.name === near || labelOf(plan) === near)
  return meant.length > 0
    ? `there is no API ${quoted(word)}; did you mean ${listed(meant)}?`
    : `there is no API ${quoted(word)}; there is ${listed(all)}`
}

/** With the address: nothing else is sure to tell them apart. */
function listed(apis: readonly Known[]): string {
  const names = apis.map(([, plan]) => `${printable(labelOf(plan))} (${identityOf(plan)})`)
  return fewOf(names, NAMES_SHOWN)
}

function possible(from: LifecycleState, target: LifecycleState): string {
  const actions = actionsFrom(from)
  if (actions.length === 0) return 'nothing can be done to it any more; its project can declare another state'
  return `it cannot become ${target} from there; what can be done is ${actions.join(', ')}`
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
