/** The token that tells a backend who is calling: what stands in it, how it is signed, and how often it is made. */
import assert from 'node:assert/strict'
import { generateKeyPairSync, verify } from 'node:crypto'
import { test } from 'node:test'
import type { Caller } from '../../src/exchange/caller.ts'
import { BackendJwts, NoBackendJwt } from '../../src/identity/backend-jwt.ts'
import type { Inquiry, InquiryResults } from '../../src/identity/feed.ts'
import { METRIC } from '../../src/observe/metrics.ts'
import type { BackendJwtPlan } from '../../src/identity/identity-plan.ts'

const KEYS = generateKeyPairSync('rsa', { modulusLength: 2048 })
const START_MS = 1_800_000_000_000
const LIFE_MS = 900_000
const PLAN: BackendJwtPlan = {
  isMade: true,
  field: 'X-JWT-Assertion',
  encoding: 'base64',
  isSigned: true,
  prefix: 'http://wso2.org/claims/',
  lifeMs: LIFE_MS,
  keptMs: LIFE_MS,
  hasUserClaims: false,
  claimsMs: LIFE_MS,
  isCustom: false,
  signer: { key: String(KEYS.privateKey.export({ type: 'pkcs8', format: 'pem' })), kid: 'k1', x5t: '', x5tS256: '' },
}
const API = { name: 'Pets', version: '1.0', context: '/pets/1.0' }
const APPLICATION = {
  id: '6f5d',
  name: 'Shop',
  owner: 'carol',
  tenant: 'carbon.super',
  tier: '50PerMin',
  attributes: { team: 'blue' },
}
const CALLER: Caller = {
  method: 'oauth2',
  user: 'alice',
  tenant: 'carbon.super',
  isApplication: false,
  keyType: 'SANDBOX',
  application: APPLICATION,
  consumerKey: 'ck',
  subscriptionTier: 'Gold',
  claims: {},
  expiresMs: START_MS + 3_600_000,
  revocationKey: 'j1',
}

interface Made {
  readonly jwts: BackendJwts
  readonly clock: { ms: number }
  readonly asked: Inquiry[]
  readonly counted: Map<number, number>
}

function made(changes: Partial<BackendJwtPlan> = {}, answer: (inquiry: Inquiry) => unknown = () => ({})): Made {
  const clock = { ms: START_MS }
  const asked: Inquiry[] = []
  const counted = new Map<number, number>()
  const metrics = { add: (cell: number, by: number) => void counted.set(cell, (counted.get(cell) ?? 0) + by) }
  const ask = async <I extends Inquiry>(inquiry: I): Promise<InquiryResults[I['kind']]> => {
    asked.push(inquiry)
    return answer(inquiry) as InquiryResults[I['kind']]
  }
  return {
    jwts: new BackendJwts({ ...PLAN, ...changes }, { ask, now: () => clock.ms, metrics }),
    clock,
    asked,
    counted,
  }
}

interface Read {
  readonly header: Readonly<Record<string, unknown>>
  readonly claims: Readonly<Record<string, unknown>>
  readonly parts: readonly string[]
}

function read(line: string, encoding: 'base64' | 'base64url' = 'base64', field = 'X-JWT-Assertion'): Read {
  assert.ok(line.startsWith(`${field}: `) && line.endsWith('\r\n'))
  const parts = line.slice(field.length + 2, -2).split('.')
  const [header, claims] = parts.slice(0, 2).map(part => JSON.parse(Buffer.from(part, encoding).toString()))
  return { header, claims, parts }
}

function isSigned([header, claims, signature]: readonly string[], encoding: 'base64' | 'base64url'): boolean {
  const bytes = Buffer.from(signature!, encoding)
  return verify('RSA-SHA256', Buffer.from(`${header}.${claims}`), KEYS.publicKey, bytes)
}

