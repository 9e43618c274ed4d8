/** Max-Forwards of OPTIONS requests (RFC 9110 7.6.2), and empty lines before a request (RFC 9112 2.2). */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { PLAIN_API } from '../harness/api-plan.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, type Peer, ScriptedBackend } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const backend = await ScriptedBackend.listen(peer => void respondToAll(peer))
/** Requests that reached the backend. */
const requests: string[] = []
const operation = { authType: 'None', tier: 'Unlimited', scopes: [] } as const
const resources = ['GET', 'OPTIONS'].map(verb => ({ template: '/menu', verb, ...operation }))
const gateway = await startGateway(
  [
    { context: '/t', port: backend.port },
    { context: '/declared', port: backend.port, overrides: { ...PLAIN_API, resources } },
  ],
  { hasFilterChain: true },
)
after(() => {
  gateway.stop()
  backend.close()
})

async function respondToAll(peer: Peer): Promise<void> {
  while (!peer.isClosed && peer.ending === '') {
    await peer.untilRequest()
    const request = peer.take()
    if (request === '') continue
    requests.push(request)
    peer.send(OK)
  }
}

async function ask(raw: string): ReturnType<typeof takeResponse> {
  requests.length = 0
  const client = await connectPeer(gateway.port)
  client.send(raw)
  const response = await takeResponse(client)
  client.destroy()
  return response
}

function descriptionOf(body: string): string {
  return JSON.parse(body).fault.description
}

function options(path: string, ...fields: readonly string[]): string {
  return `OPTIONS ${path} HTTP/1.1\r\nHost: a\r\n${fields.map(field => `${field}\r\n`).join('')}\r\n`
}

const METHODS = 'GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS'
const ANSWERED: readonly (readonly [path: string, field: string, allow: string])[] = [
  ['/t/x', 'Max-Forwards: 0', METHODS],
  ['/t/x', 'max-forwards:   000  ', METHODS],
  ['/declared/menu', 'Max-Forwards: 0', 'GET, HEAD, OPTIONS'],
]

for (const [path, field, allow] of ANSWERED) {
  test(`RFC 9110 7.6.2: OPTIONS ${path} with "${field}" is answered by the gateway`, async () => {
    const { status, fields, body } = await ask(options(path, field))
    assert.deepEqual([status, fields.get('allow'), body], [200, [allow], ''])
    assert.deepEqual(requests, [])
  })
}

test('RFC 9110 7.6.2: OPTIONS with Max-Forwards: 0 passes the filters of its API first', async () => {
  assert.equal((await ask(options('/declared/none', 'Max-Forwards: 0'))).status, 403)
  assert.equal((await ask(options('/none', 'Max-Forwards: 0'))).status, 404)
})

/** [value, value at the backend]. */
const DECREMENTED: readonly (readonly [value: string, forwarded: string])[] = [
  ['1', '0'],
  ['2', '1'],
  ['10', '9'],
  ['100', '99'],
  ['007', '6'],
  ['255', '254'],
  ['256', '254'],
  ['99999999999999999999', '254'],
]

for (const [value, forwarded] of DECREMENTED) {
  test(`RFC 9110 7.6.2: Max-Forwards: ${value} of OPTIONS is ${forwarded} at the backend`, async () => {
    assert.equal((await ask(options('/t/x', 'X-First: a', `Max-Forwards: ${value}`, 'X-Last: b'))).body, 'ok')
    const [request = ''] = requests
    assert.deepEqual(request.match(/^Max-Forwards: *(\d+)\r$/m)?.[1], forwarded)
    assert.match(request, /^X-First: a\r\nMax-Forwards: .*\r\nX-Last: b\r\n/m)
  })
}

test('RFC 9110 7.6.2: each of several OPTIONS requests on a connection is decremented', async () => {
  requests.length = 0
  const client = await connectPeer(gateway.port)
  for (const _ of [1, 2, 3]) {
    client.send(options('/t/x', 'Max-Forwards: 5'))
    assert.equal((await takeResponse(client)).body, 'ok')
  }
  client.destroy()
  for (const request of requests) assert.match(request, /^Max-Forwards: 4\r$/m)
  assert.equal(requests.length, 3)
})

for (const fields of [['Max-Forwards: x'], ['Max-Forwards:'], ['Max-Forwards: -1'], ['Max-Forwards: 1, 2']]) {
  test(`OPTIONS with "${fields}" gets 400`, async () => {
    const { status, body } = await ask(options('/t/x', ...fields))
    assert.deepEqual([status, descriptionOf(body)], [400, 'Max-Forwards is one number (RFC 9110 7.6.2)'])
    assert.deepEqual(requests, [])
  })
}

test('OPTIONS with two Max-Forwards gets 400', async () => {
  assert.equal((await ask(options('/t/x', 'Max-Forwards: 1', 'max-forwards: 1'))).status, 400)
})

test('RFC 9110 7.6.2: Max-Forwards of other methods passes unchanged', async () => {
  assert.equal((await ask('GET /t/x HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n')).body, 'ok')
  assert.match(requests[0]!, /^Max-Forwards: 0\r$/m)
})

const GET = 'GET /t/x HTTP/1.1\r\nHost: a\r\n\r\n'
const EMPTY_LINES_MAX = 16

test('RFC 9112 2.2: empty lines before a request are skipped, up to a number', async () => {
  assert.equal((await ask('\r\n'.repeat(EMPTY_LINES_MAX) + GET)).body, 'ok')
  const { status, body } = await ask('\r\n'.repeat(EMPTY_LINES_MAX + 1) + GET)
  assert.deepEqual([status, descriptionOf(body)], [400, 'too many empty lines before a request (RFC 9112 2.2)'])
  assert.deepEqual(requests, [])
})

test('RFC 9112 2.2: empty lines that arrive one by one are counted together, for each request anew', async () => {
  const client = await connectPeer(gateway.port)
  for (const _ of [1, 2]) {
    for (let line = 0; line < EMPTY_LINES_MAX; line++) client.send('\r\n')
    client.send(GET)
    assert.equal((await takeResponse(client)).body, 'ok')
  }
  for (let line = 0; line <= EMPTY_LINES_MAX; line++) client.send('\r\n')
  assert.equal((await takeResponse(client)).status, 400)
  assert.equal(await client.untilEnd(), 'FIN')
})
