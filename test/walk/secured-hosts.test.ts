/**
 * Hosts of a secured listener that ask for different certificates of clients: the name in the handshake (SNI) decides
 * who is asked, so a request for a host that asks otherwise is misdirected (RFC 9110 7.4, 15.5.20).
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { ConnectionOptions } from 'node:tls'
import type { TlsServerPlan } from '../../src/socket/tls.ts'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { takeAnswer } from '../harness/answers.ts'
import { CA, CLIENT, INTERMEDIATE, OTHER_CA, OTHER_CLIENT, SERVER, VIRTUAL } from '../harness/certificates.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually } from '../harness/peers.ts'
import { connectSecured, type SecuredPeer, serverPlan } from '../harness/secured-peers.ts'

type Host = TlsServerPlan['hosts'][number]

const backend = await AnsweringBackend.listen(({ start }) => (start.includes('/ws') ? SWITCH : OK))
const gateways: TestGateway[] = []
after(() => {
  for (const gateway of gateways) gateway.stop()
  backend.close()
})

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'
/** The API of each is there under its own name alone, but for the one that is everywhere. */
const APIS = [
  { context: '/t', port: backend.port },
  { context: '/own', port: backend.port, unlike: { hosts: ['own.test'] } },
] as const
const TWO = [CA.cert, OTHER_CA.cert]
const HOSTS: readonly Host[] = [
  host('require', [CA.cert], 'own.test', '*.own.test'),
  host('require', [CA.cert], 'twin.test'),
  host('optional', [CA.cert], 'may.test'),
  host('require', [OTHER_CA.cert], 'other.test'),
  host('require', TWO, 'two.test'),
  host('require', [...TWO].reverse(), 'reversed.test'),
  host('none', [], 'open.test'),
]

function host(verifyClient: Host['verifyClient'], ca: readonly string[], ...names: string[]): Host {
  return { identity: VIRTUAL, verifyClient, ca, names }
}

async function gatewayWith(hosts: readonly Host[] = HOSTS, kind: 'https' | 'wss' = 'https'): Promise<TestGateway> {
  const gateway = await startGateway(APIS, {}, 'json', [], { kinds: [kind], tlsServer: serverPlan({ hosts }) })
  gateways.push(gateway)
  return gateway
}

/** `sni`: '' for none. */
async function connected(gateway: TestGateway, sni: string, options: ConnectionOptions = {}): Promise<SecuredPeer> {
  return connectSecured(gateway.port, { servername: sni, checkServerIdentity: () => undefined, ...options })
}

async function statusOf({ peer }: SecuredPeer, request: string): Promise<number> {
  peer.send(request)
  return (await takeAnswer(peer)).status
}

function get(authority: string, target = '/t/it'): string {
  return `GET ${target} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`
}

// ---- one request ---------------------------------------------------------------------------------------------------

