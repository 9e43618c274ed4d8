/** Events of analytics: what an exchange through the gateway says, whatever the client sends. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type AnalyticsBatch, AnalyticsEvents, type AnalyticsSettings } from '../../src/observe/analytics-events.ts'
import { TraceRecords } from '../../src/observe/trace-records.ts'
import { type GatewayOptions, startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, refusingPort, ScriptedBackend } from '../harness/peers.ts'

const backend = await ScriptedBackend.listen(async peer => {
  await peer.untilRequest()
  peer.send('HTTP/1.1 201 Created\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok')
})
const refusing = await refusingPort()
const gateways: TestGateway[] = []
after(async () => {
  for (const gateway of gateways) await gateway.stop()
  backend.close()
  refusing.close()
})

interface Collected {
  readonly gateway: TestGateway
  readonly batches: AnalyticsBatch[]
  readonly dropped: number[]
}

async function start(
  settings: Partial<AnalyticsSettings> = {},
  takes = true,
  options: GatewayOptions = {},
): Promise<Collected> {
  const batches: AnalyticsBatch[] = []
  const dropped: number[] = []
  const analyticsEvents = new AnalyticsEvents({
    ...{ hasSizes: false, address: 'network', wallOffsetMs: () => Date.now() - performance.now(), ...settings },
    publish: batch => {
      batches.push(batch)
      return takes ? Promise.resolve(true) : Promise.reject(new Error('ended'))
    },
    onDropped: events => void dropped.push(events),
  })
  const apis = [
    { context: '/a', port: backend.port },
    { context: '/b', port: refusing.port },
  ]
  const gateway = await startGateway(apis, { analyticsEvents, ...options })
  gateways.push(gateway)
  return { gateway, batches, dropped }
}

/** The event of one request. */
async function eventOf({ gateway, batches }: Collected, head: string, body = ''): Promise<Record<string, unknown>> {
  const before = batches.length
  const client = await connectPeer(gateway.port)
  client.send(`${head}\r\nHost: gw\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  await client.untilText('\r\n\r\n')
  await eventually('the event', () => batches.length > before)
  client.destroy()
  const { lines, events } = batches.at(-1)!
  assert.equal(events, 1)
  return JSON.parse(lines) as Record<string, unknown>
}

test('an event names API, resource, caller, times and status, and no query', async () => {
  const collected = await start({ hasSizes: true })
  const event = await eventOf(collected, 'POST /a/items?api_key=s3cret HTTP/1.1\r\nUser-Agent: u"\\', 'body')
  const { time, total_ms, backend_ms, request_read_ms, correlation_id, ...rest } = event
  assert.match(String(time), /^20\d\d-\d\d-\d\dT[\d:.]+Z$/)
  assert.ok(String(correlation_id).length > 0)
  for (const ms of [total_ms, backend_ms, request_read_ms]) {
    assert.ok(typeof ms === 'number' && ms >= 0, JSON.stringify(event))
  }
  assert.deepEqual(rest, {
    ...{
      trace_id: null,
      api: 'a',
      api_version: '1.0.0',
      resource: '/*',
      method: 'POST',
      path: '/a/items',
      status: 201,
    },
    ...{ error_code: 0, error_type: null, key_type: 'PRODUCTION', application_id: null, application: null },
    ...{ application_owner: null, user: null, client_address: '127.0.0.0', user_agent: 'u"\\' },
    ...{ backend: `127.0.0.1:${backend.port}`, request_bytes: 4, response_bytes: 2 },
  })
})

test('an event of a traced request has the id of its trace', async () => {
  const traceRecords = new TraceRecords({
    ...{ ratio: 0, parentBased: true, faultsPerSecond: 0, wallOffsetMs: () => 0 },
    publish: () => Promise.resolve(),
    onDropped: () => assert.fail(),
  })
  const collected = await start({}, true, { traceRecords })
  const trace = '0af7651916cd43dd8448eb211c80319c'
  const { trace_id } = await eventOf(collected, `GET /a/x HTTP/1.1\r\ntraceparent: 00-${trace}-b7ad6b7169203331-00`)
  assert.equal(trace_id, trace)
  assert.match(String((await eventOf(collected, 'GET /a/x HTTP/1.1')).trace_id), /^[\da-f]{32}$/)
})

test('failures have their code and kind', async () => {
  const collected = await start({ address: 'full' })
  const refused = await eventOf(collected, 'GET /b/x HTTP/1.1')
  assert.deepEqual([refused.status, refused.error_code, refused.error_type], [502, 101503, 'TARGET_CONNECTIVITY'])
  assert.equal(refused.client_address, '127.0.0.1')
  const unknown = await eventOf(collected, 'GET /none HTTP/1.1')
  assert.deepEqual([unknown.status, unknown.error_code, unknown.error_type, unknown.api], [404, 404, 'OTHER', null])
})

test('events that nobody takes are counted', async () => {
  const collected = await start({ address: 'none' }, false)
  const event = await eventOf(collected, 'GET /a/x HTTP/1.1')
  assert.equal(event.client_address, null)
  assert.equal('request_bytes' in event, false)
  assert.deepEqual(collected.dropped, [1])
})
