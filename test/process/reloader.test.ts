/** One reload at a time, with scripted reactors: report, log and refusals. */
import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { ApiPlanner } from '../../src/plan/api-planning.ts'
import { ApiProjects } from '../../src/apis/api-projects.ts'
import { EndpointService } from '../../src/primary/endpoint-service.ts'
import { ActiveState } from '../../src/primary/active-state.ts'
import { openLog } from '../../src/observe/log.ts'
import type { ApiChanges, ApiPlan } from '../../src/plan/reactor-plan.ts'
import { globalCors } from '../../src/plan/reactor-planning.ts'
import { loadHome } from '../../src/primary/home-loading.ts'
import { Reloader } from '../../src/primary/reloader.ts'
import { LifecycleStore } from '../../src/apis/lifecycle-file.ts'
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
  const home = makeHome(9, '', 'new')
  t.after(() => home.remove())
  const lines: Record<string, unknown>[] = []
  const log = openLog('info', { write: text => void lines.push(JSON.parse(text)) })
  const installation = { home: home.path, dataDir: home.data, sets: OFF }
  const projects = new ApiProjects(home.path)
  const loaded = await loadHome(installation, projects)
  assert.deepEqual(loaded.errors, [])
  const planner = new ApiPlanner(1, 1, spare)
  const planned = planner.plan({
    definitions: loaded.apis.apis,
    proxies: loaded.proxies,
    cors: globalCors(loaded.configuration),
    allowedScopes: [],
  })
  const active = new ActiveState(loaded, loaded.apis.projects, planned, null, loaded.sequences)
  const endpoints = new EndpointService({ apis: planned.apis, endpoints: planner.endpoints }, log)
  const lifecycles = LifecycleStore.open(home.data)
  const deployed: ApiChanges[] = []
  const reactors = {
    outcome: WELL,
    returnHandlers: () => [],
    deploy: async (_live: unknown, _apis: readonly ApiPlan[], changes: ApiChanges): Promise<Outcome> => {
      deployed.push(changes)
      return reactors.outcome
    },
  }
  const openTls = () => assert.fail()
  const reloader = new Reloader({
    installation,
    projects,
    active,
    lifecycles,
    planner,
    reactors,
    endpoints,
    log,
    openTls,
    loaded,
    reloadControl: async () => '',
  })
  return { home, active, endpoints, reactors, reloader, deployed, lines }
}

test('refusals of reactors and late reactors are in the report and in the log', async t => {
  const { reloader, reactors, lines } = await gateway(t)
  reactors.outcome = { refusals: ['no room'], late: [3] }
  const { outcome, failures } = await reloader.run('all')
  const expected = ['no room', 'reactor 3 has not responded; it applies the change when it can']
  assert.deepEqual([outcome, failures], ['applied', expected])
  const told = lines.filter(({ msg }) => msg === 'a thread has not applied the reload')
  assert.deepEqual(
    told.map(({ level, CAUSE_OF_ERROR }) => [level, CAUSE_OF_ERROR]),
    expected.map(cause => ['error', cause]),
  )
})

test('a reload with more endpoints than free slots is refused', async t => {
  const { reloader, home, endpoints, deployed } = await gateway(t, 2)
  putApi(home, 'More', 'more', 'http://a', 'http://b', 'http://c')
  const { outcome, errors } = await reloader.run('all')
  assert.deepEqual([outcome, deployed.length, endpoints.list().length], ['refused', 0, 1])
  assert.match(errors[0]!.hint, /restart/)
  putApi(home, 'More', 'more', 'http://d', 'http://e')
  for (let i = 0; i < 3; i++) assert.equal((await reloader.run('all')).outcome, 'applied')
  assert.equal(endpoints.list().length, 3)
})

