/** What a throttled client reads: times, fields, formats; and anonymous callers by address. */
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { Diagnostics } from '../../src/config/diagnostics.ts'
import { parseSequence } from '../../src/mediation/sequence-parser.ts'
import { DEFAULT_FAULTS } from '../harness/default-sequences.ts'
import { OPEN_CORS } from '../harness/filter-chain.ts'
import { connectPeer } from '../harness/peers.ts'
import {
  advanced,
  application,
  custom,
  denial,
  MIDNIGHT,
  openApi,
  quota,
  securedApi,
  subscription,
  ThrottledGateway,
} from '../harness/throttled-gateway.ts'

const MINUTE = 60_000
const TRUSTED = { http: { trusted_proxies: ['127.0.0.1'] } }
const apisOf = (port: number) => [
  securedApi(port, 'plain'),
  openApi(port, 'open', { tier: 'Tier' }),
  openApi(port, 'page', { tier: 'Tier', cors: OPEN_CORS }),
  openApi(port, 'each', { tier: 'PerUser' }),
  openApi(port, 'free'),
]
const running = await ThrottledGateway.start(apisOf)
const telling = await ThrottledGateway.start(apisOf, { rateLimitHeaders: true })
const anonymous = await ThrottledGateway.start(apisOf, { unauthenticatedTier: 'Visitors' }, TRUSTED)

let minutes = 0

beforeEach(() => {
  const ms = MIDNIGHT + ++minutes * 60 * MINUTE
  for (const { clock } of [running, telling, anonymous]) clock.ms = ms
})

const from = (address: string) => `X-Forwarded-For: ${address}\r\n`

test('a refusal names when the window ends: in Retry-After, in RateLimit, and in the body', async () => {
  running.apply([application('Small', quota(1))])
  running.token('late', { application: 'Small' }, 'plain')
  await running.request('/plain/x', 'late')
  for (const [passedMs, seconds] of [
    [12_300, '48'],
    [59_000, '1'],
    [59_999, '1'],
  ] as const) {
    running.clock.ms = MIDNIGHT + minutes * 60 * MINUTE + passedMs
    const { code, body, fields } = await running.request('/plain/x', 'late')
    assert.equal(code, 900803)
    assert.deepEqual(fields.get('retry-after'), [seconds])
    assert.deepEqual(fields.get('ratelimit-policy'), ['"Small";q=1;w=60'])
    assert.deepEqual(fields.get('ratelimit'), [`"Small";r=0;t=${seconds}`])
    const hour = String(minutes).padStart(2, '0')
    assert.equal(JSON.parse(body).fault.nextAccessTime, `2026-Nov-22 ${hour}:01:00+0000 UTC`)
  }
})

const FORMATS = [
  ['Accept: application/xml\r\n', 'application/xml', '<fault><code>900800</code>', '</nextAccessTime></fault>'],
  ['SOAPAction: "urn:a"\r\n', 'text/xml', '<faultcode>soapenv:Client</faultcode>', '<nextAccessTime>2026-Nov-22 '],
  ['Content-Type: application/soap+xml\r\n', 'application/soap+xml', 'soapenv:Sender', '<nextAccessTime>2026-Nov-22 '],
] as const

for (const [fields, type, ...parts] of FORMATS) {
  test(`a client that asks for ${type} gets its fault in it, and no other client does`, async () => {
    running.apply([advanced('Tier', quota(1))])
    await running.codes(3, '/open/x')
    const refused = await running.request('/open/x', '', fields)
    assert.deepEqual(refused.fields.get('content-type'), [`${type}; charset=UTF-8`])
    for (const part of parts) assert.ok(refused.body.includes(part), refused.body)
    assert.equal((await running.request('/open/x')).code, 900800)
  })
}

test('refusals of the same second are the same to the byte, but for their correlation id', async () => {
  running.apply([advanced('Tier', quota(1))])
  await running.request('/open/x')
  const [one, other] = [await running.request('/open/x'), await running.request('/open/y?z=1')]
  assert.equal(one.body, other.body)
  for (const [name, values] of one.fields) {
    if (name === 'activityid' || name === 'date') continue
    assert.deepEqual(other.fields.get(name), values, name)
  }
  assert.notDeepEqual(one.fields.get('activityid'), other.fields.get('activityid'))
})

