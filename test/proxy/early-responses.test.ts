/**
 * A backend that responds before the request is complete (RFC 9112 9.3, 9.6). The response reaches the client complete,
 * the rest of the request is discarded, and neither connection is reused unless the request is completed in time.
 */
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, test } from 'node:test'
import { faultBody, takeResponse } from '../harness/responses.ts'
import { untilAllClosed } from '../harness/failures.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { LEVEL } from '../harness/socket-level.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend } from '../harness/peers.ts'

const BIG_BYTES = 16 * 1024 * 1024
const backend = await ScriptedBackend.listen()
let gateway: TestGateway

beforeEach(async () => {
  gateway = await startGateway([{ context: '/t', port: backend.port }])
  backend.skip()
})
afterEach(() => gateway.stop())
after(() => backend.close())

const REFUSAL = 'HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig'
const SMUGGLED = 'GET /t/smuggled HTTP/1.1\r\nHost: a\r\n\r\n'

interface Upload {
  readonly client: Peer
  readonly peer: Peer
}

/** Sends the beginning of a request; returns the client and the backend connection that has received it. */
async function upload(framing: string, beginning: string): Promise<Upload> {
  const client = await connectPeer(gateway.port)
  client.send(`POST /t/up HTTP/1.1\r\nHost: a\r\n${framing}\r\n\r\n${beginning}`)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  if (beginning !== '') await peer.untilText('01234')
  return { client, peer }
}

const LENGTH = `Content-Length: ${5 + SMUGGLED.length}`
const CHUNKED = 'Transfer-Encoding: chunked'

for (const [name, framing, beginning, rest] of [
  ['Content-Length', LENGTH, '01234', SMUGGLED],
  ['Content-Length and no body yet', `Content-Length: ${SMUGGLED.length}`, '', SMUGGLED],
  ['chunks', CHUNKED, '5\r\n01234\r\n', `${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`],
] as const) {
  test(`RFC 9112 9.6: an early response to a request with ${name} ends both connections`, async () => {
    const { client, peer } = await upload(framing, beginning)
    peer.send(REFUSAL)
    const response = await takeResponse(client)
    assert.equal(response.status, 413)
    assert.equal(response.body, 'big')
    client.send(rest)
    client.send(SMUGGLED)
    assert.equal(await client.untilEnd(), 'FIN')
    assert.equal(client.text, '')
    await peer.untilEnd()
    assert.ok(!peer.text.includes('smuggled'), peer.text)
    assert.equal(backend.peers.length, backend.peers.indexOf(peer) + 1, 'no second connection')
    client.destroy()
  })
}

test('RFC 9112 9.3: a request completed before the end of its response leaves both connections reusable', async () => {
  const { client, peer } = await upload('Content-Length: 10', '01234')
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc')
  await client.untilText('abc')
  client.send('56789')
  await peer.untilText('0123456789')
  peer.take()
  peer.send('def')
  assert.equal((await takeResponse(client)).body, 'abcdef')
  client.send(SMUGGLED)
  await peer.untilText('GET /smuggled ')
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  assert.equal((await takeResponse(client)).body, 'ok')
  client.destroy()
})

test('a request and its early response are streamed in both directions at the same time', async () => {
  const { client, peer } = await upload(CHUNKED, '5\r\n01234\r\n')
  peer.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
  for (const letter of 'abcdef') {
    client.send(`1\r\n${letter}\r\n`)
    await peer.untilText(`1\r\n${letter}\r\n`)
    peer.send(`1\r\n${letter}\r\n`)
    await client.untilText(`1\r\n${letter}\r\n`)
  }
  client.send('0\r\n\r\n')
  await peer.untilText('0\r\n\r\n')
  peer.send('0\r\n\r\n')
  await client.untilText('0\r\n\r\n')
  client.take()
  peer.take()
  client.send(SMUGGLED)
  await peer.untilText('GET /smuggled ')
  client.destroy()
})

for (const [name, end] of [
  ['closes the connection', (peer: Peer) => peer.destroy()],
  ['resets the connection', (peer: Peer) => peer.reset()],
] as const) {
  test(`an early response of a backend that ${name} during a large upload reaches the client`, async () => {
    const { client, peer } = await upload(`Content-Length: ${BIG_BYTES}`, '01234')
    peer.pause()
    client.send(Buffer.alloc(BIG_BYTES - 6))
    await eventually('the upload to stall', () => isStalled(client))
    peer.send(REFUSAL)
    await client.untilText('big')
    end(peer)
    assert.equal((await takeResponse(client)).status, 413)
    client.destroy()
    await untilAllClosed(gateway)
  })
}

/** The gateway has not read from the client for a number of turns. */
const STALLED_TURNS = 200
const unsentOf = new WeakMap<Peer, { unsent: number; turns: number }>()
function isStalled(client: Peer): boolean {
  const last = unsentOf.get(client)
  const turns = last?.unsent === client.unsent ? last.turns + 1 : 0
  unsentOf.set(client, { unsent: client.unsent, turns })
  return client.unsent > 0 && turns > STALLED_TURNS
}

test('a response that arrives together with the reset of the upload is not lost', async () => {
  for (let round = 0; round < 20; round++) {
    const { client, peer } = await upload(`Content-Length: ${BIG_BYTES}`, '01234')
    client.send(Buffer.alloc(1024 * 1024))
    // With unread bytes of the request, the kernel sends a reset after the response.
    peer.pause()
    peer.send(REFUSAL)
    peer.destroy()
    const response = await takeResponse(client)
    // A stream of node:net closes itself when a write fails, and drops the unread response.
    if (LEVEL === 'handles' || response.status !== 502)
      assert.equal(response.status, 413, `round ${round}: ${response.body}`)
    else assert.equal(response.body, faultBody(101500, 2))
    client.destroy()
  }
})

test('RFC 9112 9.6: a refusal reaches a client that reads nothing before it has sent 64 MiB', async () => {
  const body = Buffer.alloc(4 * BIG_BYTES)
  const client = await connectPeer(gateway.port)
  client.pause()
  client.send(`POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`)
  client.send(body)
  await eventually('the body is sent', () => client.unsent === 0)
  client.resume()
  assert.equal((await takeResponse(client)).status, 404)
  assert.equal(await client.untilEnd(), 'FIN')
})

const BREAKS: readonly (readonly [string, string, (client: Peer) => void])[] = [
  ['a malformed chunk', CHUNKED, client => client.send('zz\r\n')],
  ['a FIN', 'Content-Length: 10', client => client.end()],
  ['a FIN between chunks', CHUNKED, client => client.end()],
  ['a reset', 'Content-Length: 10', client => client.reset()],
]

for (const [name, framing, breakRequest] of BREAKS) {
  test(`RFC 9112 8: ${name} within an early response resets the client and aborts the backend exchange`, async () => {
    const { client, peer } = await upload(framing, framing === CHUNKED ? '5\r\n01234\r\n' : '01234')
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc')
    await client.untilText('abc')
    breakRequest(client)
    await peer.untilEnd()
    if (name !== 'a reset') assert.equal(await client.untilEnd(), 'RST')
    assert.ok(client.text.endsWith('\r\n\r\nabc'))
    assert.ok(!peer.text.includes('0\r\n\r\n'))
    assert.equal(gateway.metrics().counts.targetsOpen, 0)
    client.destroy()
  })
}
