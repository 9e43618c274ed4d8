/**
 * One reactor: an event loop with client connections, backend pools, timers and counters. The constructor builds all
 * parts of the hot path from a plan; a reload changes them in place. `client-connections.ts` accepts connections;
 * `proxy/pipeline.ts` has the order of the phases of a request. Runs in a worker thread (reactor-thread.ts), and in
 * tests in the main thread.
 */
import type { Failure } from '../proxy/exchange/contract.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import type { ConnectionContexts } from '../proxy/exchange/connection-context.ts'
import type { BackendTunnelPeer } from '../proxy/exchange/tunnel-peer.ts'
import { corsPolicyOf } from '../filters/cors-policy.ts'
import type { Head } from '../http1/head.ts'
import { arena } from '../http1/llhttp.ts'
import { RepeatedSections } from '../http1/repeated-sections.ts'
import { CompiledSequences } from '../mediation/compiled-sequences.ts'
import { FlowStatistics } from '../mediation/flow-statistics.ts'
import { ApiMetrics } from '../observe/api-metrics.ts'
import { METRIC, MetricsColumn, sizeCell, statusCell } from '../observe/metrics.ts'
import type { CacheWatch } from '../observe/cache-metrics.ts'
import { ThreadWatch } from '../observe/thread-metrics.ts'
import type { ApiChanges, ApiPlan, LivePlan, ReactorPlan } from '../plan/reactor-plan.ts'
import { ClientConnections } from './client-connections.ts'
import { DeployedApis } from './deployed-apis.ts'
import { FaultResponder, requestFieldsOf } from '../faults/fault-responder.ts'
import { CorsMediation } from '../proxy/cors-mediation.ts'
import { WebSocketMediation } from '../proxy/websocket-mediation.ts'
import { ReactorAuth } from '../auth/reactor-auth.ts'
import { CounterTable } from '../throttle/counter-table.ts'
import { Throttle } from '../throttle/throttle.ts'
import { missingDescriptor } from './listener.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { cacheWatchOf } from './reactor-caches.ts'
import { ReactorTls } from './reactor-tls.ts'
import { isMediated } from './mediation-loading.ts'
import type { ReactorMediation } from './reactor-mediation.ts'
import type { LoadedParts, ReactorOptions } from './reactor-options.ts'
import { ClusterReports } from './cluster-reports.ts'
import { SharedCounting } from './shared-counting.ts'
import { ReactorInspector } from './reactor-inspector.ts'
import { recordTimelines } from '../protocol/timelines.ts'
import { newContexts, updateContexts } from './contexts.ts'
import { DnsCache } from '../socket/dns-cache.ts'
import type { SocketTable } from '../plan/listening-sockets.ts'
import { ResourceCache } from '../route/resource-cache.ts'
import { Router } from '../route/router.ts'
import type { ConnectionCallbacks } from '../proxy/source/connection-callbacks.ts'
import type { SourceConnection } from '../proxy/source/source-connection.ts'
import { EventClock } from '../runtime/event-clock.ts'
import { OpenObjects } from '../runtime/open-objects.ts'
import { SharedGauge } from '../runtime/shared-gauge.ts'
import { EndpointTable } from '../proxy/target/endpoint-table.ts'
import type { PoolContext } from '../proxy/target/connection-pool.ts'
import { StrippedRequestFields } from '../proxy/target/stripped-request-fields.ts'
import { insteadOfTunnel, type Pipeline, refuse, refuseAtOnce, runPipeline } from '../proxy/pipeline.ts'
import { dateLine } from './settings.ts'

/** Time between two ticks in milliseconds: resolution of all deadlines. */
const TICK_MS = 100

