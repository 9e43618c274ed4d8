/** Endpoints over reloads: their states stay with their rows, and what is under way goes on among those it knew. */
import { PLAIN_API } from '../harness/api-plan.ts'
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { DEFAULT_SETTINGS, type EndpointSettings } from '../../src/config/endpoint-settings.ts'
import { monotonicMs } from '../../src/structure/monotonic-clock.ts'
import type { ApiPlan, EndpointsPlan } from '../../src/plan.ts'
import { EndpointTable } from '../../src/target/endpoint-table.ts'
import { takeAnswer } from '../harness/answers.ts'
import { asked, outcome, Patient } from '../harness/endpoints.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually } from '../harness/peers.ts'

const LONG_MS = 3_600_000
const ROWS = 16

interface Started {
  readonly gateway: TestGateway
  readonly table: EndpointTable
  readonly patients: readonly Patient[]
}

/** `/t` with the endpoints of these rows; rows and backends have the same numbers. */
function apiOf(
  patients: readonly Patient[],
  rows: readonly number[],
  kind: EndpointsPlan['kind'],
  settings: Partial<EndpointSettings> = {},
): ApiPlan {
  const endpoints = rows.map(row => {
    const { port } = patients[row]!
    const place = { row: row + 1, secured: false, host: '127.0.0.1', port }
    return {
      row,
      url: `http://127.0.0.1:${port}`,
      route: { ...place, tlsClient: '', proxy: null, connectsThroughProxy: false },
      basePath: '',
      settings: { ...DEFAULT_SETTINGS, initialMs: LONG_MS, ...settings },
    }
  })
  return {
    ...PLAIN_API,
    name: 'T',
    paths: ['/t'],
    endpoints: { kind, algorithm: 'least_pending', failsOver: true, endpoints },
  }
}

async function start(t: TestContext, rows: readonly number[], kind: EndpointsPlan['kind']): Promise<Started> {
  const patients = await Promise.all(['a', 'b', 'c', 'd'].map(name => Patient.start(name)))
  const shared = EndpointTable.allocate(ROWS, 1)
  const apis = [apiOf(patients, rows, kind)]
  const gateway = await startGateway([], {}, null, [], { apis, endpoints: shared })
  t.after(async () => {
    gateway.stop()
    await Promise.all(patients.map(patient => patient.die()))
  })
  return { gateway, patients, table: new EndpointTable(shared, 0, monotonicMs) }
}

test('a suspended endpoint is suspended still, wherever it stands in the group', async t => {
  const { gateway, patients, table } = await start(t, [0, 1], 'failover')
  patients[0]!.health = 'resets'
  assert.equal(await outcome(gateway), 'b')
  assert.equal(table.read(0).state, 'SUSPENDED')
  patients[0]!.health = 'well'
  await gateway.deploy({ planned: [apiOf(patients, [0, 2], 'failover')] })
  assert.equal(await outcome(gateway), 'c')
  await gateway.deploy({ planned: [apiOf(patients, [0], 'single')] })
  assert.equal((await asked(gateway)).status, 503)
  table.switched(0, DEFAULT_SETTINGS, false)
  table.switched(0, DEFAULT_SETTINGS, true)
  assert.equal(await outcome(gateway), 'a')
})

test('a request whose endpoint fails after the reload goes to the next of those it knew', async t => {
  const { gateway, patients } = await start(t, [0, 1], 'failover')
  patients[0]!.health = 'hangs'
  const client = await connectPeer(gateway.port)
  client.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
  await eventually('the request', () => patients[0]!.held === 1)
  await gateway.deploy({ planned: [apiOf(patients, [2, 3], 'failover')] })
  await patients[0]!.die()
  assert.equal((await takeAnswer(client)).body, 'b')
  assert.equal(await outcome(gateway), 'c')
  await eventually('one connection', () => gateway.heldRows() === 1)
  client.destroy()
})

test('pending requests of before count for the endpoint that stays, and are taken off once', async t => {
  const { gateway, patients, table } = await start(t, [0, 1], 'load_balance')
  for (const patient of patients) patient.health = 'hangs'
  const clients = [await connectPeer(gateway.port), await connectPeer(gateway.port), await connectPeer(gateway.port)]
  for (const [at, client] of clients.entries()) {
    client.send('GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n')
    await eventually('the request', () => patients[0]!.held + patients[1]!.held === at + 1)
  }
  assert.deepEqual([table.pending(0), table.pending(1)], [2, 1])
  await gateway.deploy({ planned: [apiOf(patients, [0, 2], 'load_balance')] })
  patients[2]!.health = 'well'
  for (let i = 0; i < 3; i++) assert.equal(await outcome(gateway), 'c')
  for (const patient of patients) patient.answerHeld()
  for (const client of clients) {
    assert.equal((await takeAnswer(client)).status, 200)
    client.destroy()
  }
  assert.deepEqual([table.pending(0), table.pending(1), table.pending(2)], [0, 0, 0])
})

test('other settings of an endpoint hold for the next request', async t => {
  const { gateway, patients, table } = await start(t, [0], 'single')
  assert.equal(await outcome(gateway), 'a')
  patients[0]!.health = 'hangs'
  await gateway.deploy({ planned: [apiOf(patients, [0], 'single', { responseMs: 200, retriesBeforeSuspension: 1 })] })
  assert.equal((await asked(gateway)).status, 504)
  assert.equal(table.read(0).state, 'TIMEOUT')
  assert.equal(gateway.metrics().counts.targetsOpened, 1)
})
