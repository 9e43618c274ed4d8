/** Authentication in the real program: tokens of its key manager, subscriptions, live keys, and a custom validator. */
import assert from 'node:assert/strict'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { sendRequest } from '../harness/filter-chain.ts'
import { openProject } from '../harness/open-project.ts'
import { backend, home, leave, managed, start } from '../harness/operator.ts'
import { connectPeer } from '../harness/peers.ts'
import { put, reload } from '../harness/reloading.ts'

const OPERATIONS = [
  { target: '/any', verb: 'GET' },
  { target: '/scoped', verb: 'GET', scopes: ['device_read'] },
  { target: '/other', verb: 'GET', scopes: ['other'] },
  // A name that every object has.
  { target: '/inherited', verb: 'GET', scopes: ['constructor'] },
  { target: '/private', verb: 'GET' },
  { target: '/lent', verb: 'GET', scopes: ['lent'] },
]
const VALIDATOR = `export function validate({ token, api, resource, verb, builtIn }) {
  if (resource === '/private') return { allowed: false, code: 900910 }
  if (resource === '/lent') return { allowed: api.name === 'Pets' && verb === 'GET' && token.consumerKey !== '' }
  return builtIn
}
`
const CUSTOM = '[apim.key_manager]\nkey_validation_handler_type = "custom"\nkey_validation_handler_impl = "FILE"\n'

const at = home()
const production_endpoints = { url: `http://127.0.0.1:${backend.port}` }
const endpointConfig = { endpoint_type: 'http', production_endpoints }
const pets = { name: 'Pets', context: '/pets', endpointConfig, operations: OPERATIONS, securityScheme: ['oauth2'] }
put(at, 'apis/Pets/api.yaml', openProject(pets))
put(at, 'validate.js', VALIDATOR)
put(at, 'deployment.toml', CUSTOM.replace('FILE', 'validate.js'))
const gateway = await start(at, ['management.enable=true'])
after(leave)

async function said(command: string): Promise<string> {
  return (await managed(at, ...command.split(' '))).trim()
}

async function codeOf(path: string, fields = ''): Promise<number> {
  const client = await connectPeer(gateway.port)
  const { body } = await sendRequest(client, `GET /pets/1.0.0${path}`, fields)
  client.destroy()
  return body === 'ok' ? 0 : (JSON.parse(body).fault.code as number)
}

await said('application create Shop')
await said('key generate Shop')
const token = `Bearer ${await said('token Shop')}`

test('a token of the key manager is accepted on the APIs that its application is subscribed to', async () => {
  const fields = `Authorization: ${token}\r\n`
  assert.equal(await codeOf('/any'), 900902)
  assert.equal(await codeOf('/any', fields), 900908)
  await said('subscription add Shop Pets:1.0.0')
  assert.equal(await codeOf('/any', fields), 0)
  assert.equal(await codeOf('/scoped', fields), 0)
  assert.equal(await codeOf('/other', fields), 900910)
  assert.equal(await codeOf('/inherited', fields), 900910)
  await said('subscription block Shop Pets:1.0.0')
  assert.equal(await codeOf('/any', fields), 900907)
  await said('subscription unblock Shop Pets:1.0.0')
})

test('key_validation_handler_impl can refuse a valid token', async () => {
  assert.equal(await codeOf('/private', `Authorization: ${token}\r\n`), 900910)
})

test('key_validation_handler_impl can allow what the built-in checks refuse, until it is taken away', async () => {
  await said('subscription remove Shop Pets:1.0.0')
  assert.equal(await codeOf('/lent', `Authorization: ${token}\r\n`), 0)
  assert.equal(await codeOf('/any', `Authorization: ${token}\r\n`), 900908)
  const forged = `${token.slice(0, -8)}AAAAAAAA`
  assert.equal(await codeOf('/lent', `Authorization: ${forged}\r\n`), 900901)
  put(at, 'deployment.toml', '')
  assert.equal((await reload(gateway)).outcome, 'applied')
  assert.equal(await codeOf('/lent', `Authorization: ${token}\r\n`), 900908)
  await said('subscription add Shop Pets:1.0.0')
  assert.equal(await codeOf('/lent', `Authorization: ${token}\r\n`), 900910)
})

test('auth_header, allowed_scopes and key_validation_handler_type are live', async () => {
  put(at, 'deployment.toml', '[apim.oauth_config]\nauth_header = "X-Token"\nallowed_scopes = ["other"]\n')
  assert.equal((await reload(gateway)).outcome, 'applied')
  const fields = `X-Token: ${token}\r\n`
  assert.equal(await codeOf('/any', `Authorization: ${token}\r\n`), 900902)
  const codes = ['/any', '/private', '/other', '/scoped'].map(path => codeOf(path, fields))
  assert.deepEqual(await Promise.all(codes), [0, 0, 0, 900910])
})

test('a module outside of the home folder refuses a reload', async () => {
  symlinkSync(import.meta.filename, join(at.path, 'outside.js'))
  put(at, 'deployment.toml', CUSTOM.replace('FILE', 'outside.js'))
  const { outcome, errors } = await reload(gateway)
  assert.equal(outcome, 'refused')
  assert.match(errors[0]!.expected, /^outside\.js is outside of the configuration folder$/)
})
