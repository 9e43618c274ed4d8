/**
 * TLS hosts with different client certificate requirements. SNI selects the requirements of a connection, so a request
 * for a host with other requirements is misdirected (RFC 9110 7.4, 15.5.20).
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { ConnectionOptions } from 'node:tls'
import type { TlsServerPlan } from '../../src/socket/tls.ts'
import { StrictBackend } from '../harness/strict-backend.ts'
import { takeResponse } from '../harness/responses.ts'
import { CA, CLIENT, INTERMEDIATE, OTHER_CA, OTHER_CLIENT, SERVER, VIRTUAL } from '../harness/certificates.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually } from '../harness/peers.ts'
import { connectSecured, type SecuredPeer, serverPlan } from '../harness/secured-peers.ts'

type Host = TlsServerPlan['hosts'][number]

const backend = await StrictBackend.listen(({ start }) => (start.includes('/ws') ? SWITCH : OK))
const gateways: TestGateway[] = []
after(() => {
  for (const gateway of gateways) gateway.stop()
  backend.close()
})

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'
/** /t is served on every host, /own on own.test only. */
const APIS = [
  { context: '/t', port: backend.port },
  { context: '/own', port: backend.port, overrides: { hosts: ['own.test'] } },
] as const
const BOTH_CAS = [CA.cert, OTHER_CA.cert]
const HOSTS: readonly Host[] = [
  host('require', [CA.cert], 'own.test', '*.own.test'),
  host('require', [CA.cert], 'twin.test'),
  host('optional', [CA.cert], 'may.test'),
  host('require', [OTHER_CA.cert], 'other.test'),
  host('require', BOTH_CAS, 'two.test'),
  host('require', [...BOTH_CAS].reverse(), 'reversed.test'),
  host('none', [], 'open.test'),
]

function host(verifyClient: Host['verifyClient'], ca: readonly string[], ...names: string[]): Host {
  return { identity: VIRTUAL, verifyClient, ca, names }
}

async function gatewayWith(hosts: readonly Host[] = HOSTS, kind: 'https' | 'wss' = 'https'): Promise<TestGateway> {
  const gateway = await startGateway(APIS, { accessLog: 'json', kinds: [kind], tlsServer: serverPlan({ hosts }) })
  gateways.push(gateway)
  return gateway
}

/** `sni`: '' for none. */
async function connected(gateway: TestGateway, sni: string, options: ConnectionOptions = {}): Promise<SecuredPeer> {
  return connectSecured(gateway.port, { servername: sni, checkServerIdentity: () => undefined, ...options })
}

async function statusOf({ peer }: SecuredPeer, request: string): Promise<number> {
  peer.send(request)
  return (await takeResponse(peer)).status
}

function get(authority: string, target = '/t/it'): string {
  return `GET ${target} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`
}

// ---- one request ---------------------------------------------------------------------------------------------------

