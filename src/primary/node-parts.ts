/**
 * The parts of a node in the primary, by its role: plans of the reactors, memory that threads share, services over that
 * memory, and APIs with their reloads. They begin and end nothing: `node.ts` does.
 */
import type { ApiProjects } from '../apis/api-projects.ts'
import type { Log } from '../observe/log.ts'
import { allocateMetrics } from '../observe/metrics.ts'
import { openFileLimit } from '../plan/descriptor-planning.ts'
import type { NodeComponents } from '../plan/node-components.ts'
import type { ListenerPlan, ReactorPlan } from '../plan/reactor-plan.ts'
import { planReactors } from '../plan/reactor-planning.ts'
import type { ActiveState, OpenedState } from './active-state.ts'
import { ApiService } from './api-service.ts'
import { controlPlan, type SharedMemory } from './control-plan.ts'
import { type CommandHandler, CommandRefused } from './control-socket.ts'
import type { ControlThread } from './control-thread.ts'
import { DashboardService, type DashboardSources } from './dashboard-service.ts'
import { EndpointService } from './endpoint-service.ts'
import type { Installation, LoadedHome } from './home-loading.ts'
import { MetricsService } from './metrics-service.ts'
import { PoolService } from './pool-service.ts'
import type { Readiness } from './readiness.ts'
import type { ReactorPool } from './reactor-pool.ts'
import { ReloadQueue } from './reload-queue.ts'
import { Reloader } from './reloader.ts'
import { COMMANDS, homeCommands, reactorCommands } from './socket-commands.ts'
import { chooseLevel } from './socket-level.ts'
import { allocateCounters, ThrottleService } from './throttle-service.ts'

/** Sources of the parts of a node. */
export interface NodeContext {
  readonly installation: Installation
  readonly projects: ApiProjects
  /** Without errors, but for those of single APIs. */
  readonly loaded: LoadedHome
  readonly components: NodeComponents
  /** Neither is started on a node whose role does not have it. */
  readonly reactors: ReactorPool
  readonly control: ControlThread
  /** Milliseconds that the start waits for a database that cannot be reached. */
  readonly databaseWaitMs: number
  readonly log: Log
}

/** The home of a node that knows APIs: one with reactors, a key manager, or both. */
export interface ActiveHome {
  readonly active: ActiveState
  readonly reloader: Reloader
  readonly reloads: ReloadQueue
  readonly apis: ApiService
  readonly dashboard: DashboardService
}

/** Columns of the table of counters beside those of the reactors: the primary's and the control thread's. */
const OTHER_COLUMNS = 2

export class NodeParts {
  readonly #context: NodeContext
  /** One per reactor. */
  readonly plans: readonly ReactorPlan[]
  readonly shared: SharedMemory
  /** Null on a node without reactors. */
  readonly endpoints: EndpointService | null
  /** Null on a node without reactors. */
  readonly throttling: ThrottleService | null
  /** Null on a node without reactors. */
  readonly pools: PoolService | null
  /** Null on a node without any part. */
  readonly home: ActiveHome | null

