/** Bodies that grow when they are decoded, while their messages wait for a backend: their bytes have a bound. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { flowsOf } from '../harness/flows.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { address, planEndpoints, startBackend } from '../harness/sequence-calls.ts'

const MIB = 1_048_576
const HEAP_BYTES = 64 * MIB
const DECODED_BYTES = 16 * MIB
const BOMBS = 50
/** The reactor has a worker thread, and one for long bodies: that takes messages while the other one decodes (D927). */
const THREADS = 2
/** Heap and bytes of the threads, the bodies that they decode last, and what the process allocates besides. */
const GROWTH_MAX = THREADS * (2 * HEAP_BYTES + DECODED_BYTES) + 192 * MIB

/** Grows as much as `body.max_coding_ratio` allows. */
const BOMB = gzipSync(Buffer.concat([randomBytes(DECODED_BYTES / 240), Buffer.alloc(DECODED_BYTES)]))

/** The backend reads no further request on the connection. */
const RESPONSE = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'
const held: Peer[] = []
const answers: { readonly status: number; readonly body: string }[] = []
const backend = await startBackend(
  { after },
  {
    '/slow/x': (_, peer) => {
      held.push(peer)
      return null
    },
    '/x': () => [200, '{}'],
  },
)
const mediation = await flowsOf({ request: `<builder/><call>${address(backend.port, '/slow')}</call><respond/>` })
const gateway = await startGateway(
  [
    { context: '/a', port: backend.port, overrides: { mediation } },
    { context: '/passing', port: backend.port },
  ],
  {
    sequenceEndpoints: planEndpoints(mediation.sequences),
    http: { worker_pool_size_core: 400, worker_pool_heap_bytes: HEAP_BYTES },
  },
)
after(() => gateway.stop())

async function send(request: string, fields = '', body = Buffer.alloc(0)): Promise<Peer> {
  const client = await connectPeer(gateway.port)
  after(() => client.destroy())
  client.send(`${request} HTTP/1.1\r\nHost: gateway\r\n${fields}Content-Length: ${body.length}\r\n\r\n`)
  client.send(body)
  return client
}

function bomb(): Promise<Peer> {
  const fields = 'Content-Type: application/octet-stream\r\nContent-Encoding: gzip\r\n'
  return send('POST /a/x', fields, BOMB)
}

test('50 gzip bombs that wait for a backend: those that fit wait, the others get 503 with 102533', async () => {
  // The thread starts with its first task.
  const first = await bomb()
  await eventually('the first call', () => held.length === 1)
  const before = process.memoryUsage.rss()
  const clients = [first, ...(await Promise.all(Array.from({ length: BOMBS - 1 }, bomb)))]
  for (const client of clients) void takeResponse(client).then(answer => answers.push(answer))
  await eventually('an end of every bomb', () => held.length + answers.length === BOMBS)
  assert.ok(held.length * DECODED_BYTES <= THREADS * (HEAP_BYTES + DECODED_BYTES), `${held.length} are held`)
  for (const { status, body } of answers) {
    assert.deepEqual([status, JSON.parse(body).fault.code], [503, 102533])
  }
  const grown = process.memoryUsage.rss() - before
  assert.ok(grown < GROWTH_MAX, `the process has grown by ${Math.round(grown / MIB)} MiB`)
  // Meanwhile what passes is served.
  assert.equal((await takeResponse(await send('GET /passing/x'))).status, 200)

  // The bytes of messages that have ended are free for others.
  for (const peer of held.splice(0)) peer.send(RESPONSE)
  await eventually('an answer to every bomb', () => answers.length === BOMBS)
  const client = await bomb()
  await eventually('the call of a later message', () => held.length === 1)
  held[0]!.send(RESPONSE)
  assert.equal((await takeResponse(client)).status, 200)
})