test('[apim.jwt]: the documented claims under their dialect, of issuer, times and subject', async () => {
  const { header, claims, parts } = read(await made().jwts.lineFor(CALLER, API))
  assert.deepEqual(header, { typ: 'JWT', alg: 'RS256', kid: 'k1' })
  const { jti, ...others } = claims
  assert.match(String(jti), /^[\da-f-]{36}$/)
  const documented = {
    subscriber: 'carol',
    applicationid: '6f5d',
    applicationname: 'Shop',
    applicationtier: '50PerMin',
    applicationUUId: '6f5d',
    applicationAttributes: { team: 'blue' },
    apiname: 'Pets',
    apicontext: '/pets/1.0',
    version: '1.0',
    tier: 'Gold',
    keytype: 'SANDBOX',
    usertype: 'APPLICATION_USER',
    enduser: 'alice@carbon.super',
    enduserTenantId: '-1234',
  }
  assert.deepEqual(others, {
    iss: 'wso2.org/products/am',
    sub: 'alice',
    iat: START_MS / 1000,
    exp: (START_MS + LIFE_MS) / 1000,
    ...Object.fromEntries(Object.entries(documented).map(([name, value]) => [`http://wso2.org/claims/${name}`, value])),
  })
  assert.ok(isSigned(parts, 'base64'))
})

test('[apim.jwt]: base64url, another field, no dialect, thumbprints of a certificate', async () => {
  const signer = { ...PLAN.signer!, x5t: 'sha-1', x5tS256: 'sha-256' }
  const { jwts } = made({ encoding: 'base64url', field: 'X-Caller', prefix: '', signer })
  const { header, claims, parts } = read(await jwts.lineFor(CALLER, API), 'base64url', 'X-Caller')
  assert.deepEqual([header.x5t, header['x5t#S256'], claims.apiname], ['sha-1', 'sha-256', 'Pets'])
  assert.ok(isSigned(parts, 'base64url'))
  assert.doesNotMatch(parts.join(''), /[+/=]/)
})

test('[apim.jwt]: NONE leaves it unsigned', async () => {
  const { header, parts } = read(await made({ isSigned: false, signer: null }).jwts.lineFor(CALLER, API))
  assert.deepEqual([header, parts[2]], [{ typ: 'JWT', alg: 'none' }, ''])
})

test('a caller without an application has none of its claims', async () => {
  const { claims } = read(await made().jwts.lineFor({ ...CALLER, application: null }, API))
  const names = Object.keys(claims).filter(name => /application|subscriber/.test(name))
  assert.deepEqual(names, [])
})

test('the warm path answers one ready string, and a caller that is made anew gets the same', async () => {
  const { jwts, counted } = made()
  const line = await jwts.lineFor(CALLER, API)
  assert.equal(jwts.lineFor(CALLER, API), line)
  assert.equal(jwts.lineFor({ ...CALLER }, API), line)
  assert.deepEqual([counted.get(METRIC.backendJwtHits), counted.get(METRIC.backendJwtMisses)], [2, 1])
  assert.notEqual(await jwts.lineFor({ ...CALLER, subscriptionTier: 'Silver' }, API), line)
  assert.notEqual(await jwts.lineFor({ ...CALLER, revocationKey: 'j2' }, API), line)
  assert.notEqual(await jwts.lineFor({ ...CALLER }, { ...API, version: '2' }), line)
})

test('a thousand first calls of one caller make one', async () => {
  const { jwts } = made({ keptMs: LIFE_MS })
  const lines = await Promise.all(Array.from({ length: 1000 }, () => jwts.lineFor({ ...CALLER }, API)))
  assert.equal(new Set(lines).size, 1)
})

test('it never outlives what the caller has shown', async () => {
  const { jwts, clock } = made()
  const caller = { ...CALLER, expiresMs: START_MS + 10_500 }
  const line = await jwts.lineFor(caller, API)
  assert.equal(read(line).claims.exp, START_MS / 1000 + 10)
  clock.ms += 10_499
  assert.equal(jwts.lineFor(caller, API), line)
  clock.ms += 1
  assert.notEqual(jwts.lineFor(caller, API), line)
})

test('one that is nearly over is replaced while it is still used', async () => {
  const { jwts, clock } = made()
  const caller = { ...CALLER, expiresMs: 0 }
  const line = await jwts.lineFor(caller, API)
  clock.ms += LIFE_MS * 0.8
  assert.equal(jwts.lineFor(caller, API), line)
  // The same making is waited for by whoever comes in vain.
  await new Promise(resolve => setImmediate(resolve))
  let next = jwts.lineFor(caller, API)
  while (next === line) {
    await new Promise(resolve => setImmediate(resolve))
    next = jwts.lineFor(caller, API)
  }
  assert.equal(read(String(next)).claims.iat, (START_MS + LIFE_MS * 0.8) / 1000)
})

