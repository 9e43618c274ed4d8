/**
 * The primary: makes a plan for every reactor out of configuration and APIs, starts and stops them, answers the health
 * port. Never touches a proxied byte.
 */
import { closeSync, constants, openSync } from 'node:fs'
import { ApiDesk } from './api-desk.ts'
import { type ApiWatch, watchHome } from './api-watch.ts'
import type { AuthorityPlan } from '../authority-messages.ts'
import type { Begun } from './authority-keeper.ts'
import { authorityLog } from './authority-log.ts'
import { authorityPlan } from './authority-planning.ts'
import { controlCommands } from './control-commands.ts'
import { ControlSocket } from './control-socket.ts'
import { DataLock } from './data-lock.ts'
import { EndpointDesk } from './endpoint-desk.ts'
import { type HealthListener, startHealthListener, type TestHooks } from './health-listener.ts'
import { LISTENER_SECTIONS, planListeners } from './listener-plans.ts'
import { LOG_FILE_MODE } from '../observe/line-file.ts'
import { LineStream } from '../observe/line-stream.ts'
import { logEvent } from '../observe/log.ts'
import { METRIC, MetricsColumn } from '../observe/metrics.ts'
import type { FromReactor, ListenerPlan, ReactorPlan } from '../plan.ts'
import { listensForManagement, managementAddress } from './management-planning.ts'
import { type NodeOptions, type NodeState, openState } from './node-state.ts'
import { reactorPlans, reactorsOf } from './planning.ts'
import { claimPort, healthAddress } from './ports.ts'
import { ReactorPool } from './reactor-pool.ts'
import type { ReactorThreads } from './reactor-threads.ts'
import { Reloader } from './reload.ts'
import { ReloadQueue } from './reload-queue.ts'
import { chooseLevel } from './socket-level.ts'

/** A file the gateway was told to write cannot be written; the message names it and its key. */
export class CannotWrite extends Error {
  override readonly name = 'CannotWrite'
}

export interface GatewayOptions extends NodeOptions {
  readonly threads: ReactorThreads
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
  /** Of the key manager; 0 on a node without one. */
  readonly managementPort: number
  /** What whoever starts it has to know: a password that was made. */
  readonly said: readonly string[]
}

/** What stays as it was at the start. */
interface Started extends NodeState {
  readonly lock: DataLock
  readonly plans: readonly ReactorPlan[]
}

export class Gateway {
  readonly #options: GatewayOptions
  readonly #started: Started
  readonly #pool: ReactorPool
  readonly #stdout: LineStream
  readonly #desk: EndpointDesk
  readonly #reloader: Reloader
  readonly #reloads: ReloadQueue
  readonly #apis: ApiDesk
  #watch: ApiWatch | null = null
  #health: HealthListener | null = null
  #control: ControlSocket | null = null
  #isReady = false

