/** Threads that do not come to listen: one seat is never taken twice, and none stays empty unnoticed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allocateMetrics } from '../../src/observe/metrics.ts'
import type { ApiPlan, LivePlan, ReactorPlan } from '../../src/plan.ts'
import { type PoolLimits, ReactorFailed, ReactorPool } from '../../src/primary/reactor-pool.ts'
import { ReactorThreads } from '../../src/primary/reactor-threads.ts'
import { SharedGauge } from '../../src/structure/shared-gauge.ts'
import { EndpointTable } from '../../src/target/endpoint-table.ts'
import { PLAIN_API } from '../harness/api-plan.ts'

const OWN_PLAN = new URL('../../src/reactor/own-plan.ts', import.meta.url)

/** Shared with the threads: how many there were. */
const spawned = new Int32Array(new SharedArrayBuffer(4))

/** What the first, second, third thread does; the last step is for all that follow. */
function poolOf(steps: readonly string[], limits: Partial<PoolLimits> = {}, apis: readonly ApiPlan[] = []) {
  const code = `
    import { parentPort } from 'node:worker_threads'
    import { ownPlan } from '${OWN_PLAN}'
    const plan = ownPlan()
    const step = plan.steps[Atomics.add(plan.spawned, 0, 1)] ?? plan.steps.at(-1)
    const still = new Int32Array(new SharedArrayBuffer(4))
    const beats = new Int32Array(plan.heartbeats)
    parentPort.on('message', ({ id }) => {
      if (step === 'answer') parentPort.postMessage({ kind: 'answer', id, answer: true })
      if (step === 'answer wrongly') parentPort.postMessage({ kind: 'answer', id: id + 7, answer: true })
      if (step === 'die asked') process.exit()
      if (step === 'busy asked') {
        Atomics.wait(still, 0, 0, 3500)
        parentPort.postMessage({ kind: 'answer', id, answer: '' })
      }
    })
    setInterval(() => Atomics.add(beats, 0, 1), 10)
    if (step === 'hang') Atomics.wait(still, 0, 0)
    if (step === 'silent') await new Promise(() => {})
    if (step === 'slow') await new Promise(resolve => setTimeout(resolve, 3500))
    if (step === 'fail') parentPort.postMessage({ kind: 'failed', cause: 'no luck' })
    else parentPort.postMessage({ kind: 'listening', ports: [7] })
    if (step === 'die') setTimeout(() => process.exit(), 20)
    if (step === 'spin') setTimeout(() => { for (;;); }, 20)`
  const plan = {
    reactor: 0,
    reactors: 1,
    heartbeats: new SharedArrayBuffer(4),
    metrics: allocateMetrics(1),
    gauge: SharedGauge.allocate(1, 1),
    clients: SharedGauge.allocate(1, 1),
    endpoints: EndpointTable.allocate(1, 1),
    apis,
    steps,
    spawned,
  }
  Atomics.store(spawned, 0, 0)
  const replaced = Promise.withResolvers<string>()
  const hopeless = Promise.withResolvers<string>()
  const watcher = { message: () => {}, replaced: (_: number, cause: string) => replaced.resolve(cause) }
  const entry = new URL(`data:text/javascript,${encodeURIComponent(code)}`)
  const pool = new ReactorPool(
    [plan as unknown as ReactorPlan],
    new ReactorThreads('', entry),
    { ...watcher, hopeless: cause => hopeless.resolve(cause) },
    { startMs: 60_000, silenceMs: 60_000, perApiMs: 0, ...limits },
  )
  return { pool, replaced: replaced.promise, hopeless: hopeless.promise }
}

for (const [what, startMs, step, cause] of [
  ['says that it failed', 60_000, 'fail', 'no luck'],
  ['is busy before it listens', 2000, 'hang', 'reactor 0 does not listen after 2000 ms'],
  ['waits for ever before it listens', 2000, 'silent', 'reactor 0 does not listen after 2000 ms'],
] as const) {
  test(`a first reactor that ${what} ends the start`, async t => {
    const { pool } = poolOf([step], { startMs })
    t.after(() => pool.stop())
    await assert.rejects(pool.start(), new ReactorFailed(cause))
  })

  test(`a replacement that ${what} is itself replaced, once`, async t => {
    const { pool, replaced } = poolOf(['die', step, 'listen'], { startMs })
    t.after(() => pool.stop())
    assert.deepEqual(await pool.start(), [7])
    assert.equal(await replaced, cause)
    pool.stop()
    await pool.drain(1000)
    assert.equal(Atomics.load(spawned, 0), 3)
  })
}

/** Every API gives a second more. */
const FOUR_APIS = ['/a', '/b', '/c', '/d'].map((path): ApiPlan => {
  const endpoints = { kind: 'single', algorithm: 'round_robin', failsOver: false, endpoints: [] } as const
  return { ...PLAIN_API, name: path, paths: [path], endpoints }
})

test('who has more to build has more time to come to listen', async t => {
  const { pool } = poolOf(['slow'], { startMs: 1000, perApiMs: 1000 }, FOUR_APIS)
  t.after(() => pool.stop())
  assert.deepEqual(await pool.start(), [7])
})

for (const [what, deployed, isReplaced] of [
  ['more to deploy has more time to do so', FOUR_APIS, false],
  ['little to deploy is hung when it takes long', FOUR_APIS.slice(3), true],
] as const) {
  test(`who has ${what}`, async t => {
    const { pool, replaced } = poolOf(['busy asked', 'listen'], { silenceMs: 1000, perApiMs: 1000 })
    t.after(() => pool.stop())
    await pool.start()
    const late = replaced.then(() => 'replaced')
    const answer = pool.deploy({} as LivePlan, FOUR_APIS, { removed: [], deployed }).then(() => 'deployed')
    assert.equal(
      await Promise.race([late, answer.then(it => (isReplaced ? late : it))]),
      isReplaced ? 'replaced' : 'deployed',
    )
  })
}

test('a reactor that spins in JavaScript and gives nobody a turn is replaced', async t => {
  const { pool, replaced } = poolOf(['spin', 'listen'], { silenceMs: 500 })
  t.after(() => pool.stop())
  assert.deepEqual(await pool.start(), [7])
  assert.equal(await replaced, 'reactor 0 no heartbeat for 500 ms')
  pool.stop()
  // The one that spins ends all the same.
  await pool.drain(1000)
  assert.equal(Atomics.load(spawned, 0), 2)
})

test('replacements that all fail end the program', async t => {
  const { pool, hopeless } = poolOf(['die', 'fail'])
  t.after(() => pool.stop())
  await pool.start()
  assert.equal(await hopeless, 'no luck')
  assert.equal(Atomics.load(spawned, 0), 11)
})

for (const [what, step, waitMs, answer] of [
  ['is waited for', 'answer', 60_000, true],
  ['ends with the thread', 'die asked', 60_000, null],
  ['has its limit', 'listen', 50, null],
  ['belongs to its question', 'answer wrongly', 50, null],
] as const) {
  test(`the answer to a question ${what}`, async t => {
    const { pool } = poolOf([step])
    t.after(() => pool.stop())
    await pool.start()
    assert.deepEqual(await Promise.all(pool.ask({ kind: 'disarm', correlationId: '' }, waitMs)), [answer])
  })
}
