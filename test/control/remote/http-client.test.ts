/** HTTP client of the control thread: allowed addresses, concurrency limits, timeouts, trust. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { ControlCallFailed } from '../../../src/auth/control-protocol.ts'
import { HttpClient } from '../../../src/control/remote/http-client.ts'
import { CA, SERVER } from '../../harness/certificates.ts'
import { json, MisbehavingServer } from './misbehaving-server.ts'

type Settings = ConstructorParameters<typeof HttpClient>[0]
const SETTINGS: Settings = {
  requestsMax: 100,
  perHostMax: 50,
  idleMax: 100,
  waitingMax: 1024,
  trust: {},
  ownCertificates: [],
}
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
  ['http://issuer.example/keys', /neither https nor on this machine/],
  ['http://127.0.0.1.issuer.example/', /neither https nor on this machine/],
  ['http://0.0.0.0/', /neither https nor on this machine/],
  ['ftp://127.0.0.1/', /neither https nor on this machine/],
  ['https://user:secret@issuer.example/', /contains credentials/],
  ['no address', /not a URL/],
] as const) {
  test(`no request is sent to ${url}`, async () => {
    await assert.rejects(clientOf().send({ url, bytesMax: 10 }), (error: Error) => {
      assert.ok(error instanceof ControlCallFailed)
      assert.match(error.message, cause)
      assert.doesNotMatch(error.message, /secret/)
      return true
    })
  })
}

test('a refused connection is reported with the address, without the query', async () => {
  const gone = await MisbehavingServer.listen()
  const url = `${gone.origin}/keys?token=secret`
  gone.close()
  await assert.rejects(clientOf().send({ url, bytesMax: 10 }), {
    name: 'ControlCallFailed',
    message: `${url.split('?')[0]}: connect ECONNREFUSED ${url.slice(7).split('/')[0]}`,
  })
})

test('max_total and default_max_per_route bound the requests in flight, and every request is answered', async () => {
  server.answer = response => setTimeout(() => response.end('ok'), 5)
  server.mostInFlight = 0
  const client = clientOf({ requestsMax: 5, perHostMax: 3 })
  const url = server.origin
  const answers = await Promise.all(Array.from({ length: 40 }, () => client.send({ url, bytesMax: 10 })))
  assert.deepEqual([answers.length, server.mostInFlight], [40, 3])
})

test('a request that waits for a slot fails within the time limit and leaves no slot occupied', async () => {
  server.answer = () => {}
  const client = clientOf({ requestsMax: 1 }, 100)
  const asked = Array.from({ length: 3 }, () => client.send({ url: server.origin, bytesMax: 10 }))
  for (const one of await Promise.allSettled(asked)) assert.equal(one.status, 'rejected')
  server.answer = response => response.end('ok')
  assert.equal(String((await client.send({ url: server.origin, bytesMax: 10 })).body), 'ok')
})

test('a server that does not answer never blocks requests to other servers', async () => {
  const silent = await MisbehavingServer.listen()
  silent.answer = () => {}
  server.answer = response => response.end('ok')
  const client = new HttpClient({ ...SETTINGS, requestsMax: 3, perHostMax: 2, waitingMax: 3 }, { requestMs: 500 })
  clients.push(client)
  const ask = (origin: string) => client.send({ url: origin, bytesMax: 10 })
  const asked = Promise.allSettled(Array.from({ length: 5 }, () => ask(silent.origin)))
  const begun = performance.now()
  await assert.rejects(ask(silent.origin), /too many requests are waiting/)
  for (let turn = 0; turn < 3; turn++) assert.equal((await ask(server.origin)).status, 200)
  assert.ok(performance.now() - begun < 400)
  for (const one of await asked) assert.match(String(one.status === 'rejected' && one.reason), /no response within 500/)
  silent.close()
})

test('pool.max_idle bounds the idle connections', async () => {
  const held: ServerResponse[] = []
  let awaited = 6
  // The first is answered when the last has come, so that each has a connection of its own.
  server.answer = response => {
    held.push(response)
    if (--awaited <= 0) for (const each of held.splice(0)) each.end('ok')
  }
  server.mostInFlight = 0
  for (const earlier of clients.splice(0)) await earlier.close()
  const client = clientOf({ idleMax: 2 })
  await Promise.all(Array.from({ length: 6 }, () => client.send({ url: server.origin, bytesMax: 10 })))
  assert.equal(server.mostInFlight, 6)
  while (server.open > 2) await server.gone()
  assert.equal((await client.send({ url: server.origin, bytesMax: 10 })).status, 200)
})

test('a TLS server needs a trusted certificate; own certificates are trusted on this machine only', async () => {
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

for (const [what, status, headers, cause] of [
  ['a content encoding', 200, { 'content-encoding': 'gzip' }, /responds with a content encoding \(gzip\)$/],
  ['a redirect', 302, { location: '/elsewhere' }, /responds with a redirect \(302\), which is not followed$/],
] as const) {
  test(`${what} ends the response at once, and its connection where the body goes on`, async () => {
    const endless = await MisbehavingServer.listen()
    after(() => endless.close())
    endless.answer = response => response.writeHead(status, headers).write('x'.repeat(100))
    // The time limit of the request never comes.
    const asked = clientOf({}, 2 ** 31 - 1).send({ url: endless.origin, bytesMax: 10 })
    await assert.rejects(asked, cause)
    while (endless.open > 0) await endless.gone()
  })
}

test('where the status alone decides, an encoded body is not waited for', async () => {
  const endless = await MisbehavingServer.listen()
  after(() => endless.close())
  endless.answer = response => response.writeHead(202, { 'content-encoding': 'gzip' }).flushHeaders()
  const request = { url: endless.origin, bytesMax: 10, cutsBody: true } as const
  const { status, body } = await clientOf({}, 2 ** 31 - 1).send(request)
  assert.deepEqual([status, body.length], [202, 0])
  while (endless.open > 0) await endless.gone()
})
