/**
 * One event loop's share of the gateway: its listener, its connections, its pools, its clock. Builds the rooms from a
 * plan; `walk.ts` says in which order a request goes through them. Runs in a worker thread, and in tests as it is.
 */
import type { Failure, Handler } from '../exchange/contract.ts'
import { newIdPrefix } from '../exchange/correlation-id.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { ReadMemory } from '../exchange/inbox.ts'
import { Composer } from '../exchange/outbox.ts'
import { Heads, type Report, type Surroundings } from '../exchange/surroundings.ts'
import type { BackendParty } from '../exchange/tunnel.ts'
import { policyOf } from '../handlers/cors-policy.ts'
import { FieldKinds } from '../http1/field-kinds.ts'
import type { Head } from '../http1/head.ts'
import { arena, Parser } from '../http1/llhttp.ts'
import { MessageReader } from '../http1/message-reader.ts'
import type { Identity, Validator } from '../identity/identity.ts'
import type { IdentityState } from '../identity/identity-state.ts'
import { Sequences } from '../mediation/sequences.ts'
import type { AccessLog } from '../observe/access-log.ts'
import { METRIC, MetricsColumn, sizeCell, statusCell } from '../observe/metrics.ts'
import {
  type ApiChanges,
  type ApiPlan,
  CLIENT_ROWS,
  type ListenerPlan,
  type LivePlan,
  type ReactorPlan,
} from '../plan.ts'
import { Deployment } from './deployment.ts'
import { FaultAnswers, fieldsReadBy } from './fault-answer.ts'
import { Handshakes } from './handshakes.ts'
import { IdentitySide } from './identity-side.ts'
import { Listener } from './listener.ts'
import { monotonicMs } from '../structure/monotonic-clock.ts'
import { TlsSide } from './tls-side.ts'
import { ReactorAnswers } from './reactor-answers.ts'
import { tracer } from '../protocol/tracer.ts'
import { composerBytes, renewSettings, requestLimits, responseLimits, settingsOf } from './settings.ts'
import { AddressBook, Networks, plainAddress } from '../socket/address-book.ts'
import type { ByteSocket, SocketLevel } from '../socket/byte-socket.ts'
import type { TlsLevel } from '../socket/tls.ts'
import { ResourceCache } from '../route/resource-cache.ts'
import { Router } from '../route/router.ts'
import { Admission } from '../source/admission.ts'
import type { Client, Hall } from '../source/hall.ts'
import { ResponseDrops } from '../source/reply-writer.ts'
import { RequestIntake, RequestNumbers } from '../source/request-intake.ts'
import { SourceConnection } from '../source/source-connection.ts'
import { DeadlineWheel } from '../structure/deadline-wheel.ts'
import { SharedGauge } from '../structure/shared-gauge.ts'
import { EndpointTable } from '../target/endpoint-table.ts'
import type { PoolContext } from '../target/host-pool.ts'
import { RequestDrops } from '../target/request-drops.ts'
import { insteadOfTunnel, type Rooms, refuse, walk } from '../walk.ts'

/** Resolution of all deadlines. */
const TICK_MS = 100

interface ReactorOutlets {
  readonly level: SocketLevel
  /** TLS at that level; null where nothing in the plan is secured. */
  readonly tls: TlsLevel | null
  readonly report: Report
  /** null: no access log. */
  readonly accessLog: AccessLog | null
  /** What is known of those who ask. */
  readonly identity: IdentityState
  /** The operator's own word on who is let in; null: there is none. */
  readonly validator: Validator | null
  /** The handlers of an API, in the order in which its requests pass them. */
  chainOf(api: ApiPlan, identity: Identity): readonly Handler[]
  /** Nothing is in flight any more. */
  drained(): void
}

