/**
 * Backpressure in a tunnel, chunk by chunk of the arena: a peer that takes nothing stops the other one, in one
 * direction and in both, with a bounded number of chunks held; afterwards every byte arrives. At rest a tunnel holds
 * none.
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
/** What a sender that is not held back has to wait for at most. */
const UNSENT_MAX = 4 * BLOCK.length
/** What a stalled direction holds: reads on their way. */
const CHUNKS_MAX = 4

const backend = await ScriptedBackend.listen()
const gateway = await startGateway([{ context: '/echo', port: backend.port }])
const atRest = arena.lentChunks
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

/** Sends everything, as fast as it is taken, and then the end. */
async function pump(flow: Flow): Promise<void> {
  for (; flow.blocks < BLOCKS; flow.blocks++) {
    while (flow.from.unsent > UNSENT_MAX) await turn()
    flow.from.send(BLOCK)
  }
  flow.from.end()
}

async function stalled(flow: Flow): Promise<void> {
  let before = -1
  await eventually('a stall', () => {
    const isStalled = flow.blocks > 0 && flow.blocks === before
    before = flow.blocks
    return isStalled
  })
  await quiet()
  assert.ok(flow.blocks < BLOCKS, 'the sender is held back')
}

async function drained({ to }: Flow): Promise<string> {
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
  ['to a client that takes nothing', ({ client, peer }) => [{ from: peer, to: client, blocks: 0 }]],
  ['to a backend that takes nothing', ({ client, peer }) => [{ from: client, to: peer, blocks: 0 }]],
  [
    'both ways at once',
    ({ client, peer }) => [
      { from: peer, to: client, blocks: 0 },
      { from: client, to: peer, blocks: 0 },
    ],
  ],
]
for (const [name, flowsOf] of ways) {
  test(`${name}: the sender stops, a bounded number of chunks is held, and every byte arrives`, async () => {
    const tunnel = await openTunnel(gateway, backend)
    const flows = flowsOf(tunnel)
    for (const { to } of flows) to.pause()
    const pumps = flows.map(pump)
    await Promise.all(flows.map(stalled))
    const held = arena.lentChunks - atRest
    assert.ok(held > 0 && held <= CHUNKS_MAX * flows.length, `${held} chunks are held`)
    for (const hash of await Promise.all(flows.map(drained))) assert.equal(hash, expected)
    await Promise.all(pumps)
    tunnel.client.end()
    tunnel.peer.end()
    await eventually('its end', () => gateway.metrics().counts.tunnelsOpen === 0)
    assert.ok(arena.lentChunks <= atRest, `${arena.lentChunks - atRest} chunks stay`)
  })
}

test('a stalled direction does not hold the other one up', async () => {
  const { client, peer } = await openTunnel(gateway, backend)
  // The end is told to a peer that does not read, so this one is full only.
  const flow: Flow = { from: client, to: peer, blocks: 0 }
  peer.pause()
  const sending = pump(flow)
  await stalled(flow)
  for (const part of ['one ', 'two ', 'three']) {
    peer.send(part)
    await client.untilText(part)
  }
  assert.equal(await drained(flow), expected)
  await sending
  peer.end()
  await client.untilEnd()
})

test('tunnels at rest hold no chunk, whatever went through them', async () => {
  const tunnels: OpenTunnel[] = []
  for (let i = 0; i < 20; i++) tunnels.push(await openTunnel(gateway, backend))
  for (const { client, peer } of tunnels) {
    client.send(BLOCK)
    await peer.untilLength(BLOCK.length)
  }
  await eventually('rest', () => arena.lentChunks <= atRest)
  assert.equal(gateway.metrics().counts.tunnelsOpen, tunnels.length)
  for (const { client, peer } of tunnels) {
    client.send('x')
    peer.send('y')
    await Promise.all([client.untilText('y'), peer.until('x', ({ received }) => received.at(-1) === 120)])
    assert.equal(peer.length, BLOCK.length + 1)
  }
  assert.ok(arena.lentChunks <= atRest, `${arena.lentChunks - atRest} chunks are held`)
  for (const { client } of tunnels) client.reset()
  await eventually('their end', () => gateway.metrics().counts.tunnelsOpen === 0)
})