test('a reload of API files ignores the configuration file, with errors or without', async t => {
  const { reloader, home, active } = await gateway(t)
  put(home, 'deployment.toml', '[transport.passthru_http]\n"http.socket.timeout" = 5')
  putApi(home, 'New', 'new', 'http://a')
  assert.deepEqual((await reloader.run('apis')).apis.added, ['new/1.0.0'])
  assert.equal(active.live.http['http.socket.timeout'], 180_000)
  put(home, 'deployment.toml', 'nonsense')
  putApi(home, 'New', 'new', 'http://b')
  assert.deepEqual((await reloader.run('apis')).apis.changed, ['new/1.0.0'])
  assert.equal((await reloader.run('all')).outcome, 'refused')
})

test('a reload changes the settings of blocking calls, and no key that takes a restart', async t => {
  const { reloader, home, active } = await gateway(t)
  const blocking = ['[transport.blocking_https]', 'sender.parameters.SO_TIMEOUT = 5']
  const keys = [...blocking, 'sender.parameters.OmitSOAP12Action = true', '[mediation]', 'handlers.timeout = 5']
  put(home, 'deployment.toml', keys.join('\n'))
  assert.equal((await reloader.run('all')).outcome, 'applied')
  assert.deepEqual(active.live.blockingCalls, {
    plain: { timeoutMs: 60_000, omitsSoap12Action: false },
    secured: { timeoutMs: 5, omitsSoap12Action: true },
  })
  assert.equal(active.configured.configuration.mediation['handlers.timeout'], 5000)
})

test('a home that is gone refuses a reload and changes nothing', async t => {
  const { reloader, home, deployed } = await gateway(t)
  rmSync(home.path, { recursive: true })
  for (const scope of ['apis', 'all'] as const) {
    const { outcome, errors } = await reloader.run(scope)
    assert.deepEqual([outcome, errors.length], ['refused', 1], scope)
  }
  assert.deepEqual(deployed, [])
})

test('errors of watched files are logged once, those of a requested reload each time', async t => {
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

test('a reload that is running when the node ends applies nothing', async t => {
  const { reloader, home, deployed } = await gateway(t)
  putApi(home, 'New', 'new', 'http://a')
  const running = reloader.run('all')
  reloader.end()
  await assert.rejects(running, /is ending/)
  await assert.rejects(reloader.run('apis'), /is ending/)
  assert.deepEqual(deployed, [])
})

/** [case, reloads]; a reload with its scope, the configuration file, and the number of warnings that it logs. */
const INERT = '[transport.blocking_http]\n"sender.parameters.defaultMaxConnectionsPerHost" = 300\n'
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
    'a reload of API files in between',
    [
      ['all', INERT, 1],
      ['apis', INERT, 0],
      ['all', INERT, 0],
    ],
  ],
  [
    'an unreadable file in between',
    [
      ['all', INERT, 1],
      ['all', 'nonsense', 0],
      ['all', INERT, 0],
    ],
  ],
  [
    'another unknown key',
    [
      ['all', INERT, 1],
      ['all', `${INERT}[server]\nofset = 1\n`, 1],
    ],
  ],
  [
    'another value',
    [
      ['all', '[transport.passthru_http]\nworker_pool_size_max = 500\n', 1],
      ['all', '[transport.passthru_http]\nworker_pool_size_max = 600\n', 1],
    ],
  ],
  [
    'a key that is absent for one reload',
    [
      ['all', INERT, 1],
      ['all', '', 0],
      ['all', INERT, 1],
    ],
  ],
]

for (const [what, reloads] of WARNED) {
  test(`the log has only the warnings that are new since the last reload: ${what}`, async t => {
    const { reloader, home, lines } = await gateway(t)
    for (const [at, [scope, text, warnings]] of reloads.entries()) {
      put(home, 'deployment.toml', text)
      await reloader.run(scope)
      const told = lines.splice(0).filter(({ level }) => level === 'warn')
      assert.equal(told.length, warnings, `reload ${at}: ${JSON.stringify(told)}`)
    }
  })
}
