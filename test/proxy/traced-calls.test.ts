/** Requests that sequences make within a trace: their context, their spans, and the mediation of responses. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Span, spansOf } from '../../src/observe/spans.ts'
import { type ExchangeRecord, TraceRecords } from '../../src/observe/trace-records.ts'
import { set } from '../harness/flows.ts'
import { eventually, refusingPort } from '../harness/peers.ts'
import { address, type PathBackend, says, startBackend, startCalls } from '../harness/sequence-calls.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = 'b7ad6b7169203331'
const FIELD = /^traceparent: 00-([0-9a-f]{32})-([0-9a-f]{16})-(0[0-3])\r$/gm
const client = (flags: string) => `traceparent: 00-${TRACE}-${PARENT}-${flags}\r\ntracestate: a=1\r\n`
const OK = { '/called/x': says(200, '{}'), '/x': says(200, '{}') }
/** A call beside the request, which goes on as it is. */
const call = (port: number) => `<call>${address(port, '/called')}<target type="property">side</target></call>`

/** A gateway that traces, and the records that it hands over; `ratio` null: it traces nothing. */
async function traced(t: TestContext, flows: Parameters<typeof startCalls>[1], port: number, ratio: number | null = 1) {
  const records: ExchangeRecord[] = []
  const traceRecords = new TraceRecords({
    ...{ ratio: ratio ?? 0, parentBased: true, faultsPerSecond: 0, wallOffsetMs: () => Date.now() - performance.now() },
    publish: async batch => records.push(...(JSON.parse(batch.records) as ExchangeRecord[])),
    onDropped: () => assert.fail(),
  })
  const { ask, gateway } = await startCalls(t, flows, port, {}, ratio === null ? {} : { traceRecords })
  const spans = async (count: number): Promise<readonly Span[]> => {
    await eventually('the records', () => records.length >= count)
    return records.flatMap(spansOf)
  }
  return { ask, gateway, records, spans }
}

/** Trace id, parent id and flags that a path has got. */
function sentTo({ received }: PathBackend, path: string): readonly string[] {
  const { head } = received.find(({ target }) => target === path)!
  const found = [...head.matchAll(FIELD)]
  assert.equal(found.length, 1, head)
  return found[0]!.slice(1)
}

test('a call has a span below that of the request, whose id its backend gets for a parent', async t => {
  const backend = await startBackend(t, OK)
  const { ask, spans } = await traced(t, { request: call(backend.port) }, backend.port)
  assert.deepEqual(await ask('GET /a/x?token=s3cret', '', client('01')), [200, '{}'])
  const all = await spans(2)
  const [trace, id, flags] = sentTo(backend, '/called/x?token=s3cret')
  assert.deepEqual([trace, flags], [TRACE, '01'])
  assert.match(backend.received[0]!.head, /\r\ntracestate: a=1\r\n/)
  const server = all.find(({ kind }) => kind === 'server')!
  const called = all.find(span => span.id === id)!
  assert.deepEqual([called.name, called.kind, called.parentId, called.isError], ['GET', 'client', server.id, false])
  assert.equal(called.attributes['url.full'], `http://127.0.0.1:${backend.port}/called/x?token=***`)
  assert.equal(called.attributes['http.response.status_code'], 200)
  const connect = all.find(({ name, parentId }) => name === 'connect' && parentId === id)!
  assert.ok(connect.startMs >= called.startMs && connect.endMs <= called.endMs)
  const main = all.find(({ kind, id: other }) => kind === 'client' && other !== id)!
  assert.equal(sentTo(backend, '/x?token=s3cret')[1], main.id)
  for (const span of all) {
    assert.equal(span.traceId, TRACE)
    assert.ok(span.startMs >= server.startMs && span.endMs <= server.endMs, span.name)
  }
  assert.equal(new Set(all.map(span => span.id)).size, all.length)
})

test('a request whose call fails ends with the code of that failure', async t => {
  const refusing = await refusingPort()
  t.after(() => refusing.close())
  const { ask, spans } = await traced(t, { request: call(refusing.port) }, refusing.port)
  assert.equal((await ask('GET /a/x', '', client('01')))[0], 502)
  const server = (await spans(2)).find(({ kind }) => kind === 'server')!
  assert.deepEqual([server.isError, server.attributes['error.type']], [true, '101503'])
})

