/**
 * Responses of the gateway itself: their fields and body, what happens to the connection, and responses longer than the
 * memory in which heads are composed.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { arena } from '../../src/http1/llhttp.ts'
import { StrictBackend } from '../harness/strict-backend.ts'
import { faultsWith } from '../harness/default-sequences.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { parseResponse, valuesOf } from '../harness/strict-http.ts'

const backend = await StrictBackend.listen()
const gateway = await startGateway([{ context: '/echo', port: backend.port }], { http: { 'body.max_bytes': 10 } })
after(() => {
  gateway.stop()
  backend.close()
})

interface LocalResponseCase {
  readonly name: string
  readonly request: string
  readonly status: string
  /** Fault code; 0: the response is not a fault. */
  readonly code: number
  readonly message?: string
  readonly closes: boolean
  readonly fields?: Readonly<Record<string, string>>
}

const METHODS = 'GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS'

const RESPONSES: readonly LocalResponseCase[] = [
  {
    name: 'RFC 9110 9.3.7: OPTIONS * gets 200 with Allow',
    request: 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n',
    status: '200 OK',
    code: 0,
    closes: false,
    fields: { allow: METHODS },
  },
  {
    name: 'RFC 9110 15.5.6: TRACE gets 405 with Allow',
    request: 'TRACE /echo HTTP/1.1\r\nHost: a\r\n\r\n',
    status: '405 Method Not Allowed',
    code: 400,
    closes: true,
    fields: { allow: METHODS },
  },
  {
    name: 'RFC 9110 15.5.5: a path of no API gets 404',
    request: 'GET /none HTTP/1.1\r\nHost: a\r\nactivityid: abc\r\n\r\n',
    status: '404 Not Found',
    code: 404,
    closes: false,
    fields: { activityid: 'abc' },
  },
  {
    name: 'RFC 9112 9.6: a path of no API with an unread body gets 404 and Connection: close',
    request: 'POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n',
    status: '404 Not Found',
    code: 404,
    closes: true,
  },
  {
    name: 'RFC 9112 9.3: a path of no API in HTTP/1.0 gets 404 and Connection: close',
    request: 'GET /none HTTP/1.0\r\n\r\n',
    status: '404 Not Found',
    code: 404,
    closes: true,
  },
  {
    name: 'RFC 9112 3.2: an invalid Host gets 400 and Connection: close',
    request: 'GET /echo HTTP/1.1\r\nHost: a b\r\n\r\n',
    status: '400 Bad Request',
    code: 400,
    message: 'Bad Request',
    closes: true,
  },
  {
    name: 'body.max_bytes: a body over the limit gets 102511 and Connection: close',
    request: 'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n',
    status: '400 Bad Request',
    code: 102511,
    message: 'Incomplete payload',
    closes: true,
  },
]

for (const { name, request, status, code, message, closes, fields } of RESPONSES) {
  test(name, async () => {
    const client = await connectPeer(gateway.port)
    client.send(request)
    await client.until('a response', () => parseResponse(client.received, 0, 'GET', false) !== undefined)
    const response = parseResponse(client.received, 0, 'GET', false)!
    assert.equal(response.start, `HTTP/1.1 ${status}`)
    assert.equal(response.framing, 'length')
    assert.deepEqual(valuesOf(response.lines, 'connection'), closes ? ['close'] : [])
    assert.equal(valuesOf(response.lines, 'activityid').length, 1)
    assert.equal(valuesOf(response.lines, 'date').length, 1)
    for (const [field, value] of Object.entries(fields ?? {}))
      assert.deepEqual(valuesOf(response.lines, field), [value])
    if (code === 0) assert.equal(response.body.length, 0)
    else {
      assert.deepEqual(valuesOf(response.lines, 'content-type'), ['application/json; charset=UTF-8'])
      const { fault } = JSON.parse(response.body.toString()) as { fault: Record<string, unknown> }
      assert.deepEqual(Object.keys(fault), ['code', 'type', 'message', 'description'])
      assert.equal(fault.code, code)
      if (message !== undefined) assert.equal(fault.message, message)
    }
    if (closes) assert.equal(await client.untilEnd(), 'FIN')
    client.destroy()
  })
}

