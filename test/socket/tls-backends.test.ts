/** TLS towards backends: which certificates are accepted, and the kind and cause of each failure. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createTcp, type Server } from 'node:net'
import { after, test } from 'node:test'
import { createServer, type TlsOptions, type TLSSocket } from 'node:tls'
import type { TlsFailureKind } from '../../src/socket/byte-socket.ts'
import type { TlsClientPlan } from '../../src/socket/tls.ts'
import { CA, CLIENT, EXPIRED, OTHER_CA, SELF_SIGNED, SERVER, VIRTUAL, WILDCARD } from '../harness/certificates.ts'
import { eventually, turn } from '../harness/peers.ts'
import { clientPlan, dialSecured, Recorder, startSecured, tls } from './secured.ts'

const servers: { close(): unknown }[] = []
after(() => {
  for (const server of servers) server.close()
})

interface Backend {
  readonly port: number
  readonly sockets: TLSSocket[]
}

async function portOf(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return (server.address() as { port: number }).port
}

/** A backend that answers each read with "pong". */
async function backend(options: TlsOptions): Promise<Backend> {
  const sockets: TLSSocket[] = []
  const server = createServer(options, socket => {
    sockets.push(socket)
    socket.on('data', () => socket.write('pong'))
    socket.on('error', () => undefined)
  })
  server.on('tlsClientError', () => undefined)
  return { port: await portOf(server), sockets }
}

async function exchange(owner: Recorder): Promise<void> {
  owner.socket.write(Buffer.from('ping'))
  await eventually('the answer', () => owner.text === 'pong')
  owner.socket.destroy()
}

const ALTNAMES = 'altnames DNS:localhost, IP Address:127.0.0.1'
type Case = readonly [name: string, host: string, served: TlsOptions, plan: Partial<TlsClientPlan>, cause: string]
const CASES: readonly Case[] = [
  ['the right name', 'localhost', SERVER, {}, ''],
  ['the right address', '127.0.0.1', SERVER, {}, ''],
  ['the right address of IPv6', '[::1]', SERVER, {}, ''],
  ['a name under a wildcard', 'mail.example.test', WILDCARD, {}, ''],
  [
    'two labels under a wildcard',
    'a.b.example.test',
    WILDCARD,
    {},
    'is not for this host: altnames DNS:*.example.test',
  ],
  ['another name', 'backend.test', SERVER, {}, `certificate of backend.test: is not for this host: ${ALTNAMES}`],
  ['another address', '127.0.0.2', SERVER, {}, `certificate of 127.0.0.2: is not for this host: ${ALTNAMES}`],
  ['another name, names not checked', 'backend.test', SERVER, { hostname: 'none' }, ''],
  ['an expired one', 'localhost', EXPIRED, {}, 'localhost: has expired (CERT_HAS_EXPIRED, valid to 2021-01-01)'],
  ['an expired one, names not checked', 'localhost', EXPIRED, { hostname: 'none' }, 'has expired (CERT_HAS_EXPIRED'],
  ['one by itself', 'localhost', SELF_SIGNED, {}, 'self-signed, not in the trust store (DEPTH_ZERO_SELF_SIGNED_CERT)'],
  ['one by itself, which is trusted', 'localhost', SELF_SIGNED, { ca: [SELF_SIGNED.cert] }, ''],
  ['an unknown authority', 'localhost', SERVER, { ca: [OTHER_CA.cert] }, 'its issuer is not in the trust store'],
  ['an authority that is not public', 'localhost', SERVER, { ca: null }, 'its issuer is not in the trust store'],
  ['an unknown authority, names not checked', 'localhost', SERVER, { ca: null, hostname: 'none' }, 'trust store'],
  [
    'the certificate of a client',
    'localhost',
    CLIENT,
    { hostname: 'none' },
    'is not meant for this use (INVALID_PURPOSE)',
  ],
]
for (const [name, host, served, plan, cause] of CASES) {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    test(`${version}, RFC 9110 4.3.4: ${name} is ${cause === '' ? 'taken' : 'refused'}`, async () => {
      const { port } = await backend({ ...served, maxVersion: version })
      const owner = await dialSecured(tls.client(clientPlan(plan)), port, host)
      if (cause === '') {
        assert.deepEqual(owner.calls, ['CONNECTED'])
        await exchange(owner)
      } else {
        assert.equal(owner.calls.length, 1)
        assert.match(owner.calls[0]!, /^REFUSED certificate of /)
        assert.ok(owner.calls[0]!.includes(cause), owner.calls.join())
        assert.equal(owner.tlsFailure?.kind, 'peer-certificate')
        assert.match(owner.tlsFailure.code, /^[A-Z_]+$/)
      }
    })
  }
}

