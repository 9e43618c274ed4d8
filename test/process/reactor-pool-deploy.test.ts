/** What reactors are told of a reload: those that refuse are told again, those that are late or replaced have it. */
import { PLAIN_API } from '../harness/api-plan.ts'
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { allocateMetrics } from '../../src/observe/metrics.ts'
import type { ApiChanges, ApiPlan, FromReactor, LivePlan, ReactorPlan } from '../../src/plan.ts'
import { ReactorPool } from '../../src/primary/reactor-pool.ts'
import { ReactorThreads } from '../../src/primary/reactor-threads.ts'
import { SharedGauge } from '../../src/structure/shared-gauge.ts'
import { EndpointTable } from '../../src/target/endpoint-table.ts'
import { eventually } from '../harness/peers.ts'

/** Each deploy takes the next step, over all threads; the last is for all that follow. */
const CODE = `
  import { parentPort } from 'node:worker_threads'
  import { ownPlan } from '${new URL('../../src/reactor/own-plan.ts', import.meta.url)}'
  const plan = ownPlan()
  const beats = new Int32Array(plan.heartbeats)
  const say = text => parentPort.postMessage({ kind: 'access', batch: text })
  say('starts with ' + plan.apis.map(({ paths }) => paths[0]))
  parentPort.on('message', ({ id, question }) => {
    const step = plan.steps[Atomics.add(plan.asked, 0, 1)] ?? plan.steps.at(-1)
    if (step === 'die') process.exit()
    say(JSON.stringify([question.apis.removed, question.apis.deployed.map(({ paths, name }) => paths[0] + ' ' + name)]))
    if (step !== 'silent') parentPort.postMessage({ kind: 'answer', id, answer: step })
  })
  setInterval(() => Atomics.add(beats, 0, 1), 10)
  parentPort.postMessage({ kind: 'listening', ports: [7] })`

function api(path: string, name = ''): ApiPlan {
  return {
    ...PLAIN_API,
    name,
    paths: [path],
    endpoints: { kind: 'single', algorithm: 'round_robin', failsOver: false, endpoints: [] },
  }
}

const LIVE = {} as LivePlan

async function started(t: TestContext, steps: readonly string[]) {
  const plan = {
    ...{ reactor: 0, reactors: 1, steps, apis: [api('/first')] },
    heartbeats: new SharedArrayBuffer(4),
    asked: new Int32Array(new SharedArrayBuffer(4)),
    metrics: allocateMetrics(1),
    gauge: SharedGauge.allocate(1, 1),
    clients: SharedGauge.allocate(1, 1),
    endpoints: EndpointTable.allocate(1, 1),
  }
  const told: unknown[] = []
  const message = (_: number, from: FromReactor): void => {
    if (from.kind === 'access') told.push(from.batch)
  }
  const entry = new URL(`data:text/javascript,${encodeURIComponent(CODE)}`)
  const watcher = { message, replaced: () => {}, hopeless: () => {} }
  const pool = new ReactorPool([plan as unknown as ReactorPlan], new ReactorThreads('', entry), watcher)
  t.after(() => pool.stop())
  await pool.start()
  const deploy = (apis: readonly ApiPlan[], deployed: readonly ApiPlan[], ...removed: readonly string[]) =>
    pool.deploy(LIVE, apis, { removed, deployed } satisfies ApiChanges)
  return { told, deploy }
}

test('reactors are told of changes only', async t => {
  const { told, deploy } = await started(t, [''])
  const [a, b] = [api('/a'), api('/b')]
  assert.deepEqual(await deploy([a, b], [b], '/first'), { refusals: [], late: [] })
  assert.deepEqual(told, ['starts with /first', '[["/first"],["/b "]]'])
})

test('what was refused is told again with what follows, as it is by then', async t => {
  const { told, deploy } = await started(t, ['no', 'no', ''])
  const [a, b, c, newer] = [api('/a'), api('/b'), api('/c'), api('/b', 'newer')]
  assert.deepEqual(await deploy([a, b, c], [a, b], '/first'), { refusals: ['no'], late: [] })
  assert.deepEqual(await deploy([newer, c], [newer], '/a'), { refusals: ['no'], late: [] })
  assert.deepEqual(await deploy([newer, c, api('/first')], [api('/first')]), { refusals: [], late: [] })
  assert.deepEqual(await deploy([newer, c], [], '/first'), { refusals: [], late: [] })
  assert.deepEqual(told.slice(1), [
    '[["/first"],["/a ","/b "]]',
    '[["/a","/first"],["/b newer"]]',
    '[["/a"],["/first ","/b newer"]]',
    '[["/first"],[]]',
  ])
})

test('one that dies over it is replaced by one that begins with it', async t => {
  const { told, deploy } = await started(t, ['die', ''])
  assert.deepEqual(await deploy([api('/a')], [api('/a')], '/first'), { refusals: [], late: [] })
  await eventually('the next one', () => told.length === 2)
  assert.deepEqual(told, ['starts with /first', 'starts with /a'])
})
