/**
 * The life of a node, in the primary: start of reactors and control thread, health port, control socket, replacement by
 * another process, and end. `node-parts.ts` has its parts. A node without any part only answers the health port and the
 * control socket.
 */
import { logEvent } from '../observe/log.ts'
import { sinkCallbacks } from '../observe/access-log-sink.ts'
import { MetricsColumn, snapshotMetrics } from '../observe/metrics.ts'
import { ThreadWatch } from '../observe/thread-metrics.ts'
import type { ControlStarted, FirstAccount } from '../plan/control-messages.ts'
import { openFileLimit, reservedConnections } from '../plan/descriptor-planning.ts'
import { socketName } from '../plan/listening-sockets.ts'
import { readLifecycleFile } from '../apis/lifecycle-file.ts'
import { LISTENER_SECTIONS, planListeners } from '../plan/listener-planning.ts'
import { hasManagementListener, managementAddress } from '../plan/management-plan.ts'
import { healthAddress, type ListenAddress, probePort } from '../plan/ports.ts'
import { configuredParts } from '../plan/readiness-parts.ts'
import { receiverAddress } from '../plan/receiver-planning.ts'
import type { FromReactor } from '../plan/reactor-messages.ts'
import type { ListenerPlan } from '../plan/reactor-plan.ts'
import { reactorCount } from '../plan/reactor-planning.ts'
import { deleteStaleFiles } from '../runtime/temporary-files.ts'
import { AccessLogOutput, checkAccessLog } from './access-log-output.ts'
import { type OpenedState, openState } from './active-state.ts'
import { type ApiWatch, watchHome } from './api-watch.ts'
import { controlPlan, takesIssuer } from './control-plan.ts'
import { type CommandHandler, CommandRefused, ControlSocket } from './control-socket.ts'
import { DataLock } from './data-lock.ts'
import type { Predecessor, SuccessorProgram } from './handover.ts'
import { type HealthListener, startHealthListener } from './health-listener.ts'
import type { LoadedHome } from './home-loading.ts'
import { installedVersion } from './metrics-service.ts'
import { type ActiveHome, type NodeContext, NodeParts } from './node-parts.ts'
import { type Readiness, readiness } from './readiness.ts'
import type { PoolOwner } from './reactor-pool.ts'
import { replaceNode } from './upgrade.ts'

export interface NodeOptions extends NodeContext {
  /** The process cannot go on. */
  readonly fatal: (cause: string) => void
  /** The process that this one replaces; null: none. */
  readonly predecessor: Predecessor | null
  /** Another process has taken over; this one has still to finish what is in flight. */
  readonly replaced: () => void
}

export interface NodeAddresses {
  /** With the ports that are in use; none on a node without reactors. */
  readonly listeners: readonly ListenerPlan[]
  readonly healthHost: string
  readonly healthPort: number
  /** 0: no management listener. */
  readonly managementPort: number
  readonly reactors: number
  /** Socket implementation of the reactors; '' without any. */
  readonly level: string
  readonly firstAccount: FirstAccount | null
}

export class Node {
  readonly #options: NodeOptions
  /** Null until a predecessor has released it. */
  #lock: DataLock | null
  readonly #parts: NodeParts
  #watch: ApiWatch | null = null
  #health: HealthListener | null = null
  #accessLog: AccessLogOutput | null = null
  #socket: ControlSocket | null = null
  /** Timer of the measurements of this thread. */
  #threadWatch: NodeJS.Timeout | null = null
  #phase: 'starting' | 'ready' | 'being replaced' | 'ending' = 'starting'

  private constructor(options: NodeOptions, lock: DataLock | null, state: OpenedState | null) {
    this.#options = options
    this.#lock = lock
    this.#parts = new NodeParts(options, state, () => this.#readiness())
  }