const NOBODY = {}
type Case = readonly [what: string, sni: string, shown: ConnectionOptions, request: string, status: number]
const CASES: readonly Case[] = [
  ['its own name', 'own.test', CLIENT, get('own.test', '/own/it'), 200],
  ['its own name, with a port and in other letters', 'own.test', CLIENT, get('OWN.Test.:8243'), 200],
  ['another name of the same profile', 'own.test', CLIENT, get('a.own.test'), 200],
  ['a profile with the same terms', 'own.test', CLIENT, get('twin.test'), 200],
  ['the same authorities in another order', 'two.test', CLIENT, get('reversed.test'), 200],
  ['none and none', 'open.test', NOBODY, get('main.test'), 200],
  ['none, then require', 'main.test', NOBODY, get('own.test', '/own/it'), 421],
  ['none, then require for a domain', 'main.test', NOBODY, get('a.own.test'), 421],
  ['none, then require, with a port', 'main.test', NOBODY, get('own.test:8243', '/own/it'), 421],
  ['none, then require, in other letters', 'main.test', NOBODY, get('OWN.Test', '/own/it'), 421],
  ['none, then require, with the dot of the root', 'main.test', NOBODY, get('own.test.', '/own/it'), 421],
  ['none, then require, for what is everywhere', 'main.test', NOBODY, get('own.test'), 421],
  ['none, then require, for what is nowhere', 'main.test', NOBODY, get('own.test', '/nowhere'), 421],
  ['none, then optional', 'main.test', NOBODY, get('may.test'), 421],
  ['optional and nothing shown, then require', 'may.test', NOBODY, get('own.test'), 421],
  ['optional and one shown, then require', 'may.test', CLIENT, get('own.test'), 421],
  ['require, then optional', 'own.test', CLIENT, get('may.test'), 421],
  ['require, then none', 'own.test', CLIENT, get('main.test'), 421],
  ['another trust store', 'other.test', OTHER_CLIENT, get('own.test', '/own/it'), 421],
  ['a larger trust store', 'own.test', CLIENT, get('two.test'), 421],
  ['no SNI, a host of the same terms', '', NOBODY, get('main.test'), 200],
  ['no SNI, a host that asks', '', NOBODY, get('own.test', '/own/it'), 421],
  ['absolute-form of its own name beats Host', 'own.test', CLIENT, get('main.test', 'https://own.test/own/it'), 200],
  ['absolute-form beats Host', 'main.test', NOBODY, get('main.test', 'https://own.test/own/it'), 421],
  ['absolute-form of a host with its own terms', 'main.test', NOBODY, get('own.test', 'https://main.test/t/it'), 200],
  ['HTTP/1.0 without Host, nobody asked', 'main.test', NOBODY, 'GET /t/it HTTP/1.0\r\n\r\n', 200],
  ['HTTP/1.0 without Host, asked', 'own.test', CLIENT, 'GET /t/it HTTP/1.0\r\n\r\n', 200],
  ['HTTP/1.0 with Host', 'main.test', NOBODY, 'GET /t/it HTTP/1.0\r\nHost: own.test\r\n\r\n', 421],
  ['an IPv4 address has the default terms', 'main.test', NOBODY, get('127.0.0.1:8243'), 200],
  ['an IPv4 address, asked for another name', 'own.test', CLIENT, get('127.0.0.1'), 421],
  ['an IPv6 address has the default terms', 'main.test', NOBODY, get('[::1]:8243'), 200],
  ['an IPv6 address, asked for another name', 'own.test', CLIENT, get('[::1]'), 421],
  ['an unknown host has the default terms', 'main.test', NOBODY, get('unknown.test'), 200],
  ['an unknown host, asked for another name', 'own.test', CLIENT, get('unknown.test'), 421],
  ['two labels are not in a domain of one', 'main.test', NOBODY, get('a.b.own.test'), 200],
  ['OPTIONS *', 'main.test', NOBODY, 'OPTIONS * HTTP/1.1\r\nHost: own.test\r\n\r\n', 421],
  [
    'X-Forwarded-Host is nobody',
    'main.test',
    NOBODY,
    'GET /t/it HTTP/1.1\r\nHost: main.test\r\nX-Forwarded-Host: own.test\r\n\r\n',
    200,
  ],
]
const shared = await gatewayWith()
for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  for (const [what, sni, shown, request, status] of CASES) {
    test(`RFC 9110 7.4, ${version}: ${what}: ${status}`, async () => {
      const before = backend.requests.length
      const client = await connected(shared, sni, { ...shown, maxVersion: version })
      assert.equal(await statusOf(client, request), status)
      assert.equal(backend.requests.length - before, status === 200 ? 1 : 0)
      client.peer.destroy()
    })
  }
}

test('RFC 9110 15.5.20: a refusal says what it is, and the log which request it was', async () => {
  const gateway = await gatewayWith()
  const { peer } = await connected(gateway, 'main.test')
  peer.send(get('own.test', '/own/it?secret=1'))
  const answer = await takeAnswer(peer)
  assert.deepEqual([answer.status, answer.reason], [421, 'Misdirected Request'])
  const { fault } = JSON.parse(answer.body) as { fault: Record<string, unknown> }
  assert.equal(fault.code, 400)
  assert.match(String(fault.description), /RFC 9110 7\.4/)
  const line = gateway.reports.find(({ event }) => event === 'misdirected request')!
  assert.equal(line.level, 'warn')
  assert.equal(line.fields.CLIENT_ADDRESS, '127.0.0.1')
  await eventually('the access line', () => gateway.accessLines.length > 0)
  assert.match(gateway.accessLines[0]!, /421/)
  assert.equal(gateway.metrics().statuses.get(421), 1)
  peer.destroy()
})

