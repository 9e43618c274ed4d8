/** Validation of tokens in a reactor, and how long cached results hold. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { arena } from '../../src/http1/llhttp.ts'
import type { AuthPlan, IssuerPlan } from '../../src/auth/auth-plan.ts'
import type { TokenGrant } from '../../src/auth/grants.ts'
import type { AcceptedToken } from '../../src/auth/token-result.ts'
import type { TokenEntry } from '../../src/auth/token-table.ts'
import { issuerPlan, TokenBench } from './token-bench.ts'
import { signedToken, tokenSigner } from './token-maker.ts'

const ISSUER = 'https://issuer.example/'
const NOW_S = 1_700_000_000
const signer = tokenSigner('ES256', 'key-1')
const nextSigner = tokenSigner('ES256', 'key-2')

interface BenchOptions extends Partial<IssuerPlan> {
  readonly skewMs?: number
  readonly tokenCacheMs?: number
}

function bench({ skewMs = 0, tokenCacheMs = 900_000, ...issuer }: BenchOptions = {}): TokenBench {
  const made = new TokenBench({ issuers: [issuerPlan(ISSUER, issuer)], skewMs, tokenCacheMs })
  made.state.issuers.setKeys({ issuer: ISSUER, keys: [signer.jwk] })
  return made
}

let issued = 0
function token(claims: object = {}, header: object = {}, by = signer): string {
  return signedToken(
    by,
    { iss: ISSUER, sub: 'alice', azp: 'c', exp: NOW_S + 3600, jti: `t${issued++}`, ...claims },
    header,
  )
}

async function accepted(made: TokenBench, text: string): Promise<AcceptedToken> {
  const result = await made.result(text)
  assert.ok(result.kind === 'accepted', result.kind === 'refused' ? result.description : '')
  return result
}

async function refusal(made: TokenBench, text: string): Promise<string> {
  const result = await made.result(text)
  assert.ok(result.kind === 'refused')
  return `${result.code} ${result.description}`
}

function grantOf(api: object): TokenGrant {
  return { kind: 'grant', api } as TokenGrant
}

/** Waits for the validation of an unknown token: none may end within the next test, which counts chunks. */
async function isCached(made: TokenBench, text: string): Promise<boolean> {
  const entry = made.validate(text)
  await entry
  return !(entry instanceof Promise)
}

test('an accepted token names client, user, tenant, scopes and claims', async () => {
  const made = bench({ claims: [{ remote: 'groups', local: 'roles' }] })
  const claims = { scope: 'a  b a', aut: 'APPLICATION_USER', groups: ['g'], cnf: { 'x5t#S256': 'A'.repeat(43) } }
  const result = await accepted(made, token({ ...claims, jti: 'j' }))
  assert.deepEqual([...result.scopes], ['a', 'b'])
  assert.deepEqual(
    [result.issuer, result.consumerKey, result.user, result.tenant, result.isApplication, result.apiKey],
    [ISSUER, 'c', 'alice', 'carbon.super', false, null],
  )
  assert.deepEqual([result.expiresMs, result.revocationKey], [(NOW_S + 3600) * 1000, 'j'])
  const claimed: { readonly roles?: unknown } = result.claims
  assert.deepEqual([result.confirmation, claimed.roles, 'groups' in result.claims], ['A'.repeat(43), ['g'], false])
})

for (const [claims, isApplication] of [
  [{ aut: 'APPLICATION' }, true],
  [{ aut: 'APPLICATION_USER', sub: 'c' }, false],
  [{ sub: 'c' }, true],
  [{ sub: undefined }, true],
  [{}, false],
] as const) {
  test(`a token with ${JSON.stringify(claims)} belongs to ${isApplication ? 'an application' : 'a user'}`, async () => {
    assert.equal((await accepted(bench(), token(claims))).isApplication, isApplication)
  })
}

for (const [claims, consumerKey] of [
  [{ azp: 'a', client_id: 'b', consumerKey: 'd' }, 'a'],
  [{ azp: undefined, client_id: 'b', consumerKey: 'd' }, 'b'],
  [{ azp: '', consumerKey: 'd' }, 'd'],
  [{ azp: ['a'], client_id: 5 }, ''],
] as const) {
  test(`the consumer key of ${JSON.stringify(claims)} is "${consumerKey}"`, async () => {
    assert.equal((await accepted(bench(), token(claims))).consumerKey, consumerKey)
  })
}

