/** Issue 14, item 7: keys that the REST APIs of the portals obey, over the management listener of a real program. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { backend, home, leave, sluice, start } from '../harness/operator.ts'
import { freePort } from '../harness/program.ts'
import { reload } from '../harness/reloading.ts'

const at = home(backend.port, 'new')
const PASSWORD = 'a password of this test'
const MANAGED = `[management]\nenable = true\nport = ${await freePort()}\n[super_admin]\npassword = "${PASSWORD}"\n`
const PORT = Number(/port = (\d+)/.exec(MANAGED)![1])
const original = readFileSync(join(at.path, 'deployment.toml'), 'utf8')

function configure(toml: string): void {
  writeFileSync(join(at.path, 'deployment.toml'), `${original}\n${MANAGED}${toml}`)
}

function project(name: string, version: string, more: object = {}): void {
  const { endpointConfig } = JSON.parse(readFileSync(join(at.path, 'apis/Test/api.yaml'), 'utf8')).data
  const folder = join(at.path, 'apis', `${name}-${version}`)
  mkdirSync(folder)
  const data = { name, version, context: `/${name.toLowerCase()}`, endpointConfig, ...more }
  writeFileSync(join(folder, 'api.yaml'), JSON.stringify({ type: 'api', version: 'v4.0.0', data }))
}

before(async () => {
  project('Orders', '1.9.0')
  project('Orders', '1.10.0', { isDefaultVersion: true })
  project('Old', '1.0.0', { lifeCycleStatus: 'DEPRECATED' })
  configure('')
  await start(at, ['management.enable=true', `management.port=${PORT}`])
})
after(leave)

const ADMIN = `Basic ${Buffer.from(`admin:${PASSWORD}`).toString('base64')}`

interface Answer {
  readonly status: number
  /** Tests read members of any shape. */
  readonly json: ReturnType<typeof JSON.parse>
}

/** `authorization`: '' for none. */
function get(path: string, authorization = ADMIN): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const ca = readFileSync(join(at.data, 'listener.pem'))
  const options = { host: '127.0.0.1', servername: 'localhost', port: PORT, ca, agent: false, path }
  request(
    { ...options, headers: { host: 'localhost', ...(authorization !== '' && { authorization }) } },
    async answer => {
      let text = ''
      for await (const piece of answer.setEncoding('utf8')) text += piece
      resolve({ status: answer.statusCode!, json: JSON.parse(text) })
    },
  )
    .on('error', reject)
    .end()
  return promise
}

async function reloadWith(toml: string): Promise<void> {
  configure(toml)
  const { outcome, errors, failures } = await reload(at)
  assert.deepEqual([outcome, errors, failures], ['applied', [], []])
}

const PORTAL = '/api/am/devportal/v3'

/** [deployment.toml, listed APIs] */
const LISTS: readonly (readonly [toml: string, listed: readonly string[]])[] = [
  ['', ['Orders 1.10.0']],
  ['[apim.devportal]\ndisplay_multiple_versions = true\n', ['Orders 1.10.0', 'Orders 1.9.0']],
  ['[apim.devportal]\ndisplay_deprecated_apis = true\n', ['Old 1.0.0', 'Orders 1.10.0']],
  [
    '[apim.devportal]\ndisplay_deprecated_apis = true\ndisplay_multiple_versions = true\n',
    ['Old 1.0.0', 'Orders 1.10.0', 'Orders 1.9.0'],
  ],
]

for (const [toml, listed] of LISTS) {
  test(`item 7: the developer portal lists ${listed.join(', ')} with ${JSON.stringify(toml)}`, async () => {
    await reloadWith(toml)
    const { json } = await get(`${PORTAL}/apis`)
    const names = json.list.map(({ name, version }: Record<string, string>) => `${name} ${version}`).sort()
    assert.deepEqual(
      names.filter((name: string) => !name.startsWith('Test ')),
      listed,
    )
  })
}

const ENVIRONMENT = `[[apim.gateway.environment]]
name = "Europe"
type = "production"
description = "The gateways in Europe"
https_endpoint = "https://eu.example:8253/"
http_endpoint = "http://eu.example:8290"
ws_endpoint = "ws://eu.example:9099"
[[apim.gateway.environment]]
name = "Hidden"
display_in_api_console = false
https_endpoint = "https://hidden.example"
ws_endpoint = "ws://hidden.example:9099"
[apim.oauth_config]
revoke_endpoint = "https://eu.example/revoke"
`

async function idOf(name: string): Promise<string> {
  const { json } = await get(`${PORTAL}/apis`)
  return json.list.find((api: Record<string, string>) => api.name === name)!.id
}

