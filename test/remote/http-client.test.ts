/** Requests of the authority: where they may go, how many there are, how long they take. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { InquiryFailed } from '../../src/identity/identity-state.ts'
import { HttpClient } from '../../src/remote/http-client.ts'
import { CA, SERVER } from '../harness/certificates.ts'
import { json, MisbehavingServer } from './misbehaving-server.ts'

type Settings = ConstructorParameters<typeof HttpClient>[0]
const SETTINGS: Settings = { requestsMax: 100, perHostMax: 50, idleMax: 100, trust: {}, ownCertificates: [] }
const server = await MisbehavingServer.listen()
const clients: HttpClient[] = []

function clientOf(settings: Partial<Settings> = {}, requestMs = 1000): HttpClient {
  const client = new HttpClient({ ...SETTINGS, ...settings }, { requestMs })
  clients.push(client)
  return client
}

after(async () => {
  server.close()
  await Promise.all(clients.map(client => client.close()))
})

for (const [url, cause] of [
  ['http://issuer.example/keys', /neither https nor this machine/],
  ['http://127.0.0.1.issuer.example/', /neither https nor this machine/],
  ['http://0.0.0.0/', /neither https nor this machine/],
  ['ftp://127.0.0.1/', /neither https nor this machine/],
  ['https://user:secret@issuer.example/', /holds credentials/],
  ['no address', /no URL/],
] as const) {
  test(`nobody is asked at ${url}`, async () => {
    await assert.rejects(clientOf().send({ url, bytesMax: 10 }), (error: Error) => {
      assert.ok(error instanceof InquiryFailed)
      assert.match(error.message, cause)
      assert.doesNotMatch(error.message, /secret/)
      return true
    })
  })
}

test('nobody there is a failure that names whom, and no query', async () => {
  const gone = await MisbehavingServer.listen()
  const url = `${gone.origin}/keys?token=secret`
  gone.close()
  await assert.rejects(clientOf().send({ url, bytesMax: 10 }), {
    name: 'InquiryFailed',
    message: `${url.split('?')[0]}: connect ECONNREFUSED ${url.slice(7).split('/')[0]}`,
  })
})

test('max_total and default_max_per_route bound what is under way, and nothing is lost', async () => {
  server.answer = response => setTimeout(() => response.end('ok'), 5)
  server.mostUnderWay = 0
  const client = clientOf({ requestsMax: 5, perHostMax: 3 })
  const url = server.origin
  const answers = await Promise.all(Array.from({ length: 40 }, () => client.send({ url, bytesMax: 10 })))
  assert.deepEqual([answers.length, server.mostUnderWay], [40, 3])
})

test('whoever waits for a turn is told within the time, and takes none from others', async () => {
  server.answer = () => {}
  const client = clientOf({ requestsMax: 1 }, 100)
  const asked = Array.from({ length: 3 }, () => client.send({ url: server.origin, bytesMax: 10 }))
  for (const one of await Promise.allSettled(asked)) assert.equal(one.status, 'rejected')
  server.answer = response => response.end('ok')
  assert.equal(String((await client.send({ url: server.origin, bytesMax: 10 })).body), 'ok')
})

test('a server that is silent, however many ask it, keeps nobody from asking others', async () => {
  const silent = await MisbehavingServer.listen()
  silent.answer = () => {}
  server.answer = response => response.end('ok')
  const limits = { requestMs: 500, waitingMax: 3 }
  const client = new HttpClient({ ...SETTINGS, requestsMax: 3, perHostMax: 2 }, limits)
  clients.push(client)
  const ask = (origin: string) => client.send({ url: origin, bytesMax: 10 })
  const asked = Promise.allSettled(Array.from({ length: 5 }, () => ask(silent.origin)))
  const begun = performance.now()
  await assert.rejects(ask(silent.origin), /too many requests are waiting/)
  for (let turn = 0; turn < 3; turn++) assert.equal((await ask(server.origin)).status, 200)
  assert.ok(performance.now() - begun < 400)
  for (const one of await asked) assert.match(String(one.status === 'rejected' && one.reason), /no answer within 500/)
  silent.close()
})

test('pool.max_idle bounds the connections that are kept', async () => {
  server.answer = response => setTimeout(() => response.end('ok'), 5)
  server.mostUnderWay = 0
  for (const earlier of clients.splice(0)) await earlier.close()
  const client = clientOf({ idleMax: 2 })
  await Promise.all(Array.from({ length: 6 }, () => client.send({ url: server.origin, bytesMax: 10 })))
  assert.equal(server.mostUnderWay, 6)
  while (server.open > 2) await server.gone()
  assert.equal((await client.send({ url: server.origin, bytesMax: 10 })).status, 200)
})

test('servers on TLS must lead to who is trusted; own certificates are trusted of this machine', async () => {
  const secured = createServer({ cert: SERVER.cert, key: SERVER.key }, (_, response) => json('{}')(response, _))
  after(() => secured.close())
  secured.listen(0, '127.0.0.1')
  await once(secured, 'listening')
  const url = `https://localhost:${(secured.address() as AddressInfo).port}/`
  await assert.rejects(clientOf().send({ url, bytesMax: 10 }), /unable to verify|self-signed|local issuer/)
  const terms = {
    identity: null,
    hostname: 'strict',
    ciphers: '',
    minVersion: 'TLSv1.2',
    maxVersion: 'TLSv1.3',
  } as const
  const trusting = { ca: [CA.cert], ...terms }
  const nobody = { ca: [], ...terms }
  const byAddress = (other: string) => ({ [new URL(url).host]: trusting, default: nobody, [other]: nobody })
  await assert.rejects(
    new HttpClient({ ...SETTINGS, trust: { default: nobody, 'localhost:1': trusting } }).send({ url, bytesMax: 10 }),
    /unable to verify|self-signed|local issuer/,
  )
  for (const settings of [
    { trust: { default: trusting } },
    { trust: byAddress('localhost:443') },
    { ownCertificates: [CA.cert] },
  ]) {
    const client = new HttpClient({ ...SETTINGS, ...settings })
    clients.push(client)
    assert.equal((await client.send({ url, bytesMax: 10 })).status, 200)
  }
})
