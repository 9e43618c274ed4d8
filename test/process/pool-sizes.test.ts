/**
 * Issue 17: pool sizes 1, 4 and 400 with queues of 0, 10 and -1 behave as documented, counted over all reactors of the
 * real program. Messages hold their permits in a call to a backend that waits behind a gate.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sendCommand } from '../../src/cli/control-client.ts'
import type { PoolsReport } from '../../src/primary/pool-service.ts'
import { backend as plain, home, leave, listed, start } from '../harness/operator.ts'
import { connectPeer, eventually, type Peer, pollPause, ScriptedBackend } from '../harness/peers.ts'
import { freePort } from '../harness/program.ts'
import { put, reload } from '../harness/reloading.ts'
import { takeResponse } from '../harness/responses.ts'

const REACTORS = 2
/** Messages beyond size and queue. */
const BEYOND = 20

let gate = Promise.withResolvers<void>()
let arrived = 0
const gated = await ScriptedBackend.listen(peer => void hold(peer))
after(async () => {
  gate.resolve()
  gated.close()
  await leave()
})

async function hold(peer: Peer): Promise<void> {
  while (!peer.isClosed && peer.ending === '') {
    await peer.untilRequest()
    if (peer.take() === '') continue
    arrived++
    await gate.promise
    peer.send('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok')
  }
}

const at = home(plain.port)
put(
  at,
  'synapse-configs/default/sequences/WSO2AM--Ext--In.xml',
  `<sequence xmlns="http://ws.apache.org/ns/synapse" name="WSO2AM--Ext--In">
    <call><endpoint><http method="get" uri-template="http://127.0.0.1:${gated.port}/"/></endpoint></call>
  </sequence>`,
)
const gateway = await start(at, [
  `transport.passthru_http.reactors=${REACTORS}`,
  `transport.passthru_http.listener.parameters.port=${await freePort()}`,
])

async function pool() {
  const { pools, history } = await sendCommand<PoolsReport>(gateway.home.data, { command: 'pools' })
  return { ...pools.find(({ name }) => name === 'http')!, refused: history[0]!.queueFull }
}

/** Waits for so many messages that run and wait, and so many refusals. */
async function settled(expected: Readonly<Record<'running' | 'waiting' | 'refused', number>>): Promise<void> {
  for (;;) {
    const { running, waiting, refused } = await pool()
    if (running + waiting + refused >= expected.running + expected.waiting + expected.refused) {
      assert.deepEqual({ running, waiting, refused }, expected)
      return
    }
    await pollPause()
  }
}

for (const size of [1, 4, 400]) {
  for (const queue of [0, 10, -1]) {
    const burst = size + Math.max(queue, 0) + BEYOND
    const waiting = queue < 0 ? BEYOND : queue
    const refused = burst - size - waiting
    test(`size ${size}, queue ${queue}: of ${burst} messages ${waiting} wait and ${refused} get 503`, async () => {
      const sizes = `worker_pool_size_core = ${size}\nworker_pool_size_max = ${size}\n`
      put(gateway.home, 'deployment.toml', `[transport.passthru_http]\n${sizes}worker_pool_queue_length = ${queue}\n`)
      assert.deepEqual((await reload(gateway)).errors, [])
      const refusedBefore = (await pool()).refused
      gate = Promise.withResolvers()
      arrived = 0
      const clients = await Promise.all(Array.from({ length: burst }, () => connectPeer(gateway.port)))
      for (const client of clients) client.send('GET /t/ HTTP/1.1\r\nHost: a\r\n\r\n')
      const responses = Promise.all(clients.map(client => takeResponse(client)))
      await settled({ running: size, waiting, refused: refusedBefore + refused })
      await eventually('the calls of all that run', () => arrived >= size)
      const { reactors } = await listed(gateway.home)
      assert.equal(reactors.length, REACTORS)
      assert.ok(reactors.every(({ counts }) => Object.keys(counts.source ?? {}).length > 0))
      assert.equal(arrived, size)
      gate.resolve()
      const all = await responses
      for (const client of clients) client.destroy()
      assert.equal(all.filter(({ status }) => status === 200).length, size + waiting)
      const others = all.filter(({ status }) => status !== 200)
      assert.ok(others.every(({ status, body }) => status === 503 && body.includes('102540')))
      assert.equal(arrived, size + waiting)
      const { running, waiting: left, highest } = await pool()
      assert.deepEqual({ running, waiting: left, highest }, { running: 0, waiting: 0, highest: size })
    })
  }
}
