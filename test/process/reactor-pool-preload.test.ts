/** Reactors that load their modules before there is a plan. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { BroadcastChannel, type Worker } from 'node:worker_threads'
import type { FromReactor } from '../../src/plan/reactor-messages.ts'
import type { ApiPlan, ReactorPlan } from '../../src/plan/reactor-plan.ts'
import { ReactorPool } from '../../src/primary/reactor-pool.ts'
import { PLAIN_API } from '../harness/api-plan.ts'

const REACTORS = 2

function planOf(reactor: number): ReactorPlan {
  const endpoints = { kind: 'single', algorithm: 'round_robin', failsOver: false, endpoints: [] } as const
  const apis = ['first', 'second'].map((name): ApiPlan => ({ ...PLAIN_API, name, paths: [`/${name}`], endpoints }))
  return {
    reactor,
    apis,
    handlers: null,
    listeners: [],
    heartbeats: new SharedArrayBuffer(4 * REACTORS),
  } as unknown as ReactorPlan
}

/** Says that it has loaded, then what its plan is, then which message follows the plan. `die`: what it does before. */
function entryOf(channel: string, die = ''): URL {
  const code = `
    import { BroadcastChannel, parentPort, workerData } from 'node:worker_threads'
    import { receivePlan } from '${new URL('../../src/plan/plan-codec.ts', import.meta.url)}'
    const channel = new BroadcastChannel(${JSON.stringify(channel)})
    channel.postMessage('loaded')
    channel.close()
    ${die}
    const { reactor, apis } = receivePlan()
    parentPort.on('message', ({ kind }) => {
      parentPort.postMessage({ kind: 'access', batch: [reactor, apis.map(({ name }) => name).join(), kind] })
    })
    parentPort.postMessage({ kind: 'started', started: [7] })`
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`)
}

/** Waits until so many threads have loaded. */
function counter(t: TestContext, name: string): { readonly until: (count: number) => Promise<void> } {
  const channel = new BroadcastChannel(name)
  let loaded = 0
  const heard = new Map<number, () => void>()
  channel.onmessage = () => heard.get(++loaded)?.()
  t.after(() => channel.close())
  const until = (count: number) =>
    new Promise<void>(resolve => (loaded >= count ? resolve() : heard.set(count, resolve)))
  return { until }
}

async function checkPlans(t: TestContext, pool: ReactorPool): Promise<void> {
  t.after(() => pool.abort())
  const reports = new Map<number, unknown>()
  const all = Promise.withResolvers<void>()
  const ports = await pool.start([planOf(0), planOf(1)], {
    receive: (reactor: number, message: FromReactor) => {
      if (message.kind === 'access') reports.set(reactor, message.batch)
      if (reports.size === REACTORS) all.resolve()
    },
    died: (_, cause) => assert.fail(cause),
    printed: (_, text) => assert.fail(text),
    replaced: () => assert.fail(),
    fatal: cause => assert.fail(cause),
  })
  assert.deepEqual(ports, [7])
  pool.send({ kind: 'reopenLogs' })
  await all.promise
  assert.deepEqual([...reports.values()].sort(), [
    [0, 'first,second', 'reopenLogs'],
    [1, 'first,second', 'reopenLogs'],
  ])
}

test('threads load before they have a plan', { timeout: 60_000 }, async t => {
  const { until } = counter(t, 'early')
  const pool = new ReactorPool('', entryOf('early'))
  pool.preload(REACTORS)
  await until(REACTORS)
  await checkPlans(t, pool)
})

test('a thread that was not preloaded starts with its plan', { timeout: 60_000 }, async t => {
  await checkPlans(t, new ReactorPool('', entryOf('late')))
})

test('a thread that ends before it has a plan is replaced by another one', { timeout: 60_000 }, async t => {
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  process.once('worker', (worker: Worker) => worker.once('exit', () => resolve()))
  const pool = new ReactorPool('', entryOf('dies', 'if (workerData.planPosted[0] === 0) throw new Error()'))
  pool.preload(1)
  await ended
  await checkPlans(t, pool)
})
