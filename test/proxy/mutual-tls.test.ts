/**
 * Client certificates: the thumbprint that filters know, and APIs with the scheme `mutual_tls`, alone, as an
 * alternative to OAuth 2, and in addition to it.
 */
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { after, beforeEach, test } from 'node:test'
import type { ConnectionOptions } from 'node:tls'
import type { AccessPlan } from '../../src/auth/auth-plan.ts'
import { matchesClientCertificate } from '../../src/auth/mutual-tls.ts'
import type { Caller } from '../../src/proxy/exchange/caller.ts'
import type { Filter } from '../../src/proxy/exchange/contract.ts'
import type { TlsIdentity, TlsServerPlan } from '../../src/socket/tls.ts'
import { NO_ACCESS } from '../harness/api-plan.ts'
import { CA, CLIENT, INTERMEDIATE_CLIENT, OTHER_CA, OTHER_CLIENT } from '../harness/certificates.ts'
import { startGateway, type TestApi, type TestGateway } from '../harness/gateway.ts'
import { eventually } from '../harness/peers.ts'
import { connectSecured, serverPlan } from '../harness/secured-peers.ts'
import { StrictBackend } from '../harness/strict-backend.ts'

const backend = await StrictBackend.listen()
const gateways: TestGateway[] = []
after(() => {
  for (const gateway of gateways) gateway.stop()
  backend.close()
})

function thumbprintOf({ cert }: TlsIdentity): string {
  return Buffer.from(new X509Certificate(cert).fingerprint256.replaceAll(':', ''), 'hex').toString('base64url')
}

// ---- thumbprints ---------------------------------------------------------------------------------------------------

const thumbprints: string[] = []
const recordThumbprint: Filter = {
  name: 'record-thumbprint',
  request({ peer }) {
    thumbprints.push(peer.peerThumbprint)
    return undefined
  },
}
beforeEach(() => {
  thumbprints.length = 0
})

async function gatewayWith(
  changes: Partial<TlsServerPlan>,
  kinds: readonly ('http' | 'https')[] = ['https'],
): Promise<TestGateway> {
  const tlsServer = serverPlan({ ca: [CA.cert, OTHER_CA.cert], ...changes })
  const apis = [{ context: '/t', port: backend.port }]
  const gateway = await startGateway(apis, { kinds, tlsServer, filters: [recordThumbprint] })
  gateways.push(gateway)
  return gateway
}

const GET = 'GET /t/a HTTP/1.1\r\nHost: localhost\r\n\r\n'

/** Sends two requests on a new connection; returns its TLS session. */
async function sendTwice(port: number, options: ConnectionOptions): Promise<{ readonly session?: Buffer }> {
  const { peer, tls } = await connectSecured(port, options)
  // In TLS 1.2 the session comes with the handshake.
  let session: Buffer | undefined = options.maxVersion === 'TLSv1.2' ? tls.getSession() : undefined
  tls.on('session', (next: Buffer) => {
    session = next
  })
  for (let i = 0; i < 2; i++) {
    peer.send(GET)
    await peer.untilText('\r\n\r\nok')
    peer.take()
  }
  if (options.session === undefined) await eventually('a session', () => session !== undefined)
  else assert.equal(tls.isSessionReused(), true)
  tls.destroy()
  return session === undefined ? {} : { session }
}

for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
  for (const [name, identity] of [
    ['of the trusted authority', CLIENT],
    ['of another trusted authority', OTHER_CLIENT],
    ['of an intermediate authority', INTERMEDIATE_CLIENT],
  ] as const) {
    test(`RFC 8705 3.1, ${maxVersion}: a thumbprint of a certificate ${name} is known and resumed`, async () => {
      const expected = thumbprintOf(identity)
      const { port } = await gatewayWith({ verifyClient: 'optional' })
      const { session } = await sendTwice(port, { ...identity, maxVersion })
      await sendTwice(port, { maxVersion, session: session! })
      assert.deepEqual(thumbprints, [expected, expected, expected, expected])
    })
  }
}

test('a client without a certificate, or with one that was not requested, has no thumbprint', async () => {
  await sendTwice((await gatewayWith({ verifyClient: 'optional' })).port, {})
  await sendTwice((await gatewayWith({ verifyClient: 'none', ca: [] })).port, CLIENT)
  assert.deepEqual(thumbprints, ['', '', '', ''])
})

