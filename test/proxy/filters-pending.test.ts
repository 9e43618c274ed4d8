/**
 * Filters that return a promise. The request waits and is forwarded once, complete and in order. A request with a body
 * waits in FILTERS_PENDING: its body is not read and no timeout of the client runs. Each end of the client ends the
 * request with its documented code.
 */
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, test } from 'node:test'
import type { ConnectionList } from '../../src/observe/connection-list.ts'
import type { Filter, FilterResult } from '../../src/proxy/exchange/contract.ts'
import { refusal } from '../../src/proxy/exchange/outcome.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, quiet } from '../harness/peers.ts'
import { assertFault, takeResponse } from '../harness/responses.ts'
import { StrictBackend } from '../harness/strict-backend.ts'

const READ_TIMEOUT_MS = 1000

const backend = await StrictBackend.listen()
const respondOk = backend.respond
/** The result of the filter; set by the test. */
let runFilter: () => FilterResult = () => undefined
const filter: Filter = { name: 'waits', request: () => runFilter() }
let gateway: TestGateway

beforeEach(async () => {
  backend.requests.length = 0
  backend.respond = respondOk
  runFilter = () => undefined
  gateway = await startGateway([{ context: '/t', port: backend.port }], { filters: [filter] })
})
afterEach(() => gateway.stop())
after(() => backend.close())

const POST = 'POST /t/it HTTP/1.1\r\nHost: a\r\n'
const HEAD = `${POST}Content-Length: 10\r\n\r\n`
const GET = 'GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n'

interface PendingFilter {
  /** Resolves when a request has reached the filter. */
  readonly called: Promise<void>
  decide(result: Awaited<FilterResult>): void
  fail(error: Error): void
}

/** Makes the filter return a promise that the test settles. */
function holdFilter(): PendingFilter {
  const called = Promise.withResolvers<void>()
  const result = Promise.withResolvers<Awaited<FilterResult>>()
  runFilter = () => {
    called.resolve()
    return result.promise
  }
  return { called: called.promise, decide: result.resolve, fail: result.reject }
}

/** Sends a request and waits until it has reached the pending filter. */
async function sendPending(sent: string): Promise<{ readonly client: Peer; readonly filter: PendingFilter }> {
  const pending = holdFilter()
  const client = await connectPeer(gateway.port)
  client.send(sent)
  await pending.called
  return { client, filter: pending }
}

function states(): ConnectionList['counts']['source'] {
  const query = { side: '', state: '', limit: 10 } as const
  return (gateway.reactor.inspector.serve({ kind: 'connections', query }) as ConnectionList).counts.source
}

function sourceFaults(): readonly (readonly [base: number, state: number])[] {
  return gateway
    .metrics()
    .faults.filter(({ side, count }) => side === 'source' && count > 0)
    .map(({ base, state }) => [base, state] as const)
}

function bodies(): readonly string[] {
  return backend.requests.map(({ body }) => body.toString('latin1'))
}

async function untilClientGone(): Promise<void> {
  await eventually('the end of the client connection', () => gateway.metrics().counts.connectionsOpen === 0)
}

// ---- forwarding ----------------------------------------------------------------------------------------------------

const REQUESTS: readonly (readonly [name: string, raw: string, body: string])[] = [
  ['without a body', GET, ''],
  ['with Content-Length', `${POST}Content-Length: 5\r\n\r\nhello`, 'hello'],
  ['with an empty body', `${POST}Content-Length: 0\r\n\r\n`, ''],
  ['in chunks', `${POST}Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n`, 'hello'],
  ['with a long body', `${POST}Content-Length: 200000\r\n\r\n${'x'.repeat(200_000)}`, 'x'.repeat(200_000)],
]

for (const [name, raw, body] of REQUESTS) {
  const headEnd = raw.indexOf('\r\n\r\n') + 4
  for (const [how, cuts] of [
    ['in one piece', []],
    ['with the head first', [headEnd]],
    ['in small pieces', [3, 20, headEnd - 1, headEnd, headEnd + 2].filter(cut => cut < raw.length)],
  ] as const) {
    test(`a request ${name}, sent ${how}, is forwarded once and complete after the filter has decided`, async () => {
      const pending = holdFilter()
      const client = await connectPeer(gateway.port)
      await client.sendCut(raw, cuts)
      await pending.called
      assert.deepEqual(bodies(), [], 'nothing is forwarded before the filter has decided')
      pending.decide(undefined)
      await client.untilText('\r\n\r\nok')
      assert.deepEqual(bodies(), [body])
      client.destroy()
    })
  }
}