test('a call that fails has a span with its cause, and each call one of its own', async t => {
  const backend = await startBackend(t, OK)
  const refusing = await refusingPort()
  t.after(() => refusing.close())
  const request = call(backend.port) + call(refusing.port)
  const { ask, spans } = await traced(t, { request }, backend.port)
  const [status] = await ask('GET /a/x', '', client('01'))
  assert.ok(status >= 500)
  const clients = (await spans(3)).filter(({ kind }) => kind === 'client')
  assert.deepEqual(
    clients.map(({ isError, attributes }) => [isError, attributes['error.type'] ?? '']),
    [
      [false, ''],
      [true, '101503'],
    ],
  )
})

test('a call of a request that is not sampled passes the trace on and has no span', async t => {
  const backend = await startBackend(t, OK)
  const { ask, records } = await traced(t, { request: call(backend.port) }, backend.port)
  assert.deepEqual(await ask('GET /a/x', '', client('00')), [200, '{}'])
  const [trace, id, flags] = sentTo(backend, '/called/x')
  assert.deepEqual([trace, flags], [TRACE, '00'])
  assert.notEqual(id, PARENT)
  assert.deepEqual(records, [])
})

test('without tracing, calls pass traceparent and tracestate unchanged', async t => {
  const backend = await startBackend(t, OK)
  const { ask } = await traced(t, { request: call(backend.port) }, backend.port, null)
  assert.deepEqual(await ask('GET /a/x', '', client('01')), [200, '{}'])
  assert.deepEqual(sentTo(backend, '/called/x'), [TRACE, PARENT, '01'])
  assert.match(backend.received[0]!.head, /\r\ntracestate: a=1\r\n/)
})

test('a sequence on a worker that sets traceparent has the last word, for calls and for the request', async t => {
  const backend = await startBackend(t, OK)
  const request = set('traceparent', 'of-the-flow') + call(backend.port)
  const { ask } = await traced(t, { request }, backend.port)
  assert.deepEqual(await ask('GET /a/x', '', client('01')), [200, '{}'])
  for (const { head, target } of backend.received) {
    assert.deepEqual(head.match(/traceparent: .*/gi), ['traceparent: of-the-flow'], target)
  }
  assert.equal(backend.received.length, 2)
})

const RESPONSES = [
  ['by a worker', '<payloadFactory media-type="json"><format>{"a":1}</format></payloadFactory>'],
  ['by the reactor', '<property name="X-Set" expression="$trp:Server" scope="transport"/>'],
] as const
for (const [where, response] of RESPONSES) {
  test(`the mediation of a response ${where} has a span behind that of the backend's first byte`, async t => {
    const backend = await startBackend(t, OK)
    const { ask, spans } = await traced(t, { response }, backend.port)
    const [status] = await ask('GET /a/x', '', client('01'))
    assert.equal(status, 200)
    const all = await spans(1)
    const [mediation, ...others] = all.filter(({ name }) => name === 'response mediation')
    assert.deepEqual([others.length, mediation?.kind], [0, 'internal'])
    const firstByte = all.find(({ kind }) => kind === 'client')!.events[0]!.ms
    const server = all.find(({ kind }) => kind === 'server')!
    assert.ok(mediation!.startMs >= firstByte - 0.01 && mediation!.endMs >= mediation!.startMs)
    assert.ok(mediation!.endMs <= server.endMs)
  })
}

process.env.SLUICE_TEST_SPAN = 'open-sesame'
const SECRET_STEP = (name: string, scope: string) =>
  `<property name="${name}" scope="${scope}"
    expression="fn:concat('/of/', get-property('env', 'SLUICE_TEST_SPAN'))"/>`
const HIDING: readonly (readonly [what: string, request: (port: number) => string])[] = [
  [
    'a <send> to a URI template',
    port => `${SECRET_STEP('uri.var.it', 'default')}<send><endpoint>
      <http method="get" uri-template="http://127.0.0.1:${port}{+uri.var.it}"/></endpoint></send>`,
  ],
  ['a path that is set on a worker', () => `${SECRET_STEP('REST_URL_POSTFIX', 'axis2')}<log level="full"/>`],
  ['a path that is set on the reactor', () => SECRET_STEP('REST_URL_POSTFIX', 'axis2')],
]
for (const [what, request] of HIDING) {
  test(`the span of ${what} masks a variable of the environment, which the backend gets`, async t => {
    const backend = await startBackend(t, { '/of/open-sesame': says(200, '{}') })
    const { ask, spans } = await traced(t, { request: request(backend.port) }, backend.port)
    assert.deepEqual(await ask('GET /a/x', '', client('01')), [200, '{}'])
    const all = await spans(1)
    const urls = all.filter(({ kind }) => kind === 'client').map(({ attributes }) => attributes['url.full'])
    assert.deepEqual(urls, [`http://127.0.0.1:${backend.port}/of/***`])
    assert.ok(!JSON.stringify(all).includes('open-sesame'))
  })
}
