/** Validation of opaque tokens by introspection, and of tokens of the built-in key manager. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { IntrospectionResult } from '../../src/auth/control-protocol.ts'
import { issuerPlan, TokenBench } from './token-bench.ts'
import { signedToken, tokenSigner } from './token-maker.ts'

const ISSUER = 'https://own/oauth2/token'
const NOW_S = 1_700_000_000
const OPAQUE = '2YotnFZFEjr1zCsicMWpAA'

const ACTIVE = {
  issuer: ISSUER,
  consumerKey: 'c',
  user: 'alice',
  isApplication: false,
  scopes: ['read'],
  notBeforeMs: 0,
  expiresMs: (NOW_S + 60) * 1000,
  claims: {},
} satisfies IntrospectionResult

function bench(introspection: IntrospectionResult | Error, tokenCacheMs = 900_000): TokenBench {
  const made = new TokenBench({ issuers: [issuerPlan(ISSUER, { isOwn: true, audiences: [] })], tokenCacheMs })
  made.state.introspection = introspection
  return made
}

async function outcome(made: TokenBench, text: string): Promise<string> {
  const result = await made.result(text)
  return result.kind === 'accepted' ? 'accepted' : `${result.code} ${result.description}`
}

test('an opaque token is introspected once for all concurrent requests, and again after its end', async () => {
  const made = bench(ACTIVE)
  const entries = await Promise.all(Array.from({ length: 1000 }, () => made.validate(OPAQUE)))
  assert.equal(new Set(entries).size, 1)
  const { result } = entries[0]!
  assert.ok(result.kind === 'accepted')
  assert.deepEqual([result.user, result.consumerKey, [...result.scopes]], ['alice', 'c', ['read']])
  made.nowMs += 59_999
  assert.equal(made.validate(OPAQUE), entries[0])
  made.nowMs += 1
  assert.equal(await outcome(made, OPAQUE), '900901 expired')
  assert.equal(made.count('tokenIntrospections'), 2)
  assert.equal(made.state.calls.length, 2)
})

test('an opaque token without an end is introspected again when its cache entry expires', async () => {
  const made = bench({ ...ACTIVE, expiresMs: 0 }, 30_000)
  await made.validate(OPAQUE)
  made.nowMs += 29_999
  assert.ok(!(made.validate(OPAQUE) instanceof Promise))
  made.nowMs += 1
  assert.equal(await outcome(made, OPAQUE), 'accepted')
  assert.equal(made.count('tokenIntrospections'), 2)
})

test('a token that is not active is refused from the cache for ten seconds', async () => {
  const made = bench(null)
  assert.equal(await outcome(made, OPAQUE), '900901 not active')
  made.state.introspection = ACTIVE
  made.nowMs += 9999
  assert.equal(await outcome(made, OPAQUE), '900901 not active')
  made.nowMs += 1
  assert.equal(await outcome(made, OPAQUE), 'accepted')
})

test('issue 14: an active token that a wrong clock calls expired or early is accepted with the right one', async () => {
  const made = bench({ ...ACTIVE, notBeforeMs: (NOW_S - 60) * 1000 })
  made.wallErrorMs = 3_600_000
  assert.equal(await outcome(made, OPAQUE), '900901 expired')
  made.wallErrorMs = -3_600_000
  assert.equal(await outcome(made, OPAQUE), '900901 not valid yet')
  made.wallErrorMs = 0
  assert.equal(await outcome(made, OPAQUE), 'accepted')
  made.wallErrorMs = -3_600_000
  assert.equal(await outcome(made, OPAQUE), '900901 not valid yet')
})

test('a failed introspection is 900900 and not cached', async () => {
  const made = bench(new Error('it does not respond'))
  assert.equal(await outcome(made, OPAQUE), '900900 introspection failed: it does not respond')
  made.state.introspection = ACTIVE
  assert.equal(await outcome(made, OPAQUE), 'accepted')
})

test('a revoked opaque token is refused without introspection', async () => {
  const made = bench(ACTIVE)
  const { result } = await made.validate(OPAQUE)
  made.state.revoke(result.kind === 'accepted' ? result.revocationKey : '')
  assert.equal(await outcome(made, OPAQUE), '900901 revoked')
  assert.equal(made.state.calls.length, 1)
})

for (const [claims, expected] of [
  [{ cnf: { 'x5t#S256': 'A'.repeat(43) } }, 'accepted'],
  [{ cnf: { jkt: 'x' } }, '900901 cnf has a member other than x5t#S256'],
] as const) {
  test(`introspected with ${JSON.stringify(claims)}: ${expected}`, async () => {
    assert.equal(await outcome(bench({ ...ACTIVE, claims }), OPAQUE), expected)
  })
}

for (const text of ['a b', 'caf\u00e9', 'a"b', '', '=', 'x'.repeat(8193)]) {
  test(`text that is no token is refused without introspection: ${text.slice(0, 9)}`, async () => {
    const made = bench(ACTIVE)
    assert.match(await outcome(made, text), /^900901/)
    assert.equal(made.state.calls.length, 0)
  })
}

const signer = tokenSigner('RS256', 'own-1')

function ownToken(claims: object, typ: string): string {
  const { kid } = signer
  return signedToken(
    signer,
    { iss: ISSUER, sub: 'alice', azp: 'c', exp: NOW_S + 60, jti: 'j', ...claims },
    { typ, kid },
  )
}

for (const [what, claims, typ, expected] of [
  ['an access token', { tenant: 'abc.com' }, 'at+jwt', 'accepted'],
  ['an ID token', { nonce: 'n' }, 'JWT', '900901 not an access token'],
  ['an API key', { token_type: 'apiKey', exp: undefined }, 'JWT', 'accepted'],
  [
    'an API key with a malformed restriction',
    { token_type: 'apiKey', permittedIP: 5 },
    'JWT',
    '900901 permittedIP or permittedReferer is neither a string nor a list of strings',
  ],
] as const) {
  test(`the built-in key manager issues ${what}: ${expected}`, async () => {
    const made = bench(null)
    made.state.issuers.setKeys({ issuer: ISSUER, keys: [signer.jwk] })
    assert.equal(await outcome(made, ownToken(claims, typ)), expected)
  })
}

test('an API key names its application and its restrictions', async () => {
  const made = bench(null)
  made.state.issuers.setKeys({ issuer: ISSUER, keys: [signer.jwk] })
  const terms = { permittedIP: '10.0.0.0/8, 192.0.2.1', permittedReferer: '', keytype: 'SANDBOX' }
  const text = ownToken({ token_type: 'apiKey', application: { uuid: 'u-1' }, ...terms }, 'JWT')
  const result = await made.result(text)
  assert.ok(result.kind === 'accepted')
  assert.deepEqual(result.apiKey, {
    applicationId: 'u-1',
    keyType: 'SANDBOX',
    permittedIps: ['10.0.0.0/8', '192.0.2.1'],
    permittedReferers: [],
  })
})

test('the tenant claim is believed of the built-in key manager alone', async () => {
  const made = new TokenBench({ issuers: [issuerPlan(ISSUER, { isOwn: true }), issuerPlan('other')] })
  made.state.issuers.setKeys({ issuer: ISSUER, keys: [signer.jwk] })
  made.state.issuers.setKeys({ issuer: 'other', keys: [signer.jwk] })
  const tenants = await Promise.all(
    [ISSUER, 'other'].map(async iss => {
      const result = await made.result(ownToken({ tenant: 'abc.com', iss }, 'at+jwt'))
      return result.kind === 'accepted' && result.tenant
    }),
  )
  assert.deepEqual(tenants, ['abc.com', 'carbon.super'])
})
