/** Lifecycle changes of operators: a running gateway with two reactors, its command line, and its data folder. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { ApiDetails, LifecycleReport } from '../../src/primary/api-service.ts'
import { sendCommand } from '../../src/cli/control-client.ts'
import { takeResponse } from '../harness/responses.ts'
import { backend, begin, dial, home, leave, listed, sluice, start, startTwo } from '../harness/operator.ts'
import type { Peer } from '../harness/peers.ts'
import { ask, type Home, launch, type RunningGateway } from '../harness/program.ts'
import { putApi, reload, removeApi } from '../harness/reloading.ts'

after(leave)

/** A gateway with two reactors; each of its tests leaves `Test` published. */
const two = await startTwo({ SLUICE_TEST_HOOKS: '1' })

const CLIENTS = 24
const GET = 'GET /t/ HTTP/1.1\r\nHost: a\r\n\r\n'
const BACKEND = `http://127.0.0.1:${backend.port}`

function change({ home: { data } }: RunningGateway, name: string, action: string): Promise<LifecycleReport> {
  return sendCommand<LifecycleReport>(data, { command: 'lifecycle', name, action })
}

async function stateOf({ home: { data } }: RunningGateway, name = 'Test'): Promise<string> {
  return (await sendCommand<ApiDetails>(data, { command: 'api', name })).state
}

async function asks(client: Peer, request = GET): Promise<number> {
  client.send(request)
  return (await takeResponse(client)).status
}

async function statusOf({ port }: RunningGateway, path = '/t/'): Promise<number> {
  return Number((await ask(port, 'GET', path)).slice(9, 12))
}

function fileOf({ data }: Home): string {
  return join(data, 'lifecycle.json')
}

/** Connections over both reactors: the kernel spreads them by a hash of their ports. */
async function dialMany(): Promise<readonly Peer[]> {
  while (many.length < CLIENTS) many.push(await dial(two))
  for (const client of many) assert.equal(await asks(client), 200)
  const { reactors } = await listed(two.home)
  assert.ok(reactors.length === 2 && reactors.every(({ counts }) => counts.source!.REQUEST_READY! > 0))
  return many
}
const many: Peer[] = []

test('a change applies to the next request on every connection of every reactor', async () => {
  await dialMany()
  const blocked = await sluice(two.home, 'api', 'lifecycle', 'Test', 'block')
  assert.deepEqual(blocked, { code: 0, out: 'applied  Test:1.0.0: PUBLISHED -> BLOCKED\n', err: '' })
  for (const client of many) client.send(GET)
  for (const client of many) {
    const { status, body } = await takeResponse(client)
    assert.equal(status, 503)
    assert.match(body, /"code":700700,/)
  }
  const published = await sluice(two.home, 'api', 'lifecycle', 'Test:1.0.0', 'Publish', '--json')
  assert.equal(JSON.parse(published.out).state, 'PUBLISHED')
  for (const client of many) client.send(GET)
  for (const client of many) assert.equal((await takeResponse(client)).status, 200)
})

test('of changes in quick succession each applies when it is reported', async () => {
  await dialMany()
  for (let i = 0; i < 50; i++) {
    const action = i % 2 === 0 ? 'Block' : 'Re-Publish'
    assert.deepEqual((await change(two, 'Test', action)).failures, [])
    const [one, other] = [many[i % CLIENTS]!, many[(i + CLIENTS / 2) % CLIENTS]!]
    assert.deepEqual([await asks(one), await asks(other)], i % 2 === 0 ? [503, 503] : [200, 200])
  }
})

const STATUSES: readonly (readonly [actions: readonly string[], status: number])[] = [
  [[], 200],
  [['Block'], 503],
  [['Block', 'Re-Publish'], 200],
  [['Deploy as a Prototype'], 200],
  [['Demote to Created'], 404],
  [['Demote to Created', 'Publish'], 200],
  [['Deprecate'], 200],
  [['Deprecate', 'Retire'], 404],
]

test('requests find the state of an API, with Deprecation and Sunset, also after a restart', async () => {
  const at = home()
  for (const [i, [actions]] of STATUSES.entries()) {
    putApi(at, `Api${i}`, `a${i}`, BACKEND)
    assert.ok(actions.length < 3)
  }
  const first = await start(at)
  for (const [i, [actions]] of STATUSES.entries()) for (const word of actions) await change(first, `Api${i}`, word)
  const found = async (gateway: RunningGateway): Promise<readonly number[]> => {
    return Promise.all(STATUSES.map((_, i) => statusOf(gateway, `/a${i}/1.0.0/`)))
  }
  const wanted = STATUSES.map(([, status]) => status)
  assert.deepEqual(await found(first), wanted)
  const words = ['api', 'lifecycle', 'Test', 'deprecate', '--sunset', '2099-06-30', '--json']
  const { since } = JSON.parse((await sluice(at, ...words)).out) as LifecycleReport
  const fields = `Deprecation: @${Math.floor(Date.parse(since) / 1000)}\r\nSunset: Tue, 30 Jun 2099 00:00:00 GMT\r\n`
  assert.ok((await ask(first.port, 'GET', '/t/')).includes(fields))
  await first.program.kill()
  const second = await start(at)
  assert.deepEqual(await found(second), wanted)
  assert.ok((await ask(second.port, 'GET', '/t/')).includes(fields))
  await second.program.kill()
})

