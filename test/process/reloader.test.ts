/** One reload by itself, with reactors that do as the test says. */
import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { ApiPlanner } from '../../src/primary/api-planner.ts'
import { ApiProjects } from '../../src/config/api-definitions.ts'
import { EndpointDesk } from '../../src/primary/endpoint-desk.ts'
import { InForce } from '../../src/primary/in-force.ts'
import { openLog } from '../../src/observe/log.ts'
import type { ApiChanges, ApiPlan } from '../../src/plan.ts'
import { globalCors } from '../../src/primary/planning.ts'
import { prepare } from '../../src/primary/preparation.ts'
import { Reloader } from '../../src/primary/reload.ts'
import { LifecycleBook } from '../../src/store/lifecycle-book.ts'
import { makeHome } from '../harness/program.ts'
import { put, putApi } from '../harness/reloading.ts'

interface Outcome {
  readonly refusals: readonly string[]
  readonly late: readonly number[]
}

const WELL: Outcome = { refusals: [], late: [] }
const LISTENERS = ['transport.passthru_https.listener', 'transport.ws.listener', 'transport.wss.listener', 'management']
const OFF = LISTENERS.map(section => `${section}.enable=false`)

async function gateway(t: TestContext, spare = 10) {
  const home = makeHome(9)
  t.after(() => home.remove())
  const lines: Record<string, unknown>[] = []
  const log = openLog('info', { write: text => void lines.push(JSON.parse(text)) })
  const place = { home: home.path, dataDir: home.data, sets: OFF }
  const projects = new ApiProjects(home.path)
  const prepared = await prepare(place, projects)
  assert.deepEqual(prepared.faults, [])
  const planner = new ApiPlanner(1, 1, spare)
  const planned = planner.plan(prepared.apis.apis, prepared.proxies, globalCors(prepared.configuration))
  const inForce = new InForce(prepared, prepared.apis.projects, planned, null, prepared.sequences)
  const desk = new EndpointDesk({ apis: planned.apis, endpoints: planner.endpoints }, log)
  const lifecycles = LifecycleBook.open(home.data)
  const deployed: ApiChanges[] = []
  const pool = {
    outcome: WELL,
    deploy: async (_live: unknown, _apis: readonly ApiPlan[], changes: ApiChanges): Promise<Outcome> => {
      deployed.push(changes)
      return pool.outcome
    },
  }
  const openTls = () => assert.fail()
  const reloader = new Reloader({
    place,
    projects,
    inForce,
    lifecycles,
    planner,
    pool,
    desk,
    log,
    openTls,
    prepared,
    tellAuthority: async () => '',
  })
  return { home, inForce, desk, pool, reloader, deployed, lines }
}

test('what reactors could not take over, or not yet, is in the answer and in the log', async t => {
  const { reloader, pool, lines } = await gateway(t)
  pool.outcome = { refusals: ['no room'], late: [3] }
  const { outcome, failures } = await reloader.run('all')
  const expected = ['no room', 'reactor 3 has not answered, and takes it over when it can']
  assert.deepEqual([outcome, failures], ['in force', expected])
  const told = lines.filter(({ msg }) => msg === 'a reactor has not taken the reload')
  assert.deepEqual(
    told.map(({ level, CAUSE_OF_ERROR }) => [level, CAUSE_OF_ERROR]),
    expected.map(cause => ['error', cause]),
  )
})

test('more endpoints than there is room for are refused, and so many as there is are not', async t => {
  const { reloader, home, desk, deployed } = await gateway(t, 2)
  putApi(home, 'More', 'more', 'http://a', 'http://b', 'http://c')
  const { outcome, faults } = await reloader.run('all')
  assert.deepEqual([outcome, deployed.length, desk.list().length], ['refused', 0, 1])
  assert.match(faults[0]!.remedy, /restart/)
  putApi(home, 'More', 'more', 'http://d', 'http://e')
  for (let i = 0; i < 3; i++) assert.equal((await reloader.run('all')).outcome, 'in force')
  assert.equal(desk.list().length, 3)
})

