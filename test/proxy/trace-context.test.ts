/** Trace context through the gateway: what the backend gets, and which exchanges are recorded with what. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type ExchangeRecord, TraceRecords, type TraceSettings } from '../../src/observe/trace-records.ts'
import { spansOf } from '../../src/observe/spans.ts'
import { NOTHING_COLLECTED, setTracer } from '../../src/protocol/tracer.ts'
import { DEFAULT_ENDPOINT_SETTINGS } from '../../src/apis/api-definition.ts'
import { FIRST_ROUTE_SLOT } from '../../src/proxy/target/route.ts'
import { flowsOf, set } from '../harness/flows.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer, refusingPort, ScriptedBackend } from '../harness/peers.ts'
import { switchingProtocols, takeHead, upgradeRequest } from '../harness/tunnels.ts'
import { frame } from '../harness/websocket-frames.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = 'b7ad6b7169203331'
const SENT = /\r\ntraceparent: 00-([0-9a-f]{32})-([0-9a-f]{16})-(0[0-3])\r\n/g
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

const backend = await ScriptedBackend.listen()
const refusing = await refusingPort()
const gateways: TestGateway[] = []
after(() => {
  for (const gateway of gateways) gateway.stop()
  backend.close()
  refusing.close()
})

interface Traced {
  readonly gateway: TestGateway
  readonly records: ExchangeRecord[]
  readonly dropped: number[]
}

async function start(settings: Partial<TraceSettings> | null = {}, takes = true): Promise<Traced> {
  const records: ExchangeRecord[] = []
  const dropped: number[] = []
  const route = { secured: false, tlsClient: '', proxy: null, connectsThroughProxy: false, host: '127.0.0.1' }
  const endpoints = [refusing.port, backend.port].map((port, index) => ({
    ...{ slot: 20 + index, url: `http://127.0.0.1:${port}`, basePath: '/base' },
    route: { ...route, port, slot: FIRST_ROUTE_SLOT + 20 + index },
    settings: { ...DEFAULT_ENDPOINT_SETTINGS, suspensionMs: 0 },
  }))
  const group = { kind: 'failover', algorithm: 'round_robin', failsOver: true, endpoints } as const
  const own = await flowsOf({ request: set('traceparent', 'of-the-flow') })
  const head = await flowsOf({ request: set('X-Set', 'by-flow') })
  const apis = [
    { context: '/echo', port: backend.port, basePath: '/base' },
    { context: '/down', port: refusing.port },
    { context: '/group', port: backend.port, overrides: { endpoints: group } },
    { context: '/own', port: backend.port, overrides: { mediation: own } },
    { context: '/flow', port: backend.port, overrides: { mediation: head } },
  ]
  const traceRecords = new TraceRecords({
    ...{ ratio: 1, parentBased: true, faultsPerSecond: 100, ...settings },
    wallOffsetMs: () => Date.now() - performance.now(),
    publish: batch => {
      records.push(...(JSON.parse(batch.records) as ExchangeRecord[]))
      return takes ? Promise.resolve(true) : Promise.reject(new Error('ended'))
    },
    onDropped: exchanges => void dropped.push(exchanges),
  })
  const gateway = await startGateway(apis, {
    ...(settings === null ? {} : { traceRecords }),
    hasFilterChain: true,
    http: { 'http.connection.timeout': 2000 },
  })
  gateways.push(gateway)
  return { gateway, records, dropped }
}

const fields = (...lines: readonly string[]) => ['Host: gw', ...lines].map(line => `${line}\r\n`).join('')

/** Sends a request and lets the backend respond; returns the head that the backend has got. */
async function headAt(client: Peer, target: string, lines: readonly string[], peers: Peer[]): Promise<string> {
  client.send(`GET ${target} HTTP/1.1\r\n${fields(...lines)}\r\n`)
  if (peers.length === 0) peers.push(await backend.next())
  const [peer] = peers
  await peer!.untilText('\r\n\r\n')
  const head = peer!.take()
  peer!.send(OK)
  await client.untilText('ok')
  client.take()
  return head
}

/** The head that one request on new connections brings to the backend. */
async function headOf({ gateway }: Traced, target: string, ...lines: readonly string[]): Promise<string> {
  backend.skip()
  const client = await connectPeer(gateway.port)
  const peers: Peer[] = []
  const head = await headAt(client, target, lines, peers)
  client.destroy()
  peers[0]!.destroy()
  await eventually('the closed connection', () => gateway.metrics().counts.connectionsOpen === 0)
  return head
}

