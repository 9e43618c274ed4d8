/** Item 12: a database that is down at the start or while the node runs, with real servers behind a gate. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sendCommand } from '../../src/cli/control-client.ts'
import { type RealDatabase, realDatabase } from '../control/registry/real-databases.ts'
import { openProject } from '../harness/open-project.ts'
import { backend, home, leave, start } from '../harness/operator.ts'
import { ask, freePort, type Home, launch, type Program, type RunningGateway } from '../harness/program.ts'
import { put } from '../harness/reloading.ts'
import { TcpGate } from '../harness/tcp-gate.ts'

const PORTS = { postgre: 5432, mysql: 3306 } as const
const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: `http://127.0.0.1:${backend.port}` } }
const PETS = openProject({ name: 'Pets', context: '/pets', endpointConfig, securityScheme: ['oauth2'] })

after(leave)

interface Parts {
  readonly database: RealDatabase
  readonly gate: TcpGate
  readonly at: Home
}

const CLAUSES: readonly (readonly [string, (parts: Parts) => Promise<void>])[] = [
  ['without --wait the start fails at once, and names the option', noWait],
  ['--wait is bounded: the start fails when it is over', bounded],
  ['wrong credentials are not waited for', wrongCredentials],
  ['with --wait the node is alive, and ready once the database is there', waits],
  ['an outage shows in a metric and in events, while known tokens and open APIs go on', outage],
]

for (const kind of ['postgre', 'mysql'] as const) {
  describe(`a ${kind} that is down`, () => {
    let parts: Parts | string = ''
    before(async () => {
      const database = await realDatabase(kind)
      if (typeof database === 'string') {
        parts = database
        return
      }
      const gate = new TcpGate(await freePort(), PORTS[kind])
      const at = home(backend.port, 'new')
      put(at, 'apis/Pets/api.yaml', PETS)
      put(at, 'deployment.toml', database.toml.replaceAll(`:${PORTS[kind]}`, `:${gate.port}`))
      parts = { database, gate, at }
    })
    after(async () => {
      if (typeof parts === 'string') return
      await parts.gate.shut()
      await parts.database.remove()
    })
    for (const [clause, body] of CLAUSES) {
      test(clause, async t => {
        if (typeof parts === 'string') t.skip(parts)
        else await body(parts)
      })
    }
  })
}

async function failed(program: Program, expected: RegExp): Promise<void> {
  assert.deepEqual(await program.exited, { code: 1, signal: null })
  assert.match(program.err.text, expected)
  assert.doesNotMatch(program.said.text, /^ready$/m)
}

async function noWait({ at }: Parts): Promise<void> {
  const expected = /ECONNREFUSED.*; start the database, or check where its section points \(--wait SECONDS lets/
  await failed(launch(at, []), expected)
}

async function bounded({ at }: Parts): Promise<void> {
  const begun = performance.now()
  const program = launch(at, [], {}, ['--wait', '2'])
  await failed(program, /ECONNREFUSED.*\(--wait was 2 s\)/)
  const tookMs = performance.now() - begun
  assert.ok(tookMs > 2000 && tookMs < 10_000, String(tookMs))
  const waiting = program.events.filter(({ msg }) => msg === 'waiting for the database')
  assert.equal(waiting.length, 1)
  assert.match(String(waiting[0]!.CAUSE_OF_ERROR), /ECONNREFUSED/)
}

async function wrongCredentials({ at, gate, database }: Parts): Promise<void> {
  await gate.open()
  const own = database.kind === 'postgre' ? 'username=nobody-here' : 'username=nobody'
  const sets = ['apim_db', 'shared_db'].map(section => `database.${section}.${own}`)
  const program = launch(at, sets, {}, ['--wait', '60'])
  await failed(program, /28000|ER_ACCESS_DENIED/)
  assert.ok(!program.events.some(({ msg }) => msg === 'waiting for the database'))
  await gate.shut()
}

async function waits({ at, gate }: Parts): Promise<void> {
  const port = await freePort()
  const program = launch(at, [`management.health_port=${port}`], {}, ['--wait', '60'])
  try {
    await program.err.until(/"msg":"waiting for the database"/)
    assert.match(await ask(port, 'GET', '/healthz'), /^HTTP\/1\.1 200 /)
    assert.match(await ask(port, 'GET', '/readyz'), /^HTTP\/1\.1 503 [\s\S]*the node is starting/)
    await gate.open()
    await program.said.until(/^ready$/m)
    assert.match(await ask(port, 'GET', '/readyz'), /^HTTP\/1\.1 200 /)
    program.signal('SIGTERM')
    assert.deepEqual(await program.exited, { code: 0, signal: null })
    await gate.shut()
    // A start that waits ends at once.
    const waiting = launch(at, [], {}, ['--wait', '60'])
    await waiting.err.until(/"msg":"waiting for the database"/)
    waiting.signal('SIGTERM')
    assert.deepEqual(await waiting.exited, { code: 0, signal: null })
  } finally {
    await program.kill()
  }
}

async function outage({ at, gate }: Parts): Promise<void> {
  await gate.open()
  const gateway = await start(at)
  for (const request of [
    { action: 'application create', name: 'shop' },
    { action: 'key generate', application: 'shop' },
    { action: 'subscription add', application: 'shop', api: 'Pets:1.0.0' },
  ]) {
    await sendCommand(at.data, { command: 'manage', request })
  }
  const request = { action: 'token', application: 'shop' }
  const { accessToken } = await sendCommand<{ accessToken: string }>(at.data, { command: 'manage', request })
  assert.equal(await statusOf(gateway, accessToken), 200)
  assert.match(await metricsOf(gateway), /^sluice_database_down\{section="apim_db"\} 0$/m)

  await gate.shut()
  await gateway.program.err.until(/"msg":"database unavailable"/)
  const [event] = gateway.program.events.filter(({ msg }) => msg === 'database unavailable')
  assert.match(JSON.stringify(event), /"level":"error".*"DATABASE":"(?:postgre|mysql) 127\.0\.0\.1:.*ECONNREFUSED/)
  assert.match(String(event!.HINT), /\[database\.apim_db\] names it/)
  const down = await metricsOf(gateway)
  assert.match(down, /^sluice_database_down\{section="apim_db"\} 1$/m)
  assert.match(down, /^sluice_database_failures_total\{section="apim_db"\} [1-9]/m)
  assert.match(down, /^sluice_database_down\{section="shared_db"\} 0$/m)
  const DEGRADED = /^\[-\]database degraded \(the database of the key manager does not answer\)$/m
  assert.match(await ask(gateway.healthPort, 'GET', '/readyz?verbose'), DEGRADED)
  assert.equal(await statusOf(gateway, accessToken), 200)
  await assert.rejects(sendCommand(at.data, { command: 'manage', request }), /ECONNREFUSED|unavailable/)

  await gate.open()
  await gateway.program.err.until(/"msg":"database available again"/)
  while (!/^sluice_database_down\{section="apim_db"\} 0$/m.test(await metricsOf(gateway))) await sleep(20)
  assert.match(await ask(gateway.healthPort, 'GET', '/readyz?verbose'), /^\[\+\]database ok$/m)
  await sendCommand(at.data, { command: 'manage', request })
  await gateway.program.kill()
}

async function statusOf({ port }: RunningGateway, token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` }
  return (await fetch(`http://127.0.0.1:${port}/pets/1.0.0/`, { headers })).status
}

function metricsOf({ healthPort }: RunningGateway): Promise<string> {
  return ask(healthPort, 'GET', '/metrics')
}