test('pipelined requests are refused in order, and those behind them pass', async () => {
  running.apply([advanced('Tier', quota(1))])
  await running.codes(2, '/open/x')
  const client = await connectPeer(running.gateway.port)
  const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
  const refused = [request('/open/1'), request('/open/2')].join('')
  const statuses = () => [...client.text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)
  // In one read, in two whose second one ends within a head, and with a response of the backend in between.
  const free = request('/free/x')
  client.send(refused + free + refused)
  await client.until('five responses', () => statuses().length === 5)
  assert.deepEqual(statuses(), ['429', '429', '200', '429', '429'])
  client.send(refused + free.slice(0, 9))
  await client.until('two more', () => statuses().length === 7)
  client.send(free.slice(9) + refused)
  await client.until('all', () => statuses().length === 10)
  assert.deepEqual(statuses().slice(5), ['429', '429', '200', '429', '429'])
  client.send(request('/open/3').replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
  assert.equal(await client.untilEnd(), 'FIN')
  assert.equal(statuses().at(-1), '429')
})

test('the kept response of one origin is not that of another', async () => {
  const named = { ...OPEN_CORS, origins: ['https://a.test', 'https://b.test'] }
  const own = await ThrottledGateway.start(port => [openApi(port, 'page', { tier: 'Tier', cors: named })])
  own.apply([advanced('Tier', quota(1))])
  await own.request('/page/x')
  for (const origin of ['https://a.test', 'https://b.test', 'https://a.test']) {
    const { code, fields } = await own.request('/page/x', '', `Origin: ${origin}\r\n`)
    assert.deepEqual([code, fields.get('access-control-allow-origin')], [900800, [origin]])
  }
  assert.equal((await own.request('/page/x')).fields.get('access-control-allow-origin'), undefined)
})

const READS_REQUEST = `<sequence xmlns="http://ws.apache.org/ns/synapse" name="_throttle_out_handler_">
  <payloadFactory media-type="json">
    <format>{"fault":{"code":$1,"path":"$2"}}</format>
    <args><arg expression="$ctx:ERROR_CODE"/><arg expression="$ctx:REST_SUB_REQUEST_PATH"/></args>
  </payloadFactory>
  <respond/>
</sequence>`

test('an edited _throttle_out_handler_ words refusals with what it reads; a reload replaces it', async () => {
  const findings = new Diagnostics()
  const edited = await parseSequence('_throttle_out_handler_', 'edited.xml', READS_REQUEST, findings)
  const others = DEFAULT_FAULTS.sequences.filter(({ name }) => name !== '_throttle_out_handler_')
  running.apply([advanced('Tier', quota(1))])
  await running.codes(2, '/open/x')
  await running.gateway.deploy({ faults: { ...DEFAULT_FAULTS, sequences: [...others, edited!] } })
  for (const path of ['/one', '/two']) {
    assert.equal((await running.request(`/open${path}`)).body, `{"fault":{"code":900800,"path":"${path}"}}`)
  }
  await running.gateway.deploy({ faults: DEFAULT_FAULTS })
  assert.equal(JSON.parse((await running.request('/open/x')).body).fault.message, 'Message throttled out')
})

test('with rate_limit_headers passes tell every limit in order, and refusals the one that refuses', async () => {
  telling.apply([
    subscription('Cop"per', quota(5), { burst: quota(4, { unit: 'sec' }) }),
    application('Small', quota(2)),
  ])
  telling.token('told', { application: 'Small', subscription: 'Cop"per' }, 'plain')
  const { fields } = await telling.request('/plain/x', 'told')
  assert.deepEqual(fields.get('ratelimit-policy'), ['"Cop\\"per";q=5;w=60, "Cop\\"per";q=4;w=1, "Small";q=2;w=60'])
  assert.deepEqual(fields.get('ratelimit'), ['"Cop\\"per";r=4;t=60, "Cop\\"per";r=3;t=1, "Small";r=1;t=60'])
  await telling.request('/plain/x', 'told')
  const refused = await telling.request('/plain/x', 'told')
  assert.deepEqual([refused.code, refused.fields.get('ratelimit')], [900803, ['"Small";r=0;t=60']])
  assert.equal((await telling.request('/free/x')).fields.get('ratelimit'), undefined)
})

test('without rate_limit_headers passes tell no limit', async () => {
  running.apply([advanced('Tier', quota(5))])
  const { fields } = await running.request('/open/x')
  assert.deepEqual([fields.get('ratelimit'), fields.get('ratelimit-policy')], [undefined, undefined])
})

test('callers without credentials count by address, under the tier of unauthenticated_tier, at each API', async () => {
  anonymous.apply([subscription('Visitors', quota(2)), advanced('Tier', null)])
  assert.deepEqual(await anonymous.codes(3, '/free/x', '', from('192.0.2.1')), [0, 0, 900804])
  assert.deepEqual(await anonymous.codes(3, '/free/x', '', from('192.0.2.2')), [0, 0, 900804])
  assert.deepEqual(await anonymous.codes(3, '/open/x', '', from('192.0.2.1')), [0, 0, 900804])
})

test('a caller without credentials that calls two APIs in turn meets the limits of each', async () => {
  anonymous.apply([subscription('Visitors', null), advanced('Tier', quota(3))])
  const codes: number[] = []
  for (const api of ['free', 'open', 'free', 'open', 'free', 'open', 'free', 'open']) {
    codes.push((await anonymous.request(`/${api}/x`, '', from('192.0.2.7'))).code)
  }
  assert.deepEqual(codes, [0, 0, 0, 0, 0, 0, 0, 900800])
})

test('addresses of one IPv6 network of 64 bits count together, because one client may have all of them', async () => {
  anonymous.apply([subscription('Visitors', quota(2)), advanced('Tier', null)])
  const addresses = ['2001:db8:0:1::1', '2001:db8:0:1:2:3:4:5', '2001:db8:0:1::ffff', '2001:db8:0:2::1']
  const codes: number[] = []
  for (const address of addresses) codes.push((await anonymous.request('/free/x', '', from(address))).code)
  assert.deepEqual(codes, [0, 0, 900804, 0])
})

test('$clientIp of a custom policy is the network of 64 bits of an IPv6 address', async () => {
  anonymous.apply([subscription('Visitors', null), custom('ByAddress', '$clientIp', quota(2))])
  const addresses = ['2001:db8:0:1::1', '2001:db8:0:1:2:3:4:5', '2001:db8:0:1::ffff', '2001:db8:0:2::1', '192.0.2.1']
  const codes: number[] = []
  for (const address of addresses) codes.push((await anonymous.request('/free/x', '', from(address))).code)
  assert.deepEqual(codes, [0, 0, 900806, 0, 0])
})

test('custom policies whose names and templates join to the same text count apart', async () => {
  const policies = [custom('a', 'b:$userId', quota(2)), custom('a:b', '$userId', quota(2))]
  anonymous.apply([subscription('Visitors', null), ...policies])
  assert.deepEqual(await anonymous.codes(3, '/free/x'), [0, 0, 900806])
})

test('the last element of X-Forwarded-For counts, so that a client cannot name another address', async () => {
  anonymous.apply([subscription('Visitors', quota(1)), advanced('Tier', null)])
  assert.deepEqual(await anonymous.codes(1, '/free/x', '', from('198.51.100.1, 192.0.2.3')), [0])
  assert.deepEqual(await anonymous.codes(1, '/free/x', '', from('198.51.100.2, 192.0.2.3')), [900804])
})

test('forwarding fields of an untrusted peer do not give it another count', async () => {
  running.apply([advanced('PerUser', quota(1), { userLevel: 'PER_USER' })])
  assert.deepEqual(await running.codes(1, '/each/x', '', from('192.0.2.1')), [0])
  assert.deepEqual(await running.codes(1, '/each/x', '', from('192.0.2.2')), [900800])
})

test('a policy of the user level counts callers without credentials by address', async () => {
  anonymous.apply([subscription('Visitors', null), advanced('PerUser', quota(1), { userLevel: 'PER_USER' })])
  assert.deepEqual(await anonymous.codes(2, '/each/x', '', from('192.0.2.1')), [0, 900800])
  assert.deepEqual(await anonymous.codes(2, '/each/x', '', from('192.0.2.2')), [0, 900800])
})

test('with the defaults callers without credentials have no limit', async () => {
  running.apply([])
  assert.deepEqual(new Set(await running.codes(20, '/free/x')), new Set([0]))
})

test('900805 has no time and no quota', async () => {
  running.apply([], [denial('API', '/free')])
  const { body, fields } = await running.request('/free/x')
  assert.equal(
    body,
    '{"fault":{"code":900805,"type":"Status report","message":"Message blocked","description":"You have been blocked from accessing the resource"}}',
  )
  for (const name of ['retry-after', 'ratelimit', 'ratelimit-policy']) assert.equal(fields.get(name), undefined)
})