/** Trace id, parent id and flags that the backend has got. */
function sentIn(head: string): readonly [trace: string, span: string, flags: string] {
  const found = [...head.matchAll(SENT)]
  assert.equal(found.length, 1, head)
  const [, trace, span, flags] = found[0]!
  return [trace!, span!, flags!]
}

const off = await start(null)
const all = await start()
const none = await start({ ratio: 0, faultsPerSecond: 0 })

/** Fields that are invalid together: a new trace begins, and `tracestate` goes too. */
const HOSTILE: readonly (readonly string[])[] = [
  [`traceparent: 00-${TRACE.toUpperCase()}-${PARENT}-01`],
  [`traceparent: 00-${TRACE}-${PARENT}-01`, `traceparent: 00-${TRACE}-${PARENT}-01`],
  [`traceparent: 00-${TRACE}-${PARENT}-01, 00-${TRACE}-${PARENT}-01`],
  [`traceparent: 00-${'0'.repeat(32)}-${PARENT}-01`],
  [`traceparent: ff-${TRACE}-${PARENT}-01`],
  ['traceparent: '],
  [`traceparent: ${'a'.repeat(4000)}`],
  ['tracestate: orphan=1'],
]

test('without tracing, traceparent and tracestate pass unchanged, valid or not', async () => {
  const lines = [`TraceParent: 00-${TRACE}-${PARENT}-01`, 'tracestate: a=1', 'tracestate: b=2']
  for (const sent of [lines, ...HOSTILE]) {
    const head = await headOf(off, '/echo/x', ...sent)
    for (const line of sent) assert.ok(head.includes(`${line}\r\n`), `${line} in ${head}`)
    assert.equal(head.match(/traceparent:/gi)?.length ?? 0, sent.filter(line => /^traceparent/i.test(line)).length)
  }
  assert.deepEqual(off.records, [])
})

test('a trace is continued with an id of the gateway and the flags of the client', async () => {
  for (const flags of ['00', '01', '02', '03']) {
    const head = await headOf(all, '/echo/x', `Traceparent: 00-${TRACE}-${PARENT}-${flags} `, 'Tracestate: a=1,b=2')
    const [trace, span, sent] = sentIn(head)
    assert.deepEqual([trace, sent], [TRACE, flags])
    assert.notEqual(span, PARENT)
    assert.ok(head.includes('\r\ntracestate: a=1,b=2\r\n'), head)
  }
})

test('several fields of tracestate become one, and one beyond the limits is cut between members', async () => {
  const parent = `traceparent: 00-${TRACE}-${PARENT}-01`
  assert.match(await headOf(all, '/echo/x', parent, 'tracestate: a=1', 'tracestate: b=2'), /tracestate: a=1, b=2\r\n/)
  const long = await headOf(all, '/echo/x', parent, `tracestate: a=1,${'b'.repeat(600)}=2,c=3`)
  assert.match(long, /\r\ntracestate: a=1,c=3\r\n/)
})

test('a hostile traceparent begins a new trace, and leaves no trace of itself', async () => {
  for (const lines of HOSTILE) {
    const head = await headOf(all, '/echo/x', ...lines)
    const [trace, , flags] = sentIn(head)
    assert.notEqual(trace, TRACE, head)
    assert.equal(flags, '03')
    assert.doesNotMatch(head, /tracestate|orphan|aaaaaaaa|ABCDEF/)
  }
})

test('requests of one connection have traces of their own', async () => {
  const client = await connectPeer(all.gateway.port)
  backend.skip()
  const peers: Peer[] = []
  const seen: string[] = []
  const parents = [[], [`traceparent: 00-${TRACE}-${PARENT}-01`, 'tracestate: a=1'], [], [], ['X-Other: 1']]
  for (const lines of parents) {
    const head = await headAt(client, '/echo/x', lines, peers)
    seen.push(sentIn(head)[0])
    assert.equal(head.includes('tracestate'), lines.length === 2)
  }
  assert.equal(new Set(seen).size, 5)
  assert.equal(seen[1], TRACE)
  for (const peer of [client, ...peers]) peer.destroy()
})