test('a token without jti is revoked by the digest of its signed part', async () => {
  const text = token({ jti: undefined })
  const made = bench()
  const { revocationKey } = await accepted(made, text)
  assert.match(revocationKey, /^#[\w-]{43}$/)
  made.state.revoke(revocationKey)
  assert.equal(await refusal(made, text), '900901 revoked')
})

test('a cached token is found synchronously, as the same entry, without a verification', async () => {
  const made = bench()
  const text = token()
  const entry = await made.validate(text)
  assert.equal(made.validate(text), entry)
  assert.equal(made.validate(text), entry)
  assert.deepEqual([made.count('tokenVerifications'), made.count('tokenMisses'), made.count('tokenHits')], [1, 1, 2])
})

test('a thousand concurrent requests with a new token cause one verification', async () => {
  const made = bench()
  const text = token()
  const entries = await Promise.all(Array.from({ length: 1000 }, () => made.validate(text)))
  assert.equal(new Set(entries).size, 1)
  assert.equal(made.count('tokenVerifications'), 1)
})

test('a refused token is cached for ten seconds and counted separately', async () => {
  const made = bench()
  const forged = `${token().slice(0, -6)}AAAAAA`
  assert.match(await refusal(made, forged), /^900901/)
  assert.equal(await isCached(made, forged), true)
  assert.equal(made.count('tokenRefusedHits'), 1)
  made.nowMs += 9999
  assert.equal(await isCached(made, forged), true)
  made.nowMs += 1
  await made.validate(forged)
  assert.equal(made.count('tokenVerifications'), 2)
})

test('a cached result ends with its token and the skew, and with the cache time', async () => {
  const made = bench({ skewMs: 5000, tokenCacheMs: 60_000 })
  const short = token({ exp: NOW_S + 10 })
  const long = token()
  await Promise.all([made.validate(short), made.validate(long)])
  made.nowMs += 14_999
  assert.deepEqual([await isCached(made, short), await isCached(made, long)], [true, true])
  made.nowMs += 1
  assert.equal(await refusal(made, short), '900901 expired')
  made.nowMs += 45_000
  assert.equal(await isCached(made, long), false)
  await made.validate(long)
  assert.equal(made.count('tokenVerifications'), 3)
})

test('a token issued since the last tick is accepted', async () => {
  const made = bench()
  made.lagMs = 100
  await accepted(made, token({ nbf: NOW_S }))
})

test('a token before its nbf and the skew is refused, which is not cached', async () => {
  const made = bench({ skewMs: 1000 })
  const text = token({ nbf: NOW_S + 5 })
  assert.equal(await refusal(made, text), '900901 not valid yet')
  made.nowMs += 4000
  await accepted(made, text)
})

const HOUR_MS = 3_600_000

test('issue 14: a good token that was judged while the clock was ahead is accepted with the right one', async () => {
  const made = bench()
  const text = token({ exp: NOW_S + 600 })
  made.wallErrorMs = HOUR_MS
  for (let i = 0; i < 3; i++) assert.equal(await refusal(made, text), '900901 expired')
  made.wallErrorMs = 0
  await accepted(made, text)
})

test('issue 14: a good token that was judged while the clock was behind is accepted with the right one', async () => {
  const made = bench()
  const text = token({ nbf: NOW_S })
  made.wallErrorMs = -HOUR_MS
  for (let i = 0; i < 3; i++) assert.equal(await refusal(made, text), '900901 not valid yet')
  made.wallErrorMs = 0
  await accepted(made, text)
})

test('issue 14: exp and nbf are judged at each hit of a cached token', async () => {
  const made = bench()
  const [expiring, early] = [token({ exp: NOW_S + 600 }), token({ nbf: NOW_S + 600, exp: NOW_S + 7200 })]
  await accepted(made, expiring)
  made.wallErrorMs = HOUR_MS
  await accepted(made, early)
  assert.equal(await refusal(made, expiring), '900901 expired')
  made.wallErrorMs = 0
  assert.equal(await refusal(made, early), '900901 not valid yet')
  await accepted(made, expiring)
})

test('issue 14: a step of the wall clock keeps no cached result for longer than its cache time', async () => {
  const made = bench({ tokenCacheMs: 60_000 })
  const [good, forged] = [token(), `${token().slice(0, -6)}AAAAAA`]
  made.wallErrorMs = HOUR_MS / 2
  await accepted(made, good)
  assert.match(await refusal(made, forged), /^900901/)
  made.wallErrorMs = 0
  made.nowMs += 10_000
  assert.deepEqual([await isCached(made, good), await isCached(made, forged)], [true, false])
  made.nowMs += 50_000
  assert.equal(await isCached(made, good), false)
})

test('a token that begins within this tick stays cached', async () => {
  const made = bench()
  made.lagMs = 100
  const text = token({ nbf: NOW_S })
  await accepted(made, text)
  assert.equal(await isCached(made, text), true)
  assert.equal(made.count('tokenVerifications'), 1)
})

test('without a cache every request validates its token', async () => {
  const made = bench({ tokenCacheMs: 0 })
  const lent = arena.acquiredChunks
  const text = token()
  await accepted(made, text)
  await accepted(made, text)
  assert.equal(made.count('tokenVerifications'), 2)
  assert.equal(arena.acquiredChunks, lent)
})

test('a revocation ends a cached token at once; other tokens only lose their grants', async () => {
  const made = bench()
  const [one, other] = [token({ jti: 'one' }), token({ jti: 'other' })]
  const api = {}
  const grant = grantOf(api)
  const entry: TokenEntry = await made.validate(other)
  entry.keepGrant(grant)
  await made.validate(one)
  assert.equal(entry.grantFor(api), grant)
  made.state.revoke('one')
  assert.equal(await refusal(made, one), '900901 revoked')
  assert.equal(made.validate(other), entry)
  assert.equal(entry.grantFor(api), undefined)
  assert.equal(made.count('tokenVerifications'), 2)
})

test('a token that is revoked during its verification is refused', async () => {
  const made = bench()
  const text = token({ jti: 'late' })
  const checked = made.validate(text)
  made.state.revoke('late')
  const { result } = await checked
  assert.equal(result.kind, 'refused')
  assert.equal(await refusal(made, text), '900901 revoked')
})

test('a withdrawn key ends the tokens that it has verified, a key that stays does not', async () => {
  const made = bench()
  const text = token()
  await accepted(made, text)
  made.state.issuers.setKeys({ issuer: ISSUER, keys: [nextSigner.jwk, signer.jwk] })
  made.state.version++
  assert.equal(await isCached(made, text), true)
  made.state.issuers.setKeys({ issuer: ISSUER, keys: [nextSigner.jwk] })
  made.state.version++
  assert.equal(await refusal(made, text), '900901 signed with an unknown key')
})

test('a changed or removed issuer ends the tokens accepted before', async () => {
  const made = bench()
  const text = token()
  await accepted(made, text)
  made.state.issuers.setPlans([issuerPlan(ISSUER, { audiences: ['a'] })])
  made.state.version++
  assert.equal(await refusal(made, text), '900901 wrong audience')
  made.state.issuers.setPlans([])
  made.state.version++
  assert.equal(await refusal(made, text), '900901 unknown issuer')
})

test('a reload drops cached results if the plan of tokens changes, and never for the backend JWT', async () => {
  const made = bench()
  const text = token()
  await accepted(made, text)
  const plan = { issuers: [issuerPlan(ISSUER)], skewMs: 0, tokenCacheMs: 900_000 }
  const others = { ...plan, backendJwt: { signer: { key: 'another key' } } } as unknown as AuthPlan
  made.tokens.updatePlan(others)
  assert.ok(await isCached(made, text))
  const changes = [{ skewMs: 1 }, { tokenCacheMs: 1 }, { issuers: [issuerPlan(ISSUER, { audiences: ['a'] })] }]
  for (const change of changes) {
    made.tokens.updatePlan({ ...plan, ...change })
    assert.ok(!(await isCached(made, text)), JSON.stringify(change))
    made.tokens.updatePlan(plan)
    await accepted(made, text)
  }
})

test('grants are kept per API, in a bounded number', async () => {
  const entry: TokenEntry = await bench().validate(token())
  const apis = Array.from({ length: 200 }, () => ({}))
  for (const api of apis) {
    const [first, second] = [grantOf(api), grantOf(api)]
    entry.keepGrant(first)
    entry.keepGrant(second)
    assert.equal(entry.grantFor(api), second)
  }
  const remaining = apis.filter(api => entry.grantFor(api) !== undefined)
  assert.ok(
    remaining.length <= 65 && remaining.includes(apis[0]!) && remaining.includes(apis[199]!),
    String(remaining.length),
  )
})

test('the tables are bounded and give their memory back', async () => {
  const made = bench()
  const lent = arena.acquiredChunks
  const warm = token()
  await accepted(made, warm)
  for (let i = 0; i < 3000; i++) await made.validate(`eyJ.${i}.refused`)
  assert.equal(await isCached(made, warm), true)
  assert.equal(arena.acquiredChunks - lent, 1025)
  made.tokens.clear()
  assert.equal(arena.acquiredChunks, lent)
})

test('an unknown key is fetched once for all tokens that need it', async () => {
  const made = bench()
  made.state.onKeyCall = () => made.state.issuers.setKeys({ issuer: ISSUER, keys: [signer.jwk, nextSigner.jwk] })
  const texts = [token({}, {}, nextSigner), token({}, {}, nextSigner), token({}, { kid: 'none' }, nextSigner)]
  const results = await Promise.all(texts.map(text => made.result(text)))
  assert.deepEqual(
    results.map(({ kind }) => kind),
    ['accepted', 'accepted', 'refused'],
  )
  assert.deepEqual(made.state.calls, [{ kind: 'key', issuer: ISSUER, kid: 'key-2' }])
})

test('an unknown key is fetched once per interval, and the refusal is not cached', async () => {
  const made = bench()
  const text = token({}, {}, nextSigner)
  for (let i = 0; i < 5; i++) assert.equal(await refusal(made, text), '900901 signed with an unknown key')
  assert.equal(made.state.calls.length, 1)
  made.state.issuers.setKeys({ issuer: ISSUER, keys: [nextSigner.jwk] })
  await accepted(made, text)
  made.nowMs += 10_000
  await made.validate(token({}, { kid: 'other' }))
  assert.equal(made.state.calls.length, 2)
})

test('an issuer without usable keys is a failure (900900) and no refusal', async () => {
  const made = new TokenBench({ issuers: [issuerPlan(ISSUER)] })
  assert.match(await refusal(made, token()), /^900900 its issuer has no usable keys/)
  made.state.onKeyCall = () => {
    throw new Error('it is down')
  }
  made.nowMs += 10_000
  assert.match(await refusal(made, token()), /^900900 .*it is down/)
  made.state.issuers.setKeys({ issuer: ISSUER, keys: [signer.jwk] })
  await accepted(made, token())
})

test('without a kid the only fitting key is used, and none of two', async () => {
  const made = bench()
  await accepted(made, token({}, { kid: undefined }))
  made.state.issuers.setKeys({ issuer: ISSUER, keys: [signer.jwk, nextSigner.jwk] })
  assert.match(await refusal(made, token({}, { kid: undefined })), /several keys of its issuer fit/)
  made.state.issuers.setKeys({ issuer: ISSUER, keys: [signer.jwk, tokenSigner('EdDSA', 'ed').jwk] })
  await accepted(made, token({}, { kid: undefined }))
})

test('with a full queue new tokens fail and cached tokens still pass', async () => {
  const made = bench()
  const warm = token()
  await accepted(made, warm)
  const fresh = Array.from({ length: 1200 }, () => token())
  const results = Promise.all(fresh.map(text => made.result(text)))
  assert.equal(await isCached(made, warm), true)
  const codes = (await results).map(result => (result.kind === 'refused' ? result.code : 0))
  assert.equal(codes.filter(code => code === 0).length, 32 + 1024)
  assert.equal(codes.filter(code => code === 900900).length, 1200 - 32 - 1024)
  await accepted(made, fresh.at(-1)!)
})