test('a client without TLS has no thumbprint', async () => {
  const { ports } = await gatewayWith({ verifyClient: 'optional' }, ['http', 'https'])
  const response = await fetch(`http://127.0.0.1:${ports[0]}/t/a`)
  await response.text()
  assert.deepEqual(thumbprints, [''])
})

// ---- APIs with mutual_tls ------------------------------------------------------------------------------------------

const callers: (Caller | null)[] = []
const matches: boolean[] = []
const recordCaller: Filter = {
  name: 'record-caller',
  request(exchange) {
    callers.push(exchange.caller)
    matches.push(matchesClientCertificate(exchange, thumbprintOf(CLIENT)), matchesClientCertificate(exchange, ''))
    return undefined
  },
}
beforeEach(() => {
  callers.length = 0
  matches.length = 0
})

const certificates = [{ thumbprint: thumbprintOf(CLIENT), alias: 'shop', tier: 'Gold' }]
const SCOPED = { template: '/*', verb: 'GET', authType: 'Application User', tier: 'Unlimited', scopes: ['a'] } as const

function api(context: string, access: Partial<AccessPlan>): TestApi {
  const overrides = { access: { ...NO_ACCESS, certificates, ...access }, resources: [SCOPED] }
  return { context, port: backend.port, overrides }
}

const mutual = await startGateway(
  [
    api('/alone', { schemes: ['mutual_tls'] }),
    api('/either', { schemes: ['mutual_tls', 'oauth2'] }),
    api('/both', { schemes: ['mutual_tls', 'oauth2'], requiresCertificate: true, requiresOther: true }),
  ],
  {
    kinds: ['https'],
    hasFilterChain: true,
    filters: [recordCaller],
    tlsServer: serverPlan({ verifyClient: 'optional', ca: [CA.cert, OTHER_CA.cert] }),
  },
)
gateways.push(mutual)

/** Status and fault code of a request; the code is 0 for a response of the backend. */
async function outcome(path: string, identity: TlsIdentity | null): Promise<readonly [status: number, code: number]> {
  const { peer } = await connectSecured(mutual.port, identity ?? {})
  peer.send(`GET ${path}/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
  await peer.untilEnd()
  return [Number(/^HTTP\/1\.1 (\d+)/.exec(peer.text)![1]), Number(/"code":(\d+)/.exec(peer.text)?.[1] ?? 0)]
}

/** Client, its certificate, and the fault codes (0: served) at /alone, /either and /both. */
const CASES: readonly (readonly [client: string, TlsIdentity | null, number, number, number])[] = [
  ['a client with a listed certificate', CLIENT, 0, 0, 900902],
  ['a client with an unlisted certificate of the same authority', INTERMEDIATE_CLIENT, 900901, 900902, 900901],
  ['a client with a certificate of another authority', OTHER_CLIENT, 900901, 900902, 900901],
  ['a client without a certificate', null, 900902, 900902, 900902],
]
for (const [client, identity, alone, either, both] of CASES) {
  for (const [path, schemes, code] of [
    ['/alone', 'only mutual_tls', alone],
    ['/either', 'mutual_tls or oauth2', either],
    ['/both', 'both mutual_tls and oauth2', both],
  ] as const) {
    const result = code === 0 ? 'is served' : `gets ${code}`
    test(`${client} and no token ${result} by an API that requires ${schemes}`, async () => {
      assert.deepEqual(await outcome(path, identity), [code === 0 ? 200 : 401, code])
    })
  }
}

test('a client with a listed certificate is a caller with the alias and the tier of the list', async () => {
  await outcome('/alone', CLIENT)
  await outcome('/alone', CLIENT)
  const [caller, again] = callers
  assert.equal(caller, again)
  const { method, user, subscriptionTier, application, keyType } = caller!
  assert.deepEqual(
    { method, user, subscriptionTier, application, keyType },
    { method: 'mutual_tls', user: 'shop', subscriptionTier: 'Gold', application: null, keyType: 'PRODUCTION' },
  )
})

test('RFC 8705 3: a thumbprint in a token matches only the certificate of the connection', async () => {
  await outcome('/alone', CLIENT)
  assert.deepEqual(matches, [true, false])
})
