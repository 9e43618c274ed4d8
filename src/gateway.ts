/**
 * The primary: makes a plan for every reactor out of configuration and APIs, starts and stops them, answers the health
 * port. Never touches a proxied byte.
 */
import { closeSync, openSync } from 'node:fs'
import { createServer } from 'node:net'
import { availableParallelism } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { ApiDefinition } from './config/api-definitions.ts'
import { apiPaths } from './config/api-paths.ts'
import type { Configuration } from './config/catalogue.ts'
import { controlCommands } from './control-commands.ts'
import { ControlSocket } from './control-socket.ts'
import { DataLock } from './data-lock.ts'
import { type HealthListener, startHealthListener } from './health-listener.ts'
import { LOG_FILE_MODE } from './observe/line-file.ts'
import { LineStream } from './observe/line-stream.ts'
import { type Log, logEvent } from './observe/log.ts'
import { allocateMetrics, METRIC, MetricsColumn } from './observe/metrics.ts'
import { type ApiPlan, CLIENT_ROWS, type FromReactor, type ReactorPlan } from './plan.ts'
import { ReactorPool } from './reactor-pool.ts'
import { chooseLevel } from './socket-level.ts'
import { SharedGauge } from './structure/shared-gauge.ts'

/** The port is taken, or cannot be listened on; the message names it. */
export class CannotListen extends Error {
  override readonly name = 'CannotListen'
}

/** A file the gateway was told to write cannot be written; the message names it and its key. */
export class CannotWrite extends Error {
  override readonly name = 'CannotWrite'
}

interface GatewayOptions {
  readonly configuration: Configuration
  readonly apis: readonly ApiDefinition[]
  readonly dataDir: string
  readonly compileCache: string
  readonly log: Log
  /** Something happened after which the process cannot go on. */
  readonly fatal: (cause: string) => void
}

/** What a started gateway listens on. */
export interface Listeners {
  readonly host: string
  readonly port: number
  readonly reactors: number
  readonly level: string
  readonly healthHost: string
  readonly healthPort: number
}

export class Gateway {
  readonly #options: GatewayOptions
  readonly #lock: DataLock
  readonly #pool: ReactorPool
  readonly #plans: readonly ReactorPlan[]
  readonly #stdout: LineStream
  #health: HealthListener | null = null
  #control: ControlSocket | null = null
  #isReady = false

  private constructor(options: GatewayOptions, lock: DataLock, plans: readonly ReactorPlan[]) {
    this.#options = options
    this.#lock = lock
    this.#plans = plans
    const metrics = new MetricsColumn(plans[0]!.metrics, plans.length)
    this.#stdout = new LineStream(process.stdout, {
      dropped: lines => metrics.add(METRIC.accessLogDrops, lines),
      failed: cause => options.log.error({ CAUSE_OF_ERROR: cause.message }, 'standard output failed'),
    })
    this.#pool = new ReactorPool(plans, options.compileCache, {
      message: (reactor, message) => this.#onMessage(reactor, message),
      replaced: (reactor, cause) => options.log.error({ REACTOR: reactor, CAUSE_OF_ERROR: cause }, 'reactor replaced'),
      hopeless: cause => options.fatal(`reactors keep dying: ${cause}`),
    })
  }

  /** Throws DataLocked, CannotListen, CannotWrite or ReactorFailed. */
  static async start(options: GatewayOptions): Promise<{ gateway: Gateway; listeners: Listeners }> {
    const lock = DataLock.take(options.dataDir)
    try {
      const plans = planReactors(options)
      const gateway = new Gateway(options, lock, plans)
      return { gateway, listeners: await gateway.#start() }
    } catch (error) {
      lock.release()
      throw error
    }
  }

  async #start(): Promise<Listeners> {
    const { configuration } = this.#options
    const { http, port, level, metrics, accessLog, accessLogPath } = this.#plans[0]!
    if (accessLog.target === 'file') claimLog(accessLogPath)
    const host = http['listener.parameters.bind_address']
    await claimPort(host, port, 'transport.passthru_http.listener.parameters.port')
    const { health_port: wanted, bind_address: healthHost } = configuration.management
    const healthPort = wanted === 0 ? 0 : wanted + configuration.server.offset
    await claimPort(healthHost, healthPort, 'management.health_port')
    try {
      const listening = await this.#pool.start()
      this.#health = await startHealthListener(healthHost, healthPort, {
        isReady: () => this.#isReady,
        metrics,
        testHooks: process.env.SLUICE_TEST_HOOKS === '1' ? this.#testHooks() : null,
      })
      this.#control = await this.#openControl({ scheme: 'http', host, port: listening })
      this.#isReady = true
      return { host, port: listening, reactors: this.#plans.length, level, healthHost, healthPort: this.#health.port }
    } catch (error) {
      this.#pool.stop()
      throw error
    }
  }

  /** For the command line. */
  #openControl(listener: { scheme: string; host: string; port: number }): Promise<ControlSocket | null> {
    const { http } = this.#plans[0]!
    const commands = controlCommands({
      ask: (question, waitMs) => this.#pool.ask(question, waitMs),
      listeners: () => [listener],
      correlationField: http['correlation.header'],
    })
    return ControlSocket.open(this.#options.dataDir, commands, cause => this.#options.log.warn(cause))
  }

  #testHooks(): { kill(): void; hang(): void } {
    return { kill: () => this.#pool.kill(0), hang: () => this.#pool.send({ kind: 'hang' }, 0) }
  }

  #onMessage(reactor: number, message: FromReactor): void {
    if (message.kind === 'event') logEvent(this.#options.log, reactor, message.event)
    else if (message.kind === 'access') this.#stdout.write(message.batch)
  }

  reopenLogs(): void {
    this.#pool.send({ kind: 'reopenLogs' })
  }

  /** Accepts nothing more, finishes what is in flight, at most for `transport.listener.shutdown.wait.sec`. */
  async drain(): Promise<void> {
    this.#isReady = false
    await this.#pool.drain(this.#options.configuration['transport.listener']['shutdown.wait.sec'] * 1000)
    await this.#health?.close()
    this.#control?.close()
    this.#lock.release()
  }

  /** Ends at once. */
  abort(): void {
    this.#pool.stop()
    this.#control?.close()
    this.#lock.release()
  }
}

