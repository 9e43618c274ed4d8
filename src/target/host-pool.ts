/**
 * The connections to one backend: idle ones, most recently used first, and how many there are in all. Owns the limit
 * `http.max.connection.per.host.port`, which counts over all reactors; beyond it a request fails at once, it does not
 * wait, so that one slow backend cannot collect the requests of all (D13).
 */
import type { Failure } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Surroundings } from '../exchange/surroundings.ts'
import { transportCode } from '../errors/transport-code.ts'
import { arena, Parser } from '../http1/llhttp.ts'
import { MessageReader } from '../http1/message-reader.ts'
import { faultCell, METRIC } from '../observe/metrics.ts'
import { POOL_FULL } from '../protocol/fate.ts'
import { STATE_NAMES } from '../protocol/states.ts'
import type { SharedGauge } from '../structure/shared-gauge.ts'
import type { RequestDrops } from './request-drops.ts'
import type { SavedRequest } from './saved-request.ts'
import { authorityOf, hopOf, type Paths, type Route, schemeOf } from './route.ts'
import type { Sender } from './sender.ts'
import { StatusWatch, type WarnOn500 } from './status-watch.ts'
import { TargetConnection } from './target-connection.ts'

/** What the pools of a thread share. */
export interface PoolContext {
  readonly around: Surroundings
  readonly paths: Paths
  readonly gauge: SharedGauge
  readonly reactors: number
  readonly drops: RequestDrops
  /** Of all pools, those that are retired as well: what is open, idle or not. */
  readonly connections: Set<TargetConnection>
  warnOn500: WarnOn500
  /** N of http-outgoing-N. */
  nextId: number
}

export class HostPool {
  readonly route: Route
  readonly authority: string
  readonly scheme: 'http' | 'https'
  readonly watch: StatusWatch
  readonly #context: PoolContext
  readonly #idle: TargetConnection[] = []
  /** Connections that are open, idle or not. */
  #open = 0
  /** Address to begin with, so that connections spread over all addresses of a name. */
  #turn = 0
  /** Connections of a lower number are not used again. */
  #firstId = 0

  constructor(route: Route, context: PoolContext) {
    this.route = route
    this.authority = authorityOf(route)
    this.scheme = schemeOf(route)
    this.watch = new StatusWatch(route, context.warnOn500, context.around)
    this.#context = context
  }

  get paths(): Paths {
    return this.#context.paths
  }

  /** Address to begin with: another one each time. */
  nextTurn(): number {
    return this.#turn++
  }

  /** The idle connection used last, or undefined. */
  takeIdle(): TargetConnection | undefined {
    return this.#idle.pop()
  }

  release(connection: TargetConnection): void {
    if (connection.id < this.#firstId || this.#isScarce) connection.close()
    else this.#idle.push(connection)
  }

  /** Idle here, a connection would be missing where another reactor wants to open one, or is one too many anywhere. */
  get #isScarce(): boolean {
    const { around, gauge, reactors } = this.#context
    const limit = around.settings.connectionsPerHostMax
    // Where no reactor has its share of the limit open, the sum cannot have reached it, and is not asked for.
    if (this.#open * reactors < limit) return false
    const sum = gauge.sum(this.route.row)
    return sum > limit || (reactors > 1 && sum === limit)
  }

  /** A fresh connection for the exchange, or a fault. */
  connect(exchange: Exchange, saved: SavedRequest, sender: Sender): void {
    exchange.reusesConnection = false
    const { around, gauge } = this.#context
    const parser = Parser.forResponses()
    if (parser === undefined || !gauge.take(this.route.row, around.settings.connectionsPerHostMax)) {
      parser?.release()
      const failure = { base: POOL_FULL, state: 0, cause: 'no further connection to this back end', status: 503 }
      this.failed(exchange, failure, 'warn')
      if (!sender.failed(exchange, failure, saved)) exchange.downstream.fail(failure)
      return
    }
    const { responseHeads, trailerHeads, kinds, responseLimits } = around
    const reader = new MessageReader(parser, arena, kinds, responseHeads, trailerHeads, responseLimits)
    const connection = new TargetConnection(this.#context.nextId++, this, reader, around)
    this.#open++
    this.#context.connections.add(connection)
    around.metrics.add(METRIC.targetsOpened, 1)
    around.metrics.add(METRIC.targetsOpen, 1)
    connection.connect(exchange, saved, sender)
  }

  refuse(exchange: Exchange, failure: Failure): void {
    this.failed(exchange, failure, 'warn')
    exchange.downstream.fail(failure)
  }

  closed(connection: TargetConnection): void {
    if (!this.#context.connections.delete(connection)) return
    this.#open--
    const idle = this.#idle.indexOf(connection)
    if (idle >= 0) this.#idle.splice(idle, 1)
    this.#context.gauge.give(this.route.row)
    this.#context.around.metrics.add(METRIC.targetsOpen, -1)
  }

  /** Counts and logs what went wrong with the backend. */
  failed(exchange: Exchange, { base, state, cause }: Failure, level: 'warn' | 'debug', address = ''): void {
    const { metrics, report, settings } = this.#context.around
    metrics.add(faultCell('target', base, state), 1)
    report(level, 'back end failed', {
      STATE_DESCRIPTION: `target connection in ${STATE_NAMES[state]}`,
      INTERNAL_STATE: state,
      DIRECTION: state < 4 ? 'REQUEST' : 'RESPONSE',
      CAUSE_OF_ERROR: cause,
      ERROR_CODE: transportCode(base, state),
      BASE_ERROR_CODE: base,
      TARGET_HOST: this.route.host,
      TARGET_PORT: this.route.port,
      REMOTE_ADDRESS: address === '' ? '' : `${address}:${hopOf(this.route).port}`,
      HTTP_URL: exchange.requestTarget,
      HTTP_METHOD: exchange.method,
      SOCKET_TIMEOUT: settings.socketTimeoutMs,
      CLIENT_ADDRESS: exchange.clientAddress,
      CORRELATION_ID: exchange.correlationId,
      CONNECTION: `http-outgoing-${exchange.targetId}`,
    })
  }

  /** Something of ours threw while a connection was served. */
  threw(id: number, error: unknown): void {
    const cause = error instanceof Error ? (error.stack ?? error.message) : String(error)
    this.#context.around.report('error', 'bug', { CAUSE_OF_ERROR: cause, CONNECTION: `http-outgoing-${id}` })
  }

  /** No connection that there is now takes another request. */
  renew(): void {
    this.#firstId = this.#context.nextId
    this.drain()
  }

  /**
   * No endpoint has this route any more. Exchanges under way may still open connections; none of them takes another
   * request, and with the last one the pool is gone.
   */
  retire(): void {
    this.#firstId = Number.POSITIVE_INFINITY
    this.drain()
  }

  /** The limit is lower now: closes what would not be kept idle any more, used longest ago first. */
  trim(): void {
    while (this.#idle.length > 0 && this.#isScarce) this.#idle[0]!.close()
  }

  /** Closes what is idle; what serves goes on. */
  drain(): void {
    for (const connection of [...this.#idle]) connection.close()
  }
}
