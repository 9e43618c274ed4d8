/** TLS backends: refused certificates, failed handshakes, incomplete responses, and reuse of connections. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { after, test } from 'node:test'
import type { TlsOptions } from 'node:tls'
import type { TlsClientPlan } from '../../src/socket/tls.ts'
import { takeResponse } from '../harness/responses.ts'
import { CA, CLIENT, EXPIRED, OTHER_CA, SELF_SIGNED, SERVER, VIRTUAL } from '../harness/certificates.ts'
import { countedFailures, failureLine } from '../harness/failures.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'
import { connectPeer, eventually, type Peer } from '../harness/peers.ts'
import { clientPlan, SECURED, SecuredBackend, type SecuredPeer } from '../harness/secured-peers.ts'

const closing: { close(): unknown }[] = []
after(() => {
  for (const it of closing) it.close()
})

async function backend(options: TlsOptions = {}, onPeer?: (peer: Peer) => void): Promise<SecuredBackend> {
  const made = await SecuredBackend.listen(options, onPeer)
  closing.push(made)
  return made
}

/** A gateway with a plain listener and this TLS backend. */
async function gatewayTo(
  port: number,
  plan: Partial<TlsClientPlan> = {},
  http: Readonly<Record<string, unknown>> = {},
): Promise<TestGateway> {
  const apis = [{ context: '/t', host: 'localhost', port, route: SECURED }]
  const made = await startGateway(apis, { http, tlsClients: { default: clientPlan(plan) } })
  closing.push({ close: () => made.stop() })
  return made
}

const GET = 'GET /t/it HTTP/1.1\r\nHost: a\r\n\r\n'
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

function respondOk(peer: Peer): void {
  void peer.untilText('\r\n\r\n').then(
    () => peer.send(OK),
    () => undefined,
  )
}

// ---- refused backends ----------------------------------------------------------------------------------------------

type Refused = readonly [name: string, options: TlsOptions, plan: Partial<TlsClientPlan>, cause: RegExp, seen: string]
const CERTIFICATE = 'The certificate of the backend is not accepted'
const HANDSHAKE = 'The TLS handshake with the backend failed'
const REFUSED: readonly Refused[] = [
  [
    'a certificate of an unknown authority',
    {},
    { ca: [OTHER_CA.cert] },
    /^certificate of localhost: .*its issuer is not in the trust store \(UNABLE_TO_GET_ISSUER_CERT_LOCALLY\)$/,
    `${CERTIFICATE} (UNABLE_TO_GET_ISSUER_CERT_LOCALLY)`,
  ],
  [
    'an expired certificate',
    EXPIRED,
    {},
    /^certificate of localhost: has expired \(CERT_HAS_EXPIRED, valid to 2021-01-01\)$/,
    `${CERTIFICATE} (CERT_HAS_EXPIRED)`,
  ],
  [
    'a certificate of another host',
    VIRTUAL,
    {},
    /^certificate of localhost: is not for this host: .*shop\.example\.test \(ERR_TLS_CERT_ALTNAME_INVALID\)$/,
    `${CERTIFICATE} (ERR_TLS_CERT_ALTNAME_INVALID)`,
  ],
  [
    'a self-signed certificate',
    SELF_SIGNED,
    {},
    /^certificate of localhost: self-signed, not in the trust store \(DEPTH_ZERO_SELF_SIGNED_CERT\)$/,
    `${CERTIFICATE} (DEPTH_ZERO_SELF_SIGNED_CERT)`,
  ],
  [
    'a backend with TLS 1.0 only',
    { minVersion: 'TLSv1', maxVersion: 'TLSv1', ciphers: 'ALL:@SECLEVEL=0' },
    {},
    /^handshake: no shared protocol version/,
    HANDSHAKE,
  ],
  [
    'a backend with TLS 1.2 that requires a client certificate',
    { maxVersion: 'TLSv1.2', requestCert: true, ca: CA.cert },
    {},
    /^handshake: .*(?:certificate of ours|broke it off)/,
    HANDSHAKE,
  ],
  [
    'a backend with HTTP/2 only',
    { ALPNProtocols: ['h2'] },
    {},
    /^handshake: the peer does not offer http\/1\.1/,
    HANDSHAKE,
  ],
]

