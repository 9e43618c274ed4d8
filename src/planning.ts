/** From configuration and APIs to one plan per reactor: what listens, where the backends are, what memory is shared. */
import { availableParallelism } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { ApiDefinition } from './config/api-definitions.ts'
import { apiPaths } from './config/api-paths.ts'
import type { Configuration } from './config/catalogue.ts'
import type { ForwardProxies } from './forward-proxies.ts'
import { allocateMetrics } from './observe/metrics.ts'
import { type ApiPlan, CLIENT_ROWS, type EndpointPlan, type ListenerPlan, type ReactorPlan } from './plan.ts'
import type { Route } from './target/route.ts'
import { SharedGauge } from './structure/shared-gauge.ts'
import { EndpointTable } from './target/endpoint-table.ts'
import type { TlsPlans, TlsSources } from './tls/tls-material.ts'

interface PlanningOptions {
  readonly configuration: Configuration
  readonly apis: readonly ApiDefinition[]
  readonly proxies: ForwardProxies
  readonly dataDir: string
  readonly level: ReactorPlan['level']
}

const DEFAULT_PORTS = { 'http:': 80, 'ws:': 80, 'https:': 443, 'wss:': 443 } as const

export class Planning {
  readonly listeners: readonly ListenerPlan[]
  readonly apis: readonly ApiPlan[]
  readonly #options: PlanningOptions
  /** Routes by what makes them one; row 0 of the gauge is that of the clients. */
  readonly #routes = new Map<string, Route>()
  #endpoints = 0

  constructor(options: PlanningOptions) {
    this.#options = options
    this.listeners = planListeners(options.configuration)
    this.apis = options.apis.map(api => this.#planApi(api))
  }

  /** Whether a listener needs certificates. */
  get listensSecured(): boolean {
    return this.listeners.some(({ kind }) => kind === 'https' || kind === 'wss')
  }

  get usesTls(): boolean {
    return this.listensSecured || this.#dialsSecured
  }

  /** What TLS is made of, where it is used. */
  get tlsSources(): TlsSources {
    const { configuration } = this.#options
    const wss = configuration['transport.wss']
    return {
      https: configuration['transport.passthru_https'],
      wss: { location: wss['sender.trust_store.location'], password: wss['sender.trust_store.password'] },
      hostname: configuration.server.hostname,
      listens: this.listensSecured,
    }
  }

  get #dialsSecured(): boolean {
    return [...this.#routes.values()].some(({ secured }) => secured)
  }

  #planApi({ name, context, version, isDefaultVersion, endpoints }: ApiDefinition): ApiPlan {
    return {
      name,
      paths: apiPaths(context, version, isDefaultVersion),
      endpoints: { ...endpoints, endpoints: endpoints.endpoints.map(endpoint => this.#planEndpoint(endpoint)) },
    }
  }

  #planEndpoint({ url: text, settings }: ApiDefinition['endpoints']['endpoints'][number]): EndpointPlan {
    const url = new URL(text)
    const scheme = url.protocol as keyof typeof DEFAULT_PORTS
    const route = this.#planRoute(scheme, url.hostname, url.port === '' ? DEFAULT_PORTS[scheme] : Number(url.port))
    return { row: this.#endpoints++, url: text, route, basePath: url.pathname.replace(/\/+$/, ''), settings }
  }

  #planRoute(scheme: keyof typeof DEFAULT_PORTS, host: string, port: number): Route {
    const key = `${scheme}//${host}:${port}`
    const known = this.#routes.get(key)
    if (known !== undefined) return known
    const secured = scheme === 'https:' || scheme === 'wss:'
    const route: Route = {
      row: this.#routes.size + 1,
      secured,
      host,
      port,
      tlsClient: scheme === 'https:' ? 'default' : scheme === 'wss:' ? 'wss' : '',
      proxy: this.#options.proxies.proxyFor(secured, host),
      connectsThroughProxy: scheme === 'ws:',
    }
    this.#routes.set(key, route)
    return route
  }

  /** `tls`: null where nothing is secured. */
  reactorPlans(tls: TlsPlans | null): ReactorPlan[] {
    const { configuration, dataDir, level } = this.#options
    const http = configuration['transport.passthru_http']
    const https = configuration['transport.passthru_https']
    const { mediation } = configuration
    const { path } = configuration.access_log
    const hasFreePort = this.listeners.some(({ port }) => port === 0)
    // Every listener of a free port would get one of its own.
    const reactors = hasFreePort || !canReusePort() ? 1 : http.reactors || availableParallelism()
    const plan = {
      reactors,
      http,
      accessLog: configuration.access_log,
      accessLogPath: isAbsolute(path) ? path : join(dataDir, path),
      logLevel: configuration.logging.level,
      apis: this.apis,
      level,
      listeners: this.listeners,
      ...this.reactorTls(tls),
      responseMs: mediation['synapse.global_timeout_interval'],
      warnOn500: { plain: http['sender.warnOnHTTP500'], secured: https['sender.warnOnHTTP500'] },
      // The last column is the primary's own.
      metrics: allocateMetrics(reactors + 1),
      gauge: SharedGauge.allocate(reactors, 1 + this.#routes.size),
      endpoints: EndpointTable.allocate(this.#endpoints, reactors),
      clients: SharedGauge.allocate(reactors, http.max_connections_per_client < 0 ? 1 : CLIENT_ROWS),
      clientSeed: Math.floor(Math.random() * 2 ** 31),
      heartbeats: new SharedArrayBuffer(reactors * Int32Array.BYTES_PER_ELEMENT),
    }
    return Array.from({ length: reactors }, (_, reactor) => ({ ...plan, reactor }))
  }

  /** What of the keys and terms the reactors need. */
  reactorTls(tls: TlsPlans | null): Pick<ReactorPlan, 'tlsServer' | 'tlsClients'> {
    if (tls === null) return { tlsServer: null, tlsClients: {} }
    const clients = tls.clients.map(({ match, plan }) => [match, plan] as const)
    return {
      tlsServer: tls.server,
      tlsClients: this.#dialsSecured ? Object.fromEntries([...clients, ['wss', tls.wss]]) : {},
    }
  }
}

/** Systems on which Node's `reusePort` spreads connections over listeners. */
function canReusePort(): boolean {
  return process.platform === 'linux'
}

function planListeners(configuration: Configuration): readonly ListenerPlan[] {
  const sections = [
    ['http', configuration['transport.passthru_http']],
    ['https', configuration['transport.passthru_https']],
    ['ws', configuration['transport.ws']],
    ['wss', configuration['transport.wss']],
  ] as const
  return sections
    .filter(([, section]) => section['listener.enable'])
    .map(([kind, section]) => {
      const port = section['listener.parameters.port']
      const withOffset = port === 0 ? 0 : port + configuration.server.offset
      return { kind, host: section['listener.parameters.bind_address'], port: withOffset }
    })
}
