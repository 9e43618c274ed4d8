/**
 * Active health checks: after so many failures in a slot an endpoint gets no requests, after so many successes in a
 * slot it is active again. A check is a GET on its own connection, through the forward proxy where there is one. Loaded
 * only where an endpoint has a check, because Node's HTTP client takes memory.
 */
import { type IncomingMessage, Agent as PlainAgent, request as requestPlain } from 'node:http'
import { Agent as SecuredAgent, request as requestSecured } from 'node:https'
import { connect, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { proxyHeader } from '../socket/proxy-header.ts'
import type { HealthCheckSettings } from '../apis/api-definition.ts'
import type { EndpointPlan, ReactorPlan } from '../plan/reactor-plan.ts'
import { type ForwardProxy, proxyName, proxyRefusal, type Route } from '../proxy/target/route.ts'
import { lacksDescriptor } from '../socket/byte-socket.ts'
import { ClientContext } from '../socket/tls-contexts.ts'

interface CheckWatcher {
  isActive(plan: EndpointPlan): boolean
  /** Enough checks in a slot have agreed. */
  decided(plan: EndpointPlan, isHealthy: boolean, cause: string): void
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
    const cause = await this.#check()
    if (this.#aborted.signal.aborted) return
    if (cause !== null) this.#count(cause)
    this.#timer = setTimeout(() => void this.run(), this.#settings.intervalMs)
  }

  stop(): void {
    this.#aborted.abort()
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  /** `cause`: why the check has failed; '' where it has passed. */
  #count(cause: string): void {
    const { unhealthyAfter, healthyAfter } = this.#settings
    if (cause !== '') {
      this.#successes = 0
      if (++this.#failures >= unhealthyAfter) this.#watcher.decided(this.#plan, false, cause)
      return
    }
    this.#failures = 0
    // Successes of an active endpoint do not count towards its return.
    this.#successes = this.#watcher.isActive(this.#plan) ? 0 : this.#successes + 1
    if (this.#successes >= healthyAfter) this.#watcher.decided(this.#plan, true, 'its health check passes')
  }

  /** Resolves with why the check has failed; '' where it has passed, null where it could not be made. */
  async #check(): Promise<string | null> {
    const { path, timeoutMs } = this.#settings
    const { route } = this.#plan
    const limit = AbortSignal.any([this.#aborted.signal, AbortSignal.timeout(timeoutMs)])
    const { promise, resolve } = Promise.withResolvers<string | null>()
    const answered = (response: IncomingMessage): void => {
      response.destroy()
      const { statusCode = 0 } = response
      if (statusCode >= 200 && statusCode < 400) resolve('')
      else if (statusCode === 407 && route.proxy !== null && !route.secured)
        resolve(proxyRefusal(route.proxy, 407).cause)
      else resolve(`its health check got status ${statusCode}`)
    }
    const late = `its health check got no response within ${timeoutMs} ms`
    // A request that waits for its tunnel reports no error when it is aborted.
    limit.addEventListener('abort', () => resolve(late))
    try {
      const options = {
        ...addressOf(route),
        path,
        ...(route.sendsProxyHeader === true && route.proxy === null
          ? { createConnection: connectAsProxy }
          : { agent: this.#agent }),
        signal: limit,
        headers: { 'user-agent': 'Sluice' },
      }
      const request = route.secured
        ? requestSecured({ ...options, ...this.#tlsOptions(route) }, answered)
        : requestPlain(options, answered)
      request.on('error', (error: NodeJS.ErrnoException) => {
        // Without a free descriptor nothing is known of the endpoint.
        if (lacksDescriptor(error.code ?? '')) resolve(null)
        else resolve(limit.aborted ? late : causeOf(error, route.proxy))
      })
      request.end()
    } catch (error) {
      resolve(String(error))
    }
    return promise
  }

  /** TLS as requests to the endpoint use it. */
  #tlsOptions({ host, port, tlsClient }: Route): object {
    const clients = this.#tlsClients()
    const plan = clients[`${host}:${port}`] ?? clients[tlsClient]
    if (plan === undefined) throw new Error(`no TLS settings for ${host}:${port}`)
    if (this.#secured?.plan !== plan) this.#secured = new ClientContext(plan)
    const secureContext = this.#secured.context
    return plan.hostname === 'none' ? { secureContext, checkServerIdentity: () => undefined } : { secureContext }
  }
}

/** A check is the gateway's own: its PROXY header is local. */
function connectAsProxy(given: object): Socket {
  const { host, port, secureContext, ...options } = given as ConnectionOptions
  const socket = connect({ host: host!, port: port! })
  socket.write(proxyHeader(null))
  if (secureContext === undefined) return socket
  return connectTls({ ...options, secureContext, host, socket, ...(isIP(host!) === 0 ? { servername: host } : {}) })
}

/** An agent without keep-alive whose requests go through the proxy: in absolute-form, or by CONNECT for TLS. */
function agentFor(secured: boolean, { host, port, authorization }: ForwardProxy, timeoutMs: number): PlainAgent {
  const url = new URL(`http://${host.includes(':') ? `[${host}]` : host}:${port}`)
  // RFC 7617 2: the name ends at the first colon. The agent percent-decodes name and password of its URL.
  const credentials = Buffer.from(authorization.replace(/^Basic /, ''), 'base64').toString()
  const colon = credentials.indexOf(':')
  if (colon >= 0) {
    url.username = encodeURIComponent(credentials.slice(0, colon))
    url.password = encodeURIComponent(credentials.slice(colon + 1))
  }
  // Aborting does not end a CONNECT; the agent's own time-out does, after that of the request.
  return secured
    ? new SecuredAgent({ proxyEnv: { HTTPS_PROXY: url.href }, timeout: 2 * timeoutMs })
    : new PlainAgent({ proxyEnv: { HTTP_PROXY: url.href } })
}

function causeOf({ code, message, syscall }: NodeJS.ErrnoException, proxy: ForwardProxy | null): string {
  // The message names the proxy and its response, without credentials.
  if (code === 'ERR_PROXY_TUNNEL') return message
  const cause = code ?? message
  return proxy !== null && (syscall === 'connect' || syscall === 'getaddrinfo')
    ? `${proxyName(proxy)}: ${cause}`
    : cause
}

/** `http.request` takes an IPv6 address without brackets. */
function addressOf({ host, port }: Route): { readonly host: string; readonly port: number } {
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port }
}

export class HealthChecks {
  readonly #tlsClients: () => ReactorPlan['tlsClients']
  readonly #watcher: CheckWatcher
  /** By slot of the endpoint, each with its plan as text. */
  readonly #checks = new Map<number, { readonly plan: string; readonly check: HealthCheck }>()

  constructor(tlsClients: () => ReactorPlan['tlsClients'], watcher: CheckWatcher) {
    this.#tlsClients = tlsClients
    this.#watcher = watcher
  }

  /** Checks these endpoints and no others. Counts of unchanged endpoints go on. */
  replace(plans: readonly EndpointPlan[]): void {
    const checked = plans.filter(({ settings }) => settings.healthCheck !== null)
    const wanted = new Map(checked.map(plan => [plan.slot, JSON.stringify(plan)]))
    for (const [slot, { plan, check }] of this.#checks) {
      if (wanted.get(slot) === plan) continue
      check.stop()
      this.#checks.delete(slot)
    }
    for (const plan of checked) {
      if (this.#checks.has(plan.slot)) continue
      const check = new HealthCheck(plan, plan.settings.healthCheck!, this.#tlsClients, this.#watcher)
      this.#checks.set(plan.slot, { plan: wanted.get(plan.slot)!, check })
      void check.run()
    }
  }

  stop(): void {
    for (const { check } of this.#checks.values()) check.stop()
  }
}