  /** Rejects with DataLocked, ListenError, CannotWrite, ConfigurationErrors or ThreadFailed. */
  static async start(given: NodeOptions): Promise<{ node: Node; addresses: NodeAddresses }> {
    const { installation, components, predecessor } = given
    const lock = predecessor === null ? DataLock.take(installation.dataDir) : null
    const options = predecessor === null ? given : { ...given, loaded: await reloadedBehind(predecessor, given) }
    const { loaded } = options
    let node: Node | null = null
    try {
      const { runsGateway, runsKeyManager, runsTrafficManager } = components
      const { configuration } = loaded
      const columns = runsGateway ? reactorCount(configuration, planListeners(configuration)) : 1
      const hasHome = runsGateway || runsKeyManager || runsTrafficManager
      const state = hasHome ? await openState(options, columns, () => node?.tlsChanged()) : null
      node = new Node(options, lock, state)
      return { node, addresses: await node.#start() }
    } catch (error) {
      node?.abort()
      lock?.release()
      throw error
    }
  }

  async #start(): Promise<NodeAddresses> {
    const { configuration } = this.#options.loaded
    this.#threadWatch = ThreadWatch.start(this.#parts.shared.metrics, this.#parts.shared.reactors)
    const [plan] = this.#parts.plans
    const { listeners = [], level = '' } = plan ?? {}
    if (plan !== undefined) checkAccessLog(configuration, this.#options.installation.dataDir)
    const { predecessor } = this.#options
    const { home } = this.#parts
    for (const { kind, host, port } of listeners) {
      await this.#probe(kind, { host, port, key: `${LISTENER_SECTIONS[kind]}.listener.parameters.port` })
    }
    const health = healthAddress(configuration)
    await this.#probe('health', health)
    if (home !== null && hasManagementListener(configuration))
      await this.#probe('management', managementAddress(configuration))
    const receiver = receiverAddress(configuration)
    if (home !== null && receiver !== null && predecessor === null) await this.#probe('receiver', receiver)
    // A start that waits for a database is alive, and not ready. A predecessor answers until this process is ready.
    if (predecessor === null) await this.#openHealth(health)
    const { ports, port: managementPort, firstAccount } = await this.#startThreads(home)
    const listening = listeners.map((listener, i) => ({ ...listener, port: ports[i]! }))
    const { installation, log } = this.#options
    const commands = this.#guarded(this.#parts.commands(listening))
    if (predecessor !== null) await this.#takeOver(predecessor, health)
    this.#socket = await ControlSocket.open(installation.dataDir, commands, cause => log.warn(cause))
    await this.#parts.endpoints?.runHealthChecks(() => home!.active.live.tlsClients)
    this.#parts.throttling?.open()
    this.#phase = 'ready'
    predecessor?.done()
    const addresses = { listeners: listening, healthHost: health.host, healthPort: this.#health!.port, managementPort }
    return { ...addresses, reactors: this.#parts.plans.length, level, firstAccount }
  }

  /** Throws ListenError where the address is taken. Skips an address whose socket a predecessor hands over. */
  async #probe(kind: string, address: ListenAddress): Promise<void> {
    const isInherited = this.#options.predecessor?.has(socketName(kind, address.host, address.port)) ?? false
    if (!isInherited) await probePort(address)
  }

  /** The inherited sockets of an address; none without a predecessor. */
  #inherited(kind: string, { host, port }: Pick<ListenAddress, 'host' | 'port'>): readonly number[] {
    return this.#options.predecessor?.take(socketName(kind, host, port)) ?? []
  }

  async #openHealth(address: ListenAddress): Promise<void> {
    const { host, port } = address
    const connectionsMax = reservedConnections(openFileLimit()).health
    const metrics = this.#parts.metricsService()
    const sources = {
      readiness: () => this.#readiness(),
      metrics: () => metrics.text(),
      version: installedVersion(),
      testHooks: process.env.SLUICE_TEST_HOOKS === '1' ? this.#testHooks() : null,
    }
    const [fd] = this.#inherited('health', address)
    this.#health = await startHealthListener(host, port, connectionsMax, sources, fd)
  }