// ---- one connection ------------------------------------------------------------------------------------------------

test('a refusal does not end the connection: each request is judged by its own host', async () => {
  const client = await connected(shared, 'main.test')
  const asked: readonly (readonly [string, number])[] = [
    ['main.test', 200],
    ['own.test', 421],
    ['own.test', 421],
    ['main.test', 200],
    ['open.test', 200],
    ['OWN.test', 421],
  ]
  for (const [authority, status] of asked) assert.equal(await statusOf(client, get(authority)), status, authority)
  client.peer.send(asked.map(([authority]) => get(authority)).join(''))
  for (const [authority, status] of asked) assert.equal((await takeAnswer(client.peer)).status, status, authority)
  client.peer.destroy()
})

const HELLO = 'Host: own.test\r\nContent-Length: 5\r\n'
test('a body that is here is no next request, and one that is not ends the connection', async () => {
  const client = await connected(shared, 'main.test')
  const whole = `POST /own/it HTTP/1.1\r\n${HELLO}\r\nhello${get('main.test')}`
  assert.equal(await statusOf(client, whole), 421)
  await client.peer.until('an end or an answer', () => client.peer.ending !== '' || client.peer.length > 0)
  if (client.peer.length > 0) assert.equal((await takeAnswer(client.peer)).status, 200)
  client.peer.destroy()
  const waiting = await connected(shared, 'main.test')
  assert.equal(await statusOf(waiting, `POST /own/it HTTP/1.1\r\n${HELLO}Expect: 100-continue\r\n\r\n`), 421)
  waiting.peer.destroy()
})