test('the ratio decides where there is no parent, and everywhere without parent_based', async () => {
  assert.equal(sentIn(await headOf(none, '/echo/x'))[2], '02')
  assert.equal(sentIn(await headOf(none, '/echo/x', `traceparent: 00-${TRACE}-${PARENT}-01`))[2], '01')
  await eventually('the record', () => none.records.length > 0)
  const [record] = none.records.splice(0)
  assert.deepEqual([none.records.length, record?.traceId, record?.parentId], [0, TRACE, PARENT])
  const deaf = await start({ ratio: 0, parentBased: false })
  assert.equal(sentIn(await headOf(deaf, '/echo/x', `traceparent: 00-${TRACE}-${PARENT}-01`))[2], '00')
  const eager = await start({ ratio: 1, parentBased: false })
  assert.equal(sentIn(await headOf(eager, '/echo/x', `traceparent: 00-${TRACE}-${PARENT}-00`))[2], '01')
})

test('a flow that sets traceparent itself has the last word; other flows keep that of the gateway', async () => {
  const own = await headOf(all, '/own/x', `traceparent: 00-${TRACE}-${PARENT}-01`)
  assert.match(own, /\r\ntraceparent: of-the-flow\r\n/)
  assert.equal(own.match(/traceparent:/g)!.length, 1)
  const head = await headOf(all, '/flow/x', `traceparent: 00-${TRACE}-${PARENT}-01`)
  assert.match(head, /X-Set: by-flow/)
  assert.equal(sentIn(head)[0], TRACE)
})

test('a retry on a fresh connection and a fail-over carry the same trace', async () => {
  backend.skip()
  const client = await connectPeer(all.gateway.port)
  const peers: Peer[] = []
  await headAt(client, '/echo/x', [], peers)
  // The backend closes behind the next request, which is sent once more.
  client.send(`GET /echo/again HTTP/1.1\r\n${fields(`traceparent: 00-${TRACE}-${PARENT}-01`)}\r\n`)
  await peers[0]!.untilText('/again')
  const first = sentIn(peers[0]!.take())
  peers[0]!.reset()
  const fresh = await backend.next()
  await fresh.untilText('\r\n\r\n')
  assert.deepEqual(sentIn(fresh.take()), first)
  fresh.send(OK)
  await client.untilText('ok')
  client.destroy()
  fresh.destroy()
  const head = await headOf(all, '/group/x', `traceparent: 00-${TRACE}-${PARENT}-01`)
  assert.equal(sentIn(head)[0], TRACE)
  const record = await lastRecord(all, '/group/x')
  assert.equal(record.backendUrl, `http://127.0.0.1:${backend.port}/base/x`)
  assert.equal(record.backendId, sentIn(head)[1])
})

test('a WebSocket carries its trace, and its span ends with the tunnel', async () => {
  backend.skip()
  const client = await connectPeer(all.gateway.port)
  client.send(upgradeRequest('websocket', `traceparent: 00-${TRACE}-${PARENT}-01`))
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  const [trace, span] = sentIn(peer.take())
  assert.equal(trace, TRACE)
  peer.send(switchingProtocols())
  await takeHead(client)
  all.records.length = 0
  client.send(frame('hello', { masked: true } as never))
  await peer.until('a frame', ({ text }) => text.length > 0)
  assert.equal(all.records.length, 0)
  client.destroy()
  peer.destroy()
  const record = await lastRecord(all, '/echo/x')
  assert.deepEqual([record.status, record.backendId], [101, span])
  assert.ok(spansOf(record).every(({ isError }) => !isError))
})

/** The record of the last exchange with that path. */
async function lastRecord({ records }: Traced, path: string): Promise<ExchangeRecord> {
  await eventually('the record', () => records.some(record => record.path === path))
  return records.findLast(record => record.path === path)!
}

