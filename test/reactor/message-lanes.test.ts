/** Threads for short, large and long messages of one reactor: who runs where, while others compute. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import workerThreads from 'node:worker_threads'
import { TaskClaims } from '../../src/runtime/task-claims.ts'
import { BEGUN } from './scripted-tasks.ts'
import { Reactors, until } from './scripted-reactors.ts'

/** Bounds of waits keep no process that has passed. */
const UNREF = { ref: false }

test('a long body delays no short message: it is mediated on a thread of its own, under the same permits', async t => {
  const reactors = new Reactors(t, { limits: { core: 3, max: 3, queueLength: 0 } })
  const long = reactors.plan.bodies.memoryMax + 1
  const block = () => reactors.outcome(0, { kind: 'block', cells: reactors.cells.buffer as SharedArrayBuffer }, long)
  const ended: string[] = []
  const blocked = [block(), block()].map(outcome => outcome.then(told => ended.push(`long ${told}`)))
  await reactors.begun(1)
  ended.push(`short ${await reactors.outcome(0, { kind: 'plan' }, long - 1)}`)
  const short = reactors.outcome(0, { kind: 'plan' })
  assert.equal(await reactors.outcome(0, { kind: 'plan' }), 'queue-full')
  ended.push(`short ${await short}`)
  reactors.openGate()
  await Promise.all(blocked)
  assert.deepEqual(ended, ['short done', 'short done', 'long done', 'long done'])
})

test('a message that computes for long holds up no later one: the thread of long bodies takes those', async t => {
  const reactors = new Reactors(t, { limits: { core: 4, max: 4, queueLength: 0 } })
  const block = () => reactors.outcome(0, { kind: 'block', cells: reactors.cells.buffer as SharedArrayBuffer })
  const blocked = block()
  await reactors.begun(1)
  await sleep(200)
  assert.equal(await reactors.outcome(0, { kind: 'plan' }), 'done')
  assert.equal(reactors.metrics.workerDiversions, 1)
  reactors.openGate()
  assert.equal(await blocked, 'done')
  assert.equal(await reactors.outcome(0, { kind: 'plan' }), 'done')
  assert.equal(reactors.metrics.workerDiversions, 1)
})

const LARGE: readonly (readonly [title: string, bytes: number, coding: string, delayed: number])[] = [
  ['is longer than 16 KiB', 16_385, '', 0],
  ['has a Content-Encoding', 100, 'gzip', 0],
  ['is short', 16_384, '', 1],
]
for (const [title, bytes, coding, delayed] of LARGE) {
  test(`a message whose body ${title} delays ${delayed === 0 ? 'no short one' : 'those behind it'}`, async t => {
    const reactors = new Reactors(t, { limits: { core: 4, max: 4, queueLength: 0 } })
    const task = { cells: reactors.cells.buffer as SharedArrayBuffer, coding }
    await reactors.outcome(0, { kind: 'plan' }, 16_385)
    await until(() => reactors.metrics.workerThreads === 2)
    const blocked = reactors.outcome(0, { ...task, kind: 'block' }, bytes)
    await reactors.begun(1)
    assert.equal(await reactors.outcome(0, { kind: 'plan' }), 'done')
    assert.equal(reactors.metrics.workerDiversions, delayed)
    const next = await reactors.outcome(0, { ...task, kind: 'count' }, bytes)
    reactors.openGate()
    assert.deepEqual([next, await blocked], ['done', 'done'])
  })
}

test('large messages that compute delay further large ones alone', async t => {
  const reactors = new Reactors(t, { limits: { core: 5, max: 5, queueLength: 0 } })
  const cells = reactors.cells.buffer as SharedArrayBuffer
  const large = 1_048_576
  await reactors.outcome(0, { kind: 'plan' }, large)
  await until(() => reactors.metrics.workerThreads === 2)
  const blocking = [1, 2].map(() => reactors.outcome(0, { kind: 'block', cells }, large))
  await reactors.begun(2)
  const ended: string[] = []
  const waiting = reactors.outcome(0, { kind: 'count', cells }, large).then(() => ended.push('large'))
  await sleep(300)
  await reactors.outcome(0, { kind: 'plan' }).then(() => ended.push('short'))
  assert.equal(reactors.metrics.workerDiversions, 0)
  reactors.openGate()
  await Promise.all([waiting, ...blocking])
  assert.deepEqual(ended, ['short', 'large'])
  assert.equal(reactors.cells[BEGUN], 3)
})

