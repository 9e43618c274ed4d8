/** Backends that are the gateway itself: a request that comes back too often ends with 508 (RFC 9110 7.6.3). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { viaEntriesOf } from '../../src/http1/forwarded.ts'
import { flowsOf, set } from '../harness/flows.ts'
import { startGateway, type TestApi, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, ScriptedBackend } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'

async function ask(port: number, path: string, fields = '') {
  const client = await connectPeer(port)
  client.send(`GET ${path} HTTP/1.1\r\nHost: h\r\n${fields}\r\n`)
  const response = await takeResponse(client)
  client.destroy()
  return response
}

/** Starts a gateway of which every API has the gateway itself as its backend. */
async function startLoop(apis: readonly Omit<TestApi, 'port'>[]): Promise<TestGateway> {
  const gateway = await startGateway(apis.map(api => ({ ...api, port: 1 })))
  await gateway.deploy({ apis: apis.map(api => ({ ...api, port: gateway.port })) })
  return gateway
}

const SELF: readonly (readonly [what: string, texts: Parameters<typeof flowsOf>[0] | null])[] = [
  ['messages that pass', null],
  ['messages of a flow of heads', { request: set('x-a', 'b') }],
  [
    'messages of a flow on a worker',
    { request: '<payloadFactory media-type="json"><format>{}</format></payloadFactory>' },
  ],
]

for (const [what, texts] of SELF) {
  test(`7.6.3: an API whose backend is the gateway itself ends with 508: ${what}`, async t => {
    const mediation = texts === null ? null : await flowsOf(texts)
    const gateway = await startLoop([{ context: '/self', basePath: '/self', overrides: { mediation } }])
    t.after(() => gateway.stop())
    const { status, body } = await ask(gateway.port, '/self')
    assert.equal(status, 508)
    assert.match(body, /"code":102512/)
    assert.equal(gateway.reports.filter(({ event }) => event === 'request loop').length, 1)
  })
}

test('7.6.3: ten APIs of one gateway may call each other in a row', async t => {
  const backend = await ScriptedBackend.listen(peer => peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'))
  t.after(() => backend.close())
  const names = Array.from({ length: 11 }, (_, at) => `/hop${at}`)
  const chain = names.map((context, at) => ({ context, basePath: names[at + 1] ?? '/end' }))
  const gateway = await startGateway(chain.map(api => ({ ...api, port: backend.port })))
  t.after(() => gateway.stop())
  await gateway.deploy({ apis: chain.slice(0, -1).map(api => ({ ...api, port: gateway.port })) })
  assert.equal((await ask(gateway.port, '/hop0')).status, 200)
  assert.equal(backend.peers[0]!.text.match(/^Via: 1\.1 sluice\r$/gm)?.length, 11)
})

test('7.6.3: entries of other gateways count for nothing', async t => {
  const backend = await ScriptedBackend.listen(peer => peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'))
  const gateway = await startGateway([{ context: '/a', port: backend.port }], { pseudonym: 'sluice-0a1b' })
  t.after(() => {
    gateway.stop()
    backend.close()
  })
  const others = 'Via: 1.1 sluice-0a1c, 1.0 sluice\r\n'.repeat(20)
  assert.equal((await ask(gateway.port, '/a', others)).status, 200)
  assert.match(backend.peers[0]!.text, /^Via: 1\.1 sluice-0a1b\r$/m)
  assert.equal((await ask(gateway.port, '/a', 'Via: 1.1 sluice-0a1b\r\n'.repeat(11))).status, 508)
})

const LISTS: readonly (readonly [list: string, entries: number])[] = [
  ['', 0],
  ['1.1 own', 1],
  ['1.1 OWN (a comment), HTTP/1.1\town', 2],
  ['1.1 owner, 1.1 an-own, own, 1.1 other (own)', 0],
  ['1.1 own,,1.0   own ', 2],
]

test('7.6.3: an entry of Via is a version, a recipient and a comment', () => {
  for (const [list, entries] of LISTS) assert.equal(viaEntriesOf(list, 'own'), entries, list)
})
