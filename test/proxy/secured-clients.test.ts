/** TLS clients: failed and slow handshakes, incomplete requests, client certificates, SNI, limits and draining. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import type { ConnectionOptions } from 'node:tls'
import type { TlsServerPlan } from '../../src/socket/tls.ts'
import { takeResponse } from '../harness/responses.ts'
import {
  CA,
  CLIENT,
  EXPIRED_CLIENT,
  INTERMEDIATE_CLIENT,
  OTHER_CLIENT,
  SERVER,
  VIRTUAL,
  WILDCARD,
} from '../harness/certificates.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, Peer, ScriptedBackend } from '../harness/peers.ts'
import { connectSecured, type SecuredPeer, serverPlan, startSecured } from '../harness/secured-peers.ts'

const backend = await ScriptedBackend.listen()
const gateways: TestGateway[] = []
after(() => {
  for (const gateway of gateways) gateway.stop()
  backend.close()
})

async function gatewayWith(
  tlsServer: Partial<TlsServerPlan> = {},
  http: Readonly<Record<string, unknown>> = {},
): Promise<TestGateway> {
  const plan = { kinds: ['https'], tlsServer: serverPlan(tlsServer) } as const
  const gateway = await startGateway([{ context: '/t', port: backend.port }], { http, ...plan })
  gateways.push(gateway)
  backend.skip()
  return gateway
}

const GET = 'GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n'
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

/** Waits for the next backend connection and its request. */
async function requestAtBackend(): Promise<Peer> {
  const peer = await backend.next()
  await peer.untilText('\r\n\r\n')
  return peer
}

// ---- failed handshakes ---------------------------------------------------------------------------------------------

const LISTENERS: readonly (readonly [string, TlsServerPlan['hosts']])[] = [
  ['without virtual hosts', []],
  ['with a virtual host', [{ identity: VIRTUAL, verifyClient: 'none', ca: [], names: ['shop.example.test'] }]],
]

const SLOW: readonly (readonly [string, (peer: Peer) => Promise<void> | void])[] = [
  ['sends nothing', () => undefined],
  ['sends a part of ClientHello', peer => peer.send(Buffer.from('1603010200010001fc0303', 'hex'))],
  [
    'sends ClientHello byte by byte',
    async peer => {
      const hello = Buffer.concat([Buffer.from('1603010200010001fc0303', 'hex'), Buffer.alloc(500)])
      for (let at = 0; at < hello.length && !peer.isClosed && peer.ending === ''; at++) {
        peer.send(hello.subarray(at, at + 1))
        await new Promise(resolve => setTimeout(resolve, 10))
      }
    },
  ],
]
for (const [listener, hosts] of LISTENERS) {
  for (const [name, act] of SLOW) {
    test(`header.read_timeout: a client that ${name} to a listener ${listener} is closed`, async () => {
      const gateway = await gatewayWith({ hosts }, { 'header.read_timeout': 500 })
      const peer = await connectPeer(gateway.port)
      void act(peer)
      await peer.untilEnd()
      await eventually('the end of the connection', () => gateway.metrics().counts.connectionsOpen === 0)
      // Counted like a plain connection without a request.
      assert.equal(gateway.metrics().counts.timeoutSourceIdle, 1)
      peer.destroy()
    })
  }
}

test('header.read_timeout: a client that sends nothing after the handshake is closed without a response', async () => {
  const gateway = await gatewayWith({}, { 'header.read_timeout': 500 })
  const { peer } = await connectSecured(gateway.port)
  assert.equal(await peer.untilEnd(), 'FIN')
  assert.equal(peer.length, 0)
  assert.equal(gateway.metrics().counts.tlsHandshakesFailed, 0)
  peer.destroy()
})

test('header.read_timeout: an unfinished head gets 408', async () => {
  const gateway = await gatewayWith({}, { 'header.read_timeout': 500 })
  const { peer } = await connectSecured(gateway.port)
  peer.send('GET /t/it HTTP/1.1\r\nHo')
  assert.equal((await takeResponse(peer)).status, 408)
  assert.equal(await peer.untilEnd(), 'FIN')
  peer.destroy()
})

