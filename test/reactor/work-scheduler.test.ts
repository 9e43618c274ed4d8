/** The scheduler of work beside requests, with tasks that the test ends: places, turns, refusals, pauses, wake-ups. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { WorkerFailure } from '../../src/mediation/worker-service.ts'
import type { DueTask, JobTask } from '../../src/plan/work-messages.ts'
import { WorkScheduler } from '../../src/reactor/work-scheduler.ts'
import { SharedWakes } from '../../src/runtime/shared-wakes.ts'

/** Pauses that are over at once would be told apart by nothing; those of the tests are too long to end. */
const TIMES = { startMs: 0, spacingMs: 0, againMs: 100_000, pauseMs: 100_000, pauseMaxMs: 100_000, stopMs: 100_000 }

interface OpenTask {
  readonly name: string
  readonly isAborted: () => boolean
  end(value: unknown): void
  fail(error: Error): void
}

class Pool {
  readonly tasks: OpenTask[] = []
  readonly reports: { readonly event: string; readonly fields: Readonly<Record<string, unknown>> }[] = []
  readonly wakes = new SharedWakes(SharedWakes.allocate())
  readonly scheduler: WorkScheduler
  /** Refuses tasks of these names. */
  refused = ''
  /** Tasks of these names wait for a permit. */
  waiting = ''
  jobsMax = 2
  #seen = 0

  constructor(t: TestContext, times: object = {}) {
    this.scheduler = new WorkScheduler({
      open: task => this.#open(task),
      jobsMax: () => this.jobsMax,
      wakes: this.wakes,
      report: (_level, event, fields) => this.reports.push({ event, fields }),
      times: { ...TIMES, ...times },
    })
    t.after(() => this.scheduler.giveUp())
  }

  deploy(...identities: readonly string[]): void {
    const planned = identities.map(identity => ({ identity, label: identity, begins: true }))
    this.scheduler.deploy([], planned)
  }

