/** Clients that leave while their messages wait for a worker, or while a worker runs their flows, on real threads. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { PERMIT_ROWS } from '../../src/plan/worker-plan.ts'
import { SharedPermits } from '../../src/runtime/shared-permits.ts'
import { planGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer } from '../harness/peers.ts'
import { address, callTo, type Reaction, says, startBackend, startCalls } from '../harness/sequence-calls.ts'

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

const GATE = '/gate'

/** A call behind the path of the request, which leaves the message as it is. */
const asideTo = (port: number) => `<call>${address(port, GATE)}
  <source type="inline" contentType="application/json">{}</source><target type="property">side</target></call>`

/** A gateway with two permits whose API waits for `/gate` of its backend before `after`; `peers`: those that wait. */
async function startGated(t: TestContext, flow: (port: number) => string) {
  const peers: Peer[] = []
  const gate: Reaction = (_, peer) => {
    peers.push(peer)
    return null
  }
  const backend = await startBackend(t, {
    [GATE]: gate,
    [`${GATE}/kept`]: gate,
    '/next': says(200, '{}'),
    '/other': says(200, '{"other":1}'),
    '/kept': says(200, '{}'),
  })
  const { workers } = planGateway([]).plan
  const plain = { ...workers.limits.plain, core: 2, max: 2, queueLength: -1 }
  const pool = { ...workers, limits: { ...workers.limits, plain } }
  const permits = SharedPermits.allocate(1, Object.keys(PERMIT_ROWS).length)
  const isOther = `<filter regex="/other" source="get-property('axis2', 'REST_URL_POSTFIX')">`
  const other = `${isOther}<then>${callTo(backend.port, '/other')}<respond/></then></filter>`
  const request = `${other}${flow(backend.port)}`
  const bodies = { bytesMax: 10_000_000, memoryMax: 1000, pieceBytes: 3072 }
  const options = { workers: pool, permits, bodies }
  const { gateway, ask } = await startCalls(t, { request }, backend.port, {}, options)
  return {
    ...{ gateway, ask, peers, backend },
    counts: () => SharedPermits.counts(permits, 1, PERMIT_ROWS.plain),
    targets: () => backend.received.map(({ target }) => target),
  }
}

/** What follows the call that its client does not wait for. */
const AFTER: Readonly<Record<string, (port: number) => string>> = {
  'a second call': port => callTo(port, '/next'),
  'a copy in the background': port =>
    `<clone continueParent="true"><target><sequence>${callTo(port, '/next')}</sequence></target></clone>`,
}

for (const [what, after] of Object.entries(AFTER)) {
  test(`D807: of a flow whose client leaves the call ends, ${what} never begins, and its permit is free`, async t => {
    const { gateway, ask, counts, targets, peers } = await startGated(
      t,
      port => `${callTo(port, GATE)}${after(port)}<respond/>`,
    )
    for (let round = 1; round <= 3; round++) {
      const clients = [await connectPeer(gateway.port), await connectPeer(gateway.port)]
      for (const client of clients) client.send('GET /a/left HTTP/1.1\r\nHost: h\r\n\r\n')
      await eventually('both calls', () => peers.length === 2 * round)
      assert.equal(counts().running, 2)
      for (const client of clients) client.reset()
      for (const peer of peers) await peer.untilEnd()
      await eventually('the free permits', () => counts().running === 0)
    }
    // Messages on the same thread, whose loop stands still while it has no task.
    for (let at = 0; at < 3; at++) assert.deepEqual(await ask('GET /a/other'), [200, '{"other":1}'])
    const { counts: metrics } = gateway.metrics()
    assert.deepEqual(targets(), [...peers.map(() => GATE), '/other', '/other', '/other'])
    assert.deepEqual([metrics.workerTasksLeft, metrics.workerTasksFailed, metrics.backgroundTasks], [6, 0, 0])
    const [failed] = gateway.reports.filter(({ event }) => event === 'backend failed')
    assert.equal(failed?.fields.CAUSE_OF_ERROR, 'nobody waits for the response any more')
  })
}

test('D807: a copy in the background goes on to its end after its client has left', async t => {
  const { gateway, counts, targets, peers } = await startGated(t, port => {
    const copy = `${callTo(port, GATE)}${callTo(port, '/next')}`
    return `<clone continueParent="true"><target><sequence>${copy}</sequence></target></clone>${callTo(port, GATE)}`
  })
  const client = await connectPeer(gateway.port)
  client.send('GET /a/left HTTP/1.1\r\nHost: h\r\n\r\n')
  await eventually('the calls of message and copy', () => peers.length === 2)
  client.reset()
  await eventually('the free permit', () => counts().running === 0)
  const open = (): readonly Peer[] => peers.filter(({ ending }) => ending === '')
  await eventually('the end of one call', () => open().length === 1)
  open()[0]!.send('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
  await eventually('the second call of the copy', () => targets().includes('/next'))
})

for (const [what, property] of [
  ['FORCE_SC_ACCEPTED', '<property name="FORCE_SC_ACCEPTED" value="true" scope="axis2"/>'],
  ['OUT_ONLY', '<property name="OUT_ONLY" value="true"/>'],
] as const) {
  for (const length of [10, 100_000]) {
    test(`D807: a flow with ${what} goes on after its client has left, with its body of ${length} bytes`, async t => {
      const gated = await startGated(t, port => property + asideTo(port))
      const { gateway, counts, targets, peers, backend } = gated
      const client = await connectPeer(gateway.port)
      const body = JSON.stringify('x'.repeat(length - 2))
      const type = 'Content-Type: application/json\r\n'
      client.send(`POST /a/kept HTTP/1.1\r\nHost: h\r\n${type}Content-Length: ${length}\r\n\r\n${body}`)
      await eventually('the call', () => peers.length === 1)
      client.reset()
      await eventually('the end of its client', () => gateway.metrics().counts.workerTasksLeft === 1)
      assert.equal(counts().running, 1)
      peers[0]!.send('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
      await eventually('the request', () => targets().includes('/kept'))
      assert.equal(backend.received.at(-1)!.body.length, length)
      await eventually('the free permit', () => counts().running === 0)
    })
  }
}
