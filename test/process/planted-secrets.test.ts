/**
 * Recognisable secrets in configuration, projects, users, clients and requests. None may appear in anything that the
 * program prints: events at level trace, access log, responses, output of commands, and after a crash or a failed
 * start.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { check } from '../../src/cli/check.ts'
import { explain } from '../../src/cli/explain.ts'
import { argumentsFor, Transcript } from '../config/temporary-home.ts'
import { StrictBackend } from '../harness/strict-backend.ts'
import { openProject } from '../harness/open-project.ts'
import { begin, home, leave, sluice, start } from '../harness/operator.ts'
import { ask as askFor, launch } from '../harness/program.ts'
import { put, reload } from '../harness/reloading.ts'

const MARK = 'geheim'
/** The secrets in base64, at each of the three alignments. */
const CODED = new RegExp(
  [0, 1, 2]
    .map(before =>
      Buffer.from(`${' '.repeat(before)}${MARK}`)
        .toString('base64')
        .slice(before === 0 ? 0 : before + 1, 8),
    )
    .join('|'),
)
const planted = (where: string): string => `${MARK}-${where}-4711`

const backend = await StrictBackend.listen()
const at = home(undefined, 'new')
const security = (more: object) => ({ endpoint_security: { production: { enabled: true, ...more } } })
const production_endpoints = { url: `http://127.0.0.1:${backend.port}` }
const endpointConfig = { endpoint_type: 'http', production_endpoints }
put(
  at,
  'apis/Shop/api.yaml',
  openProject({ name: 'Shop', context: '/shop', endpointConfig, securityScheme: ['oauth2'] }),
)
put(
  at,
  'apis/Basic/api.yaml',
  openProject({
    name: 'Basic',
    context: '/basic',
    endpointConfig: { ...endpointConfig, ...security({ type: 'BASIC', username: 'u', password: planted('endpoint') }) },
  }),
)
put(
  at,
  'apis/Oauth/api.yaml',
  openProject({
    name: 'Oauth',
    context: '/oauth',
    endpointConfig: {
      ...endpointConfig,
      ...security({
        type: 'OAUTH',
        grantType: 'CLIENT_CREDENTIALS',
        // Nobody listens there: the failure is logged, without the request.
        tokenUrl: 'http://127.0.0.1:1/token',
        clientId: 'gateway',
        clientSecret: planted('client'),
      }),
    },
  }),
)
const CONFIGURATION = `[logging]
level = "trace"
[access_log]
target = "file"
[super_admin]
password = "${planted('admin')}"
[transport.passthru_https]
"sender.key_store.password" = "${planted('store')}"
[[transport.http.proxy_profile]]
target_hosts = ["*.invalid"]
proxy_host = "127.0.0.1"
proxy_port = 1
proxy_username = "u"
proxy_password = "${planted('proxy')}"
[apim.notification]
from_address = "a@shop.invalid"
username = "u"
password = "${planted('mail')}"
hostname = "mail.invalid"
[user_store.properties]
SCIMEnabled = true
[apim.workflow]
enable = true
wf_engine_pass = "${planted('engine')}"
client_registration_password = "${planted('registration')}"
`
put(at, 'deployment.toml', CONFIGURATION)

/** Secrets that are generated during the tests. */
const made: string[] = []
/** Everything that somebody could read. */
const seen: [where: string, text: string][] = []

const gateway = await start(at, ['management.enable=true', 'management.port=0'], { SLUICE_TEST_HOOKS: '1' })
after(async () => {
  await leave()
  backend.close()
})
const [, managementPort] = await gateway.program.said.until(/^management and key manager on https:\/\/\S+:(\d+)$/m)

function basicOf(name: string, password: string): string {
  return `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`
}

/** Port of the management listener. */
async function call(path: string, fields: Readonly<Record<string, string>>, body = ''): Promise<string> {
  const options = { host: '127.0.0.1', servername: 'localhost', port: Number(managementPort), agent: false, path }
  const ca = readFileSync(join(at.data, 'listener.pem'))
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const headers = { host: 'localhost', ...fields }
  const sent = request({ ...options, ca, method: body === '' ? 'GET' : 'POST', headers }, async answer => {
    let text = `${answer.statusCode} ${JSON.stringify(answer.rawHeaders)} `
    for await (const piece of answer.setEncoding('utf8')) text += piece
    resolve(text)
  })
  sent.on('error', reject).end(body)
  return promise
}

/** The output of a command is for its user. */
async function told(...words: string[]): Promise<string> {
  const { code, out, err } = await sluice(at, ...words)
  assert.equal(code, 0, err)
  seen.push([`complaints of ${words.join(' ')}`, err])
  return out
}

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