  /** Resolves with the next task, which has that name. */
  async next(name: string): Promise<OpenTask> {
    while (this.tasks.length <= this.#seen) await new Promise(resolve => setImmediate(resolve))
    const task = this.tasks[this.#seen++]!
    assert.equal(task.name, name)
    return task
  }

  /** Names of the tasks that nobody has asked for with `next`. */
  get left(): readonly string[] {
    return this.tasks.slice(this.#seen).map(({ name }) => name)
  }

  #open(task: DueTask | JobTask): { readonly result: Promise<unknown>; readonly leave: () => boolean } {
    const name = task.kind === 'due' ? `due ${task.api}` : `${task.job} of ${task.api}`
    if (this.refused !== '' && name.startsWith(this.refused)) throw new WorkerFailure('queue-full', 'the pool is full')
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const isAborted = () => task.kind === 'job' && new Int32Array(task.abort)[0] === 1
    this.tasks.push({ name, isAborted, end: resolve, fail: reject })
    return { result: promise, leave: () => this.waiting !== '' && name.startsWith(this.waiting) }
  }
}

/** What a question has brought is known before the next job ends. */
function learnt(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

const due = (...jobs: readonly string[]) => ({ jobs, againMs: 100_000 })

test('jobs run as far as there are places; the APIs take turns, and no job runs twice at a time', async t => {
  const pool = new Pool(t)
  pool.deploy('a', 'b')
  ;(await pool.next('due a')).end(due('one', 'two', 'three'))
  const questionOfB = await pool.next('due b')
  const one = await pool.next('one of a')
  const two = await pool.next('two of a')
  questionOfB.end(due('four'))
  await learnt()
  one.end(null)
  await pool.next('four of b')
  ;(await pool.next('due a')).end(due('two', 'three'))
  two.end(null)
  // It is named while it runs, and again afterwards.
  await pool.next('three of a')
  ;(await pool.next('due a')).end(due('two'))
  assert.deepEqual(pool.left, [])
})

test('a wake-up while the API is asked leads to one more question, and none is lost', async t => {
  const pool = new Pool(t)
  pool.deploy('a')
  const first = await pool.next('due a')
  for (let wake = 0; wake < 100; wake++) pool.wakes.wake('a')
  first.end(due())
  ;(await pool.next('due a')).end(due())
  pool.wakes.wake('a')
  await pool.next('due a')
})

test('an API that begins with its first use is not asked before it is woken', async t => {
  const pool = new Pool(t)
  pool.scheduler.deploy([], [{ identity: 'later', label: 'later', begins: false }])
  pool.deploy('a')
  ;(await pool.next('due a')).end(due())
  assert.deepEqual(pool.left, [])
  pool.wakes.wake('later')
  await pool.next('due later')
})

test('a scheduler that replaces another one begins what was in use, without a wake-up of its own', async t => {
  const pool = new Pool(t)
  pool.wakes.wake('used')
  pool.scheduler.deploy([], [{ identity: 'used', label: 'used', begins: false }])
  await pool.next('due used')
})

test('a full pool delays a job and says so; others go on', async t => {
  const pool = new Pool(t)
  pool.refused = 'one'
  pool.deploy('a')
  ;(await pool.next('due a')).end(due('one', 'two'))
  // The refusal leads to another question, and the job that is left.
  ;(await pool.next('due a')).end(due('one', 'two'))
  await pool.next('two of a')
  const [report] = pool.reports
  assert.deepEqual([report!.event, report!.fields.JOB], ['background job delayed', 'one'])
})

test('a job that was refused, and one that failed, run again after their pause', async t => {
  const pool = new Pool(t, { pauseMs: 0 })
  pool.refused = 'one'
  pool.deploy('a')
  const question = await pool.next('due a')
  question.end(due('one'))
  while (pool.reports.length === 0) await new Promise(resolve => setImmediate(resolve))
  pool.refused = ''
  ;(await pool.next('due a')).end(due('one'))
  const failing = await pool.next('one of a')
  failing.fail(new WorkerFailure('died', 'exit code 7'))
  ;(await pool.next('due a')).end(due('one'))
  await pool.next('one of a')
  assert.deepEqual(pool.reports.map(({ event, fields }) => [event, fields.CAUSE_OF_ERROR]).at(-1), [
    'background job failed',
    'exit code 7',
  ])
})

test('a stop aborts what runs, takes what waits for a permit off the queue, and waits for the rest', async t => {
  const pool = new Pool(t)
  pool.waiting = 'two'
  pool.deploy('a')
  ;(await pool.next('due a')).end(due('one', 'two'))
  const one = await pool.next('one of a')
  await pool.next('two of a')
  const stopped = pool.scheduler.stop()
  assert.ok(one.isAborted())
  assert.ok(!pool.scheduler.isOver)
  one.fail(new WorkerFailure('failed', 'AbortError'))
  await stopped
  assert.ok(pool.scheduler.isOver)
  assert.deepEqual([pool.reports, pool.left], [[], []])
})

test('a removed API is asked no more; one that comes back waits for its old jobs', async t => {
  const pool = new Pool(t)
  pool.deploy('a')
  ;(await pool.next('due a')).end(due('one'))
  const old = await pool.next('one of a')
  pool.scheduler.deploy(['a'], [])
  assert.ok(old.isAborted())
  pool.deploy('a')
  ;(await pool.next('due a')).end(due('one'))
  await learnt()
  assert.deepEqual(pool.left, [])
  old.end(null)
  ;(await pool.next('due a')).end(due('one'))
  await pool.next('one of a')
})

test('an API without work is named once, and is asked no more', async t => {
  const pool = new Pool(t)
  pool.deploy('a', 'b')
  ;(await pool.next('due a')).end(null)
  const b = await pool.next('due b')
  pool.wakes.wake('a')
  pool.wakes.wake('b')
  b.end(due())
  await pool.next('due b')
  assert.deepEqual(
    pool.reports.map(({ event }) => event),
    ['mounted API has no work'],
  )
})