const GARBAGE: readonly (readonly [string, Buffer])[] = [
  ['random bytes', Buffer.from(Array.from({ length: 2000 }, (_, at) => (at * 7919) % 256))],
  ['zero bytes', Buffer.alloc(20_000)],
  ['a record of 64 KiB', Buffer.concat([Buffer.from('160303ffff', 'hex'), Buffer.alloc(70_000, 1)])],
  ['an alert record', Buffer.from('15030300020228', 'hex')],
  ['an application data record', Buffer.concat([Buffer.from('1703030100', 'hex'), Buffer.alloc(256, 5)])],
  [
    'an SSL 2 ClientHello',
    Buffer.from('802e0100020015000000100100800200800300800600400400800700c0000000000000000000000000000000', 'hex'),
  ],
]
for (const [listener, hosts] of LISTENERS) {
  for (const [name, bytes] of GARBAGE) {
    test(`the connection of a client that sends ${name} to a listener ${listener} is closed and counted`, async () => {
      const gateway = await gatewayWith({ hosts }, { 'header.read_timeout': 500 })
      const peer = await connectPeer(gateway.port)
      peer.send(bytes)
      peer.end()
      await peer.untilEnd()
      await eventually('the end of the connection', () => gateway.metrics().counts.connectionsOpen === 0)
      assert.equal(gateway.metrics().counts.tlsHandshakesFailed, 1)
      assert.deepEqual(
        gateway.reports.filter(({ level }) => level !== 'debug'),
        [],
      )
      peer.destroy()
    })
  }
}

test('RFC 8446 5.2: an invalid record after the handshake ends the connection and the unfinished request', async () => {
  const gateway = await gatewayWith()
  const { peer, tcp } = await connectSecured(gateway.port)
  peer.send('POST /t/it HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello')
  const at = await backend.next()
  await at.untilText('hello')
  tcp.write(Buffer.from(`1703030020${'ab'.repeat(32)}`, 'hex'))
  assert.equal(await at.untilEnd(), 'FIN')
  assert.doesNotMatch(at.text, /hello./)
  await eventually('the end of the connection', () => gateway.metrics().counts.connectionsOpen === 0)
  assert.match(JSON.stringify(gateway.reports), /DECRYPTION_FAILED_OR_BAD_RECORD_MAC/)
  peer.destroy()
})

// ---- incomplete requests -------------------------------------------------------------------------------------------

const BODIES: readonly (readonly [string, string])[] = [
  ['with Content-Length', 'Content-Length: 10\r\n\r\nhello'],
  ['in chunks', 'Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n'],
]
const ENDS: readonly (readonly [string, (client: SecuredPeer) => void, getsFault: boolean])[] = [
  ['a TCP FIN without close_notify', ({ tcp }) => void tcp.end(), false],
  ['a reset', ({ tcp }) => void tcp.resetAndDestroy(), false],
  ['close_notify', ({ tls }) => void tls.end(), true],
]
for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  for (const [body, head] of BODIES) {
    for (const [name, end, getsFault] of ENDS) {
      test(`RFC 8446 6.1, ${version}: a request ${body} is incomplete if ${name} ends its body`, async () => {
        const gateway = await gatewayWith()
        const client = await connectSecured(gateway.port, { maxVersion: version })
        client.peer.send(`POST /t/it HTTP/1.1\r\nHost: a\r\n${head}`)
        const at = await backend.next()
        await at.untilText('hello')
        end(client)
        await at.untilEnd()
        assert.doesNotMatch(at.text, /\r\n0\r\n\r\n$/)
        if (getsFault) assert.match((await takeResponse(client.peer)).body, /"code":102511/)
        await eventually('the end of the connection', () => gateway.metrics().counts.connectionsOpen === 0)
        client.peer.destroy()
      })
    }
  }
}

// ---- client certificates -------------------------------------------------------------------------------------------

type CertificateCase = readonly [string, ConnectionOptions, optional: boolean, require: boolean]
const CERTIFICATES: readonly CertificateCase[] = [
  ['a client without a certificate', {}, true, false],
  ['a certificate of the trusted authority', CLIENT, true, true],
  ['a certificate of an intermediate authority', INTERMEDIATE_CLIENT, true, true],
  ['an expired certificate', EXPIRED_CLIENT, false, false],
  ['a certificate of another authority', OTHER_CLIENT, false, false],
  ['a server certificate', VIRTUAL, false, false],
]
for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  for (const mode of ['optional', 'require'] as const) {
    for (const [name, options, optional, require] of CERTIFICATES) {
      const isServed = mode === 'optional' ? optional : require
      test(`${version}, SSLVerifyClient ${mode}: ${name} is ${isServed ? 'served' : 'refused'}`, async () => {
        const gateway = await gatewayWith({ verifyClient: mode, ca: [CA.cert] })
        const { peer } = await startSecured(gateway.port, { ...options, maxVersion: version })
        peer.send(GET)
        if (isServed) {
          const at = await requestAtBackend()
          at.send(OK)
          assert.equal((await takeResponse(peer)).status, 200)
          at.destroy()
        } else {
          await peer.until('the refusal', () => peer.ending !== '' || peer.isClosed)
          assert.equal(peer.length, 0)
          await eventually('the end of the connection', () => gateway.metrics().counts.connectionsOpen === 0)
          assert.equal(gateway.metrics().counts.tlsHandshakesFailed, 1)
          const line = gateway.reports.find(({ event }) => event === 'TLS handshake failed')!
          assert.equal(line.level, 'warn')
          assert.match(String(line.fields.CAUSE_OF_ERROR), /certificate/)
          assert.equal(line.fields.CLIENT_ADDRESS, '127.0.0.1')
        }
        peer.destroy()
      })
    }
  }
}

