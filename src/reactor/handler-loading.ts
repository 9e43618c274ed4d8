/** Loads the handlers of the operator in a reactor, and starts the threads of those that do not run on it. */
import { getCompileCacheDir } from 'node:module'
import { isAsyncFunction, isGeneratorFunction } from 'node:util/types'
import { HandlersFilter, type LoadedHandler } from '../filters/handlers.ts'
import type { HandlerModule, HandlerReply } from '../filters/handler-interface.ts'
import { loadWholeModule } from '../config/module-file.ts'
import { ChildThreads } from '../observe/child-threads.ts'
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import { PoolCounts } from '../observe/pool-counts.ts'
import type { HandlersPlan, ReactorPlan } from '../plan/reactor-plan.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import { IsolatedThreads, type ThreadsObserver, WAITING_PER_THREAD } from '../runtime/isolated-threads.ts'
import { type TimerRunner, withTimersOf } from '../runtime/limited-timers.ts'
import { ModuleStates } from '../runtime/module-states.ts'
import { allocateMemoryRows, memoryRows } from '../runtime/thread-memory.ts'
import type { ModuleGuard } from './module-guard.ts'
import { moduleCalls, UNLIMITED_CALLS } from './module-calls.ts'

const ENTRY = new URL('../reactor/handler-entry.js', import.meta.url)
/** Milliseconds between two looks at the memory of the threads. */
const MEMORY_MS = 1000
const PHASES = ['request', 'response', 'end'] as const
const REMEDY = 'leave out `synchronous`, and it runs on threads, where it may wait'

/** `workerData` of a thread of handlers. */
export interface HandlerThreadData {
  readonly home: string
  /** Folder of Node's compile cache; undefined for none. */
  readonly compileCache: string | undefined
}

interface LoadedHandlers {
  readonly filter: HandlersFilter
  close(): void
}

interface HandlerContext {
  readonly report: Report
  readonly metrics: MetricsColumn
  readonly guard: Pick<ModuleGuard, 'add'>
}

/** A handler that cannot be loaded refuses every request, with its cause in the log. */
export async function loadHandlers(
  { handlers, states, threads, timeoutMs, heapBytes }: HandlersPlan,
  { home, reactor, reactors, moduleLimitMs }: Pick<ReactorPlan, 'home' | 'reactor' | 'reactors' | 'moduleLimitMs'>,
  { report, metrics, guard }: HandlerContext,
): Promise<LoadedHandlers> {
  const workerData: HandlerThreadData = { home, compileCache: getCompileCacheDir() }
  const shared = allocateMemoryRows(threads)
  const options = { entry: ENTRY, workerData, threadsMax: threads, timeoutMs, heapBytes }
  const pool = new IsolatedThreads({ ...options, memory: memoryRows(shared), observer: countsOf(threads, metrics) })
  const children = new ChildThreads(metrics, () => 'handler', shared)
  const timer = setInterval(() => children.tick(), MEMORY_MS).unref()
  let filter: HandlersFilter | null = null
  guard.add(handlers, (name, error) => filter?.failedDetached(name, error))
  // Before the filter is there, the thread carries no traffic.
  const runners = handlers.map(
    (_, at): TimerRunner =>
      callback =>
        filter?.runTimer(at, callback) ?? unlimited(callback),
  )
  const loads = handlers.map(({ name, path }, at) => withTimersOf(runners[at]!, () => load(name, path, home, report)))
  const loaded = await Promise.all(loads)
  const hasSynchronous = loaded.some(({ module }) => module !== null)
  const calls = hasSynchronous ? moduleCalls(moduleLimitMs, report, metrics) : UNLIMITED_CALLS
  filter = new HandlersFilter(loaded, {
    report,
    nowMs: () => performance.now(),
    // The other half of the places is for requests.
    notificationsMax: (threads * WAITING_PER_THREAD) / 2,
    states: new ModuleStates(states, reactors),
    reactor,
    synchronous: { ...calls, owned: (at, call) => withTimersOf(runners[at]!, call) },
    run: task => pool.run(task) as Promise<HandlerReply>,
  })
  const close = () => {
    clearInterval(timer)
    calls.close()
    pool.close()
    children.close()
  }
  return { filter, close }
}

function unlimited(callback: () => void): true {
  callback()
  return true
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
    const waits = phases.find(phase => isAsyncFunction(module[phase]) || isGeneratorFunction(module[phase]))
    if (waits !== undefined) throw new Error(`${path} is synchronous, and ${waits} is async or a generator: ${REMEDY}`)
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
