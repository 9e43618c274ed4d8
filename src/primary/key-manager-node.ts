/**
 * A node whose role has a key manager and no gateway (node-parts.ts): the authority's thread with database, management
 * API and OAuth endpoints, and no reactor. The APIs of its home pass nothing here: they say which scopes there are, who
 * may have them, and what applications can subscribe to.
 */
import { ApiDesk } from './api-desk.ts'
import { type ApiWatch, watchHome } from './api-watch.ts'
import type { AuthorityPlan } from '../authority-messages.ts'
import type { Begun } from './authority-keeper.ts'
import { authorityLog } from './authority-log.ts'
import { authorityPlan } from './authority-planning.ts'
import { type ControlCommand, ControlSocket, Refused } from './control-socket.ts'
import { apiCommands, manageCommand } from './control-commands.ts'
import { DataLock } from './data-lock.ts'
import { type HealthListener, startHealthListener } from './health-listener.ts'
import { listensForManagement, managementAddress } from './management-planning.ts'
import type { NodeParts } from './node-parts.ts'
import { type NodeOptions, type NodeState, openState } from './node-state.ts'
import { allocateMetrics } from '../observe/metrics.ts'
import { claimPort, healthAddress } from './ports.ts'
import { Reloader } from './reload.ts'
import { ReloadQueue } from './reload-queue.ts'

export interface KeyManagerNodeOptions extends NodeOptions {
  readonly parts: NodeParts
}

/** What a started one listens on. */
export interface KeyManagerAddresses {
  readonly healthHost: string
  readonly healthPort: number
  /** 0 where `management.enable` is false. */
  readonly managementPort: number
  /** What whoever starts it has to know: a password that was made. */
  readonly said: readonly string[]
}

/** What is asked of a gateway alone. */
const OF_A_GATEWAY = ['api', 'connections', 'endpoints', 'walk'] as const
/** Of the authority and of the primary. */
const METRIC_COLUMNS = 2

export class KeyManagerNode {
  readonly #options: KeyManagerNodeOptions
  readonly #lock: DataLock
  readonly #state: NodeState
  readonly #metrics = allocateMetrics(METRIC_COLUMNS)
  readonly #epoch = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
  readonly #reloader: Reloader
  readonly #reloads: ReloadQueue
  readonly #apis: ApiDesk
  #watch: ApiWatch | null = null
  #health: HealthListener | null = null
  #control: ControlSocket | null = null
  #isEnding = false

  private constructor(options: KeyManagerNodeOptions, lock: DataLock, state: NodeState) {
    this.#options = options
    this.#lock = lock
    this.#state = state
    this.#reloader = new Reloader({
      ...options,
      ...state,
      // Nobody else is to be told.
      pool: { deploy: async () => ({ refusals: [], late: [] }) },
      desk: { put: () => {}, check: async () => {} },
      tellAuthority: () => options.authority.reload(this.#authorityPlan()),
    })
    this.#reloads = new ReloadQueue(scope => this.#reloader.run(scope))
    const { inForce, lifecycles } = state
    const shared = { inForce, lifecycles, reloads: this.#reloads, reloader: this.#reloader, log: options.log }
    this.#apis = new ApiDesk({ ...shared, endpoints: { reading: () => this.#refuse() } })
  }

  /** Throws DataLocked, CannotListen, ConfigurationFaults or AuthorityFailed. */
  static async start(
    options: KeyManagerNodeOptions,
  ): Promise<{ node: KeyManagerNode; addresses: KeyManagerAddresses }> {
    const lock = DataLock.take(options.place.dataDir)
    let node: KeyManagerNode | null = null
    try {
      const state = await openState(options, 1, () => node?.tlsChanged())
      node = new KeyManagerNode(options, lock, state)
      return { node, addresses: await node.#start() }
    } catch (error) {
      if (node !== null) node.#endWatching()
      options.authority.abort()
      lock.release()
      throw error
    }
  }

  async #start(): Promise<KeyManagerAddresses> {
    const { authority, place, log } = this.#options
    const { configuration } = this.#state.inForce.configured
    const health = healthAddress(configuration)
    await claimPort(health)
    if (listensForManagement(configuration)) await claimPort(managementAddress(configuration))
    const { port: managementPort, said } = await this.#beginAuthority()
    this.#health = await startHealthListener(health.host, health.port, {
      unready: () => this.#unready(),
      metrics: this.#metrics,
      moreMetrics: () => '',
      testHooks: process.env.SLUICE_TEST_HOOKS === '1' ? { 'kill-authority': () => authority.kill() } : null,
    })
    this.#control = await ControlSocket.open(place.dataDir, this.#commands(), cause => log.warn(cause))
    return { healthHost: health.host, healthPort: this.#health.port, managementPort, said: [...said] }
  }

  #beginAuthority(): Promise<Begun> {
    const { authority, log } = this.#options
    return authority.start(this.#authorityPlan(), {
      ...authorityLog(log),
      replaced: () => log.info('the authority was replaced'),
      question: question => this.#apis.answer(question),
    })
  }

  #authorityPlan(): AuthorityPlan {
    const shared = { identityEpoch: this.#epoch, metrics: this.#metrics, reactors: 0 }
    return authorityPlan(this.#state.inForce, { ...this.#options.place, plan: shared })
  }

  #unready(): string {
    if (this.#isEnding) return 'it is ending'
    return this.#options.authority.isThere ? '' : 'the key manager has ended, and another one begins'
  }

  #commands(): Readonly<Record<string, ControlCommand>> {
    const refuse = (): never => this.#refuse()
    return {
      ...Object.fromEntries(OF_A_GATEWAY.map(command => [command, refuse])),
      ...apiCommands(this.#apis),
      reload: () => this.#reloads.request('all'),
      manage: manageCommand(request => this.#options.authority.manage(request)),
    }
  }

  #refuse(): never {
    throw new Refused(`this node runs no gateway: ${this.#options.parts.because}`)
  }

  /** Keys or certificates were read anew. */
  tlsChanged(): void {
    const { authority, log } = this.#options
    void authority.reload(this.#authorityPlan()).then(CAUSE_OF_ERROR => {
      if (CAUSE_OF_ERROR !== '') log.error({ CAUSE_OF_ERROR }, 'the authority has not taken the new TLS keys')
    })
  }

  /** Reads everything again. What comes of it is in the log. */
  refresh(): void {
    this.#reloads.begin('all', this.#options.log)
  }

  /** Takes over files of APIs and applications as they change. */
  watch(): void {
    const { place, log } = this.#options
    this.#watch = watchHome(place.home, this.#reloads, log)
  }

  /** Accepts nothing more, and finishes what is under way. */
  async drain(): Promise<void> {
    this.#endWatching()
    await this.#options.authority.stop()
    await this.#health?.close()
    this.#release()
  }

  /** Ends at once. */
  abort(): void {
    this.#endWatching()
    this.#options.authority.abort()
    this.#release()
  }

  #release(): void {
    this.#control?.close()
    this.#lock.release()
  }

  /** Whatever changes from now on is not heeded any more. */
  #endWatching(): void {
    this.#isEnding = true
    this.#watch?.stop()
    this.#reloader.end()
    this.#state.inForce.tls?.stop()
  }
}