test('a request with a body waits in FILTERS_PENDING, a request without a body in REQUEST_DONE', async () => {
  for (const [sent, state] of [
    [`${HEAD}01234`, 'FILTERS_PENDING'],
    [GET, 'REQUEST_DONE'],
  ] as const) {
    const { client, filter: pending } = await sendPending(sent)
    assert.deepEqual(states(), { [state]: 1 })
    pending.decide(undefined)
    if (sent !== GET) client.send('56789')
    assert.equal((await takeResponse(client)).status, 200)
    assert.deepEqual(states(), { REQUEST_READY: 1 })
    client.destroy()
    await untilClientGone()
  }
  assert.deepEqual(bodies(), ['0123456789', ''])
})

test('at most one read of a long body is taken while the filter is pending, and the rest afterwards', async () => {
  const length = 4_000_000
  const { client, filter: pending } = await sendPending(`${POST}Content-Length: ${length}\r\n\r\n`)
  client.send('x'.repeat(length))
  await quiet()
  const read = gateway.metrics().counts.bytesFromClients
  assert.ok(read <= 200_000, `${read} bytes were read`)
  pending.decide(undefined)
  assert.equal((await takeResponse(client)).status, 200)
  assert.equal(backend.requests[0]!.body.length, length)
  client.destroy()
})

test('body.read_timeout starts when the filter has decided', async t => {
  const http = { 'header.read_timeout': READ_TIMEOUT_MS, 'body.read_timeout': READ_TIMEOUT_MS }
  const limited = await startGateway([{ context: '/t', port: backend.port }], { http, filters: [filter] })
  t.after(() => limited.stop())
  const pending = holdFilter()
  const client = await connectPeer(limited.port)
  await client.sendCut(HEAD, [HEAD.length - 3])
  await pending.called
  await new Promise(resolve => setTimeout(resolve, 1.2 * READ_TIMEOUT_MS))
  assert.equal(client.text, '')
  pending.decide(undefined)
  await new Promise(resolve => setTimeout(resolve, 0.2 * READ_TIMEOUT_MS))
  client.send('0123456789')
  assert.equal((await takeResponse(client)).status, 200)
  client.destroy()
})

test('RFC 9112 9.3.2: pipelined requests after a pending one are served in order', async () => {
  const { client, filter: pending } = await sendPending(
    'GET /t/1 HTTP/1.1\r\nHost: h\r\n\r\nGET /t/2 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n',
  )
  runFilter = () => undefined
  pending.decide(undefined)
  await client.untilEnd()
  assert.deepEqual(
    backend.requests.map(({ start }) => start),
    ['GET /1 HTTP/1.1', 'GET /2 HTTP/1.1'],
  )
})

test('requests that wait for the same promise are each forwarded and answered by themselves', async () => {
  const clients = await Promise.all(Array.from({ length: 20 }, () => connectPeer(gateway.port)))
  backend.respond = ({ target }) => `HTTP/1.1 200 OK\r\nContent-Length: ${target.length}\r\n\r\n${target}`
  // In the second round every request finds a pooled connection.
  for (let round = 0; round < 2; round++) {
    const shared = Promise.withResolvers<undefined>()
    let waiting = 0
    runFilter = () => {
      waiting++
      return shared.promise
    }
    for (const [i, client] of clients.entries())
      client.send(`GET /t/round-${round}-client-${i} HTTP/1.1\r\nHost: h\r\n\r\n`)
    await eventually('all requests in the filter', () => waiting === clients.length)
    shared.resolve(undefined)
    await Promise.all(clients.map((client, i) => client.untilText(`\r\n\r\n/round-${round}-client-${i}`)))
    for (const client of clients) client.take()
  }
  for (const client of clients) client.destroy()
})

// ---- refusals and failures -----------------------------------------------------------------------------------------