  #readiness(): Readiness {
    const { components, control, installation } = this.#options
    const { home, endpoints, shared } = this.#parts
    const configuration = home?.active.configured.configuration
    return readiness({
      unready: this.#unready(),
      isControlServing: home === null || this.#phase !== 'ready' ? null : control.isServing,
      runsKeyManager: components.runsKeyManager,
      configured:
        configuration === undefined ? new Set() : configuredParts(configuration, components, installation.dataDir),
      metrics: shared.metrics,
      endpoints: endpoints?.list() ?? null,
    })
  }

  /** The reactors accept connections beside the reactors of the predecessor, which ends now. */
  async #takeOver(predecessor: Predecessor, health: ListenAddress): Promise<void> {
    this.#phase = 'ready'
    await this.#openHealth(health)
    predecessor.closeRest()
    await predecessor.reached('serving')
    this.#lock = await DataLock.takeOver(this.#options.installation.dataDir)
  }

  /** Rejects with ThreadFailed. */
  async #startThreads(home: ActiveHome | null): Promise<ControlStarted & { readonly ports: readonly number[] }> {
    if (home === null) return { ports: [], port: 0, firstAccount: null, sharedIssuer: '' }
    const starting = this.#startControl(home)
    if (this.#parts.plans.length === 0) return { ...(await starting), ports: [] }
    // Where every API is open, and no issuer comes from the database, reactors need not wait for the control thread.
    const { apis, ofSequences } = home.active.planned
    const needsTokens = apis.some(({ access }) => access.schemes.length > 0) || ofSequences.tokens.length > 0
    if (needsTokens || takesIssuer(home.active)) await starting
    const [ports, started] = await Promise.all([this.#startReactors(home), starting])
    return { ...started, ports }
  }

  async #startControl({ active, apis, dashboard }: ActiveHome): Promise<ControlStarted> {
    const { installation, reactors, control, log, fatal } = this.#options
    const THREAD = 'control thread'
    const plan = controlPlan(active, installation, this.#parts.shared, this.#options.databaseWaitMs)
    const started = await control.start(
      plan,
      {
        event: ({ level, event, fields }) => log[level]({ THREAD, ...fields }, event),
        serve: call => {
          const isOfDashboard = call.kind === 'dashboard' || call.kind === 'configuration'
          return isOfDashboard ? dashboard.serve(call) : apis.serve(call)
        },
        died: (_, CAUSE_OF_ERROR, PAUSE_MS) => {
          log.error({ THREAD, CAUSE_OF_ERROR, PAUSE_MS }, 'control thread died; a replacement starts')
        },
        replaced: () => {
          reactors.connect()
          log.info({ THREAD }, 'control thread replaced')
        },
        printed: (_, text) => log.warn({ THREAD }, text),
        fatal,
      },
      this.#inherited('management', managementAddress(active.configured.configuration))[0],
    )
    if (started.sharedIssuer !== '') active.shareIssuer(started.sharedIssuer)
    return started
  }

  async #startReactors({ active }: ActiveHome): Promise<readonly number[]> {
    const { reactors, control, log, fatal, loaded, installation } = this.#options
    void deleteStaleFiles().then(FILES => {
      if (FILES > 0) log.info({ FILES }, 'temporary files of a process that was killed are deleted')
    })
    const metrics = new MetricsColumn(this.#parts.shared.metrics, this.#parts.shared.reactors)
    const sink = loaded.configuration.access_log.target === 'stdout' ? 'standard output' : 'access log'
    const accessLog = await AccessLogOutput.open({
      ...installation,
      configuration: loaded.configuration,
      reopen: () => reactors.send({ kind: 'reopenLogs' }),
      isReplaced: () => this.#phase === 'being replaced',
      ...sinkCallbacks(sink, metrics, (level, event, fields) => log[level](fields, event)),
    })
    this.#accessLog = accessLog
    // Keys or certificates may have changed since the plans were made.
    const { live, planned } = active
    const plans = this.#parts.plans.map(plan => ({ ...plan, ...live, apis: planned.apis }))
    const inherited = new Map(plans[0]!.listeners.map(it => [it.kind, this.#inherited(it.kind, it)] as const))
    const owner: PoolOwner = {
      openChannel: reactor => control.openChannel(reactor),
      receive: (reactor: number, message: FromReactor) => {
        if (message.kind === 'event') logEvent(log, reactor, message.event)
        else if (message.kind === 'access') accessLog.write(message.batch)
      },
      died: (REACTOR, CAUSE_OF_ERROR) => {
        this.#parts.throttling?.reactorDied(REACTOR)
        log.error({ REACTOR, CAUSE_OF_ERROR }, 'reactor died; a replacement starts')
      },
      replaced: REACTOR => log.info({ REACTOR }, 'reactor replaced'),
      printed: (REACTOR, text) => log.warn({ REACTOR }, text),
      fatal: cause => fatal(`reactors keep dying: ${cause}`),
    }
    return reactors.start(plans, owner, inherited)
  }

  /** Why the node is not ready; '' where it is. */
  #unready(): string {
    const { components, control } = this.#options
    if (this.#parts.home === null) return components.warnings.join('\n')
    if (this.#phase !== 'ready' && this.#phase !== 'being replaced') return `the node is ${this.#phase}`
    // A gateway goes on with what its reactors know.
    return this.#parts.plans.length > 0 || control.isServing ? '' : 'the control thread died; a replacement starts'
  }

  /** Adds `upgrade`, and refuses the other commands while another process takes over: their effects would be lost. */
  #guarded(commands: Readonly<Record<string, CommandHandler>>): Readonly<Record<string, CommandHandler>> {
    const guarded = Object.entries(commands).map(([name, run]): readonly [string, CommandHandler] => [
      name,
      (request, client) => {
        if (this.#phase !== 'being replaced') return run(request, client)
        throw new CommandRefused('another process takes over; try again in a moment')
      },
    ])
    const upgrade: CommandHandler = ({ node, entry }) => this.#upgrade({ node: String(node), entry: String(entry) })
    return { ...Object.fromEntries(guarded), upgrade }
  }

  /** Rejects with CommandRefused: then this process goes on. */
  async #upgrade(program: SuccessorProgram): Promise<object> {
    if (this.#phase !== 'ready') throw new CommandRefused(`the node is ${this.#phase}`)
    this.#phase = 'being replaced'
    const { loaded, reactors, control, predecessor, log, replaced } = this.#options
    try {
      return await replaceNode(program, {
        ...{ reactors, log, replaced },
        control: this.#parts.home === null ? null : control,
        configuration: (this.#parts.home?.active.configured ?? loaded).configuration,
        healthFd: this.#health!.fd,
        inherited: predecessor?.inherited ?? 0,
        quiesce: () => this.#watch?.stop(),
        release: async () => {
          await this.#health?.close()
          await this.#parts.throttling?.close()
          this.#release()
        },
      })
    } catch (error) {
      this.#phase = 'ready'
      if (this.#watch !== null) {
        this.#watch.stop()
        this.watch()
      }
      throw error
    }
  }

  #testHooks(): Readonly<Record<string, () => void>> {
    const { reactors, control } = this.#options
    return { kill: () => reactors.kill(0), hang: () => reactors.hang(0), 'kill-control': () => control.kill() }
  }

  /** Deploys the TLS plans after keys or certificates were read again. */
  tlsChanged(): void {
    void this.#parts.home!.reloader.deploy({ removed: [], deployed: [] }).then(failures => {
      for (const CAUSE_OF_ERROR of failures) {
        this.#options.log.error({ CAUSE_OF_ERROR }, 'a thread has not applied the new TLS keys')
      }
    })
  }

  /** SIGHUP: reads the home again and reopens the access log. The outcome is in the log. */
  refresh(): void {
    const { components, reactors, log } = this.#options
    if (this.#phase === 'being replaced') return
    reactors.send({ kind: 'reopenLogs' })
    if (this.#parts.home === null)
      log.warn(`this node runs no gateway (${components.role}): there is nothing to reload`)
    else this.#parts.home.reloads.start('all', log)
  }

  /** Applies files of APIs and applications as they change. */
  watch(): void {
    const { installation, log } = this.#options
    if (this.#parts.home !== null) this.#watch = watchHome(installation.home, this.#parts.home.reloads, log)
  }

  /**
   * Accepts nothing more and finishes what is in flight, within `transport.listener.shutdown.wait.sec`. `isReplaced`:
   * another process accepts, so idle clients may come back to this one once more.
   */
  async drain(isReplaced = false): Promise<void> {
    const { loaded, reactors, control } = this.#options
    this.#endReloads()
    const { configuration } = this.#parts.home?.active.configured ?? loaded
    await reactors.drain(configuration['transport.listener']['shutdown.wait.sec'] * 1000, isReplaced)
    await control.stop()
    await this.#accessLog?.close()
    await this.#parts.throttling?.close()
    await this.#health?.close()
    this.#release()
  }

  /** Requests so far, of all reactors. */
  get requests(): number {
    return snapshotMetrics(this.#parts.shared.metrics).counts.requests
  }

  /** Ends at once. */
  abort(): void {
    const { reactors, control } = this.#options
    this.#endReloads()
    reactors.abort()
    control.abort()
    void this.#health?.close()
    this.#release()
  }

  #endReloads(): void {
    this.#phase = 'ending'
    this.#watch?.stop()
    this.#parts.home?.reloader.end()
    this.#parts.endpoints?.stop()
    this.#parts.home?.active.tls?.stop()
  }

  #release(): void {
    clearInterval(this.#threadWatch ?? undefined)
    this.#socket?.close()
    this.#socket = null
    this.#lock?.release()
    this.#lock = null
  }
}

/** The home of a process that replaces another one, as it is once the other one changes nothing any more. */
async function reloadedBehind(predecessor: Predecessor, { loaded, installation }: NodeOptions): Promise<LoadedHome> {
  await predecessor.reached('loaded')
  const lifecycles = loaded.lifecycles === null ? null : readLifecycleFile(installation.dataDir)
  return { ...loaded, lifecycles }
}
