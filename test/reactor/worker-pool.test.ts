/** Permits of worker threads, counted over two reactors; threads that die, hang, or are replaced by a reload. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WorkerFailure } from '../../src/mediation/worker-service.ts'
import type { LivePlan } from '../../src/plan/reactor-plan.ts'
import type { FlowTask } from '../../src/mediation/worker-task.ts'
import { PERMIT_ROWS } from '../../src/plan/worker-plan.ts'
import { SharedPermits } from '../../src/runtime/shared-permits.ts'
import { MOST, NOW } from './scripted-tasks.ts'
import { REACTORS, Reactors, until } from './scripted-reactors.ts'

function tally(outcomes: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1
  return counts
}

/** [core, max, queue length, burst] -> tasks that run at once, wait, are refused. */
const SIZES: readonly (readonly [number, number, number, number, number, number, number])[] = [
  [1, 1, 0, 30, 1, 0, 29],
  [1, 1, 10, 30, 1, 10, 19],
  [1, 1, -1, 30, 1, 29, 0],
  [4, 4, 0, 30, 4, 0, 26],
  [4, 4, 10, 30, 4, 10, 16],
  [4, 4, -1, 30, 4, 26, 0],
  [400, 400, 0, 430, 400, 0, 30],
  [400, 400, 10, 430, 400, 10, 20],
  [400, 400, -1, 430, 400, 30, 0],
  // Core, then queue, then maximum.
  [1, 4, 10, 30, 4, 10, 16],
  [4, 400, 0, 430, 400, 0, 30],
]

for (const [core, max, queueLength, burst, runs, waits, refused] of SIZES) {
  const size = `${core} to ${max} with a queue of ${queueLength}`
  test(`a pool of ${size}: of ${burst} messages on two reactors ${runs} run and ${waits} wait`, async t => {
    const reactors = new Reactors(t, { limits: { core, max, queueLength } })
    const outcomes = Array.from({ length: burst }, (_, at) => reactors.hold(at % REACTORS))
    await reactors.begun(runs)
    const { running, waiting, highest } = reactors.counts()
    assert.deepEqual({ running, waiting, highest }, { running: runs, waiting: waits, highest: runs })
    reactors.openGate()
    const expected = { done: runs + waits, ...(refused === 0 ? {} : { 'queue-full': refused }) }
    assert.deepEqual(tally(await Promise.all(outcomes)), expected)
    assert.equal(reactors.cells[MOST], runs)
    assert.equal(reactors.cells[NOW], 0)
    assert.deepEqual(reactors.counts(), { running: 0, waiting: 0, waitingBytes: 0, suspended: 0, highest: runs })
    const { workerTasks, workerWaits, workerRefusedQueueFull } = reactors.metrics
    assert.deepEqual([workerTasks, workerWaits, workerRefusedQueueFull], [burst, waits, refused])
  })
}

test('the queue is first in, first out over both reactors', async t => {
  const reactors = new Reactors(t, { limits: { core: 1, max: 1 } })
  const order: number[] = []
  const outcomes = Array.from({ length: 20 }, async (_, at) => {
    await reactors.hold(Math.floor(at / 3) % REACTORS)
    order.push(at)
  })
  await reactors.begun(1)
  reactors.openGate()
  await Promise.all(outcomes)
  assert.deepEqual(order, [...order.keys()])
})

test('each transport has permits of its own', async t => {
  const reactors = new Reactors(t, { limits: { core: 1, max: 1, queueLength: 0 } })
  const outcomes = [reactors.hold(0), reactors.hold(1, 0, 'secured'), reactors.hold(1), reactors.hold(0, 0, 'secured')]
  await reactors.begun(2)
  reactors.openGate()
  assert.deepEqual(await Promise.all(outcomes), ['done', 'done', 'queue-full', 'queue-full'])
})

