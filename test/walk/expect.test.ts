/** `Expect: 100-continue` (RFC 9110 10.1.1): the backend decides, the gateway carries the word. */
import assert from 'node:assert/strict'
import { after, afterEach, test } from 'node:test'
import { takeAnswer } from '../harness/answers.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, type Peer, quiet, ScriptedBackend } from '../harness/peers.ts'

const backend = await ScriptedBackend.listen()
const gateway = await startGateway([{ context: '/echo', port: backend.port }])
after(() => {
  gateway.stop()
  backend.close()
})
let client: Peer
afterEach(async () => {
  client.reset()
  await quiet()
  for (const peer of backend.peers) peer.destroy()
  backend.skip()
})

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

const framings = [
  ['a length', 'Content-Length: 5', 'hello', 'hello'],
  ['chunks', 'Transfer-Encoding: chunked', '5\r\nhello\r\n0\r\n\r\n', '5\r\nhello\r\n0\r\n\r\n'],
] as const

/** A client that has sent its head and waits, and the backend that has received it. */
async function expecting(framing: string): Promise<Peer> {
  client = await connectPeer(gateway.port)
  client.send(`POST /echo/x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n${framing}\r\n\r\n`)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  assert.match(peer.take(), /\r\nExpect: 100-continue\r\n/)
  return peer
}

for (const [name, framing, body, arrives] of framings) {
  test(`${name}: the body is sent when the backend asks for it`, async () => {
    const peer = await expecting(framing)
    await quiet()
    assert.equal(client.text, '', 'the gateway does not answer in the backend’s stead')
    peer.send(CONTINUE)
    await client.untilLength(CONTINUE.length)
    assert.equal(client.take(), CONTINUE)
    client.send(body)
    await peer.untilLength(arrives.length)
    assert.equal(peer.take(), arrives)
    peer.send(OK)
    assert.equal((await takeAnswer(client)).body, 'ok')
    client.send('GET /echo/y HTTP/1.1\r\nHost: a\r\n\r\n')
    await peer.untilText('GET /y HTTP/1.1')
  })

  test(`${name}: a refusal in place of 100 ends both connections, and no byte of the body is sent`, async () => {
    const peer = await expecting(framing)
    peer.send('HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno')
    const answer = await takeAnswer(client)
    assert.equal(answer.status, 401)
    assert.deepEqual(answer.fields.get('connection'), ['close'])
    client.send(body)
    await client.untilEnd()
    await peer.untilEnd()
    assert.equal(peer.text, '')
  })

  test(`${name}: a body that does not wait passes, and 100 as well`, async () => {
    const peer = await expecting(framing)
    client.send(body)
    await peer.untilLength(arrives.length)
    assert.equal(peer.take(), arrives)
    peer.send(CONTINUE + OK)
    await client.untilLength(CONTINUE.length)
    assert.equal(client.take(CONTINUE.length), CONTINUE)
    assert.equal((await takeAnswer(client)).body, 'ok')
  })

  test(`${name}: a client that leaves instead of sending takes its request along`, async () => {
    const peer = await expecting(framing)
    peer.send(CONTINUE)
    await client.untilText('100')
    client.reset()
    await peer.untilEnd()
    assert.equal(peer.text, '')
  })
}
