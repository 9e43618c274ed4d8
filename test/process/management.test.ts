/** Management in the real program: listener, command line, /token on the gateway, and declared applications. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { parseArguments } from '../../src/cli/arguments.ts'
import { sendCommand } from '../../src/cli/control-client.ts'
import { manage } from '../../src/cli/management.ts'
import { argumentsFor, Transcript } from '../config/temporary-home.ts'
import { backend, home, leave, start } from '../harness/operator.ts'
import { freePort, type RunningGateway } from '../harness/program.ts'

const at = home(backend.port, 'new')
let gateway: RunningGateway
let managementPort = 0
/** Basic credentials with the password that the start has printed. */
let admin = ''

before(async () => {
  managementPort = await freePort()
  const orders = { name: 'Orders', version: '1.0.0', context: '/orders', policies: ['Gold'] }
  const { endpointConfig } = JSON.parse(readFileSync(join(at.path, 'apis/Test/api.yaml'), 'utf8')).data
  mkdirSync(join(at.path, 'apis/Orders'))
  const project = { type: 'api', version: 'v4.0.0', data: { ...orders, endpointConfig } }
  writeFileSync(join(at.path, 'apis/Orders/api.yaml'), JSON.stringify(project))
  gateway = await start(at, ['management.enable=true', `management.port=${managementPort}`])
})
after(leave)

/** Runs a command and parses its JSON output. */
async function sluice(line: string, password = ''): Promise<Readonly<Record<string, string>>> {
  const { command, args, options } = parseArguments([...line.split(' '), '--json'])
  const output = new Transcript()
  const complaints = new Transcript()
  const here = argumentsFor(at.path, { rest: args.rest, json: true, dataDir: at.data })
  const code = await manage(command, here, options, output, complaints, async () => password)
  assert.equal(code, 0, complaints.text)
  return JSON.parse(output.text)
}

function orders(token: string): Promise<Response> {
  return fetch(`http://127.0.0.1:${gateway.port}/orders/1.0.0/x`, { headers: { authorization: `Bearer ${token}` } })
}

async function codeOf(answer: Response): Promise<[number, string]> {
  const { fault } = (await answer.json()) as { readonly fault: { readonly code: string } }
  return [answer.status, String(fault.code)]
}

function tokenAt(path: string, authorization: string): Promise<Response> {
  const headers = { authorization, 'content-type': 'application/x-www-form-urlencoded' }
  const body = 'grant_type=client_credentials'
  return fetch(`http://127.0.0.1:${gateway.port}${path}`, { method: 'POST', headers, body })
}

function basicOf(name: string, password: string): string {
  return `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`
}

/** Over TLS, trusting the certificate that the start has made. */
function manageOver(path: string, authorization: string, body = ''): Promise<{ status: number; text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>()
  const ca = readFileSync(join(at.data, 'listener.pem'))
  const options = { host: '127.0.0.1', servername: 'localhost', port: managementPort, ca, agent: false, path }
  const headers = { host: 'localhost', authorization, 'content-type': 'application/json' }
  const sent = request({ ...options, method: body === '' ? 'GET' : 'POST', headers }, async answer => {
    let text = ''
    for await (const piece of answer.setEncoding('utf8')) text += piece
    resolve({ status: answer.statusCode!, text })
  })
  sent.on('error', reject).end(body)
  return promise
}

test('the start prints the address of management and the generated password of the admin', async () => {
  await gateway.program.said.until(
    new RegExp(`^management and key manager on https://localhost:${managementPort}$`, 'm'),
  )
  await gateway.program.said.until(/^password of admin: in the file admin-password /m)
  const password = readFileSync(join(gateway.home.data, 'admin-password'), 'utf8').trim()
  admin = basicOf('admin', password)
  const { status, text } = await manageOver('/api/am/publisher/v4/apis', admin)
  assert.equal(status, 200)
  assert.match(text, /"name":"Orders"/)
  assert.doesNotMatch(text, /TokenAPI/)
})

