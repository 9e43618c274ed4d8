/**
 * The reactors, seen from the primary: their plans, what a reload deploys to them, the primary's calls to them. A
 * replaced reactor takes over the columns of its predecessor in shared memory.
 */
import type { MessagePort, Worker } from 'node:worker_threads'
import { encodePlan } from '../plan/plan-codec.ts'
import type { FromReactor, ReactorCall, ReactorCallResults, ToReactor } from '../plan/reactor-messages.ts'
import {
  type ApiChanges,
  apiIdentity,
  type ApiPlan,
  type ListenerPlan,
  type LivePlan,
  type ReactorPlan,
} from '../plan/reactor-plan.ts'
import { clearGauges } from '../observe/metrics.ts'
import { EndpointTable } from '../proxy/target/endpoint-table.ts'
import { openObject, shutDown } from '../runtime/c-functions.ts'
import type { CallFailed } from '../runtime/call-channel.ts'
import { ModuleStates } from '../runtime/module-states.ts'
import { SharedGauge } from '../runtime/shared-gauge.ts'
import { SharedPermits } from '../runtime/shared-permits.ts'
import { deleteFilesOfThread } from '../runtime/temporary-files.ts'
import { type ThreadKind, type ThreadLimits, ThreadSupervisor, type ThreadWatcher } from './thread-supervisor.ts'

export interface PoolOwner extends ThreadWatcher {
  receive(reactor: number, message: FromReactor): void
  /** A channel for a reactor to the control thread; left out: there is none. */
  openChannel?(reactor: number): MessagePort
}

export interface PoolLimits extends ThreadLimits {
  /** Milliseconds more to start or to deploy, per API: some twenty times what an API takes on an idle machine. */
  readonly perApiMs: number
}

const ENTRY = new URL('../reactor/reactor-entry.js', import.meta.url)
/** A hung reactor would go on receiving its share of new connections. */
const LIMITS: PoolLimits = { startMs: 10_000, silenceMs: 5000, checkMs: 1000, stuckMs: 5000, perApiMs: 2 }
const RESTARTS = { pauseMs: 0, pauseMsMax: 0, settledMs: 0, deathsMax: 10, windowMs: 30_000 }
const CALLS = { pendingMax: 1024, timeoutMs: 2000 }
/** Beside the time that the APIs take. */
const DEPLOY_MS = 10_000
/** Behind the cut-off of a drain: a hung reactor does not take even that. */
const CUT_OFF_MS = 1000

/** How the reactors have taken a deployment. */
interface Deployed {
  /** Causes of reactors that have refused it. Nothing has changed there; the next deployment repeats it. */
  readonly refusals: readonly string[]
  /** Reactors that have not responded in time, and deploy when they can. */
  readonly late: readonly number[]
}

const NO_CHANGES: ApiChanges = { removed: [], deployed: [] }

export class ReactorPool {
  readonly #threads: ThreadSupervisor<readonly number[], FromReactor, ReactorCall, ReactorCallResults>
  readonly #limits: PoolLimits
  #plans: readonly ReactorPlan[] = []
  /** Plans with inherited sockets, until they are sent. */
  readonly #firstPlans = new Map<number, ReactorPlan>()
  #openChannel: PoolOwner['openChannel']
  /** By reactor: its listening sockets, by descriptor and what it stood for. */
  readonly #listening = new Map<number, ReadonlyMap<number, string>>()
  /** Another process has the listening sockets too. */
  sharesSockets = false
  /** Changes that a reactor has refused. */
  #owed = NO_CHANGES

