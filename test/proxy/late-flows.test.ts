/** What a flow does no more once its client has 504 (`mediation.synapse.global_timeout_interval`), on real threads. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { flowsOf } from '../harness/flows.ts'
import { planGateway, startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, type Peer } from '../harness/peers.ts'
import { takeResponse } from '../harness/responses.ts'
import { callTo, type PathBackend, planEndpoints, says, startBackend } from '../harness/sequence-calls.ts'

const TIMEOUT_MS = 2000

interface Late {
  readonly gateway: TestGateway
  readonly backend: PathBackend
  /** The connection of the first call, whose response is not there. */
  readonly first: Promise<Peer>
}

/** A call that waits longer than its message. */
function patientCallTo(port: number, path: string): string {
  return callTo(port, path).replace(/(<address .*)\/>/, '$1><timeout><duration>60000</duration></timeout></address>')
}

/**
 * A gateway with one permit whose API `/late` waits for `/first` of its backend before `after`, and whose API `/other`
 * calls `/ping`.
 */
async function startLate(t: TestContext, after: (port: number) => string): Promise<Late> {
  const first = Promise.withResolvers<Peer>()
  const backend = await startBackend(t, {
    '/first': (_, peer) => {
      first.resolve(peer)
      return null
    },
    '/second': says(200, '{}'),
    '/ping': says(200, '{"pong":1}'),
  })
  const { workers } = planGateway([]).plan
  const row = { ...workers.limits.plain, core: 1, max: 1, queueLength: -1 }
  const calls = await flowsOf({ request: `${patientCallTo(backend.port, '/first')}${after(backend.port)}<respond/>` })
  const other = await flowsOf({ request: `${callTo(backend.port, '/ping')}<respond/>` })
  const gateway = await startGateway(
    Object.entries({ '/late': calls, '/other': other }).map(([context, mediation]) => ({
      ...{ context, port: backend.port, overrides: { mediation } },
    })),
    {
      workers: { ...workers, limits: { ...workers.limits, plain: row } },
      responseTimeoutMs: TIMEOUT_MS,
      sequenceEndpoints: planEndpoints([...calls.sequences, ...other.sequences]),
    },
  )
  t.after(() => gateway.stop())
  const made = { gateway, backend, first: first.promise }
  // The start of the thread may take longer than the time-out.
  while ((await ask(made, '/other')).status !== 200);
  backend.received.length = 0
  return made
}

async function ask({ gateway }: Late, path: string) {
  const client = await connectPeer(gateway.port)
  client.send(`GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`)
  const response = await takeResponse(client)
  client.destroy()
  return response
}

/** What would follow the first call, if nothing ended the flow. */
const AFTER: Readonly<Record<string, (port: number) => string>> = {
  'a second call': port => callTo(port, '/second'),
  'copies that call': port => `<clone><target><sequence>${callTo(port, '/second')}</sequence></target></clone>`,
  'a copy in the background that calls': port =>
    `<clone continueParent="true"><target><sequence>${callTo(port, '/second')}</sequence></target></clone>`,
}

for (const [what, after] of Object.entries(AFTER)) {
  test(`D258: after 504 with 102542 a flow goes on no more, so that ${what} never begins`, async t => {
    const late = await startLate(t, after)
    const { status, body } = await ask(late, '/late')
    assert.equal(status, 504)
    assert.match(body, /"code":102542/)
    const peer = await late.first
    peer.send('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
    // Messages on the same thread, whose loop stands still while it has no task.
    for (let at = 0; at < 3; at++) assert.equal((await ask(late, '/other')).body, '{"pong":1}')
    const targets = late.backend.received.map(({ target }) => target)
    assert.deepEqual(targets, ['/first', '/ping', '/ping', '/ping'])
    assert.equal(late.gateway.metrics().counts.backgroundTasks, 0)
  })
}

test('504 with 102542 ends the call that the flow waits for: its connection is closed', async t => {
  const late = await startLate(t, port => callTo(port, '/second'))
  assert.equal((await ask(late, '/late')).status, 504)
  await (await late.first).untilEnd()
  const [failed] = late.gateway.reports.filter(({ event }) => event === 'backend failed')
  assert.equal(failed?.fields.CAUSE_OF_ERROR, 'nobody waits for the response any more')
})