export class Reactor implements ConnectionCallbacks {
  readonly inspector: ReactorInspector
  readonly #plan: ReactorPlan
  readonly #options: ReactorOptions
  readonly #contexts: ConnectionContexts
  readonly #pipeline: Pipeline
  readonly #metrics: MetricsColumn
  readonly #apiMetrics: ApiMetrics
  readonly #threadWatch: ThreadWatch
  readonly #cacheWatch: CacheWatch
  readonly #auth: ReactorAuth
  readonly #throttle: Throttle
  readonly #sharedCounting: SharedCounting
  readonly #clusterReports: ClusterReports
  readonly #clients: ClientConnections
  readonly #dns: DnsCache
  /** Shared by the pools of backend connections. */
  readonly #pools: PoolContext
  readonly #apis: DeployedApis
  readonly #resourceCache: ResourceCache
  readonly #sequences: CompiledSequences
  readonly #endpoints: EndpointTable
  readonly #heartbeats: Int32Array
  /** Null until an API needs it. */
  #mediation: ReactorMediation | null = null
  readonly #statistics: FlowStatistics | null
  readonly #tls: ReactorTls
  #timer: NodeJS.Timeout | null = null
  /** Monotonic milliseconds at the last tick. */
  #coarseNow = performance.now()
  #nextSecondMs = 0

