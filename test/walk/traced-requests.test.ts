/** The course of one exchange as `walk` shows it: its own steps, all of them, and nobody else's. */
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, test } from 'node:test'
import type { Handler, Verdict } from '../../src/exchange/contract.ts'
import { refusal } from '../../src/exchange/outcome.ts'
import type { Trace } from '../../src/observe/exchange-trace.ts'
import { tracer } from '../../src/protocol/tracer.ts'
import { takeAnswer } from '../harness/answers.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend } from '../harness/peers.ts'

const WATCH_MS = 60_000
const ID = '0123456789abcdef0123456789abcdef'
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const ID_LINE = `activityid: ${ID}\r\n`

const backend = await ScriptedBackend.listen()
let verdict: () => Verdict = () => undefined
const handlers: readonly Handler[] = [
  { name: 'first', request: () => undefined },
  { name: 'second', request: () => verdict() },
]
let gateway: TestGateway
let client: Peer

beforeEach(async () => {
  verdict = () => undefined
  gateway = await startGateway([{ context: '/t', port: backend.port }], {}, null, handlers)
  backend.skip()
  client = await connectPeer(gateway.port)
})
afterEach(() => {
  gateway.reactor.answers.answer({ kind: 'disarm', correlationId: ID })
  gateway.stop()
  client.destroy()
})
after(() => backend.close())

function get(path: string, lines = ''): string {
  return `GET /t/${path} HTTP/1.1\r\nHost: a\r\n${lines}\r\n`
}

function arm(): Promise<Trace | null> {
  const { answers } = gateway.reactor
  assert.equal(answers.answer({ kind: 'arm', correlationId: ID, waitMs: WATCH_MS }), true)
  return answers.answer({ kind: 'trace', correlationId: ID }) as Promise<Trace | null>
}

/** Takes what a request sent on a backend connection, and answers it. */
async function serve(peer: Peer, answer = OK): Promise<void> {
  await peer.untilText('\r\n\r\n')
  peer.take()
  peer.send(answer)
}

function events(trace: Trace | null, where: 'source' | 'target' | 'gateway'): readonly string[] {
  assert.ok(trace !== null)
  return trace.steps.filter(step => step.where === where).map(({ what }) => what)
}

const PLAIN = [
  'REQUEST_BEGIN',
  'REQUEST_END',
  'RESPONSE_BEGIN',
  'RESPONSE_BODY',
  'RESPONSE_DATA',
  'RESPONSE_END',
  'REUSE',
]

test('a request in pieces, between others of the same client: from its first byte to its end', async () => {
  client.send(get('before'))
  const peer = await backend.next()
  await serve(peer)
  await takeAnswer(client)
  const traced = arm()
  await client.sendCut(get('this', ID_LINE) + get('after'), [3, 30])
  await serve(peer)
  await takeAnswer(client)
  await serve(peer)
  await takeAnswer(client)
  const trace = await traced
  assert.deepEqual(events(trace, 'source'), PLAIN)
  assert.deepEqual(events(trace, 'target'), PLAIN)
  assert.deepEqual(events(trace, 'gateway'), ['route', 'handler first', 'handler second', 'back end'])
  assert.deepEqual(
    [trace!.isComplete, trace!.status, trace!.source, trace!.target],
    [true, 200, 'http-incoming-1', 'http-outgoing-1'],
  )
})

test('what other clients do meanwhile is not in it, on connections that they share neither', async () => {
  const other = await connectPeer(gateway.port)
  const traced = arm()
  client.send(get('this', ID_LINE))
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  other.send(get('other'))
  const second = await backend.next()
  await serve(second)
  await takeAnswer(other)
  await serve(peer)
  await takeAnswer(client)
  // Both connections are free now; the last one used is taken first.
  other.send(get('other'))
  await peer.untilText('/other')
  assert.deepEqual(events(await traced, 'target'), PLAIN)
  assert.deepEqual(events(await traced, 'source'), PLAIN)
  other.destroy()
})

test('handlers: one that waits is noted twice, and one that refuses ends the way', async () => {
  const decision = Promise.withResolvers<ReturnType<typeof refusal> | undefined>()
  verdict = () => decision.promise
  const traced = arm()
  client.send(get('this', ID_LINE))
  await eventually('the handler', () => tracer !== null)
  decision.resolve(refusal(405))
  assert.equal((await takeAnswer(client)).status, 405)
  const trace = await traced
  assert.deepEqual(
    trace!.steps.filter(({ where }) => where === 'gateway').map(({ what, detail }) => `${what}: ${detail}`),
    [
      ...['route: t, /t, /*', 'handler first: passes', 'handler second: waits', 'handler second: refuses, 405'],
      'fault: 405, by _resource_mismatch_handler_.xml',
    ],
  )
  assert.equal(trace!.status, 405)
})

