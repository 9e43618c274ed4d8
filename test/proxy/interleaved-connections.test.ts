/**
 * Connections whose reads alternate on one reactor. They share the decoder, scratch heads, body spans, the composer and
 * pooled backend connections; no part of one exchange may appear in another.
 */
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, test } from 'node:test'
import type { Filter, FilterResult } from '../../src/proxy/exchange/contract.ts'
import { StrictBackend } from '../harness/strict-backend.ts'
import { takeResponse } from '../harness/responses.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend, turn } from '../harness/peers.ts'
import { Random, SEED } from '../harness/random.ts'
import { parseResponse } from '../harness/strict-http.ts'

const echo = await StrictBackend.listen()
const scripted = await ScriptedBackend.listen()
let wait: () => FilterResult = () => undefined
const filter: Filter = { name: 'waits', request: () => wait() }
let gateway: TestGateway

beforeEach(async () => {
  wait = () => undefined
  echo.requests.length = 0
  echo.respond = ({ body }) => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body.toString('latin1')}`
  scripted.skip()
  const apis = [
    { context: '/echo', port: echo.port },
    { context: '/t', port: scripted.port },
  ]
  gateway = await startGateway(apis, { filters: [filter] })
})
afterEach(() => gateway.stop())
after(() => {
  echo.close()
  scripted.close()
})

/** Sends these requests in order, each on its own connection, and holds all of them in the filter until `go`. */
async function holdInFilter(requests: readonly string[]): Promise<{ clients: readonly Peer[]; go(): void }> {
  const verdict = Promise.withResolvers<undefined>()
  let waiting = 0
  wait = () => {
    waiting++
    return verdict.promise
  }
  const clients: Peer[] = []
  for (const [i, request] of requests.entries()) {
    const client = await connectPeer(gateway.port)
    client.send(request)
    await eventually('the call of the filter', () => waiting === i + 1)
    clients.push(client)
  }
  return { clients, go: () => verdict.resolve(undefined) }
}

/** Sends a request on a new client connection; returns it with the backend connection that has the request. */
async function exchange(path: string): Promise<readonly [Peer, Peer]> {
  const client = await connectPeer(gateway.port)
  client.send(get(`/t${path}`))
  let peer: Peer | undefined
  await eventually(`${path} at the backend`, () => {
    peer = scripted.peers.find(({ text }) => text.startsWith(`GET ${path} `) && text.endsWith('\r\n\r\n'))
    return peer !== undefined
  })
  peer!.take()
  return [client, peer!]
}

function get(path: string, ...lines: readonly string[]): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n${lines.map(line => `${line}\r\n`).join('')}\r\n`
}

test('RFC 9112 9.6: Connection: close of one request does not close the connections of others', async () => {
  const { clients, go } = await holdInFilter([
    get('/echo/1', 'Connection: close'),
    get('/echo/2'),
    get('/echo/3').replace('HTTP/1.1', 'HTTP/1.0'),
    get('/echo/4'),
  ])
  go()
  const closing = []
  for (const client of clients) closing.push((await takeResponse(client)).fields.get('connection')?.[0])
  assert.deepEqual(closing, ['close', undefined, 'close', undefined])
  assert.equal(await clients[0]!.untilEnd(), 'FIN')
  assert.equal(await clients[2]!.untilEnd(), 'FIN')
  wait = () => undefined
  for (const client of [clients[1]!, clients[3]!]) {
    client.send(get('/echo/again'))
    assert.equal((await takeResponse(client)).status, 200)
  }
  for (const client of clients) client.destroy()
})

test('RFC 9110 7.8: each request is forwarded with its own Upgrade protocols', async () => {
  const protocols = ['websocket', '', 'foo/2', 'h2c', 'bar']
  const { clients, go } = await holdInFilter(
    protocols.map(protocol =>
      get('/t/it', ...(protocol === '' ? [] : [`Upgrade: ${protocol}`, 'Connection: Upgrade'])),
    ),
  )
  go()
  const forwarded: string[] = []
  for (const _ of clients) {
    const peer = await scripted.next()
    await peer.untilText('\r\n\r\n')
    forwarded.push(/^Upgrade: (.*)\r$/m.exec(peer.text)?.[1] ?? '')
  }
  // h2c is removed, because its further requests would bypass the gateway (D46).
  assert.deepEqual(forwarded.sort(), protocols.map(protocol => (protocol === 'h2c' ? '' : protocol)).sort())
  for (const client of clients) client.destroy()
})

test('RFC 9112 9.6: Connection: close of an early response closes only its own client connection', async () => {
  const clients = []
  const peers: Peer[] = []
  for (let i = 0; i < 2; i++) {
    const client = await connectPeer(gateway.port)
    client.send('POST /t/it HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234')
    const peer = await scripted.next()
    await peer.untilText('01234')
    clients.push(client)
    peers.push(peer)
  }
  peers[0]!.send('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\n')
  peers[1]!.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n')
  for (const client of clients) await client.untilText('\r\n\r\n')
  for (const client of clients) client.send('56789')
  for (const peer of peers) await peer.untilText('56789').catch(() => undefined)
  for (const peer of peers) peer.send('done')
  const closing = []
  for (const client of clients) closing.push((await takeResponse(client)).fields.get('connection')?.[0])
  assert.deepEqual(closing, ['close', undefined])
  for (const client of clients) client.destroy()
})

