/**
 * A backend that answers before the request is complete. The answer reaches the client whole; what is left of the
 * request is nobody's, and neither connection serves again unless it was finished after all (RFC 9112 9.3, 9.6).
 */
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, test } from 'node:test'
import { faultBody, takeAnswer } from '../harness/answers.ts'
import { LEVEL, startGateway, type TestGateway } from '../harness/gateway.ts'
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

interface Early {
  readonly client: Peer
  readonly peer: Peer
}

/** A client that has sent the beginning of a request, and the backend's end that has received it. */
async function upload(framing: string, beginning: string): Promise<Early> {
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
  ['a length', LENGTH, '01234', SMUGGLED],
  ['a length, nothing of it sent', `Content-Length: ${SMUGGLED.length}`, '', SMUGGLED],
  ['chunks', CHUNKED, '5\r\n01234\r\n', `${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`],
] as const) {
  test(`${name}: the answer is whole, both connections end, the rest is never taken for a request`, async () => {
    const { client, peer } = await upload(framing, beginning)
    peer.send(REFUSAL)
    const answer = await takeAnswer(client)
    assert.equal(answer.status, 413)
    assert.equal(answer.body, 'big')
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

test('a request that is finished while the answer is under way: both connections serve again', async () => {
  const { client, peer } = await upload('Content-Length: 10', '01234')
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc')
  await client.untilText('abc')
  client.send('56789')
  await peer.untilText('0123456789')
  peer.take()
  peer.send('def')
  assert.equal((await takeAnswer(client)).body, 'abcdef')
  client.send(SMUGGLED)
  await peer.untilText('GET /smuggled ')
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  assert.equal((await takeAnswer(client)).body, 'ok')
  client.destroy()
})

test('an answer that streams while the request streams: each byte passes at once', async () => {
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

for (const [name, leave] of [
  ['closes', (peer: Peer) => peer.destroy()],
  ['resets', (peer: Peer) => peer.reset()],
] as const) {
  test(`a backend that answers and ${name} amid a large upload: the answer arrives all the same`, async () => {
    const { client, peer } = await upload(`Content-Length: ${BIG_BYTES}`, '01234')
    peer.pause()
    client.send(Buffer.alloc(BIG_BYTES - 6))
    await eventually('the upload to stall', () => isStalled(client))
    peer.send(REFUSAL)
    await client.untilText('big')
    leave(peer)
    assert.equal((await takeAnswer(client)).status, 413)
    client.destroy()
    await eventually('all to be over', () => gateway.metrics().counts.connectionsOpen === 0)
    assert.equal(gateway.metrics().counts.targetsOpen, 0)
  })
}

/** The gateway takes no more from the client: nothing left for a number of turns. */
const STALLED_TURNS = 200
const unsentOf = new WeakMap<Peer, { unsent: number; turns: number }>()
function isStalled(client: Peer): boolean {
  const last = unsentOf.get(client)
  const turns = last?.unsent === client.unsent ? last.turns + 1 : 0
  unsentOf.set(client, { unsent: client.unsent, turns })
  return client.unsent > 0 && turns > STALLED_TURNS
}

test('an answer that comes with the reset of a broken upload is not lost', async () => {
  for (let round = 0; round < 20; round++) {
    const { client, peer } = await upload(`Content-Length: ${BIG_BYTES}`, '01234')
    client.send(Buffer.alloc(1024 * 1024))
    // Unread bytes of the request make this close a reset that follows the answer.
    peer.pause()
    peer.send(REFUSAL)
    peer.destroy()
    const answer = await takeAnswer(client)
    // Public streams close themselves when a write fails, with whatever could still be read.
    if (LEVEL === 'handles' || answer.status !== 502) assert.equal(answer.status, 413, `round ${round}: ${answer.body}`)
    else assert.equal(answer.body, faultBody(101500, 2))
    client.destroy()
  }
})

const BREAKS: readonly (readonly [string, string, (client: Peer) => void])[] = [
  ['a malformed chunk', CHUNKED, client => client.send('zz\r\n')],
  ['a FIN', 'Content-Length: 10', client => client.end()],
  ['a FIN between chunks', CHUNKED, client => client.end()],
  ['a reset', 'Content-Length: 10', client => client.reset()],
]

for (const [name, framing, broken] of BREAKS) {
  test(`${name} while the answer is under way: the client is reset, the backend's exchange aborted`, async () => {
    const { client, peer } = await upload(framing, framing === CHUNKED ? '5\r\n01234\r\n' : '01234')
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc')
    await client.untilText('abc')
    broken(client)
    await peer.untilEnd()
    if (name !== 'a reset') assert.equal(await client.untilEnd(), 'RST')
    assert.ok(client.text.endsWith('\r\n\r\nabc'))
    assert.ok(!peer.text.includes('0\r\n\r\n'))
    assert.equal(gateway.metrics().counts.targetsOpen, 0)
    client.destroy()
  })
}
