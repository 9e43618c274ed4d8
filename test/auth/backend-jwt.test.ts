/** The JWT that tells a backend who is calling: its claims, its signature, and how long it is reused. */
import assert from 'node:assert/strict'
import { generateKeyPairSync, verify } from 'node:crypto'
import { test } from 'node:test'
import type { Caller } from '../../src/proxy/exchange/caller.ts'
import { BackendJwts, BackendJwtFailed } from '../../src/auth/backend-jwt.ts'
import type { ControlCall, ControlCallResults } from '../../src/auth/control-protocol.ts'
import { METRIC } from '../../src/observe/metrics.ts'
import type { BackendJwtPlan } from '../../src/auth/auth-plan.ts'

const KEYS = generateKeyPairSync('rsa', { modulusLength: 2048 })
const START_MS = 1_800_000_000_000
const LIFE_MS = 900_000
const PLAN: BackendJwtPlan = {
  isEnabled: true,
  field: 'X-JWT-Assertion',
  encoding: 'base64',
  isSigned: true,
  prefix: 'http://wso2.org/claims/',
  lifetimeMs: LIFE_MS,
  cacheMs: LIFE_MS,
  hasUserClaims: false,
  claimsCacheMs: LIFE_MS,
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
  heldScopes: new Set(),
  subscriptionTier: 'Gold',
  claims: {},
  expiresMs: START_MS + 3_600_000,
  revocationKey: 'j1',
  limits: null,
}

interface Made {
  readonly jwts: BackendJwts
  readonly clock: { ms: number }
  readonly calls: ControlCall[]
  readonly counted: Map<number, number>
}

