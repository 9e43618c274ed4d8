/**
 * Lists and switches the endpoints for the command line, renders their metrics, and applies the results of their health
 * checks. The states of endpoints are in memory that the primary shares with the reactors.
 */
import { apiLabel } from '../plan/api-planning.ts'
import { transportCode } from '../protocol/failure-table.ts'
import type { ListedEndpoint } from './socket-commands.ts'
import type { HealthChecks } from './health-checks.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { renderEndpointMetrics } from '../observe/endpoint-metrics.ts'
import type { Log } from '../observe/log.ts'
import type { ApiPlan, EndpointPlan, ReactorPlan, SequenceEndpointsPlan } from '../plan/reactor-plan.ts'
import { describeChange } from '../proxy/target/endpoint-change.ts'
import { EndpointTable } from '../proxy/target/endpoint-table.ts'
import type { EndpointChange } from '../proxy/target/endpoint-word.ts'

interface NamedEndpoint {
  /** `orders/1.0.0`, with `:2` for the second of a group; for sandbox keys `orders/1.0.0:sandbox`. */
  readonly name: string
  /** '' for an endpoint of sequences. */
  readonly api: string
  readonly plan: EndpointPlan
}

type OfSequences = Partial<Pick<ReactorPlan, 'sequenceEndpoints'>>

export class EndpointService {
  #endpoints: readonly NamedEndpoint[]
  readonly #states: EndpointTable
  readonly #log: Log
  #checks: HealthChecks | null = null
  #isStopped = false

  constructor(
    { apis, endpoints, sequenceEndpoints = {} }: Pick<ReactorPlan, 'apis' | 'endpoints'> & OfSequences,
    log: Log,
  ) {
    this.#log = log
    this.#states = new EndpointTable(endpoints, 0, monotonicMs)
    this.#endpoints = [...endpointsIn(apis), ...endpointsOfSequences(sequenceEndpoints)]
  }

  /** Replaces all endpoints by those of these APIs and sequences. */
  replace(apis: readonly ApiPlan[], sequenceEndpoints: SequenceEndpointsPlan = {}): void {
    const before = new Set(this.#endpoints.filter(isChecked).map(({ plan }) => plan.slot))
    this.#endpoints = [...endpointsIn(apis), ...endpointsOfSequences(sequenceEndpoints)]
    for (const endpoint of this.#endpoints) {
      const { slot, settings, url } = endpoint.plan
      // Without its check an unhealthy endpoint would stay so.
      if (before.has(slot) && !isChecked(endpoint) && this.#states.isUnhealthy(slot)) {
        this.#logChange(this.#states.healthChanged(slot, settings, true), url, 'it has no health check any more')
      }
    }
  }

  /** Runs the checks of the endpoints that have one, and stops all others. `tlsClients`: the active TLS terms. */
  async runHealthChecks(tlsClients: () => ReactorPlan['tlsClients']): Promise<void> {
    if (this.#checks === null && !this.#endpoints.some(isChecked)) return
    const { HealthChecks: Checks } = await import('./health-checks.ts')
    if (this.#isStopped) return
    this.#checks ??= new Checks(tlsClients, {
      isActive: plan => this.#states.isActive(plan.slot),
      decided: (plan, isHealthy, cause) => {
        this.#logChange(this.#states.healthChanged(plan.slot, plan.settings, isHealthy), plan.url, cause)
      },
    })
    this.#checks.replace(this.#endpoints.filter(isChecked).map(({ plan }) => plan))
  }

  stop(): void {
    this.#isStopped = true
    this.#checks?.stop()
  }

  list(): readonly ListedEndpoint[] {
    return this.#endpoints.map(({ name, api, plan: { slot, url } }) => {
      const { lastBase, lastState, ...status } = this.#states.read(slot)
      return { name, api, url, ...status, lastError: transportCode(lastBase, lastState) }
    })
  }

  /** Status of the endpoint in this slot of the shared table. */
  statusOf(slot: number): Pick<ListedEndpoint, 'state' | 'retryInMs'> {
    return this.#states.read(slot)
  }

  /** Switches the endpoint of this name, or all with this URL, on or off. False: there is none. */
  switch(name: string, isOn: boolean): boolean {
    const found = this.#endpoints.filter(endpoint => endpoint.name === name || endpoint.plan.url === name)
    for (const { plan } of found) {
      this.#logChange(this.#states.switchTo(plan.slot, plan.settings, isOn), plan.url, 'by hand')
    }
    return found.length > 0
  }

  /** Lines for `/metrics`. */
  metrics(): string {
    return renderEndpointMetrics(this.list())
  }

  #logChange(change: EndpointChange | null, url: string, cause: string): void {
    if (change === null) return
    const { level, event, fields } = describeChange(change, url, cause, 0)
    this.#log[level](fields, event)
  }
}

function endpointsIn(apis: readonly ApiPlan[]): readonly NamedEndpoint[] {
  return apis.flatMap(({ name: api, hosts, paths, endpoints, sandbox }) => {
    const path = apiLabel({ hosts, paths })
    return [...named(endpoints, path), ...named(sandbox, `${path}:sandbox`)].map(endpoint => ({ ...endpoint, api }))
  })
}

/** Endpoints of sequences, by their names: `sequence:stock`. Addresses that messages choose have no state. */
function endpointsOfSequences(plans: SequenceEndpointsPlan): readonly NamedEndpoint[] {
  return Object.entries(plans).flatMap(([name, { address }]) => {
    const path = `sequence:${name}`
    if (address.kind === 'dynamic') return []
    const found = address.kind === 'urls' ? named(address.endpoints, path) : [{ name: path, plan: address.endpoint }]
    return found.map(endpoint => ({ ...endpoint, api: '' }))
  })
}

function named({ kind, endpoints }: ApiPlan['endpoints'], path: string): readonly Omit<NamedEndpoint, 'api'>[] {
  return endpoints.map((plan, i) => ({ name: kind === 'single' ? path : `${path}:${i + 1}`, plan }))
}

function isChecked({ plan }: NamedEndpoint): boolean {
  return plan.settings.healthCheck !== null
}