test('a sampled exchange has spans for its phases within its own time, without secrets', async () => {
  all.records.length = 0
  await headOf(all, '/flow/it?access_token=s3cret&a=1', `traceparent: 00-${TRACE}-${PARENT}-01`, 'tracestate: a=1')
  const record = await lastRecord(all, '/flow/it')
  const spans = spansOf(record)
  assert.doesNotMatch(JSON.stringify(spans), /s3cret/)
  const [server] = spans
  const names = spans.map(({ name }) => name)
  assert.deepEqual(names, ['GET /flow/*', 'route', 'throttling', 'mediation', 'GET', 'connect'])
  assert.equal(new Set(spans.map(({ id }) => id)).size, spans.length)
  for (const span of spans) {
    assert.ok(server!.startMs <= span.startMs && span.endMs <= server!.endMs, `${span.name}: ${JSON.stringify(record)}`)
    assert.ok(span.startMs <= span.endMs && Math.abs(span.startMs - Date.now()) < 60_000)
    assert.deepEqual([span.traceId, span.isError, span.state], [TRACE, false, 'a=1'])
  }
  const [client, connect] = spans.slice(-2)
  assert.deepEqual([server!.parentId, server!.hasRemoteParent, server!.kind], [PARENT, true, 'server'])
  assert.deepEqual([client!.parentId, client!.kind, connect!.parentId], [server!.id, 'client', client!.id])
  const { 'sluice.correlation_id': id, ...attributes } = server!.attributes
  assert.ok(String(id).length > 0)
  assert.deepEqual(attributes, {
    'http.request.method': 'GET',
    'url.scheme': 'http',
    'url.path': '/flow/it',
    'url.query': 'access_token=***&a=1',
    'http.route': '/flow/*',
    'http.response.status_code': 200,
    'client.address': '127.0.0.1',
    'server.address': 'gw',
    'server.port': 80,
    'network.protocol.version': '1.1',
    'sluice.api.name': 'flow',
    'sluice.api.version': '1.0.0',
    'sluice.key_type': 'PRODUCTION',
  })
  assert.deepEqual(client!.attributes, {
    'http.request.method': 'GET',
    'url.full': `http://127.0.0.1:${backend.port}/it?access_token=***&a=1`,
    'server.address': '127.0.0.1',
    'server.port': backend.port,
    'network.protocol.version': '1.1',
    'http.response.status_code': 200,
  })
})

async function respondsTo(gateway: TestGateway, target: string): Promise<string> {
  const client = await connectPeer(gateway.port)
  client.send(`GET ${target} HTTP/1.1\r\n${fields()}\r\n`)
  await client.untilText('\r\n\r\n')
  const [status] = client.take().split('\r\n')
  client.destroy()
  return status!
}

test('faults are recorded although nothing is sampled, up to their limit, with the code of the fault', async () => {
  const faults = await start({ ratio: 0, faultsPerSecond: 2 })
  for (const target of ['/down/x', '/nowhere', '/down/x', '/down/x']) {
    assert.match(await respondsTo(faults.gateway, target), /^HTTP\/1.1 (404|50\d)/)
  }
  await headOf(faults, '/echo/x')
  await eventually('the records', () => faults.records.length === 2)
  const [down, nowhere] = faults.records.map(record => spansOf(record))
  assert.deepEqual(
    down!.map(({ name, isError }) => [name, isError]),
    [
      ['GET /down/*', true],
      ['GET', true],
      ['connect', true],
    ],
  )
  assert.equal(down![0]!.attributes['error.type'], '101503')
  assert.deepEqual([nowhere!.length, nowhere![0]!.name, nowhere![0]!.isError], [1, 'GET', false])
  assert.equal(nowhere![0]!.attributes['error.type'], '404')
})

test('a request whose head is refused has a span where its trace is known, and costs nothing else', async () => {
  const client = await connectPeer(all.gateway.port)
  all.records.length = 0
  client.send(`GET /echo/x HTTP/1.1\r\nHost: a\r\nHost: b\r\ntraceparent: 00-${TRACE}-${PARENT}-01\r\n\r\n`)
  await client.untilEnd()
  assert.match(client.take(), /^HTTP\/1.1 400/)
  await eventually('the record', () => all.records.length === 1)
  assert.deepEqual([all.records[0]!.traceId, all.records[0]!.status], [TRACE, 400])
})

test('a walk names the trace of its exchange', async () => {
  const notes: string[] = []
  const note = (_exchange: object, what: string, detail: string) => void notes.push(`${what}: ${detail}`)
  setTracer({ collects: NOTHING_COLLECTED, note, transition: () => {}, assign: () => {} })
  try {
    await headOf(all, '/echo/x', `traceparent: 00-${TRACE}-${PARENT}-01`)
  } finally {
    setTracer(null)
  }
  assert.ok(notes.includes(`trace: ${TRACE}, sampled`), notes.join('\n'))
})

test('records that the control thread does not take are counted', async () => {
  const refused = await start({}, false)
  await headOf(refused, '/echo/x')
  await eventually('the count', () => refused.dropped.length === 1)
  assert.deepEqual(refused.dropped, [1])
})