const WAITING: readonly (readonly [title: string, blocked: number, bytes: number])[] = [
  ['without a body, behind one that computes', 1, 0],
  ['whose body fits a copy, behind one that computes', 1, 16_384],
  ['behind one that computes, where the thread for long bodies computes too', 2, 1000],
]
for (const [title, blocked, bytes] of WAITING) {
  test(`a message ${title}, is begun by another thread, once`, async t => {
    const reactors = new Reactors(t, { limits: { core: 4, max: 4, queueLength: 0 } })
    const cells = reactors.cells.buffer as SharedArrayBuffer
    const blocking: Promise<string>[] = []
    for (let number = 1; number <= blocked; number++) {
      if (number > 1) await sleep(200)
      blocking.push(reactors.outcome(0, { kind: 'block', cells }))
      await reactors.begun(number)
    }
    const result = (await reactors.run(0, { kind: 'count', cells }, bytes)) as { readonly bytes: Uint8Array | null }
    assert.equal(result.bytes?.length ?? 0, bytes)
    reactors.openGate()
    for (const each of blocking) assert.equal(await each, 'done')
    // The thread that has computed comes to the message that was withdrawn before it comes to this one.
    assert.equal(await reactors.outcome(0, { kind: 'plan' }), 'done')
    assert.equal(reactors.cells[BEGUN], blocked + 1)
    assert.equal(reactors.counts().running, 0)
  })
}

test('a message whose body is moved waits for the thread that has it', async t => {
  const memoryMax = 2 * 1_048_576
  const reactors = new Reactors(t, { limits: { core: 4, max: 4, queueLength: 0 }, memoryMax })
  const cells = reactors.cells.buffer as SharedArrayBuffer
  const blocked = reactors.outcome(0, { kind: 'block', cells })
  await reactors.begun(1)
  const ended: string[] = []
  const moved = reactors.outcome(0, { kind: 'count', cells }, 1_048_577).then(() => ended.push('moved'))
  await reactors.outcome(0, { kind: 'count', cells }).then(() => ended.push('copied'))
  reactors.openGate()
  await Promise.all([blocked, moved])
  assert.deepEqual(ended, ['copied', 'moved'])
})

test('a message that all threads hold up waits, and goes to the first that is free', async t => {
  const reactors = new Reactors(t, { limits: { core: 5, max: 5, queueLength: 0 } })
  const cells = reactors.cells.buffer as SharedArrayBuffer
  const blocking: Promise<string>[] = []
  for (let number = 1; number <= 3; number++) {
    blocking.push(reactors.outcome(0, { kind: 'block', cells }))
    await reactors.begun(number)
    await sleep(200)
  }
  const waiting = reactors.outcome(0, { kind: 'count', cells })
  await sleep(200)
  assert.equal(reactors.cells[BEGUN], 3)
  reactors.openGate()
  assert.deepEqual(await Promise.all([waiting, ...blocking]), ['done', 'done', 'done', 'done'])
  assert.equal(reactors.cells[BEGUN], 4)
})

test('a message that waits for something holds up no thread: later ones join it', async t => {
  const reactors = new Reactors(t, { limits: { core: 4, max: 4, queueLength: 0 }, heldUpMs: 1500 })
  const held = reactors.hold(0)
  await reactors.begun(1)
  await sleep(2000)
  assert.equal(await reactors.outcome(0, { kind: 'plan' }), 'done')
  assert.equal(reactors.metrics.workerDiversions, 0)
  reactors.openGate()
  assert.equal(await held, 'done')
})

type Refusal = 'refused' | 'ends at its start' | 'never starts'
/** What becomes of further threads; null: they start. */
let refusal: Refusal | null = null
const { Worker } = workerThreads
workerThreads.Worker = new Proxy(Worker, {
  construct(target, given: ConstructorParameters<typeof Worker>) {
    if (refusal === null) return Reflect.construct(target, given)
    if (refusal === 'refused') throw Object.assign(new Error('refused'), { code: 'ERR_WORKER_INIT_FAILED' })
    const code = refusal === 'ends at its start' ? 'process.exit(9)' : 'setInterval(() => undefined, 1000)'
    return Reflect.construct(target, [code, { eval: true }])
  },
})

for (const refused of ['refused', 'ends at its start', 'never starts'] as const) {
  test(`messages behind one that computes wait for their thread where another one ${refused}`, async t => {
    const reactors = new Reactors(t, { limits: { core: 9, max: 9, queueLength: 0 } })
    const cells = reactors.cells.buffer as SharedArrayBuffer
    t.after(() => (refusal = null))
    const blocked = reactors.outcome(0, { kind: 'block', cells })
    await reactors.begun(1)
    refusal = refused
    const early = [0, 16_384, 20_000].map(bytes => reactors.outcome(0, { kind: 'count', cells }, bytes))
    await sleep(400)
    const late = [0, 16_384, 20_000].map(bytes => reactors.outcome(0, { kind: 'count', cells }, bytes))
    await sleep(400)
    reactors.openGate()
    const done = Array.from({ length: 7 }, () => 'done')
    const outcomes = await Promise.race([Promise.all([blocked, ...early, ...late]), sleep(20_000, 'hang', UNREF)])
    assert.deepEqual(outcomes, done)
    assert.equal(reactors.cells[BEGUN], 7)
    assert.equal(reactors.counts().running, 0)
  })
}

