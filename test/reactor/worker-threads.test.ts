/** Threads of one plan: replacements that fail, and tasks that wait for a thread. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { type TestContext, test } from 'node:test'
import workerThreads from 'node:worker_threads'
import { readChildThreads } from '../../src/observe/child-threads.ts'
import { allocateMetrics, MetricsColumn, snapshotMetrics } from '../../src/observe/metrics.ts'
import { WorkerThreads, type WorkerThreadsOptions } from '../../src/reactor/worker-threads.ts'
import type { WorkerFailure } from '../../src/mediation/worker-service.ts'
import { eventually } from '../harness/peers.ts'
import { silentPipe } from '../harness/silent-pipe.ts'
import { FAILING, type ScriptedTask, STARTS } from './scripted-tasks.ts'

const MIB = 1_048_576
const ENTRY = new URL('./failing-worker.ts', import.meta.url)

class Threads {
  readonly reports: { readonly event: string; readonly fields: Readonly<Record<string, unknown>> }[] = []
  readonly cells = new Int32Array(new SharedArrayBuffer(2048))
  readonly threads: WorkerThreads
  readonly #metrics: SharedArrayBuffer

  /** `failing`: starts that fail, from 0. */
  constructor(
    t: TestContext,
    threads: number,
    failing: readonly number[],
    more: Pick<WorkerThreadsOptions, 'processorWaitMs' | 'watch'> = {},
  ) {
    this.#metrics = allocateMetrics(3)
    for (const start of failing) this.cells[FAILING]! |= 1 << start
    this.threads = new WorkerThreads({
      ...{ kind: 'mediation', threads, tasksMax: 10, heapBytes: 64 * 1_048_576, entry: ENTRY },
      plan: JSON.stringify({ logLevel: 'info', scripts: { threads: 0 } }),
      wakes: this.cells.buffer as SharedArrayBuffer,
      report: (_level, event, fields) => this.reports.push({ event, fields }),
      metrics: new MetricsColumn(this.#metrics, 0),
      serve: () => null,
      receive: () => undefined,
      count: () => undefined,
      left: () => undefined,
      ...more,
      watch: { checkMs: 50, pauseMs: 20, pauseMaxMs: 100, ...more.watch },
    })
    t.after(() => this.threads.close())
  }

  /** Resolves with `done`, or the reason of the failure. */
  async outcome(kind: ScriptedTask['kind'], path = ''): Promise<string> {
    const envelope = { task: { kind, path } as ScriptedTask, id: 0, endMs: 0 }
    return this.threads.run({ envelope, transfer: [] }).then(
      () => 'done',
      (error: WorkerFailure) => error.reason,
    )
  }

  async untilThere(threads: number): Promise<void> {
    await eventually(`${threads} threads`, () => snapshotMetrics(this.#metrics).counts.workerThreads === threads)
  }

  /** Bytes outside of the heap of the first thread, as it has last told them. */
  get outside(): number {
    return readChildThreads(this.#metrics, 1)[0]?.memory.external ?? 0
  }

  /** Deaths that the log tells. */
  get deaths(): readonly string[] {
    return this.reports.map(({ event }) => event).filter(event => event.startsWith('worker died'))
  }
}

/** Counts the threads that are asked for; the system refuses those for which `refuses` holds. From 0. */
function refuse(refuses: (start: number) => boolean): { asked: number } {
  const counted = { asked: 0 }
  isRefused = () => refuses(counted.asked++)
  return counted
}

let isRefused = (): boolean => false
const { Worker } = workerThreads
workerThreads.Worker = new Proxy(Worker, {
  construct(target, given: ConstructorParameters<typeof Worker>) {
    if (isRefused()) throw Object.assign(new Error('refused'), { code: 'ERR_WORKER_INIT_FAILED' })
    return Reflect.construct(target, given)
  },
})

for (const [what, kind] of [
  ['exits', 'exit'],
  ['runs out of memory', 'exhaust'],
] as const) {
  test(`a thread that ${what} fails its tasks, and no others, where the system refuses another one`, async t => {
    refuse(start => start === 2)
    const threads = new Threads(t, 2, [])
    threads.threads.start()
    await threads.untilThere(2)
    const [first, second] = [threads.outcome('rest'), threads.outcome('rest')]
    const ended: string[] = []
    for (const each of [first, second]) void each.then(reason => ended.push(reason))
    assert.equal(await threads.outcome(kind), 'died')
    await eventually('the end of the task beside it', () => ended.length === 1)
    // The thread that is left, and a pool of two others.
    await threads.untilThere(3)
    assert.deepEqual(ended, ['died'])
    const causes = threads.reports.map(({ fields }) => fields.CAUSE_OF_ERROR)
    assert.ok(causes.includes('ERR_WORKER_INIT_FAILED'), JSON.stringify(threads.reports))
    assert.equal(await threads.outcome('plan'), 'done')
  })
}

test('a task fails where the system refuses every thread, and runs once it does not', async t => {
  refuse(start => start < 3)
  const threads = new Threads(t, 1, [])
  assert.equal(await threads.outcome('plan'), 'died')
  await threads.untilThere(1)
  assert.equal(await threads.outcome('plan'), 'done')
})

test('threads that are closed before they have started never start, and keep no timer', async t => {
  const counted = refuse(() => false)
  const timers = t.mock.method(globalThis, 'setInterval')
  const threads = new Threads(t, 2, [])
  const outcome = threads.outcome('plan')
  threads.threads.close()
  assert.equal(await outcome, 'died')
  assert.equal(counted.asked, 0)
  assert.equal(timers.mock.callCount(), 0)
})

for (const [what, failing] of [
  ['the first replacement', [2]],
  ['three replacements', [2, 3, 4]],
] as const) {
  test(`all threads are there again where ${what} ends at its start`, async t => {
    const threads = new Threads(t, 2, failing)
    threads.threads.start()
    await threads.untilThere(2)
    assert.equal(await threads.outcome('exit'), 'died')
    await eventually('another start', () => threads.cells[STARTS]! > 3)
    await threads.untilThere(2)
    assert.equal(await threads.outcome('plan'), 'done')
    const claimed = threads.deaths.filter(event => event.endsWith('a replacement starts')).length
    assert.ok(claimed <= threads.cells[STARTS]! - 2, `${claimed} replacements, ${threads.cells[STARTS]} starts`)
    const anew = threads.reports.filter(({ event }) => event === 'worker threads are missing; all start anew')
    assert.ok(anew.length > 0)
  })
}

test('a task that waits for a thread fails once none starts, and later ones run', async t => {
  const threads = new Threads(t, 1, [1])
  assert.equal(await threads.outcome('exit'), 'died')
  assert.equal(await threads.outcome('plan'), 'died')
  await eventually('another start', () => threads.cells[STARTS] === 3)
  await threads.untilThere(1)
  assert.equal(await threads.outcome('plan'), 'done')
})

test('threads that cannot start at first start later, with growing pauses', async t => {
  const threads = new Threads(t, 1, [0, 1, 2, 3])
  assert.equal(await threads.outcome('plan'), 'died')
  await threads.untilThere(1)
  assert.equal(await threads.outcome('plan'), 'done')
  const pauses = threads.reports.flatMap(({ fields }) => (fields.PAUSE_MS === undefined ? [] : [fields.PAUSE_MS]))
  assert.deepEqual(pauses.slice(0, 2), [20, 40])
})

test('tasks of threads that are replaced end there', async t => {
  const threads = new Threads(t, 2, [2])
  threads.threads.start()
  await threads.untilThere(2)
  const resting = threads.outcome('rest')
  let isOver = false
  void resting.then(() => {
    isOver = true
  })
  assert.equal(await threads.outcome('exit'), 'died')
  await eventually('another start', () => threads.cells[STARTS] === 5)
  // The thread with the task that rests, and two others.
  await threads.untilThere(3)
  assert.equal(isOver, false)
  threads.threads.close()
  assert.equal(await resting, 'died')
})

test('a silent thread that waits for a processor does not hang until it waits no longer (D259)', async t => {
  let waitsUntilMs = Number.POSITIVE_INFINITY
  let asked = 0
  const processorWaitMs = (): number => {
    asked++
    return Math.min(performance.now(), waitsUntilMs)
  }
  const threads = new Threads(t, 1, [], { processorWaitMs, watch: { silenceMs: 200 } })
  const outcome = threads.outcome('hang')
  // Ten checks are more than twice the silence.
  await eventually('checks of the silent thread', () => asked > 10)
  assert.deepEqual(threads.deaths, [])
  waitsUntilMs = performance.now()
  assert.equal(await outcome, 'died')
  assert.equal(threads.reports.at(-1)!.fields.CAUSE_OF_ERROR, 'no sign of life for 200 ms')
})

test('threads that calls of the system block are replaced, at most as many as there are', async t => {
  refuse(() => false)
  const threads = new Threads(t, 1, [], { watch: { silenceMs: 500 } })
  const pipe = silentPipe(t)
  assert.equal(await threads.outcome('read', pipe), 'died')
  assert.match(String(threads.reports.at(-1)!.fields.CAUSE_OF_ERROR), /a call of the system that does not return/)
  assert.equal(await threads.outcome('plan'), 'done')
  void threads.outcome('read', pipe)
  const isTold = () => threads.reports.some(({ event }) => event === 'worker is not replaced; restart the gateway')
  await eventually('the advice', isTold)
  assert.deepEqual(threads.deaths, ['worker died; a replacement starts'])
})

test('a thread without tasks gives back what messages have left', async t => {
  refuse(() => false)
  // A thread tells its memory once a second.
  const threads = new Threads(t, 1, [], { watch: { idleMs: 1500 } })
  assert.equal(await threads.outcome('litter'), 'done')
  await eventually('the memory of the task', () => threads.outside > 90 * MIB)
  await eventually('the collection', () => threads.outside < 30 * MIB)
  assert.deepEqual(threads.deaths, [])
})

test('D321: a worker thread goes behind the reactor on the same processor, as does one in its first task', async t => {
  const expected = process.platform === 'linux' ? Math.min(19, getPriority() + 10) : undefined
  const before = niceValues()
  const threads = new Threads(t, 1, [])
  const computes = threads.outcome('hang')
  await eventually('a lower priority', () => {
    const fresh = [...niceValues()].filter(([id]) => !before.has(id) && !isHelper(id)).map(([, nice]) => nice)
    return expected === undefined || fresh.includes(expected)
  })
  const after = niceValues()
  assert.equal(after.get(String(process.pid)), before.get(String(process.pid)))
  const helpers = [...after.keys()].filter(isHelper)
  assert.ok(expected === undefined || helpers.length > 0, 'V8 names its helper threads otherwise')
  for (const id of helpers) assert.equal(after.get(id), expected, nameOf(id))
  threads.threads.close()
  assert.equal(await computes, 'died')
})

function isHelper(id: string): boolean {
  return nameOf(id).endsWith('V8Worker')
}

/** Name of a thread (proc_pid_comm(5)); empty once it has ended. */
function nameOf(id: string): string {
  try {
    return readFileSync(`/proc/self/task/${id}/comm`, 'utf8').trim()
  } catch {
    return ''
  }
}

/** Nice values by thread (proc_pid_stat(5)); none but on Linux. */
function niceValues(): ReadonlyMap<string, number> {
  if (process.platform !== 'linux') return new Map()
  const folder = '/proc/self/task'
  const NICE_FIELD = 16
  return new Map(
    readdirSync(folder).flatMap(id => {
      try {
        const afterName = readFileSync(`${folder}/${id}/stat`, 'latin1').replace(/^.*\) /s, '')
        return [[id, Number(afterName.split(' ')[NICE_FIELD])] as const]
      } catch {
        // A thread of an earlier test has ended meanwhile.
        return []
      }
    }),
  )
}