  constructor(context: NodeContext, state: OpenedState | null, readiness: () => Readiness) {
    this.#context = context
    this.plans = state !== null && context.components.runsGateway ? plansOf(context, state) : []
    const [plan] = this.plans
    this.shared = plan ?? {
      reactors: 0,
      metrics: allocateMetrics(OTHER_COLUMNS),
      authVersion: new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT),
    }
    this.endpoints = plan === undefined ? null : new EndpointService(plan, context.log)
    const { dataDir } = context.installation
    const { configuration } = context.loaded
    this.throttling =
      plan === undefined ? null : new ThrottleService(plan.counters, configuration, dataDir, context.log)
    this.pools = plan === undefined ? null : new PoolService(plan, () => this.home?.active.live ?? plan)
    this.home = state === null ? null : this.#openHome(state, readiness)
  }

  #openHome({ active, lifecycles, ...state }: OpenedState, readiness: () => Readiness): ActiveHome {
    const { installation, control, log } = this.#context
    const { endpoints } = this
    const reloader = new Reloader({
      ...{ ...this.#context, ...state, active, lifecycles, endpoints },
      reloadControl: () => control.reload(controlPlan(active, installation, this.shared, this.#context.databaseWaitMs)),
    })
    const reloads = new ReloadQueue(scope => reloader.run(scope))
    const apis = new ApiService({ active, lifecycles, reloads, reloader, endpoints, log })
    const dashboard = new DashboardService({
      metrics: this.shared.metrics,
      isOpen: () => {
        const { management } = active.configured.configuration
        return management.enable && management.dashboard
      },
      readiness,
      keys: () => active.configured.keys,
      apis,
      plans: () => Array.from(active.planned.byDefinition.values(), ({ plan }) => plan),
      gateway: this.#gateway(),
    })
    return { active, reloader, reloads, apis, dashboard }
  }

  /** Sources that only a node with reactors has; null on the others. */
  #gateway(): DashboardSources['gateway'] {
    const [plan] = this.plans
    const [endpoints, throttling, pools] = [this.endpoints, this.throttling, this.pools]
    if (plan === undefined || endpoints === null || throttling === null || pools === null) return null
    return { plan, endpoints, throttling, pools, reactors: this.#context.reactors }
  }

  metricsService(): MetricsService {
    const [plan] = this.plans
    return new MetricsService({
      ...this.shared,
      plan: plan ?? null,
      active: () => {
        const active = this.home?.active
        return { live: active?.live ?? plan!, apis: active?.planned.apis ?? plan!.apis }
      },
      pool: this.#context.reactors,
      more: () => [this.endpoints, this.throttling, this.pools].map(it => it?.metrics() ?? '').join(''),
    })
  }

  /** Handlers of the control socket. `listeners`: with the ports in use. */
  commands(listeners: readonly ListenerPlan[]): Readonly<Record<string, CommandHandler>> {
    const { components, reactors, control } = this.#context
    const refuse = (): never => {
      throw new CommandRefused(`this node runs no gateway: ${components.roleSetting}`)
    }
    const commands: Record<string, CommandHandler> = Object.fromEntries(COMMANDS.map(name => [name, refuse]))
    if (this.home === null) return commands
    const { apis, reloads } = this.home
    Object.assign(
      commands,
      homeCommands({ apis, reload: () => reloads.request('all'), manage: request => control.manage(request) }),
    )
    if (this.endpoints === null || this.throttling === null || this.pools === null) return commands
    const { mediation } = this.#context.loaded.configuration
    const sources: Parameters<typeof reactorCommands>[0] = {
      call: (call, timeoutMs) => reactors.call(call, timeoutMs),
      listeners: listeners.map(({ kind, host, port }) => ({ scheme: kind, host, port })),
      // This key takes a restart.
      correlationField: this.plans[0]!.http['correlation.header'],
      collects: {
        payloads: mediation['stat.tracer.collect_payloads'],
        properties: mediation['stat.tracer.collect_mediation_properties'],
      },
      endpoints: this.endpoints,
      throttling: this.throttling,
      pools: this.pools,
      metrics: this.metricsService(),
      apis,
    }
    return Object.assign(commands, reactorCommands(sources))
  }
}

function plansOf({ installation, loaded, log }: NodeContext, { planner, active }: OpenedState): readonly ReactorPlan[] {
  const { configuration } = loaded
  const { home, dataDir } = installation
  const { level, why } = chooseLevel(configuration['transport.passthru_http'].socket_level, dataDir)
  log.debug({ SOCKET_LEVEL: level, CAUSE: why }, 'socket level chosen')
  const { planned, sequences, policies, tls, signing } = active
  const counters = allocateCounters(configuration, dataDir, log)
  const shared = { configuration, home, dataDir, level, planner, planned, sequences, policies, counters }
  const plans = planReactors({ ...shared, tls: tls?.plans ?? null, signer: signing.signer })
  warnOfOpenFiles(plans[0]!, log)
  return plans
}

/** Without a limit of their own, so many clients are expected at least. */
const CLIENTS_EXPECTED = 1000

function warnOfOpenFiles({ connectionLimits: { clients }, http, https }: ReactorPlan, log: Log): void {
  const expected = Math.max(CLIENTS_EXPECTED, http.max_open_connections, https.max_open_connections)
  if (clients < 0 || clients >= expected) return
  log.warn(`ulimit -n ${openFileLimit()} allows ${clients} client connections; raise it (LimitNOFILE of a service)`)
}
