/** TLS towards clients: versions, suites, ALPN and handshakes that are accepted or refused. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import { after, test } from 'node:test'
import { createServer, getCiphers, type SecureVersion } from 'node:tls'
import type { TlsServerPlan } from '../../src/socket/tls.ts'
import { CA, EXPIRED, RSA_SERVER, SERVER, VIRTUAL, WILDCARD } from '../harness/certificates.ts'
import { eventually, turn } from '../harness/peers.ts'
import { isServed, nodeClient, PONG, SecuredListener, serverPlan, tcpClient, tls } from './secured.ts'

const open: SecuredListener[] = []
after(() => {
  for (const listener of open) listener.close()
})

async function listen(changes: Partial<TlsServerPlan> = {}): Promise<SecuredListener> {
  const listener = await SecuredListener.open(serverPlan(changes), PONG)
  open.push(listener)
  return listener
}

const ANYTHING = 'ALL:COMPLEMENTOFALL:@SECLEVEL=0'

// ---- versions -------------------------------------------------------------------------------------------------------

const VERSIONS: readonly (readonly [SecureVersion, boolean])[] = [
  ['TLSv1', false],
  ['TLSv1.1', false],
  ['TLSv1.2', true],
  ['TLSv1.3', true],
]
for (const [version, isTaken] of VERSIONS) {
  test(`RFC 9325 3.1.1: ${version} is ${isTaken ? 'accepted' : 'refused'}`, async () => {
    const { port } = await listen()
    const ciphers = version === 'TLSv1.3' ? {} : { ciphers: ANYTHING }
    assert.equal(await isServed(port, { minVersion: version, maxVersion: version, ...ciphers }), isTaken)
  })
}

test('only the versions of the plan are accepted', async () => {
  const only13 = await listen({ minVersion: 'TLSv1.3' })
  assert.equal(await isServed(only13.port, { maxVersion: 'TLSv1.2' }), false)
  assert.match(
    await (await only13.next()).called('REFUSED'),
    /no shared protocol version \(ERR_SSL_UNSUPPORTED_PROTOCOL\)/,
  )
  const only12 = await listen({ maxVersion: 'TLSv1.2' })
  assert.equal(await isServed(only12.port, { minVersion: 'TLSv1.3' }), false)
  assert.equal(await isServed(only12.port), true)
})

test('RFC 7568: a hello of SSL 3 is refused with an alert', async () => {
  const listener = await listen()
  const client = await tcpClient(listener.port)
  // Record and hello of version 3.0, one suite (RSA_WITH_RC4_128_SHA), no extensions.
  const hello = Buffer.from(`160300002f0100002b0300${'11'.repeat(32)}000004000500ff0100`, 'hex')
  hello.writeUInt16BE(hello.length - 5, 3)
  hello.writeUIntBE(hello.length - 9, 6, 3)
  client.write(hello)
  const [answer] = (await once(client, 'data')) as [Buffer]
  assert.equal(answer[0], 21)
  assert.match(await (await listener.next()).called('REFUSED'), /^REFUSED handshake: no shared protocol version/)
})

// ---- cipher suites --------------------------------------------------------------------------------------------------

/** Suites beyond those that Node names: no authentication, no encryption, RSA key exchange, triple DES. */
const OTHER_SUITES = [
  ...['AECDH-AES128-SHA', 'ADH-AES128-SHA256', 'ADH-AES256-GCM-SHA384', 'AECDH-NULL-SHA', 'ECDHE-ECDSA-NULL-SHA'],
  ...['NULL-SHA256', 'NULL-MD5', 'DES-CBC3-SHA', 'RC4-SHA', 'EXP-RC4-MD5', 'AES128-SHA', 'AES256-GCM-SHA384'],
]
const SECURE_SUITE = /^ECDHE-(?:RSA|ECDSA)-(?:AES(?:128|256)-GCM-SHA(?:256|384)|CHACHA20-POLY1305)$/

