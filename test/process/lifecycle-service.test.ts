/** Lifecycle changes in the primary, with scripted reactors: what is deployed, saved, logged and reported. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ApiService } from '../../src/primary/api-service.ts'
import { ApiPlanner } from '../../src/plan/api-planning.ts'
import { type ApiDefinition, DEFAULT_ENDPOINT_SETTINGS, NO_ENDPOINTS } from '../../src/apis/api-definition.ts'
import { ApiProjects } from '../../src/apis/api-projects.ts'
import { CommandRefused } from '../../src/primary/control-socket.ts'
import { EndpointService } from '../../src/primary/endpoint-service.ts'
import { ActiveState } from '../../src/primary/active-state.ts'
import { openLog } from '../../src/observe/log.ts'
import type { ApiChanges, ApiPlan } from '../../src/plan/reactor-plan.ts'
import { globalCors } from '../../src/plan/reactor-planning.ts'
import { loadHome } from '../../src/primary/home-loading.ts'
import { Reloader } from '../../src/primary/reloader.ts'
import { ReloadQueue } from '../../src/primary/reload-queue.ts'
import { LifecycleStore, readLifecycleFile } from '../../src/apis/lifecycle-file.ts'
import { PLAIN_DEFINITION } from '../harness/api-plan.ts'
import { makeHome } from '../harness/program.ts'

const DAY_MS = 86_400_000
const OFF = ['passthru_https', 'ws', 'wss'].map(section => `transport.${section}.listener.enable=false`)

function api(name: string, version = '1.0.0', context = `/${name.toLowerCase()}`): ApiDefinition {
  const endpoints = { ...NO_ENDPOINTS, endpoints: [{ url: 'http://127.0.0.1:9', settings: DEFAULT_ENDPOINT_SETTINGS }] }
  return { ...PLAIN_DEFINITION, name, context, version, isDefaultVersion: false, endpoints }
}

const HOSTED = ['a.example', 'b.example'].map(host => ({ ...api('Hosted', '1'), hosts: [host] }))
const TWINS = [api('Twin', '1', '/one'), api('Twin', '1', '/two')]
const SHOP = [api('Orders'), api('Orders', '2.0.0'), api('Menu'), ...HOSTED, ...TWINS]

async function primary(t: TestContext, apis = SHOP, sets: readonly string[] = []) {
  const home = makeHome(9, '', 'new')
  t.after(() => home.remove())
  mkdirSync(home.data)
  const lines: Record<string, unknown>[] = []
  const log = openLog('info', { write: text => void lines.push(JSON.parse(text)) })
  const installation = { home: home.path, dataDir: home.data, sets: [...OFF, ...sets] }
  const projects = new ApiProjects(home.path)
  const loaded = await loadHome(installation, projects)
  assert.deepEqual(loaded.errors, [])
  const planner = new ApiPlanner(1, apis.length)
  const planned = planner.plan({
    definitions: apis,
    proxies: loaded.proxies,
    cors: globalCors(loaded.configuration),
    allowedScopes: [],
  })
  const active = new ActiveState(loaded, loaded.apis.projects, planned, null, loaded.sequences)
  const lifecycles = LifecycleStore.open(home.data)
  const endpoints = new EndpointService({ apis: planned.apis, endpoints: planner.endpoints }, log)
  const deployed: ApiChanges[] = []
  const reactors = {
    outcome: { refusals: [] as readonly string[], late: [] as readonly number[] },
    returnHandlers: () => [],
    deploy: async (_live: unknown, _apis: readonly ApiPlan[], changes: ApiChanges) => {
      deployed.push(changes)
      return reactors.outcome
    },
  }
  const openTls = () => assert.fail()
  const shared = { installation, projects, active, lifecycles, planner, reactors, log, openTls, loaded }
  const reloader = new Reloader({ ...shared, endpoints, reloadControl: async () => '' })
  const reloads = new ReloadQueue(scope => reloader.run(scope))
  const apiService = new ApiService({ active, lifecycles, reloads, reloader, endpoints, log })
  const change = (name: unknown, action: unknown, sunsetMs?: unknown) => apiService.change({ name, action, sunsetMs })
  return { home, apiService, change, deployed, reactors, lines, reloader, file: join(home.data, 'lifecycle.json') }
}

test('of 10,000 APIs only the changed one is deployed, and no project is read', async t => {
  const many = Array.from({ length: 10_000 }, (_, i) => api(`Api${i}`))
  const { change, deployed, apiService, home } = await primary(t, many)
  home.remove()
  mkdirSync(home.data, { recursive: true })
  const { from, state, failures } = await change('Api7777', 'Block')
  assert.deepEqual([from, state, failures], ['PUBLISHED', 'BLOCKED', []])
  assert.deepEqual(
    deployed.map(({ removed, deployed: some }) => [removed, some.map(({ paths }) => paths[0])]),
    [[[], ['/api7777/1.0.0']]],
  )
  assert.equal(deployed[0]!.deployed[0]!.lifecycle.state, 'BLOCKED')
  assert.deepEqual(
    apiService.list().apis.flatMap(({ name, state: its }) => (its === 'PUBLISHED' ? [] : [name])),
    ['Api7777'],
  )
})

test('a change without effect on requests deploys nothing', async t => {
  const { change, deployed, apiService } = await primary(t)
  await change('Menu', 'Re-Publish')
  assert.deepEqual(deployed, [])
  assert.notEqual((await apiService.show('Menu')).since, '')
})

const MEANT: readonly (readonly [word: string, path: string | RegExp])[] = [
  ['Menu', '/menu/1.0.0'],
  ['Menu:1.0.0', '/menu/1.0.0'],
  ['/menu/1.0.0', '/menu/1.0.0'],
  ['menu/1.0.0', '/menu/1.0.0'],
  ['Orders:2.0.0', '/orders/2.0.0'],
  ['/two/1', '/two/1'],
  ['b.example/hosted/1', '/hosted/1'],
  ['/hosted/1', /^"\/hosted\/1" is ambiguous: Hosted:1 \(a\.example\/hosted\/1\), Hosted:1 \(b\.example\/hosted\/1\)$/],
  ['Orders', /^"Orders" is ambiguous: Orders:1\.0\.0 \(\/orders\/1\.0\.0\), Orders:2\.0\.0 \(\/orders\/2\.0\.0\)$/],
  ['Twin:1', /^"Twin:1" is ambiguous: Twin:1 \(\/one\/1\), Twin:1 \(\/two\/1\)$/],
  ['Ordes', /^there is no API "Ordes"; did you mean Orders:1\.0\.0 \(\/orders\/1\.0\.0\), Orders:2\.0\.0 /],
  ['ord', /^there is no API "ord"; did you mean Orders:1/],
  ['Menu:2.0.0', /^there is no API "Menu:2\.0\.0"; did you mean Menu:1\.0\.0 /],
  ['menu', /^there is no API "menu"; did you mean Menu:1\.0\.0 /],
  ['zzzzzz', /^there is no API "zzzzzz"; the APIs are Orders:1\.0\.0 .*, Twin:1 \(\/two\/1\)$/],
  ['\u001b[2J', /^there is no API "\\u001b\[2J"; /],
  ['', /^expected the name of an API$/],
]

for (const [word, wanted] of MEANT) {
  test(`"${JSON.stringify(word).slice(1, -1)}" is ${wanted}`, async t => {
    const { apiService } = await primary(t)
    if (typeof wanted === 'string') assert.equal((await apiService.show(word)).paths[0], wanted)
    else
      await assert.rejects(
        apiService.show(word),
        error => error instanceof CommandRefused && wanted.test(error.message),
      )
  })
}

test('of APIs with one path on different hosts only the named one is changed', async t => {
  const { change, apiService } = await primary(t)
  await change('b.example/hosted/1', 'Block')
  const states = apiService
    .list()
    .apis.flatMap(({ name, hosts, state }) => (name === 'Hosted' ? [[hosts[0], state]] : []))
  assert.deepEqual(states, [
    ['a.example', 'PUBLISHED'],
    ['b.example', 'BLOCKED'],
  ])
})

test('an error names some of many APIs', async t => {
  const { apiService } = await primary(
    t,
    Array.from({ length: 30 }, (_, i) => api(`Api${i}`)),
  )
  await assert.rejects(apiService.show('zzzzzz'), /Api19:1\.0\.0 \(\/api19\/1\.0\.0\) and 10 more$/)
})

test('an error says that there is no API at all', async t => {
  const { apiService } = await primary(t, [])
  await assert.rejects(apiService.show('x'), /^CommandRefused: there is no API "x"; this node has none$/)
})

test('a transition that is not in the table is refused with the possible actions', async t => {
  const { change, deployed, file } = await primary(t)
  await assert.rejects(
    change('Menu', 'Retire'),
    /^CommandRefused: Menu:1\.0\.0 is PUBLISHED and cannot become RETIRED; possible actions: Block, Deprecate, /,
  )
  await change('Menu', 'Deprecate')
  await change('Menu', 'RETIRED')
  await assert.rejects(change('Menu', 'publish'), /Menu:1\.0\.0 is RETIRED: no action is possible; /)
  assert.equal(deployed.length, 2)
  assert.match(readFileSync(file, 'utf8'), /"state":"RETIRED"/)
})

const FAR_MS = Date.UTC(2100, 0, 1)
const WRONG: readonly (readonly [action: unknown, sunsetMs: unknown, said: RegExp])[] = [
  ['unblock', undefined, /unknown action "unblock"; the actions are Publish, /],
  [7, undefined, /unknown action of that kind/],
  ['Block', FAR_MS, /only Deprecate takes a sunset/],
  ['Deprecate', 'soon', /a sunset is a time/],
  ['Deprecate', 1.5, /a sunset is a time/],
  ['Deprecate', 1e15, /a sunset is a time before the year 10000/],
  ['Deprecate', 0, /a sunset must be in the future, and 1970-01-01T00:00:00\.000Z is not/],
]

for (const [action, sunsetMs, said] of WRONG) {
  test(`${action} with the sunset ${sunsetMs} is refused`, async t => {
    const { change, deployed } = await primary(t)
    await assert.rejects(
      change('Menu', action, sunsetMs),
      error => error instanceof CommandRefused && said.test(error.message),
    )
    assert.deepEqual(deployed, [])
  })
}

test('the sunset is the requested one, or the configured one, or none', async t => {
  const asked = await primary(t)
  assert.equal((await asked.change('Menu', 'Deprecate', FAR_MS)).sunset, '2100-01-01T00:00:00.000Z')
  const after = async (sets: readonly string[]): Promise<number> => {
    const { change } = await primary(t, SHOP, sets)
    const { since, sunset } = await change('Menu', 'Deprecate')
    return sunset === '' ? 0 : (Date.parse(sunset) - Date.parse(since)) / DAY_MS
  }
  assert.equal(await after([]), 180)
  assert.equal(await after(['apim.lifecycle.sunset_after=2d']), 2)
  assert.equal(await after(['apim.lifecycle.sunset_after=0']), 0)
})

test('where the file cannot be written nothing changes, and the error says why', async t => {
  const { change, deployed, apiService, file } = await primary(t)
  mkdirSync(file)
  await assert.rejects(
    change('Menu', 'Block'),
    /^CommandRefused: \S*lifecycle\.json cannot be written \(E\w+\): nothing has/,
  )
  assert.deepEqual([deployed, (await apiService.show('Menu')).state], [[], 'PUBLISHED'])
  rmdirSync(file)
  assert.equal((await change('Menu', 'Block')).state, 'BLOCKED')
})

test('a reactor that is late or refuses the change is in the report and in the log', async t => {
  const { change, reactors, lines, home } = await primary(t)
  reactors.outcome = { refusals: ['no room'], late: [3] }
  const { state, failures } = await change('Menu', 'Block')
  const late = 'reactor 3 has not responded; it applies the change when it can'
  assert.deepEqual([state, failures], ['BLOCKED', ['no room', late]])
  const told = lines.filter(({ msg }) => msg === 'a thread has not applied the lifecycle change')
  assert.deepEqual(
    told.map(({ level, API, CAUSE_OF_ERROR }) => [level, API, CAUSE_OF_ERROR]),
    [
      ['error', 'Menu:1.0.0', 'no room'],
      ['error', 'Menu:1.0.0', late],
    ],
  )
  assert.equal(readLifecycleFile(home.data).records.get('/menu/1.0.0')?.state, 'BLOCKED')
})

test('concurrent changes run one after the other', async t => {
  const { change } = await primary(t)
  const words = ['Block', 'Block', 'Publish', 'Deprecate', 'Retire', 'Publish']
  const ended = await Promise.allSettled(words.map(word => change('Menu', word)))
  assert.deepEqual(
    ended.map(it => (it.status === 'fulfilled' ? it.value.state : String(it.reason).slice(16, 41))),
    ['BLOCKED', 'Menu:1.0.0 is BLOCKED and', 'PUBLISHED', 'DEPRECATED', 'RETIRED', 'Menu:1.0.0 is RETIRED: no'],
  )
})

test('a node that ends changes nothing', async t => {
  const { change, reloader, deployed } = await primary(t)
  reloader.end()
  await assert.rejects(change('Menu', 'Block'), /the node is ending/)
  assert.deepEqual(deployed, [])
})

test('a lifecycle change is in the log', async t => {
  const { change, lines } = await primary(t)
  await change('Menu', 'Deprecate', FAR_MS)
  const { level, API, ADDRESS, FROM, TO, SUNSET } = lines.find(({ msg }) => msg === 'lifecycle changed')!
  const expected = ['info', 'Menu:1.0.0', '/menu/1.0.0', 'PUBLISHED', 'DEPRECATED', '2100-01-01T00:00:00.000Z']
  assert.deepEqual([level, API, ADDRESS, FROM, TO, SUNSET], expected)
})
