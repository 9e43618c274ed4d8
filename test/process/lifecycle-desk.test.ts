/** Changes of states in the primary, with reactors that do as the test says: what is deployed, and what is answered. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ApiDesk } from '../../src/primary/api-desk.ts'
import { ApiPlanner } from '../../src/primary/api-planner.ts'
import { type ApiDefinition, NO_ENDPOINTS } from '../../src/config/api-definition.ts'
import { ApiProjects } from '../../src/config/api-definitions.ts'
import { DEFAULT_SETTINGS } from '../../src/config/endpoint-settings.ts'
import { Refused } from '../../src/primary/control-socket.ts'
import { EndpointDesk } from '../../src/primary/endpoint-desk.ts'
import { InForce } from '../../src/primary/in-force.ts'
import { openLog } from '../../src/observe/log.ts'
import type { ApiChanges, ApiPlan } from '../../src/plan.ts'
import { globalCors } from '../../src/primary/planning.ts'
import { prepare } from '../../src/primary/preparation.ts'
import { Reloader } from '../../src/primary/reload.ts'
import { ReloadQueue } from '../../src/primary/reload-queue.ts'
import { LifecycleBook, readLifecycles } from '../../src/store/lifecycle-book.ts'
import { PLAIN_DEFINITION } from '../harness/api-plan.ts'
import { makeHome } from '../harness/program.ts'

const DAY_MS = 86_400_000
const OFF = ['passthru_https', 'ws', 'wss'].map(section => `transport.${section}.listener.enable=false`)

function api(name: string, version = '1.0.0', context = `/${name.toLowerCase()}`): ApiDefinition {
  const endpoints = { ...NO_ENDPOINTS, endpoints: [{ url: 'http://127.0.0.1:9', settings: DEFAULT_SETTINGS }] }
  return { ...PLAIN_DEFINITION, name, context, version, isDefaultVersion: false, endpoints }
}

const HOSTED = ['a.example', 'b.example'].map(host => ({ ...api('Hosted', '1'), hosts: [host] }))
const TWINS = [api('Twin', '1', '/one'), api('Twin', '1', '/two')]
const SHOP = [api('Orders'), api('Orders', '2.0.0'), api('Menu'), ...HOSTED, ...TWINS]

async function primary(t: TestContext, apis = SHOP, sets: readonly string[] = []) {
  const home = makeHome(9)
  t.after(() => home.remove())
  mkdirSync(home.data)
  const lines: Record<string, unknown>[] = []
  const log = openLog('info', { write: text => void lines.push(JSON.parse(text)) })
  const place = { home: home.path, dataDir: home.data, sets: [...OFF, ...sets] }
  const projects = new ApiProjects(home.path)
  const prepared = await prepare(place, projects)
  assert.deepEqual(prepared.faults, [])
  const planner = new ApiPlanner(1, apis.length)
  const planned = planner.plan(apis, prepared.proxies, globalCors(prepared.configuration))
  const inForce = new InForce(prepared, prepared.apis.projects, planned, null, prepared.sequences)
  const lifecycles = LifecycleBook.open(home.data)
  const endpoints = new EndpointDesk({ apis: planned.apis, endpoints: planner.endpoints }, log)
  const deployed: ApiChanges[] = []
  const pool = {
    outcome: { refusals: [] as readonly string[], late: [] as readonly number[] },
    deploy: async (_live: unknown, _apis: readonly ApiPlan[], changes: ApiChanges) => {
      deployed.push(changes)
      return pool.outcome
    },
  }
  const openTls = () => assert.fail()
  const shared = { place, projects, inForce, lifecycles, planner, pool, log, openTls, prepared }
  const parts = { ...shared, desk: endpoints, tellAuthority: async () => '' }
  const reloader = new Reloader(parts)
  const reloads = new ReloadQueue(scope => reloader.run(scope))
  const desk = new ApiDesk({ inForce, lifecycles, reloads, reloader, endpoints, log })
  const change = (name: unknown, action: unknown, sunsetMs?: unknown) => desk.change({ name, action, sunsetMs })
  return { home, desk, change, deployed, pool, lines, reloader, file: join(home.data, 'lifecycle.json') }
}

test('of 10,000 APIs only the one that is changed is deployed, and no project is read', async t => {
  const many = Array.from({ length: 10_000 }, (_, i) => api(`Api${i}`))
  const { change, deployed, desk, home } = await primary(t, many)
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
    desk.list().apis.flatMap(({ name, state: its }) => (its === 'PUBLISHED' ? [] : [name])),
    ['Api7777'],
  )
})

test('a state in which requests find the same deploys nothing', async t => {
  const { change, deployed, desk } = await primary(t)
  await change('Menu', 'Re-Publish')
  assert.deepEqual(deployed, [])
  assert.notEqual((await desk.show('Menu')).since, '')
})

const MEANT: readonly (readonly [word: string, path: string | RegExp])[] = [
  ['Menu', '/menu/1.0.0'],
  ['Menu:1.0.0', '/menu/1.0.0'],
  ['/menu/1.0.0', '/menu/1.0.0'],
  ['menu/1.0.0', '/menu/1.0.0'],
  ['Orders:2.0.0', '/orders/2.0.0'],
  ['/two/1', '/two/1'],
  ['b.example/hosted/1', '/hosted/1'],
  ['/hosted/1', /^"\/hosted\/1" may be Hosted:1 \(a\.example\/hosted\/1\), Hosted:1 \(b\.example\/hosted\/1\)$/],
  ['Orders', /^"Orders" may be Orders:1\.0\.0 \(\/orders\/1\.0\.0\), Orders:2\.0\.0 \(\/orders\/2\.0\.0\)$/],
  ['Twin:1', /^"Twin:1" may be Twin:1 \(\/one\/1\), Twin:1 \(\/two\/1\)$/],
  ['Ordes', /^there is no API "Ordes"; did you mean Orders:1\.0\.0 \(\/orders\/1\.0\.0\), Orders:2\.0\.0 /],
  ['ord', /^there is no API "ord"; did you mean Orders:1/],
  ['Menu:2.0.0', /^there is no API "Menu:2\.0\.0"; did you mean Menu:1\.0\.0 /],
  ['menu', /^there is no API "menu"; did you mean Menu:1\.0\.0 /],
  ['zzzzzz', /^there is no API "zzzzzz"; there is Orders:1\.0\.0 .*, Twin:1 \(\/two\/1\)$/],
  ['\u001b[2J', /^there is no API "\\u001b\[2J"; /],
  ['', /^expected the name of an API$/],
]

for (const [word, wanted] of MEANT) {
  test(`"${JSON.stringify(word).slice(1, -1)}" is ${wanted}`, async t => {
    const { desk } = await primary(t)
    if (typeof wanted === 'string') assert.equal((await desk.show(word)).paths[0], wanted)
    else await assert.rejects(desk.show(word), error => error instanceof Refused && wanted.test(error.message))
  })
}

test('of APIs with the same path under different hosts only the one that is meant is changed', async t => {
  const { change, desk } = await primary(t)
  await change('b.example/hosted/1', 'Block')
  const states = desk.list().apis.flatMap(({ name, hosts, state }) => (name === 'Hosted' ? [[hosts[0], state]] : []))
  assert.deepEqual(states, [
    ['a.example', 'PUBLISHED'],
    ['b.example', 'BLOCKED'],
  ])
})

test('of many APIs some are named', async t => {
  const { desk } = await primary(
    t,
    Array.from({ length: 30 }, (_, i) => api(`Api${i}`)),
  )
  await assert.rejects(desk.show('zzzzzz'), /Api19:1\.0\.0 \(\/api19\/1\.0\.0\) and 10 more$/)
})

test('where there is no API, that is said', async t => {
  const { desk } = await primary(t, [])
  await assert.rejects(desk.show('x'), /^Refused: there is no API "x", and no other one$/)
})

test('a change that is not in the table is refused with what is', async t => {
  const { change, deployed, file } = await primary(t)
  await assert.rejects(
    change('Menu', 'Retire'),
    /^Refused: Menu:1\.0\.0 is PUBLISHED: it cannot become RETIRED from there; what can be done is Block, Deprecate, /,
  )
  await change('Menu', 'Deprecate')
  await change('Menu', 'RETIRED')
  await assert.rejects(change('Menu', 'publish'), /Menu:1\.0\.0 is RETIRED: nothing can be done to it any more; /)
  assert.equal(deployed.length, 2)
  assert.match(readFileSync(file, 'utf8'), /"state":"RETIRED"/)
})

const FAR_MS = Date.UTC(2100, 0, 1)
const WRONG: readonly (readonly [action: unknown, sunsetMs: unknown, said: RegExp])[] = [
  ['unblock', undefined, /there is no action "unblock"; there is Publish, /],
  [7, undefined, /there is no action of that kind/],
  ['Block', FAR_MS, /only deprecation has a sunset/],
  ['Deprecate', 'soon', /a sunset is a moment/],
  ['Deprecate', 1.5, /a sunset is a moment/],
  ['Deprecate', 1e15, /a sunset is a moment before the year 10000/],
  ['Deprecate', 0, /a sunset lies ahead, and 1970-01-01T00:00:00\.000Z does not/],
]

for (const [action, sunsetMs, said] of WRONG) {
  test(`${action} with the sunset ${sunsetMs} is refused`, async t => {
    const { change, deployed } = await primary(t)
    await assert.rejects(
      change('Menu', action, sunsetMs),
      error => error instanceof Refused && said.test(error.message),
    )
    assert.deepEqual(deployed, [])
  })
}

test('a sunset is the one that is asked for, or as far away as configured, or none', async t => {
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

test('where it cannot be written nothing has changed, and the answer says why', async t => {
  const { change, deployed, desk, file } = await primary(t)
  mkdirSync(file)
  await assert.rejects(change('Menu', 'Block'), /^Refused: \S*lifecycle\.json cannot be written \(E\w+\): nothing has/)
  assert.deepEqual([deployed, (await desk.show('Menu')).state], [[], 'PUBLISHED'])
  rmdirSync(file)
  assert.equal((await change('Menu', 'Block')).state, 'BLOCKED')
})

test('a reactor that is late or cannot build it is in the answer and in the log; the others have it', async t => {
  const { change, pool, lines, home } = await primary(t)
  pool.outcome = { refusals: ['no room'], late: [3] }
  const { state, failures } = await change('Menu', 'Block')
  const late = 'reactor 3 has not answered, and takes it over when it can'
  assert.deepEqual([state, failures], ['BLOCKED', ['no room', late]])
  const told = lines.filter(({ msg }) => msg === 'a reactor has not taken the lifecycle change')
  assert.deepEqual(
    told.map(({ level, API, CAUSE_OF_ERROR }) => [level, API, CAUSE_OF_ERROR]),
    [
      ['error', 'Menu:1.0.0', 'no room'],
      ['error', 'Menu:1.0.0', late],
    ],
  )
  assert.equal(readLifecycles(home.data).records.get('/menu/1.0.0')?.state, 'BLOCKED')
})

test('of changes that come together each begins where the one before has ended', async t => {
  const { change } = await primary(t)
  const words = ['Block', 'Block', 'Publish', 'Deprecate', 'Retire', 'Publish']
  const ended = await Promise.allSettled(words.map(word => change('Menu', word)))
  assert.deepEqual(
    ended.map(it => (it.status === 'fulfilled' ? it.value.state : String(it.reason).slice(9, 33))),
    ['BLOCKED', 'Menu:1.0.0 is BLOCKED: i', 'PUBLISHED', 'DEPRECATED', 'RETIRED', 'Menu:1.0.0 is RETIRED: n'],
  )
})

test('while the gateway ends nothing is changed any more', async t => {
  const { change, reloader, deployed } = await primary(t)
  reloader.end()
  await assert.rejects(change('Menu', 'Block'), /the node is ending/)
  assert.deepEqual(deployed, [])
})

test('who changed what is in the log', async t => {
  const { change, lines } = await primary(t)
  await change('Menu', 'Deprecate', FAR_MS)
  const { level, API, ADDRESS, FROM, TO, SUNSET } = lines.find(({ msg }) => msg === 'lifecycle changed')!
  const expected = ['info', 'Menu:1.0.0', '/menu/1.0.0', 'PUBLISHED', 'DEPRECATED', '2100-01-01T00:00:00.000Z']
  assert.deepEqual([level, API, ADDRESS, FROM, TO, SUNSET], expected)
})