  constructor(plan: ReactorPlan, options: ReactorOptions) {
    this.#plan = plan
    this.#options = options
    this.#metrics = new MetricsColumn(plan.metrics, plan.reactor)
    this.#apiMetrics = new ApiMetrics(plan.apiMetrics, plan.reactor)
    this.#threadWatch = new ThreadWatch(this.#metrics, TICK_MS)
    this.#heartbeats = new Int32Array(plan.heartbeats)
    this.inspector = new ReactorInspector(plan, lister => {
      this.#clients.show(lister)
      for (const connection of this.#pools.connections) connection.show(lister)
    })
    const nowMs = () => this.#coarseNow
    this.#auth = new ReactorAuth(plan, { ...options, metrics: this.#metrics, nowMs })
    this.#throttle = new Throttle({
      auth: this.#auth,
      table: new CounterTable(plan.counters, options.wallMs ?? Date.now, plan.reactor + 1),
      shared: null,
      metrics: this.#metrics,
      report: options.report,
      wallMs: options.wallMs ?? Date.now,
    })
    const { report, wallMs = Date.now } = options
    this.#sharedCounting = new SharedCounting(this.#throttle, { report, metrics: this.#metrics, wallMs })
    this.#clusterReports = new ClusterReports(this.#throttle, this.#metrics)
    this.#clusterReports.use(plan.throttling.reportMs)
    this.#contexts = this.#newContexts()
    const { plain } = this.#contexts
    const gauge = new SharedGauge(plan.gauge, plan.reactors, plan.reactor)
    this.#tls = new ReactorTls(options.tls, plan)
    this.#clients = new ClientConnections(plan, {
      ...{ options, contexts: this.#contexts, metrics: this.#metrics, gauge, tls: this.#tls.server, callbacks: this },
      ended: () => this.#endDrain(),
    })
    this.#dns = new DnsCache(plan.http['dns.cache_seconds'])
    this.#pools = this.#newPoolContext(gauge)
    this.#resourceCache = new ResourceCache(this.#metrics, nowMs)
    this.#resourceCache.setLifetime(plan.resourceCacheMs)
    this.#endpoints = new EndpointTable(plan.endpoints, plan.reactor, monotonicMs)
    const chainOf = (api: ApiPlan) => options.buildFilterChain(api, this.#auth, this.#throttle)
    const { statistics, hostName } = plan
    this.#statistics = statistics === null ? null : new FlowStatistics(statistics, options.report)
    this.#sequences = new CompiledSequences(plan.faults.sequences, options.report, null, this.#statistics?.counter)
    if (options.mediation !== null) this.#mediation = this.#newMediation(options.mediation, plan)
    const mediationFor = (api: ApiPlan) => this.#mediationFor(api)
    this.#apis = new DeployedApis(chainOf, mediationFor, this.#pools, this.#endpoints, this.#resourceCache, hostName)
    this.#apis.prepare({ removed: [], deployed: plan.apis })()
    this.#cacheWatch = cacheWatchOf(this.#metrics, {
      ...{ auth: this.#auth, pools: this.#pools, dns: this.#dns, tls: this.#tls },
      fields: () => this.#clients.fieldsUsage(),
      resources: this.#resourceCache,
      mediation: () => this.#mediation,
    })
    const cors = corsPolicyOf(plan.cors)
    const router = new Router(this.#apis.table, arena.bytes, plain.settings)
    const { correlationField } = plain.settings
    const faults = new FaultResponder(plan.faults, this.#sequences, correlationField, options.report, nowMs)
    plain.requestKinds.capture([...requestFieldsOf(plan.faults), ...plan.accessLog.fields])
    plain.requestKinds.strip([plan.auth.backendJwt.field])
    const corsMediation = new CorsMediation(plan.faults, this.#sequences, options.report)
    const webSocketMediation = new WebSocketMediation(plan, this.#sequences, options.report)
    const onError = (exchange: Exchange, error: unknown) => this.#reportBug(exchange, error)
    const readinessPath = plan.http.readiness_path
    // Where another process has taken over, the node is ready.
    const isReady = () => !plain.isDraining || plain.keepsIdle
    const parts = { router, cors, faults, corsMediation, webSocketMediation, onError }
    this.#pipeline = { ...parts, readinessPath, isReady }
  }

  #newMediation(Mediation: typeof ReactorMediation, plan: ReactorPlan): ReactorMediation {
    const { report, worker, workerEntry, workTimes } = this.#options
    return new Mediation(plan, {
      report,
      metrics: this.#metrics,
      contexts: this.#contexts,
      pools: this.#pools,
      endpoints: this.#endpoints,
      sequences: this.#sequences,
      statistics: this.#statistics,
      tokensOf: key => this.#auth.backend.tokenFor(key),
      pipeline: () => this.#pipeline,
      throttle: () => this.#throttle,
      traces: this.#options.traces,
      ...{ worker, workerEntry, workTimes },
      backgroundOver: () => this.#endDrain(),
    })
  }

  /** Null for an API whose messages pass as they are. */
  #mediationFor(api: ApiPlan): ReactorMediation | null {
    if (this.#mediation === null && isMediated(api)) throw new Error('the modules of mediation are not loaded')
    return this.#mediation
  }

  #newPoolContext(gauge: SharedGauge): PoolContext {
    return {
      contexts: this.#contexts,
      network: { dialer: this.#options.level, dns: this.#dns, tlsFor: route => this.#tls.clientFor(route) },
      gauge,
      reactors: this.#plan.reactors,
      connectionsMax: this.#plan.connectionLimits.backends,
      pools: new Set(),
      stripped: {
        plain: new StrippedRequestFields(this.#contexts.plain.settings),
        secured: new StrippedRequestFields(this.#contexts.secured.settings),
      },
      connections: new OpenObjects(),
      repeatedHeads: new RepeatedSections(),
      warnOn500: this.#plan.warnOn500,
      nextId: 1,
    }
  }

  #newContexts(): ConnectionContexts {
    const clock = new EventClock()
    recordTimelines(this.#plan.recorder.size > 0, clock)
    const { tunnels } = this.#auth
    const common = { report: this.#options.report, metrics: this.#metrics, tunnels, dateLine: dateLine() }
    return newContexts(this.#plan, { ...common, clock, now: clock.now }, TICK_MS)
  }

  // ---- start, reload, end -----------------------------------------------------------------------------------------

  /** Starts listening; resolves with the ports, in the order of the listeners. */
  async start(): Promise<readonly number[]> {
    this.#timer = setInterval(() => this.#tick(), TICK_MS)
    await this.#sharedCounting.use(this.#plan.redis)
    return this.#clients.listen()
  }

  /**
   * Applies a reload; open connections and pending exchanges go on. Throws, and changes nothing, if a part cannot be
   * built.
   */
  deploy(live: LivePlan, apis: ApiChanges, { tls, validator, mediation }: LoadedParts): void {
    const applyClients = this.#clients.prepare(live)
    if (mediation !== null) this.#mediation ??= this.#newMediation(mediation, { ...this.#plan, ...live, apis: [] })
    const applyApis = this.#apis.prepare(apis)
    const applySequences = this.#sequences.prepare(live.faults.sequences)
    const applyMediation = this.#mediation?.prepare(live, apis)
    const hasNewClientTls = this.#tls.update(tls, live)
    // From here on nothing throws.
    applyApis()
    applySequences()
    applyMediation?.()
    this.#pipeline.faults.update(live.faults)
    this.#pipeline.corsMediation.update(live.faults)
    this.#pipeline.webSocketMediation.update(live)
    const { plain, secured } = this.#contexts
    plain.requestKinds.capture([...requestFieldsOf(live.faults), ...this.#plan.accessLog.fields])
    plain.requestKinds.strip([live.auth.backendJwt.field])
    this.#pipeline.cors = corsPolicyOf(live.cors)
    this.#pipeline.readinessPath = live.http.readiness_path
    const oldKeepAliveMs = { plain: plain.settings.targetKeepAliveMs, secured: secured.settings.targetKeepAliveMs }
    this.#updateSettings(live)
    applyClients()
    this.#auth.updatePlan(live.auth, validator)
    void this.#sharedCounting.use(live.redis)
    this.#clusterReports.use(live.throttling.reportMs)
    for (const pool of this.#pools.pools) {
      const { secured: isSecured } = pool.route
      const { closesTargets, targetKeepAliveMs } = pool.context.settings
      const oldMs = oldKeepAliveMs[isSecured ? 'secured' : 'plain']
      pool.inspector.update(live.warnOn500)
      pool.closeExcess()
      // Open connections have the old TLS terms, or would be kept for longer than the new setting allows (D62).
      const isOutdated = (hasNewClientTls && isSecured) || closesTargets || targetKeepAliveMs < oldMs
      if (isOutdated) pool.expireConnections()
    }
  }

  /** Open connections read the new values from the same objects. */
  #updateSettings(live: LivePlan): void {
    const { http, resourceCacheMs, warnOn500 } = live
    updateContexts(this.#contexts, live)
    this.#pools.stripped.plain.update()
    this.#pools.stripped.secured.update()
    this.#pools.warnOn500 = warnOn500
    this.inspector.recorder.update(live.recorder)
    this.#dns.setTtl(http['dns.cache_seconds'])
    this.#resourceCache.setLifetime(resourceCacheMs)
  }

  /** The listening sockets by name, for another process. */
  get sockets(): SocketTable {
    return this.#clients.sockets
  }

  /**
   * Accepts no further connection; pending exchanges are finished and their connections closed. `keepsIdle`: idle
   * connections of clients are closed behind their next response, which says so.
   */
  drain(keepsIdle = false): void {
    this.#setDraining(keepsIdle)
    void this.stopWork().then(() => this.#endDrain())
    for (const pool of this.#pools.pools) pool.closeIdle()
    if (!keepsIdle) this.#clients.closeIdle()
    // Connections that the kernel has accepted already are still served, once.
    setTimeout(() => {
      this.stopListening()
      this.#endDrain()
    }, TICK_MS)
  }

  #setDraining(keepsIdle: boolean): void {
    for (const context of [this.#contexts.plain, this.#contexts.secured]) {
      context.isDraining = true
      context.keepsIdle = keepsIdle
    }
  }

  stopListening(): void {
    this.#clients.stopListening()
  }

  /** Work of mounted APIs beside requests: no job begins any more. Resolves once those that run have ended. */
  async stopWork(): Promise<void> {
    await this.#mediation?.stopWork()
  }

  /** Aborts every exchange. */
  cutOff(): void {
    this.#mediation?.giveUpWork()
    this.#setDraining(false)
    this.#clients.cutOff()
    this.#endDrain()
  }

  /** Closes every socket and stops every timer, after `drain` or `cutOff`. */
  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    this.stopListening()
    this.cutOff()
    for (const pool of this.#pools.pools) pool.closeIdle()
    this.#auth.stop()
    this.#sharedCounting.close()
    this.#clusterReports.close()
    this.#mediation?.close()
    this.#statistics?.flush()
    this.#options.accessLog?.flush()
    this.#options.analytics?.flush()
    this.#options.traces?.flush()
  }

  #endDrain(): void {
    const isWorking = this.#mediation !== null && !this.#mediation.isWorkOver
    // Without its timer the reactor has stopped already.
    if (!this.#contexts.plain.isDraining || this.#timer === null) return
    if (!this.#clients.isListening && this.#clients.size === 0 && !isWorking) this.#options.drained()
  }

  #tick(): void {
    this.#coarseNow = performance.now()
    this.#heartbeats[this.#plan.reactor]!++
    this.#threadWatch.tick(this.#coarseNow)
    this.#cacheWatch.tick(this.#coarseNow)
    if (this.#coarseNow >= this.#nextSecondMs) {
      this.#nextSecondMs = this.#coarseNow + 1000 - (Date.now() % 1000)
      const line = dateLine()
      this.#contexts.plain.dateLine = line
      this.#contexts.secured.dateLine = line
    }
    // Both contexts have the same wheel.
    this.#contexts.plain.wheel.advance()
    this.#pauseWithoutDescriptor()
    this.#auth.tick()
    this.#options.accessLog?.flush()
    this.#options.analytics?.flush()
    this.#options.traces?.tick()
  }

  #pauseWithoutDescriptor(): void {
    const code = missingDescriptor()
    if (code === '') return
    const paused = this.#clients.pause()
    if (paused === 0) return
    this.#metrics.add(METRIC.acceptPauses, paused)
    const CAUSE_OF_ERROR = `no descriptor is left for a connection (${code}, ulimit -n)`
    this.#options.report('error', 'accepting paused', { CAUSE_OF_ERROR })
  }

  // ---- callbacks of client connections ----------------------------------------------------------------------------

  process(exchange: Exchange): Promise<() => void> | undefined {
    return runPipeline(exchange, this.#pipeline)
  }

  refuse(exchange: Exchange, outcome: Parameters<ConnectionCallbacks['refuse']>[1], failure: Failure | null): void {
    // A client that breaks the protocol, or is late, gets its answer before another byte of it is read.
    if (failure === null) refuseAtOnce(exchange, this.#pipeline, outcome, null)
    else refuse(exchange, this.#pipeline, outcome, failure)
  }

  insteadOfTunnel(exchange: Exchange, head: Head, kind: BackendTunnelPeer['kind']): (() => void) | null {
    return insteadOfTunnel(exchange, head, kind, this.#pipeline)
  }

  /** Counts and logs an exchange that is over. */
  exchangeDone(exchange: Exchange): void {
    const metrics = this.#metrics
    exchange.mediation?.ended()
    exchange.handlers?.ended()
    metrics.add(statusCell(exchange.status), 1)
    metrics.add(sizeCell('request', exchange.requestBodyBytes), 1)
    metrics.add(sizeCell('response', exchange.responseBodyBytes), 1)
    metrics.add(METRIC.requestBytes, exchange.requestBodyBytes)
    metrics.add(METRIC.responseBytes, exchange.responseBodyBytes)
    this.#apiMetrics.count(exchange)
    if (exchange.status === 101) this.#auth.tunnels.closed(exchange)
    exchange.lateCharges?.settle(exchange)
    if (exchange.pendingSlot >= 0) this.#endpoints.requestEnded(exchange)
    this.#options.accessLog?.append(exchange)
    this.#options.analytics?.append(exchange)
    if (exchange.trace !== null) this.#options.traces!.done(exchange, exchange.trace)
    this.inspector.done(exchange)
  }

  connectionClosed(connection: SourceConnection): void {
    this.#clients.closed(connection)
    this.#endDrain()
  }

  #reportBug(exchange: Exchange, error: unknown): void {
    this.#options.report('error', 'bug', {
      CAUSE_OF_ERROR: error instanceof Error ? (error.stack ?? error.message) : String(error),
      HTTP_URL: exchange.requestTarget,
      HTTP_METHOD: exchange.method,
      CORRELATION_ID: exchange.correlationId,
      CONNECTION: `http-incoming-${exchange.sourceId}`,
    })
  }
}
