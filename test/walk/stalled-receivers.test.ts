/**
 * Backpressure, chunk by chunk of the arena: a receiver that takes no bytes stops the sender, the gateway holds a
 * bounded number of chunks meanwhile, and afterwards every byte arrives. 2 GiB in the long run.
 */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { arena } from '../../src/http1/llhttp.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, quiet, ScriptedBackend, turn } from '../harness/peers.ts'
import { IS_LONG } from '../harness/random.ts'

const BLOCK = randomBytes(1024 * 1024)
const BLOCKS = IS_LONG ? 2048 : 40
/** What a sender that is not held back has to wait for at most. */
const UNSENT_MAX = 4 * BLOCK.length
/** What a stalled exchange holds: reads on their way, composed heads. */
const CHUNKS_MAX = 8

const backend = await ScriptedBackend.listen()
const gateway = await startGateway([{ context: '/echo', port: backend.port }])
/** What the thread itself holds. */
const atRest = arena.lentChunks
after(() => {
  gateway.stop()
  backend.close()
})

interface Wire {
  readonly name: string
  readonly field: string
  readonly before: string
  readonly behind: string
  readonly end: string
}

const length: Wire = {
  name: 'of a length',
  field: `Content-Length: ${BLOCKS * BLOCK.length}\r\n`,
  before: '',
  behind: '',
  end: '',
}
const chunked: Wire = {
  name: 'in chunks',
  field: 'Transfer-Encoding: chunked\r\n',
  before: `${BLOCK.length.toString(16)}\r\n`,
  behind: '\r\n',
  end: '0\r\n\r\n',
}

/** Sends the whole body, as fast as it is taken. */
async function pump(peer: Peer, { before, behind, end }: Wire, progress: { blocks: number }): Promise<void> {
  for (; progress.blocks < BLOCKS; progress.blocks++) {
    while (peer.unsent > UNSENT_MAX) await turn()
    if (before !== '') peer.send(before)
    peer.send(BLOCK)
    if (behind !== '') peer.send(behind)
  }
  peer.send(end)
}

/** Takes the head off, then hashes the decoded body up to its end. */
async function drain(peer: Peer, isChunked: boolean): Promise<string> {
  await peer.untilText('\r\n\r\n')
  peer.take(peer.text.indexOf('\r\n\r\n') + 4)
  const hash = createHash('sha1')
  let left = BLOCKS * BLOCK.length
  // Bytes of the chunk under way that are still to come; 0: a size line comes next.
  let inChunk = isChunked ? 0 : left
  while (left > 0) {
    if (inChunk === 0) {
      await peer.until('a size line', ({ received }) => received.indexOf('\r\n', 2) > 0)
      const line = peer.received.toString('latin1', 0, peer.received.indexOf('\r\n', 2))
      peer.take(line.length + 2)
      inChunk = Number.parseInt(line.trim(), 16)
    } else {
      await peer.untilLength(1)
      const part = peer.received.subarray(0, inChunk)
      hash.update(part)
      inChunk -= part.length
      left -= part.length
      peer.drop(part.length)
    }
  }
  return hash.digest('hex')
}

const expected = (() => {
  const hash = createHash('sha1')
  for (let i = 0; i < BLOCKS; i++) hash.update(BLOCK)
  return hash.digest('hex')
})()

/** Waits until a sender gets nothing more away. */
async function stalled(progress: { blocks: number }): Promise<void> {
  let before = -1
  await eventually('a stall', () => {
    const isStalled = progress.blocks > 0 && progress.blocks === before
    before = progress.blocks
    return isStalled
  })
  await quiet()
  assert.ok(progress.blocks < BLOCKS, 'the sender is held back')
}

async function transfer(from: Peer, to: Peer, wire: Wire): Promise<void> {
  const progress = { blocks: 0 }
  to.pause()
  const sent = pump(from, wire, progress)
  await stalled(progress)
  assert.ok(arena.lentChunks - atRest <= CHUNKS_MAX, `${arena.lentChunks - atRest} chunks are held`)
  to.resume()
  assert.equal(await drain(to, wire === chunked), expected)
  await sent
}

for (const wire of [length, chunked]) {
  test(`a request body ${wire.name}, to a backend that takes no bytes`, async () => {
    const client = await connectPeer(gateway.port)
    client.send(`POST /echo/x HTTP/1.1\r\nHost: a\r\n${wire.field}\r\n`)
    const peer = await backend.next()
    await transfer(client, peer, wire)
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok')
    await client.untilText('ok')
    client.destroy()
  })

  test(`a response body ${wire.name}, to a client that takes no bytes`, async () => {
    const client = await connectPeer(gateway.port)
    client.send('GET /echo/x HTTP/1.1\r\nHost: a\r\n\r\n')
    const peer = await backend.next()
    await peer.untilText('\r\n\r\n')
    peer.send(`HTTP/1.1 200 OK\r\n${wire.field}Connection: close\r\n\r\n`)
    await transfer(peer, client, wire)
    client.destroy()
  })
}

test('a response body that ends with its connection, to a client that takes no bytes', async () => {
  const client = await connectPeer(gateway.port)
  client.send('GET /echo/x HTTP/1.1\r\nHost: a\r\n\r\n')
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  peer.send('HTTP/1.1 200 OK\r\n\r\n')
  const progress = { blocks: 0 }
  client.pause()
  const sent = pump(peer, { ...length, end: '' }, progress).then(() => peer.end())
  await stalled(progress)
  client.resume()
  assert.equal(await drain(client, true), expected)
  await sent
  await client.untilText('0\r\n\r\n')
  client.destroy()
})

test('no chunk stays with anybody', async () => {
  gateway.stop()
  await quiet()
  assert.ok(arena.lentChunks <= atRest)
})
