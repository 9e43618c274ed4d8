/** Traces of exchanges, as `sluice walk` shows them: all steps of one exchange, and no step of another. */
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, test } from 'node:test'
import type { Filter, FilterResult } from '../../src/proxy/exchange/contract.ts'
import { refusal } from '../../src/proxy/exchange/outcome.ts'
import type { Trace } from '../../src/observe/exchange-trace.ts'
import { tracer } from '../../src/protocol/tracer.ts'
import { takeResponse } from '../harness/responses.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, ScriptedBackend } from '../harness/peers.ts'

const WATCH_MS = 60_000
const ID = '0123456789abcdef0123456789abcdef'
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const ID_LINE = `activityid: ${ID}\r\n`

const backend = await ScriptedBackend.listen()
let verdict: () => FilterResult = () => undefined
const filters: readonly Filter[] = [
  { name: 'first', request: () => undefined },
  { name: 'second', request: () => verdict() },
]
let gateway: TestGateway
let client: Peer

beforeEach(async () => {
  verdict = () => undefined
  gateway = await startGateway([{ context: '/t', port: backend.port }], { filters })
  backend.skip()
  client = await connectPeer(gateway.port)
})
afterEach(() => {
  gateway.reactor.inspector.serve({ kind: 'unwatch', correlationId: ID })
  gateway.stop()
  client.destroy()
})
after(() => backend.close())

function get(path: string, lines = ''): string {
  return `GET /t/${path} HTTP/1.1\r\nHost: a\r\n${lines}\r\n`
}

function watch(): Promise<Trace | null> {
  const { inspector } = gateway.reactor
  assert.equal(inspector.serve({ kind: 'watch', correlationId: ID, waitMs: WATCH_MS }), true)
  return inspector.serve({ kind: 'trace', correlationId: ID }) as Promise<Trace | null>
}

