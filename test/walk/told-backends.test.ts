/** From a client's token to the one that its backend gets, through all handlers; tokens bound to a certificate. */
import assert from 'node:assert/strict'
import { generateKeyPairSync, verify, X509Certificate } from 'node:crypto'
import { after, test } from 'node:test'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { NO_ACCESS } from '../harness/api-plan.ts'
import { CA, CLIENT, INTERMEDIATE_CLIENT } from '../harness/certificates.ts'
import { planGateway, startGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'
import { OWN_ISSUER, ScriptedAuthority } from '../harness/scripted-authority.ts'
import { connectSecured, serverPlan } from '../harness/secured-peers.ts'
import { valuesOf } from '../harness/strict-http.ts'

const API = 'told:1.0.0'
const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const signer = { key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })), kid: 'k', x5t: '', x5tS256: '' }
const identity = planGateway([]).plan.identity
const backendJwt = { ...identity.backendJwt, isMade: true, signer }
const backend = await AnsweringBackend.listen()
const access = { ...NO_ACCESS, subject: API, schemes: ['oauth2'] } as const
const gateway = await startGateway(
  [{ context: '/told', port: backend.port, unlike: { name: 'told', access } }],
  {},
  null,
  [],
  {
    kinds: ['http', 'https'],
    isChained: true,
    tlsServer: serverPlan({ verifyClient: 'optional', ca: [CA.cert] }),
    identityChanges: { issuers: [OWN_ISSUER], backendJwt },
  },
)
const authority = new ScriptedAuthority(gateway.identity)
authority.subscribe('shop', API)
after(() => {
  gateway.stop()
  backend.close()
})

async function ask(lines: string): Promise<string> {
  const peer = await connectPeer(gateway.port)
  peer.send(`GET /told/a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${lines}\r\n`)
  await peer.untilEnd()
  return peer.text
}

function got(name: string): readonly string[] {
  return valuesOf(backend.requests.at(-1)!.lines, name)
}

function claimsOf(token: string): Readonly<Record<string, unknown>> {
  const [header, payload, signature] = token.split('.')
  assert.ok(verify('RSA-SHA256', Buffer.from(`${header}.${payload}`), publicKey, Buffer.from(signature!, 'base64')))
  return JSON.parse(Buffer.from(payload!, 'base64').toString())
}

test("the backend learns who calls, and gets neither the client's token nor what it said for itself", async () => {
  const forged = 'X-JWT-Assertion: forged\r\nX-Client-Cert: forged\r\n'
  const lines = `Authorization: Bearer ${authority.token('shop')}\r\n${forged}`
  assert.match(await ask(lines), /^HTTP\/1\.1 200/)
  const [token, ...more] = got('x-jwt-assertion')
  assert.deepEqual([more, got('authorization'), got('x-client-cert')], [[], [], []])
  const { iss, sub, 'http://wso2.org/claims/applicationname': application } = claimsOf(token!)
  assert.deepEqual([iss, sub, application], ['wso2.org/products/am', 'alice', 'shop'])
})

test('one token has one, which news about others do not replace, and news about itself do', async () => {
  const lines = `Authorization: Bearer ${authority.token('shop')}\r\n`
  await ask(lines)
  const [first] = got('x-jwt-assertion')
  authority.subscribe('another', API)
  await ask(lines)
  assert.deepEqual(got('x-jwt-assertion'), [first])
  authority.tell({
    subscriptions: [{ id: `shop ${API}`, applicationId: 'shop', api: API, tier: 'Silver', status: 'ACTIVE' }],
  })
  await ask(lines)
  const [next] = got('x-jwt-assertion')
  assert.equal(claimsOf(next!)['http://wso2.org/claims/tier'], 'Silver')
})

test('it ends with the token of the client', async () => {
  const exp = Math.floor(Date.now() / 1000) + 60
  await ask(`Authorization: Bearer ${authority.token('shop', { exp })}\r\n`)
  assert.equal(claimsOf(got('x-jwt-assertion')[0]!).exp, exp)
})

test('a refused client costs no token, and nothing reaches the backend', async () => {
  const before = backend.requests.length
  assert.match(await ask(`Authorization: Bearer ${authority.token('shop', { exp: 1 })}\r\n`), /"code":900901/)
  assert.equal(backend.requests.length, before)
})

test('a reload that switches it off leaves the field to nobody', async () => {
  await gateway.deploy({ identity: { ...identity, issuers: [OWN_ISSUER] } })
  const lines = `Authorization: Bearer ${authority.token('shop')}\r\nX-JWT-Assertion: forged\r\n`
  assert.match(await ask(lines), /^HTTP\/1\.1 200/)
  assert.deepEqual(got('x-jwt-assertion'), [])
})

const BOUND: readonly (readonly [who: string, options: object, outcome: RegExp])[] = [
  ['the client that it was given to', CLIENT, /^HTTP\/1\.1 200/],
  ['another one of the same authority', INTERMEDIATE_CLIENT, /"code":900901/],
  ['a client without a certificate', {}, /"code":900901/],
]
test('RFC 8705 3: a bound token is good with its certificate alone, warm as well, and not without TLS', async () => {
  const { fingerprint256 } = new X509Certificate(CLIENT.cert)
  const thumbprint = Buffer.from(fingerprint256.replaceAll(':', ''), 'hex').toString('base64url')
  const field = `Authorization: Bearer ${authority.token('shop', { cnf: { 'x5t#S256': thumbprint } })}\r\n`
  for (const [who, options, outcome] of [...BOUND, ...BOUND]) {
    const { peer } = await connectSecured(gateway.ports[1]!, options)
    peer.send(`GET /told/a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${field}\r\n`)
    await peer.untilEnd()
    assert.match(peer.text, outcome, who)
  }
  assert.match(await ask(field), /"code":900901/)
})
