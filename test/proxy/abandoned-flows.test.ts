/** Clients that leave while their messages wait for a worker (`worker_pool_queue_length`), on real threads. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { PERMIT_ROWS } from '../../src/plan/worker-plan.ts'
import { SharedPermits } from '../../src/runtime/shared-permits.ts'
import { planGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer } from '../harness/peers.ts'
import { address, says, startBackend, startCalls } from '../harness/sequence-calls.ts'

/** A gateway with one permit, which a message for `/held` of its backend has until `release`. */
async function startHeld(t: TestContext, queueLength: number) {
  const gate = Promise.withResolvers<Peer>()
  const backend = await startBackend(t, {
    '/held': (_, peer) => {
      gate.resolve(peer)
      return null
    },
    '/next': says(200, '{"next":1}'),
  })
  const { workers } = planGateway([]).plan
  const plain = { ...workers.limits.plain, core: 1, max: 1, queueLength }
  const pool = { ...workers, limits: { ...workers.limits, plain } }
  const permits = SharedPermits.allocate(1, Object.keys(PERMIT_ROWS).length)
  const request = `<call>${address(backend.port)}</call><respond/>`
  const { gateway, ask } = await startCalls(t, { request }, 1, {}, { workers: pool, permits })
  const held = ask('GET /a/held')
  const peer = await gate.promise
  return {
    gateway,
    ask,
    counts: () => SharedPermits.counts(permits, 1, PERMIT_ROWS.plain),
    targets: () => backend.received.map(({ target }) => target),
    release: async () => {
      peer.send('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
      assert.equal((await held)[0], 200)
    },
  }
}

test('a client that leaves gives up its place in the queue, and no sequence runs on its message', async t => {
  const { gateway, ask, counts, targets, release } = await startHeld(t, 1)
  const client = await connectPeer(gateway.port)
  client.send('POST /a/left HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}')
  await eventually('the place in the queue', () => counts().waiting === 1)
  const [status, body] = await ask('GET /a/refused')
  assert.equal(status, 503)
  assert.match(body, /"code":102540/)
  client.reset()
  await eventually('the free place', () => counts().waiting === 0)
  assert.equal(counts().waitingBytes, 0)
  const next = ask('GET /a/next')
  await eventually('the next message', () => counts().waiting === 1)
  await release()
  assert.deepEqual(await next, [200, '{"next":1}'])
  assert.deepEqual(targets(), ['/held', '/next'])
  assert.equal(counts().running, 0)
})

test('of clients that leave at once each gives its place up, and the permit is free in the end', async t => {
  const { gateway, counts, targets, release } = await startHeld(t, -1)
  const clients: Peer[] = []
  for (let at = 0; at < 20; at++) {
    const client = await connectPeer(gateway.port)
    client.send('GET /a/left HTTP/1.1\r\nHost: h\r\n\r\n')
    clients.push(client)
  }
  await eventually('all places', () => counts().waiting === clients.length)
  for (const client of clients) client.reset()
  await eventually('the empty queue', () => counts().waiting === 0)
  assert.equal(counts().running, 1)
  await release()
  await eventually('the free permit', () => counts().running === 0)
  assert.deepEqual(targets(), ['/held'])
})