test('an unbounded queue holds so many bytes, of all reactors and transports together', async t => {
  const reactors = new Reactors(t, { limits: { core: 1, max: 1, queueBytes: 100_000 } })
  const outcomes = [reactors.hold(0, 90_000)]
  await reactors.begun(1)
  outcomes.push(reactors.hold(1, 50_000), reactors.hold(0, 60_000), reactors.hold(0, 20_000))
  reactors.openGate()
  assert.deepEqual(await Promise.all(outcomes), ['done', 'done', 'memory', 'done'])
  assert.equal(reactors.counts().waitingBytes, 0)
  assert.equal(reactors.metrics.workerRefusedMemory, 1)
})

test('D257: bodies in files count for nothing in the bytes of the queue', async t => {
  const reactors = new Reactors(t, { limits: { core: 1, max: 1, queueBytes: 100_000 } })
  const outcomes = [reactors.hold(0)]
  await reactors.begun(1)
  const upload = () => reactors.outcome(0, { kind: 'plan' }, 10_000_000, 'plain', 'file')
  outcomes.push(...Array.from({ length: 7 }, upload))
  assert.ok(reactors.counts().waitingBytes < 100_000)
  outcomes.push(reactors.outcome(1, { kind: 'plan' }, 1000))
  reactors.openGate()
  assert.deepEqual(tally(await Promise.all(outcomes)), { done: 9 })
  assert.equal(reactors.metrics.workerRefusedMemory, 0)
})

test('a late task fails at its time, and gives its permit back', async t => {
  const reactors = new Reactors(t, { limits: { core: 1, max: 1 }, timeoutMs: 1500 })
  assert.deepEqual(await Promise.all([reactors.outcome(0, { kind: 'rest' }), reactors.outcome(0, { kind: 'rest' })]), [
    'late',
    'late',
  ])
  await until(() => reactors.counts().running === 0)
  reactors.openGate()
  assert.equal(await reactors.hold(0), 'done')
  assert.equal(reactors.metrics.workerTimeouts, 2)
  assert.deepEqual(reactors.counts(), { running: 0, waiting: 0, waitingBytes: 0, suspended: 0, highest: 1 })
})

test('a long wait for a permit is logged', async t => {
  const reactors = new Reactors(t, { limits: { core: 1, max: 1 }, queueWarningMs: 1 })
  const outcomes = [reactors.hold(0), reactors.hold(0)]
  await reactors.begun(1)
  await new Promise(resolve => setTimeout(resolve, 5))
  reactors.openGate()
  await Promise.all(outcomes)
  const [warning] = reactors.reports.filter(({ event }) => event === 'message waited for a worker')
  assert.equal(warning?.fields.LIMIT_MS, 1)
})

test('a message that times out in the queue has waited too long as well', async t => {
  const reactors = new Reactors(t, { limits: { core: 1, max: 1 }, queueWarningMs: 1, timeoutMs: 1000 })
  // It keeps its permit beyond its own time.
  const held = reactors.outcome(0, { kind: 'block', cells: reactors.cells.buffer as SharedArrayBuffer })
  assert.equal(await reactors.hold(1), 'late')
  reactors.openGate()
  const [warning] = reactors.reports.filter(({ event }) => event === 'message waited for a worker')
  assert.deepEqual([warning?.fields.API, warning?.fields.POOL], ['scripted', 'http'])
  // The timer may end a millisecond before its time.
  assert.ok(Number(warning?.fields.WAIT_MS) >= 999)
  assert.equal(await held, 'late')
})

test('the mean wait counts messages that time out in the queue, and those whose client leaves it', async t => {
  const reactors = new Reactors(t, { limits: { core: 1, max: 1 }, timeoutMs: 1000 })
  const held = reactors.outcome(0, { kind: 'block', cells: reactors.cells.buffer as SharedArrayBuffer })
  const told: number[] = []
  const waits = (queued: (leave: () => void) => void) => {
    const message = { body: { kind: 'none' } }
    const task = { kind: 'rest', message } as unknown as FlowTask
    const wait = { entered: () => undefined, queued, waited: (ms: number) => void told.push(ms) }
    return reactors
      .service(0)
      .mediate(task, 0, wait)
      .catch((error: WorkerFailure) => error.reason)
  }
  const late = waits(() => undefined)
  assert.equal(await waits(leave => leave()), 'left')
  assert.equal(await late, 'late')
  reactors.openGate()
  const [left, timedOut] = told
  assert.equal(told.length, 2)
  assert.ok(timedOut! >= 999, `${timedOut}`)
  const { workerWaits, workerWaitSeconds } = reactors.metrics
  assert.equal(workerWaits, 2)
  assert.ok(Math.abs(workerWaitSeconds - (left! + timedOut!) / 1000) < 1e-6)
  assert.equal(await held, 'late')
})