test('a change that was reported survives SIGKILL, and its file is whole', async () => {
  const at = home()
  let gateway = await start(at)
  for (const laterMs of [0, 10]) {
    let answered = await stateOf(gateway)
    let asked = answered
    const end = setTimeout(() => gateway.program.signal('SIGKILL'), laterMs)
    try {
      for (;;) {
        asked = answered === 'BLOCKED' ? 'PUBLISHED' : 'BLOCKED'
        answered = (await change(gateway, 'Test', asked)).state
      }
    } catch {
      // It was killed.
    }
    clearTimeout(end)
    await gateway.program.kill()
    gateway = await start(at)
    const found = await stateOf(gateway)
    assert.ok([answered, asked].includes(found), `${found} after ${answered}, ${asked}`)
  }
  await gateway.program.kill()
})

test('a change that is in the file survives SIGKILL, reported or not', async () => {
  const at = home()
  const first = await start(at)
  const under = change(first, 'Test', 'Block').catch(() => undefined)
  while (!written(at).includes('BLOCKED')) await new Promise(resolve => setImmediate(resolve))
  await first.program.kill()
  await under
  const second = await start(at)
  assert.deepEqual([await stateOf(second), await statusOf(second)], ['BLOCKED', 503])
})

function written(at: Home): string {
  try {
    return readFileSync(fileOf(at), 'utf8')
  } catch {
    return ''
  }
}