/** `reusePort` lets a second listener bind in silence, so the port is bound once without it first (D18). */
async function claimPort(host: string, port: number, key: string): Promise<void> {
  if (port === 0) return
  const probe = createServer()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  probe.once('error', (error: NodeJS.ErrnoException) => {
    const where = `${host === '' ? '' : `${host}:`}${port}`
    const why = error.code === 'EADDRINUSE' ? 'is taken by another program' : `cannot be listened on (${error.code})`
    reject(new CannotListen(`port ${where} ${why}; set ${key}, or server.offset for all ports`))
  })
  probe.listen(host === '' ? { port } : { port, host }, () => probe.close(() => resolve()))
  await promise
}

/** Reactors open it for themselves; one that cannot is no place to say so from. */
function claimLog(path: string): void {
  try {
    closeSync(openSync(path, 'a', LOG_FILE_MODE))
  } catch (error) {
    throw new CannotWrite(`${path} cannot be written (${(error as NodeJS.ErrnoException).code}); set access_log.path`)
  }
}

function planReactors({ configuration, apis, dataDir, log }: GatewayOptions): ReactorPlan[] {
  const http = configuration['transport.passthru_http']
  const { path } = configuration.access_log
  const listenerPort = http['listener.parameters.port']
  // Every listener of a free port would get one of its own.
  const reactors = listenerPort === 0 || !canReusePort() ? 1 : http.reactors || availableParallelism()
  const plans = planApis(apis)
  const { level, why } = chooseLevel(http.socket_level, dataDir)
  log.debug({ SOCKET_LEVEL: level, CAUSE: why }, 'socket level chosen')
  const rows = plans.reduce((most, { row }) => Math.max(most, row), 0) + 1
  const common = {
    reactors,
    http,
    accessLog: configuration.access_log,
    accessLogPath: isAbsolute(path) ? path : join(dataDir, path),
    logLevel: configuration.logging.level,
    apis: plans,
    level,
    port: listenerPort === 0 ? 0 : listenerPort + configuration.server.offset,
    // The last column is the primary's own.
    metrics: allocateMetrics(reactors + 1),
    gauge: SharedGauge.allocate(reactors, rows),
    clients: SharedGauge.allocate(reactors, http.max_connections_per_client < 0 ? 1 : CLIENT_ROWS),
    clientSeed: Math.floor(Math.random() * 2 ** 31),
    heartbeats: new SharedArrayBuffer(reactors * Int32Array.BYTES_PER_ELEMENT),
  }
  return Array.from({ length: reactors }, (_, reactor) => ({ ...common, reactor }))
}

/** Systems on which Node's `reusePort` spreads connections over listeners. */
function canReusePort(): boolean {
  return process.platform === 'linux'
}

/** APIs with the same host and port share a row of the gauge, and so a pool. */
function planApis(apis: readonly ApiDefinition[]): ApiPlan[] {
  const rows = new Map<string, number>()
  return apis.map(({ name, context, version, isDefaultVersion, endpointUrl }) => {
    const url = new URL(endpointUrl)
    const port = url.port === '' ? 80 : Number(url.port)
    const authority = `${url.hostname}:${port}`
    const row = rows.get(authority) ?? rows.size + 1
    rows.set(authority, row)
    const basePath = url.pathname.replace(/\/+$/, '')
    return { name, paths: apiPaths(context, version, isDefaultVersion), host: url.hostname, port, basePath, row }
  })
}