  private constructor(options: GatewayOptions, started: Started) {
    const { log, threads } = options
    const { plans } = started
    this.#options = options
    this.#started = started
    this.#desk = new EndpointDesk(plans[0]!, log)
    const metrics = new MetricsColumn(plans[0]!.metrics, plans.length)
    this.#stdout = new LineStream(process.stdout, {
      dropped: lines => metrics.add(METRIC.accessLogDrops, lines),
      failed: cause => log.error({ CAUSE_OF_ERROR: cause.message }, 'standard output failed'),
    })
    this.#pool = new ReactorPool(plans, threads, {
      message: (reactor, message) => this.#onMessage(reactor, message),
      replaced: (reactor, cause) => log.error({ REACTOR: reactor, CAUSE_OF_ERROR: cause }, 'reactor replaced'),
      hopeless: cause => options.fatal(`reactors keep dying: ${cause}`),
      newLine: reactor => options.authority.newLine(reactor),
    })
    this.#reloader = new Reloader({
      ...options,
      ...started,
      pool: this.#pool,
      desk: this.#desk,
      tellAuthority: () => options.authority.reload(this.#authorityPlan()),
    })
    this.#reloads = new ReloadQueue(scope => this.#reloader.run(scope))
    const { inForce, lifecycles } = started
    const shared = { inForce, lifecycles, reloads: this.#reloads, reloader: this.#reloader, log }
    this.#apis = new ApiDesk({ ...shared, endpoints: this.#desk })
  }

  /** Throws DataLocked, CannotListen, CannotWrite, ConfigurationFaults or ReactorFailed. */
  static async start(options: GatewayOptions): Promise<{ gateway: Gateway; listeners: Listeners }> {
    const { place, prepared, log } = options
    const { configuration } = prepared
    const lock = DataLock.take(place.dataDir)
    try {
      const { level, why } = chooseLevel(configuration['transport.passthru_http'].socket_level, place.dataDir)
      log.debug({ SOCKET_LEVEL: level, CAUSE: why }, 'socket level chosen')
      let gateway: Gateway | null = null
      const reactors = reactorsOf(configuration, planListeners(configuration))
      const state = await openState(options, reactors, () => gateway?.tlsChanged())
      const { planner, inForce } = state
      const { planned, sequences, tls } = inForce
      const { dataDir, home } = place
      const { signer } = inForce.signing
      const shared = { configuration, home, dataDir, level, planner, planned, sequences, signer }
      const plans = reactorPlans({ ...shared, tls: tls?.plans ?? null })
      gateway = new Gateway(options, { ...state, lock, plans })
      return { gateway, listeners: await gateway.#start() }
    } catch (error) {
      lock.release()
      throw error
    }
  }

  async #start(): Promise<Listeners> {
    const { plans, inForce } = this.#started
    const { listeners, level, metrics, accessLog, accessLogPath } = plans[0]!
    if (accessLog.target === 'file') claimLog(accessLogPath)
    for (const { kind, host, port } of listeners) {
      await claimPort({ host, port, key: `${LISTENER_SECTIONS[kind]}.listener.parameters.port` })
    }
    const { configuration } = inForce.configured
    const health = healthAddress(configuration)
    await claimPort(health)
    if (listensForManagement(configuration)) await claimPort(managementAddress(configuration))
    try {
      const begun = this.#beginAuthority()
      // What asks for no credentials need not wait for who knows them.
      if (!inForce.planned.apis.every(({ access }) => access.schemes.length === 0)) await begun
      const [ports, { port: managementPort, said }] = await Promise.all([this.#pool.start(), begun])
      const listening = listeners.map((listener, i) => ({ ...listener, port: ports[i]! }))
      this.#health = await startHealthListener(health.host, health.port, {
        unready: () => (this.#isReady ? '' : 'not ready'),
        metrics,
        moreMetrics: () => this.#desk.metrics(),
        testHooks: process.env.SLUICE_TEST_HOOKS === '1' ? this.#testHooks() : null,
      })
      this.#control = await this.#openControl(listening)
      await this.#desk.check(() => inForce.live.tlsClients)
      this.#isReady = true
      return {
        listeners: listening,
        reactors: plans.length,
        level,
        healthHost: health.host,
        healthPort: this.#health.port,
        managementPort,
        said,
      }
    } catch (error) {
      this.#pool.stop()
      this.#options.authority.abort()
      throw error
    }
  }

  /** Rejects with AuthorityFailed. */
  #beginAuthority(): Promise<Begun> {
    const { authority, log } = this.#options
    return authority.start(this.#authorityPlan(), {
      ...authorityLog(log),
      replaced: () => {
        this.#pool.connect()
        log.info('the authority was replaced')
      },
      question: question => this.#apis.answer(question),
    })
  }

  #authorityPlan(): AuthorityPlan {
    const { place } = this.#options
    const { plans, inForce } = this.#started
    return authorityPlan(inForce, { ...place, plan: plans[0]! })
  }

  /** For the command line. */
  #openControl(listeners: readonly ListenerPlan[]): Promise<ControlSocket | null> {
    const { place, log } = this.#options
    const commands = controlCommands({
      ask: (question, waitMs) => this.#pool.ask(question, waitMs),
      listeners: () => listeners.map(({ kind, host, port }) => ({ scheme: kind, host, port })),
      // It is not live.
      correlationField: this.#started.plans[0]!.http['correlation.header'],
      endpoints: this.#desk,
      reload: () => this.#reloads.request('all'),
      apis: this.#apis,
      manage: request => this.#options.authority.manage(request),
    })
    return ControlSocket.open(place.dataDir, commands, cause => log.warn(cause))
  }

  #testHooks(): TestHooks {
    return {
      kill: () => this.#pool.kill(0),
      hang: () => this.#pool.send({ kind: 'hang' }, 0),
      'kill-authority': () => this.#options.authority.kill(),
    }
  }

  #onMessage(reactor: number, message: FromReactor): void {
    if (message.kind === 'event') logEvent(this.#options.log, reactor, message.event)
    else if (message.kind === 'access') this.#stdout.write(message.batch)
  }

  /** Keys or certificates were read anew. */
  tlsChanged(): void {
    void this.#reloader.deploy({ removed: [], deployed: [] }).then(failures => {
      for (const CAUSE_OF_ERROR of failures) {
        this.#options.log.error({ CAUSE_OF_ERROR }, 'a reactor has not taken the new TLS keys')
      }
    })
    void this.#options.authority.reload(this.#authorityPlan()).then(CAUSE_OF_ERROR => {
      if (CAUSE_OF_ERROR !== '')
        this.#options.log.error({ CAUSE_OF_ERROR }, 'the authority has not taken the new TLS keys')
    })
  }

  /** Reads everything again, and reopens the log. What comes of it is in the log. */
  refresh(): void {
    this.#pool.send({ kind: 'reopenLogs' })
    this.#reloads.begin('all', this.#options.log)
  }

  /** Deploys API files as they change. */
  watch(): void {
    const { place, log } = this.#options
    this.#watch = watchHome(place.home, this.#reloads, log)
  }

  /** Accepts nothing more, finishes what is in flight, at most for `transport.listener.shutdown.wait.sec`. */
  async drain(): Promise<void> {
    this.#isReady = false
    this.#endWatching()
    const { configuration } = this.#started.inForce.configured
    await this.#pool.drain(configuration['transport.listener']['shutdown.wait.sec'] * 1000)
    await this.#options.authority.stop()
    await this.#health?.close()
    this.#control?.close()
    this.#started.lock.release()
  }

  /** Ends at once. */
  abort(): void {
    this.#endWatching()
    this.#pool.stop()
    this.#options.authority.abort()
    this.#control?.close()
    this.#started.lock.release()
  }

  /** Whatever changes from now on is not heeded any more. */
  #endWatching(): void {
    this.#watch?.stop()
    this.#reloader.end()
    this.#desk.stop()
    this.#started.inForce.tls?.stop()
  }
}

/** A pipe that nobody reads would be waited for without end. */
const APPENDED_AT_ONCE = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK

/** Reactors open it for themselves; one that cannot is no place to say so from. */
function claimLog(path: string): void {
  try {
    closeSync(openSync(path, APPENDED_AT_ONCE, LOG_FILE_MODE))
  } catch (error) {
    throw new CannotWrite(`${path} cannot be written (${(error as NodeJS.ErrnoException).code}); set access_log.path`)
  }
}
