/**
 * Active health checks, made by the primary for those endpoints that have one: so many failures in a row, and no
 * request meets the endpoint; so many successes in a row, and it is active again. Each check is a GET on a connection
 * of its own, through the forward proxy where there is one. Loaded only where there is a check: Node's HTTP client is
 * not free.
 */
import { type IncomingMessage, Agent as PlainAgent, request as requestPlain } from 'node:http'
import { Agent as SecuredAgent, request as requestSecured } from 'node:https'
import type { HealthCheckSettings } from '../config/endpoint-settings.ts'
import type { EndpointPlan, ReactorPlan } from '../plan.ts'
import type { Route } from '../target/route.ts'
import { ClientContext } from '../socket/tls-contexts.ts'
import { type ForwardProxy, nameOfProxy, withoutCredentials } from '../target/route.ts'

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
  readonly #agent: PlainAgent | false
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
    this.#agent = plan.route.proxy === null ? false : agentFor(plan.route.secured, plan.route.proxy, settings.timeoutMs)
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
    const { route } = this.#plan
    const limit = AbortSignal.any([this.#aborted.signal, AbortSignal.timeout(timeoutMs)])
    const { promise, resolve } = Promise.withResolvers<string>()
    const answered = (response: IncomingMessage): void => {
      // Only the status is of interest.
      response.destroy()
      const { statusCode = 0 } = response
      if (statusCode >= 200 && statusCode < 400) resolve('')
      else if (statusCode === 407 && route.proxy !== null && !route.secured) resolve(withoutCredentials(route.proxy))
      else resolve(`its health check was answered ${statusCode}`)
    }
    const late = `no answer within ${timeoutMs} ms`
    // A request that still waits for its tunnel says nothing when it is aborted.
    limit.addEventListener('abort', () => resolve(late))
    try {
      const options = {
        ...placeOf(route),
        path,
        agent: this.#agent,
        signal: limit,
        headers: { 'user-agent': 'Sluice' },
      }
      const request = route.secured
        ? requestSecured({ ...options, ...this.#terms(route) }, answered)
        : requestPlain(options, answered)
      request.on('error', (error: NodeJS.ErrnoException) => {
        resolve(limit.aborted ? late : causeOf(error, route.proxy))
      })
      request.end()
    } catch (error) {
      resolve(String(error))
    }
    return promise
  }

  /** The same as for requests. */
  #terms({ host, port, tlsClient }: Route): object {
    const clients = this.#tlsClients()
    const plan = clients[`${host}:${port}`] ?? clients[tlsClient]
    if (plan === undefined) throw new Error(`no TLS terms for ${host}:${port}`)
    if (this.#secured?.plan !== plan) this.#secured = new ClientContext(plan)
    const secureContext = this.#secured.context
    return plan.hostname === 'none' ? { secureContext, checkServerIdentity: () => undefined } : { secureContext }
  }
}

/** An agent that keeps no connections and takes all of them through the proxy: absolute-form, or CONNECT for TLS. */
function agentFor(secured: boolean, { host, port, authorization }: ForwardProxy, timeoutMs: number): PlainAgent {
  const url = new URL(`http://${host.includes(':') ? `[${host}]` : host}:${port}`)
  // RFC 7617 2: the name ends at the first colon. Of the agent's URL both are decoded again.
  const credentials = Buffer.from(authorization.replace(/^Basic /, ''), 'base64').toString()
  const colon = credentials.indexOf(':')
  if (colon >= 0) {
    url.username = encodeURIComponent(credentials.slice(0, colon))
    url.password = encodeURIComponent(credentials.slice(colon + 1))
  }
  // Nor does aborting end a CONNECT: the agent's own limit does, after the request's.
  return secured
    ? new SecuredAgent({ proxyEnv: { HTTPS_PROXY: url.href }, timeout: 2 * timeoutMs })
    : new PlainAgent({ proxyEnv: { HTTP_PROXY: url.href } })
}

function causeOf({ code, message, syscall }: NodeJS.ErrnoException, proxy: ForwardProxy | null): string {
  // Its message names the proxy and what it answered, without credentials.
  if (code === 'ERR_PROXY_TUNNEL') return message
  const cause = code ?? message
  return proxy !== null && (syscall === 'connect' || syscall === 'getaddrinfo')
    ? `${nameOfProxy(proxy)}: ${cause}`
    : cause
}

/** Without the brackets of an IPv6 address. */
function placeOf({ host, port }: Route): { readonly host: string; readonly port: number } {
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port }
}

export class HealthChecks {
  readonly #tlsClients: () => ReactorPlan['tlsClients']
  readonly #watcher: CheckWatcher
  /** By row of the endpoint, with what each was made of. */
  readonly #checks = new Map<number, { readonly plan: string; readonly check: HealthCheck }>()

  constructor(tlsClients: () => ReactorPlan['tlsClients'], watcher: CheckWatcher) {
    this.#tlsClients = tlsClients
    this.#watcher = watcher
  }

  /** Checks these endpoints and no others. What has been counted of those that have not changed goes on. */
  put(plans: readonly EndpointPlan[]): void {
    const checked = plans.filter(({ settings }) => settings.healthCheck !== null)
    const wanted = new Map(checked.map(plan => [plan.row, JSON.stringify(plan)]))
    for (const [row, { plan, check }] of this.#checks) {
      if (wanted.get(row) === plan) continue
      check.stop()
      this.#checks.delete(row)
    }
    for (const plan of checked) {
      if (this.#checks.has(plan.row)) continue
      const check = new HealthCheck(plan, plan.settings.healthCheck!, this.#tlsClients, this.#watcher)
      this.#checks.set(plan.row, { plan: wanted.get(plan.row)!, check })
      void check.run()
    }
  }

  stop(): void {
    for (const { check } of this.#checks.values()) check.stop()
  }
}