/** No client certificate. */
const ANONYMOUS = {}
type Case = readonly [what: string, sni: string, shown: ConnectionOptions, request: string, status: number]
const CASES: readonly Case[] = [
  ['a request for the name in SNI', 'own.test', CLIENT, get('own.test', '/own/it'), 200],
  ['a request for the name in SNI with a port and in another case', 'own.test', CLIENT, get('OWN.Test.:8243'), 200],
  ['a request for another name of the same host', 'own.test', CLIENT, get('a.own.test'), 200],
  ['a request for a host with the same requirements', 'own.test', CLIENT, get('twin.test'), 200],
  ['a request for a host with the same authorities in another order', 'two.test', CLIENT, get('reversed.test'), 200],
  ['a request without a certificate for a host that requires none', 'open.test', ANONYMOUS, get('main.test'), 200],
  [
    'a request without a certificate for a host that requires one',
    'main.test',
    ANONYMOUS,
    get('own.test', '/own/it'),
    421,
  ],
  [
    'a request without a certificate for a wildcard host that requires one',
    'main.test',
    ANONYMOUS,
    get('a.own.test'),
    421,
  ],
  [
    'a request without a certificate for a host with a port that requires one',
    'main.test',
    ANONYMOUS,
    get('own.test:8243', '/own/it'),
    421,
  ],
  [
    'a request without a certificate for a host in another case that requires one',
    'main.test',
    ANONYMOUS,
    get('OWN.Test', '/own/it'),
    421,
  ],
  [
    'a request without a certificate for a host with a trailing dot that requires one',
    'main.test',
    ANONYMOUS,
    get('own.test.', '/own/it'),
    421,
  ],
  [
    'a request without a certificate for an API of all hosts on a host that requires one',
    'main.test',
    ANONYMOUS,
    get('own.test'),
    421,
  ],
  [
    'a request without a certificate for no API on a host that requires one',
    'main.test',
    ANONYMOUS,
    get('own.test', '/nowhere'),
    421,
  ],
  ['a request without a certificate for a host with an optional one', 'main.test', ANONYMOUS, get('may.test'), 421],
  [
    'a request with an omitted optional certificate for a host that requires one',
    'may.test',
    ANONYMOUS,
    get('own.test'),
    421,
  ],
  ['a request with an optional certificate for a host that requires one', 'may.test', CLIENT, get('own.test'), 421],
  ['a request with a required certificate for a host with an optional one', 'own.test', CLIENT, get('may.test'), 421],
  ['a request with a required certificate for a host that requires none', 'own.test', CLIENT, get('main.test'), 421],
  ['a request for a host with another trust store', 'other.test', OTHER_CLIENT, get('own.test', '/own/it'), 421],
  ['a request for a host with a larger trust store', 'own.test', CLIENT, get('two.test'), 421],
  ['a request without SNI for a host with the default requirements', '', ANONYMOUS, get('main.test'), 200],
  ['a request without SNI for a host that requires a certificate', '', ANONYMOUS, get('own.test', '/own/it'), 421],
  [
    'an absolute-form target with the name in SNI and another Host',
    'own.test',
    CLIENT,
    get('main.test', 'https://own.test/own/it'),
    200,
  ],
  [
    'an absolute-form target with a host that requires a certificate',
    'main.test',
    ANONYMOUS,
    get('main.test', 'https://own.test/own/it'),
    421,
  ],
  [
    'an absolute-form target with the default requirements and another Host',
    'main.test',
    ANONYMOUS,
    get('own.test', 'https://main.test/t/it'),
    200,
  ],
  [
    'an HTTP/1.0 request without Host and without a certificate',
    'main.test',
    ANONYMOUS,
    'GET /t/it HTTP/1.0\r\n\r\n',
    200,
  ],
  [
    'an HTTP/1.0 request without Host and with a required certificate',
    'own.test',
    CLIENT,
    'GET /t/it HTTP/1.0\r\n\r\n',
    200,
  ],
  [
    'an HTTP/1.0 request for a host that requires a certificate',
    'main.test',
    ANONYMOUS,
    'GET /t/it HTTP/1.0\r\nHost: own.test\r\n\r\n',
    421,
  ],
  ['a request for an IPv4 address with default requirements', 'main.test', ANONYMOUS, get('127.0.0.1:8243'), 200],
  ['a request for an IPv4 address with a required certificate', 'own.test', CLIENT, get('127.0.0.1'), 421],
  ['a request for an IPv6 address with default requirements', 'main.test', ANONYMOUS, get('[::1]:8243'), 200],
  ['a request for an IPv6 address with a required certificate', 'own.test', CLIENT, get('[::1]'), 421],
  ['a request for an unknown host with default requirements', 'main.test', ANONYMOUS, get('unknown.test'), 200],
  ['a request for an unknown host with a required certificate', 'own.test', CLIENT, get('unknown.test'), 421],
  ['a request for a name two labels below a wildcard host', 'main.test', ANONYMOUS, get('a.b.own.test'), 200],
  [
    'an OPTIONS * request for a host that requires a certificate',
    'main.test',
    ANONYMOUS,
    'OPTIONS * HTTP/1.1\r\nHost: own.test\r\n\r\n',
    421,
  ],
  [
    'a request with X-Forwarded-Host of a host that requires a certificate',
    'main.test',
    ANONYMOUS,
    'GET /t/it HTTP/1.1\r\nHost: main.test\r\nX-Forwarded-Host: own.test\r\n\r\n',
    200,
  ],
]
const shared = await gatewayWith()
for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  for (const [what, sni, shown, request, status] of CASES) {
    test(`RFC 9110 7.4, ${version}: ${what} ${status === 200 ? 'is served' : 'gets 421'}`, async () => {
      const before = backend.requests.length
      const client = await connected(shared, sni, { ...shown, maxVersion: version })
      assert.equal(await statusOf(client, request), status)
      assert.equal(backend.requests.length - before, status === 200 ? 1 : 0)
      client.peer.destroy()
    })
  }
}

test('RFC 9110 15.5.20: the fault of a misdirected request names its cause, and the request is logged', async () => {
  const gateway = await gatewayWith()
  const { peer } = await connected(gateway, 'main.test')
  peer.send(get('own.test', '/own/it?secret=1'))
  const response = await takeResponse(peer)
  assert.deepEqual([response.status, response.reason], [421, 'Misdirected Request'])
  const { fault } = JSON.parse(response.body) as { fault: Record<string, unknown> }
  assert.equal(fault.code, 400)
  assert.match(String(fault.description), /RFC 9110 7\.4/)
  const line = gateway.reports.find(({ event }) => event === 'misdirected request')!
  assert.equal(line.level, 'warn')
  assert.equal(line.fields.CLIENT_ADDRESS, '127.0.0.1')
  await eventually('the access log entry', () => gateway.accessLines.length > 0)
  assert.match(gateway.accessLines[0]!, /421/)
  assert.equal(gateway.metrics().statuses.get(421), 1)
  peer.destroy()
})

