/**
 * Failures of the client: resets, ends and malformed bodies in each state of its connection. Whatever the client does,
 * the backend's exchange ends with it, and the backend never takes half a request for a whole one.
 */
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, test } from 'node:test'
import { assertFault, takeAnswer } from '../harness/answers.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend } from '../harness/peers.ts'

const backend = await ScriptedBackend.listen()
const apis = [{ context: '/t', port: backend.port }]
const BODY_MAX = 100_000
let gateway: TestGateway

beforeEach(async () => {
  gateway = await startGateway(apis, { 'body.max_bytes': BODY_MAX })
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

function counted(through: TestGateway, side: 'source' | 'target', base: number, state: number): number {
  const row = through.metrics().faults.find(it => it.side === side && it.base === base && it.state === state)
  return row?.count ?? 0
}

interface Begun {
  readonly client: Peer
  /** The backend's end, where the request got so far. */
  readonly peer: Peer | null
  readonly from: number
}

/** A client that has sent `sent` to an own backend connection, which has answered `answered`. */
async function begin(sent: string, answered: string, through = gateway): Promise<Begun> {
  const from = through.reports.length
  const client = await connectPeer(through.port)
  client.send(sent)
  if (!sent.includes('\r\n\r\n')) {
    await eventually('the first byte', () => through.metrics().counts.connectionsOpen > 0)
    return { client, peer: null, from }
  }
  const peer = await backend.next()
  await peer.untilText(sent === GET ? '\r\n\r\n' : '01234')
  if (answered === '') return { client, peer, from }
  peer.send(answered)
  await client.untilText(answered.slice(-2))
  return { client, peer, from }
}

async function allGone(through = gateway): Promise<void> {
  await eventually('all to be over', () => {
    const { connectionsOpen, targetsOpen } = through.metrics().counts
    return connectionsOpen === 0 && targetsOpen === 0
  })
}

/** The documented fields of the one line that tells of the client's failure. */
function lineOf(begun: Begun, event: string): Readonly<Record<string, string | number>> {
  const lines = gateway.reports.slice(begun.from).filter(report => report.event === event)
  assert.equal(lines.length, 1, JSON.stringify(gateway.reports.slice(begun.from)))
  assert.equal(lines[0]!.level, 'warn')
  return lines[0]!.fields
}

interface Place {
  readonly name: string
  readonly sent: string
  readonly answered: string
  readonly state: number
  readonly base: number
}

const PLACES: readonly Place[] = [
  { name: 'within its head', sent: HEAD, answered: '', state: 1, base: 101001 },
  { name: 'within a body of a length', sent: LENGTH, answered: '', state: 2, base: 101001 },
  { name: 'within a chunked body', sent: CHUNKED, answered: '', state: 2, base: 101001 },
  { name: 'while it waits', sent: GET, answered: '', state: 3, base: 101001 },
  { name: 'within its response', sent: GET, answered: HALF, state: 5, base: 101000 },
]

for (const { name, sent, answered, state, base } of PLACES) {
  test(`a reset ${name}: ${base + state}, and the backend's exchange is aborted`, async () => {
    const before = counted(gateway, 'source', base, state)
    const beforeTarget = counted(gateway, 'target', 101509, state)
    const { connectionsReset } = gateway.metrics().counts
    const begun = await begin(sent, answered)
    begun.client.reset()
    await begun.peer?.untilEnd()
    await allGone()
    const {
      STATE_DESCRIPTION: described,
      CONNECTION: connection,
      CORRELATION_ID: id,
      ...fields
    } = lineOf(begun, 'client connection lost')
    assert.equal(typeof described, 'string')
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
    assert.equal(counted(gateway, 'source', base, state), before + 1)
    assert.equal(gateway.metrics().counts.connectionsReset, connectionsReset + 1)
    if (begun.peer === null) return
    assert.ok(!begun.peer.text.endsWith('0\r\n\r\n'), 'no last chunk is made up')
    const aborted = gateway.reports.slice(begun.from).find(({ event }) => event === 'back end failed')
    assert.equal(aborted?.level, 'debug')
    assert.equal(aborted.fields.ERROR_CODE, 101509 + state)
    assert.equal(counted(gateway, 'target', 101509, state), beforeTarget + 1)
  })
}

test('a reset of an idle connection concerns nobody', async () => {
  const begun = await begin(GET, OK)
  begun.client.reset()
  await eventually('its end', () => gateway.metrics().counts.connectionsOpen === 0)
  const warnings = gateway.reports.slice(begun.from).filter(({ level }) => level !== 'debug')
  assert.deepEqual(warnings, [])
  assert.equal(gateway.metrics().counts.targetsOpen, 1, 'the backend connection stays in the pool')
  begun.peer!.end()
  await allGone()
})

test('a FIN within the head is answered with 400', async () => {
  const { client } = await begin(HEAD, '')
  client.end()
  const answer = await takeAnswer(client)
  assert.equal(answer.status, 400)
  assert.deepEqual(answer.fields.get('connection'), ['close'])
  assert.equal(await client.untilEnd(), 'FIN')
  assert.equal(client.text, '')
  await allGone()
})

for (const [name, sent] of [
  ['of a length', LENGTH],
  ['in chunks', CHUNKED],
] as const) {
  test(`a FIN within a body ${name}: 102511, and the backend's exchange is aborted`, async () => {
    const before = counted(gateway, 'source', 102511, 2)
    const begun = await begin(sent, '')
    begun.client.end()
    assertFault(await takeAnswer(begun.client), 400, 102511, 2, true)
    assert.equal(await begun.client.untilEnd(), 'FIN')
    await begun.peer!.untilEnd()
    assert.ok(!begun.peer!.text.endsWith('0\r\n\r\n'), 'no last chunk is made up')
    lineOf(begun, 'request body cut short')
    assert.equal(counted(gateway, 'source', 102511, 2), before + 1)
    await allGone()
  })
}

for (const [name, request, first] of [
  ['a complete request', GET, ''],
  ['a request with a body', `${LENGTH}56789`, ''],
  ['a complete request, within its response', GET, HALF],
] as const) {
  test(`a FIN behind ${name}: the response is finished, then the connection ends`, async () => {
    const { client, peer } = await begin(request, first)
    client.end()
    if (first !== '') peer!.send('fghij')
    else peer!.send(OK)
    const { body } = await takeAnswer(client)
    assert.equal(body, first === '' ? 'ok' : 'abcdefghij')
    assert.equal(await client.untilEnd(), 'FIN')
    peer!.end()
    await allGone()
  })
}

test('a FIN behind pipelined requests: each is answered', async () => {
  const { client, peer } = await begin(GET, '')
  client.send(GET + GET)
  client.end()
  for (const body of ['1', '2', '3']) {
    await peer!.untilText('\r\n\r\n')
    peer!.take()
    peer!.send(`HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n${body}`)
    assert.equal((await takeAnswer(client)).body, body)
  }
  assert.equal(await client.untilEnd(), 'FIN')
  peer!.end()
  await allGone()
})

for (const [name, answered] of [
  ['while it waits', ''],
  ['within its response', HALF],
] as const) {
  test(`abort_on_half_close: a FIN ${name} ends the exchange`, async t => {
    const strict = await startGateway(apis, { abort_on_half_close: true })
    t.after(() => strict.stop())
    const { client, peer } = await begin(GET, answered, strict)
    client.end()
    await peer!.untilEnd()
    await client.untilEnd()
    assert.ok(client.text.endsWith(answered.slice(-5)))
    await allGone(strict)
  })
}

test('a body announced longer than body.max_bytes never reaches the backend', async () => {
  const from = gateway.reports.length
  const { targetsOpened } = gateway.metrics().counts
  const client = await connectPeer(gateway.port)
  client.send(`POST /t/it HTTP/1.1\r\nHost: a\r\nContent-Length: ${BODY_MAX + 1}\r\n\r\n`)
  assertFault(await takeAnswer(client), 400, 102511, 2, true)
  assert.equal(await client.untilEnd(), 'FIN')
  lineOf({ client, peer: null, from }, 'request body too large')
  assert.equal(gateway.metrics().counts.targetsOpened, targetsOpened)
  client.destroy()
  await allGone()
})

test('a body that turns out longer than body.max_bytes is aborted', async () => {
  const begun = await begin(CHUNKED, '')
  begun.client.send(`${(BODY_MAX - 5).toString(16)}\r\n${'x'.repeat(BODY_MAX - 5)}\r\n`)
  await begun.peer!.untilLength(BODY_MAX)
  begun.client.send('1\r\nx\r\n0\r\n\r\n')
  assertFault(await takeAnswer(begun.client), 400, 102511, 2, true)
  assert.equal(await begun.client.untilEnd(), 'FIN')
  await begun.peer!.untilEnd()
  assert.ok(!begun.peer!.text.endsWith('0\r\n\r\n'), 'no last chunk is made up')
  lineOf(begun, 'request body too large')
  begun.client.destroy()
  await allGone()
})

test('a body as long as body.max_bytes passes', async () => {
  const begun = await begin(CHUNKED, '')
  begun.client.send(`${(BODY_MAX - 5).toString(16)}\r\n${'x'.repeat(BODY_MAX - 5)}\r\n0\r\n\r\n`)
  await begun.peer!.untilText('x\r\n0\r\n\r\n')
  begun.peer!.send(OK)
  assert.equal((await takeAnswer(begun.client)).body, 'ok')
  begun.client.destroy()
  begun.peer!.end()
  await allGone()
})

for (const [name, bytes] of [
  ['a chunk size that is none', 'zz\r\n'],
  ['a chunk size of 17 digits', '10000000000000000\r\n'],
  ['a chunk longer than its size', '1\r\nabc\r\n'],
  ['a bare line feed behind a size', '5\nabcde\r\n'],
] as const) {
  test(`${name} amid a body: 400, and the backend's exchange is aborted`, async () => {
    const begun = await begin(CHUNKED, '')
    begun.client.send(bytes)
    const answer = await takeAnswer(begun.client)
    assert.equal(answer.status, 400)
    assert.equal(JSON.parse(answer.body).fault.code, 400)
    assert.deepEqual(answer.fields.get('connection'), ['close'])
    assert.equal(await begun.client.untilEnd(), 'FIN')
    await begun.peer!.untilEnd()
    assert.ok(!begun.peer!.text.endsWith('0\r\n\r\n'), 'no last chunk is made up')
    lineOf(begun, 'malformed request body')
    begun.client.destroy()
    await allGone()
  })
}
