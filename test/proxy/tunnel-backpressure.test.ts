/**
 * Backpressure in a tunnel: a peer that does not read stops the other peer, in one direction and in both, and the
 * gateway holds a bounded number of arena chunks; afterwards every byte arrives. An idle tunnel holds no chunk.
 */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { arena } from '../../src/http1/llhttp.ts'
import { startGateway } from '../harness/gateway.ts'
import { eventually, type Peer, quiet, ScriptedBackend, turn } from '../harness/peers.ts'
import { IS_LONG } from '../harness/random.ts'
import { type OpenTunnel, openTunnel } from '../harness/tunnels.ts'

const BLOCK = randomBytes(1024 * 1024)
const BLOCKS = IS_LONG ? 1024 : 40
/** Most unsent bytes before the sender waits. */
const UNSENT_MAX = 4 * BLOCK.length
/** Most chunks that a stopped direction holds: pending reads. */
const CHUNKS_MAX = 4

const backend = await ScriptedBackend.listen()
const gateway = await startGateway([{ context: '/echo', port: backend.port }])
const atRest = arena.acquiredChunks
after(() => {
  gateway.stop()
  backend.close()
})

const expected = (() => {
  const hash = createHash('sha1')
  for (let i = 0; i < BLOCKS; i++) hash.update(BLOCK)
  return hash.digest('hex')
})()

interface Flow {
  readonly from: Peer
  readonly to: Peer
  blocks: number
}

/** Sends all blocks as fast as the socket accepts them, then FIN. */
async function pump(flow: Flow): Promise<void> {
  for (; flow.blocks < BLOCKS; flow.blocks++) {
    while (flow.from.unsent > UNSENT_MAX) await turn()
    flow.from.send(BLOCK)
  }
  flow.from.end()
}

async function stopped(flow: Flow): Promise<void> {
  let before = -1
  await eventually('the sender to stop', () => {
    const isStopped = flow.blocks > 0 && flow.blocks === before
    before = flow.blocks
    return isStopped
  })
  await quiet()
  assert.ok(flow.blocks < BLOCKS, 'the sender is stopped')
}

async function received({ to }: Flow): Promise<string> {
  const hash = createHash('sha1')
  to.resume()
  for (;;) {
    await to.until('bytes or the end', ({ length, ending }) => length > 0 || ending !== '')
    if (to.length === 0) break
    hash.update(to.received)
    to.drop(to.length)
  }
  assert.equal(to.ending, 'FIN')
  return hash.digest('hex')
}

const ways: readonly (readonly [string, (tunnel: OpenTunnel) => readonly Flow[]])[] = [
  ['a client that does not read stops the backend', ({ client, peer }) => [{ from: peer, to: client, blocks: 0 }]],
  ['a backend that does not read stops the client', ({ client, peer }) => [{ from: client, to: peer, blocks: 0 }]],
  [
    'two peers that do not read stop each other',
    ({ client, peer }) => [
      { from: peer, to: client, blocks: 0 },
      { from: client, to: peer, blocks: 0 },
    ],
  ],
]
for (const [name, flowsOf] of ways) {
  test(`${name}, with a bounded number of chunks, and every byte arrives later`, async () => {
    const tunnel = await openTunnel(gateway, backend)
    const flows = flowsOf(tunnel)
    for (const { to } of flows) to.pause()
    const pumps = flows.map(pump)
    await Promise.all(flows.map(stopped))
    const chunks = arena.acquiredChunks - atRest
    assert.ok(chunks > 0 && chunks <= CHUNKS_MAX * flows.length, `${chunks} chunks`)
    for (const hash of await Promise.all(flows.map(received))) assert.equal(hash, expected)
    await Promise.all(pumps)
    tunnel.client.end()
    tunnel.peer.end()
    await eventually('the end of the tunnel', () => gateway.metrics().counts.tunnelsOpen === 0)
    assert.ok(arena.acquiredChunks <= atRest, `${arena.acquiredChunks - atRest} chunks are not released`)
  })
}

test('a stopped direction does not stop the other direction', async () => {
  const { client, peer } = await openTunnel(gateway, backend)
  // Only the backend's direction is full; the client still reads.
  const flow: Flow = { from: client, to: peer, blocks: 0 }
  peer.pause()
  const sending = pump(flow)
  await stopped(flow)
  for (const part of ['one ', 'two ', 'three']) {
    peer.send(part)
    await client.untilText(part)
  }
  assert.equal(await received(flow), expected)
  await sending
  peer.end()
  await client.untilEnd()
})

test('idle tunnels hold no chunk after a transfer', async () => {
  const tunnels: OpenTunnel[] = []
  for (let i = 0; i < 20; i++) tunnels.push(await openTunnel(gateway, backend))
  for (const { client, peer } of tunnels) {
    client.send(BLOCK)
    await peer.untilLength(BLOCK.length)
  }
  await eventually('the release of all chunks', () => arena.acquiredChunks <= atRest)
  assert.equal(gateway.metrics().counts.tunnelsOpen, tunnels.length)
  for (const { client, peer } of tunnels) {
    client.send('x')
    peer.send('y')
    await Promise.all([client.untilText('y'), peer.until('x', ({ received }) => received.at(-1) === 120)])
    assert.equal(peer.length, BLOCK.length + 1)
  }
  assert.ok(arena.acquiredChunks <= atRest, `${arena.acquiredChunks - atRest} chunks`)
  for (const { client } of tunnels) client.reset()
  await eventually('the end of all tunnels', () => gateway.metrics().counts.tunnelsOpen === 0)
})