for (const [name, options, plan, cause, seen] of REFUSED) {
  test(`${name} causes 502 with 101503, with the cause in the log and its kind in the fault`, async () => {
    const { port } = await backend(options)
    const gateway = await gatewayTo(port, plan)
    const client = await connectPeer(gateway.port)
    for (let i = 0; i < 2; i++) {
      const from = gateway.reports.length
      client.send(GET)
      const { status, body } = await takeResponse(client)
      assert.equal(status, 502)
      const { fault } = JSON.parse(body)
      assert.equal(fault.code, 101503)
      assert.equal(fault.message, 'Error connecting to the backend')
      assert.ok(fault.description.startsWith(seen), fault.description)
      // Names, dates and addresses are in the log only.
      assert.doesNotMatch(body, /localhost|example|2021|127\.0/)
      const { level, fields } = failureLine(gateway, from)
      assert.equal(level, 'warn')
      assert.match(String(fields.CAUSE_OF_ERROR), cause)
      assert.equal(fields.ERROR_CODE, 101503)
      assert.equal(fields.TARGET_HOST, 'localhost')
      assert.equal(countedFailures(gateway, 101503, 0), i + 1)
    }
    assert.equal(gateway.metrics().counts.targetsOpen, 0)
    client.destroy()
  })
}

test('a backend with TLS 1.3 that requires a client certificate causes 101504 after the request is sent', async () => {
  const { port } = await backend({ minVersion: 'TLSv1.3', requestCert: true, ca: CA.cert })
  const gateway = await gatewayTo(port)
  const client = await connectPeer(gateway.port)
  client.send(GET)
  const { status, body } = await takeResponse(client)
  assert.equal(status, 502)
  const { code, description } = JSON.parse(body).fault
  assert.equal(code, 101501 + 3)
  assert.equal(description, 'TLS with the backend failed (ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED)')
  const { fields } = failureLine(gateway, 0)
  assert.match(
    String(fields.CAUSE_OF_ERROR),
    /^TLS: the peer asks for a certificate of ours \(ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED\)/,
  )
  client.destroy()
})

test('a client certificate that the backend requires is sent', async () => {
  const { port, connections } = await backend({ requestCert: true, ca: CA.cert }, respondOk)
  const gateway = await gatewayTo(port, { identity: CLIENT })
  const client = await connectPeer(gateway.port)
  client.send(GET)
  assert.equal((await takeResponse(client)).status, 200)
  assert.equal(connections[0]!.tls.getPeerCertificate().subject.CN, 'Test Client')
  client.destroy()
})

