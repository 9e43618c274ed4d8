/**
 * The control thread, seen from the primary: its plan, the primary's calls to it, its calls to the primary, and the
 * channels between it and the reactors. While it is being replaced, reactors go on with what they know.
 */
import { MessageChannel, type MessagePort, type Worker } from 'node:worker_threads'
import type { ManagementCommand } from '../control/admin-api/commands.ts'
import type {
  ControlPlan,
  ControlStarted,
  ControlThreadData,
  FromControlThread,
  PrimaryCall,
  SupervisorCall,
  SupervisorCallResults,
  ToControlThread,
} from '../plan/control-messages.ts'
import type { LogEvent } from '../observe/events.ts'
import { clearGauges } from '../observe/metrics.ts'
import { NEW_SOCKET } from '../socket/byte-socket.ts'
import { type CallFailed, respond } from '../runtime/call-channel.ts'
import { type RestartPolicy, type ThreadLimits, ThreadSupervisor, type ThreadWatcher } from './thread-supervisor.ts'

interface ControlOwner extends ThreadWatcher {
  event(event: LogEvent): void
  /** A call of the control thread. The message of what it rejects with may be shown to clients. */
  serve(call: PrimaryCall): Promise<object>
}

/** In milliseconds. */
interface ControlLimits extends ThreadLimits {
  /** Between the order to stop and the termination. */
  readonly stopMs: number
}

const ENTRY = new URL('../control/control-entry.js', import.meta.url)
/** A first thread may have to wait for a database and create its tables. */
const LIMITS: ControlLimits = { startMs: 30_000, silenceMs: 5000, checkMs: 1000, stuckMs: 5000, stopMs: 3000 }
const RESTARTS: RestartPolicy = {
  pauseMs: 500,
  pauseMsMax: 30_000,
  settledMs: 60_000,
  deathsMax: Number.POSITIVE_INFINITY,
  windowMs: 0,
}
/** A management command may wait for a database. */
const CALLS = { pendingMax: 256, timeoutMs: 20_000 }
const RELOAD_MS = 10_000

export class ControlThread {
  readonly #threads: ThreadSupervisor<ControlStarted, FromControlThread, SupervisorCall, SupervisorCallResults>
  readonly #stopMs: number
  readonly #heartbeats = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  #plan: ControlPlan | null = null

  /** `entry`, `limits`: for tests. */
  constructor(
    compileCache: string,
    runsKeyManager: boolean,
    entry = ENTRY,
    limits: Partial<ControlLimits & RestartPolicy> = {},
  ) {
    this.#stopMs = limits.stopMs ?? LIMITS.stopMs
    const workerData: Omit<ControlThreadData, 'planPosted'> = {
      compileCache,
      runsKeyManager,
      heartbeats: this.#heartbeats,
    }
    this.#threads = new ThreadSupervisor({
      nameOf: () => 'control thread',
      entry,
      workerData,
      limits: { ...LIMITS, ...limits },
      restarts: { ...RESTARTS, ...limits },
      calls: CALLS,
    })
  }

  /** Creates the thread: it loads its modules and then waits for its plan. */
  preload(): void {
    this.#threads.preload(1)
  }

  /**
   * Resolves once the thread has posted a full snapshot to the reactors. Rejects with ThreadFailed. `listenerFd`: an
   * inherited socket for the management listener.
   */
  async start(plan: ControlPlan, owner: ControlOwner, listenerFd = NEW_SOCKET): Promise<ControlStarted> {
    this.#plan = plan
    let fd = listenerFd
    const [started] = await this.#threads.start(1, {
      heartbeats: this.#heartbeats,
      sendPlan: worker => {
        post(worker, { kind: 'start', plan: this.#plan!, fd })
        // The socket ends with its thread.
        fd = NEW_SOCKET
      },
      startGraceMs: () => this.#plan!.databaseWaitMs,
      stuck: () => undefined,
      release: () => clearGauges(this.#plan!.metrics, this.#plan!.column),
      receive: (_, message) => {
        const worker = this.#threads.workerOf(0)
        if (message.kind === 'event') owner.event(message.event)
        else if (message.kind === 'call' && worker !== null) {
          void respond(worker, message, call => owner.serve(call))
        }
      },
      died: (index, cause, pauseMs) => owner.died(index, cause, pauseMs),
      replaced: index => owner.replaced(index),
      printed: (index, text) => owner.printed(index, text),
      fatal: cause => owner.fatal(cause),
    })
    return started!
  }

  get isServing(): boolean {
    return this.#threads.isServing(0)
  }

  /** The thread, or one before it, is in a call of the system that does not end. */
  get isStuck(): boolean {
    return this.#threads.hasStuck
  }

  /** The reactor's end of a channel to the present thread; a closed one where there is no thread. */
  openChannel(reactor: number): MessagePort {
    const { port1, port2 } = new MessageChannel()
    const worker = this.#threads.workerOf(0)
    if (worker === null) port2.close()
    else worker.postMessage({ kind: 'channel', reactor, port: port2 } satisfies ToControlThread, [port2])
    return port1
  }

  /** Applies another plan, in this thread and in its successors. Resolves with why not; '' where it is applied. */
  async reload(plan: ControlPlan): Promise<string> {
    this.#plan = plan
    try {
      await this.#threads.call(0, { kind: 'reload', plan }, RELOAD_MS)
      return ''
    } catch (error) {
      const { reason, message } = error as CallFailed
      // The successor of a thread that has died starts with this plan.
      if (reason === 'closed') return ''
      return reason === 'late' ? `${message}; it applies the reload when it can` : message
    }
  }

  /** Runs a management command. Rejects with CallFailed, or with an Error while the thread does not serve. */
  async manage(request: ManagementCommand): Promise<object> {
    if (!this.isServing) throw new Error('the control thread is not running; try again')
    return this.#threads.call(0, { kind: 'manage', request })
  }

  /** The listening socket of the management listener; NEW_SOCKET: none. Rejects with CallFailed. */
  async socket(): Promise<number> {
    return this.#threads.call(0, { kind: 'socket' })
  }

  /** Closes the management listener; the thread goes on for the reactors. Rejects with CallFailed. */
  async closeListener(): Promise<void> {
    await this.#threads.call(0, { kind: 'closeListener' })
  }

  /** Ends the thread once it has finished what it has begun, or after a while. */
  async stop(): Promise<void> {
    const worker = this.#threads.workerOf(0)
    if (worker !== null) post(worker, { kind: 'stop' })
    await this.#threads.end(this.#stopMs)
  }

  abort(): void {
    this.#threads.abort()
  }

  /** Ends the thread as a crash would: a replacement opens what it has closed. */
  kill(): void {
    this.#threads.kill(0)
  }
}

function post(worker: Worker, message: ToControlThread): void {
  worker.postMessage(message)
}
