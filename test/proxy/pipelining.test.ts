/**
 * Pipelining (RFC 9112 9.3.2): requests that arrive together are served one after the other, with responses in order.
 */
import assert from 'node:assert/strict'
import { after, afterEach, test } from 'node:test'
import { StrictBackend } from '../harness/strict-backend.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, quiet } from '../harness/peers.ts'
import { parseResponse, type StrictMessage } from '../harness/strict-http.ts'

const backend = await StrictBackend.listen()
const gateway = await startGateway([{ context: '/echo', port: backend.port }])
after(() => {
  gateway.stop()
  backend.close()
})
const respondOk = backend.respond
const clients: Peer[] = []
afterEach(() => {
  backend.respond = respondOk
  backend.requests.length = 0
  for (const client of clients.splice(0)) client.destroy()
})

async function open(): Promise<Peer> {
  const client = await connectPeer(gateway.port)
  clients.push(client)
  return client
}

const get = (path: string, more = '') => `GET /echo${path} HTTP/1.1\r\nHost: a\r\n${more}\r\n`
const post = (path: string, body: string) =>
  `POST /echo${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`
const echoTarget = (request: StrictMessage) =>
  `HTTP/1.1 200 OK\r\nContent-Length: ${request.target.length}\r\n\r\n${request.target}`

/** Takes the next `count` responses, in order; `methods` says which are to HEAD. */
async function take(client: Peer, count: number, methods: readonly string[] = []): Promise<StrictMessage[]> {
  const responses: StrictMessage[] = []
  let at = 0
  await client.until(`${count} responses`, () => {
    while (responses.length < count) {
      const response = parseResponse(client.received, at, methods[responses.length] ?? 'GET', client.ending === 'FIN')
      if (response === undefined) return false
      responses.push(response)
      at = response.end
    }
    return true
  })
  client.take(at)
  return responses
}

const bodies = (responses: readonly StrictMessage[]) => responses.map(({ body }) => body.toString('latin1'))

test('RFC 9112 9.3.2: responses are in the order of the requests', async () => {
  backend.respond = echoTarget
  const client = await open()
  const paths = Array.from({ length: 100 }, (_, i) => `/${i}`)
  client.send(paths.map(path => get(path)).join(''))
  assert.deepEqual(bodies(await take(client, 100)), paths)
})

test('RFC 9112 9.3.2: a slow first response delays the following ones', async () => {
  const pending: Peer[] = []
  backend.respond = (request, peer) => {
    if (request.target !== '/slow') return echoTarget(request)
    pending.push(peer)
    return undefined
  }
  const client = await open()
  client.send(get('/slow') + get('/fast') + get('/other'))
  await eventually('the slow request', () => pending.length > 0)
  await quiet()
  assert.equal(client.text, '')
  assert.deepEqual(
    backend.requests.map(({ target }) => target),
    ['/slow'],
    'the next request is sent only after the response to the previous one',
  )
  pending[0]!.send('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n/slow')
  assert.deepEqual(bodies(await take(client, 3)), ['/slow', '/fast', '/other'])
})

