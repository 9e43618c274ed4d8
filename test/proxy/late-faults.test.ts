/** The answer of a message that is late (`mediation.synapse.global_timeout_interval`) where a flow words its faults. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { flowsOf } from '../harness/flows.ts'
import { planGateway, startGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { callTo, planEndpoints, says, startBackend } from '../harness/sequence-calls.ts'
import { PERMIT_ROWS } from '../../src/plan/worker-plan.ts'
import { SharedPermits } from '../../src/runtime/shared-permits.ts'

const TIMEOUT_MS = 2000
/** A fault flow that needs a worker. */
const WORDS = '<payloadFactory media-type="json"><format>{"worded":"by the flow"}</format></payloadFactory><respond/>'

/** A gateway with one permit: its API `/late` waits for a backend, and a flow on a worker words its faults. */
async function startLate(t: TestContext) {
  const held: Peer[] = []
  const backend = await startBackend(t, {
    '/held': (_, peer) => {
      held.push(peer)
      return null
    },
    '/ping': says(200, '{}'),
  })
  const { workers } = planGateway([]).plan
  const plain = { ...workers.limits.plain, core: 1, max: 1, queueLength: -1 }
  const permits = SharedPermits.allocate(1, Object.keys(PERMIT_ROWS).length)
  const patient = callTo(backend.port, '/held').replace(
    /(<address .*)\/>/,
    '$1><timeout><duration>60000</duration></timeout></address>',
  )
  const late = await flowsOf({ request: `${patient}<respond/>`, fault: WORDS })
  const other = await flowsOf({ request: `${callTo(backend.port, '/ping')}<respond/>` })
  const gateway = await startGateway(
    Object.entries({ '/late': late, '/other': other }).map(([context, mediation]) => ({
      ...{ context, port: backend.port, overrides: { mediation } },
    })),
    {
      ...{ workers: { ...workers, limits: { ...workers.limits, plain } }, permits, responseTimeoutMs: TIMEOUT_MS },
      sequenceEndpoints: planEndpoints([...late.sequences, ...other.sequences]),
    },
  )
  t.after(() => gateway.stop())
  const ask = async (path: string) => {
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    client.send(`GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`)
    return takeResponse(client)
  }
  // The start of the thread may take longer than the time-out.
  while ((await ask('/other')).status !== 200);
  return { gateway, ask, held, waiting: () => SharedPermits.counts(permits, 1, PERMIT_ROWS.plain).waiting }
}

test('the fault flow words 504 with 102542 where a worker is free', async t => {
  const { ask } = await startLate(t)
  const { status, body } = await ask('/late')
  assert.deepEqual([status, body], [504, '{"worded":"by the flow"}'])
})

test('D780: a message that is late does not wait in the queue once more for the words of its fault flow', async t => {
  const { gateway, ask, held, waiting } = await startLate(t)
  const late = ask('/late')
  await eventually('the call of the first message', () => held.length === 1)
  // The second message has more time, and takes the permit of the first one.
  await gateway.deploy({ responseTimeoutMs: 60_000 })
  const next = ask('/late')
  await eventually('the second message', () => waiting() === 1)
  const { status, body } = await late
  assert.equal(status, 504)
  assert.match(body, /"code":102542/)
  await eventually('the call of the second message', () => held.length === 2)
  held[1]!.send('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}')
  assert.equal((await next).status, 200)
})