test('a path that was made canonical is shown as it was matched, without its query', async () => {
  for (const [path, said] of [
    ['this', 't, /t, /*'],
    ['x/../%74his?y=/..', 't, /t, /*, as /t/this'],
  ] as const) {
    verdict = () => refusal(405)
    const traced = arm()
    client.send(get(path, ID_LINE))
    await takeAnswer(client)
    const steps = (await traced)!.steps.filter(({ what }) => what === 'route')
    assert.deepEqual(
      steps.map(step => step.detail),
      [said],
    )
  }
})

test('a request that is sent once more shows both connections', async () => {
  client.send(get('before'))
  const stale = await backend.next()
  await serve(stale)
  await takeAnswer(client)
  const traced = arm()
  client.send(get('this', ID_LINE))
  await stale.untilText('\r\n\r\n')
  stale.reset()
  await serve(await backend.next())
  await takeAnswer(client)
  const trace = await traced
  assert.deepEqual(events(trace, 'target'), ['REQUEST_BEGIN', 'REQUEST_END', 'SOCKET_CLOSED', ...PLAIN])
  assert.equal(trace!.target, 'http-outgoing-2')
})

test('a malformed request is found by its id as well', async () => {
  const traced = arm()
  client.send(`GET /t/ HTTP/1.1\r\n${ID_LINE}\r\n`)
  assert.equal((await takeAnswer(client)).status, 400)
  const trace = await traced
  assert.deepEqual(events(trace, 'source').slice(0, 2), ['REQUEST_BEGIN', 'RESPONSE_BEGIN'])
  assert.deepEqual([trace!.status, trace!.errorBase, trace!.errorState], [400, 101001, 1])
})

test('a client that leaves ends it', async () => {
  const traced = arm()
  client.send(get('this', ID_LINE))
  await (await backend.next()).untilText('\r\n\r\n')
  client.reset()
  const trace = await traced
  assert.deepEqual(events(trace, 'source'), ['REQUEST_BEGIN', 'REQUEST_END', 'SOCKET_CLOSED'])
  assert.deepEqual(events(trace, 'target'), ['REQUEST_BEGIN', 'REQUEST_END', 'SOCKET_CLOSED'])
  assert.deepEqual([trace!.isComplete, trace!.status], [true, 0])
})

test('one at a time; when nobody watches any more, nothing is watched', async () => {
  const { answers } = gateway.reactor
  const traced = arm()
  assert.equal(answers.answer({ kind: 'arm', correlationId: 'f'.repeat(32), waitMs: WATCH_MS }), false)
  assert.equal(await answers.answer({ kind: 'trace', correlationId: 'f'.repeat(32) }), null)
  answers.answer({ kind: 'disarm', correlationId: 'f'.repeat(32) })
  assert.ok(tracer !== null, 'disarmed by a stranger')
  answers.answer({ kind: 'disarm', correlationId: ID })
  assert.equal(await traced, null)
  assert.equal(tracer, null)
})

test('it ends by itself after its time', async () => {
  const { answers } = gateway.reactor
  answers.answer({ kind: 'arm', correlationId: ID, waitMs: 1 })
  assert.equal(await answers.answer({ kind: 'trace', correlationId: ID }), null)
  assert.equal(tracer, null)
})

test('a long response has its limit of steps, and says how many were left out', async () => {
  const traced = arm()
  client.send(get('this', ID_LINE))
  const peer = await backend.next()
  const PIECES = 1200
  await serve(peer, `HTTP/1.1 200 OK\r\nContent-Length: ${PIECES}\r\n\r\n`)
  for (let count = 0; count < PIECES; count++) {
    peer.send('x')
    await client.until('the piece', () => client.text.endsWith(`\r\n\r\n${'x'.repeat(count + 1)}`))
  }
  const trace = await traced
  assert.equal(trace!.steps.length, 1000)
  assert.ok(trace!.dropped > 1000, `${trace!.dropped} dropped`)
  assert.equal(trace!.responseBodyBytes, PIECES)
})