test('RFC 9112 9.3.2: pipelined requests with bodies of either framing are served in order', async () => {
  backend.respond = request => {
    const body = `${request.target}:${request.body.toString('latin1')}`
    return `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  }
  const client = await open()
  const chunks =
    'POST /echo/c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n2\r\nyz\r\n0\r\nT: u\r\n\r\n'
  client.send(post('/a', 'hello') + get('/b') + chunks + post('/d', '') + get('/e'))
  assert.deepEqual(bodies(await take(client, 5)), ['/a:hello', '/b:', '/c:xyz', '/d:', '/e:'])
})

test('RFC 9112 9.3.2: a HEAD between other requests does not disturb the order', async () => {
  backend.respond = request =>
    request.method === 'HEAD' ? 'HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n' : echoTarget(request)
  const client = await open()
  client.send(`${get('/a')}HEAD /echo/b HTTP/1.1\r\nHost: a\r\n\r\n${get('/c')}`)
  assert.deepEqual(bodies(await take(client, 3, ['GET', 'HEAD', 'GET'])), ['/a', '', '/c'])
})

test('RFC 9112 9.3.2: a refusal that leaves the connection open is sent in order', async () => {
  backend.respond = echoTarget
  const client = await open()
  client.send(
    `${get('/a')}GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n${get('/b')}OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n${get('/c')}`,
  )
  const responses = await take(client, 5)
  assert.deepEqual(
    responses.map(({ status }) => status),
    [200, 404, 200, 200, 200],
  )
})

/** Requests that end a connection, and the statuses of the responses before its end. */
const endings: readonly (readonly [string, string, readonly number[]])[] = [
  ['a malformed request', 'GET /echo/b HTTP/1.1\r\nHost: a b\r\n\r\n', [200, 400]],
  ['an unknown method', 'NEW /echo/b HTTP/1.1\r\nHost: a\r\n\r\n', [200, 501]],
  ['an unknown version', 'GET /echo/b HTTP/3.0\r\nHost: a\r\n\r\n', [200, 505]],
  ['garbage', '\x16\x03\x01\r\n', [200, 400]],
  ['a request with Connection: close', get('/b', 'Connection: close\r\n'), [200, 200]],
  ['an HTTP/1.0 request', 'GET /echo/b HTTP/1.0\r\nHost: a\r\n\r\n', [200, 200]],
  [
    'an invalid chunked body',
    `POST /echo/b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n`,
    [200, 400],
  ],
  [
    'a request with both framings',
    'POST /echo/b HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n',
    [200, 400],
  ],
]

for (const [name, request, statuses] of endings) {
  test(`RFC 9112 9.6: nothing after ${name} is parsed`, async () => {
    const client = await open()
    client.send(get('/a') + request + get('/never').repeat(3))
    const responses = await take(client, statuses.length)
    assert.deepEqual(
      responses.map(({ status }) => status),
      statuses,
    )
    assert.equal(await client.untilEnd(), 'FIN')
    assert.equal(client.text, '')
    assert.ok(backend.requests.every(({ target }) => target !== '/never'))
    const last = responses.at(-1)!
    assert.ok(last.lines.includes('Connection: close'), 'the last response has Connection: close')
  })
}

test('RFC 9112 9.6: Connection: close of the backend does not close the client connection', async () => {
  backend.respond = request => `${echoTarget(request).replace('\r\n', '\r\nConnection: close\r\n')}`
  const client = await open()
  client.send(get('/a') + get('/b'))
  assert.deepEqual(bodies(await take(client, 2)), ['/a', '/b'])
})

// A connection reads into a chunk of 16 KiB; requests of 64 bytes fill the chunk to the last byte, again and again.
for (const size of [64, 128, 61, 1000]) {
  test(`pipeline.max_bytes: pipelined requests of ${size} bytes far over the limit are all served`, async () => {
    const client = await open()
    const blank = get('/p', 'Pad: \r\n')
    const request = get('/p', `Pad: ${'x'.repeat(size - blank.length)}\r\n`)
    assert.equal(request.length, size)
    const count = Math.ceil(100_000 / size)
    client.send(request.repeat(count))
    const responses = await take(client, count)
    assert.equal(responses.length, count)
    client.send(get('/last'))
    await take(client, 1)
    assert.equal(backend.requests.at(-1)!.target, '/last')
  })
}

test('pipeline.max_bytes: a read buffer that is full to the last byte is consumed', async () => {
  const pending: Peer[] = []
  backend.respond = (request, peer) => {
    if (request.target !== '/slow') return echoTarget(request)
    pending.push(peer)
    return undefined
  }
  const client = await open()
  client.send(get('/slow'))
  await eventually('the slow request', () => pending.length > 0)
  const request = get('/p', `Pad: ${'x'.repeat(64 - get('/p', 'Pad: \r\n').length)}\r\n`)
  await client.sendCut(request.repeat(256), [8192])
  await quiet()
  pending[0]!.send('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n/slow')
  await take(client, 257)
  client.send(get('/last'))
  assert.deepEqual(bodies(await take(client, 1)), ['/last'])
})

test('RFC 9112 9.3.2: pipelined requests that arrive byte by byte are served in order', async () => {
  backend.respond = echoTarget
  const client = await open()
  await client.sendBytewise(get('/a') + post('/b', 'hello') + get('/c'))
  assert.deepEqual(bodies(await take(client, 3)), ['/a', '/b', '/c'])
})

test('RFC 9112 9.3.2: a failure of the backend affects only its own request', async () => {
  backend.respond = (request, peer) => {
    if (request.target !== '/lost') return echoTarget(request)
    peer.reset()
    return undefined
  }
  const client = await open()
  client.send(get('/a') + post('/lost', 'x') + get('/b'))
  const responses = await take(client, 3)
  assert.deepEqual(
    responses.map(({ status }) => status),
    [200, 502, 200],
  )
})
