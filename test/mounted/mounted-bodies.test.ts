/** Mounted APIs over real sockets: heads and bodies of every framing and length, in both directions. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { planGateway } from '../harness/gateway.ts'
import { mountedApi, startMounted } from '../harness/mounted.ts'
import { connectPeer, eventually, type Peer } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { parseResponse, type StrictMessage, valuesOf } from '../harness/strict-http.ts'
import { sharedBySuite } from '../harness/suite.ts'

const shared = sharedBySuite(startMounted)

test('an implementation sees method, path, query, variables, fields and caller of a request', async t => {
  const resources = [{ ...EVERY, verb: 'POST', template: '/show/{id}' }]
  const gateway = await startMounted(t, {}, [mountedApi({ paths: ['/t/{tenant}/m'], resources })])
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  client.send('POST /t/a%20b/m/show/7?x=%41&y HTTP/1.1\r\nHost: gw.example\r\nX-A: 1\r\nx-a: 2\r\n')
  client.send('X-Forwarded-For: 1.2.3.4\r\nConnection: X-Hop\r\nX-Hop: 1\r\nContent-Length: 0\r\n\r\n')
  const response = await takeResponse(client)
  const shown = JSON.parse(response.body) as Record<string, unknown>
  assert.deepEqual(shown.fields, [
    ['Host', 'gw.example'],
    ['X-A', '1'],
    ['x-a', '2'],
    ['Content-Length', '0'],
  ])
  const { method, path, query, operation, variables, url, length, host } = shown
  assert.deepEqual(
    { method, path, query, operation, variables, url, length, host },
    {
      method: 'POST',
      path: '/show/7',
      query: 'x=%41&y',
      operation: { verb: 'POST', template: '/show/{id}' },
      variables: { tenant: 'a b', id: '7' },
      url: 'http://gw.example/t/a%20b/m',
      length: 0,
      host: 'gw.example',
    },
  )
  assert.deepEqual((shown.caller as Record<string, unknown>).user, 'anonymous')
})

/** Waits for a response in any framing and takes it. `least`: bytes that it has. */
async function takeAny(client: Peer, method = 'GET', least = 1): Promise<StrictMessage> {
  await client.untilLength(least)
  let found: StrictMessage | undefined
  await client.until('a whole response', ({ received }) => {
    found = parseResponse(received, 0, method, false)
    return found !== undefined
  })
  client.drop(found!.end)
  return found!
}

const EVERY = {
  template: '/*',
  verb: '*',
  authType: 'None',
  tier: 'Unlimited',
  scopes: [],
} as const

const LENGTHS = [0, 1, 65_535, 65_536, 262_144, 262_145, 1_000_000, 10_000_000]

function bodyOf(length: number): Buffer {
  const body = Buffer.alloc(length)
  for (let at = 0; at < length; at++) body[at] = (at * 31 + (at >>> 8)) & 0xff
  return body
}