test('item 7: names and URLs of environments, and revoke_endpoint, appear in the portal', async () => {
  await reloadWith(ENVIRONMENT)
  const { json: api } = await get(`${PORTAL}/apis/${await idOf('Orders')}`)
  const path = '/orders/1.10.0'
  assert.deepEqual(api.endpointURLs, [
    {
      environmentName: 'Europe',
      environmentDisplayName: 'Europe',
      environmentType: 'production',
      URLs: {
        http: `http://eu.example:8290${path}`,
        https: `https://eu.example:8253${path}`,
        ws: `ws://eu.example:9099${path}`,
        wss: null,
      },
      defaultVersionURLs: {
        http: 'http://eu.example:8290/orders',
        https: 'https://eu.example:8253/orders',
        ws: 'ws://eu.example:9099/orders',
        wss: null,
      },
    },
  ])
  const { json: settings } = await get(`${PORTAL}/settings`)
  assert.equal(settings.apiGatewayEndpoint, 'http://eu.example:8290,https://eu.example:8253')
  const { json: managers } = await get(`${PORTAL}/key-managers`)
  assert.equal(managers.list[0].revokeEndpoint, 'https://eu.example/revoke')
  assert.equal(managers.list[0].tokenEndpoint, 'https://eu.example:8253/token')
  const { json: environments } = await get('/api/am/admin/v4/environments')
  assert.deepEqual(
    environments.list.map(({ name, description, showInApiConsole }: Record<string, unknown>) => [
      name,
      description,
      showInApiConsole,
    ]),
    [
      ['Europe', 'The gateways in Europe', true],
      ['Hidden', 'A hybrid gateway that takes production and sandbox keys.', false],
    ],
  )
})

test('item 7: show_as_token_endpoint_url chooses the environment of the token endpoint', async () => {
  const toml = ENVIRONMENT.replace('name = "Europe"', 'name = "Europe"\nshow_as_token_endpoint_url = false')
  await reloadWith(toml)
  const { json } = await get(`${PORTAL}/key-managers`)
  assert.equal(json.list[0].tokenEndpoint, 'https://hidden.example/token')
  await reloadWith(toml.replaceAll('name = "Hidden"', 'name = "Hidden"\nshow_as_token_endpoint_url = false'))
  const { json: none } = await get(`${PORTAL}/key-managers`)
  assert.equal(none.list[0].tokenEndpoint, `https://localhost:${PORT}/oauth2/token`)
})

test('item 7: without an environment, the portal shows the listeners of this node', async () => {
  await reloadWith('')
  const { json } = await get(`${PORTAL}/apis/${await idOf('Orders')}`)
  assert.equal(json.endpointURLs[0].environmentName, 'Default')
})

test('item 7: an API on hosts is shown with the addresses of its virtual host', async () => {
  const deployed = join(at.path, 'apis/Orders-1.10.0/deployment_environments.yaml')
  writeFileSync(
    deployed,
    'type: deployment_environments\ndata:\n- deploymentEnvironment: Default\n  deploymentVhost: v.example\n',
  )
  const row = '[[apim.gateway.environment]]\nhttps_endpoint = "https://eu.example"\nws_endpoint = "ws://eu.example"\n'
  await reloadWith(`${row}[[apim.gateway.environment.virtual_host]]\nhttps_endpoint = "https://v.example:8253"\n`)
  const { json } = await get(`${PORTAL}/apis/${await idOf('Orders')}`)
  assert.deepEqual(json.endpointURLs[0].URLs, {
    http: 'http://v.example/orders/1.10.0',
    https: 'https://v.example:8253/orders/1.10.0',
    ws: 'ws://v.example:9099/orders/1.10.0',
    wss: 'wss://v.example:8099/orders/1.10.0',
  })
  writeFileSync(deployed, 'type: deployment_environments\ndata: []\n')
})

for (const [toml, status] of [
  ['', 404],
  ['[user_store.properties]\nSCIMEnabled = true\n', 200],
  ['[user_store.properties]\nSCIMEnabled = "false"\n', 404],
] as const) {
  test(`item 7: /scim2 answers ${status} with ${JSON.stringify(toml)}`, async () => {
    await reloadWith(toml)
    const { status: answered, json } = await get('/scim2/Users')
    assert.equal(answered, status)
    if (status === 404) assert.match(JSON.stringify(json), /SCIMEnabled of \[user_store\.properties\] is false/)
  })
}

test('item 7: the health check answers without credentials, and follows a reload', async () => {
  const health = '/api/health-check/v1.0/health'
  await reloadWith('')
  assert.equal((await get(health, '')).status, 404)
  writeFileSync(join(at.path, 'check.js'), 'export function checkHealth() { return { queue: "empty" } }')
  await reloadWith('[carbon_health_check]\nenable = true\n[[health_checker]]\nname = "check.js"\n')
  const { status, json } = await get(health, '')
  assert.equal(status, 200)
  assert.deepEqual(json.health.slice(0, 2), [
    { key: 'queue', value: 'empty' },
    { key: 'database.apim_db', value: 'available' },
  ])
  configure('[carbon_health_check]\nenable = true\n[[health_checker]]\nname = "gone.js"\n')
  const { code, err, out } = await sluice(at, 'check')
  assert.equal(code, 78)
  assert.match(out + err, /health_checker\[0\]\.name = "gone\.js": gone\.js is not there/)
})
