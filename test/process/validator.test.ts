/** The custom validator of the operator in the real program: one that hangs harms requests of its token alone. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { openProject } from '../harness/open-project.ts'
import { backend, dial, home, leave, managed, start } from '../harness/operator.ts'
import type { Peer } from '../harness/peers.ts'
import { freePort } from '../harness/program.ts'
import { put, reload } from '../harness/reloading.ts'
import { takeResponse } from '../harness/responses.ts'

after(leave)

const LOOP = 'for (;;) {}'
const CUSTOM =
  '[apim.key_manager]\nkey_validation_handler_type = "custom"\nkey_validation_handler_impl = "validate.mjs"\n'
/** The default: a hang computes for so long. */
const LIMIT_MS = 500

/** Starts a gateway with one reactor, a secured API and this module; returns it with a token. */
async function startWith(code: string) {
  const at = home()
  const production_endpoints = { url: `http://127.0.0.1:${backend.port}` }
  const endpointConfig = { endpoint_type: 'http', production_endpoints }
  const operations = ['good', 'bad', 'other'].map(name => ({ target: `/${name}`, verb: 'GET' }))
  put(
    at,
    'apis/Pets/api.yaml',
    openProject({ name: 'Pets', context: '/pets', endpointConfig, operations, securityScheme: ['oauth2'] }),
  )
  put(at, 'validate.mjs', code)
  put(at, 'deployment.toml', CUSTOM)
  const sets = ['transport.passthru_http.reactors=1', `mediation.handlers.synchronous_timeout=${LIMIT_MS}ms`]
  // The replacement of a reactor listens on the same port.
  const port = await freePort()
  const own = ['management.enable=true', `transport.passthru_http.listener.parameters.port=${port}`]
  const gateway = await start(at, [...sets, ...own])
  for (const words of ['application create Shop', 'key generate Shop', 'subscription add Shop Pets:1.0.0']) {
    await managed(at, ...words.split(' '))
  }
  const token = (await managed(at, 'token', 'Shop')).trim()
  const ask = async (client: Peer, path: string): Promise<string> => {
    client.send(`GET /pets/1.0.0/${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`)
    const { status, body } = await takeResponse(client)
    return status === 200 ? 'ok' : `${status} ${JSON.parse(body).fault.code}`
  }
  return { at, gateway, ask }
}

test('a key validation handler that hangs harms the operation of its token alone, and hangs once', async () => {
  const { gateway, ask } = await startWith(
    `export function validate({ resource, builtIn }) { if (resource === '/bad') ${LOOP} ; return builtIn }`,
  )
  const [client, other] = [await dial(gateway), await dial(gateway)]
  assert.equal(await ask(other, 'good'), 'ok')
  const ended = (): number => gateway.program.err.text.match(/ValidatorHung: it was ended/g)?.length ?? 0
  // Beside other programs it may have waited for a processor; then it is called again.
  do {
    const asked = ask(other, 'good')
    assert.equal(await ask(client, 'bad'), '500 900900')
    assert.equal(await asked, 'ok')
    await setTimeout(100)
  } while (ended() === 0)
  for (let time = 0; time < 3; time++) assert.equal(await ask(client, 'bad'), '500 900900')
  assert.equal(await ask(client, 'other'), 'ok')
  assert.equal(ended(), 1)
  assert.doesNotMatch(gateway.program.err.text, /reactor died/)
})

for (const [what, code, result, cause] of [
  ['waits for a program', "execSync('sleep 60')", '500 900900', 'execSync would stop this reactor .*asynchronous form'],
  ['exits', 'process.exit(1)', '500 900900', 'a module cannot end its reactor'],
  ['leaves a promise that rejects', 'void Promise.reject(new Error())', 'ok', 'key validation handler failed'],
  ['leaves a timer that throws', 'setTimeout(() => { throw new Error() })', 'ok', 'key validation handler failed'],
  ['leaves a timer that loops', `setTimeout(() => { ${LOOP} })`, 'ok', 'it was ended'],
] as const) {
  test(`a key validation handler that ${what} keeps its reactor`, async () => {
    const { gateway, ask } = await startWith(`import { execSync } from 'node:child_process'
      export function validate({ resource, builtIn }) { if (resource === '/bad') ${code} ; return builtIn }`)
    const client = await dial(gateway)
    assert.equal(await ask(client, 'bad'), result)
    await gateway.program.err.until(new RegExp(cause))
    assert.equal(await ask(client, 'good'), 'ok')
    assert.doesNotMatch(gateway.program.err.text, /reactor died/)
  })
}

test('a key validation handler that a reload brings is guarded too', async () => {
  const { at, gateway, ask } = await startWith('export const validate = ({ builtIn }) => builtIn')
  const client = await dial(gateway)
  assert.equal(await ask(client, 'bad'), 'ok')
  put(
    at,
    'other.mjs',
    `export function validate({ resource, builtIn }) { if (resource === '/bad') ${LOOP} ; return builtIn }`,
  )
  put(at, 'deployment.toml', CUSTOM.replace('validate.mjs', 'other.mjs'))
  await reload(gateway)
  assert.equal(await ask(client, 'bad'), '500 900900')
  assert.equal(await ask(client, 'good'), 'ok')
  assert.doesNotMatch(gateway.program.err.text, /reactor died/)
})
