/** A thread whose memory is used up refuses work, connection by connection, and serves again when memory comes back. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { arena } from '../../src/http1/llhttp.ts'
import type { Chunk } from '../../src/structure/arena.ts'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer } from '../harness/peers.ts'
import { parseResponse } from '../harness/strict-http.ts'

const backend = await AnsweringBackend.listen()
const gateway = await startGateway([{ context: '/echo', port: backend.port }])
after(() => {
  gateway.stop()
  backend.close()
})

const REQUEST = 'GET /echo/x HTTP/1.1\r\nHost: a\r\n\r\n'

/** Status of the next answer, or how the connection ended. */
async function outcome(client: Peer): Promise<number | string> {
  let status = 0
  await client.until('an answer or the end', () => {
    const response = parseResponse(client.received, 0, 'GET', false)
    if (response !== undefined) {
      status = response.status
      client.take(response.end)
    }
    return status !== 0 || client.ending !== ''
  })
  return status === 0 ? client.ending : status
}

/** Takes everything that the arena has, down to the smallest chunk. */
function takeAll(): Chunk[] {
  const taken: Chunk[] = []
  for (let size = 131_072; size >= 2048; size /= 2) {
    for (let chunk = arena.lend(size); chunk !== undefined; chunk = arena.lend(size)) taken.push(chunk)
  }
  return taken
}

/** What a client sends while there is no memory, and what may become of it. */
const attempts: readonly (readonly [
  name: string,
  send: (client: Peer) => Promise<void> | void,
  may: readonly (number | string)[],
])[] = [
  ['a request on an idle backend connection needs none', client => client.send(REQUEST), [200]],
  ['a head in pieces', client => client.sendCut(REQUEST, [10]), ['RST', 'FIN']],
  ['pipelined requests, which wait', client => client.send(REQUEST.repeat(20)), ['RST', 'FIN']],
  [
    'a body',
    client => client.send(`POST /echo/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello`),
    [200, 503, 'RST', 'FIN'],
  ],
]

test('memory that is used up costs those who need it, and nobody else', async () => {
  const clients: Peer[] = []
  for (let i = 0; i < 12; i++) {
    const client = await connectPeer(gateway.port)
    client.send(REQUEST)
    assert.equal(await outcome(client), 200)
    clients.push(client)
  }
  const taken = takeAll()
  for (const [name, send, may] of attempts) {
    const client = clients.pop()!
    await send(client)
    const got = await outcome(client)
    assert.ok(may.includes(got), `${name}: ${got}`)
    client.destroy()
  }
  for (const chunk of taken) arena.giveBack(chunk)
  for (const client of clients) {
    client.send(REQUEST)
    assert.equal(await outcome(client), 200, 'those who were idle are served')
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

test('a request that needs a new backend connection is answered 503', async () => {
  const client = await connectPeer(gateway.port)
  client.send(REQUEST)
  assert.equal(await outcome(client), 200)
  backend.answer = () => undefined
  const waiting = await connectPeer(gateway.port)
  const before = backend.requests.length
  waiting.send(REQUEST)
  await eventually('its arrival', () => backend.requests.length > before)
  const taken = takeAll()
  client.send(REQUEST)
  const got = await outcome(client)
  for (const chunk of taken) arena.giveBack(chunk)
  assert.equal(got, 503)
  assert.equal(backend.requests.length, before + 1)
  waiting.reset()
  client.destroy()
})