test('without a cache each request has its own', async () => {
  const { jwts } = made({ keptMs: 0 })
  assert.notEqual(await jwts.lineFor(CALLER, API), await jwts.lineFor(CALLER, API))
})

test('another configuration uses nothing that was made before', async () => {
  const { jwts } = made()
  const line = await jwts.lineFor(CALLER, API)
  jwts.renew({ ...PLAN, encoding: 'base64url' })
  const next = await jwts.lineFor(CALLER, API)
  assert.notEqual(next, line)
  read(next, 'base64url')
})

test('enable_user_claims: what token and user store say, never in the place of other claims', async () => {
  const known = { email: 'a@b.test', 'http://schema.test/role': 'admin', apiname: 'forged', iss: 'forged' }
  const { jwts, asked, counted } = made({ hasUserClaims: true }, () => known)
  const caller = { ...CALLER, claims: { email: 'of the token', city: 'Ulm', scope: 'x', exp: 1, keytype: 'forged' } }
  const { claims } = read(await jwts.lineFor(caller, API))
  const p = PLAN.prefix
  assert.deepEqual(
    [claims[`${p}email`], claims[`${p}city`], claims['http://schema.test/role'], claims[`${p}scope`]],
    ['a@b.test', 'Ulm', 'admin', undefined],
  )
  assert.deepEqual(
    [claims[`${p}apiname`], claims[`${p}keytype`], claims.iss],
    ['Pets', 'SANDBOX', 'wso2.org/products/am'],
  )
  await jwts.lineFor({ ...caller, revocationKey: 'j2' }, API)
  await jwts.lineFor({ ...caller, user: 'bob@carbon.super' }, API)
  assert.deepEqual(asked.pop(), { kind: 'claims', user: 'bob', tenant: 'carbon.super' })
  assert.deepEqual([counted.get(METRIC.userClaimsHits), counted.get(METRIC.userClaimsMisses)], [1, 2])
  assert.deepEqual(asked, [{ kind: 'claims', user: 'alice', tenant: 'carbon.super' }])
})

test('[apim.cache.jwt_claim]: not enabled, users are asked about each time; applications never are', async () => {
  const { jwts, asked } = made({ hasUserClaims: true, claimsMs: 0, keptMs: 0 })
  await jwts.lineFor(CALLER, API)
  await jwts.lineFor(CALLER, API)
  assert.equal(asked.length, 2)
  await jwts.lineFor({ ...CALLER, isApplication: true }, API)
  assert.equal(asked.length, 2)
})

test('generator_impl makes the token of the same claims', async () => {
  const { jwts, asked } = made({ isCustom: true, signer: null }, () => 'made.elsewhere')
  assert.equal(await jwts.lineFor(CALLER, API), 'X-JWT-Assertion: made.elsewhere\r\n')
  const [inquiry] = asked
  assert.equal(inquiry?.kind === 'backendJwt' && inquiry.claims.sub, 'alice')
})

const FAILURES: readonly (readonly [string, Partial<BackendJwtPlan>, (inquiry: Inquiry) => unknown, RegExp])[] = [
  ['what would inject a field', { isCustom: true }, () => 'a\r\nX-Admin: yes', /no text for a field/],
  ['nothing', { isCustom: true }, () => '', /no text for a field/],
  ['one that is too long', { isCustom: true }, () => 'a'.repeat(6145), /6145 characters, 6144 at most/],
  ['no key', { signer: null }, () => ({}), /no key to sign with/],
  [
    'an authority that does not answer',
    { hasUserClaims: true },
    () => {
      throw new Error('not within 5000 ms')
    },
    /not within 5000 ms/,
  ],
]
for (const [what, changes, answer, pattern] of FAILURES) {
  test(`${what}: no token, with the cause, and the next one is tried`, async () => {
    const { jwts } = made(changes, answer)
    for (let i = 0; i < 2; i++) {
      await assert.rejects(async () => jwts.lineFor(CALLER, API), { name: NoBackendJwt.name, message: pattern })
    }
  })
}