for (const [name, identity] of [
  ['EC', SERVER],
  ['RSA', RSA_SERVER],
] as const) {
  test(`RFC 9325 4.1: of all suites a client can offer to an ${name} key, only those that are secure`, async () => {
    const { port } = await listen({ identity })
    const control = createServer({ ...identity, ciphers: ANYTHING, minVersion: 'TLSv1.2' }, socket => {
      socket.on('data', () => socket.write('pong'))
      socket.on('error', () => undefined)
    })
    control.listen(0, '127.0.0.1')
    await once(control, 'listening')
    const { port: controlPort } = control.address() as { port: number }
    const names = getCiphers().filter(suite => !suite.startsWith('tls_'))
    const suites = [...names.map(suite => suite.toUpperCase()), ...OTHER_SUITES]
    const negotiable = { everywhere: [] as string[], here: [] as string[] }
    for (const suite of suites) {
      const offer = { maxVersion: 'TLSv1.2', ciphers: `${suite}:@SECLEVEL=0`, rejectUnauthorized: false } as const
      let isPossible = false
      try {
        isPossible = await isServed(controlPort, offer)
      } catch {
        // OpenSSL was built without it.
      }
      if (!isPossible) continue
      negotiable.everywhere.push(suite)
      if (await isServed(port, offer)) negotiable.here.push(suite)
    }
    control.close()
    assert.ok(negotiable.everywhere.length >= 10, `the control accepts more: ${negotiable.everywhere}`)
    assert.ok(negotiable.here.length >= 3)
    assert.deepEqual(
      negotiable.here.filter(suite => !SECURE_SUITE.test(suite)),
      [],
    )
  })
}

test("the server's order of suites counts", async () => {
  const { port } = await listen()
  const offers = [
    ['TLSv1.2', 'ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256'],
    ['TLSv1.3', 'TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256'],
  ] as const
  for (const [version, ciphers] of offers) {
    const { socket } = nodeClient(port, { minVersion: version, maxVersion: version, ciphers })
    await once(socket, 'secureConnect')
    assert.equal(
      socket.getCipher().standardName,
      version === 'TLSv1.2' ? 'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256' : 'TLS_AES_128_GCM_SHA256',
    )
    socket.destroy()
  }
})