test('RFC 9110 9.3.2: a fault in response to HEAD has Content-Length and no body', async () => {
  const client = await connectPeer(gateway.port)
  client.send('HEAD /none HTTP/1.1\r\nHost: a\r\n\r\nGET /echo/x HTTP/1.1\r\nHost: a\r\n\r\n')
  await client.untilText('ok')
  const fault = parseResponse(client.received, 0, 'HEAD', false)!
  assert.equal(fault.status, 404)
  assert.ok(Number(valuesOf(fault.lines, 'content-length')[0]) > 0)
  const next = parseResponse(client.received, fault.end, 'GET', false)!
  assert.equal(next.status, 200)
  client.destroy()
})

test('a fault contains no byte of the request', async () => {
  const client = await connectPeer(gateway.port)
  client.send('GET /echo HTTP/1.1\r\nHost: a\r\nX: <script>alert(1)</script>\r\nBad Name: <b>\r\n\r\n')
  await client.untilEnd()
  assert.ok(!/[<>]|alert/.test(client.text), client.text)
  client.destroy()
})

for (const [name, head] of [
  ['an invalid Host', 'POST /echo HTTP/1.1\r\nHost: a b\r\nContent-Length: 1000000\r\n\r\n'],
  ['a Content-Length over the limit', 'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n'],
  ['a chunk size over the limit', 'POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nf4240\r\n'],
  ['an unknown path', 'POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n'],
] as const) {
  test(`RFC 9112 9.6: the fault for ${name} reaches a client that still sends a large body`, async () => {
    const client = await connectPeer(gateway.port)
    client.pause()
    client.send(head)
    for (let i = 0; i < 20; i++) client.send('x'.repeat(50_000))
    await eventually('the gateway to read the body', () => client.unsent === 0 || client.isClosed)
    client.resume()
    assert.equal(await client.untilEnd(), 'FIN')
    const response = parseResponse(client.received, 0, 'GET', true)
    assert.ok(response !== undefined && response.status >= 400 && response.end === client.length, client.text)
    client.destroy()
  })
}

// Longer than the chunk of the composer, as long as the largest chunk of the arena, and longer.
for (const length of [100_000, 131_072, 300_000, 1_048_576]) {
  test(`a fault with a body of ${length} bytes is sent completely to each of 8 clients, 3 times in a row`, async t => {
    const filler = 'f'.repeat(length / 2 - 4)
    const args = '<args><arg expression="$trp:X-In"/><arg expression="$ctx:f"/></args>'
    const payload = `<payloadFactory media-type="text"><format>$1$2éé$2</format>${args}</payloadFactory>`
    const main = `<property name="f" value="${filler}"/>${payload}<respond/>`
    const faults = await faultsWith({ main })
    const { port, reports, stop } = await startGateway([{ context: '/t', port: 1 }], { faults })
    t.after(stop)
    const chunks = arena.acquiredChunks
    const clients = await Promise.all(Array.from({ length: 8 }, () => connectPeer(port)))
    for (const [n, client] of clients.entries()) client.send(requestOf(n).repeat(3))
    for (const [n, client] of clients.entries()) {
      for (let i = 0; i < 3; i++) {
        const { body } = await takeResponse(client)
        assert.ok(
          Buffer.from(body, 'latin1').toString() === `${n}...${filler}éé${filler}`,
          `${body.length} of ${length}`,
        )
      }
    }
    for (const client of clients) client.destroy()
    await eventually('the release of the memory', () => arena.acquiredChunks === chunks)
    assert.deepEqual(reports, [])
  })
}

function requestOf(n: number): string {
  return `GET /none HTTP/1.1\r\nHost: a\r\nX-In: ${n}...\r\n\r\n`
}

test('a client that reads nothing of its long faults holds the memory of one of them', async t => {
  const main = `<payloadFactory media-type="text"><format>${'f'.repeat(1_000_000)}</format></payloadFactory><respond/>`
  const faults = await faultsWith({ main })
  const { port, stop } = await startGateway([{ context: '/t', port: 1 }], { faults })
  t.after(stop)
  const client = await connectPeer(port)
  const chunks = arena.acquiredChunks
  client.pause()
  client.send(requestOf(0).repeat(50))
  await eventually('a fault in memory', () => arena.acquiredChunks > chunks)
  assert.ok(arena.acquiredChunks - chunks < 20, `${arena.acquiredChunks - chunks} chunks`)
  client.destroy()
  await eventually('the release of the memory', () => arena.acquiredChunks === chunks)
})
