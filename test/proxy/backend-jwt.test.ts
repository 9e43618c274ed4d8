/** The backend JWT that replaces the token of the client, and access tokens bound to a certificate. */
import assert from 'node:assert/strict'
import { generateKeyPairSync, verify, X509Certificate } from 'node:crypto'
import { after, test } from 'node:test'
import { StrictBackend } from '../harness/strict-backend.ts'
import { NO_ACCESS } from '../harness/api-plan.ts'
import { CA, CLIENT, INTERMEDIATE_CLIENT } from '../harness/certificates.ts'
import { planGateway, startGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'
import { OWN_ISSUER, ScriptedControl } from '../harness/scripted-control.ts'
import { connectSecured, serverPlan } from '../harness/secured-peers.ts'
import { valuesOf } from '../harness/strict-http.ts'

const API = 'orders:1.0.0'
const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const signer = { key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })), kid: 'k', x5t: '', x5tS256: '' }
const plannedAuth = planGateway([]).plan.auth
const backendJwt = { ...plannedAuth.backendJwt, isEnabled: true, signer }
const backend = await StrictBackend.listen()
const access = { ...NO_ACCESS, api: API, schemes: ['oauth2'] } as const
const gateway = await startGateway(
  [{ context: '/orders', port: backend.port, overrides: { name: 'orders', access } }],
  {
    kinds: ['http', 'https'],
    hasFilterChain: true,
    tlsServer: serverPlan({ verifyClient: 'optional', ca: [CA.cert] }),
    authChanges: { issuers: [OWN_ISSUER], backendJwt },
  },
)
const control = new ScriptedControl(gateway.authState)
control.subscribe('shop', API)
after(() => {
  gateway.stop()
  backend.close()
})

async function request(lines: string): Promise<string> {
  const peer = await connectPeer(gateway.port)
  peer.send(`GET /orders/a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${lines}\r\n`)
  await peer.untilEnd()
  return peer.text
}

function forwarded(name: string): readonly string[] {
  return valuesOf(backend.requests.at(-1)!.lines, name)
}

function claimsOf(token: string): Readonly<Record<string, unknown>> {
  const [header, payload, signature] = token.split('.')
  assert.ok(verify('RSA-SHA256', Buffer.from(`${header}.${payload}`), publicKey, Buffer.from(signature!, 'base64')))
  return JSON.parse(Buffer.from(payload!, 'base64').toString())
}

test('the backend gets a JWT of the caller, and neither the token nor forged fields of the client', async () => {
  const forgedFields = 'X-JWT-Assertion: forged\r\nX-Client-Cert: forged\r\n'
  const lines = `Authorization: Bearer ${control.token('shop')}\r\n${forgedFields}`
  assert.match(await request(lines), /^HTTP\/1\.1 200/)
  const [token, ...more] = forwarded('x-jwt-assertion')
  assert.deepEqual([more, forwarded('authorization'), forwarded('x-client-cert')], [[], [], []])
  const { iss, sub, 'http://wso2.org/claims/applicationname': application } = claimsOf(token!)
  assert.deepEqual([iss, sub, application], ['wso2.org/products/am', 'alice', 'shop'])
})

test('the backend JWT of a token is reused until the subscription of its own application changes', async () => {
  const lines = `Authorization: Bearer ${control.token('shop')}\r\n`
  await request(lines)
  const [first] = forwarded('x-jwt-assertion')
  control.subscribe('another', API)
  await request(lines)
  assert.deepEqual(forwarded('x-jwt-assertion'), [first])
  control.update({
    subscriptions: [{ id: `shop ${API}`, applicationId: 'shop', api: API, tier: 'Silver', status: 'ACTIVE' }],
  })
  await request(lines)
  const [next] = forwarded('x-jwt-assertion')
  assert.equal(claimsOf(next!)['http://wso2.org/claims/tier'], 'Silver')
})

test('the backend JWT expires with the token of the client', async () => {
  const exp = Math.floor(Date.now() / 1000) + 60
  await request(`Authorization: Bearer ${control.token('shop', { exp })}\r\n`)
  assert.equal(claimsOf(forwarded('x-jwt-assertion')[0]!).exp, exp)
})

test('a refused client causes no backend JWT and no backend request', async () => {
  const before = backend.requests.length
  assert.match(await request(`Authorization: Bearer ${control.token('shop', { exp: 1 })}\r\n`), /"code":900901/)
  assert.equal(backend.requests.length, before)
})

test('a reload that switches the backend JWT off still strips the field of the client', async () => {
  await gateway.deploy({ auth: { ...plannedAuth, issuers: [OWN_ISSUER] } })
  const lines = `Authorization: Bearer ${control.token('shop')}\r\nX-JWT-Assertion: forged\r\n`
  assert.match(await request(lines), /^HTTP\/1\.1 200/)
  assert.deepEqual(forwarded('x-jwt-assertion'), [])
})

const BOUND: readonly (readonly [client: string, options: object, outcome: RegExp])[] = [
  ['the client with the bound certificate', CLIENT, /^HTTP\/1\.1 200/],
  ['a client with another certificate of the same authority', INTERMEDIATE_CLIENT, /"code":900901/],
  ['a client without a certificate', {}, /"code":900901/],
]
test('RFC 8705 3: a bound token is accepted with its certificate only, never without TLS', async () => {
  const { fingerprint256 } = new X509Certificate(CLIENT.cert)
  const thumbprint = Buffer.from(fingerprint256.replaceAll(':', ''), 'hex').toString('base64url')
  const field = `Authorization: Bearer ${control.token('shop', { cnf: { 'x5t#S256': thumbprint } })}\r\n`
  for (const [name, options, outcome] of [...BOUND, ...BOUND]) {
    const { peer } = await connectSecured(gateway.ports[1]!, options)
    peer.send(`GET /orders/a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${field}\r\n`)
    await peer.untilEnd()
    assert.match(peer.text, outcome, name)
  }
  assert.match(await request(field), /"code":900901/)
})
