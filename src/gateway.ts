/**
 * The primary: makes a plan for every reactor out of configuration and APIs, starts and stops them, answers the health
 * port. Never touches a proxied byte.
 */
import { closeSync, openSync } from 'node:fs'
import { createServer } from 'node:net'
import type { ApiDefinition } from './config/api-definitions.ts'
import type { Configuration } from './config/catalogue.ts'
import { controlCommands } from './control-commands.ts'
import { ControlSocket } from './control-socket.ts'
import { DataLock } from './data-lock.ts'
import type { ForwardProxies } from './forward-proxies.ts'
import { EndpointDesk } from './endpoint-desk.ts'
import { type HealthListener, startHealthListener } from './health-listener.ts'
import { LOG_FILE_MODE } from './observe/line-file.ts'
import { LineStream } from './observe/line-stream.ts'
import { type Log, logEvent } from './observe/log.ts'
import { METRIC, MetricsColumn } from './observe/metrics.ts'
import type { FromReactor, ListenerPlan, ReactorPlan } from './plan.ts'
import { Planning } from './planning.ts'
import { ReactorPool } from './reactor-pool.ts'
import { chooseLevel } from './socket-level.ts'
import type { TlsMaterial, TlsSources } from './tls/tls-material.ts'

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
  readonly proxies: ForwardProxies
  /** Folder of the configuration. */
  readonly home: string
  readonly dataDir: string
  readonly compileCache: string
  readonly log: Log
  /** Something happened after which the process cannot go on. */
  readonly fatal: (cause: string) => void
}

/** What a started gateway listens on. */
export interface Listeners {
  /** With the ports that are in use. */
  readonly listeners: readonly ListenerPlan[]
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
  readonly #tls: TlsMaterial | null
  readonly #desk: EndpointDesk
  #tlsClients: ReactorPlan['tlsClients']
  #health: HealthListener | null = null
  #control: ControlSocket | null = null
  #isReady = false

  private constructor(options: GatewayOptions, lock: DataLock, plans: readonly ReactorPlan[], tls: TlsMaterial | null) {
    this.#options = options
    this.#lock = lock
    this.#plans = plans
    this.#tls = tls
    this.#desk = new EndpointDesk(plans[0]!, options.log)
    this.#tlsClients = plans[0]!.tlsClients
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

  /** Throws DataLocked, CannotListen, CannotWrite, ConfigurationFaults or ReactorFailed. */
  static async start(options: GatewayOptions): Promise<{ gateway: Gateway; listeners: Listeners }> {
    const lock = DataLock.take(options.dataDir)
    try {
      const { level, why } = chooseLevel(options.configuration['transport.passthru_http'].socket_level, options.dataDir)
      options.log.debug({ SOCKET_LEVEL: level, CAUSE: why }, 'socket level chosen')
      const planning = new Planning({ ...options, level })
      let gateway: Gateway | null = null
      const changed = (plans: TlsMaterial['plans']): void => gateway?.replaceTls(planning.reactorTls(plans))
      const tls = planning.usesTls ? await openTls(options, planning.tlsSources, changed) : null
      gateway = new Gateway(options, lock, planning.reactorPlans(tls?.plans ?? null), tls)
      return { gateway, listeners: await gateway.#start() }
    } catch (error) {
      lock.release()
      throw error
    }
  }

  async #start(): Promise<Listeners> {
    const { configuration } = this.#options
    const { listeners, level, metrics, accessLog, accessLogPath } = this.#plans[0]!
    if (accessLog.target === 'file') claimLog(accessLogPath)
    for (const { kind, host, port } of listeners) {
      await claimPort(host, port, `${SECTIONS[kind]}.listener.parameters.port`)
    }
    const { health_port: wanted, bind_address: healthHost } = configuration.management
    const healthPort = wanted === 0 ? 0 : wanted + configuration.server.offset
    await claimPort(healthHost, healthPort, 'management.health_port')
    try {
      const ports = await this.#pool.start()
      const listening = listeners.map((listener, i) => ({ ...listener, port: ports[i]! }))
      this.#health = await startHealthListener(healthHost, healthPort, {
        isReady: () => this.#isReady,
        metrics,
        moreMetrics: () => this.#desk.metrics(),
        testHooks: process.env.SLUICE_TEST_HOOKS === '1' ? this.#testHooks() : null,
      })
      this.#control = await this.#openControl(listening)
      await this.#desk.check(() => this.#tlsClients)
      this.#isReady = true
      return { listeners: listening, reactors: this.#plans.length, level, healthHost, healthPort: this.#health.port }
    } catch (error) {
      this.#pool.stop()
      throw error
    }
  }

  /** For the command line. */
  #openControl(listeners: readonly ListenerPlan[]): Promise<ControlSocket | null> {
    const { http } = this.#plans[0]!
    const commands = controlCommands({
      ask: (question, waitMs) => this.#pool.ask(question, waitMs),
      listeners: () => listeners.map(({ kind, host, port }) => ({ scheme: kind, host, port })),
      correlationField: http['correlation.header'],
      endpoints: this.#desk,
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

  replaceTls(tls: Pick<ReactorPlan, 'tlsServer' | 'tlsClients'>): void {
    this.#tlsClients = tls.tlsClients
    const { http, logLevel, responseMs, warnOn500, apis } = this.#plans[0]!
    const live = { http, logLevel, responseMs, warnOn500, ...tls }
    void this.#pool.deploy(live, apis, { removed: [], deployed: [] })
  }

  /** Reads key stores and TLS profiles again, and reopens the log. */
  refresh(): void {
    this.reopenLogs()
    void this.#tls?.reload()
  }

  reopenLogs(): void {
    this.#pool.send({ kind: 'reopenLogs' })
  }

  /** Accepts nothing more, finishes what is in flight, at most for `transport.listener.shutdown.wait.sec`. */
  async drain(): Promise<void> {
    this.#isReady = false
    this.#desk.stop()
    this.#tls?.stop()
    await this.#pool.drain(this.#options.configuration['transport.listener']['shutdown.wait.sec'] * 1000)
    await this.#health?.close()
    this.#control?.close()
    this.#lock.release()
  }

  /** Ends at once. */
  abort(): void {
    this.#desk.stop()
    this.#tls?.stop()
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

const SECTIONS = {
  http: 'transport.passthru_http',
  https: 'transport.passthru_https',
  ws: 'transport.ws',
  wss: 'transport.wss',
} as const

/** Loaded only where something is secured. */
async function openTls(
  { home, dataDir, log }: GatewayOptions,
  sources: TlsSources,
  changed: (plans: TlsMaterial['plans']) => void,
): Promise<TlsMaterial> {
  const { TlsMaterial: Material } = await import('./tls/tls-material.ts')
  return Material.open({ ...sources, home, dataDir, log, changed })
}
