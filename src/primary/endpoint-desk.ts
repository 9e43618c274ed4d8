/**
 * The primary's view of the endpoints: lists and switches them for the command line, renders their metrics, and lets
 * their health checks decide about them. The states themselves are in memory that it shares with the reactors.
 */
import { labelOfApi } from './api-planner.ts'
import { transportCode } from '../errors/transport-code.ts'
import type { EndpointRow } from './control-commands.ts'
import type { HealthChecks } from './health-checks.ts'
import { monotonicMs } from '../structure/monotonic-clock.ts'
import { renderEndpoints } from '../observe/endpoint-metrics.ts'
import type { Log } from '../observe/log.ts'
import type { ApiPlan, EndpointPlan, ReactorPlan } from '../plan.ts'
import { describeChange } from '../target/endpoint-change.ts'
import { type EndpointChange, EndpointTable } from '../target/endpoint-table.ts'

interface KnownEndpoint {
  /** `orders/1.0.0`, with `:2` for the second of a group; for sandbox keys `orders/1.0.0:sandbox`. */
  readonly name: string
  readonly api: string
  readonly plan: EndpointPlan
}

export class EndpointDesk {
  #endpoints: readonly KnownEndpoint[]
  readonly #states: EndpointTable
  readonly #log: Log
  #checks: HealthChecks | null = null
  #isStopped = false

  constructor({ apis, endpoints }: Pick<ReactorPlan, 'apis' | 'endpoints'>, log: Log) {
    this.#log = log
    this.#states = new EndpointTable(endpoints, 0, monotonicMs)
    this.#endpoints = knownIn(apis)
  }

  /** These and no others, from now on. */
  put(apis: readonly ApiPlan[]): void {
    const before = new Set(this.#endpoints.filter(isChecked).map(({ plan }) => plan.row))
    this.#endpoints = knownIn(apis)
    for (const known of this.#endpoints) {
      const { row, settings, url } = known.plan
      // Nobody else would ever find that it is well again.
      if (before.has(row) && !isChecked(known) && this.#states.isUnhealthy(row)) {
        this.#tell(this.#states.checked(row, settings, true), url, 'it has no health check any more')
      }
    }
  }

  /** Begins the checks of those endpoints that have one, and ends all others; `tlsClients` are those in force. */
  async check(tlsClients: () => ReactorPlan['tlsClients']): Promise<void> {
    if (this.#checks === null && !this.#endpoints.some(isChecked)) return
    const { HealthChecks: Checks } = await import('./health-checks.ts')
    if (this.#isStopped) return
    this.#checks ??= new Checks(tlsClients, {
      isActive: plan => this.#states.isActive(plan.row),
      found: (plan, isHealthy, cause) => {
        this.#tell(this.#states.checked(plan.row, plan.settings, isHealthy), plan.url, cause)
      },
    })
    this.#checks.put(this.#endpoints.filter(isChecked).map(({ plan }) => plan))
  }

  stop(): void {
    this.#isStopped = true
    this.#checks?.stop()
  }

  list(): readonly EndpointRow[] {
    return this.#endpoints.map(({ name, api, plan: { row, url } }) => {
      const { lastBase, lastState, ...reading } = this.#states.read(row)
      return { name, api, url, ...reading, lastError: transportCode(lastBase, lastState) }
    })
  }

  /** Of the endpoint with that row. */
  reading(row: number): Pick<EndpointRow, 'state' | 'retryInMs'> {
    return this.#states.read(row)
  }

  /** Switches the endpoint of that name, or all with that URL; false where there is none. */
  turn(name: string, isOn: boolean): boolean {
    const meant = this.#endpoints.filter(endpoint => endpoint.name === name || endpoint.plan.url === name)
    for (const { plan } of meant) {
      this.#tell(this.#states.switched(plan.row, plan.settings, isOn), plan.url, 'by hand')
    }
    return meant.length > 0
  }

  /** For `/metrics`. */
  metrics(): string {
    return renderEndpoints(this.list())
  }

  #tell(change: EndpointChange | null, url: string, cause: string): void {
    if (change === null) return
    const { level, event, fields } = describeChange(change, url, cause, 0)
    this.#log[level](fields, event)
  }
}

function knownIn(apis: readonly ApiPlan[]): readonly KnownEndpoint[] {
  return apis.flatMap(({ name: api, hosts, paths, endpoints, sandbox }) => {
    const path = labelOfApi({ hosts, paths })
    return [...named(endpoints, path), ...named(sandbox, `${path}:sandbox`)].map(endpoint => ({ ...endpoint, api }))
  })
}

function named({ kind, endpoints }: ApiPlan['endpoints'], path: string): readonly Omit<KnownEndpoint, 'api'>[] {
  return endpoints.map((plan, i) => ({ name: kind === 'single' ? path : `${path}:${i + 1}`, plan }))
}

function isChecked({ plan }: KnownEndpoint): boolean {
  return plan.settings.healthCheck !== null
}
