/**
 * Active health checks, made by the primary for those endpoints that have one: so many failures in a row, and no
 * request meets the endpoint; so many successes in a row, and it is active again. Each check is a GET on a connection
 * of its own, straight to the backend. Loaded only where there is a check: Node's HTTP client is not free.
 */
import { type IncomingMessage, request as requestPlain } from 'node:http'
import { request as requestSecured } from 'node:https'
import type { HealthCheckSettings } from './config/endpoint-settings.ts'
import type { EndpointPlan, ReactorPlan, RoutePlan } from './plan.ts'
import { ClientContext } from './socket/tls-contexts.ts'

interface CheckWatcher {
  isActive(plan: EndpointPlan): boolean
  /** So many checks in a row said so. */
  found(plan: EndpointPlan, isHealthy: boolean, cause: string): void
}

/** The check of one endpoint. */
class HealthCheck {
  readonly #plan: EndpointPlan
  readonly #settings: HealthCheckSettings
  readonly #tlsClients: () => ReactorPlan['tlsClients']
  readonly #watcher: CheckWatcher
  readonly #aborted = new AbortController()
  #timer: NodeJS.Timeout | null = null
  #secured: ClientContext | null = null
  #failures = 0
  #successes = 0

  constructor(
    plan: EndpointPlan,
    settings: HealthCheckSettings,
    tlsClients: () => ReactorPlan['tlsClients'],
    watcher: CheckWatcher,
  ) {
    this.#plan = plan
    this.#settings = settings
    this.#tlsClients = tlsClients
    this.#watcher = watcher
  }

  async run(): Promise<void> {
    const cause = await this.#ask()
    if (this.#aborted.signal.aborted) return
    this.#count(cause)
    this.#timer = setTimeout(() => void this.run(), this.#settings.intervalMs)
  }

  stop(): void {
    this.#aborted.abort()
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  /** `cause`: why it is not well, '' where it is. */
  #count(cause: string): void {
    const { unhealthyAfter, healthyAfter } = this.#settings
    if (cause !== '') {
      this.#successes = 0
      if (++this.#failures >= unhealthyAfter) this.#watcher.found(this.#plan, false, cause)
      return
    }
    this.#failures = 0
    // An active endpoint has nothing to be brought back from: what it passed before does not count.
    this.#successes = this.#watcher.isActive(this.#plan) ? 0 : this.#successes + 1
    if (this.#successes >= healthyAfter) this.#watcher.found(this.#plan, true, 'its health check passes')
  }

  /** Why it is not well; '' where it is. */
  async #ask(): Promise<string> {
    const { path, timeoutMs } = this.#settings
    const limit = AbortSignal.any([this.#aborted.signal, AbortSignal.timeout(timeoutMs)])
    const { promise, resolve } = Promise.withResolvers<string>()
    const answered = (response: IncomingMessage): void => {
      // Only the status is of interest.
      response.destroy()
      const { statusCode = 0 } = response
      resolve(statusCode >= 200 && statusCode < 400 ? '' : `its health check was answered ${statusCode}`)
    }
    try {
      const { route } = this.#plan
      const options = { ...placeOf(route), path, agent: false, signal: limit, headers: { 'user-agent': 'Sluice' } }
      const request = route.secured
        ? requestSecured({ ...options, ...this.#terms(route) }, answered)
        : requestPlain(options, answered)
      request.on('error', (error: NodeJS.ErrnoException) => {
        resolve(limit.aborted ? `no answer within ${timeoutMs} ms` : (error.code ?? error.message))
      })
      request.end()
    } catch (error) {
      resolve(String(error))
    }
    return promise
  }

  /** The same as for requests. */
  #terms({ host, port, tlsClient }: RoutePlan): object {
    const clients = this.#tlsClients()
    const plan = clients[`${host}:${port}`] ?? clients[tlsClient]
    if (plan === undefined) throw new Error(`no TLS terms for ${host}:${port}`)
    if (this.#secured?.plan !== plan) this.#secured = new ClientContext(plan)
    const secureContext = this.#secured.context
    return plan.hostname === 'none' ? { secureContext, checkServerIdentity: () => undefined } : { secureContext }
  }
}

/** Without the brackets of an IPv6 address. */
function placeOf({ host, port }: RoutePlan): { readonly host: string; readonly port: number } {
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port }
}

export class HealthChecks {
  readonly #checks: readonly HealthCheck[]

  private constructor(checks: readonly HealthCheck[]) {
    this.#checks = checks
  }

  static start(
    plans: readonly EndpointPlan[],
    tlsClients: () => ReactorPlan['tlsClients'],
    watcher: CheckWatcher,
  ): HealthChecks {
    const checks = plans.flatMap(plan => {
      const { healthCheck } = plan.settings
      return healthCheck === null ? [] : [new HealthCheck(plan, healthCheck, tlsClients, watcher)]
    })
    for (const check of checks) void check.run()
    return new HealthChecks(checks)
  }

  stop(): void {
    for (const check of this.#checks) check.stop()
  }
}
