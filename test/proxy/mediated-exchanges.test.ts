/**
 * Flows on a worker, in process and scripted: bodies both ways, answers in place of messages, limits, and what a
 * backend or a client sees of it. The worker threads themselves are tested in test/worker.
 */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { after, afterEach, test } from 'node:test'
import { arena, Parser } from '../../src/http1/llhttp.ts'
import { WorkerFailure, type WorkerFailureReason } from '../../src/mediation/worker-service.ts'
import { type GatewayOptions, startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, quiet } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import {
  going,
  raising,
  looping,
  responding,
  ScriptedWorker,
  textBody,
  unchanged,
  uppercase,
  workerFlows,
} from '../harness/scripted-worker.ts'
import { StrictBackend } from '../harness/strict-backend.ts'
import { parseResponse, type StrictMessage, valuesOf } from '../harness/strict-http.ts'

const MIB = 1024 * 1024
/** Small limits, so that short bodies reach them. */
const LIMITS = { bytesMax: 12 * MIB, memoryMax: 100_000, pieceBytes: 3072 }

const worker = new ScriptedWorker()
const backend = await StrictBackend.listen(echo)
const apis = [
  { context: '/request', port: backend.port, overrides: workerFlows('request') },
  { context: '/response', port: backend.port, overrides: workerFlows('response') },
  { context: '/both', port: backend.port, overrides: workerFlows('request', 'response') },
  { context: '/fault', port: backend.port, overrides: workerFlows('request', 'response', 'fault') },
  { context: '/onlyfault', port: backend.port, overrides: workerFlows('fault') },
  { context: '/dead', port: 1, overrides: workerFlows('request', 'response', 'fault') },
  { context: '/plain', port: backend.port },
]
const OPTIONS: GatewayOptions = { worker, bodies: LIMITS, accessLog: 'json' }
const gateway = await startGateway(apis, OPTIONS)
const clients: Peer[] = []
after(() => {
  gateway.stop()
  backend.close()
})
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy()
  worker.script = unchanged
  worker.tasks.length = 0
  worker.bodies.length = 0
  backend.respond = echo
  await eventually('the end of all connections of clients', () => gateway.metrics().counts.connectionsOpen === 0)
  await quiet()
  backend.requests.length = 0
  assert.deepEqual(backend.violations, [])
  await eventually('the end of every temporary file', () => leftFiles().length === 0)
})

function echo({ body, method }: StrictMessage): Uint8Array {
  const head = `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), method === 'HEAD' ? Buffer.alloc(0) : body])
}

function leftFiles(): string[] {
  return readdirSync(tmpdir()).filter(name => name.startsWith(`sluice-body-${process.pid}-`))
}

async function connected(): Promise<Peer> {
  const client = await connectPeer(gateway.port)
  clients.push(client)
  return client
}

function post(path: string, body: string | Buffer, ...lines: readonly string[]): Buffer {
  const fields = [...lines, `Content-Length: ${body.length}`].map(line => `${line}\r\n`).join('')
  const bytes = typeof body === 'string' ? Buffer.from(body, 'latin1') : body
  return Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`), bytes])
}

/** Waits for one complete response to a method and takes it. */
async function responseOf(client: Peer, method = 'GET'): Promise<StrictMessage> {
  let response: StrictMessage | undefined
  await client.until('a whole response', () => {
    response = parseResponse(client.received, 0, method, client.ending !== '')
    return response !== undefined
  })
  client.drop(response!.end)
  return response!
}

/** Bytes that differ at each position. */
function pattern(length: number): Buffer {
  const bytes = Buffer.alloc(length)
  for (let at = 0; at < length; at++) bytes[at] = 97 + ((at * 31 + (at >> 8)) % 26)
  return bytes
}

// ---- bodies ---------------------------------------------------------------------------------------------------------

const LENGTHS = [0, 1, 4095, 4097, 65_536, 99_999, 100_001, 1_000_000]
/** Longer than any buffer on the way. */
const LONGEST = 10_000_000