  /** `entry`, `limits`: for tests. */
  constructor(compileCache: string, entry = ENTRY, limits: Partial<PoolLimits> = {}) {
    this.#limits = { ...LIMITS, ...limits }
    const nameOf = (reactor: number): string => `reactor ${reactor}`
    const kind = { nameOf, entry, workerData: { compileCache }, limits: this.#limits, restarts: RESTARTS, calls: CALLS }
    this.#threads = new ThreadSupervisor(kind satisfies ThreadKind)
  }

  /** Creates so many threads: each loads its modules while the primary still reads APIs. */
  preload(reactors: number): void {
    this.#threads.preload(reactors)
  }

  /**
   * Resolves with the ports, in the order of the listeners, once every reactor listens. Rejects with ThreadFailed.
   * `inherited`: sockets of a predecessor, which are shared out among the reactors.
   */
  async start(
    plans: readonly ReactorPlan[],
    owner: PoolOwner,
    inherited: InheritedListeners = new Map(),
  ): Promise<readonly number[]> {
    this.#plans = plans
    for (const [reactor, plan] of plans.entries()) {
      this.#firstPlans.set(reactor, { ...plan, listeners: inherit(plan, inherited) })
    }
    this.#openChannel = owner.openChannel
    const ports = await this.#threads.start(plans.length, {
      heartbeats: new Int32Array(plans[0]!.heartbeats),
      sendPlan: (worker, reactor) => this.#sendPlan(worker, reactor),
      startGraceMs: () => this.#graceMsFor(this.#plans[0]!.apis),
      stuck: reactor => this.#stopListening(reactor),
      release: (reactor, threadId) => this.#release(reactor, threadId),
      receive: (reactor, message) => {
        if (message.kind === 'listening') this.#listening.set(reactor, objectsOf(message.fds))
        else owner.receive(reactor, message)
      },
      died: (reactor, cause, pauseMs) => owner.died(reactor, this.#wholeCause(reactor, cause), pauseMs),
      replaced: reactor => owner.replaced(reactor),
      printed: (reactor, text) => owner.printed(reactor, text),
      fatal: cause => owner.fatal(cause),
    })
    return ports[0]!
  }

  /** Applies other settings, keys and APIs to the reactors that run and to those that come. */
  async deploy(live: LivePlan, apis: readonly ApiPlan[], changes: ApiChanges): Promise<Deployed> {
    this.#plans = this.#plans.map(plan => ({ ...plan, ...live, apis }))
    const owed = combined(this.#owed, changes, apis)
    // A deployment that begins meanwhile repeats it.
    this.#owed = NO_CHANGES
    const workers = this.#plans.map((_, reactor) => this.#threads.workerOf(reactor))
    const graceMs = this.#graceMsFor(owed.deployed)
    // No heartbeat comes from a reactor while it builds.
    const call = { kind: 'deploy', live, apis: owed } as const
    const results = await Promise.all(
      workers.map((_, reactor) =>
        this.#threads.call(reactor, call, DEPLOY_MS + graceMs, graceMs).then(
          () => null,
          (error: CallFailed) => error,
        ),
      ),
    )
    const refusals = results.flatMap(error => (error?.reason === 'failed' ? [error.message] : []))
    if (refusals.length > 0) this.#owed = combined(owed, this.#owed, this.#plans[0]!.apis)
    // A reactor that was replaced meanwhile has started with it.
    const late = results.flatMap((error, reactor) => {
      const isLate = error !== null && error.reason !== 'failed' && this.#threads.workerOf(reactor) === workers[reactor]
      return isLate && workers[reactor] !== null ? [reactor] : []
    })
    return { refusals, late }
  }

  /** Lets reactors run handlers again that were isolated (D710); returns their names. */
  returnHandlers(): readonly string[] {
    const [plan] = this.#plans
    // A node with a key manager alone has no reactor.
    if (plan === undefined || plan.handlers === null) return []
    const { handlers, reactors } = plan
    return new ModuleStates(handlers.states, reactors).release().map(at => handlers.handlers[at]!.name)
  }

