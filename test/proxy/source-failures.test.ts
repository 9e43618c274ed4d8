/**
 * Failures of the client in each state of its connection: resets, a FIN within the request, and invalid bodies. The
 * backend exchange ends with the client, and the backend never receives an incomplete request that looks complete.
 */
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, test } from 'node:test'
import { countedFailures, untilAllClosed } from '../harness/failures.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend } from '../harness/peers.ts'
import { assertFault, takeResponse } from '../harness/responses.ts'

const backend = await ScriptedBackend.listen()
const BODY_MAX = 100_000
let gateway: TestGateway

beforeEach(async () => {
  gateway = await startGateway([{ context: '/t', port: backend.port }], { http: { 'body.max_bytes': BODY_MAX } })
  backend.skip()
})
afterEach(() => gateway.stop())
after(() => backend.close())

const HEAD = 'POST /t/it HTTP/1.1\r\nHo'
const GET = 'GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n'
const LENGTH = 'POST /t/it HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234'
const CHUNKED = 'POST /t/it HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n'
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const HALF = 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabcde'

interface Exchange {
  readonly client: Peer
  /** The backend connection; null if no request head was sent. */
  readonly peer: Peer | null
  /** Number of log events before the exchange. */
  readonly from: number
}

/** Sends `sent` to the gateway, and `received` as the response of a new backend connection. */
async function begin(sent: string, received: string): Promise<Exchange> {
  const from = gateway.reports.length
  const client = await connectPeer(gateway.port)
  client.send(sent)
  if (!sent.includes('\r\n\r\n')) {
    await eventually('the first byte', () => gateway.metrics().counts.connectionsOpen > 0)
    return { client, peer: null, from }
  }
  const peer = await backend.next()
  await peer.untilText(sent === GET ? '\r\n\r\n' : '01234')
  if (received === '') return { client, peer, from }
  peer.send(received)
  await client.untilText(received.slice(-2))
  return { client, peer, from }
}

/** Waits for the end of the backend connection and checks that the gateway did not complete the chunked body. */
async function assertAborted(peer: Peer): Promise<void> {
  await peer.untilEnd()
  assert.ok(!peer.text.endsWith('0\r\n\r\n'), 'the gateway adds no last chunk')
}

/** The fields of the only warning with this event. */
function warningOf({ from }: Pick<Exchange, 'from'>, event: string): Readonly<Record<string, string | number>> {
  const lines = gateway.reports.slice(from).filter(report => report.event === event)
  assert.equal(lines.length, 1, JSON.stringify(gateway.reports.slice(from)))
  assert.equal(lines[0]!.level, 'warn')
  return lines[0]!.fields
}

interface ResetCase {
  readonly name: string
  readonly sent: string
  readonly received: string
  readonly state: number
  readonly base: number
}

const RESETS: readonly ResetCase[] = [
  { name: 'within the request head', sent: HEAD, received: '', state: 1, base: 101001 },
  { name: 'within a body with Content-Length', sent: LENGTH, received: '', state: 2, base: 101001 },
  { name: 'within a chunked body', sent: CHUNKED, received: '', state: 2, base: 101001 },
  { name: 'before the response', sent: GET, received: '', state: 3, base: 101001 },
  { name: 'within the response', sent: GET, received: HALF, state: 5, base: 101000 },
]

for (const { name, sent, received, state, base } of RESETS) {
  test(`a reset ${name} is logged and counted as ${base} + ${state}, and aborts the backend exchange`, async () => {
    const before = countedFailures(gateway, base, state, 'source')
    const beforeTarget = countedFailures(gateway, 101509, state)
    const { connectionsReset } = gateway.metrics().counts
    const exchange = await begin(sent, received)
    exchange.client.reset()
    await exchange.peer?.untilEnd()
    await untilAllClosed(gateway)
    const {
      STATE_DESCRIPTION: description,
      CONNECTION: connection,
      CORRELATION_ID: id,
      ...fields
    } = warningOf(exchange, 'client connection lost')
    assert.equal(typeof description, 'string')
    assert.match(String(connection), /^http-incoming-\d+$/)
    assert.equal(id === '', state === 1)
    assert.deepEqual(fields, {
      INTERNAL_STATE: state,
      DIRECTION: base === 101000 ? 'RESPONSE' : 'REQUEST',
      CAUSE_OF_ERROR: 'ECONNRESET',
      HTTP_URL: state === 1 ? '' : '/t/it',
      HTTP_METHOD: state === 1 ? '' : sent.slice(0, sent.indexOf(' ')),
      SOCKET_TIMEOUT: 180_000,
      CLIENT_ADDRESS: '127.0.0.1',
    })
    assert.equal(countedFailures(gateway, base, state, 'source'), before + 1)
    assert.equal(gateway.metrics().counts.connectionsReset, connectionsReset + 1)
    if (exchange.peer === null) return
    await assertAborted(exchange.peer)
    const aborted = gateway.reports.slice(exchange.from).find(({ event }) => event === 'backend failed')
    assert.equal(aborted?.level, 'debug')
    assert.equal(aborted.fields.ERROR_CODE, 101509 + state)
    assert.equal(countedFailures(gateway, 101509, state), beforeTarget + 1)
  })
}