test('RFC 9110 15.2.2: each 101 response is checked against its own Connection field', async () => {
  const upgrade = ['Upgrade: websocket', 'Connection: Upgrade']
  const { clients, go } = await holdInFilter([get('/t/it', ...upgrade), get('/t/it', ...upgrade)])
  go()
  const peers = [await scripted.next(), await scripted.next()]
  for (const peer of peers) await peer.untilText('\r\n\r\n')
  peers[0]!.send('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
  peers[1]!.send('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n')
  await Promise.all(clients.map(client => client.untilText('\r\n\r\n')))
  const statuses = clients.map(client => client.text.slice(9, 12)).sort()
  assert.deepEqual(statuses, ['101', '502'])
  for (const client of clients) client.destroy()
})

test('a backend connection with a complete response is reused by another client', async () => {
  const [client, peer] = await exchange('/a')
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst')
  assert.equal((await takeResponse(client)).body, 'first')
  const [other, second] = await exchange('/b')
  assert.equal(second, peer)
  for (const each of [client, other]) each.destroy()
})

test('RFC 9112 6: responses whose bytes alternate reach their own clients', async () => {
  const pairs = await Promise.all(Array.from({ length: 12 }, (_, i) => exchange(`/${i}`)))
  const chunks = (i: number) => `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nName: ${i}\r\n\r\n`
  await Promise.all(
    pairs.map(async ([, peer], i) => {
      if (i % 3 === 0) await peer.sendBytewise(`${chunks(i)}3\r\nabc\r\n0\r\nTrail-${i}: ${i}\r\n\r\n`)
      else if (i % 3 === 1) await peer.sendBytewise(`HTTP/1.1 200 OK\r\nName: ${i}\r\nContent-Length: 3\r\n\r\nabc`)
      else {
        await peer.sendBytewise(`HTTP/1.1 200 OK\r\nName: ${i}\r\n\r\nabc`)
        peer.end()
      }
    }),
  )
  for (const [i, [client]] of pairs.entries()) {
    await client.until('a response', () => parseResponse(client.received, 0, 'GET', false) !== undefined)
    const response = parseResponse(client.received, 0, 'GET', false)!
    assert.equal(response.body.toString(), 'abc')
    assert.deepEqual(
      response.lines.filter(line => line.startsWith('Name')),
      [`Name: ${i}`],
    )
    assert.deepEqual(response.trailers, i % 3 === 0 ? [`Trail-${i}: ${i}`] : [])
    assert.equal(response.end, client.length)
    client.destroy()
  }
})

test('RFC 9112 7.1.2: trailers of one response do not appear in another response that ends later', async () => {
  const [other, otherPeer] = await exchange('/other')
  otherPeer.send('HTTP/1.1 200 OK\r\n\r\nbody')
  await other.untilText('body')
  const [client, peer] = await exchange('/trailers')
  peer.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nSecret: a\r\n\r\n')
  await client.untilText('Secret')
  otherPeer.end()
  await other.untilText('0\r\n\r\n')
  assert.ok(!other.text.includes('Secret'), other.text)
  for (const each of [client, other]) each.destroy()
})

test(`RFC 9112 6: bodies of both framings whose pieces alternate reach their own clients (seed ${SEED})`, async () => {
  const random = new Random(SEED)
  const uploads = await Promise.all(
    Array.from({ length: 12 }, async (_, i) => {
      const body = `body of client ${i}; `.repeat(random.between(1, 400))
      const isChunked = i % 2 === 0
      let sent = body
      if (isChunked) {
        sent = ''
        for (let at = 0; at < body.length; ) {
          const piece = body.slice(at, at + random.between(1, 900))
          sent += `${piece.length.toString(16)}\r\n${piece}\r\n`
          at += piece.length
        }
        sent += '0\r\n\r\n'
      }
      const framing = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`
      const text = `POST /echo/${i} HTTP/1.1\r\nHost: a\r\n${framing}\r\n\r\n${sent}`
      return { client: await connectPeer(gateway.port), text, body, at: 0 }
    }),
  )
  const open = [...uploads]
  while (open.length > 0) {
    const upload = random.pick(open)
    const next = Math.min(upload.text.length, upload.at + random.between(1, 700))
    upload.client.send(upload.text.slice(upload.at, next))
    upload.at = next
    if (next === upload.text.length) open.splice(open.indexOf(upload), 1)
    if (random.once(2)) await turn()
  }
  for (const { client, body } of uploads) {
    assert.equal((await takeResponse(client)).body, body)
    client.destroy()
  }
  assert.deepEqual(echo.violations, [])
  assert.deepEqual(
    gateway.reports.filter(({ level }) => level === 'error'),
    [],
  )
})