for (const [kind, what] of [
  ['exit', 'ends'],
  ['exhaust', 'runs out of memory'],
  ['hang', 'hangs'],
] as const) {
  test(`a thread with eight messages that ${what} fails these, no others, and is replaced`, async t => {
    const reactors = new Reactors(t, { limits: { core: 16, max: 16 }, silenceMs: 2000 })
    const others = Array.from({ length: 8 }, () => reactors.hold(1))
    await reactors.begun(8)
    const own = Array.from({ length: 7 }, () => reactors.hold(0))
    await reactors.begun(15)
    assert.equal(await reactors.outcome(0, { kind }), 'died')
    assert.deepEqual(
      await Promise.all(own),
      own.map(() => 'died'),
    )
    assert.equal(reactors.counts().running, 8)
    assert.equal(reactors.metrics.workerTasksDied, 8)
    reactors.openGate()
    assert.deepEqual(
      await Promise.all(others),
      others.map(() => 'done'),
    )
    assert.equal(await reactors.hold(0), 'done')
    assert.equal(reactors.counts().running, 0)
    assert.equal(reactors.metrics.workerDeaths, 1)
    await until(() => reactors.metrics.workerThreads === REACTORS)
    assert.ok(reactors.reports.some(({ event }) => event === 'worker died; a replacement starts'))
  })
}

test('a task that throws fails alone, and its text stays out of the cause', async t => {
  const reactors = new Reactors(t)
  const held = reactors.hold(0)
  await reactors.begun(1)
  const error = await reactors.run(0, { kind: 'fail' }).then(
    () => assert.fail(),
    (error: WorkerFailure) => error,
  )
  assert.equal(error.reason, 'failed')
  assert.match(error.message, /^TypeError at /)
  assert.doesNotMatch(error.message, /client/)
  reactors.openGate()
  assert.equal(await held, 'done')
})

test('after a reload tasks have the new plan, and those in flight end on the old threads', async t => {
  const reactors = new Reactors(t)
  const held = reactors.hold(0)
  await reactors.begun(1)
  assert.equal(await reactors.run(0, { kind: 'plan' }), 'debug')
  reactors.workers[0]!.deploy({ ...reactors.plan, logLevel: 'warn' } satisfies LivePlan, { removed: [], deployed: [] })
  assert.equal(await reactors.run(0, { kind: 'plan' }), 'warn')
  reactors.openGate()
  assert.equal(await held, 'done')
  assert.equal(reactors.metrics.workerDeaths, 0)
  await until(() => reactors.metrics.workerThreads === 1)
})

test('of five configurations with tasks the oldest is ended, with its cause; others do not count', async t => {
  const limits = { core: 10, max: 10 }
  const reactors = new Reactors(t, { limits })
  const reload = (level: string): void =>
    reactors.workers[0]!.deploy({ ...reactors.plan, logLevel: level }, { removed: [], deployed: [] })
  const held: Promise<unknown>[] = []
  const hold = async (): Promise<void> => {
    held.push(
      reactors
        .run(0, { kind: 'hold', cells: reactors.cells.buffer as SharedArrayBuffer })
        .catch(error => error.message),
    )
    await reactors.begun(held.length)
  }
  await hold()
  // Five reloads without tasks on their threads.
  for (let at = 0; at < 5; at++) reload(`idle ${at}`)
  for (let at = 0; at < 3; at++) {
    await hold()
    reload(`busy ${at}`)
  }
  const ended = () => reactors.reports.filter(({ event }) => event.startsWith('worker threads of an earlier'))
  assert.deepEqual(ended(), [])
  await hold()
  reload('fifth')
  const cause = 'tasks of 4 later configurations have not ended either'
  assert.equal(await held[0], cause)
  assert.deepEqual(
    ended().map(({ fields }) => fields),
    [{ TASKS: 1, CAUSE_OF_ERROR: cause }],
  )
  reactors.openGate()
  assert.deepEqual(
    (await Promise.all(held.slice(1))).map(result => (result as { kind?: string }).kind ?? result),
    ['held', 'held', 'held', 'held'],
  )
})