test('only the suites of the plan are accepted', async () => {
  const { port } = await listen({ ciphers: 'ECDHE-ECDSA-AES256-GCM-SHA384', maxVersion: 'TLSv1.2' })
  assert.equal(await isServed(port, { ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' }), false)
  assert.equal(await isServed(port), true)
})

// ---- renegotiation and compression ----------------------------------------------------------------------------------

test('RFC 9325 3.5: a client cannot renegotiate', async () => {
  const { port } = await listen()
  const { socket, errors } = nodeClient(port, { maxVersion: 'TLSv1.2' })
  await once(socket, 'secureConnect')
  let isDone = false
  socket.renegotiate({}, error => {
    isDone = error === null
  })
  await eventually('the refusal', () => errors.length > 0)
  assert.equal(errors[0]!.code, 'ERR_SSL_NO_RENEGOTIATION')
  assert.equal(isDone, false)
  socket.destroy()
})

test('RFC 9325 3.3: a client that offers compression gets none', async () => {
  const { port } = await listen()
  const client = await tcpClient(port)
  // A hello of TLS 1.2 with DEFLATE before null, one suite, P-256, ECDSA with SHA-256.
  const extensions = '000a00040002001700' + '0d000400020403' + 'ff01000100'
  const extensionsLength = (extensions.length / 2).toString(16).padStart(4, '0')
  const body = `0303${'22'.repeat(32)}000002c02b020100${extensionsLength}${extensions}`
  const length = body.length / 2
  const hello = `160301${(length + 4).toString(16).padStart(4, '0')}01${length.toString(16).padStart(6, '0')}${body}`
  client.write(Buffer.from(hello, 'hex'))
  const [answer] = (await once(client, 'data')) as [Buffer]
  assert.equal(answer[0], 22)
  assert.equal(answer[5], 2)
  const sessionIdLength = answer[43]!
  assert.equal(answer[44 + sessionIdLength + 2], 0)
  client.destroy()
})

// ---- ALPN -----------------------------------------------------------------------------------------------------------

const ALPN: readonly (readonly [offer: readonly string[], protocol: string | false | null])[] = [
  [[], false],
  [['http/1.1'], 'http/1.1'],
  [['h2', 'http/1.1'], 'http/1.1'],
  [['h2'], null],
  [['http/1.0', 'spdy/3'], null],
]
for (const [offer, protocol] of ALPN) {
  const answer = protocol === null ? 'no_application_protocol' : protocol || 'nothing'
  test(`RFC 7301 3.2: the offer of "${offer}" is answered with ${answer}`, async () => {
    const listener = await listen()
    const { socket, errors } = nodeClient(listener.port, { ALPNProtocols: [...offer] })
    if (protocol !== null) {
      await once(socket, 'secureConnect')
      assert.equal(socket.alpnProtocol, protocol)
    } else {
      await eventually('the alert', () => errors.length > 0)
      assert.equal(errors[0]!.code, 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL')
      assert.match(await (await listener.next()).called('REFUSED'), /does not offer http\/1\.1/)
    }
    socket.destroy()
  })
}

// ---- virtual hosts --------------------------------------------------------------------------------------------------

const HOST = { verifyClient: 'none', ca: [] } as const
const HOSTS = [
  { ...HOST, identity: VIRTUAL, names: ['shop.example.test', 'other.test'] },
  { ...HOST, identity: WILDCARD, names: ['*.example.test', 'shop.example.test'] },
]
const NAMES: readonly (readonly [name: string, identity: string])[] = [
  ['shop.example.test', 'shop.example.test'],
  ['SHOP.Example.Test', 'shop.example.test'],
  ['other.test', 'shop.example.test'],
  ['mail.example.test', '*.example.test'],
  ['a.b.example.test', 'localhost'],
  ['example.test', 'localhost'],
  ['unknown.test', 'localhost'],
  ['', 'localhost'],
]
for (const [name, identity] of NAMES) {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    test(`RFC 6066 3: ${version}, the certificate for "${name}" is that of ${identity}`, async () => {
      const { port } = await listen({ hosts: HOSTS })
      const { socket } = nodeClient(port, { servername: name, rejectUnauthorized: false, maxVersion: version })
      await once(socket, 'secureConnect')
      assert.equal(socket.getPeerCertificate().subject.CN, identity)
      socket.write('ping')
      await once(socket, 'data')
      socket.destroy()
    })
  }
}

// ---- replaced plans -------------------------------------------------------------------------------------------------

for (const hosts of [[], HOSTS]) {
  test(`a replaced plan serves new handshakes, and open connections go on (${hosts.length} hosts)`, async () => {
    const listener = await listen({ hosts })
    const old = nodeClient(listener.port)
    await once(old.socket, 'secureConnect')
    listener.server.replace(serverPlan({ hosts, identity: RSA_SERVER }))
    const fresh = nodeClient(listener.port)
    await once(fresh.socket, 'secureConnect')
    assert.equal((fresh.socket.getPeerCertificate() as { modulus?: string }).modulus?.length, 512)
    old.socket.write('ping')
    await eventually('the answer', () => old.text === 'pong')
    old.socket.destroy()
    fresh.socket.destroy()
  })
}

const BAD_PLANS: readonly (readonly [name: string, changes: Partial<TlsServerPlan>])[] = [
  ['the key of another certificate', { identity: { cert: SERVER.cert, key: EXPIRED.key } }],
  ['a certificate that is none', { identity: { cert: 'no PEM', key: SERVER.key } }],
  ['a key that is none', { identity: { cert: SERVER.cert, key: 'no PEM' } }],
  ['a suite that is none', { ciphers: 'NO-SUCH-SUITE' }],
  ['a bad virtual host', { hosts: [{ ...HOST, identity: { cert: SERVER.cert, key: CA.key }, names: ['x.test'] }] }],
  ['a bad trust store', { verifyClient: 'require', ca: [CA.cert, 'no PEM'] }],
  ['an empty trust store', { verifyClient: 'optional', ca: [] }],
  ['ticket keys of the wrong length', { ticketKeys: new Uint8Array(47) }],
]
for (const [name, changes] of BAD_PLANS) {
  test(`a plan with ${name} throws and changes nothing`, async () => {
    assert.throws(() => tls.server(serverPlan(changes)))
    const listener = await listen()
    assert.throws(() => listener.server.replace(serverPlan(changes)))
    assert.equal(await isServed(listener.port), true)
  })
}

// ---- what is no handshake -------------------------------------------------------------------------------------------

const GARBAGE: readonly (readonly [name: string, bytes: Buffer, cause: RegExp])[] = [
  ['plain HTTP', Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'), /plain HTTP came where TLS is spoken/],
  ['a plain CONNECT', Buffer.from('CONNECT x:1 HTTP/1.1\r\n\r\n'), /plain CONNECT came where TLS is spoken/],
  ['random bytes', Buffer.alloc(600, 0xa5), /handshake: /],
  [
    'a handshake record of nonsense',
    Buffer.concat([Buffer.from('1603010100', 'hex'), Buffer.alloc(256, 9)]),
    /handshake: /,
  ],
  ['an alert', Buffer.from('15030100020228', 'hex'), /handshake: /],
  ['records of no bytes', Buffer.from('1603010000'.repeat(50), 'hex'), /handshake: /],
]
for (const hosts of [[], HOSTS]) {
  for (const [name, bytes, cause] of GARBAGE) {
    test(`${name} instead of a ClientHello is refused (${hosts.length} hosts)`, async () => {
      const listener = await listen({ hosts })
      const client = connectTcp(listener.port, '127.0.0.1')
      client.on('error', () => undefined)
      client.resume()
      client.write(bytes)
      const owner = await listener.next()
      assert.match(await owner.called('REFUSED'), cause)
      await eventually('the end', () => client.closed)
      assert.equal(owner.calls.length, 1)
      assert.equal(await isServed(listener.port), true)
    })
  }

  for (const how of ['end', 'resetAndDestroy'] as const) {
    test(`a client that says nothing and leaves by ${how} is reported (${hosts.length} hosts)`, async () => {
      const listener = await listen({ hosts })
      const client = await tcpClient(listener.port)
      const owner = await listener.next()
      for (let i = 0; i < 20; i++) await turn()
      assert.deepEqual(owner.calls, [])
      client[how]()
      const told = how === 'end' ? 'the peer broke it off' : 'the peer broke it off (ECONNRESET)'
      assert.equal(await owner.called('REFUSED'), `REFUSED handshake: ${told}`)
    })
  }

  test(`the handshake of a silent client can be cancelled visibly (${hosts.length} hosts)`, async () => {
    const listener = await listen({ hosts })
    const client = await tcpClient(listener.port)
    const owner = await listener.next()
    client.resume()
    owner.socket.destroy()
    await eventually('the end', () => client.closed)
    assert.deepEqual(owner.calls, [])
  })

  test(`a handshake that comes byte by byte succeeds (${hosts.length} hosts)`, async () => {
    const listener = await listen({ hosts })
    const port = await trickle(listener.port)
    assert.equal(await isServed(port, { servername: 'localhost' }), true)
  })
}

/** A listener that hands every byte on by itself, in both directions. */
async function trickle(port: number): Promise<number> {
  const { createServer: createTcp } = await import('node:net')
  const between = createTcp(from => {
    const to = connectTcp(port, '127.0.0.1')
    for (const [source, sink] of [
      [from, to],
      [to, from],
    ] as const) {
      source.on('error', () => undefined)
      source.on('data', async (bytes: Buffer) => {
        source.pause()
        for (const byte of bytes) {
          sink.write(Buffer.of(byte))
          await turn()
        }
        source.resume()
      })
      source.on('end', () => sink.end())
    }
  })
  between.listen(0, '127.0.0.1')
  between.unref()
  await once(between, 'listening')
  return (between.address() as { port: number }).port
}
