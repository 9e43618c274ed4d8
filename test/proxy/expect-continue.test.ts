/** `Expect: 100-continue` (RFC 9110 10.1.1): the gateway forwards the expectation, and the backend decides. */
import assert from 'node:assert/strict'
import { after, afterEach, test } from 'node:test'
import { takeResponse } from '../harness/responses.ts'
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
  ['Content-Length', 'Content-Length: 5', 'hello', 'hello'],
  ['chunked', 'Transfer-Encoding: chunked', '5\r\nhello\r\n0\r\n\r\n', '5\r\nhello\r\n0\r\n\r\n'],
] as const

/** Sends a request with Expect and this framing field; returns the backend connection that has the head. */
async function sendExpecting(framing: string): Promise<Peer> {
  client = await connectPeer(gateway.port)
  client.send(`POST /echo/x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n${framing}\r\n\r\n`)
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  assert.match(peer.take(), /\r\nExpect: 100-continue\r\n/)
  return peer
}

for (const [name, framing, body, arrives] of framings) {
  test(`RFC 9110 10.1.1, ${name}: 100 of the backend is forwarded, then the body`, async () => {
    const peer = await sendExpecting(framing)
    await quiet()
    assert.equal(client.text, '', 'the gateway does not respond for the backend')
    peer.send(CONTINUE)
    await client.untilLength(CONTINUE.length)
    assert.equal(client.take(), CONTINUE)
    client.send(body)
    await peer.untilLength(arrives.length)
    assert.equal(peer.take(), arrives)
    peer.send(OK)
    assert.equal((await takeResponse(client)).body, 'ok')
    client.send('GET /echo/y HTTP/1.1\r\nHost: a\r\n\r\n')
    await peer.untilText('GET /y HTTP/1.1')
  })

  test(`RFC 9110 10.1.1, ${name}: a final response instead of 100 ends both connections`, async () => {
    const peer = await sendExpecting(framing)
    peer.send('HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno')
    const response = await takeResponse(client)
    assert.equal(response.status, 401)
    assert.deepEqual(response.fields.get('connection'), ['close'])
    client.send(body)
    await client.untilEnd()
    await peer.untilEnd()
    assert.equal(peer.text, '')
  })

  test(`RFC 9110 10.1.1, ${name}: a body sent before 100 is forwarded, and 100 as well`, async () => {
    const peer = await sendExpecting(framing)
    client.send(body)
    await peer.untilLength(arrives.length)
    assert.equal(peer.take(), arrives)
    peer.send(CONTINUE + OK)
    await client.untilLength(CONTINUE.length)
    assert.equal(client.take(CONTINUE.length), CONTINUE)
    assert.equal((await takeResponse(client)).body, 'ok')
  })

  test(`RFC 9110 10.1.1, ${name}: a client that resets after 100 ends the backend exchange`, async () => {
    const peer = await sendExpecting(framing)
    peer.send(CONTINUE)
    await client.untilText('100')
    client.reset()
    await peer.untilEnd()
    assert.equal(peer.text, '')
  })
}
