/**
 * Connections over one route: the idle ones, and the number of open ones. Owns the limit
 * `http.max.connection.per.host.port`, which counts over all reactors. Beyond it a request fails at once instead of
 * waiting, so that one slow backend cannot collect the requests of all (D13).
 */
import { Parser } from '../../http1/llhttp.ts'
import { MessageReader } from '../../http1/message-reader.ts'
import { ExpectedSection, type RepeatedSections } from '../../http1/repeated-sections.ts'
import { faultCell, METRIC } from '../../observe/metrics.ts'
import { NO_MEMORY, POOL_FULL, transportCode } from '../../protocol/failure-table.ts'
import { hasResponse, STATE, STATE_NAMES } from '../../protocol/states.ts'
import type { OpenObjects } from '../../runtime/open-objects.ts'
import type { SharedGauge } from '../../runtime/shared-gauge.ts'
import type { ConnectionContext, ConnectionContexts } from '../exchange/connection-context.ts'
import type { Failure } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Endpoint } from './endpoint.ts'
import type { DecodedResponse } from './response-reader.ts'
import type { RetryBuffer } from './retry-buffer.ts'
import { ALL_ROUTES_SLOT, authorityOf, type Network, nextHop, type Route, schemeOf } from './route.ts'
import { StatusInspector, type WarnOn500 } from './status-inspector.ts'
import type { StrippedRequestFields } from './stripped-request-fields.ts'
import { TargetConnection } from './target-connection.ts'

/** Shared by the pools of a thread. */
export interface PoolContext {
  readonly contexts: ConnectionContexts
  readonly network: Network
  readonly gauge: SharedGauge
  readonly reactors: number
  /** Request fields that plain backends, and backends on TLS, do not get. */
  readonly stripped: Readonly<Record<keyof ConnectionContexts, StrippedRequestFields>>
  /** Largest number of connections of all pools of all reactors, by the open files of the process; -1: no limit. */
  readonly connectionsMax: number
  /** Pools that may have idle connections. */
  readonly pools: Set<ConnectionPool>
  /** Open connections of all pools, retired pools included. */
  readonly connections: OpenObjects<TargetConnection>
  /** Response heads that backends repeat. */
  readonly repeatedHeads: RepeatedSections<DecodedResponse>
  warnOn500: WarnOn500
  /** N of http-outgoing-N. */
  nextId: number
}

const LIMIT_REACHED: Failure = {
  base: POOL_FULL,
  state: STATE.REQUEST_READY,
  kind: 'transport',
  code: '',
  cause: 'no further connection to this backend',
  status: 0,
}
const TOTAL_REACHED: Failure = {
  ...LIMIT_REACHED,
  kind: 'descriptors',
  cause: 'no further connection to any backend: the open files of the process (ulimit -n) allow no more',
}

export const OUT_OF_MEMORY: Failure = {
  base: NO_MEMORY,
  state: STATE.REQUEST_READY,
  kind: 'memory',
  code: '',
  cause: 'no memory for a request',
  status: 0,
}

export class ConnectionPool {
  readonly route: Route
  readonly authority: string
  readonly scheme: 'http' | 'https'
  readonly inspector: StatusInspector
  /** Services for the connections over the route. */
  readonly context: ConnectionContext
  /** Request fields that the backend does not get. */
  readonly stripped: StrippedRequestFields
  readonly #shared: PoolContext
  /** Most recently used last. */
  readonly #idle: TargetConnection[] = []
  /** Open connections, idle or not. */
  #open = 0
  /** Head of a response that the next connection is expected to begin with. */
  readonly #expected = new ExpectedSection<DecodedResponse>()
  /** Number of the address that the next connection tries first, so that connections spread over all addresses. */
  #addressIndex = 0
  /** Connections with a lower number are not reused. */
  #reusableFromId = 0

  constructor(route: Route, shared: PoolContext) {
    this.route = route
    this.authority = authorityOf(route)
    this.scheme = schemeOf(route)
    const transport = route.secured ? 'secured' : 'plain'
    this.context = shared.contexts[transport]
    this.stripped = shared.stripped[transport]
    this.inspector = new StatusInspector(route, shared.warnOn500, this.context)
    this.#shared = shared
    shared.pools.add(this)
  }

  get network(): Network {
    return this.#shared.network
  }

  nextAddressIndex(): number {
    return this.#addressIndex++
  }

  /** The idle connection used last, or undefined. */
  takeIdle(): TargetConnection | undefined {
    return this.#idle.pop()
  }

  /** Takes back a connection that can be reused. */
  release(connection: TargetConnection): void {
    if (connection.id < this.#reusableFromId || this.#isScarce) connection.close()
    else this.#idle.push(connection)
  }

  /** An idle connection here would exceed the limit, or keep another reactor from opening one. */
  get #isScarce(): boolean {
    const { connections, connectionsMax } = this.#shared
    const { connectionsPerHostMax } = this.context.settings
    return (
      this.#isAtLimit(this.route.slot, this.#open, connectionsPerHostMax) ||
      (connectionsMax >= 0 && this.#isAtLimit(ALL_ROUTES_SLOT, connections.size, connectionsMax))
    )
  }

  /** `open`: connections of this reactor. */
  #isAtLimit(slot: number, open: number, limit: number): boolean {
    const { gauge, reactors } = this.#shared
    // While this reactor has less than its share open, the sum is not worth computing.
    if (open * reactors < limit) return false
    const sum = gauge.sum(slot)
    return sum > limit || (reactors > 1 && sum === limit)
  }