// ---- one connection ------------------------------------------------------------------------------------------------

test('RFC 9110 15.5.20: a 421 leaves the connection open, and each request is checked by itself', async () => {
  const client = await connected(shared, 'main.test')
  const requests: readonly (readonly [string, number])[] = [
    ['main.test', 200],
    ['own.test', 421],
    ['own.test', 421],
    ['main.test', 200],
    ['open.test', 200],
    ['OWN.test', 421],
  ]
  for (const [authority, status] of requests) assert.equal(await statusOf(client, get(authority)), status, authority)
  client.peer.send(requests.map(([authority]) => get(authority)).join(''))
  for (const [authority, status] of requests) assert.equal((await takeResponse(client.peer)).status, status, authority)
  client.peer.destroy()
})

const BODY_FIELDS = 'Host: own.test\r\nContent-Length: 5\r\n'
test('RFC 9112 9.6: the body of a misdirected request is not taken for the next request', async () => {
  const client = await connected(shared, 'main.test')
  const complete = `POST /own/it HTTP/1.1\r\n${BODY_FIELDS}\r\nhello${get('main.test')}`
  assert.equal(await statusOf(client, complete), 421)
  await client.peer.until('the end or a response', () => client.peer.ending !== '' || client.peer.length > 0)
  if (client.peer.length > 0) assert.equal((await takeResponse(client.peer)).status, 200)
  client.peer.destroy()
  const waiting = await connected(shared, 'main.test')
  assert.equal(await statusOf(waiting, `POST /own/it HTTP/1.1\r\n${BODY_FIELDS}Expect: 100-continue\r\n\r\n`), 421)
  waiting.peer.destroy()
})

