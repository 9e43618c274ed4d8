/** How verdicts come about and how long they hold: in a reactor, with an issuer that the test speaks for. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { arena } from '../../src/http1/llhttp.ts'
import type { IdentityPlan, IssuerPlan } from '../../src/identity/identity-plan.ts'
import type { AcceptedToken, TokenEntry } from '../../src/identity/token-verdict.ts'
import { issuerPlan, TokenBench } from './told-sources.ts'
import { signedToken, tokenSigner } from './token-maker.ts'

const ISSUER = 'https://issuer.example/'
const NOW_S = 1_700_000_000
const signer = tokenSigner('ES256', 'key-1')
const nextSigner = tokenSigner('ES256', 'key-2')

interface Terms extends Partial<IssuerPlan> {
  readonly skewMs?: number
  readonly verdictMs?: number
}

function bench({ skewMs = 0, verdictMs = 900_000, ...terms }: Terms = {}): TokenBench {
  const made = new TokenBench({ issuers: [issuerPlan(ISSUER, terms)], skewMs, verdictMs })
  made.sources.issuers.learn({ issuer: ISSUER, keys: [signer.jwk] })
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
  const verdict = await made.verdict(text)
  assert.ok(verdict.kind === 'accepted', verdict.kind === 'refused' ? verdict.description : '')
  return verdict
}

async function refusal(made: TokenBench, text: string): Promise<string> {
  const verdict = await made.verdict(text)
  assert.ok(verdict.kind === 'refused')
  return `${verdict.code} ${verdict.description}`
}

function isWarm(made: TokenBench, text: string): boolean {
  return !(made.check(text) instanceof Promise)
}

test('a token says who asks, for whom, and with which scopes', async () => {
  const made = bench({ claims: [{ remote: 'groups', local: 'roles' }] })
  const claims = { scope: 'a  b a', aut: 'APPLICATION_USER', groups: ['g'], cnf: { 'x5t#S256': 'A'.repeat(43) } }
  const verdict = await accepted(made, token({ ...claims, jti: 'j' }))
  assert.deepEqual([...verdict.scopes], ['a', 'b'])
  assert.deepEqual(
    [verdict.issuer, verdict.consumerKey, verdict.user, verdict.tenant, verdict.isApplication, verdict.apiKey],
    [ISSUER, 'c', 'alice', 'carbon.super', false, null],
  )
  assert.deepEqual([verdict.expiresMs, verdict.revocationKey], [(NOW_S + 3600) * 1000, 'j'])
  const claimed: { readonly roles?: unknown } = verdict.claims
  assert.deepEqual([verdict.confirmation, claimed.roles, 'groups' in verdict.claims], ['A'.repeat(43), ['g'], false])
})

for (const [claims, isApplication] of [
  [{ aut: 'APPLICATION' }, true],
  [{ aut: 'APPLICATION_USER', sub: 'c' }, false],
  [{ sub: 'c' }, true],
  [{ sub: undefined }, true],
  [{}, false],
] as const) {
  test(`${JSON.stringify(claims)}: ${isApplication ? 'an application' : 'a user'} asks`, async () => {
    assert.equal((await accepted(bench(), token(claims))).isApplication, isApplication)
  })
}

for (const [claims, consumerKey] of [
  [{ azp: 'a', client_id: 'b', consumerKey: 'd' }, 'a'],
  [{ azp: undefined, client_id: 'b', consumerKey: 'd' }, 'b'],
  [{ azp: '', consumerKey: 'd' }, 'd'],
  [{ azp: ['a'], client_id: 5 }, ''],
] as const) {
  test(`the client of ${JSON.stringify(claims)} is "${consumerKey}"`, async () => {
    assert.equal((await accepted(bench(), token(claims))).consumerKey, consumerKey)
  })
}

test('a token without jti is known by what its signature is of', async () => {
  const text = token({ jti: undefined })
  const made = bench()
  const { revocationKey } = await accepted(made, text)
  assert.match(revocationKey, /^#[\w-]{43}$/)
  made.sources.revoke(revocationKey)
  assert.equal(await refusal(made, text), '900901 revoked')
})

test('what is warm is answered at once, as the same object, and without a verification', async () => {
  const made = bench()
  const text = token()
  const entry = await made.check(text)
  assert.equal(made.check(text), entry)
  assert.equal(made.check(text), entry)
  assert.deepEqual([made.count('tokenVerifications'), made.count('tokenMisses'), made.count('tokenHits')], [1, 1, 2])
})

test('a thousand first calls with one token cause one verification', async () => {
  const made = bench()
  const text = token()
  const entries = await Promise.all(Array.from({ length: 1000 }, () => made.check(text)))
  assert.equal(new Set(entries).size, 1)
  assert.equal(made.count('tokenVerifications'), 1)
})

test('a refused token is remembered for ten seconds, and counted apart', async () => {
  const made = bench()
  const forged = `${token().slice(0, -6)}AAAAAA`
  assert.match(await refusal(made, forged), /^900901/)
  assert.equal(isWarm(made, forged), true)
  assert.equal(made.count('tokenRefusedHits'), 1)
  made.nowMs += 9999
  assert.equal(isWarm(made, forged), true)
  made.nowMs += 1
  await made.check(forged)
  assert.equal(made.count('tokenVerifications'), 2)
})

test('a verdict never outlives its token and the skew, nor the time of the cache', async () => {
  const made = bench({ skewMs: 5000, verdictMs: 60_000 })
  const short = token({ exp: NOW_S + 10 })
  const long = token()
  await Promise.all([made.check(short), made.check(long)])
  made.nowMs += 14_999
  assert.deepEqual([isWarm(made, short), isWarm(made, long)], [true, true])
  made.nowMs += 1
  assert.equal(await refusal(made, short), '900901 expired')
  made.nowMs += 45_000
  assert.equal(isWarm(made, long), false)
  await made.check(long)
  assert.equal(made.count('tokenVerifications'), 3)
})

test('a token that was made in this very second is good between two ticks of the clock', async () => {
  const made = bench()
  made.lagMs = 100
  await accepted(made, token({ nbf: NOW_S }))
})

test('not before its time, but for the skew; and that is not remembered', async () => {
  const made = bench({ skewMs: 1000 })
  const text = token({ nbf: NOW_S + 5 })
  assert.equal(await refusal(made, text), '900901 not valid yet')
  made.nowMs += 4000
  await accepted(made, text)
})

test('without a cache nothing is remembered', async () => {
  const made = bench({ verdictMs: 0 })
  const lent = arena.lentChunks
  const text = token()
  await accepted(made, text)
  await accepted(made, text)
  assert.equal(made.count('tokenVerifications'), 2)
  assert.equal(arena.lentChunks, lent)
})

test('a revocation ends a warm token at once, and takes nothing from others but their grants', async () => {
  const made = bench()
  const [one, other] = [token({ jti: 'one' }), token({ jti: 'other' })]
  const api = {}
  const entry: TokenEntry<string> = await made.check(other)
  entry.keepGrant(api, 'grant')
  await made.check(one)
  assert.equal(entry.grantFor(api), 'grant')
  made.sources.revoke('one')
  assert.equal(await refusal(made, one), '900901 revoked')
  assert.equal(made.check(other), entry)
  assert.equal(entry.grantFor(api), undefined)
  assert.equal(made.count('tokenVerifications'), 2)
})

test('what is revoked while it is verified is refused', async () => {
  const made = bench()
  const text = token({ jti: 'late' })
  const checked = made.check(text)
  made.sources.revoke('late')
  const { verdict } = await checked
  assert.equal(verdict.kind, 'refused')
  assert.equal(await refusal(made, text), '900901 revoked')
})

test('a key that is withdrawn proves nothing any more; one that is told again goes on', async () => {
  const made = bench()
  const text = token()
  await accepted(made, text)
  made.sources.issuers.learn({ issuer: ISSUER, keys: [nextSigner.jwk, signer.jwk] })
  made.sources.epoch++
  assert.equal(isWarm(made, text), true)
  made.sources.issuers.learn({ issuer: ISSUER, keys: [nextSigner.jwk] })
  made.sources.epoch++
  assert.equal(await refusal(made, text), '900901 signed with a key that is not known')
})

test('other terms of an issuer end what was accepted on the ones before', async () => {
  const made = bench()
  const text = token()
  await accepted(made, text)
  made.sources.issuers.renew([issuerPlan(ISSUER, { audiences: ['a'] })])
  made.sources.epoch++
  assert.equal(await refusal(made, text), '900901 for another audience')
  made.sources.issuers.renew([])
  made.sources.epoch++
  assert.equal(await refusal(made, text), '900901 of an issuer that is not known')
})

test('a reload forgets verdicts where terms of tokens are others, and never for the backend JWT', async () => {
  const made = bench()
  const text = token()
  await accepted(made, text)
  const plan = { issuers: [issuerPlan(ISSUER)], skewMs: 0, verdictMs: 900_000 }
  const others = { ...plan, backendJwt: { signer: { key: 'another key' } } } as unknown as IdentityPlan
  made.tokens.renew(others)
  assert.ok(isWarm(made, text))
  const changes = [{ skewMs: 1 }, { verdictMs: 1 }, { issuers: [issuerPlan(ISSUER, { audiences: ['a'] })] }]
  for (const terms of changes) {
    made.tokens.renew({ ...plan, ...terms })
    assert.ok(!isWarm(made, text), JSON.stringify(terms))
    made.tokens.renew(plan)
    await accepted(made, text)
  }
})

test('grants are kept for each API, and a bounded number of them', async () => {
  const entry: TokenEntry<string> = await bench().check(token())
  const apis = Array.from({ length: 200 }, () => ({}))
  for (const api of apis) {
    entry.keepGrant(api, 'first')
    entry.keepGrant(api, 'second')
    assert.equal(entry.grantFor(api), 'second')
  }
  const kept = apis.filter(api => entry.grantFor(api) !== undefined)
  assert.ok(kept.length <= 65 && kept.includes(apis[0]!) && kept.includes(apis[199]!), String(kept.length))
})

test('the table is bounded, and gives back what it forgets', async () => {
  const made = bench()
  const lent = arena.lentChunks
  const warm = token()
  await accepted(made, warm)
  for (let i = 0; i < 3000; i++) await made.check(`eyJ.${i}.refused`)
  assert.equal(isWarm(made, warm), true)
  assert.equal(arena.lentChunks - lent, 1025)
  made.tokens.forget()
  assert.equal(arena.lentChunks, lent)
})

test('a key that nobody knows is asked for once, by all who need it, and then used', async () => {
  const made = bench()
  made.sources.search = () => made.sources.issuers.learn({ issuer: ISSUER, keys: [signer.jwk, nextSigner.jwk] })
  const texts = [token({}, {}, nextSigner), token({}, {}, nextSigner), token({}, { kid: 'none' }, nextSigner)]
  const verdicts = await Promise.all(texts.map(text => made.verdict(text)))
  assert.deepEqual(
    verdicts.map(({ kind }) => kind),
    ['accepted', 'accepted', 'refused'],
  )
  assert.deepEqual(made.sources.asked, [{ kind: 'key', issuer: ISSUER, kid: 'key-2' }])
})

test('a key that nobody knows is asked for once per interval, and what came of it is not remembered', async () => {
  const made = bench()
  const text = token({}, {}, nextSigner)
  for (let i = 0; i < 5; i++) assert.equal(await refusal(made, text), '900901 signed with a key that is not known')
  assert.equal(made.sources.asked.length, 1)
  made.sources.issuers.learn({ issuer: ISSUER, keys: [nextSigner.jwk] })
  await accepted(made, text)
  made.nowMs += 10_000
  await made.check(token({}, { kid: 'other' }))
  assert.equal(made.sources.asked.length, 2)
})

test('an issuer whose keys cannot be had is a failure and no refusal', async () => {
  const made = new TokenBench({ issuers: [issuerPlan(ISSUER)] })
  assert.match(await refusal(made, token()), /^900900 its issuer has no keys/)
  made.sources.search = () => {
    throw new Error('it is down')
  }
  made.nowMs += 10_000
  assert.match(await refusal(made, token()), /^900900 .*it is down/)
  made.sources.issuers.learn({ issuer: ISSUER, keys: [signer.jwk] })
  await accepted(made, token())
})

test('without a kid the only key that fits is used, and of two none', async () => {
  const made = bench()
  await accepted(made, token({}, { kid: undefined }))
  made.sources.issuers.learn({ issuer: ISSUER, keys: [signer.jwk, nextSigner.jwk] })
  assert.match(await refusal(made, token({}, { kid: undefined })), /more than one key/)
  made.sources.issuers.learn({ issuer: ISSUER, keys: [signer.jwk, tokenSigner('EdDSA', 'ed').jwk] })
  await accepted(made, token({}, { kid: undefined }))
})

test('beyond what may wait, new tokens are failures, and known ones are not', async () => {
  const made = bench()
  const warm = token()
  await accepted(made, warm)
  const fresh = Array.from({ length: 1200 }, () => token())
  const verdicts = Promise.all(fresh.map(text => made.verdict(text)))
  assert.equal(isWarm(made, warm), true)
  const codes = (await verdicts).map(verdict => (verdict.kind === 'refused' ? verdict.code : 0))
  assert.equal(codes.filter(code => code === 0).length, 32 + 1024)
  assert.equal(codes.filter(code => code === 900900).length, 1200 - 32 - 1024)
  await accepted(made, fresh.at(-1)!)
})
