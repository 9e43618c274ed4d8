/** Reactors that do not start, hang or die, and the results of calls to them. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync, unlinkSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename } from 'node:path'
import { test } from 'node:test'
import { allocateApiMetrics } from '../../src/observe/api-metrics.ts'
import { allocateMetrics } from '../../src/observe/metrics.ts'
import type { ApiPlan, LivePlan, ReactorPlan } from '../../src/plan/reactor-plan.ts'
import { type PoolLimits, type PoolOwner, ReactorPool } from '../../src/primary/reactor-pool.ts'
import { ThreadFailed } from '../../src/primary/thread-supervisor.ts'
import { SharedGauge } from '../../src/runtime/shared-gauge.ts'
import { SharedPermits } from '../../src/runtime/shared-permits.ts'
import { EndpointTable } from '../../src/proxy/target/endpoint-table.ts'
import { temporaryPath } from '../../src/runtime/temporary-files.ts'
import { PLAIN_API } from '../harness/api-plan.ts'
import { eventually } from '../harness/peers.ts'
import { silentPipe } from '../harness/silent-pipe.ts'

const OWN_FILES = new URL('../../src/runtime/temporary-files.ts', import.meta.url)
const OWN_PLAN = new URL('../../src/plan/plan-codec.ts', import.meta.url)

/** Shared with the threads: how many there have been. */
const spawned = new Int32Array(new SharedArrayBuffer(4))

/** Steps of the first, second, third thread; the last step is for all that follow. */
function poolOf(
  steps: readonly string[],
  limits: Partial<PoolLimits> = {},
  apis: readonly ApiPlan[] = [],
  pipe: string = '',
  fds: readonly number[] = [],
) {
  const code = `
    import { parentPort } from 'node:worker_threads'
    import { receivePlan } from '${OWN_PLAN}'
    import { readFileSync, writeFileSync } from 'node:fs'
    import { temporaryPath } from '${OWN_FILES}'
    const plan = receivePlan()
    const step = plan.steps[Atomics.add(plan.spawned, 0, 1)] ?? plan.steps.at(-1)
    const still = new Int32Array(new SharedArrayBuffer(4))
    const beats = new Int32Array(plan.heartbeats)
    parentPort.on('message', ({ id }) => {
      if (step === 'answer') parentPort.postMessage({ kind: 'result', id, value: true })
      if (step === 'answer wrongly') parentPort.postMessage({ kind: 'result', id: id + 7, value: true })
      if (step === 'die asked') process.exit()
      if (step === 'busy asked') {
        Atomics.wait(still, 0, 0, 3500)
        parentPort.postMessage({ kind: 'result', id, value: true })
      }
    })
    setInterval(() => Atomics.add(beats, 0, 1), 10)
    if (step === 'hang') Atomics.wait(still, 0, 0)
    if (step === 'silent') await new Promise(() => {})
    if (step === 'slow') await new Promise(resolve => setTimeout(resolve, 3500))
    if (step === 'fail') parentPort.postMessage({ kind: 'failed', cause: 'no luck' })
    else parentPort.postMessage({ kind: 'started', started: [7] })
    if (step === 'die with a file') {
      writeFileSync(temporaryPath(), 'body')
      process.exit()
    }
    if (step === 'die') setTimeout(() => process.exit(), 20)
    if (step === 'block') parentPort.postMessage({ kind: 'listening', fds: plan.fds })
    if (step === 'block') setTimeout(() => readFileSync(plan.pipe), 20)
    if (step === 'spin') setTimeout(() => { for (;;); }, 20)`
  const plan = {
    reactor: 0,
    reactors: 1,
    listeners: [],
    heartbeats: new SharedArrayBuffer(4),
    metrics: allocateMetrics(1),
    apiMetrics: allocateApiMetrics(1),
    gauge: SharedGauge.allocate(1, 1),
    clients: SharedGauge.allocate(1, 1),
    endpoints: EndpointTable.allocate(1, 1),
    permits: SharedPermits.allocate(1, 1),
    handlers: null,
    apis,
    steps,
    spawned,
    pipe,
    fds,
  }
  Atomics.store(spawned, 0, 0)
  const replaced = Promise.withResolvers<string>()
  const fatal = Promise.withResolvers<string>()
  const causes: string[] = []
  const owner: PoolOwner = {
    receive: () => {},
    died: (_, cause) => causes.push(cause),
    replaced: () => replaced.resolve(causes.at(-1)!),
    printed: () => {},
    fatal: cause => fatal.resolve(cause),
  }
  const entry = new URL(`data:text/javascript,${encodeURIComponent(code)}`)
  const pool = new ReactorPool('', entry, { startMs: 60_000, silenceMs: 60_000, perApiMs: 0, ...limits })
  const start = () => pool.start([plan as unknown as ReactorPlan], owner)
  return { pool, start, causes, replaced: replaced.promise, fatal: fatal.promise }
}

for (const [what, startMs, step, cause] of [
  ['reports that it failed', 60_000, 'fail', 'no luck'],
  ['is busy before it listens', 2000, 'hang', 'reactor 0 has not started within 2000 ms'],
  ['waits for ever before it listens', 2000, 'silent', 'reactor 0 has not started within 2000 ms'],
] as const) {
  test(`a first reactor that ${what} rejects the start`, async t => {
    const { pool, start } = poolOf([step], { startMs })
    t.after(() => pool.abort())
    await assert.rejects(start(), new ThreadFailed(cause))
  })

  test(`a replacement that ${what} is itself replaced, once`, async t => {
    const { pool, start, replaced } = poolOf(['die', step, 'listen'], { startMs })
    t.after(() => pool.abort())
    assert.deepEqual(await start(), [7])
    assert.equal(await replaced, cause)
    pool.abort()
    await pool.drain(1000)
    assert.equal(Atomics.load(spawned, 0), 3)
  })
}

