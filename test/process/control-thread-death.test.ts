/** The control thread of a running gateway dies: reactors go on with what they know, and a replacement starts. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sendRequest } from '../harness/filter-chain.ts'
import { KeyManagerClient } from '../harness/key-manager-client.ts'
import { openProject } from '../harness/open-project.ts'
import { backend, home, leave, start } from '../harness/operator.ts'
import { connectPeer } from '../harness/peers.ts'
import { ask as askOnce, freePort } from '../harness/program.ts'
import { put, reload } from '../harness/reloading.ts'

/** So many that each of two reactors gets some of them. */
const CLIENTS = 16

const at = home()
const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: `http://127.0.0.1:${backend.port}` } }
const pets = { name: 'Pets', context: '/pets', endpointConfig, securityScheme: ['oauth2'] }
put(at, 'apis/Pets/api.yaml', openProject(pets))
const [port, managementPort] = [await freePort(), await freePort()]
const sets = ['management.enable=true', `management.port=${managementPort}`, 'transport.passthru_http.reactors=2']
const gateway = await start(at, [...sets, `transport.passthru_http.listener.parameters.port=${port}`], {
  SLUICE_TEST_HOOKS: '1',
})
const keyManager = new KeyManagerClient(at, managementPort)
const shop = await keyManager.register('OPAQUE')
const keys = [{ type: 'PRODUCTION', consumerKey: shop.consumerKey }]
put(
  at,
  'applications/shop.json',
  JSON.stringify({ name: 'Shop', keys, subscriptions: [{ api: 'Pets:1.0.0', tier: 'Unlimited' }] }),
)
assert.equal((await reload(gateway)).outcome, 'applied')
const clients = await Promise.all(Array.from({ length: CLIENTS }, () => connectPeer(port)))
after(async () => {
  for (const client of clients) client.destroy()
  await leave()
})

/** The distinct results of all clients. */
async function answers(token: string): Promise<readonly unknown[]> {
  const told = clients.map(async client => {
    const { body } = await sendRequest(client, 'GET /pets/1.0.0/', `Authorization: Bearer ${token}\r\n`)
    return body === 'ok' ? 'ok' : Number(JSON.parse(body).fault.code)
  })
  return [...new Set(await Promise.all(told))]
}

test('known tokens stay valid, every reactor gets a channel to the replacement, one error is logged', async () => {
  const [warm, cold] = [await keyManager.tokenOf(shop), await keyManager.tokenOf(shop)]
  assert.deepEqual(await answers(warm), ['ok'])

  assert.match(await askOnce(gateway.healthPort, 'POST', '/test/kill-control'), /^HTTP\/1\.1 200 /)
  await gateway.program.err.until(/"msg":"control thread died; a replacement starts"/)
  assert.deepEqual(await answers(warm), ['ok'])

  await gateway.program.err.until(/"msg":"control thread replaced"/)
  assert.deepEqual(await answers(cold), ['ok'])
  assert.deepEqual(await answers(`${cold}x`), [900901])
  await keyManager.revoke(warm, shop)
  assert.deepEqual(await answers(warm), [900901])
  assert.match(await askOnce(gateway.healthPort, 'GET', '/readyz'), /^HTTP\/1\.1 200 /)

  const complaints = gateway.program.events.filter(({ level }) => level === 'error' || level === 'warn')
  assert.deepEqual(
    complaints.map(({ CAUSE_OF_ERROR, PAUSE_MS }) => [CAUSE_OF_ERROR, PAUSE_MS]),
    [['control thread has ended with code 1', 0]],
  )
})