test('a damaged file refuses the start with exit code 78, the file and a hint', async () => {
  const at = home(backend.port, 'new')
  mkdirSync(at.data)
  writeFileSync(fileOf(at), '{"format":1,"apis":[')
  const program = launch(at, [])
  assert.deepEqual(await program.exited, { code: 78, signal: null })
  assert.match(
    program.err.text,
    /lifecycle\.json: is damaged: it is no complete JSON \(restore it from a backup, or rem/,
  )
  const checked = await sluice(at, 'check')
  assert.equal(checked.code, 78)
  assert.match(checked.out + checked.err, /lifecycle\.json: is damaged/)
  rmSync(fileOf(at))
  assert.equal(await statusOf(await start(at)), 200)
})

/** Each test from here on starts with the state that the one before has left. */
const one = await start()

test('where the file cannot be written nothing changes, and the exit code is 1', async () => {
  mkdirSync(fileOf(one.home))
  const { code, out, err } = await sluice(one.home, 'api', 'lifecycle', 'Test', 'block')
  assert.deepEqual([code, out], [1, ''])
  assert.match(err, /^\S*lifecycle\.json cannot be written \(E\w+\): nothing has changed\n$/)
  assert.equal(await statusOf(one), 200)
  rmdirSync(fileOf(one.home))
  assert.equal((await change(one, 'Test', 'Block')).state, 'BLOCKED')
  assert.equal(await statusOf(one), 503)
})

test('a damaged file refuses a reload; a missing one is written again', async () => {
  const good = written(one.home)
  writeFileSync(fileOf(one.home), good.replace('BLOCKED', 'OPEN'))
  const refused = await sluice(one.home, 'reload')
  assert.equal(refused.code, 78)
  assert.match(refused.out, /lifecycle\.json: is damaged: record 1 is invalid/)
  assert.equal(await statusOf(one), 503)
  rmSync(fileOf(one.home))
  assert.equal((await reload(one)).outcome, 'applied')
  assert.deepEqual([await statusOf(one), written(one.home)], [503, good])
})

test('a file that is restored while the gateway runs applies at the next reload', async () => {
  const backup = written(one.home)
  await change(one, 'Test', 'Publish')
  writeFileSync(fileOf(one.home), backup)
  assert.deepEqual((await reload(one)).apis.changed, ['t/1.0.0'])
  assert.equal(await statusOf(one), 503)
  await change(one, 'Test', 'Publish')
})

test('api show and api list have the active state', async () => {
  const at = one.home
  putApi(at, 'Menu', 'menu', 'http://127.0.0.1:1', BACKEND)
  putApi(at, 'Quiet', 'quiet', BACKEND)
  await reload(one)
  await change(one, 'Menu', 'Block')
  const { code, out } = await sluice(at, 'api', 'show', 'Menu', '--json')
  const shown = JSON.parse(out) as ApiDetails
  assert.equal(code, 0)
  assert.deepEqual([shown.state, shown.declared, shown.actions], ['BLOCKED', 'PUBLISHED', ['Re-Publish', 'Deprecate']])
  assert.deepEqual(
    shown.production.endpoints.map(({ url, state }) => [url, state]),
    [
      ['http://127.0.0.1:1', 'ACTIVE'],
      [BACKEND, 'ACTIVE'],
    ],
  )
  assert.ok(shown.filters.some(({ about }) => about.startsWith('BLOCKED')))
  const all = await sluice(at, 'api', 'list')
  assert.match(all.out, /^Menu:1\.0\.0 +BLOCKED +\S+ \S+Z +PUBLISHED +\/menu\/1\.0\.0$/m)
  assert.match(all.out, /^Quiet:1\.0\.0 +PUBLISHED +\/quiet\/1\.0\.0$/m)
  const unknown = await sluice(at, 'api', 'show', 'Mennu')
  assert.deepEqual([unknown.code, unknown.out], [1, ''])
  assert.equal(unknown.err, 'there is no API "Mennu"; did you mean Menu:1.0.0 (/menu/1.0.0)?\n')
  for (const name of ['Menu', 'Quiet']) removeApi(at, name)
})

test('a project that is removed and comes back, in any folder, keeps its state', async () => {
  const at = one.home
  putApi(at, 'Lunch', 'lunch', BACKEND)
  await reload(one)
  await change(one, 'Lunch', 'Block')
  renameSync(join(at.path, 'apis', 'Lunch'), join(at.path, 'apis', 'Speisekarte'))
  await reload(one)
  assert.equal(await statusOf(one, '/lunch/1.0.0/'), 503)
  removeApi(at, 'Speisekarte')
  await reload(one)
  assert.equal(await statusOf(one, '/lunch/1.0.0/'), 404)
  await one.program.kill()
  const next = await start(at)
  putApi(at, 'Lunch', 'lunch', BACKEND)
  await reload(next)
  assert.equal(await statusOf(next, '/lunch/1.0.0/'), 503)
  assert.deepEqual((await change(next, 'Lunch', 'Publish')).state, 'PUBLISHED')
})

test('concurrent changes and reloads all apply', async () => {
  await dialMany()
  for (let round = 0; round < 6; round++) {
    const isBlocked = round % 2 === 0
    putApi(two.home, `More${round}`, `more${round}`, BACKEND)
    const [, { state }, answer] = await Promise.all([
      reload(two),
      change(two, 'Test', isBlocked ? 'Block' : 'Publish'),
      reload(two),
    ])
    assert.deepEqual([state, answer.outcome], [isBlocked ? 'BLOCKED' : 'PUBLISHED', 'applied'])
    for (const client of many) assert.equal(await asks(client), isBlocked ? 503 : 200)
    assert.equal(await statusOf(two, `/more${round}/1.0.0/`), 200)
  }
})

test('a replaced reactor knows every change', async () => {
  assert.match(await ask(two.healthPort, 'POST', '/test/kill'), /^HTTP\/1\.1 200 /)
  assert.deepEqual((await change(two, 'Test', 'Block')).failures, [])
  await two.program.err.until(/"msg":"reactor replaced"/)
  for (let i = 0; i < CLIENTS; i++) assert.equal(await statusOf(two), 503)
  await change(two, 'Test', 'Publish')
})

test('of two commands with the same change one succeeds and the other one is refused', async () => {
  const both = [1, 2].map(() => begin(two.home, 'api', 'lifecycle', 'Test', 'block'))
  const codes = await Promise.all(both.map(async ({ exited }) => (await exited).code))
  assert.deepEqual(codes.sort(), [0, 1])
  assert.match(both.map(({ err }) => err.text).join(''), /^Test:1\.0\.0 is BLOCKED and cannot become BLOCKED; /)
  const changes = Array.from({ length: 8 }, (_, i) => change(two, 'Test', i % 2 === 0 ? 'Publish' : 'Deprecate'))
  const ended = await Promise.allSettled(changes)
  const kept = ended.flatMap(it => (it.status === 'fulfilled' ? [it.value.state] : []))
  assert.deepEqual(kept.at(-1), 'DEPRECATED')
  assert.match(written(two.home), /"state":"DEPRECATED"/)
  assert.equal(await stateOf(two), 'DEPRECATED')
})