for (const kind of ['https', 'wss'] as const) {
  test(`${kind}: a handshake is refused for a host that asks otherwise, and made for its own`, async () => {
    const gateway = await gatewayWith(HOSTS, kind)
    const upgrade = (authority: string, path: string) =>
      `GET ${path}/ws HTTP/1.1\r\nHost: ${authority}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
    const around = await connected(gateway, 'main.test')
    assert.equal(await statusOf(around, upgrade('own.test', '/own')), 421)
    const asked = await connected(gateway, 'own.test', CLIENT)
    assert.equal(await statusOf(asked, upgrade('own.test', '/own')), 101)
    for (const { peer } of [around, asked]) peer.destroy()
  })
}

test('where all hosts ask for the same nothing is compared', async () => {
  for (const hosts of [[], [host('none', [CA.cert], 'own.test'), host('none', [], 'open.test')]]) {
    const gateway = await gatewayWith(hosts)
    const client = await connected(gateway, 'main.test')
    assert.equal(await statusOf(client, get('own.test', '/own/it')), 200)
    assert.equal(await statusOf(client, get('open.test')), 200)
    client.peer.destroy()
  }
})

test('in the clear there is nothing to compare', async () => {
  const plan = { kinds: ['http', 'https'], tlsServer: serverPlan({ hosts: HOSTS }) } as const
  const gateway = await startGateway(APIS, {}, null, [], plan)
  gateways.push(gateway)
  const peer = await connectPeer(gateway.ports[0]!)
  peer.send(get('own.test', '/own/it'))
  assert.equal((await takeAnswer(peer)).status, 200)
  peer.destroy()
})

// ---- sessions that are resumed -------------------------------------------------------------------------------------

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  test(`${version}: a session of one host is no way to another, however it is offered`, async () => {
    const sessionOf = async (sni: string, shown: ConnectionOptions): Promise<Buffer> => {
      const client = await connected(shared, sni, { ...shown, maxVersion: version })
      let session: Buffer | undefined
      client.tls.on('session', it => (session = it))
      assert.equal(await statusOf(client, get(sni)), 200)
      // In TLS 1.2 it came with the handshake.
      if (version === 'TLSv1.2') session = client.tls.getSession()
      await eventually('the session', () => session !== undefined)
      client.peer.destroy()
      return session!
    }
    const own = await sessionOf('own.test', CLIENT)
    const main = await sessionOf('main.test', NOBODY)
    const offers: readonly (readonly [string, Buffer, ConnectionOptions, string, boolean, number])[] = [
      ['own.test', own, CLIENT, 'own.test', true, 200],
      ['own.test', own, CLIENT, 'main.test', true, 421],
      ['twin.test', own, CLIENT, 'own.test', false, 200],
      ['main.test', main, NOBODY, 'own.test', true, 421],
      ['main.test', own, NOBODY, 'own.test', false, 421],
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

// ---- terms that change while a connection is open ------------------------------------------------------------------

interface Change {
  readonly what: string
  readonly before: Partial<TlsServerPlan>
  readonly sni: string
  readonly shown: ConnectionOptions
  readonly after: Partial<TlsServerPlan>
  /** Status by authority, after the change. */
  readonly answers: Readonly<Record<string, number>>
}
const ASKS = [host('require', [CA.cert], 'own.test'), host('none', [], 'open.test')]
const NO_ONE = [host('none', [], 'own.test'), host('none', [], 'open.test')]
const ALL = { verifyClient: 'require', ca: [CA.cert], hosts: [host('require', [CA.cert], 'own.test')] } as const
const CHANGES: readonly Change[] = [
  {
    what: 'a host begins to ask: its name is shut to those that came for another, and open connections keep theirs',
    before: { hosts: NO_ONE },
    sni: 'main.test',
    shown: NOBODY,
    after: { hosts: ASKS },
    answers: { 'own.test': 421, 'main.test': 200, 'open.test': 200 },
  },
  {
    what: 'a host begins to ask: those that came for it keep their terms for it',
    before: { hosts: NO_ONE },
    sni: 'own.test',
    shown: NOBODY,
    after: { hosts: ASKS },
    answers: { 'own.test': 200, 'main.test': 200, 'open.test': 200 },
  },
  {
    what: 'a profile is new: nobody knew its name in the handshake',
    before: { hosts: [] },
    sni: 'main.test',
    shown: NOBODY,
    after: { hosts: ASKS },
    answers: { 'own.test': 421, 'main.test': 200 },
  },
  {
    what: 'all hosts begin to ask: who was asked for nothing stays shut out of what asked then',
    before: { hosts: ASKS },
    sni: 'main.test',
    shown: NOBODY,
    after: ALL,
    answers: { 'own.test': 421, 'main.test': 200 },
  },
  {
    what: 'no host asks any more: nobody is refused',
    before: { hosts: ASKS },
    sni: 'main.test',
    shown: NOBODY,
    after: { hosts: NO_ONE },
    answers: { 'own.test': 200, 'main.test': 200 },
  },
  {
    what: 'another trust store for all: open connections keep the one they were verified against',
    before: ALL,
    sni: 'own.test',
    shown: CLIENT,
    after: { verifyClient: 'require', ca: TWO, hosts: [host('require', TWO, 'own.test')] },
    answers: { 'own.test': 200, 'main.test': 200 },
  },
  {
    what: 'another trust store for one: who was verified against the old one is not let in by another name',
    before: ALL,
    sni: 'main.test',
    shown: CLIENT,
    after: { verifyClient: 'require', ca: [CA.cert], hosts: [host('require', [INTERMEDIATE.cert], 'own.test')] },
    answers: { 'own.test': 421, 'main.test': 200 },
  },
  {
    what: 'another certificate of the listener is nothing that clients are asked for',
    before: { hosts: ASKS },
    sni: 'own.test',
    shown: CLIENT,
    after: { hosts: ASKS.map(it => ({ ...it, identity: SERVER })) },
    answers: { 'own.test': 200, 'main.test': 421 },
  },
]
for (const { what, before, sni, shown, after, answers } of CHANGES) {
  test(what, async () => {
    const gateway = await startGateway(APIS, {}, null, [], { kinds: ['https'], tlsServer: serverPlan(before) })
    gateways.push(gateway)
    const client = await connected(gateway, sni, shown)
    assert.equal(await statusOf(client, get(sni)), 200)
    await gateway.deploy({ tlsServer: serverPlan(after) })
    for (const [authority, status] of Object.entries(answers)) {
      assert.equal(await statusOf(client, get(authority)), status, authority)
    }
    client.peer.destroy()
  })
}
