/** The sample of a mounted API, on an embedded database, through a gateway with its filters. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { ResourceDefinition } from '../../src/apis/api-definition.ts'
import { databaseSettings } from '../../src/database/database-settings.ts'
import type { ApiPlan } from '../../src/plan/reactor-plan.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import type { TestGateway } from '../harness/gateway.ts'
import { mounted, mountedApi, startMounted } from '../harness/mounted.ts'
import { connectPeer, type Peer } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'

const OPEN = { authType: 'None', tier: 'Unlimited', scopes: [] } as const
const RESOURCES: readonly ResourceDefinition[] = [
  { ...OPEN, verb: 'GET', template: '/notes' },
  { ...OPEN, verb: 'POST', template: '/notes' },
  { ...OPEN, verb: 'GET', template: '/notes/{id}' },
  { ...OPEN, verb: 'DELETE', template: '/notes/{id}' },
]

function notes(overrides: Partial<ApiPlan> = {}): ApiPlan {
  const module = mounted({ module: 'sluice:sample', settings: { notes_max: '3' } })
  return mountedApi({ name: 'Notes', paths: ['/t/{tenant}'], resources: RESOURCES, mounted: module, ...overrides })
}

async function start(t: TestContext): Promise<{ gateway: TestGateway; client: Peer; folder: string }> {
  const folder = temporaryHome(t, { 'deployment.toml': '' })
  const { apim: settings } = databaseSettings(loadConfiguration(folder, []).configuration, folder)
  const gateway = await startMounted(t, { database: { settings, folder } }, [notes()])
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  return { gateway, client, folder }
}

async function ask(client: Peer, method: string, path: string, body = '') {
  const length = body === '' ? '' : `Content-Length: ${body.length}\r\n`
  client.send(`${method} ${path} HTTP/1.1\r\nHost: gw\r\n${length}\r\n${body}`)
  return takeResponse(client)
}

test('notes of a tenant are created, read, listed and removed; other tenants do not see them', async t => {
  const { client, folder } = await start(t)
  const created = await ask(client, 'POST', '/t/acme/notes', '{"text":"hello"}')
  assert.equal(created.status, 201)
  const [location] = created.fields.get('location')!
  const path = location!.replace('http://gw', '')
  assert.deepEqual(JSON.parse((await ask(client, 'GET', path)).body).text, 'hello')
  assert.equal((await ask(client, 'GET', path.replace('acme', 'other'))).status, 404)
  client.send('GET /t/acme/notes HTTP/1.1\r\nHost: gw\r\n\r\n')
  await client.untilText('0\r\n\r\n')
  assert.match(client.take(), /\{"id":"[\w-]+","author":"anonymous","text":"hello"\}\n\r\n0\r\n\r\n$/)
  assert.equal((await ask(client, 'DELETE', path)).status, 204)
  assert.equal((await ask(client, 'DELETE', path)).status, 404)
  assert.ok(existsSync(join(folder, 'api-Notes.db')))
})

test('a wrong body is 400, a long one 413, and one note too many 409', async t => {
  const { client } = await start(t)
  assert.equal((await ask(client, 'POST', '/t/a/notes', 'x')).status, 400)
  for (const status of [201, 201, 201, 409]) {
    assert.equal((await ask(client, 'POST', '/t/a/notes', '{"text":"x"}')).status, status)
  }
  assert.equal((await ask(client, 'POST', '/t/a/notes', 'x'.repeat(65_537))).status, 413)
})

test('without a database that the gateway supports the API is 503 with 102574', async t => {
  const gateway = await startMounted(t, {}, [notes()])
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  const { status, body } = await ask(client, 'GET', '/t/a/notes')
  assert.deepEqual([status, /"code":102574,/.test(body)], [503, true])
})
