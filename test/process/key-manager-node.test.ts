/** A key manager node without a gateway, and a gateway-worker that uses it, both as real programs. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sendCommand } from '../../src/cli/control-client.ts'
import { KeyManagerClient } from '../harness/key-manager-client.ts'
import { openProject } from '../harness/open-project.ts'
import { backend, home, leave, start } from '../harness/operator.ts'
import { pollPause } from '../harness/peers.ts'
import { ask, freePort, launch, type Program, type RunningGateway } from '../harness/program.ts'
import { put, reload } from '../harness/reloading.ts'

const HOOKS = { SLUICE_TEST_HOOKS: '1' }
const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: `http://127.0.0.1:${backend.port}` } }
const PETS = openProject({ name: 'Pets', context: '/pets', endpointConfig, securityScheme: ['oauth2'] })

const keys = home()
const work = home()
let keyManager: Program
let keysHealth = 0
let port = 0
let client: KeyManagerClient

before(async () => {
  port = await freePort()
  put(keys, 'apis/Pets/api.yaml', PETS)
  put(keys, 'deployment.toml', '[server]\nserver_role = "api-key-manager"\n')
  keyManager = launch(keys, ['management.enable=true', `management.port=${port}`], HOOKS)
  const failed = keyManager.exited.then(() => assert.fail(keyManager.err.text))
  await Promise.race([keyManager.said.until(/^ready$/m), failed])
  const [, health] = await keyManager.said.until(/^health on http:\/\/\S*:(\d+)\/healthz$/m)
  keysHealth = Number(health)
  client = new KeyManagerClient(keys, port)
})
after(async () => {
  await keyManager.kill()
  await leave()
})

async function codeOf(gateway: RunningGateway, token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` }
  const answer = await fetch(`http://127.0.0.1:${gateway.port}/pets/1.0.0/`, { headers })
  const text = await answer.text()
  return text === 'ok' ? 0 : Number(JSON.parse(text).fault.code)
}

async function untilReady(isReady: boolean): Promise<void> {
  const wanted = isReady ? 'HTTP/1.1 200 ' : 'HTTP/1.1 503 '
  while (!(await ask(keysHealth, 'GET', '/readyz')).startsWith(wanted)) await pollPause()
}

test('a key manager node issues tokens, knows the APIs, reloads, and refuses the commands of a gateway', async () => {
  assert.doesNotMatch(keyManager.said.text, /listening on/)
  assert.match(keyManager.said.text, /^role api-key-manager: a key manager for 2 APIs, and no gateway$/m)
  const { apis } = await sendCommand<{ apis: readonly { name: string }[] }>(keys.data, { command: 'apis' })
  assert.deepEqual(apis.map(({ name }) => name).sort(), ['Pets', 'Test'])
  await assert.rejects(
    sendCommand(keys.data, { command: 'connections' }),
    /runs no gateway: server\.server_role is api-key/,
  )
  const scoped = [{ target: '/', verb: 'GET', scopes: ['device_read'] }]
  const project = { name: 'Pets', context: '/pets', endpointConfig, operations: scoped }
  put(keys, 'apis/Pets/api.yaml', openProject(project))
  const { outcome, apis: changes } = await reload({ home: keys } as RunningGateway)
  assert.deepEqual([outcome, changes.changed], ['applied', ['pets/1.0.0']])
  const { authorization } = await client.register('JWT')
  const form = 'grant_type=client_credentials&scope=device_read other'
  assert.equal((await client.post('/oauth2/token', authorization, form)).scope, 'device_read')
})

test('a gateway-worker accepts the tokens of the key manager, which it trusts by a profile', async () => {
  const jwt = await client.register('JWT')
  const opaque = await client.register('OPAQUE')
  const rows = [jwt, opaque].map(({ consumerKey }) => ({ type: 'PRODUCTION', consumerKey }))
  const shop = { name: 'Shop', keys: rows, subscriptions: [{ api: 'Pets:1.0.0', tier: 'Unlimited' }] }
  put(work, 'applications/shop.json', JSON.stringify(shop))
  put(work, 'apis/Pets/api.yaml', PETS)
  put(work, 'repository/resources/security/key-manager.pem', client.certificate)
  const store = '<TrustStore><Location>key-manager.pem</Location><Type>PEM</Type><Password/></TrustStore>'
  const profile = `<profile><servers>localhost:${port}</servers>${store}</profile>`
  put(work, 'sender.xml', `<parameter name="customSSLProfiles">${profile}</parameter>`)
  put(
    work,
    'deployment.toml',
    `[server]\nserver_role = "gateway-worker"
[oauth]\noidc.id_token.issuer = "https://localhost:${port}/oauth2/token"\ntimestamp_skew = 1
[apim.key_manager]\nservice_url = "https://localhost:${port}/services/"\nusername = "admin"
password = "${client.password}"
[transport.passthru_https]\nsender.ssl_profile.file_path = "sender.xml"\n`,
  )
  const worker = await start(work)
  const [signed, reference] = [await client.tokenOf(jwt), await client.tokenOf(opaque)]
  assert.deepEqual([await codeOf(worker, signed), await codeOf(worker, reference)], [0, 0])
  assert.equal(reference.includes('.'), false)
  assert.equal(await codeOf(worker, `${reference}x`), 900901)

  // The worker learns of a revocation when it introspects the token again.
  const other = await client.tokenOf(opaque)
  for (const token of [reference, other]) await client.revoke(token, opaque)
  assert.deepEqual([await codeOf(worker, reference), await codeOf(worker, other)], [0, 900901])

  const lead = { method: 'POST', headers: { authorization: jwt.authorization } }
  const body = new URLSearchParams({ grant_type: 'client_credentials' })
  const led = await fetch(`http://127.0.0.1:${worker.port}/token`, { ...lead, body })
  const answer = await led.text()
  assert.equal(led.status, 200, answer)
  assert.equal(await codeOf(worker, JSON.parse(answer).access_token), 0)
  // The harness sets keys that only other roles have.
  const isOfTest = ({ msg }: Readonly<Record<string, unknown>>): boolean => !String(msg).startsWith('--set: ')
  assert.deepEqual(
    worker.program.events.filter(({ level }) => level === 'warn' || level === 'error').filter(isOfTest),
    [],
  )
})

test('a key manager node is not ready until its control thread is replaced, and ends in order', async () => {
  await ask(keysHealth, 'POST', '/test/kill-control')
  await keyManager.err.until(/"msg":"control thread replaced"/)
  await untilReady(true)
  const one = await client.register('JWT')
  assert.equal((await client.tokenOf(one)).split('.').length, 3)
  const died = keyManager.events.filter(({ level }) => level === 'error')
  assert.deepEqual(
    died.map(({ CAUSE_OF_ERROR }) => CAUSE_OF_ERROR),
    ['control thread has ended with code 1'],
  )
  keyManager.signal('SIGTERM')
  assert.deepEqual(await keyManager.exited, { code: 0, signal: null })
})
