/** Work beside requests of mounted APIs, on a background thread: asks what is due, and runs jobs until they end. */
import type { BackgroundWork, DueWork } from '../mounted/interface.ts'
import { type DueResult, type DueTask, JOB_CHARS_MAX, JOBS_MAX, type JobTask } from '../plan/work-messages.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import { withTimeout } from '../runtime/with-timeout.ts'
import type { OpenedApis } from './opened-apis.ts'
import { KnownCause, type TaskContext, type TaskResult, type TaskRunner } from './task-server.ts'

/** Exit code of a thread that a job does not give back. */
const EXIT_CODE = 70

export function dueRunner(apis: OpenedApis): TaskRunner {
  return async ({ api, timeoutMs }: DueTask): Promise<TaskResult> => {
    const late = () => new KnownCause(`due has not ended within ${timeoutMs} ms`)
    return { value: await withTimeout(dueOf(apis, api), timeoutMs, late), transfer: [] }
  }
}

export function jobRunner({ report }: TaskContext, apis: OpenedApis): TaskRunner {
  return async (task: JobTask): Promise<TaskResult> => {
    const { work } = await apis.of(task.api)
    if (work === undefined) throw new KnownCause('the API has no work')
    await new RunningJob(task, report).run(work)
    return { value: null, transfer: [] }
  }
}

async function dueOf(apis: OpenedApis, api: string): Promise<DueResult> {
  const { work } = await apis.of(api)
  return work === undefined ? null : checked(await work.due())
}

/** Throws KnownCause, because modules of operators return what they like. */
function checked(due: DueWork): DueWork {
  const { jobs, againMs } = due ?? {}
  if (!Array.isArray(jobs) || !jobs.every(isName)) {
    throw new KnownCause(`due has to return jobs: names of at most ${JOB_CHARS_MAX} characters`)
  }
  if (typeof againMs !== 'number' || Number.isNaN(againMs)) throw new KnownCause('due has to return againMs: a number')
  return { jobs: jobs.slice(0, JOBS_MAX), againMs }
}

function isName(job: unknown): boolean {
  return typeof job === 'string' && job.length <= JOB_CHARS_MAX
}

/** One run of a job. It is aborted from outside or where it is late; a job that goes on then costs its thread. */
class RunningJob {
  readonly #task: JobTask
  readonly #report: Report
  readonly #abort: Int32Array
  readonly #controller = new AbortController()
  #state: 'runs' | 'aborted' | 'late' | 'over' = 'runs'
  #timer: NodeJS.Timeout | undefined

  constructor(task: JobTask, report: Report) {
    this.#task = task
    this.#report = report
    this.#abort = new Int32Array(task.abort)
  }

  /** Rejects with what the job throws, and where the job was late. */
  async run(work: BackgroundWork): Promise<void> {
    const { job, lateMs } = this.#task
    this.#timer = setTimeout(() => this.#cut('late'), lateMs)
    void this.#listen()
    try {
      await work.run(job, this.#controller.signal)
      this.#throwIfLate()
    } catch (error) {
      this.#throwIfLate()
      throw error
    } finally {
      this.#end()
    }
  }

  #throwIfLate(): void {
    if (this.#state === 'late') throw new KnownCause(`not ended within ${this.#task.lateMs} ms, and aborted`)
  }

  async #listen(): Promise<void> {
    const { async: isPending, value } = Atomics.waitAsync(this.#abort, 0, 0)
    if (isPending) await value
    this.#cut('aborted')
  }

  #cut(state: 'aborted' | 'late'): void {
    if (this.#state !== 'runs') return
    this.#state = state
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#exit(), this.#task.endMs)
    this.#controller.abort()
  }

  #end(): void {
    this.#state = 'over'
    clearTimeout(this.#timer)
    // Ends the wait for an abort.
    Atomics.store(this.#abort, 0, 1)
    Atomics.notify(this.#abort, 0)
  }

  /** Ends the thread, because a second run beside the first one could do everything twice. */
  #exit(): void {
    const { api, job, endMs } = this.#task
    const CAUSE_OF_ERROR = `not ended within ${endMs} ms of its abort; its thread ends`
    this.#report('error', 'background job ignores its abort', { API: api, JOB: job, CAUSE_OF_ERROR })
    process.exit(EXIT_CODE)
  }
}
