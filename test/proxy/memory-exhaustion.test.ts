/** A reactor without free memory refuses requests or closes connections, and serves again when memory is released. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { arena, Parser } from '../../src/http1/llhttp.ts'
import type { Chunk } from '../../src/runtime/arena.ts'
import { StrictBackend } from '../harness/strict-backend.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer } from '../harness/peers.ts'
import { faultBody } from '../harness/responses.ts'
import { parseResponse } from '../harness/strict-http.ts'

const backend = await StrictBackend.listen()
const gateway = await startGateway([{ context: '/echo', port: backend.port }])
after(() => {
  gateway.stop()
  backend.close()
})

const REQUEST = 'GET /echo/x HTTP/1.1\r\nHost: a\r\n\r\n'

/** Status of the next response, or how the connection ended. */
async function outcome(client: Peer): Promise<number | string> {
  let status = 0
  await client.until('a response or the end', () => {
    const response = parseResponse(client.received, 0, 'GET', false)
    if (response !== undefined) {
      status = response.status
      client.take(response.end)
    }
    return status !== 0 || client.ending !== ''
  })
  return status === 0 ? client.ending : status
}

/** Acquires all chunks of the arena, down to the smallest size. */
function takeAll(): Chunk[] {
  const taken: Chunk[] = []
  for (let size = 131_072; size >= 2048; size /= 2) {
    for (let chunk = arena.acquire(size); chunk !== undefined; chunk = arena.acquire(size)) taken.push(chunk)
  }
  return taken
}

/** Bytes that a client sends while no memory is free, and the allowed outcomes. */
const attempts: readonly (readonly [
  name: string,
  send: (client: Peer) => Promise<void> | void,
  allowed: readonly (number | string)[],
])[] = [
  ['a request on an idle backend connection, which needs no memory', client => client.send(REQUEST), [200]],
  ['a head in pieces', client => client.sendCut(REQUEST, [10]), ['RST', 'FIN']],
  ['pipelined requests', client => client.send(REQUEST.repeat(20)), ['RST', 'FIN']],
  [
    'a body',
    client => client.send(`POST /echo/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello`),
    [200, 503, 'RST', 'FIN'],
  ],
]

test('without free memory only connections that need memory fail, and all are served again later', async () => {
  const clients: Peer[] = []
  for (let i = 0; i < 12; i++) {
    const client = await connectPeer(gateway.port)
    client.send(REQUEST)
    assert.equal(await outcome(client), 200)
    clients.push(client)
  }
  const taken = takeAll()
  for (const [name, send, allowed] of attempts) {
    const client = clients.pop()!
    await send(client)
    const got = await outcome(client)
    assert.ok(allowed.includes(got), `${name}: ${got}`)
    client.destroy()
  }
  for (const chunk of taken) arena.release(chunk)
  for (const client of clients) {
    client.send(REQUEST)
    assert.equal(await outcome(client), 200, 'the idle connections are served')
    await client.sendCut(REQUEST, [10])
    assert.equal(await outcome(client), 200)
    client.destroy()
  }
  assert.deepEqual(
    gateway.reports.filter(({ event }) => event === 'bug'),
    [],
  )
  assert.deepEqual(backend.violations, [])
})

test('a request that needs a new backend connection without free memory gets 503 with 101601', async () => {
  const client = await connectPeer(gateway.port)
  client.send(REQUEST)
  assert.equal(await outcome(client), 200)
  backend.respond = () => undefined
  const waiting = await connectPeer(gateway.port)
  const before = backend.requests.length
  waiting.send(REQUEST)
  await eventually('the request at the backend', () => backend.requests.length > before)
  const taken = takeAll()
  client.send(REQUEST)
  await client.untilText('}}')
  for (const chunk of taken) arena.release(chunk)
  assert.match(client.text, /^HTTP\/1\.1 503 /)
  assert.ok(client.text.endsWith(faultBody(101601, 0)), client.text)
  client.take(client.received.length)
  const lost = gateway.reports.find(({ fields }) => fields.ERROR_CODE === 101601)
  assert.equal(lost?.fields.CAUSE_OF_ERROR, 'no memory for a request')
  assert.equal(backend.requests.length, before + 1)
  waiting.reset()
  client.destroy()
})

test('a request whose new backend connection gets no parser gets 503 with 101601', async t => {
  backend.respond = () => undefined
  const waiting = await connectPeer(gateway.port)
  const before = backend.requests.length
  waiting.send(REQUEST)
  await eventually('the request at the backend', () => backend.requests.length > before)
  const client = await connectPeer(gateway.port)
  t.mock.method(Parser, 'forResponses', () => undefined)
  client.send(REQUEST)
  await client.untilText('}}')
  assert.ok(client.text.endsWith(faultBody(101601, 0)), client.text)
  waiting.reset()
  client.destroy()
})