type Kinds = readonly TlsFailureKind[]
const NEGOTIATIONS: readonly (readonly [string, TlsOptions, Partial<TlsClientPlan>, RegExp, Kinds])[] = [
  [
    'no shared version',
    { ...SERVER, minVersion: 'TLSv1.3' },
    { maxVersion: 'TLSv1.2' },
    /no shared protocol version/,
    ['handshake'],
  ],
  [
    'only an old version',
    { ...SERVER, ciphers: 'ALL:@SECLEVEL=0', minVersion: 'TLSv1', maxVersion: 'TLSv1.1' },
    {},
    /no shared protocol version/,
    ['handshake'],
  ],
  [
    'no shared suite',
    { ...SERVER, maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-SHA' },
    {},
    /no common terms/,
    ['own-certificate'],
  ],
  ['another protocol', { ...SERVER, ALPNProtocols: ['h2'] }, {}, /does not offer http\/1\.1/, ['handshake']],
  [
    'our certificate missing, TLS 1.2',
    { ...SERVER, maxVersion: 'TLSv1.2', requestCert: true, ca: CA.cert },
    {},
    /misses a certificate of ours|broke it off/,
    ['own-certificate', 'handshake'],
  ],
]
for (const [name, options, plan, cause, kinds] of NEGOTIATIONS) {
  test(`${name}: the handshake fails with that cause`, async () => {
    const { port } = await backend(options)
    const owner = await dialSecured(tls.client(clientPlan(plan)), port)
    assert.equal(owner.calls.length, 1)
    assert.match(owner.calls[0]!, cause)
    assert.ok(kinds.includes(owner.tlsFailure!.kind), owner.tlsFailure!.kind)
  })
}

test('TLS 1.3: a backend that misses our certificate fails the connection after the handshake', async () => {
  const { port } = await backend({ ...SERVER, requestCert: true, ca: CA.cert })
  const owner = await dialSecured(tls.client(clientPlan()), port)
  assert.match(await owner.called('LOST'), /ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED/)
  assert.deepEqual(
    [owner.tlsFailure?.kind, owner.tlsFailure?.code],
    ['tls', 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'],
  )
})

test('our certificate is sent when the backend asks for it', async () => {
  const { port, sockets } = await backend({ ...SERVER, requestCert: true, ca: CA.cert })
  const owner = await dialSecured(tls.client(clientPlan({ identity: CLIENT })), port)
  await exchange(owner)
  assert.equal(sockets[0]!.getPeerCertificate().subject.CN, 'Test Client')
})

test('RFC 6066 3: names are sent, addresses are not; http/1.1 is offered', async () => {
  const { port, sockets } = await backend({ ...SERVER, ALPNProtocols: ['http/1.1'] })
  const client = tls.client(clientPlan())
  for (const host of ['localhost', '127.0.0.1']) await exchange(await dialSecured(client, port, host))
  assert.deepEqual(
    sockets.map(({ servername, alpnProtocol }) => [servername, alpnProtocol]),
    [
      ['localhost', 'http/1.1'],
      [false, 'http/1.1'],
    ],
  )
})

// ---- sessions -------------------------------------------------------------------------------------------------------

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  test(`${version}: the next connection resumes the session, for the same host and plan only`, async () => {
    const { port, sockets } = await backend({ ...SERVER, maxVersion: version })
    const client = tls.client(clientPlan())
    const resumed = async (host: string) => {
      const owner = await dialSecured(client, port, host)
      await exchange(owner)
      return sockets.at(-1)!.isSessionReused()
    }
    assert.equal(await resumed('localhost'), false)
    assert.equal(await resumed('localhost'), true)
    assert.equal(await resumed('127.0.0.1'), false)
    client.replace(clientPlan())
    assert.equal(await resumed('localhost'), false)
  })

  test(`${version}: the certificate of a resumed session is checked again`, async context => {
    const { port } = await backend({ ...SERVER, maxVersion: version })
    const client = tls.client(clientPlan())
    await exchange(await dialSecured(client, port))
    context.mock.method(Date, 'now', () => Date.parse('2057-01-01'))
    const owner = await dialSecured(client, port)
    assert.match(owner.calls[0]!, /has expired \(CERT_HAS_EXPIRED, valid to 2056-01-01\)/)
  })
}

test('a plan that OpenSSL refuses throws and changes nothing', async () => {
  const { port } = await backend(SERVER)
  const client = tls.client(clientPlan())
  for (const changes of [
    { ca: ['no PEM'] },
    { ca: [] },
    { identity: { cert: CLIENT.cert, key: SERVER.key } },
    { ciphers: 'NONE-SUCH' },
  ]) {
    assert.throws(() => tls.client(clientPlan(changes)))
    assert.throws(() => client.replace(clientPlan(changes)))
  }
  await exchange(await dialSecured(client, port))
})

test('a replaced plan applies to the next handshake', async () => {
  const { port } = await backend(SERVER)
  const client = tls.client(clientPlan())
  const owner = await dialSecured(client, port)
  client.replace(clientPlan({ ca: [OTHER_CA.cert] }))
  assert.match((await dialSecured(client, port)).calls[0]!, /trust store/)
  await exchange(owner)
})

// ---- what is no TLS -------------------------------------------------------------------------------------------------

async function plainBackend(onBytes: (socket: import('node:net').Socket) => void): Promise<number> {
  return portOf(
    createTcp(socket => {
      socket.on('error', () => undefined)
      socket.once('data', () => onBytes(socket))
    }),
  )
}

test('a backend that speaks plain HTTP fails the handshake with that cause', async () => {
  const port = await plainBackend(socket => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  const owner = await dialSecured(tls.client(clientPlan()), port)
  assert.match(owner.calls[0]!, /^REFUSED handshake: the peer does not speak TLS here/)
})

for (const how of ['end', 'resetAndDestroy'] as const) {
  test(`a backend that leaves within the handshake by ${how} is reported`, async () => {
    const port = await plainBackend(socket => void socket[how]())
    const owner = await dialSecured(tls.client(clientPlan()), port)
    const code = how === 'end' ? '' : ' (ECONNRESET)'
    assert.deepEqual(owner.calls, [`REFUSED handshake: the peer broke it off${code}`])
  })
}

test('a handshake with a silent backend can be cancelled', async () => {
  let isClosed = false
  const port = await plainBackend(socket => socket.on('close', () => (isClosed = true)).resume())
  const owner = startSecured(tls.client(clientPlan()), port)
  for (let i = 0; i < 50; i++) await turn()
  owner.socket.destroy()
  await eventually('the end', () => isClosed)
  assert.deepEqual(owner.calls, [])
})

test('writes before the end of the handshake wait for it', async () => {
  const { port } = await backend(SERVER)
  const plain = new Recorder()
  const owner = new Recorder()
  const client = tls.client(clientPlan())
  plain.onOpen = () => {
    owner.socket = client.wrap(plain.socket, 'localhost', owner, owner.view)
    owner.socket.write(Buffer.from('ping'))
  }
  const { level } = await import('./secured.ts')
  plain.socket = level.dial('127.0.0.1', port, plain, plain.view)
  await eventually('the answer', () => owner.text === 'pong')
  assert.deepEqual(owner.calls.slice(0, 2).sort(), ['CONNECTED', 'DRAINED'])
  owner.socket.destroy()
})

test('a virtual host of the backend with the certificate of another name is refused', async () => {
  const { port } = await backend(VIRTUAL)
  const owner = await dialSecured(tls.client(clientPlan()), port, 'example.test')
  assert.match(owner.calls[0]!, /is not for this host: altnames DNS:shop\.example\.test/)
})