// ---- SNI -----------------------------------------------------------------------------------------------------------

test('RFC 6066 3: SNI selects the certificate, and every host serves the same APIs', async () => {
  const gateway = await gatewayWith({
    hosts: [
      { identity: VIRTUAL, verifyClient: 'require', ca: [CA.cert], names: ['shop.example.test'] },
      { identity: WILDCARD, verifyClient: 'none', ca: [], names: ['*.example.test'] },
    ],
  })
  const NAMES: readonly (readonly [string, string, ConnectionOptions])[] = [
    ['localhost', 'localhost', {}],
    ['shop.example.test', 'shop.example.test', CLIENT],
    ['mail.example.test', '*.example.test', {}],
    ['unknown.test', 'localhost', { checkServerIdentity: () => undefined }],
  ]
  let at: Peer | undefined
  for (const [servername, subject, options] of NAMES) {
    const { peer, tls } = await connectSecured(gateway.port, { servername, ...options })
    assert.match(tls.getPeerCertificate().subjectaltname ?? '', new RegExp(`DNS:${subject.replace('*', '\\*')}`))
    peer.send(GET.replace('Host: a', `Host: ${servername}`))
    at ??= await backend.next()
    await at.untilText('\r\n\r\n')
    at.take()
    at.send(OK)
    assert.equal((await takeResponse(peer)).status, 200)
    peer.destroy()
  }
  const { peer } = await startSecured(gateway.port, { servername: 'SHOP.example.test' })
  await peer.until('the refusal', () => peer.ending !== '' || peer.isClosed)
  at!.destroy()
})

// ---- limits and draining -------------------------------------------------------------------------------------------

test('max_open_connections and max_connections_per_client include connections during the handshake', async () => {
  for (const key of ['max_open_connections', 'max_connections_per_client']) {
    const gateway = await gatewayWith({}, { [key]: 2 })
    const first = await connectPeer(gateway.port)
    const second = await connectSecured(gateway.port)
    const third = new Peer(connect(gateway.port, '127.0.0.1'))
    assert.equal(await third.untilEnd(), 'RST')
    first.destroy()
    await eventually('the end of the first connection', () => gateway.metrics().counts.connectionsOpen === 1)
    const fourth = await connectSecured(gateway.port)
    fourth.peer.send(GET)
    const at = await requestAtBackend()
    at.send(OK)
    assert.equal((await takeResponse(fourth.peer)).status, 200)
    for (const { peer } of [second, fourth]) peer.destroy()
    await eventually('the end of all connections', () => gateway.metrics().counts.connectionsOpen === 0)
    at.destroy()
  }
})

test('a drain closes idle connections and handshakes, and a pending response has Connection: close', async () => {
  const gateway = await gatewayWith()
  const idle = await connectSecured(gateway.port)
  const silent = await connectPeer(gateway.port)
  const busy = await connectSecured(gateway.port)
  busy.peer.send(GET)
  const at = await requestAtBackend()
  gateway.reactor.drain()
  assert.equal(await idle.peer.untilEnd(), 'FIN')
  await silent.untilEnd()
  at.send(OK)
  const response = await takeResponse(busy.peer)
  assert.equal(response.status, 200)
  assert.deepEqual(response.fields.get('connection'), ['close'])
  assert.equal(await busy.peer.untilEnd(), 'FIN')
  await eventually('the end of all connections', () => gateway.metrics().counts.connectionsOpen === 0)
})

test('clients that close during the handshake leave no open connection', async () => {
  const gateway = await gatewayWith()
  for (let i = 0; i < 50; i++) {
    const { tls, tcp } = await startSecured(gateway.port)
    tls.on('error', () => undefined)
    if (i % 2 === 0) tcp.resetAndDestroy()
    else tls.destroy()
  }
  await eventually('the end of all connections', () => gateway.metrics().counts.connectionsOpen === 0)
  assert.equal(gateway.metrics().counts.connectionsAccepted, 50)
})

test('a reload of SSLVerifyClient applies to resumed sessions', async () => {
  const gateway = await gatewayWith()
  const first = await connectSecured(gateway.port)
  let session: Buffer | undefined
  first.tls.on('session', it => (session = it))
  first.peer.send(GET)
  const at = await requestAtBackend()
  at.send(OK)
  await takeResponse(first.peer)
  await eventually('the session', () => session !== undefined)
  await gateway.deploy({ tlsServer: serverPlan({ verifyClient: 'require', ca: [CA.cert], identity: SERVER }) })
  const { peer } = await startSecured(gateway.port, { session: session! })
  peer.send(GET)
  await peer.until('the refusal', () => peer.ending !== '' || peer.isClosed)
  assert.equal(peer.length, 0)
  first.peer.destroy()
  at.destroy()
})
