/** Loads the handlers of the operator in a reactor, and starts the threads of those that do not run on it. */
import { getCompileCacheDir } from 'node:module'
import { refuseExit, takeErrorsOf } from './handler-errors.ts'
import { HandlersFilter, type LoadedHandler } from '../filters/handlers.ts'
import type { HandlerModule, HandlerReply } from '../filters/handler-interface.ts'
import type { SynchronousCalls } from '../filters/synchronous-phases.ts'
import { loadWholeModule } from '../config/module-file.ts'
import { ChildThreads } from '../observe/child-threads.ts'
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import { PoolCounts } from '../observe/pool-counts.ts'
import type { HandlersPlan, ReactorPlan } from '../plan/reactor-plan.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import { IsolatedThreads, type ThreadsObserver, WAITING_PER_THREAD } from '../runtime/isolated-threads.ts'
import { LimitedCalls } from '../runtime/limited-calls.ts'
import { makeLoopsInterruptible } from '../runtime/loop-interrupts.ts'
import { ModuleStates } from '../runtime/module-states.ts'
import { allocateMemoryRows, memoryRows } from '../runtime/thread-memory.ts'
import { processorWaitMs, systemThreadId } from '../runtime/thread-scheduling.ts'

const ENTRY = new URL('../reactor/handler-entry.js', import.meta.url)
/** Milliseconds between two looks at the memory of the threads. */
const MEMORY_MS = 1000
/** Milliseconds between two looks at the time that this thread has waited for a processor. */
const WAIT_MS = 100
const PHASES = ['request', 'response', 'end'] as const

/** `workerData` of a thread of handlers. */
export interface HandlerThreadData {
  readonly home: string
  /** Folder of Node's compile cache; undefined for none. */
  readonly compileCache: string | undefined
}

interface LoadedHandlers {
  readonly filter: HandlersFilter
  /**
   * Keeps handlers from ending this thread, by an exit or by errors that they leave behind. The thread must have no
   * other listener for those.
   */
  guardThread(): void
  close(): void
}

/** A handler that cannot be loaded refuses every request, with its cause in the log. */
export async function loadHandlers(
  { handlers, states, threads, timeoutMs, synchronousTimeoutMs, heapBytes }: HandlersPlan,
  { home, reactor, reactors }: Pick<ReactorPlan, 'home' | 'reactor' | 'reactors'>,
  report: Report,
  metrics: MetricsColumn,
): Promise<LoadedHandlers> {
  const workerData: HandlerThreadData = { home, compileCache: getCompileCacheDir() }
  const shared = allocateMemoryRows(threads)
  const options = { entry: ENTRY, workerData, threadsMax: threads, timeoutMs, heapBytes }
  const pool = new IsolatedThreads({ ...options, memory: memoryRows(shared), observer: countsOf(threads, metrics) })
  const children = new ChildThreads(metrics, () => 'handler', shared)
  const timer = setInterval(() => children.tick(), MEMORY_MS).unref()
  const loaded = await Promise.all(handlers.map(({ name, path }) => load(name, path, home, report)))
  const hasSynchronous = loaded.some(({ module }) => module !== null)
  const synchronous = hasSynchronous ? limitedCalls(synchronousTimeoutMs, report, metrics) : UNLIMITED
  const filter = new HandlersFilter(loaded, {
    report,
    nowMs: () => performance.now(),
    // The other half of the places is for requests.
    notificationsMax: (threads * WAITING_PER_THREAD) / 2,
    states: new ModuleStates(states, reactors),
    reactor,
    synchronous,
    run: task => pool.run(task) as Promise<HandlerReply>,
  })
  const close = () => {
    clearInterval(timer)
    synchronous.close()
    pool.close()
    children.close()
  }
  const guardThread = () => {
    refuseExit()
    takeErrorsOf(handlers, home, (name, error) => filter.failedDetached(name, error))
  }
  return { filter, guardThread, close }
}

interface ClosableCalls extends SynchronousCalls {
  close(): void
}

const UNLIMITED: ClosableCalls = { limitMs: 0, run: call => call(), ended: () => 0, close: () => undefined }

function limitedCalls(limitMs: number, report: Report, metrics: MetricsColumn): ClosableCalls {
  try {
    const calls = new LimitedCalls(limitMs)
    const thread = systemThreadId()
    let waitedMs = processorWaitMs(thread)
    const timer = setInterval(() => {
      waitedMs = processorWaitMs(thread)
    }, WAIT_MS).unref()
    return {
      limitMs,
      run: call => calls.run(call),
      ended: () => {
        metrics.add(METRIC.handlerPhasesEnded, 1)
        return processorWaitMs(thread) - waitedMs
      },
      close: () => {
        clearInterval(timer)
        calls.close()
      },
    }
  } catch (error) {
    const fields = { KEY: 'mediation.handlers.synchronous_timeout', CAUSE_OF_ERROR: (error as Error).message }
    report('warn', 'synchronous handlers have no time limit', fields)
    return UNLIMITED
  }
}

function countsOf(limit: number, metrics: MetricsColumn): ThreadsObserver {
  const counts = new PoolCounts('handler')
  counts.setLimit(limit)
  let used = 0
  return {
    used: threads => {
      metrics.add(METRIC.handlerThreadsUsed, threads - used)
      used = threads
      counts.used(threads)
    },
    waits: () => counts.waits(),
    waited: ms => counts.waited(ms),
    failed: reason => counts.failed(reason),
  }
}

async function load(name: string, path: string, home: string, report: Report): Promise<LoadedHandler> {
  try {
    const module = await loadWholeModule(home, path)
    const phases = PHASES.filter(phase => typeof module[phase] === 'function')
    if (phases.length === 0) throw new Error(`${path} exports none of ${PHASES.join(', ')}`)
    if (module.synchronous !== true) return { name, path, phases, module: null }
    // The thread of a reactor is terminated too where a handler does not end.
    makeLoopsInterruptible()
    return { name, path, phases, module: Object.fromEntries(phases.map(phase => [phase, module[phase]])) }
  } catch (error) {
    const cause = (error as Error).message
    report('error', 'handler not loaded', { HANDLER: name, CAUSE_OF_ERROR: cause })
    const refuses: HandlerModule = {
      request: () => {
        throw new Error(cause)
      },
    }
    return { name, path, phases: ['request'], module: refuses }
  }
}