test('an application gets keys, subscribes and calls; a blocked subscription is refused at once', async () => {
  await sluice('application create Shop')
  const keys = await sluice('key generate Shop')
  const given = await tokenAt('/token', basicOf(keys.consumerKey!, keys.secret!))
  assert.equal(given.status, 200)
  const { access_token: token } = (await given.json()) as { readonly access_token: string }
  assert.deepEqual(await codeOf(await orders(token)), [403, '900908'])
  await sluice('subscription add Shop Orders:1.0.0')
  assert.equal((await orders(token)).status, 200)
  await sluice('subscription block Shop Orders:1.0.0')
  assert.equal((await codeOf(await orders(token)))[1], '900907')
  await sluice('subscription unblock Shop Orders:1.0.0')
  const { accessToken } = await sluice('token Shop')
  assert.equal((await orders(accessToken!)).status, 200)
})

test('/token passes on the refusal of wrong credentials, and takes POST only', async () => {
  const refused = await tokenAt('/token', basicOf('nobody', 'wrong'))
  assert.deepEqual(
    [refused.status, ((await refused.json()) as { readonly error: string }).error],
    [401, 'invalid_client'],
  )
  assert.equal((await fetch(`http://127.0.0.1:${gateway.port}/token`)).status, 405)
})

test('a token that revoke reads from standard input is refused with the next request', async () => {
  await sluice('application create Lost')
  await sluice('key generate Lost')
  await sluice('subscription add Lost Orders:1.0.0')
  const { accessToken } = await sluice('token Lost')
  assert.equal((await orders(accessToken!)).status, 200)
  const { revoked } = await sluice('revoke', accessToken)
  assert.equal(revoked, JSON.parse(Buffer.from(accessToken!.split('.')[1]!, 'base64url').toString()).jti)
  assert.deepEqual(await codeOf(await orders(accessToken!)), [401, '900901'])
})

test('a new user can get a generated password', async () => {
  const { password } = await sluice('user add carol --roles Internal/publisher')
  assert.match(password!, /^[\w-]{24}$/)
  assert.match(JSON.stringify(await sluice('user list')), /carol/)
  await sluice('user passwd carol', 'another-password')
  await sluice('user remove carol')
})

test('a declared application exists after a reload, until its file is removed', async () => {
  const client = {
    clientName: 'declared',
    owner: 'admin',
    grantType: 'client_credentials',
    callbackUrl: '',
    saasApp: true,
  }
  const { text } = await manageOver('/client-registration/v0.17/register', admin, JSON.stringify(client))
  const { clientId, clientSecret } = JSON.parse(text) as { readonly clientId: string; readonly clientSecret: string }
  const given = (await (await tokenAt('/token', basicOf(clientId, clientSecret))).json()) as {
    readonly access_token: string
  }
  const status = async () => (await orders(given.access_token)).status
  assert.equal(await status(), 403)
  const folder = join(at.path, 'applications')
  mkdirSync(folder)
  const reload = () =>
    sendCommand<{ readonly outcome: string; readonly errors: readonly object[] }>(at.data, { command: 'reload' })
  writeFileSync(join(folder, 'declared.yaml'), 'name: Declared\ncolour: red\n')
  const refused = await reload()
  assert.equal(refused.outcome, 'refused')
  assert.match(JSON.stringify(refused.errors), /declared\.yaml:2/)
  const subscriptions = [{ api: 'Orders:1.0.0', tier: 'Gold' }]
  const declared = { name: 'Declared', keys: [{ consumerKey: clientId }], subscriptions }
  writeFileSync(join(folder, 'declared.yaml'), JSON.stringify(declared))
  assert.equal((await reload()).outcome, 'applied')
  assert.match(JSON.stringify(await sluice('application list')), /"Declared"/)
  assert.equal(await status(), 200)
  rmSync(folder, { recursive: true })
  await reload()
  assert.doesNotMatch(JSON.stringify(await sluice('application list')), /"Declared"/)
  assert.equal(await status(), 403)
})
