/** What a reload deploys to the reactors: changes only, repeated after a refusal, and known to a replacement. */
import { PLAIN_API } from '../harness/api-plan.ts'
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { allocateApiMetrics } from '../../src/observe/api-metrics.ts'
import { allocateMetrics } from '../../src/observe/metrics.ts'
import type { FromReactor } from '../../src/plan/reactor-messages.ts'
import type { ApiChanges, ApiPlan, LivePlan, ReactorPlan } from '../../src/plan/reactor-plan.ts'
import { ReactorPool } from '../../src/primary/reactor-pool.ts'
import { SharedGauge } from '../../src/runtime/shared-gauge.ts'
import { SharedPermits } from '../../src/runtime/shared-permits.ts'
import { EndpointTable } from '../../src/proxy/target/endpoint-table.ts'
import { eventually } from '../harness/peers.ts'

/** Each deployment takes the next step, over all threads; the last one is for all that follow. */
const CODE = `
  import { parentPort } from 'node:worker_threads'
  import { receivePlan } from '${new URL('../../src/plan/plan-codec.ts', import.meta.url)}'
  const plan = receivePlan()
  const beats = new Int32Array(plan.heartbeats)
  const say = text => parentPort.postMessage({ kind: 'access', batch: text })
  say('starts with ' + plan.apis.map(({ paths }) => paths[0]))
  parentPort.on('message', ({ id, call }) => {
    const step = plan.steps[Atomics.add(plan.asked, 0, 1)] ?? plan.steps.at(-1)
    if (step === 'die') process.exit()
    say(JSON.stringify([call.apis.removed, call.apis.deployed.map(({ paths, name }) => paths[0] + ' ' + name)]))
    if (step === '') parentPort.postMessage({ kind: 'result', id, value: true })
    else parentPort.postMessage({ kind: 'failure', id, cause: step })
  })
  setInterval(() => Atomics.add(beats, 0, 1), 10)
  parentPort.postMessage({ kind: 'started', started: [7] })`

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
    listeners: [],
    ...{ reactor: 0, reactors: 1, steps, apis: [api('/first')] },
    heartbeats: new SharedArrayBuffer(4),
    asked: new Int32Array(new SharedArrayBuffer(4)),
    metrics: allocateMetrics(1),
    apiMetrics: allocateApiMetrics(1),
    gauge: SharedGauge.allocate(1, 1),
    clients: SharedGauge.allocate(1, 1),
    endpoints: EndpointTable.allocate(1, 1),
    permits: SharedPermits.allocate(1, 1),
    handlers: null,
  }
  const told: unknown[] = []
  const receive = (_: number, from: FromReactor): void => {
    if (from.kind === 'access') told.push(from.batch)
  }
  const entry = new URL(`data:text/javascript,${encodeURIComponent(CODE)}`)
  const pool = new ReactorPool('', entry)
  t.after(() => pool.abort())
  const plans = [plan as unknown as ReactorPlan]
  await pool.start(plans, { receive, died: () => {}, replaced: () => {}, printed: () => {}, fatal: assert.fail })
  const deploy = (apis: readonly ApiPlan[], deployed: readonly ApiPlan[], ...removed: readonly string[]) =>
    pool.deploy(LIVE, apis, { removed, deployed } satisfies ApiChanges)
  return { told, deploy }
}

test('a deployment sends changes only', async t => {
  const { told, deploy } = await started(t, [''])
  const [a, b] = [api('/a'), api('/b')]
  assert.deepEqual(await deploy([a, b], [b], '/first'), { refusals: [], late: [] })
  assert.deepEqual(told, ['starts with /first', '[["/first"],["/b "]]'])
})

test('refused changes are sent again with the next deployment, as they are by then', async t => {
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

test('a reactor that dies of a deployment is replaced by one that starts with it', async t => {
  const { told, deploy } = await started(t, ['die', ''])
  assert.deepEqual(await deploy([api('/a')], [api('/a')], '/first'), { refusals: [], late: [] })
  await eventually('the replacement', () => told.length === 2)
  assert.deepEqual(told, ['starts with /first', 'starts with /a'])
})
