/** Code and texts of the operator in one worker thread: threads of scripts, ES modules, texts of files. */
import { getCompileCacheDir } from 'node:module'
import { HomeTexts } from '../mediation/home-texts.ts'
import { MediationFault } from '../mediation/mediation-fault.ts'
import { ModuleCache } from '../mediation/module-cache.ts'
import type { ScriptReply, ScriptTask } from '../mediation/script-task.ts'
import type { CodeServices } from '../mediation/task-calls.ts'
import { PoolCounts } from '../observe/pool-counts.ts'
import type { WorkerMarks } from '../observe/worker-marks.ts'
import type { WorkerPlan } from '../plan/worker-plan.ts'
import { IsolatedThreads, ThreadFailure, type ThreadsObserver } from '../runtime/isolated-threads.ts'
import type { ScriptThreadData } from './script-thread.ts'

const ENTRY = new URL('../worker/script-entry.js', import.meta.url)

const FAILURES: Readonly<Record<ThreadFailure['reason'], { readonly code: number; readonly what: string }>> = {
  late: { code: 102581, what: 'the script did not end' },
  memory: { code: 102582, what: 'the script needs more than mediation.synapse.script_mediator_heap_bytes' },
  died: { code: 102580, what: 'the thread of the script died' },
  'queue-full': { code: 102583, what: 'too many scripts wait for a thread' },
}
const FAILED = 102580
const NOT_MEDIATED = 'The message could not be mediated'

export class ThreadCode implements CodeServices {
  readonly #plan: Pick<WorkerPlan, 'home' | 'scripts'>
  readonly #memory: readonly Float64Array[]
  readonly #marks: Pick<WorkerMarks, 'setUsed'>
  readonly #modules: ModuleCache
  readonly #texts: HomeTexts
  /** Null before the first script. */
  #scripts: IsolatedThreads | null = null

  /** `memory`: rows for the memory of the script threads. */
  constructor(
    plan: Pick<WorkerPlan, 'home' | 'scripts'>,
    memory: readonly Float64Array[],
    marks: Pick<WorkerMarks, 'setUsed'>,
  ) {
    this.#plan = plan
    this.#memory = memory
    this.#marks = marks
    this.#modules = new ModuleCache(plan.home)
    this.#texts = new HomeTexts(plan.home)
  }

  async script(task: ScriptTask): Promise<ScriptReply> {
    this.#scripts ??= this.#newThreads()
    try {
      return (await this.#scripts.run(task)) as ScriptReply
    } catch (error) {
      if (!(error instanceof ThreadFailure)) throw error
      const { code, what } = FAILURES[error.reason]
      throw new MediationFault({ code, message: NOT_MEDIATED, cause: `${what}: ${error.message}` })
    }
  }

  async module(path: string, name: string): ReturnType<CodeServices['module']> {
    try {
      return await this.#modules.function(path, name)
    } catch (error) {
      throw new MediationFault({ code: FAILED, message: NOT_MEDIATED, cause: (error as Error).message })
    }
  }

  async text(key: string): Promise<string> {
    const { text, problem } = await this.#texts.read(key)
    if (problem === '') return text
    throw new MediationFault({ code: FAILED, message: NOT_MEDIATED, cause: `${key} ${problem}` })
  }

  #newThreads(): IsolatedThreads {
    const { home, scripts } = this.#plan
    const workerData: ScriptThreadData = { home, compileCache: getCompileCacheDir() }
    const { threads: threadsMax, timeoutMs, heapBytes } = scripts
    const counts = new PoolCounts('script')
    counts.setLimit(threadsMax)
    const observer: ThreadsObserver = {
      used: threads => {
        this.#marks.setUsed('scripts', threads)
        counts.used(threads)
      },
      waits: () => counts.waits(),
      waited: ms => counts.waited(ms),
      failed: reason => counts.failed(reason),
    }
    const limits = { threadsMax, timeoutMs, heapBytes }
    return new IsolatedThreads({ entry: ENTRY, workerData, ...limits, memory: this.#memory, observer })
  }
}
