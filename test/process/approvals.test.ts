/** `[apim.workflow]` in the real program: 900909 until a subscription is approved, by command, REST and an engine. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { MisbehavingServer } from '../control/remote/misbehaving-server.ts'
import { eventually } from '../harness/peers.ts'
import { backend, home, leave, managed, sluice, start } from '../harness/operator.ts'
import { freePort, type RunningGateway } from '../harness/program.ts'
import { put, reload } from '../harness/reloading.ts'

const at = home(backend.port, 'new')
const engine = await MisbehavingServer.listen()
let gateway: RunningGateway
let managementPort = 0
/** Basic credentials of the super admin. */
let admin = ''

/** `[apim.workflow]` with further lines. */
function workflow(...lines: readonly string[]): string {
  return ['[apim.workflow]', 'enable = true', `service_url = "${engine.origin}/bpmn"`, ...lines, ''].join('\n')
}

before(async () => {
  managementPort = await freePort()
  const orders = { name: 'Orders', version: '1.0.0', context: '/orders', policies: ['Gold'] }
  const { endpointConfig } = JSON.parse(readFileSync(join(at.path, 'apis/Test/api.yaml'), 'utf8')).data
  mkdirSync(join(at.path, 'apis/Orders'))
  const project = { type: 'api', version: 'v4.0.0', data: { ...orders, endpointConfig } }
  writeFileSync(join(at.path, 'apis/Orders/api.yaml'), JSON.stringify(project))
  put(at, 'deployment.toml', workflow('approve_applications = false', 'approve_keys = false'))
  gateway = await start(at, ['management.enable=true', `management.port=${managementPort}`])
  await gateway.program.said.until(/^password of admin: in the file admin-password /m)
  const password = readFileSync(join(at.data, 'admin-password'), 'utf8').trim()
  admin = `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`
})
after(async () => {
  engine.close()
  await leave()
})

async function said(command: string): Promise<string> {
  return managed(at, ...command.split(' '))
}

async function codeOf(token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(`http://127.0.0.1:${gateway.port}/orders/1.0.0/x`, { headers })
  const text = await response.text()
  return response.ok ? 0 : Number(JSON.parse(text).fault.code)
}

/** An application with keys and a token. */
async function application(name: string): Promise<string> {
  await said(`application create ${name}`)
  await said(`key generate ${name}`)
  return (await said(`token ${name}`)).trim()
}

interface Process {
  readonly processDefinitionKey: string
  readonly businessKey: string
  readonly variables: Readonly<Record<string, string>>
}

/** The process that the engine was asked for about an application. */
async function started(name: string): Promise<Process & { readonly authorization: string; readonly path: string }> {
  const found = () => engine.received.find(({ body }) => body.includes(`"value":"${name}"`))
  await eventually('the call of the engine', () => found() !== undefined)
  const { body, authorization, path } = found()!
  const { variables, ...rest } = JSON.parse(body)
  const values = variables.map((each: { name: string; value: string }) => [each.name, each.value])
  return { ...rest, variables: Object.fromEntries(values), authorization, path }
}

/** Posts JSON over TLS, trusting the certificate that the start has made. */
function post(url: string, body: object): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const { hostname, pathname, search, port } = new URL(url)
  const ca = readFileSync(join(at.data, 'listener.pem'))
  const headers = { authorization: admin, 'content-type': 'application/json', host: `${hostname}:${port}` }
  const options = { host: '127.0.0.1', servername: 'localhost', port, ca, agent: false, path: `${pathname}${search}` }
  const sent = request({ ...options, method: 'POST', headers }, response => {
    response.resume()
    resolve(response.statusCode!)
  })
  sent.on('error', reject).end(JSON.stringify(body))
  return promise
}

test('900909 until `subscription approve`, and after `subscription reject`', async () => {
  const token = await application('Shop')
  assert.equal(await codeOf(token), 900908)
  assert.match(await said('subscription add Shop Orders:1.0.0'), /ON_HOLD/)
  assert.equal(await codeOf(token), 900909)
  await said('subscription approve Shop Orders:1.0.0 --reason known')
  assert.equal(await codeOf(token), 0)
  const other = await application('Kiosk')
  await said('subscription add Kiosk Orders:1.0.0')
  await said('subscription reject Kiosk Orders:1.0.0')
  assert.equal(await codeOf(other), 900909)
  const { code, err } = await sluice(at, 'subscription', 'unblock', 'Kiosk', 'Orders:1.0.0')
  assert.equal(code, 1)
  assert.match(err, /the subscription is REJECTED/)
})

test('the engine is called with the request, and decides by its callback', async () => {
  const token = await application('Van')
  await said('subscription add Van Orders:1.0.0')
  const { path, authorization, processDefinitionKey, businessKey, variables } = await started('Van')
  assert.equal(path, '/bpmn/runtime/process-instances')
  assert.equal(authorization, admin)
  assert.equal(processDefinitionKey, 'AM_SUBSCRIPTION_CREATION')
  const { callbackUrl, tokenEndpoint, clientRegistrationEndpoint, ...about } = variables
  assert.deepEqual(about, {
    ...{ applicationName: 'Van', apiName: 'Orders', apiVersion: '1.0.0', apiContext: '/orders/1.0.0', tier: 'Gold' },
    ...{ requester: 'admin', tenant: 'carbon.super', workflowReferenceId: businessKey },
  })
  const origin = `https://localhost:${managementPort}`
  assert.equal(callbackUrl, `${origin}/api/am/publisher/v0.15/workflows/update-workflow-status`)
  assert.equal(clientRegistrationEndpoint, `${origin}/client-registration/v0.15/register`)
  // The test's gateway has no TLS port.
  assert.equal(tokenEndpoint, `${origin}/oauth2/token`)
  assert.equal(await codeOf(token), 900909)
  const decision = { status: 'APPROVED', attributes: {}, description: 'by the engine' }
  assert.equal(await post(`${callbackUrl}?workflowReferenceId=${businessKey}`, decision), 200)
  assert.equal(await codeOf(token), 0)
})

test('administrators decide by REST', async () => {
  const token = await application('Stall')
  await said('subscription add Stall Orders:1.0.0')
  const { businessKey } = await started('Stall')
  const path = '/api/am/admin/v4/workflows/update-workflow-status'
  const url = `https://localhost:${managementPort}${path}?workflowReferenceId=${businessKey}`
  assert.equal(await post(url, { status: 'REJECTED' }), 200)
  assert.equal(await codeOf(token), 900909)
  assert.equal(await post(url, { status: 'APPROVED' }), 409)
})

test('the keys of [apim.workflow] are live: applications and keys wait, and no engine is called', async () => {
  put(at, 'deployment.toml', workflow('call_engine = false', 'approve_subscriptions = false'))
  assert.equal((await reload(gateway)).outcome, 'applied')
  const before = engine.received.length
  assert.match(await said('application create Cart'), /CREATED/)
  const refused = await sluice(at, 'key', 'generate', 'Cart')
  assert.match(refused.err, /Cart waits for approval/)
  await said('application approve Cart')
  assert.match(await said('key generate Cart'), /status +CREATED/)
  await said('key approve Cart')
  assert.match(await said('key generate Cart'), /secret/)
  await said('subscription add Cart Orders:1.0.0')
  assert.equal(await codeOf((await said('token Cart')).trim()), 0)
  assert.equal(engine.received.length, before)
})