test('a thread that dies fails the messages that it has begun alone', async t => {
  const limits = { core: 9, max: 9, queueLength: 0 }
  const reactors = new Reactors(t, { limits, heldUpMs: 60_000, silenceMs: 2000 })
  const cells = reactors.cells.buffer as SharedArrayBuffer
  const held = reactors.hold(0)
  await reactors.begun(1)
  const hangs = reactors.outcome(0, { kind: 'hang' })
  await sleep(50)
  const behind = [0, 16_384].map(bytes => reactors.outcome(0, { kind: 'count', cells }, bytes))
  assert.deepEqual(await Promise.all([held, hangs, ...behind]), ['died', 'died', 'done', 'done'])
  assert.equal(reactors.cells[BEGUN], 3)
})

test('messages that a thread is about to begin are not withdrawn while another one computes', async t => {
  const reactors = new Reactors(t, { limits: { core: 300, max: 300, queueLength: 0 }, threads: 4 })
  const cells = reactors.cells.buffer as SharedArrayBuffer
  const offer = t.mock.method(TaskClaims.prototype, 'offer')
  const blocked = reactors.outcome(0, { kind: 'block', cells })
  await reactors.begun(1)
  const busy = Array.from({ length: 200 }, () => reactors.outcome(0, { kind: 'compute', ms: 5, cells }))
  await Promise.all(busy)
  reactors.openGate()
  assert.equal(await blocked, 'done')
  assert.equal(reactors.cells[BEGUN], 201)
  // Half of them have been behind the one that computes.
  assert.ok(offer.mock.callCount() < 201 + 150, `${offer.mock.callCount()}`)
})

test('a message behind one that computes waits for it where the threads of a reload cannot start', async t => {
  const reactors = new Reactors(t, { limits: { core: 9, max: 9, queueLength: 0 } })
  const cells = reactors.cells.buffer as SharedArrayBuffer
  t.after(() => (refusal = null))
  const blocked = reactors.outcome(0, { kind: 'block', cells })
  await reactors.begun(1)
  const behind = reactors.outcome(0, { kind: 'count', cells })
  refusal = 'refused'
  reactors.workers[0]!.deploy({ ...reactors.plan, logLevel: 'warn' }, { removed: [], deployed: [] })
  await sleep(400)
  reactors.openGate()
  assert.deepEqual(await Promise.all([blocked, behind]), ['done', 'done'])
})

test('a message behind one that computes goes to the threads of a reload', async t => {
  const reactors = new Reactors(t, { limits: { core: 9, max: 9, queueLength: 0 } })
  const cells = reactors.cells.buffer as SharedArrayBuffer
  const blocked = reactors.outcome(0, { kind: 'block', cells })
  await reactors.begun(1)
  const behind = reactors.outcome(0, { kind: 'count', cells }, 20_000)
  reactors.workers[0]!.deploy({ ...reactors.plan, logLevel: 'warn' }, { removed: [], deployed: [] })
  assert.equal(await Promise.race([behind, sleep(20_000, 'waits', UNREF)]), 'done')
  reactors.openGate()
  assert.equal(await blocked, 'done')
  assert.equal(await reactors.outcome(0, { kind: 'count', cells }), 'done')
  assert.equal(reactors.cells[BEGUN], 3)
  assert.equal(reactors.counts().running, 0)
})

test('a long queue follows free threads in parts, not as a whole each time', async t => {
  const reactors = new Reactors(t, { limits: { core: 400, max: 400, queueLength: 0 } })
  const cells = reactors.cells.buffer as SharedArrayBuffer
  await reactors.outcome(0, { kind: 'plan' }, 20_000)
  await until(() => reactors.metrics.workerThreads === 2)
  const offer = t.mock.method(TaskClaims.prototype, 'offer')
  const compute = (ms: number) => reactors.outcome(0, { kind: 'compute', ms, cells }, 20_000)
  const outcomes = [...Array.from({ length: 8 }, () => compute(260)), ...Array.from({ length: 300 }, () => compute(1))]
  assert.ok((await Promise.all(outcomes)).every(outcome => outcome === 'done'))
  assert.equal(reactors.cells[BEGUN], 308)
  assert.ok(offer.mock.callCount() < 3 * 308, `${offer.mock.callCount()}`)
})

test('messages that wait for something on another thread keep no message from it', async t => {
  const reactors = new Reactors(t, { limits: { core: 400, max: 400, queueLength: 0 } })
  const cells = reactors.cells.buffer as SharedArrayBuffer
  await reactors.outcome(0, { kind: 'plan' }, 20_000)
  await until(() => reactors.metrics.workerThreads === 2)
  const held = Array.from({ length: 100 }, () => reactors.hold(0, 20_000))
  await reactors.begun(100)
  const blocked = reactors.outcome(0, { kind: 'block', cells })
  await reactors.begun(101)
  assert.equal(
    await Promise.race([reactors.outcome(0, { kind: 'count', cells }), sleep(20_000, 'waits', UNREF)]),
    'done',
  )
  reactors.openGate()
  assert.ok((await Promise.all([blocked, ...held])).every(outcome => outcome === 'done'))
})
