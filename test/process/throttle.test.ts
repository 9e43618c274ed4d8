/** Counters of a running gateway: listed, reset, in the metrics, and kept over the death of the process. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { after, test } from 'node:test'
import { openProject } from '../harness/open-project.ts'
import { home, leave, sluice, start } from '../harness/operator.ts'
import { ask, type Home, type RunningGateway } from '../harness/program.ts'
import { put } from '../harness/reloading.ts'
import { UnreliableBackend } from '../harness/unreliable-backend.ts'

after(leave)

const POLICY = `policyName: Ten
defaultLimit: { type: REQUESTCOUNTLIMIT, requestCount: { timeUnit: days, unitTime: 1, requestCount: 10 } }
`

let backend: UnreliableBackend | undefined
after(() => backend?.stop())

async function limitedHome(): Promise<Home> {
  backend ??= await UnreliableBackend.start('a')
  const at = home()
  const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: `http://127.0.0.1:${backend.port}` } }
  put(at, 'policies/advanced/Ten.yaml', POLICY)
  put(
    at,
    'apis/Test/api.yaml',
    openProject({ name: 'Test', context: '/t', apiThrottlingPolicy: 'Ten', endpointConfig }),
  )
  return at
}

async function statuses(gateway: RunningGateway, count: number): Promise<string> {
  const all: string[] = []
  for (let i = 0; i < count; i++) all.push((await ask(gateway.port, 'GET', '/t/1.0.0/x')).slice(9, 12))
  return all.join(' ')
}

async function top(at: Home) {
  const { code, out, err } = await sluice(at, 'throttle', 'top', '--json')
  assert.deepEqual([code, err], [0, ''])
  return JSON.parse(out).counters
}

test('throttle top lists a counter with its limit, and reset begins it anew', async () => {
  const gateway = await start(await limitedHome())
  assert.equal(await statuses(gateway, 12), `${'200 '.repeat(10)}429 429`)
  const [row, ...others] = await top(gateway.home)
  assert.deepEqual(others, [])
  assert.deepEqual([row.policy, row.counts, row.used, row.limit, row.refused], ['api:Ten', 'requests', 10, 10, 2])
  const { out } = await sluice(gateway.home, 'throttle', 'top', '--by', 'rate', '--limit', '5')
  assert.match(out, /api:Ten +10 +10 /)
  const metrics = await (await fetch(`http://127.0.0.1:${gateway.healthPort}/metrics`)).text()
  assert.match(metrics, /^sluice_throttle_counters 1$/m)
  assert.match(metrics, /^sluice_throttle_policy_refusals_total\{policy="api:Ten"\} 2$/m)
  assert.deepEqual((await sluice(gateway.home, 'throttle', 'reset', row.key)).code, 0)
  assert.equal(await statuses(gateway, 1), '200')
  const unknown = await sluice(gateway.home, 'throttle', 'reset', 'nobody')
  assert.deepEqual([unknown.code, /there is no counter nobody/.test(unknown.err)], [1, true])
})

for (const [isPersistent, expected] of [
  [true, `${'200 '.repeat(4)}429`],
  [false, '200 200 200 200 200'],
] as const) {
  test(`with enable_persistence = ${isPersistent} six of ten requests before kill -9 leave ${expected}`, async () => {
    const at = await limitedHome()
    const sets = [`apim.throttling.enable_persistence=${isPersistent}`]
    const first = await start(at, sets)
    assert.equal(await statuses(first, 6), '200 200 200 200 200 200')
    // At most a second of counts may be lost.
    await sleep(1000)
    first.program.child.kill('SIGKILL')
    await first.program.exited
    const second = await start(at, sets)
    assert.equal(await statuses(second, 5), expected)
  })
}
