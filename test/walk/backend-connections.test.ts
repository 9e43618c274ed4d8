/** Backend connections and those who share them: whose bytes are whose. */
import assert from 'node:assert/strict'
import { after, afterEach, test } from 'node:test'
import { takeAnswer } from '../harness/answers.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, quiet, ScriptedBackend } from '../harness/peers.ts'
import { parseResponse } from '../harness/strict-http.ts'

const backend = await ScriptedBackend.listen()
const gateway = await startGateway([{ context: '/echo', port: backend.port }])
after(() => {
  gateway.stop()
  backend.close()
})
const clients: Peer[] = []
afterEach(async () => {
  // The clients first, and not by FIN, behind which they could wait: then a backend that is lost is tried again.
  for (const client of clients.splice(0)) client.reset()
  await quiet()
  for (const peer of backend.peers.splice(0)) peer.destroy()
  backend.skip()
})

/** A client whose request stands at the backend; both ends. */
async function exchange(path: string): Promise<readonly [Peer, Peer]> {
  const client = await connectPeer(gateway.port)
  clients.push(client)
  return [client, await ask(client, path)]
}

async function ask(client: Peer, path: string): Promise<Peer> {
  client.send(`GET /echo${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
  let at: Peer | undefined
  await eventually(`${path} at the back end`, () => {
    at = backend.peers.find(({ text }) => text.startsWith(`GET ${path} `) && text.endsWith('\r\n\r\n'))
    return at !== undefined
  })
  at!.take()
  return at!
}

const ok = (body: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`

test('a complete answer frees its connection for anybody', async () => {
  const [client, peer] = await exchange('/a')
  peer.send(ok('first'))
  assert.equal((await takeAnswer(client)).body, 'first')
  const [, second] = await exchange('/b')
  assert.equal(second, peer)
})

for (const [name, bytes] of [
  ['a response', ok('evil')],
  ['one byte', 'x'],
  ['a line end', '\r\n'],
] as const) {
  test(`RFC 9112 6.3: ${name} on an idle connection destroys it`, async () => {
    const [client, peer] = await exchange('/a')
    peer.send(ok('first'))
    await takeAnswer(client)
    peer.send(bytes)
    await peer.untilEnd()
    const other = await ask(client, '/b')
    assert.notEqual(other, peer)
    other.send(ok('own'))
    assert.equal((await takeAnswer(client)).body, 'own')
  })
}

test('RFC 9112 9.3: a FIN on an idle connection is noticed before it is used again', async () => {
  const [client, peer] = await exchange('/a')
  peer.send(ok('first'))
  await takeAnswer(client)
  peer.end()
  await peer.untilEnd()
  assert.notEqual(await ask(client, '/b'), peer)
})

test('many exchanges at once, their heads and bodies interleaved byte by byte: each gets its own', async () => {
  const pairs = await Promise.all(Array.from({ length: 12 }, (_, i) => exchange(`/${i}`)))
  const chunks = (i: number) => `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nName: ${i}\r\n\r\n`
  await Promise.all(
    pairs.map(async ([, peer], i) => {
      if (i % 3 === 0) await peer.sendBytewise(`${chunks(i)}3\r\nabc\r\n0\r\nTrail-${i}: ${i}\r\n\r\n`)
      else if (i % 3 === 1) await peer.sendBytewise(`HTTP/1.1 200 OK\r\nName: ${i}\r\nContent-Length: 3\r\n\r\nabc`)
      else {
        await peer.sendBytewise(`HTTP/1.1 200 OK\r\nName: ${i}\r\n\r\nabc`)
        peer.end()
      }
    }),
  )
  for (const [i, [client]] of pairs.entries()) {
    await client.until('a response', () => parseResponse(client.received, 0, 'GET', false) !== undefined)
    const response = parseResponse(client.received, 0, 'GET', false)!
    assert.equal(response.body.toString(), 'abc')
    assert.deepEqual(
      response.lines.filter(line => line.startsWith('Name')),
      [`Name: ${i}`],
    )
    assert.deepEqual(response.trailers, i % 3 === 0 ? [`Trail-${i}: ${i}`] : [])
    assert.equal(response.end, client.length)
  }
})

test('trailers of one response are never those of another that ends with its connection', async () => {
  const [other, otherPeer] = await exchange('/other')
  otherPeer.send('HTTP/1.1 200 OK\r\n\r\nbody')
  await other.untilText('body')
  const [client, peer] = await exchange('/trailers')
  peer.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nSecret: a\r\n\r\n')
  await client.untilText('Secret')
  otherPeer.end()
  await other.untilText('0\r\n\r\n')
  assert.ok(!other.text.includes('Secret'), other.text)
})