test('RFC 9112 9.6: a refusal sends the fault and closes the connection with the body unread', async () => {
  const { client, filter: pending } = await sendPending(`${HEAD}01`)
  pending.decide(refusal(404))
  const response = await takeResponse(client)
  assert.equal(response.status, 404)
  assert.equal(JSON.parse(response.body).fault.code, 404)
  assert.deepEqual(response.fields.get('connection'), ['close'])
  assert.deepEqual(bodies(), [])
  client.end()
  assert.equal(await client.untilEnd(), 'FIN')
})

test('a filter whose promise rejects causes fault 500', async () => {
  const { client, filter: pending } = await sendPending(GET)
  pending.fail(new Error('a bug'))
  assert.equal(JSON.parse((await takeResponse(client)).body).fault.code, 500)
  client.destroy()
})

// ---- ends of the client --------------------------------------------------------------------------------------------

test('a reset of a client without a body is noticed at once: 101004, and nothing is forwarded', async () => {
  const { client, filter: pending } = await sendPending(GET)
  client.reset()
  await untilClientGone()
  assert.deepEqual(sourceFaults(), [[101001, 3]])
  pending.decide(undefined)
  runFilter = () => undefined
  const other = await connectPeer(gateway.port)
  other.send(GET)
  await other.untilText('\r\n\r\nok')
  assert.equal(backend.requests.length, 1, 'only the request of the other client')
  other.destroy()
})

// On handles the reset shows when the body is read on, on streams at once.
test('a reset of a client with a body causes 101003, and the backend gets no complete request', async () => {
  const { client, filter: pending } = await sendPending(`${HEAD}01`)
  client.reset()
  await quiet()
  pending.decide(undefined)
  await untilClientGone()
  assert.deepEqual(sourceFaults(), [[101001, 2]])
  const { fields } = gateway.reports.find(({ event }) => event === 'client connection lost')!
  assert.equal(fields.INTERNAL_STATE, 2)
  assert.match(String(fields.STATE_DESCRIPTION), /^source connection in (?:REQUEST_BODY|FILTERS_PENDING)$/)
  assert.equal(fields.DIRECTION, 'REQUEST')
  assert.deepEqual(bodies(), [])
})

test('the end of the process while the filter is pending resets the client: 101003', async () => {
  const { client } = await sendPending(`${HEAD}01`)
  gateway.reactor.cutOff()
  assert.equal(await client.untilEnd(), 'RST')
  assert.deepEqual(sourceFaults(), [[101001, 2]])
  const [line] = gateway.reports.filter(({ event }) => event === 'cut off')
  assert.equal(line!.fields.INTERNAL_STATE, 2)
  assert.equal(line!.fields.STATE_DESCRIPTION, 'source connection in FILTERS_PENDING')
})

test('RFC 9112 9.6: a request whose client has sent FIN is forwarded when the filter has decided', async () => {
  const { client, filter: pending } = await sendPending(`${HEAD}0123456789`)
  client.end()
  await quiet()
  assert.deepEqual(states(), { FILTERS_PENDING: 1 })
  pending.decide(undefined)
  assert.equal((await takeResponse(client)).status, 200)
  assert.equal(await client.untilEnd(), 'FIN')
  assert.deepEqual(bodies(), ['0123456789'])
})

test('RFC 9112 9.6: after two pipelined requests and a FIN both are forwarded', async () => {
  const first = holdFilter()
  const client = await connectPeer(gateway.port)
  client.send(`${GET}${POST}Content-Length: 5\r\n\r\nhello`)
  client.end()
  await first.called
  const second = holdFilter()
  first.decide(undefined)
  await second.called
  second.decide(undefined)
  await client.untilEnd()
  assert.deepEqual(bodies(), ['', 'hello'])
})

test('a FIN within the body gets 102511 when the filter has decided', async () => {
  const { client, filter: pending } = await sendPending(`${HEAD}01`)
  client.end()
  await quiet()
  assert.equal(client.text, '')
  pending.decide(undefined)
  assertFault(await takeResponse(client), 400, 102511, 0, true)
  assert.equal(await client.untilEnd(), 'FIN')
  assert.deepEqual(sourceFaults(), [[102511, 2]])
})