for (const path of ['/request', '/response', '/both']) {
  for (const length of path === '/both' ? [...LENGTHS, LONGEST] : LENGTHS) {
    test(`${path}: a body of ${length} bytes passes untouched, and the connection serves another request`, async () => {
      const client = await connected()
      const body = pattern(length)
      for (const round of [1, 2]) {
        client.send(post(`${path}/x?r=${round}`, body, 'X-Round: 1'))
        const response = await responseOf(client)
        assert.equal(response.status, 200)
        assert.ok(response.body.equals(body), `the body of round ${round}`)
        assert.deepEqual(valuesOf(response.lines, 'content-length'), [String(length)])
      }
      assert.equal(worker.tasks.length, path === '/both' ? 4 : 2)
      assert.ok(worker.bodies.every(each => each.equals(body)))
      assert.equal(backend.requests.at(-1)!.target, '/x?r=2')
    })

    test(`${path}: the worker replaces a body of ${length} bytes`, async () => {
      worker.script = uppercase
      const client = await connected()
      client.send(post(`${path}/x`, pattern(length)))
      const { body } = await responseOf(client)
      assert.equal(body.toString('latin1'), pattern(length).toString('latin1').toUpperCase())
    })
  }
}

test('chunked bodies in any pieces are collected; both sides get the real length, and no trailers', async () => {
  backend.respond = ({ body }) =>
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-End: ${body.length}\r\n\r\n`
  worker.script = uppercase
  const client = await connected()
  await client.sendBytewise(
    'POST /both/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\nX-T: 1\r\n\r\n',
  )
  const response = await responseOf(client)
  assert.equal(response.body.toString(), 'ABC')
  assert.equal(response.framing, 'length')
  const [request] = backend.requests
  assert.equal(request!.body.toString(), 'HELLO')
  assert.deepEqual([request!.framing, request!.trailers], ['length', []])
})

test('pipelined requests with bodies are mediated and answered in order', async () => {
  worker.script = uppercase
  const client = await connected()
  client.send(Buffer.concat(['one', 'two', 'three'].map(text => post(`/both/${text}`, text))))
  for (const text of ['ONE', 'TWO', 'THREE']) assert.equal((await responseOf(client)).body.toString(), text)
  assert.deepEqual(
    backend.requests.map(({ target }) => target),
    ['/one', '/two', '/three'],
  )
})

test('a slow client and a slow backend get all of a long body through files and back-pressure', async () => {
  const body = pattern(6_000_000)
  const client = await connected()
  client.pause()
  client.send(post('/both/x', body))
  await eventually('the response flow', () => worker.tasks.length === 2)
  await quiet()
  client.resume()
  assert.ok((await responseOf(client)).body.equals(body))
})

// ---- heads ----------------------------------------------------------------------------------------------------------

test('a flow changes method, target and fields of a request, and status, reason and fields of a response', async () => {
  worker.script = ({ message, flow }) =>
    flow === 'request'
      ? going(message, {
          method: 'PUT',
          target: '/moved?y=2',
          fields: [...message.fields.filter(([name]) => name !== 'X-Old'), ['X-New', 'n'], ['User-Agent', 'flow/1']],
          body: { kind: 'untouched' },
        })
      : going(message, { status: 418, reason: 'Teapot', fields: [['X-Made', 'm']], body: { kind: 'untouched' } })
  const client = await connected()
  client.send(post('/both/x?y=1', 'hello', 'X-Old: o', 'X-Kept: k'))
  const response = await responseOf(client)
  assert.equal(response.start, 'HTTP/1.1 418 Teapot')
  assert.deepEqual(valuesOf(response.lines, 'x-made'), ['m'])
  assert.deepEqual(valuesOf(response.lines, 'content-type'), [])
  const { start, lines } = backend.requests[0]!
  assert.equal(start, 'PUT /moved?y=2 HTTP/1.1')
  assert.deepEqual(valuesOf(lines, 'x-old'), [])
  assert.deepEqual(valuesOf(lines, 'x-kept'), ['k'])
  assert.deepEqual(valuesOf(lines, 'x-new'), ['n'])
  assert.deepEqual(valuesOf(lines, 'user-agent'), ['flow/1'])
  assert.deepEqual(valuesOf(lines, 'x-forwarded-for'), ['127.0.0.1'])
})

test('a flow sees no field of the connection, no framing but the length, no spoofed certificate', async () => {
  const client = await connected()
  client.send(
    post('/both/x', 'a', 'Connection: X-Mine', 'X-Mine: 1', 'X-JWT-Assertion: forged', 'TE: trailers', 'X-Seen: s'),
  )
  await responseOf(client)
  const names = worker.tasks[0]!.message.fields.map(([name]) => name)
  // The last ones are the gateway's own, as the backend gets them.
  assert.deepEqual(names, [
    'Host',
    'X-Seen',
    'Content-Length',
    'Via',
    'X-Forwarded-For',
    'X-Forwarded-Proto',
    'X-Forwarded-Host',
  ])
  assert.deepEqual(
    worker.tasks[1]!.message.fields.map(([name]) => name),
    ['Content-Type', 'Content-Length'],
  )
  assert.deepEqual(valuesOf(backend.requests[0]!.lines, 'x-jwt-assertion'), [])
})

for (const [what, changes] of [
  ['a line break in a value', { fields: [['X-A', 'a\r\nX-B: b']] }],
  ['a line feed beyond latin1 in a value', { fields: [['X-A', 'a\u010aX-B: b']] }],
  ['a name that is no token', { fields: [['X A', 'a']] }],
  ['a target with a space', { target: '/x HTTP/1.1' }],
  ['a target with a fragment', { target: '/x#y' }],
  ['a method that is no token', { method: 'GET /x' }],
  ['a method that nobody knows', { method: 'BREW' }],
  ['CONNECT', { method: 'CONNECT' }],
  ['a head beyond the limit', { fields: [['X-A', 'a'.repeat(200_000)]] }],
] as const) {
  test(`a request of a flow with ${what} is 102532, and no backend sees it`, async () => {
    worker.script = ({ message }) => going(message, { ...changes, body: { kind: 'untouched' } })
    const client = await connected()
    client.send(post('/request/x', 'hello'))
    const { status, body } = await takeResponse(client)
    assert.equal(status, 500)
    assert.match(body, /"code":102532/)
    assert.equal(backend.requests.length, 0)
    assert.ok(gateway.reports.some(({ event, level }) => event === 'message not mediated' && level === 'warn'))
  })
}

test('framing fields that a flow sets are dropped: the gateway frames each message', async () => {
  worker.script = ({ message }) =>
    going(message, {
      fields: [
        ['Content-Length', '99'],
        ['Transfer-Encoding', 'chunked'],
        ['Connection', 'close'],
        ['Host', 'a'],
      ],
      body: textBody('new'),
    })
  const client = await connected()
  client.send(post('/both/x', 'hello'))
  const response = await responseOf(client)
  assert.equal(response.body.toString(), 'new')
  assert.equal(backend.requests[0]!.body.toString(), 'new')
  assert.deepEqual(valuesOf(response.lines, 'connection'), [])
})

test('HEAD gets the length of what a GET would get, and no body; 204 has neither', async () => {
  const client = await connected()
  worker.script = ({ message }) => going(message, { body: textBody(message.status === 0 ? '' : 'made') })
  client.send('HEAD /response/x HTTP/1.1\r\nHost: a\r\n\r\n')
  const head = await responseOf(client, 'HEAD')
  assert.deepEqual(valuesOf(head.lines, 'content-length'), ['4'])
  worker.script = ({ message }) => going(message, { status: 204, body: textBody('made') })
  client.send('GET /response/x HTTP/1.1\r\nHost: a\r\n\r\n')
  const none = await responseOf(client)
  assert.deepEqual([none.status, valuesOf(none.lines, 'content-length')], [204, []])
  client.send('GET /plain/x HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal((await responseOf(client)).status, 200)
})

test('a response to HEAD keeps its type, and claims no empty body, where a flow leaves its body alone', async () => {
  const client = await connected()
  for (const length of ['', 'Content-Length: 5\r\n']) {
    backend.respond = () => Buffer.from(`HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n${length}\r\n`)
    client.send('HEAD /response/x HTTP/1.1\r\nHost: a\r\n\r\n')
    const { lines } = await responseOf(client, 'HEAD')
    assert.deepEqual([valuesOf(lines, 'content-type'), valuesOf(lines, 'content-length')], [['text/plain'], []])
  }
})

test('Expect: the gateway sends 100 where a flow needs the body, and the backend gets no expectation', async () => {
  const client = await connected()
  const [head, body] = [
    'POST /request/x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n',
    'hello',
  ]
  client.send(head)
  await client.untilText('\r\n\r\n')
  assert.equal(client.take(), 'HTTP/1.1 100 Continue\r\n\r\n')
  client.send(body)
  assert.equal((await responseOf(client)).body.toString(), 'hello')
  client.send(head + body)
  assert.equal((await responseOf(client)).status, 200, 'a client that does not wait gets no 100')
  assert.ok(backend.requests.every(({ lines }) => valuesOf(lines, 'expect').length === 0))
})

// ---- answers in place of messages -----------------------------------------------------------------------------------

test('a request flow responds: the client gets it at once, without backend and response flow', async () => {
  worker.script = task => responding(task, 201, 'made')
  const client = await connected()
  client.send(post('/both/x', 'hello').toString('latin1').repeat(2))
  for (const _ of [1, 2]) {
    const response = await responseOf(client)
    assert.deepEqual([response.start, response.body.toString()], ['HTTP/1.1 201 Created', 'made'])
  }
  assert.equal(backend.requests.length, 0)
  assert.ok(worker.tasks.every(({ flow }) => flow === 'request'))
})

test('a flow drops its message: 202 without a body, in both directions', async () => {
  worker.script = () => ({ kind: 'drops' })
  const client = await connected()
  for (const path of ['/request', '/response']) {
    client.send(post(`${path}/x`, 'hello'))
    const response = await responseOf(client)
    assert.deepEqual([response.status, response.body.length], [202, 0])
  }
})

test('loopback: the response flow gets what the request flow has made', async () => {
  worker.script = task => (task.flow === 'response' ? uppercase(task) : looping(task, 'looped'))
  const client = await connected()
  client.send(post('/both/x', 'hello'))
  assert.equal((await responseOf(client)).body.toString(), 'LOOPED')
  assert.equal(backend.requests.length, 0)
})

test('properties of the request flow are those of the response flow and of the fault flow', async () => {
  const state = { default: [['mine', 'm']], axis2: [], operation: [['op', 1]], variables: [] } as const
  worker.script = task => (task.flow === 'request' ? going(task.message, { state }) : unchanged(task))
  const client = await connected()
  for (const path of ['/both', '/dead']) {
    client.send(post(`${path}/x`, 'hello'))
    await responseOf(client)
    const { message } = worker.tasks.at(-1)!
    assert.ok(message.state.default.some(([name, value]) => name === 'mine' && value === 'm'))
    assert.deepEqual(message.state.operation, [['op', 1]])
  }
  assert.equal(worker.tasks.at(-1)!.flow, 'fault')
})

// ---- faults ---------------------------------------------------------------------------------------------------------

const FAILURES: readonly (readonly [WorkerFailureReason, number, number])[] = [
  ['queue-full', 503, 102540],
  ['memory', 503, 102541],
  ['late', 504, 102542],
  ['died', 500, 102543],
  ['failed', 500, 102544],
]
for (const [reason, status, code] of FAILURES) {
  for (const path of ['/request', '/response']) {
    test(`${path}: a worker that fails (${reason}) is ${status} with ${code}, and the connection goes on`, async () => {
      worker.script = () => {
        throw new WorkerFailure(reason, 'the test fails it')
      }
      const client = await connected()
      client.send(post(`${path}/x`, 'hello'))
      const response = await takeResponse(client)
      assert.equal(response.status, status)
      assert.match(response.body, new RegExp(`"code":${code}`))
      worker.script = unchanged
      client.send(post(`${path}/x`, 'again'))
      assert.equal((await responseOf(client)).body.toString(), 'again')
    })
  }
}

test('a raised fault has its code and message, worded by the fault sequence', async () => {
  worker.script = task => raising(task, 900800, 'too many words')
  const client = await connected()
  client.send(post('/request/x', 'hello'))
  const response = await takeResponse(client)
  assert.equal(response.status, 429)
  assert.match(response.body, /"code":900800.*too many words/)
  worker.script = task => raising(task, 12_345, 'my own')
  client.send(post('/response/x', 'hello'))
  const own = await takeResponse(client)
  assert.equal(own.status, 500)
  const { code, message } = JSON.parse(own.body).fault
  assert.deepEqual([code, message], [12_345, 'my own'])
})

test('the fault flow words faults of flows and of backends; its fields win over those of the gateway', async () => {
  worker.script = task =>
    task.flow === 'fault'
      ? going(task.message, { status: 499, fields: [['X-Worded', 'w']], body: textBody(wordsOf(task.message.state)) })
      : raising(task, 900800)
  const client = await connected()
  for (const [path, code] of [
    ['/fault', '900800'],
    ['/dead', '900800'],
  ] as const) {
    client.send(post(`${path}/x`, 'hello'))
    const response = await responseOf(client)
    assert.deepEqual([response.status, response.body.toString()], [499, code])
    assert.deepEqual(valuesOf(response.lines, 'x-worded'), ['w'])
  }
  worker.script = task =>
    task.flow === 'fault' ? going(task.message, { body: textBody(wordsOf(task.message.state)) }) : unchanged(task)
  client.send(post('/dead/x', 'hello'))
  const dead = await responseOf(client)
  assert.equal(dead.body.toString(), '101503')
  assert.equal(dead.status, 502)
})

function wordsOf(state: { readonly default: readonly (readonly [string, unknown])[] }): string {
  return String(state.default.find(([name]) => name === 'ERROR_CODE')?.[1])
}

for (const [what, script] of [
  ['fails', () => Promise.reject(new WorkerFailure('died', 'the test'))],
  ['raises a fault', raising],
  ['drops the fault', () => ({ kind: 'drops' })],
  ['makes a response that is none', task => going(task.message, { status: 42 })],
] as readonly (readonly [string, (typeof worker)['script']])[]) {
  test(`a fault flow that ${what}: the fault sequence of the code answers`, async () => {
    worker.script = task => (task.flow === 'fault' ? script(task) : raising(task, 900800))
    const client = await connected()
    client.send(post('/fault/x', 'hello'))
    const response = await takeResponse(client)
    assert.equal(response.status, 429)
    assert.match(response.body, /"code":900800/)
    client.send(post('/plain/x', 'again'))
    assert.equal((await responseOf(client)).body.toString(), 'again')
  })
}

// ---- limits ---------------------------------------------------------------------------------------------------------

test('a request body beyond mediation.body.max_bytes is 102530, announced or not; the client gets no 100', async () => {
  const long = LIMITS.bytesMax + 1
  const chunk = `${long.toString(16)}\r\n${'a'.repeat(long)}`
  for (const request of [
    `POST /request/x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: ${long}\r\n\r\n`,
    `POST /request/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`,
  ]) {
    const client = await connected()
    client.send(request)
    const response = await takeResponse(client)
    assert.equal(response.status, 413)
    assert.match(response.body, /"code":102530/)
    assert.deepEqual(response.fields.get('connection'), ['close'])
  }
  assert.equal(backend.requests.length, 0)
})

test('a response beyond mediation.body.max_bytes is 102531, announced or not, and never cut', async () => {
  const long = LIMITS.bytesMax + 1
  for (const head of [`Content-Length: ${long}`, 'Transfer-Encoding: chunked']) {
    const start = head.startsWith('T') ? `${long.toString(16)}\r\n` : ''
    backend.respond = () => `HTTP/1.1 200 OK\r\n${head}\r\n\r\n${start}${'a'.repeat(long)}`
    const client = await connected()
    client.send(post('/response/x', 'hello'))
    const response = await takeResponse(client)
    assert.equal(response.status, 502)
    assert.match(response.body, /"code":102531/)
  }
})

// ---- the record -----------------------------------------------------------------------------------------------------

test('the access line has the bytes of client and response as they were, and the status that was sent', async () => {
  worker.script = ({ message }) => going(message, { body: textBody('0123456789') })
  const client = await connected()
  client.send(post('/both/recorded', 'hello'))
  await responseOf(client)
  const lineOf = () => gateway.accessLines.findLast(each => each.includes('/both/recorded'))
  await eventually('the access line', () => lineOf() !== undefined)
  const { status, request_body_bytes, response_body_bytes } = JSON.parse(lineOf()!) as Record<string, unknown>
  assert.deepEqual([status, request_body_bytes, response_body_bytes], [200, 5, 10])
})

test('no chunk of the arena and no parser stays behind', async () => {
  const [chunks, parsers] = [arena.acquiredChunks, Parser.inUse]
  worker.script = uppercase
  for (let round = 0; round < 20; round++) {
    const client = await connected()
    client.send(post('/both/x', pattern(round * 20_000)))
    await responseOf(client)
    client.destroy()
  }
  await eventually('the end of all connections', () => gateway.metrics().counts.connectionsOpen === 0)
  assert.ok(arena.acquiredChunks <= chunks + 2, `${arena.acquiredChunks} chunks, ${chunks} before`)
  assert.ok(Parser.inUse <= parsers + 2, `${Parser.inUse} parsers, ${parsers} before`)
})
