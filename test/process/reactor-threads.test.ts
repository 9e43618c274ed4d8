/** Threads that load before there is a plan, and how it gets to them. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { BroadcastChannel, type Worker } from 'node:worker_threads'
import type { CorsDefinition } from '../../src/config/api-definition.ts'
import type { ApiPlan, ReactorPlan } from '../../src/plan.ts'
import { ReactorThreads } from '../../src/primary/reactor-threads.ts'
import { planFrom, toldPlan } from '../../src/told-plan.ts'
import { PLAIN_API } from '../harness/api-plan.ts'

const CORS: CorsDefinition = {
  enabled: true,
  origins: ['https://shop.example', '*'],
  methods: ['GET'],
  headers: ['Ä-Field'],
  exposedHeaders: [],
  credentials: false,
  maxAgeS: -1,
}

function api(path: string, cors: CorsDefinition | null): ApiPlan {
  const endpoints = { kind: 'single', algorithm: 'round_robin', failsOver: false, endpoints: [] } as const
  const resources = [{ template: '/ü/{id}', verb: 'GET', authType: 'None', tier: '\u{1f600}', scopes: ['"'] }] as const
  return { ...PLAIN_API, name: path, paths: [path], endpoints, cors, resources }
}

function planOf(apis: readonly ApiPlan[], reactor = 0): ReactorPlan {
  return { reactor, apis, heartbeats: new SharedArrayBuffer(4), logLevel: 'info' } as unknown as ReactorPlan
}

test('a plan is told as it is, and APIs with the same CORS share it', () => {
  const apis = [api('/a', CORS), api('/b', null), api('/c', { ...CORS, maxAgeS: 5 }), api('/d', CORS)]
  const plan = planOf(apis)
  const read = planFrom(structuredClone(toldPlan(plan)))
  assert.deepEqual(read, plan)
  assert.equal(read.apis[0]!.cors, read.apis[3]!.cors)
})

test('what is told is what a plan holds now', () => {
  const first = [api('/a', null)]
  assert.deepEqual(planFrom(toldPlan(planOf(first))).apis, first)
  const second = [api('/b', CORS)]
  assert.deepEqual(planFrom(toldPlan(planOf(second))).apis, second)
  assert.deepEqual(planFrom(toldPlan(planOf(first, 1))).apis, first)
})

/** Says that it has loaded, and then what its plan is; `die`: what it does before. */
function entryOf(channel: string, die = ''): URL {
  const code = `
    import { BroadcastChannel, parentPort, workerData } from 'node:worker_threads'
    import { ownPlan } from '${new URL('../../src/reactor/own-plan.ts', import.meta.url)}'
    const channel = new BroadcastChannel(${JSON.stringify(channel)})
    channel.postMessage('loaded')
    channel.close()
    ${die}
    const { reactor, apis } = ownPlan()
    parentPort.on('message', text => parentPort.postMessage([reactor, apis.map(({ name }) => name).join(), text]))
    parentPort.postMessage('told')`
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`)
}

/** Answers how many have loaded by now. */
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

async function says(worker: Worker): Promise<unknown> {
  return (await once(worker, 'message', { signal: AbortSignal.timeout(20_000) }))[0]
}

async function checkIsTold(t: TestContext, threads: ReactorThreads, reactor: number): Promise<void> {
  const worker = threads.take(planOf([api('/first', CORS), api('/second', null)], reactor))
  t.after(() => worker.terminate())
  // Behind the plan, and neither lost nor taken for it.
  worker.postMessage('next')
  assert.equal(await says(worker), 'told')
  assert.deepEqual(await says(worker), [reactor, '/first,/second', 'next'])
}

test('threads load before they have a plan', { timeout: 60_000 }, async t => {
  const { until } = counter(t, 'early')
  const threads = new ReactorThreads('', entryOf('early'))
  threads.begin(2)
  await until(2)
  await checkIsTold(t, threads, 1)
  await checkIsTold(t, threads, 0)
})

test('a thread that nobody has begun is begun with its plan', { timeout: 60_000 }, async t => {
  await checkIsTold(t, new ReactorThreads('', entryOf('late')), 3)
})

test('a thread that ends before it has a plan is replaced by another one', { timeout: 60_000 }, async t => {
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  process.once('worker', (worker: Worker) => worker.once('exit', () => resolve()))
  const threads = new ReactorThreads('', entryOf('dies', 'if (workerData.told[0] === 0) throw new Error()'))
  threads.begin(1)
  await ended
  await checkIsTold(t, threads, 0)
})
