/** Tokens that only their issuer can read, and those of the built-in key manager. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Introspection } from '../../src/identity/feed.ts'
import { issuerPlan, TokenBench } from './told-sources.ts'
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
  expiresMs: (NOW_S + 60) * 1000,
  claims: {},
} satisfies Introspection

function bench(introspection: Introspection | Error, verdictMs = 900_000): TokenBench {
  const made = new TokenBench({ issuers: [issuerPlan(ISSUER, { isOwn: true, audiences: [] })], verdictMs })
  made.sources.introspection = introspection
  return made
}

async function said(made: TokenBench, text: string): Promise<string> {
  const verdict = await made.verdict(text)
  return verdict.kind === 'accepted' ? 'accepted' : `${verdict.code} ${verdict.description}`
}

test('an opaque token is introspected once, however many bring it, until it ends', async () => {
  const made = bench(ACTIVE)
  const entries = await Promise.all(Array.from({ length: 1000 }, () => made.check(OPAQUE)))
  assert.equal(new Set(entries).size, 1)
  const { verdict } = entries[0]!
  assert.ok(verdict.kind === 'accepted')
  assert.deepEqual([verdict.user, verdict.consumerKey, [...verdict.scopes]], ['alice', 'c', ['read']])
  made.nowMs += 59_999
  assert.equal(made.check(OPAQUE), entries[0])
  made.nowMs += 1
  assert.equal(await said(made, OPAQUE), '900901 expired')
  assert.equal(made.count('tokenIntrospections'), 2)
  assert.equal(made.sources.asked.length, 2)
})

test('one without an end is asked about again after the time of the cache', async () => {
  const made = bench({ ...ACTIVE, expiresMs: 0 }, 30_000)
  await made.check(OPAQUE)
  made.nowMs += 29_999
  assert.ok(!(made.check(OPAQUE) instanceof Promise))
  made.nowMs += 1
  assert.equal(await said(made, OPAQUE), 'accepted')
  assert.equal(made.count('tokenIntrospections'), 2)
})

test('one that is not active is refused for ten seconds without asking', async () => {
  const made = bench(null)
  assert.equal(await said(made, OPAQUE), '900901 not active')
  made.sources.introspection = ACTIVE
  made.nowMs += 9999
  assert.equal(await said(made, OPAQUE), '900901 not active')
  made.nowMs += 1
  assert.equal(await said(made, OPAQUE), 'accepted')
})

test('a failure is 900900, and never remembered', async () => {
  const made = bench(new Error('it does not answer'))
  assert.equal(await said(made, OPAQUE), '900900 it could not be introspected: it does not answer')
  made.sources.introspection = ACTIVE
  assert.equal(await said(made, OPAQUE), 'accepted')
})

test('a revoked one is refused before anybody is asked, and while somebody is', async () => {
  const made = bench(ACTIVE)
  const { verdict } = await made.check(OPAQUE)
  made.sources.revoke(verdict.kind === 'accepted' ? verdict.revocationKey : '')
  assert.equal(await said(made, OPAQUE), '900901 revoked')
  assert.equal(made.sources.asked.length, 1)
})

for (const [claims, expected] of [
  [{ cnf: { 'x5t#S256': 'A'.repeat(43) } }, 'accepted'],
  [{ cnf: { jkt: 'x' } }, '900901 bound to a key that is not asked for'],
] as const) {
  test(`introspected with ${JSON.stringify(claims)}: ${expected}`, async () => {
    assert.equal(await said(bench({ ...ACTIVE, claims }), OPAQUE), expected)
  })
}

for (const text of ['a b', 'caf\u00e9', 'a"b', '', '=', 'x'.repeat(8193)]) {
  test(`what no token has is not asked about: ${text.slice(0, 9)}`, async () => {
    const made = bench(ACTIVE)
    assert.match(await said(made, text), /^900901/)
    assert.equal(made.sources.asked.length, 0)
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
  ['a token for an id', { nonce: 'n' }, 'JWT', '900901 not an access token'],
  ['an API key', { token_type: 'apiKey', exp: undefined }, 'JWT', 'accepted'],
  [
    'an API key with conditions that cannot be read',
    { token_type: 'apiKey', permittedIP: 5 },
    'JWT',
    '900901 where the API key may be used is neither a text nor a list',
  ],
] as const) {
  test(`of the built-in key manager ${what}: ${expected}`, async () => {
    const made = bench(null)
    made.sources.issuers.learn({ issuer: ISSUER, keys: [signer.jwk] })
    assert.equal(await said(made, ownToken(claims, typ)), expected)
  })
}

test('an API key says where it may be used, and for which application', async () => {
  const made = bench(null)
  made.sources.issuers.learn({ issuer: ISSUER, keys: [signer.jwk] })
  const terms = { permittedIP: '10.0.0.0/8, 192.0.2.1', permittedReferer: '', keytype: 'SANDBOX' }
  const text = ownToken({ token_type: 'apiKey', application: { uuid: 'u-1' }, ...terms }, 'JWT')
  const verdict = await made.verdict(text)
  assert.ok(verdict.kind === 'accepted')
  assert.deepEqual(verdict.apiKey, {
    applicationId: 'u-1',
    keyType: 'SANDBOX',
    permittedIps: ['10.0.0.0/8', '192.0.2.1'],
    permittedReferers: [],
  })
})

test('the tenant of a user is said by the built-in key manager alone', async () => {
  const made = new TokenBench({ issuers: [issuerPlan(ISSUER, { isOwn: true }), issuerPlan('other')] })
  made.sources.issuers.learn({ issuer: ISSUER, keys: [signer.jwk] })
  made.sources.issuers.learn({ issuer: 'other', keys: [signer.jwk] })
  const tenants = await Promise.all(
    [ISSUER, 'other'].map(async iss => {
      const verdict = await made.verdict(ownToken({ tenant: 'abc.com', iss }, 'at+jwt'))
      return verdict.kind === 'accepted' && verdict.tenant
    }),
  )
  assert.deepEqual(tenants, ['abc.com', 'carbon.super'])
})