function chunked(body: Buffer, size: number): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < body.length; at += size) {
    const part = body.subarray(at, at + size)
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'))
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')])
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

for (const length of LENGTHS) {
  test(`a body of ${length} bytes reaches the implementation, with its length and in chunks`, async t => {
    const gateway = await shared
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    const body = bodyOf(length)
    client.send(`POST /m/hash HTTP/1.1\r\nHost: h\r\nContent-Length: ${length}\r\n\r\n`)
    client.send(body)
    const fixed = JSON.parse((await takeResponse(client)).body)
    assert.deepEqual(fixed, { length, declared: length, sha256: sha256(body) })
    client.send('POST /m/hash HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n')
    client.send(chunked(body, 50_000))
    const pieces = JSON.parse((await takeResponse(client)).body) as Record<string, unknown>
    assert.deepEqual([pieces.length, pieces.sha256], [length, sha256(body)])
  })

  test(`a body of ${length} bytes reaches the client, whole and in pieces`, async t => {
    const gateway = await shared
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    for (const [kind, framing] of [
      ['bytes', 'length'],
      ['pieces', 'chunked'],
    ] as const) {
      client.send(`GET /m/${kind}?${length} HTTP/1.1\r\nHost: h\r\n\r\n`)
      const response = await takeAny(client, 'GET', length)
      assert.deepEqual([response.status, response.framing, response.body.length], [200, framing, length])
    }
  })
}

test('an echo streams both ways at once', async t => {
  const gateway = await shared
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  client.send('POST /m/echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n')
  await client.untilText('first')
  client.send('6\r\nsecond\r\n0\r\n\r\n')
  await client.untilText('second')
  await client.untilText('0\r\n\r\n')
})

const HEAD_ONLY: readonly (readonly [request: string, status: number])[] = [
  ['HEAD /m/bytes?1000', 200],
  ['HEAD /m/pieces?1000000', 200],
  ['GET /m/status?204', 204],
  ['GET /m/status?304', 304],
]

for (const [request, status] of HEAD_ONLY) {
  test(`the response to ${request} has no body, and the connection goes on`, async t => {
    const gateway = await shared
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    for (let round = 0; round < 2; round++) {
      client.send(`${request} HTTP/1.1\r\nHost: h\r\n\r\n`)
      const response = await takeAny(client, request.startsWith('HEAD') ? 'HEAD' : 'GET')
      assert.deepEqual([response.status, response.body.length, client.length], [status, 0, 0])
      if (request.includes('/bytes')) assert.deepEqual(valuesOf(response.lines, 'content-length'), ['1000'])
    }
  })
}

test('the framing of a response is the gateway’s own, and its other fields pass in order', async t => {
  const gateway = await shared
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  client.send('GET /m/fields HTTP/1.1\r\nHost: h\r\n\r\n')
  const { fields, reason } = await takeResponse(client)
  assert.equal(reason, 'OK')
  assert.deepEqual(
    [fields.get('content-length'), fields.get('x-a'), fields.get('transfer-encoding')],
    [['0'], ['1', '2'], undefined],
  )
})

test('an HTTP/1.0 client gets a response in pieces until the connection closes', async t => {
  const gateway = await shared
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  client.send('GET /m/pieces?100000 HTTP/1.0\r\n\r\n')
  await client.untilEnd()
  assert.match(client.text, /^HTTP\/1\.[01] 200 /)
  assert.equal(client.text.slice(client.text.indexOf('\r\n\r\n') + 4).length, 100_000)
})

/** Takes the head of a response; its body stays. */
async function headOf(client: Peer): Promise<string> {
  await client.untilText('\r\n\r\n')
  return client.take(client.text.indexOf('\r\n\r\n') + 4)
}

test('100 (Continue) is sent when the implementation reads the body, and not before', async t => {
  const gateway = await shared
  const reads = await connectPeer(gateway.port)
  t.after(() => reads.destroy())
  const head = (path: string) => `POST ${path} HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n`
  reads.send(head('/m/hash'))
  assert.match(await headOf(reads), /^HTTP\/1\.1 100 /)
  reads.send('abc')
  assert.equal((JSON.parse((await takeResponse(reads)).body) as { length: number }).length, 3)
  const refused = await connectPeer(gateway.port)
  t.after(() => refused.destroy())
  refused.send(head('/m/early'))
  const response = await takeResponse(refused)
  assert.deepEqual([response.status, response.body, response.fields.get('connection')], [409, 'no', ['close']])
})

test('an early response comes while the body of the request is on its way', async t => {
  const gateway = await shared
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  client.send('POST /m/early HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\nsome')
  const response = await takeResponse(client)
  assert.deepEqual([response.status, response.body], [409, 'no'])
})

test('a client that sends a short body slowly takes no place in the pool', async t => {
  const { workers } = planGateway([]).plan
  const one = { ...workers.limits.plain, core: 1, max: 1, queueLength: 0 }
  const threads = { mediation: 1, background: 1 }
  const limits = { ...workers.limits, plain: one }
  const gateway = await startMounted(t, { workers: { ...workers, threads, limits } })
  const [slow, other] = [await connectPeer(gateway.port), await connectPeer(gateway.port)]
  t.after(() => slow.destroy())
  t.after(() => other.destroy())
  slow.send('POST /m/hash HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc')
  for (let round = 0; round < 3; round++) {
    other.send('POST /m/hash HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nxy')
    const { status, body } = await takeResponse(other)
    assert.deepEqual([status, (JSON.parse(body) as { length: number }).length], [200, 2])
  }
  slow.send('def')
  const { status, body } = await takeResponse(slow)
  const sha256 = createHash('sha256').update('abcdef').digest('hex')
  assert.equal(status, 200)
  assert.ok(body.includes(sha256), body)
})

test('a client that leaves in the middle of a short body starts nothing', async t => {
  const gateway = await startMounted(t)
  const client = await connectPeer(gateway.port)
  client.send('POST /m/hash HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc')
  await eventually('the exchange', () => gateway.metrics().counts.connectionsOpen === 1)
  client.destroy()
  await eventually('the end', () => gateway.metrics().counts.connectionsOpen === 0)
  assert.equal(gateway.metrics().counts.workerTasks, 0)
})

test('incomplete short bodies hold no more memory than mediated ones; beyond it, their requests begin', async t => {
  const { workers } = planGateway([]).plan
  const one = { ...workers.limits.plain, core: 1, max: 1, queueLength: 0 }
  const limits = { ...workers.limits, plain: one }
  const gateway = await startMounted(t, { workers: { ...workers, threads: { mediation: 1, background: 1 }, limits } })
  const LENGTH = 262_144
  const head = `POST /m/hash HTTP/1.1\r\nHost: h\r\nContent-Length: ${LENGTH}\r\n\r\n`
  // 64 MiB in the memory of the reactor.
  for (let at = 0; at < 260; at++) {
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    client.send(head + 'x'.repeat(LENGTH - 1))
  }
  await eventually('the requests that begin', () => gateway.metrics().counts.workerTasks > 0)
})