  /** Opens a connection for the exchange, or fails it at the limit. Takes over the buffer. */
  connect(exchange: Exchange, buffer: RetryBuffer, endpoint: Endpoint): void {
    exchange.reusesConnection = false
    const { context } = this
    const parser = Parser.forResponses(context.part.spans)
    if (parser === undefined) {
      this.#fail(exchange, OUT_OF_MEMORY, buffer, endpoint)
      return
    }
    const failure = this.#acquire()
    if (failure !== null) {
      parser.release()
      this.#fail(exchange, failure, buffer, endpoint)
      return
    }
    const { responseHeads, trailerHeads, responseKinds, responseLimits } = context
    const heads = this.#shared.repeatedHeads
    const reader = new MessageReader(
      parser,
      responseKinds,
      responseHeads,
      trailerHeads,
      responseLimits,
      heads,
      this.#expected,
    )
    const connection = new TargetConnection(this.#shared.nextId++, this, reader, context)
    this.#open++
    this.#shared.connections.add(connection)
    context.metrics.add(METRIC.targetsOpened, 1)
    context.metrics.add(METRIC.targetsOpen, 1)
    connection.connect(exchange, buffer, endpoint)
  }

  #fail(exchange: Exchange, failure: Failure, buffer: RetryBuffer, endpoint: Endpoint): void {
    this.reportFailure(exchange, failure, 'warn')
    if (!endpoint.failed(exchange, failure, buffer)) exchange.source.fail(failure)
  }

  /** Counts one more connection; the failure where a limit is reached. */
  #acquire(): Failure | null {
    const { gauge, connectionsMax } = this.#shared
    if (!gauge.acquire(this.route.slot, this.context.settings.connectionsPerHostMax)) return LIMIT_REACHED
    if (gauge.acquire(ALL_ROUTES_SLOT, connectionsMax)) return null
    // An idle connection to another backend gives up its place.
    if (this.#closeIdleElsewhere() && gauge.acquire(ALL_ROUTES_SLOT, connectionsMax)) return null
    gauge.release(this.route.slot)
    return TOTAL_REACHED
  }

  #closeIdleElsewhere(): boolean {
    for (const pool of this.#shared.pools) {
      const [oldest] = pool.#idle
      if (oldest === undefined) continue
      oldest.close()
      return true
    }
    return false
  }

  refuse(exchange: Exchange, failure: Failure): void {
    this.reportFailure(exchange, failure, 'warn')
    exchange.source.fail(failure)
  }

  closed(connection: TargetConnection): void {
    if (!this.#shared.connections.delete(connection)) return
    this.#open--
    const idle = this.#idle.indexOf(connection)
    if (idle >= 0) this.#idle.splice(idle, 1)
    this.#shared.gauge.release(this.route.slot)
    this.#shared.gauge.release(ALL_ROUTES_SLOT)
    this.context.metrics.add(METRIC.targetsOpen, -1)
  }

  /** Counts and logs a failure of the backend. */
  reportFailure(exchange: Exchange, { base, state, cause }: Failure, level: 'warn' | 'debug', address = ''): void {
    const { metrics, report, settings } = this.context
    metrics.add(faultCell('target', base, state), 1)
    // An abort has its cause on the side of the client.
    if (level === 'warn') exchange.errorCause = cause
    report(level, 'backend failed', {
      STATE_DESCRIPTION: `target connection in ${STATE_NAMES[state]}`,
      INTERNAL_STATE: state,
      DIRECTION: hasResponse(state) ? 'RESPONSE' : 'REQUEST',
      CAUSE_OF_ERROR: cause,
      ERROR_CODE: transportCode(base, state),
      BASE_ERROR_CODE: base,
      TARGET_HOST: this.route.host,
      TARGET_PORT: this.route.port,
      REMOTE_ADDRESS: address === '' ? '' : `${address}:${nextHop(this.route).port}`,
      HTTP_URL: exchange.requestTarget,
      HTTP_METHOD: exchange.method,
      SOCKET_TIMEOUT: settings.socketTimeoutMs,
      CLIENT_ADDRESS: exchange.clientAddress,
      CORRELATION_ID: exchange.correlationId,
      CONNECTION: `http-outgoing-${exchange.targetId}`,
    })
  }

  /** Logs an exception that was thrown while a connection was served. */
  reportBug(id: number, error: unknown): void {
    const cause = error instanceof Error ? (error.stack ?? error.message) : String(error)
    this.context.report('error', 'bug', { CAUSE_OF_ERROR: cause, CONNECTION: `http-outgoing-${id}` })
  }

  /** Closes the idle connections, and makes the busy ones serve no further request. */
  expireConnections(): void {
    this.#reusableFromId = this.#shared.nextId
    this.closeIdle()
  }

  /**
   * Retires a pool whose route no endpoint has any more. Pending exchanges may still open connections; none of these
   * is reused, and the pool is gone with the last one.
   */
  retire(): void {
    this.#reusableFromId = Number.POSITIVE_INFINITY
    this.#shared.pools.delete(this)
    this.closeIdle()
  }

  /** Applies a lower limit: closes the idle connections that it no longer allows, used longest ago first. */
  closeExcess(): void {
    while (this.#idle.length > 0 && this.#isScarce) this.#idle[0]!.close()
  }

  closeIdle(): void {
    for (const connection of [...this.#idle]) connection.close()
  }
}
