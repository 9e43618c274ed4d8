/** Answers of the gateway's own: their fields, their body, and what becomes of the connection. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually } from '../harness/peers.ts'
import { parseResponse, valuesOf } from '../harness/strict-http.ts'

const backend = await AnsweringBackend.listen()
const gateway = await startGateway([{ context: '/echo', port: backend.port }], { 'body.max_bytes': 10 })
after(() => {
  gateway.stop()
  backend.close()
})

interface OwnAnswer {
  readonly name: string
  readonly request: string
  readonly status: string
  /** The fault's code; 0: there is no fault. */
  readonly code: number
  readonly message?: string
  readonly closes: boolean
  readonly fields?: Readonly<Record<string, string>>
}

const METHODS = 'GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS'

const answers: readonly OwnAnswer[] = [
  {
    name: 'RFC 9110 9.3.7: OPTIONS *',
    request: 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n',
    status: '200 OK',
    code: 0,
    closes: false,
    fields: { allow: METHODS },
  },
  {
    name: 'RFC 9110 15.5.6: 405 says what is allowed',
    request: 'TRACE /echo HTTP/1.1\r\nHost: a\r\n\r\n',
    status: '405 Method Not Allowed',
    code: 400,
    closes: true,
    fields: { allow: METHODS },
  },
  {
    name: 'a path of no API',
    request: 'GET /none HTTP/1.1\r\nHost: a\r\nactivityid: abc\r\n\r\n',
    status: '404 Not Found',
    code: 404,
    closes: false,
    fields: { activityid: 'abc' },
  },
  {
    name: 'a path of no API, with a body that is left unread',
    request: 'POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n',
    status: '404 Not Found',
    code: 404,
    closes: true,
  },
  {
    name: 'a path of no API, asked for over HTTP/1.0',
    request: 'GET /none HTTP/1.0\r\n\r\n',
    status: '404 Not Found',
    code: 404,
    closes: true,
  },
  {
    name: 'a malformed request',
    request: 'GET /echo HTTP/1.1\r\nHost: a b\r\n\r\n',
    status: '400 Bad Request',
    code: 400,
    message: 'Bad Request',
    closes: true,
  },
  {
    name: 'specification: 102511, Incomplete payload',
    request: 'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n',
    status: '400 Bad Request',
    code: 102511,
    message: 'Incomplete payload',
    closes: true,
  },
]

for (const { name, request, status, code, message, closes, fields } of answers) {
  test(name, async () => {
    const client = await connectPeer(gateway.port)
    client.send(request)
    await client.until('an answer', () => parseResponse(client.received, 0, 'GET', false) !== undefined)
    const answer = parseResponse(client.received, 0, 'GET', false)!
    assert.equal(answer.start, `HTTP/1.1 ${status}`)
    assert.equal(answer.framing, 'length')
    assert.deepEqual(valuesOf(answer.lines, 'connection'), closes ? ['close'] : [])
    assert.equal(valuesOf(answer.lines, 'activityid').length, 1)
    assert.equal(valuesOf(answer.lines, 'date').length, 1)
    for (const [field, value] of Object.entries(fields ?? {})) assert.deepEqual(valuesOf(answer.lines, field), [value])
    if (code === 0) assert.equal(answer.body.length, 0)
    else {
      assert.deepEqual(valuesOf(answer.lines, 'content-type'), ['application/json; charset=UTF-8'])
      const { fault } = JSON.parse(answer.body.toString()) as { fault: Record<string, unknown> }
      assert.deepEqual(Object.keys(fault), ['code', 'type', 'message', 'description'])
      assert.equal(fault.code, code)
      if (message !== undefined) assert.equal(fault.message, message)
    }
    if (closes) assert.equal(await client.untilEnd(), 'FIN')
    client.destroy()
  })
}

test('RFC 9110 9.3.2: a fault to HEAD has the fields of its body, but no body', async () => {
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

test('no byte of a request comes back in a fault', async () => {
  const client = await connectPeer(gateway.port)
  client.send('GET /echo HTTP/1.1\r\nHost: a\r\nX: <script>alert(1)</script>\r\nBad Name: <b>\r\n\r\n')
  await client.untilEnd()
  assert.ok(!/[<>]|alert/.test(client.text), client.text)
  client.destroy()
})

for (const [name, head] of [
  ['a malformed head', 'POST /echo HTTP/1.1\r\nHost: a b\r\nContent-Length: 1000000\r\n\r\n'],
  ['a body that is too large', 'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n'],
  ['chunks that are too large', 'POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nf4240\r\n'],
  ['a path of no API', 'POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n'],
] as const) {
  test(`RFC 9112 9.6: the answer to ${name} is not overtaken by a reset, however much still comes`, async () => {
    const client = await connectPeer(gateway.port)
    client.pause()
    client.send(head)
    for (let i = 0; i < 20; i++) client.send('x'.repeat(50_000))
    await eventually('everything to be taken', () => client.unsent === 0 || client.isClosed)
    client.resume()
    assert.equal(await client.untilEnd(), 'FIN')
    const answer = parseResponse(client.received, 0, 'GET', true)
    assert.ok(answer !== undefined && answer.status >= 400 && answer.end === client.length, client.text)
    client.destroy()
  })
}