/** Each API allows a second more. */
const FOUR_APIS = ['/a', '/b', '/c', '/d'].map((path): ApiPlan => {
  const endpoints = { kind: 'single', algorithm: 'round_robin', failsOver: false, endpoints: [] } as const
  return { ...PLAIN_API, name: path, paths: [path], endpoints }
})

test('the limit of a start grows with the number of APIs', async t => {
  const { pool, start } = poolOf(['slow'], { startMs: 1000, perApiMs: 1000 }, FOUR_APIS)
  t.after(() => pool.abort())
  assert.deepEqual(await start(), [7])
})

for (const [what, deployed, isReplaced] of [
  ['may deploy many APIs for longer', FOUR_APIS, false],
  ['hangs when one API takes as long', FOUR_APIS.slice(3), true],
] as const) {
  test(`a reactor ${what}`, async t => {
    const { pool, start, replaced } = poolOf(['busy asked', 'listen'], { silenceMs: 1000, perApiMs: 1000 })
    t.after(() => pool.abort())
    await start()
    const late = replaced.then(() => 'replaced')
    const answer = pool.deploy({} as LivePlan, FOUR_APIS, { removed: [], deployed }).then(() => 'deployed')
    assert.equal(
      await Promise.race([late, answer.then(it => (isReplaced ? late : it))]),
      isReplaced ? 'replaced' : 'deployed',
    )
  })
}

test('a reactor in an endless loop is replaced', async t => {
  const { pool, start, replaced } = poolOf(['spin', 'listen'], { silenceMs: 500 })
  t.after(() => pool.abort())
  assert.deepEqual(await start(), [7])
  assert.equal(await replaced, 'no heartbeat from reactor 0 for 500 ms')
  pool.abort()
  await pool.drain(1000)
  assert.equal(Atomics.load(spawned, 0), 2)
})

test('more than ten deaths are fatal', async t => {
  const { pool, start, fatal } = poolOf(['die', 'fail'])
  t.after(() => pool.abort())
  await start()
  assert.equal(await fatal, 'no luck')
  assert.equal(Atomics.load(spawned, 0), 11)
})

for (const [what, step, timeoutMs, result] of [
  ['is the result of the reactor', 'answer', 60_000, true],
  ['is null when the reactor dies', 'die asked', 60_000, null],
  ['is null after the time-out', 'listen', 50, null],
  ['is not that of another call', 'answer wrongly', 50, null],
] as const) {
  test(`the result of a call ${what}`, async t => {
    const { pool, start } = poolOf([step])
    t.after(() => pool.abort())
    await start()
    assert.deepEqual(await Promise.all(pool.call({ kind: 'unwatch', correlationId: '' }, timeoutMs)), [result])
  })
}

test('the files of a reactor that dies are deleted, and those of other threads stay', async t => {
  const own = temporaryPath()
  writeFileSync(own, 'body')
  t.after(() => unlinkSync(own))
  const { pool, start, replaced } = poolOf(['die with a file', 'live'])
  t.after(() => pool.abort())
  await start()
  await replaced
  const left = () => readdirSync(tmpdir()).filter(name => name.startsWith(`sluice-body-${process.pid}-`))
  await eventually('the end of the file', () => left().length === 1)
  assert.deepEqual(left(), [basename(own)])
})

const STUCK = { silenceMs: 1000, checkMs: 100, stuckMs: 500 }

test('a reactor in a call of the system that does not return is replaced, and the end waits for none', async t => {
  const { pool, start, replaced } = poolOf(['block', 'listen'], STUCK, [], silentPipe(t))
  await start()
  assert.match(await replaced, /^no heartbeat from reactor 0 for 1000 ms; a call of the system that does not return/)
  assert.ok(pool.hasStuck)
  pool.abort()
  await pool.drain(1000)
  assert.equal(Atomics.load(spawned, 0), 2)
})

for (const sharesSockets of [false, true]) {
  const what = sharesSockets ? 'leaves sockets that a successor has' : 'listens no more'
  test(`D911: a stuck reactor ${what}`, async t => {
    const server = createServer(socket => socket.end('here')).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => server.close())
    const { fd } = (server as unknown as { readonly _handle: { readonly fd: number } })._handle
    const { pool, start, replaced } = poolOf(['block', 'listen'], STUCK, [], silentPipe(t), [fd])
    t.after(() => pool.abort())
    pool.sharesSockets = sharesSockets
    await start()
    await replaced
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
    const outcome = await once(client, 'data').then(String, ({ code }: NodeJS.ErrnoException) => code)
    assert.equal(outcome, sharesSockets ? 'here' : 'ECONNREFUSED')
  })
}

test('reactors that get stuck one after the other are fatal', async t => {
  const { pool, start, fatal, causes } = poolOf(['block'], STUCK, [], silentPipe(t))
  t.after(() => pool.abort())
  await start()
  assert.match(await fatal, /a call of the system that does not return/)
  assert.equal(causes.length, 4)
})