const NO_TLS: readonly (readonly [string, (socket: import('node:net').Socket) => void, number, RegExp])[] = [
  [
    'responds in plain HTTP',
    socket => void socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
    101503,
    /^handshake: the peer does not speak TLS here, or only a version that is not allowed/,
  ],
  [
    'sends bytes first',
    socket => void socket.write('220 ready\r\n'),
    101503,
    /does not speak TLS here|bytes before any/,
  ],
  ['closes at once', socket => void socket.end(), 101503, /broke it off|closed while it was being set up/],
  ['closes on the first bytes', socket => void socket.once('data', () => socket.end()), 101503, /broke it off/],
  ['resets', socket => void socket.once('data', () => socket.resetAndDestroy()), 101503, /broke it off \(ECONNRESET\)/],
  ['does not respond', () => undefined, 101508, /^no end of the TLS handshake within 300 ms$/],
]
for (const [name, act, code, cause] of NO_TLS) {
  test(`a backend without TLS that ${name} causes ${code}`, async () => {
    const server = createServer({ allowHalfOpen: true }, socket => {
      socket.on('error', () => undefined)
      socket.on('end', () => socket.end())
      act(socket)
    })
    closing.push(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    const gateway = await gatewayTo(port, {}, { 'http.connection.timeout': code === 101508 ? 300 : 10_000 })
    const client = await connectPeer(gateway.port)
    client.send(GET)
    const { status, body } = await takeResponse(client)
    assert.equal(status, code === 101508 ? 504 : 502)
    assert.equal(JSON.parse(body).fault.code, code)
    assert.match(String(failureLine(gateway, 0).fields.CAUSE_OF_ERROR), cause)
    assert.equal(gateway.metrics().counts.targetsOpen, 0)
    client.destroy()
  })
}

// ---- incomplete responses ------------------------------------------------------------------------------------------

const HEADS: readonly (readonly [string, string])[] = [
  ['with Content-Length', 'Content-Length: 10\r\n\r\nhello'],
  ['in chunks', 'Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n'],
  ['that ends with its connection', '\r\nhello'],
]
const BREAKS: readonly (readonly [string, (connection: SecuredPeer) => void])[] = [
  ['a TCP FIN without close_notify', ({ tcp }) => void tcp.end()],
  ['a reset', ({ tcp }) => void tcp.resetAndDestroy()],
  ['close_notify', ({ tls }) => void tls.end()],
]
for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  for (const [body, head] of HEADS) {
    for (const [end, act] of BREAKS) {
      const isComplete = end === 'close_notify' && body === 'that ends with its connection'
      const result = isComplete ? 'complete' : 'incomplete'
      test(`RFC 8446 6.1, ${version}: a body ${body} followed by ${end} is ${result}`, async () => {
        const at = await backend({ maxVersion: version })
        const gateway = await gatewayTo(at.port)
        const client = await connectPeer(gateway.port)
        client.send(GET)
        const connection = await at.next()
        await connection.peer.untilText('\r\n\r\n')
        connection.peer.send(`HTTP/1.1 200 OK\r\n${head}`)
        await client.untilText('hello')
        act(connection)
        if (isComplete) {
          await client.untilText('\r\n0\r\n\r\n')
          assert.equal(client.ending, '')
        } else {
          assert.equal(await client.untilEnd(), 'RST')
          assert.doesNotMatch(client.text, /\r\n0\r\n\r\n$/)
        }
        await eventually('the end of the backend connection', () => gateway.metrics().counts.targetsOpen === 0)
        client.destroy()
      })
    }
  }
}

// ---- connection pools ----------------------------------------------------------------------------------------------

test('RFC 8446 2.2: a connection is reused without a handshake, and a new connection resumes the session', async () => {
  const at = await backend({}, peer => void respondToAll(peer))
  const gateway = await gatewayTo(at.port)
  const client = await connectPeer(gateway.port)
  for (let i = 0; i < 5; i++) {
    client.send(GET)
    assert.equal((await takeResponse(client)).body, 'ok')
  }
  assert.equal(at.accepted, 1)
  at.connections[0]!.tls.end()
  await eventually('the end of the backend connection', () => gateway.metrics().counts.targetsOpen === 0)
  client.send(GET)
  assert.equal((await takeResponse(client)).body, 'ok')
  assert.equal(at.connections[1]!.tls.isSessionReused(), true)
  client.destroy()
})

async function respondToAll(peer: Peer): Promise<void> {
  while (!peer.isClosed && peer.ending === '') {
    if (peer.text.includes('\r\n\r\n')) {
      peer.take()
      peer.send(OK)
    }
    await peer.changed()
  }
}