test('API files alone leave the configuration as it is, faulty or not', async t => {
  const { reloader, home, inForce } = await gateway(t)
  put(home, 'deployment.toml', '[transport.passthru_http]\n"http.socket.timeout" = 5')
  putApi(home, 'New', 'new', 'http://a')
  assert.deepEqual((await reloader.run('apis')).apis.added, ['new/1.0.0'])
  assert.equal(inForce.live.http['http.socket.timeout'], 180_000)
  put(home, 'deployment.toml', 'nonsense')
  putApi(home, 'New', 'new', 'http://b')
  assert.deepEqual((await reloader.run('apis')).apis.changed, ['new/1.0.0'])
  assert.equal((await reloader.run('all')).outcome, 'refused')
})

test('a home that is gone takes nothing with it', async t => {
  const { reloader, home, deployed } = await gateway(t)
  rmSync(home.path, { recursive: true })
  for (const scope of ['apis', 'all'] as const) {
    const { outcome, faults } = await reloader.run(scope)
    assert.deepEqual([outcome, faults.length], ['refused', 1], scope)
  }
  assert.deepEqual(deployed, [])
})

test('what watched files bring is said once, what is asked for each time', async t => {
  const { reloader, home, lines } = await gateway(t)
  put(home, 'apis/Test/api.yaml', 'nonsense: [')
  const said = (): number => lines.splice(0).filter(({ level }) => level === 'error').length
  for (const [scope, times] of [
    ['apis', 1],
    ['apis', 0],
    ['all', 1],
    ['all', 1],
    ['apis', 0],
  ] as const) {
    await reloader.run(scope)
    assert.equal(said(), times, scope)
  }
})

test('at the end nothing is put in force', async t => {
  const { reloader, home, deployed } = await gateway(t)
  putApi(home, 'New', 'new', 'http://a')
  const running = reloader.run('all')
  reloader.end()
  await assert.rejects(running, /is ending/)
  await assert.rejects(reloader.run('apis'), /is ending/)
  assert.deepEqual(deployed, [])
})

/** What the file says at each of the reloads, or the API files alone, and how many warnings each brings. */
const INERT = '[transport.passthru_http]\nworker_pool_size_core = 300\n'
const WARNED: readonly (readonly [what: string, reloads: readonly (readonly ['all' | 'apis', string, number])[]])[] = [
  [
    'the same file',
    [
      ['all', INERT, 1],
      ['all', INERT, 0],
    ],
  ],
  [
    'the same key on another line',
    [
      ['all', INERT, 1],
      ['all', `\n# more\n${INERT}`, 0],
    ],
  ],
  [
    'API files in between',
    [
      ['all', INERT, 1],
      ['apis', INERT, 0],
      ['all', INERT, 0],
    ],
  ],
  [
    'a file in between that cannot be read',
    [
      ['all', INERT, 1],
      ['all', 'nonsense', 0],
      ['all', INERT, 0],
    ],
  ],
  [
    'another key beside it',
    [
      ['all', INERT, 1],
      ['all', `${INERT}[server]\nofset = 1\n`, 1],
    ],
  ],
  [
    'another value',
    [
      ['all', '[transport.passthru_http]\nworker_pool_size_max = 500\n', 2],
      ['all', '[transport.passthru_http]\nworker_pool_size_max = 600\n', 1],
    ],
  ],
  [
    'gone for one reload',
    [
      ['all', INERT, 1],
      ['all', '', 0],
      ['all', INERT, 1],
    ],
  ],
]

for (const [what, reloads] of WARNED) {
  test(`of warnings the log has those that are new since the last reload: ${what}`, async t => {
    const { reloader, home, lines } = await gateway(t)
    for (const [at, [scope, text, warnings]] of reloads.entries()) {
      put(home, 'deployment.toml', text)
      await reloader.run(scope)
      const told = lines.splice(0).filter(({ level }) => level === 'warn')
      assert.equal(told.length, warnings, `reload ${at}: ${JSON.stringify(told)}`)
    }
  })
}