function made(changes: Partial<BackendJwtPlan> = {}, result: (call: ControlCall) => unknown = () => ({})): Made {
  const clock = { ms: START_MS }
  const calls: ControlCall[] = []
  const counted = new Map<number, number>()
  const metrics = { add: (cell: number, by: number) => void counted.set(cell, (counted.get(cell) ?? 0) + by) }
  const call = async <One extends ControlCall>(one: One): Promise<ControlCallResults[One['kind']]> => {
    calls.push(one)
    return result(one) as ControlCallResults[One['kind']]
  }
  return {
    jwts: new BackendJwts({ ...PLAN, ...changes }, { call, now: () => clock.ms, metrics }),
    clock,
    calls,
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

test('[apim.jwt]: the JWT has the documented claims under their dialect, with issuer, times and subject', async () => {
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

test('[apim.jwt] sets encoding, header field, dialect and thumbprints', async () => {
  const signer = { ...PLAN.signer!, x5t: 'sha-1', x5tS256: 'sha-256' }
  const { jwts } = made({ encoding: 'base64url', field: 'X-Caller', prefix: '', signer })
  const { header, claims, parts } = read(await jwts.lineFor(CALLER, API), 'base64url', 'X-Caller')
  assert.deepEqual([header.x5t, header['x5t#S256'], claims.apiname], ['sha-1', 'sha-256', 'Pets'])
  assert.ok(isSigned(parts, 'base64url'))
  assert.doesNotMatch(parts.join(''), /[+/=]/)
})

test('signing_algorithm NONE leaves the JWT unsigned', async () => {
  const { header, parts } = read(await made({ isSigned: false, signer: null }).jwts.lineFor(CALLER, API))
  assert.deepEqual([header, parts[2]], [{ typ: 'JWT', alg: 'none' }, ''])
})

test('a caller without an application gets no claims about one', async () => {
  const { claims } = read(await made().jwts.lineFor({ ...CALLER, application: null }, API))
  const names = Object.keys(claims).filter(name => /application|subscriber/.test(name))
  assert.deepEqual(names, [])
})

test('the cached line is reused, also for an equal caller object', async () => {
  const { jwts, counted } = made()
  const line = await jwts.lineFor(CALLER, API)
  assert.equal(jwts.lineFor(CALLER, API), line)
  assert.equal(jwts.lineFor({ ...CALLER }, API), line)
  assert.deepEqual([counted.get(METRIC.backendJwtHits), counted.get(METRIC.backendJwtMisses)], [2, 1])
  assert.notEqual(await jwts.lineFor({ ...CALLER, subscriptionTier: 'Silver' }, API), line)
  assert.notEqual(await jwts.lineFor({ ...CALLER, revocationKey: 'j2' }, API), line)
  assert.notEqual(await jwts.lineFor({ ...CALLER }, { ...API, version: '2' }), line)
})

test('a thousand concurrent first requests of one caller make one JWT', async () => {
  const { jwts } = made({ cacheMs: LIFE_MS })
  const lines = await Promise.all(Array.from({ length: 1000 }, () => jwts.lineFor({ ...CALLER }, API)))
  assert.equal(new Set(lines).size, 1)
})

test('the JWT never outlives the credentials of the caller', async () => {
  const { jwts, clock } = made()
  const caller = { ...CALLER, expiresMs: START_MS + 10_500 }
  const line = await jwts.lineFor(caller, API)
  assert.equal(read(line).claims.exp, START_MS / 1000 + 10)
  clock.ms += 10_499
  assert.equal(jwts.lineFor(caller, API), line)
  clock.ms += 1
  assert.notEqual(jwts.lineFor(caller, API), line)
})

test('issue 14: a JWT that was made while the clock was ahead is not sent once the clock is right', async () => {
  const { jwts, clock } = made()
  clock.ms += 1_800_000
  const early = await jwts.lineFor(CALLER, API)
  assert.equal(jwts.lineFor(CALLER, API), early)
  clock.ms -= 1_800_000
  const line = await jwts.lineFor(CALLER, API)
  assert.equal(read(line).claims.iat, START_MS / 1000)
})

test('the JWT is renewed before its end while it is still used', async () => {
  const { jwts, clock } = made()
  const caller = { ...CALLER, expiresMs: 0 }
  const line = await jwts.lineFor(caller, API)
  clock.ms += LIFE_MS * 0.8
  assert.equal(jwts.lineFor(caller, API), line)
  await new Promise(resolve => setImmediate(resolve))
  let next = jwts.lineFor(caller, API)
  while (next === line) {
    await new Promise(resolve => setImmediate(resolve))
    next = jwts.lineFor(caller, API)
  }
  assert.equal(read(String(next)).claims.iat, (START_MS + LIFE_MS * 0.8) / 1000)
})

test('without a cache each request gets its own JWT', async () => {
  const { jwts } = made({ cacheMs: 0 })
  assert.notEqual(await jwts.lineFor(CALLER, API), await jwts.lineFor(CALLER, API))
})

test('after a reload no JWT of the old plan is used', async () => {
  const { jwts } = made()
  const line = await jwts.lineFor(CALLER, API)
  jwts.updatePlan({ ...PLAN, encoding: 'base64url' })
  const next = await jwts.lineFor(CALLER, API)
  assert.notEqual(next, line)
  read(next, 'base64url')
})

test('enable_user_claims adds claims of token and user store, which never replace other claims', async () => {
  const known = { email: 'a@b.test', 'http://schema.test/role': 'admin', apiname: 'forged', iss: 'forged' }
  const { jwts, calls, counted } = made({ hasUserClaims: true }, () => known)
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
  assert.deepEqual(calls.pop(), { kind: 'claims', user: 'bob', tenant: 'carbon.super' })
  assert.deepEqual([counted.get(METRIC.userClaimsHits), counted.get(METRIC.userClaimsMisses)], [1, 2])
  assert.deepEqual(calls, [{ kind: 'claims', user: 'alice', tenant: 'carbon.super' }])
})

test('without [apim.cache.jwt_claim] claims are fetched for every JWT of a user, never of an application', async () => {
  const { jwts, calls } = made({ hasUserClaims: true, claimsCacheMs: 0, cacheMs: 0 })
  await jwts.lineFor(CALLER, API)
  await jwts.lineFor(CALLER, API)
  assert.equal(calls.length, 2)
  await jwts.lineFor({ ...CALLER, isApplication: true }, API)
  assert.equal(calls.length, 2)
})

test('generator_impl makes the JWT from the same claims', async () => {
  const { jwts, calls } = made({ isCustom: true, signer: null }, () => 'made.elsewhere')
  assert.equal(await jwts.lineFor(CALLER, API), 'X-JWT-Assertion: made.elsewhere\r\n')
  const [call] = calls
  assert.equal(call?.kind === 'backendJwt' && call.claims.sub, 'alice')
})

const FAILURES: readonly (readonly [string, Partial<BackendJwtPlan>, (call: ControlCall) => unknown, RegExp])[] = [
  [
    'text that would inject a header field',
    { isCustom: true },
    () => 'a\r\nX-Admin: yes',
    /no text that fits a header field/,
  ],
  ['an empty text', { isCustom: true }, () => '', /no text that fits a header field/],
  ['a JWT that is too long', { isCustom: true }, () => 'a'.repeat(6145), /6145 characters, more than 6144/],
  ['a missing key', { signer: null }, () => ({}), /no key to sign backend JWTs with/],
  [
    'a control thread that does not respond',
    { hasUserClaims: true },
    () => {
      throw new Error('not within 5000 ms')
    },
    /not within 5000 ms/,
  ],
]
for (const [what, changes, result, pattern] of FAILURES) {
  test(`${what} fails the request with the cause, and the next request tries again`, async () => {
    const { jwts } = made(changes, result)
    for (let i = 0; i < 2; i++) {
      await assert.rejects(async () => jwts.lineFor(CALLER, API), { name: BackendJwtFailed.name, message: pattern })
    }
  })
}