/** Takes a request on a backend connection and sends the response. */
async function serve(peer: Peer, response = OK): Promise<void> {
  await peer.untilText('\r\n\r\n')
  peer.take()
  peer.send(response)
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

test('a trace of a request in pieces between other requests has its steps from the first byte to the end', async () => {
  client.send(get('before'))
  const peer = await backend.next()
  await serve(peer)
  await takeResponse(client)
  const traced = watch()
  await client.sendCut(get('this', ID_LINE) + get('after'), [3, 30])
  await serve(peer)
  await takeResponse(client)
  await serve(peer)
  await takeResponse(client)
  const trace = await traced
  assert.deepEqual(events(trace, 'source'), PLAIN)
  assert.deepEqual(events(trace, 'target'), PLAIN)
  assert.deepEqual(events(trace, 'gateway'), ['route', 'filter first', 'filter second', 'backend'])
  assert.deepEqual(
    [trace!.isComplete, trace!.status, trace!.source, trace!.target],
    [true, 200, 'http-incoming-1', 'http-outgoing-1'],
  )
})

test('a trace has no step of other clients, also on a shared backend connection', async () => {
  const other = await connectPeer(gateway.port)
  const traced = watch()
  client.send(get('this', ID_LINE))
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  other.send(get('other'))
  const second = await backend.next()
  await serve(second)
  await takeResponse(other)
  await serve(peer)
  await takeResponse(client)
  // Both backend connections are idle; the one used last is reused first.
  other.send(get('other'))
  await peer.untilText('/other')
  assert.deepEqual(events(await traced, 'target'), ['CONNECTED', ...PLAIN])
  assert.deepEqual(events(await traced, 'source'), PLAIN)
  other.destroy()
})

test('a trace has two steps of a filter that waits, and ends with the filter that refuses', async () => {
  const decision = Promise.withResolvers<ReturnType<typeof refusal> | undefined>()
  verdict = () => decision.promise
  const traced = watch()
  client.send(get('this', ID_LINE))
  await eventually('the trace', () => tracer !== null)
  decision.resolve(refusal(405))
  assert.equal((await takeResponse(client)).status, 405)
  const trace = await traced
  assert.deepEqual(
    trace!.steps.filter(({ where }) => where === 'gateway').map(({ what, detail }) => `${what}: ${detail}`),
    [
      ...['route: t, /t, /*', 'filter first: passes', 'filter second: waits', 'filter second: refuses with 405'],
      'fault: 405, sequence _resource_mismatch_handler_',
    ],
  )
  assert.equal(trace!.status, 405)
})

test('a trace has the canonical path without the query', async () => {
  for (const [path, detail] of [
    ['this', 't, /t, /*'],
    ['x/../%74his?y=/..', 't, /t, /*, as /t/this'],
  ] as const) {
    verdict = () => refusal(405)
    const traced = watch()
    client.send(get(path, ID_LINE))
    await takeResponse(client)
    const steps = (await traced)!.steps.filter(({ what }) => what === 'route')
    assert.deepEqual(
      steps.map(step => step.detail),
      [detail],
    )
  }
})

test('a trace of a retried request has the steps of both backend connections', async () => {
  client.send(get('before'))
  const stale = await backend.next()
  await serve(stale)
  await takeResponse(client)
  const traced = watch()
  client.send(get('this', ID_LINE))
  await stale.untilText('\r\n\r\n')
  stale.reset()
  await serve(await backend.next())
  await takeResponse(client)
  const trace = await traced
  assert.deepEqual(events(trace, 'target'), ['REQUEST_BEGIN', 'REQUEST_END', 'SOCKET_CLOSED', 'CONNECTED', ...PLAIN])
  assert.equal(trace!.target, 'http-outgoing-2')
})

test('a malformed request with the watched id is traced', async () => {
  const traced = watch()
  client.send(`GET /t/ HTTP/1.1\r\n${ID_LINE}\r\n`)
  assert.equal((await takeResponse(client)).status, 400)
  const trace = await traced
  assert.deepEqual(events(trace, 'source').slice(0, 2), ['REQUEST_BEGIN', 'RESPONSE_BEGIN'])
  assert.deepEqual([trace!.status, trace!.errorBase, trace!.errorState], [400, 400, 0])
})

test('a reset of the client completes the trace', async () => {
  const traced = watch()
  client.send(get('this', ID_LINE))
  await (await backend.next()).untilText('\r\n\r\n')
  client.reset()
  const trace = await traced
  assert.deepEqual(events(trace, 'source'), ['REQUEST_BEGIN', 'REQUEST_END', 'SOCKET_CLOSED'])
  assert.deepEqual(events(trace, 'target'), ['CONNECTED', 'REQUEST_BEGIN', 'REQUEST_END', 'SOCKET_CLOSED'])
  assert.deepEqual([trace!.isComplete, trace!.status], [true, 0])
})

test('only one trace runs at a time, and only its own id can end it', async () => {
  const { inspector } = gateway.reactor
  const traced = watch()
  assert.equal(inspector.serve({ kind: 'watch', correlationId: 'f'.repeat(32), waitMs: WATCH_MS }), false)
  assert.equal(await inspector.serve({ kind: 'trace', correlationId: 'f'.repeat(32) }), null)
  inspector.serve({ kind: 'unwatch', correlationId: 'f'.repeat(32) })
  assert.ok(tracer !== null, 'another id does not end the trace')
  inspector.serve({ kind: 'unwatch', correlationId: ID })
  assert.equal(await traced, null)
  assert.equal(tracer, null)
})

test('a trace without a matching request ends after its time', async () => {
  const { inspector } = gateway.reactor
  inspector.serve({ kind: 'watch', correlationId: ID, waitMs: 1 })
  assert.equal(await inspector.serve({ kind: 'trace', correlationId: ID }), null)
  assert.equal(tracer, null)
})

test('a trace has at most 1000 steps and counts the dropped ones', async () => {
  const traced = watch()
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
