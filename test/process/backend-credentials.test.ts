/** Credentials for protected backends in the real program: they reach the backend and nobody else. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { StrictBackend } from '../harness/strict-backend.ts'
import { openProject } from '../harness/open-project.ts'
import { home, leave, sluice, start } from '../harness/operator.ts'
import { connectPeer } from '../harness/peers.ts'
import { put } from '../harness/reloading.ts'
import { valuesOf } from '../harness/strict-http.ts'

const PASSWORD = 'planted-password'
const CLIENT_SECRET = 'planted-client-secret'
const TOKEN = 'planted-access-token'
const PLANTED = new RegExp(
  [PASSWORD, CLIENT_SECRET, TOKEN, Buffer.from(`u:${PASSWORD}`).toString('base64'), 'PRIVATE KEY'].join('|'),
)

let issued = `{"access_token":"${TOKEN}","token_type":"Bearer","expires_in":3600}`
const issuer = await StrictBackend.listen(() => {
  return `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${issued.length}\r\n\r\n${issued}`
})
const backend = await StrictBackend.listen()
after(async () => {
  await leave()
  issuer.close()
  backend.close()
})

function project(name: string, security: object): string {
  const endpoints = { url: `http://127.0.0.1:${backend.port}` }
  const endpointConfig = {
    endpoint_type: 'http',
    production_endpoints: endpoints,
    endpoint_security: { production: { enabled: true, ...security } },
  }
  return openProject({ name, context: `/${name.toLowerCase()}`, endpointConfig })
}

const BASIC = { type: 'BASIC', username: 'u', password: '$env{SLUICE_TEST_PASSWORD}' }
const OAUTH = {
  type: 'OAUTH',
  grantType: 'CLIENT_CREDENTIALS',
  tokenUrl: `http://127.0.0.1:${issuer.port}/token`,
  clientId: 'gateway',
  clientSecret: CLIENT_SECRET,
  scopes: ['read'],
}

const at = home()
put(at, 'apis/Basic/api.yaml', project('Basic', BASIC))
put(at, 'apis/Oauth/api.yaml', project('Oauth', OAUTH))
const env = { SLUICE_TEST_PASSWORD: PASSWORD }
process.env.SLUICE_TEST_PASSWORD = PASSWORD
const running = await start(at, ['apim.jwt.enable=true', 'logging.level=debug'], env)

async function ask(path: string): Promise<{ readonly text: string; readonly sent: readonly string[] }> {
  const peer = await connectPeer(running.port)
  peer.send(`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Basic client\r\n\r\n`)
  await peer.untilEnd()
  return { text: peer.text, sent: valuesOf(backend.requests.at(-1)?.lines ?? [], 'authorization') }
}

test('the backend gets the password of the project, read from the environment (RFC 7617)', async () => {
  const { text, sent } = await ask('/basic/a')
  assert.match(text, /^HTTP\/1\.1 200/)
  assert.deepEqual(sent, [`Basic ${Buffer.from(`u:${PASSWORD}`).toString('base64')}`])
})

test('a token of the client credentials grant is fetched once and reused (RFC 6749 4.4)', async () => {
  assert.deepEqual((await ask('/oauth/a')).sent, [`Bearer ${TOKEN}`])
  assert.deepEqual((await ask('/oauth/a')).sent, [`Bearer ${TOKEN}`])
  assert.equal(issuer.requests.length, 1)
  const form = new URLSearchParams(issuer.requests[0]!.body.toString())
  assert.deepEqual([form.get('grant_type'), form.get('scope')], ['client_credentials', 'read'])
})

test('a token that the backend refuses is replaced; a token endpoint that fails is 900424', async () => {
  const answer = backend.respond
  backend.respond = () => 'HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n'
  assert.match((await ask('/oauth/a')).text, /^HTTP\/1\.1 503 [\s\S]*"code":900424/)
  backend.respond = answer
  issued = '{"error":"unauthorized_client"}'
  assert.match((await ask('/oauth/a')).text, /^HTTP\/1\.1 503 [\s\S]*"code":900424/)
  await running.program.err.until(/no credentials for the backend/)
})

test('no planted secret is in output of commands, in the log, or in files that others can read', async () => {
  const commands = [['api', 'show', 'Basic'], ['api', 'show', 'Oauth'], ['api', 'list'], ['check'], ['reload']]
  const answers = await Promise.all(commands.map(words => sluice(at, ...words)))
  const said = JSON.stringify([answers, running.program.out.text, running.program.err.text])
  assert.doesNotMatch(said, PLANTED)
  assert.match(said, /production endpoints get a password/)
  const open = readdirSync(at.data).filter(name => (statSync(join(at.data, name)).mode & 0o077) !== 0)
  const readable = open.filter(name => statSync(join(at.data, name)).isFile())
  for (const name of readable) assert.doesNotMatch(readFileSync(join(at.data, name), 'latin1'), PLANTED, name)
})

test('the key of backend tokens is readable by its user only, and its public half is published', () => {
  assert.equal(statSync(join(at.data, 'backend-jwt-key.pem')).mode & 0o777, 0o600)
  assert.match(readFileSync(join(at.data, 'backend-jwt-public.pem'), 'utf8'), /BEGIN PUBLIC KEY/)
})