  #graceMsFor(apis: readonly ApiPlan[]): number {
    return apis.length * this.#limits.perApiMs
  }

  send(message: ToReactor): void {
    for (const worker of this.#threads.workers) worker.postMessage(message)
  }

  /** Gives every reactor a new channel: the control thread was replaced. */
  connect(): void {
    this.#plans.forEach((_, reactor) => {
      const worker = this.#threads.workerOf(reactor)
      if (worker !== null) this.#connect(worker, reactor)
    })
  }

  #connect(worker: Worker, reactor: number): void {
    const port = this.#openChannel?.(reactor)
    if (port !== undefined) worker.postMessage({ kind: 'channel', port } satisfies ToReactor, [port])
  }

  /** The result of each reactor; null where there is none within `timeoutMs`. */
  call<One extends ReactorCall>(
    call: One,
    timeoutMs?: number,
  ): readonly Promise<ReactorCallResults[One['kind']] | null>[] {
    return this.#plans.map((_, reactor) => this.#threads.call(reactor, call, timeoutMs).catch(() => null))
  }

  /**
   * Resolves when every reactor has finished what is in flight, or was cut off after `waitMs`. `keepsIdle`: idle
   * connections of clients stay until then.
   */
  async drain(waitMs: number, keepsIdle = false): Promise<void> {
    this.send({ kind: 'drain', keepsIdle })
    const closeIdle = setTimeout(() => this.send({ kind: 'drain', keepsIdle: false }), waitMs)
    const cutOffMs = keepsIdle ? waitMs + CUT_OFF_MS : waitMs
    const cutOff = setTimeout(() => this.send({ kind: 'cutOff' }), cutOffMs)
    await this.#threads.end(cutOffMs + CUT_OFF_MS)
    clearTimeout(closeIdle)
    clearTimeout(cutOff)
  }

  abort(): void {
    this.#threads.abort()
  }

  /** For tests: ends one reactor as a crash would. */
  kill(reactor: number): void {
    this.#threads.kill(reactor)
  }

  /** For tests: blocks the event loop of one reactor. */
  hang(reactor: number): void {
    this.#threads.workerOf(reactor)?.postMessage({ kind: 'hang' } satisfies ToReactor)
  }

  #sendPlan(worker: Worker, reactor: number): void {
    // A replacement has no inherited socket: that has ended with its thread.
    const first = this.#firstPlans.get(reactor)
    this.#firstPlans.delete(reactor)
    worker.postMessage(encodePlan(first ?? this.#plans[reactor]!))
    this.#connect(worker, reactor)
  }

  get hasStuck(): boolean {
    return this.#threads.hasStuck
  }

  /** New connections go to the replacement: the sockets of a stuck reactor would take their share of them (D911). */
  #stopListening(reactor: number): void {
    // A process that has taken over accepts what comes.
    if (this.sharesSockets) return
    for (const [fd, object] of this.#listening.get(reactor) ?? []) {
      if (object !== '' && openObject(fd) === object) shutDown(fd)
    }
    this.#listening.delete(reactor)
  }

  /** Names the handler on which the reactor hung or died. All reactors run it on threads from now on (D710). */
  #wholeCause(reactor: number, cause: string): string {
    const { handlers, reactors } = this.#plans[reactor]!
    const at = handlers === null ? -1 : new ModuleStates(handlers.states, reactors).isolateRunning(reactor)
    if (at < 0) return cause
    return `${cause}; the synchronous handler ${handlers!.handlers[at]!.name} ran, and runs on threads from now on`
  }

  #release(reactor: number, threadId: number): void {
    const { metrics, gauge, clients, reactors, endpoints, permits } = this.#plans[reactor]!
    clearGauges(metrics, reactor)
    SharedGauge.clear(gauge, reactors, reactor)
    SharedGauge.clear(clients, reactors, reactor)
    EndpointTable.clear(endpoints, reactor)
    SharedPermits.clear(permits, reactors, reactor)
    void deleteFilesOfThread(threadId)
  }
}

function objectsOf(fds: readonly number[]): ReadonlyMap<number, string> {
  return new Map(fds.map(fd => [fd, openObject(fd)]))
}

/** Sockets of a predecessor by kind of the listener. */
type InheritedListeners = ReadonlyMap<ListenerPlan['kind'], readonly number[]>

/** The listeners of a reactor with its share of inherited sockets: none is left over. */
function inherit({ listeners, reactor, reactors }: ReactorPlan, all: InheritedListeners): readonly ListenerPlan[] {
  return listeners.map(listener => {
    const fds = (all.get(listener.kind) ?? []).filter((_, socket) => socket % reactors === reactor)
    return fds.length === 0 ? listener : { ...listener, fds }
  })
}

/** The later changes, and those of the earlier ones that they do not undo, with the APIs as they are now. */
function combined(earlier: ApiChanges, later: ApiChanges, apis: readonly ApiPlan[]): ApiChanges {
  if (earlier.removed.length + earlier.deployed.length === 0) return later
  const settled = new Set([...later.removed, ...later.deployed.map(apiIdentity)])
  const open = [...earlier.removed, ...earlier.deployed.map(apiIdentity)].filter(it => !settled.has(it))
  const deployed = apis.filter(api => open.includes(apiIdentity(api)))
  const removed = open.filter(identity => !deployed.some(api => apiIdentity(api) === identity))
  return { removed: [...later.removed, ...removed], deployed: [...later.deployed, ...deployed] }
}
