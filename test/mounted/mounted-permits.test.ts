/** Clients of mounted APIs that send or read slowly: they hold no permit of the worker pool (D805). */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { PERMIT_ROWS } from '../../src/plan/worker-plan.ts'
import { SharedPermits } from '../../src/runtime/shared-permits.ts'
import type { TestGateway } from '../harness/gateway.ts'
import { startMounted } from '../harness/mounted.ts'
import { connectPeer, eventually, type Peer } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { parseResponse, type StrictMessage } from '../harness/strict-http.ts'

/** A gateway whose messages have one permit. */
async function startSingle(t: TestContext) {
  const http = { worker_pool_size_core: 1, worker_pool_size_max: 1, worker_pool_queue_length: -1 }
  const permits = SharedPermits.allocate(1, Object.keys(PERMIT_ROWS).length)
  const gateway = await startMounted(t, { http, permits })
  return { gateway, counts: () => SharedPermits.counts(permits, 1, PERMIT_ROWS.plain) }
}

async function connect(t: TestContext, gateway: TestGateway): Promise<Peer> {
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  return client
}

async function isServed(t: TestContext, gateway: TestGateway): Promise<void> {
  const client = await connect(t, gateway)
  client.send('GET /m/early HTTP/1.1\r\nHost: h\r\n\r\n')
  assert.equal((await takeResponse(client)).status, 409)
  client.destroy()
}

/** The body of a response in any framing. */
async function takeBody(client: Peer): Promise<Buffer> {
  let found: StrictMessage | undefined
  await client.until('a whole response', ({ received }) => {
    found = parseResponse(received, 0, 'POST', false)
    return found !== undefined
  })
  return found!.body
}

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'
const LONG = 300_000
const BODY = Buffer.alloc(LONG, 'x')

interface Upload {
  readonly fields: string
  /** The start of the body, and the rest. */
  readonly first: string
  readonly rest: Buffer
  /** The client sends `first` only after 100 (Continue). */
  readonly continues?: true
  readonly length: number
}

const CHUNKED: Upload = {
  fields: 'Transfer-Encoding: chunked',
  first: '5\r\nxxxxx\r\n',
  rest: Buffer.from('5\r\nxxxxx\r\n0\r\n\r\n'),
  length: 10,
}
const UPLOADS: Readonly<Record<string, Upload>> = {
  'longer than 256 KiB': {
    fields: `Content-Length: ${LONG}`,
    first: 'xxxxx',
    rest: BODY.subarray(5),
    length: LONG,
  },
  chunked: CHUNKED,
  'chunked, announced with Expect,': {
    ...CHUNKED,
    fields: `${CHUNKED.fields}\r\nExpect: 100-continue`,
    continues: true,
  },
  'announced with Expect': {
    fields: 'Content-Length: 10\r\nExpect: 100-continue',
    first: 'xxxxx',
    rest: Buffer.from('xxxxx'),
    continues: true,
    length: 10,
  },
}

for (const [what, { fields, first, rest, continues, length }] of Object.entries(UPLOADS)) {
  // A response that begins is all that a client with Expect gets.
  for (const operation of continues ? ['hash'] : ['hash', 'echo']) {
    test(`D805: a body ${what} that comes slowly holds no permit, and gets its response (${operation})`, async t => {
      const { gateway, counts } = await startSingle(t)
      const client = await connect(t, gateway)
      client.send(`POST /m/${operation} HTTP/1.1\r\nHost: h\r\n${fields}\r\n\r\n`)
      if (continues) {
        await client.untilText(CONTINUE)
        client.drop(CONTINUE.length)
      }
      client.send(first)
      await eventually('a request without a permit', () => counts().suspended === 1)
      assert.equal(counts().running, 0)
      await isServed(t, gateway)
      client.send(rest)
      const body = await takeBody(client)
      const sent = BODY.subarray(0, length)
      if (operation === 'echo') assert.ok(sent.equals(body))
      else {
        const { sha256 } = JSON.parse(body.toString()) as { readonly sha256: string }
        assert.equal(sha256, createHash('sha256').update(sent).digest('hex'))
      }
      await eventually('the end', () => counts().suspended === 0 && counts().running === 0)
    })
  }
}

test('D805: a client that does not read a long response holds no permit, and gets it whole in the end', async t => {
  const { gateway, counts } = await startSingle(t)
  const client = await connect(t, gateway)
  client.pause()
  const length = 30_000_000
  client.send(`GET /m/bytes?${length} HTTP/1.1\r\nHost: h\r\n\r\n`)
  await eventually('a request without a permit', () => counts().suspended === 1)
  assert.equal(counts().running, 0)
  await isServed(t, gateway)
  client.resume()
  assert.equal((await takeResponse(client)).body.length, length)
  await eventually('the end', () => counts().suspended === 0 && counts().running === 0)
})

for (const path of ['hash', 'echo'])
  test(`D805: clients that leave while their requests wait for them leave no permit behind (${path})`, async t => {
    const { gateway, counts } = await startSingle(t)
    const clients: Peer[] = []
    for (let at = 0; at < 12; at++) {
      const client = await connect(t, gateway)
      client.send(`POST /m/${path} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nxxxxx\r\n`)
      clients.push(client)
    }
    await eventually('requests without a permit', () => counts().suspended === clients.length)
    for (const client of clients) client.reset()
    await eventually('the end', () => counts().suspended === 0 && counts().running === 0)
    assert.ok(counts().highest <= 1, `${counts().highest} permits at once`)
    await isServed(t, gateway)
  })

test('D806: of 1,025 slow clients the one that has waited longest gets 102541, and the others go on', async t => {
  const { gateway, counts } = await startSingle(t)
  const clients: Peer[] = []
  for (let at = 0; at <= 1024; at++) {
    const client = await connect(t, gateway)
    client.send('POST /m/hash HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nxxxxx\r\n')
    clients.push(client)
    if (at < 2) await eventually('its place', () => counts().suspended === at + 1)
  }
  const { status, body } = await takeResponse(clients[0]!)
  assert.equal(status, 503)
  assert.match(body, /"code":102541,/)
  await eventually('the others', () => counts().suspended === 1024 && counts().running === 0)
  clients[1]!.send(CHUNKED.rest)
  assert.match((await takeBody(clients[1]!)).toString(), /"length":10,/)
  assert.ok(counts().highest <= 1)
})