const IDLE_ENDS: readonly (readonly [string, (connection: SecuredPeer) => void])[] = [
  ['sends close_notify and FIN', ({ tls }) => void tls.end()],
  ['sends FIN without close_notify', ({ tcp }) => void tcp.end()],
  ['resets', ({ tcp }) => void tcp.resetAndDestroy()],
  [
    'sends an unrequested response',
    ({ tls }) => void tls.write('HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n'),
  ],
]
for (const [name, end] of IDLE_ENDS) {
  test(`an idle connection on which the backend ${name} is not reused, without a warning`, async () => {
    const at = await backend()
    const gateway = await gatewayTo(at.port)
    const client = await connectPeer(gateway.port)
    client.send(GET)
    const connection = await at.next()
    await connection.peer.untilText('\r\n\r\n')
    connection.peer.send(OK)
    await takeResponse(client)
    end(connection)
    await eventually('the end of the backend connection', () => gateway.metrics().counts.targetsOpen === 0)
    client.send(GET)
    const next = await at.next()
    await next.peer.untilText('\r\n\r\n')
    next.peer.send(OK)
    assert.equal((await takeResponse(client)).status, 200)
    assert.deepEqual(
      gateway.reports.filter(({ level }) => level !== 'debug'),
      [],
    )
    client.destroy()
  })

  if (name === 'sends an unrequested response') continue
  test(`RFC 9110 9.2.2: a request to a backend that ${name} on a pooled connection is retried`, async () => {
    const at = await backend()
    const gateway = await gatewayTo(at.port)
    const client = await connectPeer(gateway.port)
    client.send(GET)
    const connection = await at.next()
    await connection.peer.untilText('\r\n\r\n')
    connection.peer.take()
    connection.peer.send(OK)
    await takeResponse(client)
    client.send(GET)
    await connection.peer.untilText('\r\n\r\n')
    end(connection)
    const next = await at.next()
    await next.peer.untilText('\r\n\r\n')
    next.peer.send(OK)
    assert.equal((await takeResponse(client)).status, 200)
    assert.equal(gateway.metrics().counts.retries, 1)
    client.destroy()
  })
}

test('a reload with another trust store closes idle connections', async () => {
  const at = await backend({}, peer => void respondToAll(peer))
  const gateway = await gatewayTo(at.port)
  const client = await connectPeer(gateway.port)
  client.send(GET)
  assert.equal((await takeResponse(client)).status, 200)
  await gateway.deploy({ tlsClients: { default: clientPlan({ ca: [OTHER_CA.cert] }) } })
  client.send(GET)
  assert.equal((await takeResponse(client)).status, 502)
  await gateway.deploy({ tlsClients: { default: clientPlan({ ca: [OTHER_CA.cert, CA.cert] }) } })
  client.send(GET)
  assert.equal((await takeResponse(client)).status, 200)
  client.destroy()
})

test('a reload with another trust store closes a busy connection after its response', async () => {
  const at = await backend()
  const gateway = await gatewayTo(at.port)
  const client = await connectPeer(gateway.port)
  client.send(GET)
  const { peer } = await at.next()
  await peer.untilText('\r\n\r\n')
  await gateway.deploy({ tlsClients: { default: clientPlan({ ca: [OTHER_CA.cert] }) } })
  peer.send(OK)
  assert.equal((await takeResponse(client)).status, 200)
  client.send(GET)
  assert.equal((await takeResponse(client)).status, 502)
  client.destroy()
})

test('a TLS profile of one backend applies to this backend only', async () => {
  const at = await backend({ ...SERVER }, peer => void respondToAll(peer))
  const apis = [
    { context: '/one', host: 'localhost', port: at.port, route: SECURED },
    { context: '/two', host: '127.0.0.1', port: at.port, route: SECURED },
  ]
  const tlsClients = {
    default: clientPlan(),
    [`127.0.0.1:${at.port}`]: clientPlan({ ca: [OTHER_CA.cert] }),
  }
  const gateway = await startGateway(apis, { tlsClients })
  closing.push({ close: () => gateway.stop() })
  const client = await connectPeer(gateway.port)
  client.send('GET /one HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal((await takeResponse(client)).status, 200)
  client.send('GET /two HTTP/1.1\r\nHost: a\r\n\r\n')
  assert.equal((await takeResponse(client)).status, 502)
  client.destroy()
})