export class Reactor implements Hall {
  /** To what the primary asks for the command line. */
  readonly answers = new ReactorAnswers(lister => {
    for (const connection of this.#connections) connection.show(lister)
    for (const connection of this.#targets.connections) connection.show(lister)
  })
  readonly #plan: ReactorPlan
  readonly #outlets: ReactorOutlets
  readonly #around: Surroundings
  readonly #rooms: Rooms
  readonly #metrics: MetricsColumn
  readonly #identity: IdentitySide
  readonly #admission: Admission
  readonly #addresses: AddressBook
  #trusted: Networks
  /** What the clients that are known were made of. */
  #believed: string
  readonly #idPrefix = newIdPrefix()
  readonly #numbers = new RequestNumbers()
  readonly #drops: ResponseDrops
  readonly #connections = new Set<SourceConnection>()
  /** What the pools of backend connections share. */
  readonly #targets: PoolContext
  readonly #deployment: Deployment
  readonly #resources: ResourceCache
  readonly #sequences: Sequences
  readonly #endpoints: EndpointTable
  readonly #heartbeats: Int32Array
  readonly #listeners: readonly Listener[]
  readonly #tls: TlsSide
  #timer: NodeJS.Timeout | null = null
  #coarseNow = performance.now()
  #nextId = 1
  #secondDueMs = 0

  constructor(plan: ReactorPlan, outlets: ReactorOutlets) {
    this.#plan = plan
    this.#outlets = outlets
    this.#metrics = new MetricsColumn(plan.metrics, plan.reactor)
    this.#heartbeats = new Int32Array(plan.heartbeats)
    const nowMs = () => this.#coarseNow
    this.#identity = new IdentitySide(plan, { ...outlets, metrics: this.#metrics, nowMs })
    this.#around = this.#surroundings()
    this.#drops = new ResponseDrops(this.#around.settings)
    this.#trusted = new Networks(plan.http.trusted_proxies)
    this.#believed = believed(plan.http)
    const gauge = new SharedGauge(plan.gauge, plan.reactors, plan.reactor)
    this.#admission = this.#newAdmission(gauge)
    this.#tls = new TlsSide(outlets.tls, plan)
    this.#listeners = plan.listeners.map(listener => this.#listener(listener))
    this.#addresses = new AddressBook(plan.http['dns.cache_seconds'])
    this.#targets = this.#poolContext(gauge)
    this.#resources = new ResourceCache(this.#metrics, nowMs)
    this.#resources.keepFor(plan.resourceMs)
    this.#endpoints = new EndpointTable(plan.endpoints, plan.reactor, monotonicMs)
    const chainOf = (api: ApiPlan) => outlets.chainOf(api, this.#identity.identity)
    this.#deployment = new Deployment(chainOf, this.#targets, this.#endpoints, this.#resources)
    this.#deployment.prepare({ removed: [], deployed: plan.apis })()
    const cors = policyOf(plan.cors)
    const router = new Router(this.#deployment.table, arena.bytes, this.#around.settings)
    const { correlationField } = this.#around.settings
    this.#sequences = new Sequences(plan.faults.programs, outlets.report)
    const faults = new FaultAnswers(plan.faults, this.#sequences, correlationField, outlets.report, nowMs)
    this.#around.requestKinds.keep(fieldsReadBy(plan.faults))
    this.#around.requestKinds.withhold([plan.identity.backendJwt.field])
    const handshakes = new Handshakes(plan, this.#sequences, arena.bytes, outlets.report)
    this.#rooms = { router, cors, faults, handshakes, threw: (exchange, error) => this.#threw(exchange, error) }
  }

  #poolContext(gauge: SharedGauge): PoolContext {
    return {
      around: this.#around,
      paths: {
        dialer: this.#outlets.level,
        addresses: this.#addresses,
        tlsFor: route => this.#tls.clientFor(route),
      },
      gauge,
      reactors: this.#plan.reactors,
      drops: new RequestDrops(this.#around.settings),
      connections: new Set(),
      warnOn500: this.#plan.warnOn500,
      nextId: 1,
    }
  }

  #listener(plan: ListenerPlan): Listener {
    const isSecured = plan.kind === 'https' || plan.kind === 'wss'
    return new Listener(plan, isSecured ? this.#tls.server : null, {
      level: this.#outlets.level,
      reusePort: this.#plan.reactors > 1,
      newClient: (address, kind) => this.#newClient(address, kind),
      accept: (socket, listener) => this.#accept(socket, listener),
      threw: error => this.#outlets.report('error', 'bug', { CAUSE_OF_ERROR: String(error) }),
    })
  }

  #surroundings(): Surroundings {
    const { http } = this.#plan
    const settings = settingsOf(http, this.#plan.responseMs)
    const capacity = settings.headerCountMax
    // Times are wanted to the microsecond only for the access log.
    const now = this.#outlets.accessLog === null ? () => this.#coarseNow : () => performance.now()
    const memory = new ReadMemory(arena, http.io_buffer_size)
    const trailerHeads = new Heads(capacity)
    return {
      settings,
      arena,
      memory,
      composer: new Composer(arena, composerBytes(settings)),
      wheel: new DeadlineWheel(TICK_MS),
      requestKinds: new FieldKinds(settings.correlationField),
      kinds: new FieldKinds(settings.correlationField),
      requestHeads: new Heads(capacity),
      responseHeads: new Heads(capacity),
      requestLimits: requestLimits(settings),
      responseLimits: responseLimits(settings),
      trailerHeads,
      part: { spans: 0, floor: 0, last: false, trailers: trailerHeads.scratch, inbox: null as never },
      report: this.#outlets.report,
      metrics: this.#metrics,
      now,
      tunnels: this.#identity.tunnels,
      dateLine: dateLine(),
      isDraining: false,
    }
  }

  #newAdmission(gauge: SharedGauge): Admission {
    const { http, clients, clientSeed, reactor, reactors } = this.#plan
    const byClient = http.max_connections_per_client < 0 ? null : new SharedGauge(clients, reactors, reactor)
    const { max_open_connections: allMax, max_connections_per_client: clientMax } = http
    return new Admission(gauge, allMax, byClient, clientMax, CLIENT_ROWS, clientSeed, this.#metrics)
  }

  /** Listens; answers the ports, in the order of the listeners. */
  async start(): Promise<readonly number[]> {
    this.#timer = setInterval(() => this.#tick(), TICK_MS)
    return Promise.all(this.#listeners.map(listener => listener.open()))
  }

  /**
   * Takes over what a reload brings; open connections and exchanges under way go on. Throws when something cannot be
   * built: then everything is as it was.
   */
  deploy(live: LivePlan, apis: ApiChanges, tls: TlsLevel | null, validator: Validator | null): void {
    const trusted = new Networks(live.http.trusted_proxies)
    const putInForce = this.#deployment.prepare(apis)
    const reword = this.#sequences.prepare(live.faults.programs)
    const securesAnew = this.#tls.replace(tls, live)
    // From here on nothing throws.
    putInForce()
    reword()
    this.#rooms.faults.renew(live.faults)
    this.#rooms.handshakes.renew(live)
    this.#around.requestKinds.keep(fieldsReadBy(live.faults))
    this.#around.requestKinds.withhold([live.identity.backendJwt.field])
    this.#rooms.cors = policyOf(live.cors)
    const { targetKeepAliveMs: keptMs } = this.#around.settings
    this.#renewSettings(live)
    this.#identity.renew(live.identity, validator)
    if (believed(live.http) !== this.#believed) this.#renewClients(trusted, live.http)
    const { closesTargets, targetKeepAliveMs } = this.#around.settings
    for (const pool of this.#deployment.pools) {
      pool.watch.renew(live.warnOn500)
      pool.trim()
      // What it has was secured with what no longer holds, or would be kept for longer than a backend keeps it.
      const isOld = (securesAnew && pool.route.secured) || closesTargets || targetKeepAliveMs < keptMs
      if (isOld) pool.renew()
    }
  }

  /** Whatever is read from now on is read of these, on connections that are open as well. */
  #renewSettings({ http, responseMs, resourceMs, warnOn500 }: LivePlan): void {
    const { settings } = this.#around
    renewSettings(settings, http, responseMs)
    Object.assign(this.#around.requestLimits, requestLimits(settings))
    Object.assign(this.#around.responseLimits, responseLimits(settings))
    this.#drops.renew(settings)
    this.#targets.drops.renew()
    this.#targets.warnOn500 = warnOn500
    this.#addresses.keepFor(http['dns.cache_seconds'])
    this.#resources.keepFor(resourceMs)
    this.#admission.limit(http.max_open_connections)
  }

  /** What clients are believed, and what is said of them to backends: from their next requests on. */
  #renewClients(trusted: Networks, http: LivePlan['http']): void {
    this.#trusted = trusted
    this.#believed = believed(http)
    for (const listener of this.#listeners) listener.forgetClients()
    for (const { client } of this.#connections) client.intake.renew(trusted.includes(client.address))
  }

  /** Accepts nothing more; what is in flight is finished and its connections closed. */
  drain(): void {
    this.#around.isDraining = true
    for (const pool of this.#deployment.pools) pool.drain()
    for (const connection of [...this.#connections]) connection.drain()
    // What the kernel has accepted for us already is still served, once.
    setTimeout(() => {
      this.#stopListening()
      this.#endDrain()
    }, TICK_MS)
  }

  #stopListening(): void {
    for (const listener of this.#listeners) listener.close()
  }

  /** Ends every exchange now. */
  cutOff(): void {
    this.#around.isDraining = true
    for (const connection of [...this.#connections]) connection.cutOff()
  }

  /** After `drain` or `cutOff`: no timer, no socket is left. */
  stop(): void {
    this.#stopListening()
    this.cutOff()
    for (const pool of this.#deployment.pools) pool.drain()
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#identity.stop()
    this.#outlets.accessLog?.flush()
  }

  #accept(socket: ByteSocket, listener: Listener): void {
    const address = plainAddress(socket.remoteAddress)
    if (!this.#admission.enter(address)) {
      socket.reset()
      return
    }
    const parser = Parser.forRequests()
    if (parser === undefined) {
      this.#admission.leave(address)
      socket.reset()
      return
    }
    const { requestKinds, requestHeads, requestLimits: limits, trailerHeads } = this.#around
    const reader = new MessageReader(parser, arena, requestKinds, requestHeads, trailerHeads, limits)
    const client = listener.client(address)
    const own = listener.secure(socket)
    const connection = new SourceConnection(this.#nextId++, own, client, reader, this.#drops, this.#around, this)
    this.#connections.add(connection)
    connection.open()
  }

  #newClient(address: string, kind: ListenerPlan['kind']): Client {
    const scheme = kind === 'https' || kind === 'wss' ? 'https' : 'http'
    const logsAgents = this.#outlets.accessLog !== null
    const isTrusted = this.#trusted.includes(address)
    const intake = new RequestIntake(this.#around, this.#numbers, { address, scheme }, isTrusted, logsAgents)
    return { address, idPrefix: this.#idPrefix, intake, scheme, kind }
  }

  #tick(): void {
    this.#coarseNow = performance.now()
    this.#heartbeats[this.#plan.reactor]!++
    if (this.#coarseNow >= this.#secondDueMs) {
      this.#secondDueMs = this.#coarseNow + 1000 - (Date.now() % 1000)
      this.#around.dateLine = dateLine()
    }
    this.#around.wheel.turn()
    this.#identity.tick()
    this.#outlets.accessLog?.flush()
  }

  // ---- what the hallway does for a client connection --------------------------------------------------------------

  walk(exchange: Exchange): Promise<() => void> | undefined {
    return walk(exchange, this.#rooms)
  }

  #threw(exchange: Exchange, error: unknown): void {
    this.#outlets.report('error', 'bug', {
      CAUSE_OF_ERROR: error instanceof Error ? (error.stack ?? error.message) : String(error),
      HTTP_URL: exchange.requestTarget,
      HTTP_METHOD: exchange.method,
      CORRELATION_ID: exchange.correlationId,
      CONNECTION: `http-incoming-${exchange.sourceId}`,
    })
  }

  refuse(exchange: Exchange, outcome: Parameters<Hall['refuse']>[1], failure: Failure | null): void {
    refuse(exchange, this.#rooms, outcome, failure)
  }

  insteadOfTunnel(exchange: Exchange, head: Head, kind: BackendParty['kind']): (() => void) | null {
    return insteadOfTunnel(exchange, head, kind, this.#rooms)
  }

  done(exchange: Exchange): void {
    const metrics = this.#metrics
    metrics.add(statusCell(exchange.status), 1)
    metrics.add(sizeCell('request', exchange.requestBodyBytes), 1)
    metrics.add(sizeCell('response', exchange.responseBodyBytes), 1)
    metrics.add(METRIC.requestBytes, exchange.requestBodyBytes)
    metrics.add(METRIC.responseBytes, exchange.responseBodyBytes)
    if (exchange.status === 101) this.#identity.tunnels.left(exchange)
    if (exchange.pendingRow >= 0) this.#endpoints.left(exchange)
    this.#outlets.accessLog?.append(exchange)
    if (tracer !== null) this.answers.done(exchange)
  }

  closed(connection: SourceConnection): void {
    this.#connections.delete(connection)
    this.#admission.leave(connection.client.address)
    this.#endDrain()
  }

  #endDrain(): void {
    if (this.#around.isDraining && this.#listeners.every(listener => !listener.isOpen) && this.#connections.size === 0)
      this.#outlets.drained()
  }
}

/** All that the fields of a client and those about it depend on. */
function believed({ trusted_proxies, 'forwarded.headers': form }: LivePlan['http']): string {
  return `${form} ${trusted_proxies}`
}

function dateLine(): string {
  return `Date: ${new Date().toUTCString()}\r\n`
}