test('a raised limit lets waiting messages of every reactor run', async t => {
  const reactors = new Reactors(t, { limits: { core: 1, max: 1 } })
  const outcomes = [reactors.hold(0), reactors.hold(0), reactors.hold(1)]
  await reactors.begun(1)
  const { workers } = reactors.plan
  const raised = { ...workers, limits: { ...workers.limits, plain: { ...workers.limits.plain, core: 3, max: 3 } } }
  for (const each of reactors.workers) each.deploy({ ...reactors.plan, workers: raised }, { removed: [], deployed: [] })
  await reactors.begun(3)
  reactors.openGate()
  assert.deepEqual(await Promise.all(outcomes), ['done', 'done', 'done'])
})

test('the permits of a dead reactor are free again, for those who wait on others', async t => {
  const reactors = new Reactors(t, { limits: { core: 1, max: 1 } })
  const dead = new SharedPermits(reactors.plan.permits, REACTORS, 0)
  const { plain } = reactors.plan.workers.limits
  const decisions = [1, 2].map(sinceMs => dead.enter(PERMIT_ROWS.plain, plain, { bytes: 1, sinceMs }))
  assert.deepEqual(decisions, ['runs', 'waits'])
  const outcome = reactors.hold(1)
  assert.deepEqual([reactors.counts().running, reactors.counts().waiting], [1, 2])
  SharedPermits.clear(reactors.plan.permits, REACTORS, 0)
  await reactors.begun(1)
  reactors.openGate()
  assert.equal(await outcome, 'done')
  assert.deepEqual([reactors.counts().running, reactors.counts().waiting], [0, 0])
})

test('the background pool has permits of its own, and says when it refuses', async t => {
  const reactors = new Reactors(t)
  const message = { body: { kind: 'none' } }
  const task = { kind: 'hold', cells: reactors.cells.buffer, message } as unknown as FlowTask
  assert.notEqual(reactors.service(0).background(task), null)
  assert.equal(reactors.service(1).background(task), null)
  await reactors.begun(1)
  assert.equal(reactors.counts('background').running, 1)
  assert.equal(reactors.counts('plain').running, 0)
  reactors.openGate()
  await until(() => reactors.counts('background').running === 0)
  const { backgroundTasks, backgroundRefusedQueueFull } = reactors.metrics
  assert.deepEqual([backgroundTasks, backgroundRefusedQueueFull], [2, 1])
})

test('a configuration counts once as an earlier one, whatever threads of it have messages', async t => {
  const reactors = new Reactors(t, { limits: { core: 99, max: 99 }, background: { core: 99, max: 99 } })
  const cells = reactors.cells.buffer as SharedArrayBuffer
  const reload = (level: string): void =>
    reactors.workers[0]!.deploy({ ...reactors.plan, logLevel: level }, { removed: [], deployed: [] })
  const held: Promise<string>[] = []
  for (let at = 1; at <= 4; at++) {
    for (const bytes of [0, reactors.plan.bodies.memoryMax + 1]) held.push(reactors.hold(0, bytes))
    const task = { kind: 'hold', cells, message: { body: { kind: 'none' } } } as unknown as FlowTask
    assert.notEqual(reactors.service(0).background(task), null)
    await reactors.begun(3 * at)
    reload(`busy ${at}`)
  }
  reactors.openGate()
  assert.deepEqual(tally(await Promise.all(held)), { done: 8 })
})
