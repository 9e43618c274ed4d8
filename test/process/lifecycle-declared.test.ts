/** Lifecycle states that projects declare, and their precedence over states that operators have set. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { ApiDetails, ApiSummary } from '../../src/primary/api-service.ts'
import { sendCommand } from '../../src/cli/control-client.ts'
import { openProject } from '../harness/open-project.ts'
import { backend, home, leave, sluice, start } from '../harness/operator.ts'
import { ask, type Home, type RunningGateway } from '../harness/program.ts'
import { GUARD_MS } from '../harness/peers.ts'
import { put, reload, removeApi } from '../harness/reloading.ts'

after(leave)

const DAY_MS = 86_400_000
const BACKEND = { url: `http://127.0.0.1:${backend.port}` }

/** A project `Menu` at `/menu/1.0.0` that declares that state. */
function declare(at: Home, lifeCycleStatus: string, more: object = {}): void {
  const endpointConfig = { endpoint_type: 'http', production_endpoints: BACKEND }
  const declared = { lifeCycleStatus, endpointConfig, isDefaultVersion: false, ...more }
  put(at, 'apis/Menu/api.yaml', openProject({ name: 'Menu', context: '/menu', ...declared }))
}

function show({ home: { data } }: RunningGateway): Promise<ApiDetails> {
  return sendCommand<ApiDetails>(data, { command: 'api', name: 'Menu' })
}

function change({ home: { data } }: RunningGateway, action: string): Promise<ApiSummary> {
  return sendCommand<ApiSummary>(data, { command: 'lifecycle', name: 'Menu', action })
}

async function statusOf({ port }: RunningGateway): Promise<number> {
  return Number((await ask(port, 'GET', '/menu/1.0.0/')).slice(9, 12))
}

const DECLARED: readonly (readonly [state: string, status: number])[] = [
  ['CREATED', 404],
  ['PROTOTYPED', 200],
  ['PUBLISHED', 200],
  ['BLOCKED', 503],
  ['DEPRECATED', 200],
  ['RETIRED', 404],
]

async function until(gateway: RunningGateway, state: string): Promise<void> {
  const end = performance.now() + GUARD_MS
  for (;;) {
    const found = await show(gateway).then(
      answer => answer.state,
      () => 'nothing',
    )
    if (found === state) return
    assert.ok(performance.now() < end, `waited in vain for ${state}, found ${found}`)
  }
}

const at = home()
declare(at, 'PUBLISHED')
/** Shared by the tests before the first kill. */
const first = await start(at)

test('an API starts in the declared state, and a newer declaration changes it', async () => {
  for (const [state, status] of DECLARED) {
    declare(at, state)
    await reload(first)
    assert.deepEqual([(await show(first)).state, await statusOf(first)], [state, status])
  }
})

test('api show lists resources, endpoints of both kinds, transports and CORS', async () => {
  declare(at, 'PUBLISHED', {
    transport: ['http'],
    endpointConfig: {
      endpoint_type: 'http',
      production_endpoints: BACKEND,
      sandbox_endpoints: { url: 'http://s:81/b' },
    },
    corsConfiguration: {
      corsConfigurationEnabled: true,
      accessControlAllowOrigins: ['https://shop.example'],
      accessControlAllowHeaders: ['x-a'],
      accessControlAllowMethods: ['GET'],
      accessControlAllowCredentials: true,
    },
    operations: [
      { target: '/pets/{id}', verb: 'GET', authType: 'None', throttlingPolicy: 'Gold', scopes: ['read'] },
      { target: '/pets', verb: 'POST', authType: 'Application', throttlingPolicy: 'Unlimited', scopes: [] },
    ],
  })
  await reload(first)
  const { out, code } = await sluice(at, 'api', 'show', 'Menu')
  assert.equal(code, 0)
  assert.match(out, /^Menu:1\.0\.0\npaths +\/menu\/1\.0\.0\nhosts +all\ntransports +http\nlifecycle +PUBLISHED\n/)
  assert.match(out, /^CORS +origins https:\/\/shop\.example; methods GET; headers x-a; .*with credentials/m)
  assert.match(out, /^sandbox endpoints\nURL +state\nhttp:\/\/s:81\/b +ACTIVE$/m)
  assert.match(out, /^\/pets\/\{id\} +GET +None +Gold +read$/m)
  assert.match(out, /^\/pets +POST +Application +Unlimited$/m)
  const { filters } = await show(first)
  const names = filters.map(({ name }) => name)
  assert.ok(names.indexOf('cors') < names.indexOf('resources') && names.length > 2, names.join())
})

test('a state of the command line holds until the project declares another one, also over a restart', async () => {
  declare(at, 'PUBLISHED')
  await reload(first)
  await change(first, 'Block')
  declare(at, 'PUBLISHED', { isDefaultVersion: true })
  await reload(first)
  assert.equal(await statusOf(first), 503)
  declare(at, 'PROTOTYPED')
  await reload(first)
  assert.equal(await statusOf(first), 200)
  const line = first.program.events.findLast(({ msg }) => String(msg).includes('declares another state'))!
  assert.deepEqual([line.API, line.STATE, line.DECLARED_THEN], ['Menu:1.0.0', 'BLOCKED', 'PUBLISHED'])
  await change(first, 'Publish')
  await change(first, 'Block')
  await first.program.kill()
  declare(at, 'PUBLISHED')
  const second = await start(at)
  assert.equal(await statusOf(second), 200)
  // The older state never comes back.
  await second.program.kill()
  declare(at, 'PROTOTYPED')
  watching = await start(at, [], {}, ['--watch'])
  assert.equal((await show(watching)).state, 'PROTOTYPED')
})

let watching: RunningGateway

test('the same holds for watched API files', async () => {
  await change(watching, 'Publish')
  await change(watching, 'Block')
  declare(at, 'PUBLISHED')
  await watching.program.err.until(/the project now declares another state/)
  await until(watching, 'PUBLISHED')
  await change(watching, 'Demote to Created')
  removeApi(at, 'Menu')
  await watching.program.err.until(/"APIS_REMOVED":"menu\/1\.0\.0"/)
  declare(at, 'PUBLISHED')
  await until(watching, 'CREATED')
})

test('after a restart the date of deprecation and the state of a faulty project are kept', async () => {
  const other = home()
  declare(other, 'DEPRECATED')
  const before = await start(other, ['apim.lifecycle.sunset_after=10d'])
  const { since, sunset } = await show(before)
  assert.equal(Date.parse(sunset) - Date.parse(since), 10 * DAY_MS)
  const fields = /^Deprecation: .*\r\nSunset: .*\r\n/m
  const told = fields.exec(await ask(before.port, 'GET', '/menu/1.0.0/'))?.[0]
  assert.equal(told?.slice(0, 14), 'Deprecation: @')
  await sendCommand(other.data, { command: 'lifecycle', name: 'Test', action: 'Block' })
  await before.program.kill()
  const project = readFileSync(join(other.path, 'apis/Test/api.yaml'))
  put(other, 'apis/Test/api.yaml', 'type: [')
  const after = await start(other)
  assert.deepEqual([(await show(after)).since, (await show(after)).sunset], [since, sunset])
  assert.equal(fields.exec(await ask(after.port, 'GET', '/menu/1.0.0/'))?.[0], told)
  const statusOfFaulty = async (): Promise<string> => (await ask(after.port, 'GET', '/t/')).slice(9, 12)
  assert.equal(await statusOfFaulty(), '404')
  put(other, 'apis/Test/api.yaml', project)
  await reload(after)
  assert.equal(await statusOfFaulty(), '503')
})