for (const kind of ['https', 'wss'] as const) {
  test(`${kind}: a WebSocket handshake gets 421 for a host that requires a certificate, and 101 with it`, async () => {
    const gateway = await gatewayWith(HOSTS, kind)
    const upgrade = (authority: string, path: string) =>
      `GET ${path}/ws HTTP/1.1\r\nHost: ${authority}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
    const anonymous = await connected(gateway, 'main.test')
    assert.equal(await statusOf(anonymous, upgrade('own.test', '/own')), 421)
    const identified = await connected(gateway, 'own.test', CLIENT)
    assert.equal(await statusOf(identified, upgrade('own.test', '/own')), 101)
    for (const { peer } of [anonymous, identified]) peer.destroy()
  })
}

test('hosts with the same requirements share a connection', async () => {
  for (const hosts of [[], [host('none', [CA.cert], 'own.test'), host('none', [], 'open.test')]]) {
    const gateway = await gatewayWith(hosts)
    const client = await connected(gateway, 'main.test')
    assert.equal(await statusOf(client, get('own.test', '/own/it')), 200)
    assert.equal(await statusOf(client, get('open.test')), 200)
    client.peer.destroy()
  }
})

test('a plain connection has no misdirected requests', async () => {
  const plan = { kinds: ['http', 'https'], tlsServer: serverPlan({ hosts: HOSTS }) } as const
  const gateway = await startGateway(APIS, { ...plan })
  gateways.push(gateway)
  const peer = await connectPeer(gateway.ports[0]!)
  peer.send(get('own.test', '/own/it'))
  assert.equal((await takeResponse(peer)).status, 200)
  peer.destroy()
})

// ---- resumed sessions ----------------------------------------------------------------------------------------------

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  test(`${version}: a resumed session does not give access to a host with other requirements`, async () => {
    const sessionOf = async (sni: string, shown: ConnectionOptions): Promise<Buffer> => {
      const client = await connected(shared, sni, { ...shown, maxVersion: version })
      let session: Buffer | undefined
      client.tls.on('session', it => (session = it))
      assert.equal(await statusOf(client, get(sni)), 200)
      // In TLS 1.2 the session comes with the handshake.
      if (version === 'TLSv1.2') session = client.tls.getSession()
      await eventually('the session', () => session !== undefined)
      client.peer.destroy()
      return session!
    }
    const own = await sessionOf('own.test', CLIENT)
    const main = await sessionOf('main.test', ANONYMOUS)
    const offers: readonly (readonly [string, Buffer, ConnectionOptions, string, boolean, number])[] = [
      ['own.test', own, CLIENT, 'own.test', true, 200],
      ['own.test', own, CLIENT, 'main.test', true, 421],
      ['twin.test', own, CLIENT, 'own.test', false, 200],
      ['main.test', main, ANONYMOUS, 'own.test', true, 421],
      ['main.test', own, ANONYMOUS, 'own.test', false, 421],
      ['own.test', main, CLIENT, 'own.test', false, 200],
    ]
    for (const [sni, session, shown, authority, isReused, status] of offers) {
      const client = await connected(shared, sni, { ...shown, session, maxVersion: version })
      const what = `${sni}, then ${authority}`
      assert.equal(await statusOf(client, get(authority)), status, what)
      assert.equal(client.tls.isSessionReused(), isReused, what)
      client.peer.destroy()
    }
  })
}

// ---- reloads -------------------------------------------------------------------------------------------------------

interface Change {
  readonly what: string
  readonly before: Partial<TlsServerPlan>
  readonly sni: string
  readonly shown: ConnectionOptions
  readonly after: Partial<TlsServerPlan>
  /** Status by host, after the reload. */
  readonly statuses: Readonly<Record<string, number>>
}
const REQUIRING = [host('require', [CA.cert], 'own.test'), host('none', [], 'open.test')]
const NOT_REQUIRING = [host('none', [], 'own.test'), host('none', [], 'open.test')]
const ALL_REQUIRING = {
  verifyClient: 'require',
  ca: [CA.cert],
  hosts: [host('require', [CA.cert], 'own.test')],
} as const
const CHANGES: readonly Change[] = [
  {
    what: 'a host that becomes requiring refuses open connections of other hosts',
    before: { hosts: NOT_REQUIRING },
    sni: 'main.test',
    shown: ANONYMOUS,
    after: { hosts: REQUIRING },
    statuses: { 'own.test': 421, 'main.test': 200, 'open.test': 200 },
  },
  {
    what: 'a host that becomes requiring serves its own open connections as before',
    before: { hosts: NOT_REQUIRING },
    sni: 'own.test',
    shown: ANONYMOUS,
    after: { hosts: REQUIRING },
    statuses: { 'own.test': 200, 'main.test': 200, 'open.test': 200 },
  },
  {
    what: 'a new requiring host refuses open connections',
    before: { hosts: [] },
    sni: 'main.test',
    shown: ANONYMOUS,
    after: { hosts: REQUIRING },
    statuses: { 'own.test': 421, 'main.test': 200 },
  },
  {
    what: 'a connection without a certificate stays refused by a requiring host when all hosts become requiring',
    before: { hosts: REQUIRING },
    sni: 'main.test',
    shown: ANONYMOUS,
    after: ALL_REQUIRING,
    statuses: { 'own.test': 421, 'main.test': 200 },
  },
  {
    what: 'a connection is served by all hosts when no host is requiring any more',
    before: { hosts: REQUIRING },
    sni: 'main.test',
    shown: ANONYMOUS,
    after: { hosts: NOT_REQUIRING },
    statuses: { 'own.test': 200, 'main.test': 200 },
  },
  {
    what: 'an open connection keeps access when the trust store of all hosts changes',
    before: ALL_REQUIRING,
    sni: 'own.test',
    shown: CLIENT,
    after: { verifyClient: 'require', ca: BOTH_CAS, hosts: [host('require', BOTH_CAS, 'own.test')] },
    statuses: { 'own.test': 200, 'main.test': 200 },
  },
  {
    what: 'an open connection of another host is refused when the trust store of one host changes',
    before: ALL_REQUIRING,
    sni: 'main.test',
    shown: CLIENT,
    after: { verifyClient: 'require', ca: [CA.cert], hosts: [host('require', [INTERMEDIATE.cert], 'own.test')] },
    statuses: { 'own.test': 421, 'main.test': 200 },
  },
  {
    what: 'a changed certificate of the listener does not affect open connections',
    before: { hosts: REQUIRING },
    sni: 'own.test',
    shown: CLIENT,
    after: { hosts: REQUIRING.map(it => ({ ...it, identity: SERVER })) },
    statuses: { 'own.test': 200, 'main.test': 421 },
  },
]
for (const { what, before, sni, shown, after, statuses } of CHANGES) {
  test(`reload: ${what}`, async () => {
    const gateway = await startGateway(APIS, { kinds: ['https'], tlsServer: serverPlan(before) })
    gateways.push(gateway)
    const client = await connected(gateway, sni, shown)
    assert.equal(await statusOf(client, get(sni)), 200)
    await gateway.deploy({ tlsServer: serverPlan(after) })
    for (const [authority, status] of Object.entries(statuses)) {
      assert.equal(await statusOf(client, get(authority)), status, authority)
    }
    client.peer.destroy()
  })
}