async function viaGateway(path: string, fields: Readonly<Record<string, string>> = {}): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${gateway.port}${path}`, { headers: fields })
  seen.push([`answer to ${path}`, `${JSON.stringify([...answer.headers])} ${await answer.text()}`])
  return answer.status
}

test('applications, clients, tokens and keys are created, used and misused', async () => {
  await told('application', 'create', 'Buyer')
  await told('application', 'approve', 'Buyer')
  await told('subscription', 'add', 'Buyer', 'Shop:1.0.0')
  await told('subscription', 'approve', 'Buyer', 'Shop:1.0.0')
  await told('key', 'generate', 'Buyer')
  await told('key', 'approve', 'Buyer')
  const keys = JSON.parse(await told('key', 'generate', 'Buyer', '--json')) as { consumerKey: string; secret: string }
  const token = (await told('token', 'Buyer')).trim()
  const apiKey = JSON.parse(await told('key', 'api', 'Buyer', '--json')) as { apiKey: string }
  made.push(keys.secret, token, apiKey.apiKey)
  assert.equal(await viaGateway('/shop/1.0.0/x', { authorization: `Bearer ${token}` }), 200)
  assert.equal(await viaGateway('/shop/1.0.0/x', { authorization: `Bearer ${planted('token')}` }), 401)
  assert.equal(await viaGateway(`/shop/1.0.0/x?apikey=${apiKey.apiKey}&access_token=${planted('query')}`), 401)
  assert.equal(await viaGateway('/basic/1.0.0/x'), 200)
  assert.ok((await viaGateway('/oauth/1.0.0/x')) >= 500)

  const client = basicOf(keys.consumerKey, keys.secret)
  const issued = await call('/oauth2/token', { ...FORM, authorization: client }, 'grant_type=client_credentials')
  assert.match(issued, /^200 /)
  made.push(/"access_token":"([^"]+)"/.exec(issued)![1]!)
  const wrongs: readonly (readonly [string, Readonly<Record<string, string>>, string])[] = [
    ['/oauth2/token', { ...FORM, authorization: basicOf(keys.consumerKey, planted('guess')) }, 'grant_type=x'],
    [
      '/oauth2/token',
      { ...FORM, authorization: client },
      `grant_type=password&username=u&password=${planted('grant')}`,
    ],
    [
      '/oauth2/token',
      { ...FORM, authorization: client },
      `grant_type=refresh_token&refresh_token=${planted('refresh')}`,
    ],
    ['/oauth2/token', { ...FORM, authorization: client }, `grant_type=authorization_code&code=${planted('code')}`],
    ['/oauth2/introspect', { ...FORM, authorization: client }, `token=${planted('introspected')}`],
    ['/oauth2/revoke', { ...FORM, authorization: client }, `token=${planted('revoked')}`],
    ['/oauth2/userinfo', { authorization: `Bearer ${planted('bearer')}` }, ''],
    ['/api/am/publisher/v4/apis', { authorization: basicOf('admin', planted('guess')) }, ''],
  ]
  for (const [path, fields, body] of wrongs) seen.push([`answer to ${path} ${body}`, await call(path, fields, body)])
})

test('responses of the admin API contain no secret', async () => {
  const admin = basicOf('admin', planted('admin'))
  const portal = '/api/am/devportal/v3'
  const list = await call(`${portal}/applications`, { authorization: admin })
  assert.match(list, /^200 /)
  const id = /"applicationId":"([^"]+)"/.exec(list)![1]
  const json = { authorization: admin, 'content-type': 'application/json' }
  const user = JSON.stringify({ userName: 'mia', password: planted('user') })
  seen.push(
    ['applications', list],
    ['keys', await call(`${portal}/applications/${id}/oauth-keys`, { authorization: admin })],
    ['subscriptions', await call(`${portal}/subscriptions?applicationId=${id}`, { authorization: admin })],
    ['apis', await call('/api/am/publisher/v4/apis', { authorization: admin })],
    ['a user', await call('/scim2/Users', json, user)],
    ['users', await call('/scim2/Users', { authorization: admin })],
  )
})

test('commands print no secret', async () => {
  for (const [name, run] of [
    ['explain', explain],
    ['check', check],
  ] as const) {
    const output = new Transcript()
    await run(argumentsFor(at.path, { dataDir: at.data }), output as never)
    seen.push([name, output.text])
  }
  for (const api of ['Shop', 'Basic', 'Oauth']) seen.push([`api show ${api}`, await told('api', 'show', api, '--json')])
  seen.push(['endpoints', await told('endpoints', '--json')], ['keys', await told('key', 'list', 'Buyer', '--json')])
})

test('a refused reload, a reactor that dies and a failed start print no secret', async () => {
  const url = `jdbc:postgresql://127.0.0.1:1/x?password=${planted('url')}`
  const credentials = `username = "u"\npassword = "${planted('database')}"\n`
  const database = `[database.apim_db]\ntype = "postgre"\nurl = "${url}"\n${credentials}`
  put(at, 'deployment.toml', `${CONFIGURATION}${database}[server]\noffset = "$ref{super_admin.password}"\n`)
  seen.push(['reload', JSON.stringify(await reload(gateway))])
  await askFor(gateway.healthPort, 'POST', '/test/kill')
  await gateway.program.err.until(/"msg":"reactor replaced"/)
  const other = home()
  put(other, 'deployment.toml', CONFIGURATION + database)
  const failing = launch(other, ['management.enable=true', 'management.port=0'])
  const { code } = await failing.exited
  assert.notEqual(code, 0)
  seen.push(['the start that fails', failing.out.text + failing.err.text])
  assert.ok(failing.err.text.length > 0)
  const dead = begin(other, 'api', 'list')
  await dead.exited
  seen.push(['a command that nobody answers', dead.out.text + dead.err.text])
})

test('no output contains a secret', () => {
  const { program } = gateway
  seen.push(['events', program.err.text], ['standard output', program.out.text])
  seen.push(['access log', readFileSync(join(at.data, 'access.log'), 'utf8')])
  assert.ok(program.err.text.includes('"level":"trace"') || program.err.text.includes('"level":"debug"'))
  assert.ok(made.every(secret => secret.length > 10))
  for (const [where, text] of seen) {
    const plain = text.indexOf(MARK)
    assert.equal(plain, -1, `${where}: ${text.slice(Math.max(0, plain - 200), plain + 60)}`)
    assert.doesNotMatch(text, CODED, where)
    const secret = made.findIndex(one => text.includes(one))
    assert.equal(secret, -1, `${where} holds what was made as number ${secret}`)
  }
})
