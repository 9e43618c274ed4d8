/** Calls of the workflow engine: what is sent, what is sent again, and what is told of failures. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { HttpClient } from '../../src/control/remote/http-client.ts'
import { Registry } from '../../src/control/registry/registry.ts'
import { WorkflowEngine, workflowEngineSettings } from '../../src/control/workflow-engine.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { eventually } from '../harness/peers.ts'
import { MisbehavingServer } from './remote/misbehaving-server.ts'

const RETRY_MS = 50
const folder = mkdtempSync(join(tmpdir(), 'sluice-workflow-'))
const server = await MisbehavingServer.listen()
const LIMITS = { requestsMax: 10, perHostMax: 10, idleMax: 10, waitingMax: 1024, trust: {}, ownCertificates: [] }
const patient = new HttpClient(LIMITS)
const impatient = new HttpClient(LIMITS, { requestMs: 300 })

function configured(...lines: readonly string[]) {
  const workflow = ['[apim.workflow]', 'enable = true', `service_url = "${server.origin}/bpmn/"`, ...lines]
  const admin = ['[super_admin]', 'password = "of-the-admin-1"']
  writeFileSync(join(folder, 'deployment.toml'), [...workflow, ...admin, ''].join('\n'))
  return loadConfiguration(folder, [], folder).configuration
}

const configuration = configured()
const registry = await Registry.open({ configuration, dataDir: folder, issuer: 'https://issuer.example' })
const told: string[] = []
const engines: WorkflowEngine[] = []

function engine(retryMs = RETRY_MS, client = patient): WorkflowEngine {
  const made = new WorkflowEngine(
    {
      workflows: registry.workflows,
      send: given => client.send(given),
      settings: () => workflowEngineSettings(configuration, folder, 'https://localhost:9443'),
      report: (level, event, fields) => void told.push(`${level} ${event}: ${String(fields.CAUSE_OF_ERROR)}`),
      nowMs: Date.now,
    },
    retryMs,
  )
  engines.push(made)
  return made
}

beforeEach(() => {
  for (const made of engines.splice(0)) made.close()
  told.length = 0
  server.received.length = 0
  server.answer = response => response.writeHead(201).end('{}')
})
after(async () => {
  for (const made of engines) made.close()
  server.close()
  await Promise.all([patient.close(), impatient.close()])
  await registry.close()
  rmSync(folder, { recursive: true })
})

let count = 0
async function requested(): Promise<string> {
  const about = { owner: 'alice', tenant: 'carbon.super', description: '', tier: 'Gold', attributes: {} }
  const { id } = await registry.applications.create(
    { ...about, name: `Shop ${++count}`, tokenType: 'JWT' },
    {
      kind: 'AM_APPLICATION_CREATION',
      tenant: 'carbon.super',
      requester: 'alice',
      properties: { applicationName: `Shop ${count}` },
      callsEngine: true,
    },
  )
  return (await registry.workflows.listForApplication(id))[0]!.id
}

const sentIds = () => server.received.map(({ body }) => String(JSON.parse(body).businessKey))

test('each request is sent once', async () => {
  const ids = [await requested(), await requested()]
  const one = engine(60_000)
  for (let i = 0; i < 5; i++) one.wake()
  await eventually('both calls', () => sentIds().length >= 2)
  one.wake()
  await sleep(3 * RETRY_MS)
  assert.deepEqual(sentIds().sort(), ids.sort())
  assert.deepEqual(told, [])
})

test('of two nodes on one database one calls', async () => {
  // A claim holds for the pause between attempts, so a call must not last longer.
  const nodes = [engine(60_000), engine(60_000)]
  const ids = [await requested(), await requested(), await requested()]
  for (const node of nodes) node.wake()
  await eventually('the calls', () => sentIds().length >= 3)
  await sleep(3 * RETRY_MS)
  assert.deepEqual(sentIds().sort(), ids.sort())
})

for (const [name, answer, cause] of [
  ['refuses', response => void response.writeHead(500).end(), /^it responds with status 500$/],
  [
    'redirects',
    response => void response.writeHead(302, { location: '/' }).end(),
    /redirect \(302\), which is not followed/,
  ],
  ['closes the connection', response => void response.destroy(), /other side closed|ECONNRESET/],
  ['is silent', () => undefined, /no response within 300 ms/],
  ['responds with too much', response => void response.writeHead(201).end('a'.repeat(70_000)), /more than 65536 bytes/],
] as const satisfies readonly (readonly [string, MisbehavingServer['answer'], RegExp])[]) {
  test(`an engine that ${name} is called again until it has the request`, async () => {
    server.answer = answer
    const id = await requested()
    engine(RETRY_MS, name === 'is silent' ? impatient : patient).wake()
    await eventually('the report', () => told.length > 0)
    assert.match(told[0]!.replace('warn workflow engine not called: ', '').replace(/^http\S+ /, ''), cause)
    server.answer = response => response.writeHead(201).end()
    const failed = server.received.length
    await eventually('the next call', () => server.received.length > failed)
    while ((await registry.workflows.listUnsent(Date.now(), 10)).length > 0) await sleep(RETRY_MS)
    assert.equal(new Set(sentIds()).size, 1)
    assert.equal(sentIds()[0], id)
  })
}

test('a request that was decided meanwhile is not sent any more', async () => {
  const id = await requested()
  await registry.workflows.decide(id, 'APPROVED', '')
  engine().wake()
  await sleep(2 * RETRY_MS)
  assert.deepEqual(sentIds(), [])
})

test('account, endpoints and credentials of the engine are those of the keys', () => {
  const settings = (...lines: readonly string[]) =>
    workflowEngineSettings(configured(...lines), folder, 'https://own:9443')
  const standard = settings()!
  assert.deepEqual([standard.username, standard.password], ['admin', 'of-the-admin-1'])
  assert.deepEqual(standard.variables, {
    callbackUrl: 'https://own:9443/api/am/publisher/v0.15/workflows/update-workflow-status',
    tokenEndpoint: 'https://localhost:8253/token',
    clientRegistrationEndpoint: 'https://own:9443/client-registration/v0.15/register',
  })
  const own = settings(
    'wf_engine_user = "engine"',
    'wf_engine_pass = "of-the-engine"',
    'callback_endpoint = "https://public.example/decided"',
    'token_endpoint = "/oauth2/token"',
    'client_registration_endpoint = "/client-registration/v0.14/register"',
    'client_registration_username = "robot"',
    'client_registration_password = "of-the-robot"',
  )!
  assert.deepEqual([own.username, own.password], ['engine', 'of-the-engine'])
  assert.deepEqual(own.variables, {
    callbackUrl: 'https://public.example/decided',
    tokenEndpoint: 'https://own:9443/oauth2/token',
    clientRegistrationEndpoint: 'https://own:9443/client-registration/v0.14/register',
    clientRegistrationUsername: 'robot',
    clientRegistrationPassword: 'of-the-robot',
  })
  assert.equal(settings('call_engine = false'), null)
  assert.equal(settings('client_registration_username = "robot"')!.variables.clientRegistrationUsername, undefined)
})