test('a reset of an idle connection is not logged, and the backend connection stays in the pool', async () => {
  const exchange = await begin(GET, OK)
  exchange.client.reset()
  await eventually('the end of the client', () => gateway.metrics().counts.connectionsOpen === 0)
  const warnings = gateway.reports.slice(exchange.from).filter(({ level }) => level !== 'debug')
  assert.deepEqual(warnings, [])
  assert.equal(gateway.metrics().counts.targetsOpen, 1)
  exchange.peer!.end()
  await untilAllClosed(gateway)
})

test('a FIN within the request head gets 400', async () => {
  const { client } = await begin(HEAD, '')
  client.end()
  const response = await takeResponse(client)
  assert.equal(response.status, 400)
  assert.deepEqual(response.fields.get('connection'), ['close'])
  assert.equal(await client.untilEnd(), 'FIN')
  assert.equal(client.text, '')
  await untilAllClosed(gateway)
})

for (const [name, sent] of [
  ['a body with Content-Length', LENGTH],
  ['a chunked body', CHUNKED],
] as const) {
  test(`a FIN within ${name} gets 400 with 102511 and aborts the backend exchange`, async () => {
    const before = countedFailures(gateway, 102511, 2, 'source')
    const exchange = await begin(sent, '')
    exchange.client.end()
    assertFault(await takeResponse(exchange.client), 400, 102511, 2, true)
    assert.equal(await exchange.client.untilEnd(), 'FIN')
    await assertAborted(exchange.peer!)
    warningOf(exchange, 'request body cut short')
    assert.equal(countedFailures(gateway, 102511, 2, 'source'), before + 1)
    await untilAllClosed(gateway)
  })
}

test('body.max_bytes: a Content-Length over the limit gets 102511 and opens no backend connection', async () => {
  const from = gateway.reports.length
  const { targetsOpened } = gateway.metrics().counts
  const client = await connectPeer(gateway.port)
  client.send(`POST /t/it HTTP/1.1\r\nHost: a\r\nContent-Length: ${BODY_MAX + 1}\r\n\r\n`)
  assertFault(await takeResponse(client), 400, 102511, 2, true)
  assert.equal(await client.untilEnd(), 'FIN')
  warningOf({ from }, 'request body too large')
  assert.equal(gateway.metrics().counts.targetsOpened, targetsOpened)
  client.destroy()
  await untilAllClosed(gateway)
})

test('body.max_bytes: a chunked body over the limit gets 102511 and aborts the backend exchange', async () => {
  const exchange = await begin(CHUNKED, '')
  exchange.client.send(`${(BODY_MAX - 5).toString(16)}\r\n${'x'.repeat(BODY_MAX - 5)}\r\n`)
  await exchange.peer!.untilLength(BODY_MAX)
  exchange.client.send('1\r\nx\r\n0\r\n\r\n')
  assertFault(await takeResponse(exchange.client), 400, 102511, 2, true)
  assert.equal(await exchange.client.untilEnd(), 'FIN')
  await assertAborted(exchange.peer!)
  warningOf(exchange, 'request body too large')
  exchange.client.destroy()
  await untilAllClosed(gateway)
})

test('body.max_bytes: a chunked body at the limit is forwarded', async () => {
  const exchange = await begin(CHUNKED, '')
  exchange.client.send(`${(BODY_MAX - 5).toString(16)}\r\n${'x'.repeat(BODY_MAX - 5)}\r\n0\r\n\r\n`)
  await exchange.peer!.untilText('x\r\n0\r\n\r\n')
  exchange.peer!.send(OK)
  assert.equal((await takeResponse(exchange.client)).body, 'ok')
  exchange.client.destroy()
  exchange.peer!.end()
  await untilAllClosed(gateway)
})

for (const [name, bytes] of [
  ['a chunk size that is not hexadecimal', 'zz\r\n'],
  ['a chunk size of 17 digits', '10000000000000000\r\n'],
  ['chunk data longer than the chunk size', '1\r\nabc\r\n'],
  ['a bare LF after a chunk size', '5\nabcde\r\n'],
] as const) {
  test(`RFC 9112 7.1: ${name} within a body gets 400 and aborts the backend exchange`, async () => {
    const exchange = await begin(CHUNKED, '')
    exchange.client.send(bytes)
    const response = await takeResponse(exchange.client)
    assert.equal(response.status, 400)
    assert.equal(JSON.parse(response.body).fault.code, 400)
    assert.deepEqual(response.fields.get('connection'), ['close'])
    assert.equal(await exchange.client.untilEnd(), 'FIN')
    await assertAborted(exchange.peer!)
    warningOf(exchange, 'malformed request body')
    exchange.client.destroy()
    await untilAllClosed(gateway)
  })
}
