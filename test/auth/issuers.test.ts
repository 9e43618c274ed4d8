/** Which keys of a key set are used, for which algorithms, and which of them verifies a token. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import type { PublicJwk } from '../../src/auth/records.ts'
import { IssuerRegistry } from '../../src/auth/issuers.ts'
import { VerificationKey, importVerificationKey } from '../../src/auth/verification-key.ts'
import { issuerPlan } from './token-bench.ts'
import { tokenSigner } from './token-maker.ts'

const ALL = issuerPlan('').algorithms
const RSA = tokenSigner('RS256', 'rsa').jwk
const EC = tokenSigner('ES256', 'ec').jwk
const ED = tokenSigner('EdDSA', 'ed').jwk
const { x: ecX } = EC
const { x: edX } = ED

function without(jwk: PublicJwk, name: string): PublicJwk {
  return Object.fromEntries(Object.entries(jwk).filter(([member]) => member !== name)) as PublicJwk
}

const USED: readonly (readonly [what: string, jwk: PublicJwk, accepted: readonly string[], algorithms: string])[] = [
  ['RSA with alg', RSA, ALL, 'RS256'],
  ['RSA without alg', without(RSA, 'alg'), ALL, 'RS256 RS384 RS512 PS256 PS384 PS512'],
  ['RSA without alg, for an issuer with few algorithms', without(RSA, 'alg'), ['PS256', 'ES256'], 'PS256'],
  ['RSA without kid and use', without(without(RSA, 'kid'), 'use'), ALL, 'RS256'],
  ['RSA with key_ops', { ...RSA, key_ops: ['verify'] }, ALL, 'RS256'],
  ['RSA with a certificate, which is ignored', { ...RSA, x5c: ['MIIB'], x5u: 'https://x' }, ALL, 'RS256'],
  ['P-256 without alg', without(EC, 'alg'), ALL, 'ES256'],
  ['Ed25519', ED, ALL, 'EdDSA'],
]
for (const [what, jwk, accepted, algorithms] of USED) {
  test(`used: ${what}`, () => {
    const key = importVerificationKey(jwk, accepted)
    assert.ok(key instanceof VerificationKey, String(key))
    assert.equal(key.algorithms.join(' '), algorithms)
    assert.equal(key.key.type, 'public')
  })
}

const SECRET = { kty: 'oct', kid: 's', alg: 'HS256', k: 'c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0' }
const SMALL = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' })
const OTHER = generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey.export({ format: 'jwk' })
const PRIVATE = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' })

const UNUSED: readonly (readonly [what: string, jwk: object, why: RegExp])[] = [
  ['a shared secret', SECRET, /not a public key/],
  ['a shared secret under an RSA algorithm', { kty: 'oct', kid: 's', alg: 'RS256' }, /not supported/],
  ['an RSA key with a secret beside it', { ...RSA, k: 'c2VjcmV0' }, /not a public key/],
  ['a private key', { ...PRIVATE, kid: 'p', alg: 'RS256' }, /not a public key/],
  ['RSA of 1,024 bits', { ...SMALL, kid: 'small', alg: 'RS256' }, /1024 bits/],
  ['RSA with the exponent 1', { ...RSA, e: 'AQ' }, /exponent|read/],
  ['RSA with an even exponent', { ...RSA, e: 'AQAA' }, /exponent|read/],
  ['RSA without a modulus', without(RSA, 'n'), /read/],
  ['RSA for an ECDSA algorithm', { ...RSA, alg: 'ES256' }, /not one of its kty/],
  ['RSA for HMAC', { ...RSA, alg: 'HS256' }, /not one of its kty/],
  ['RSA without signing', { ...RSA, alg: 'none' }, /not one of its kty/],
  ['P-256 for the algorithm of P-384', { ...EC, alg: 'ES384' }, /not one of its kty/],
  ['P-256 with crv P-384', { ...without(EC, 'alg'), crv: 'P-384' }, /read/],
  ['a point that is not on its curve', { ...EC, y: ecX }, /read/],
  ['another curve', { ...OTHER, kid: 'k', alg: 'ES256K' }, /not supported/],
  ['X25519', { kty: 'OKP', crv: 'X25519', x: edX, kid: 'x', alg: 'EdDSA' }, /not supported/],
  ['a curve with the name of an inherited property', { ...EC, crv: 'constructor' }, /not supported/],
  ['for encryption', { ...RSA, use: 'enc' }, /use/],
  ['for signing alone', { ...RSA, key_ops: ['sign'] }, /key_ops/],
  ['key_ops that are no list', { ...RSA, key_ops: 'verify' }, /key_ops/],
  ['kid that is a number', { ...RSA, kid: 1 }, /kid/],
]
for (const [what, jwk, why] of UNUSED) {
  test(`not used: ${what}`, () => {
    const reason = importVerificationKey(jwk as PublicJwk, ALL)
    assert.match(typeof reason === 'string' ? reason : 'used', why)
  })
}

test('a key is not used if its issuer may not sign with its algorithm', () => {
  assert.equal(typeof importVerificationKey(RSA, ['ES256']), 'string')
})

test('a key set that arrives before its issuer is used once the issuer is configured', () => {
  const registry = new IssuerRegistry()
  registry.setKeys({ issuer: 'a', keys: [RSA, EC] })
  assert.equal(registry.find('a'), undefined)
  registry.setPlans([issuerPlan('a')])
  assert.equal(registry.find('a')?.keysFor('RS256', 'rsa').length, 1)
  assert.equal(registry.find('a')?.keysFor('ES256', undefined).length, 1)
  assert.equal(registry.find('a')?.keysFor('ES256', 'rsa').length, 0)
})

test('a reload keeps the keys of an unchanged issuer and invalidates those of a changed one', () => {
  const registry = new IssuerRegistry()
  registry.setPlans([issuerPlan('a')])
  registry.setKeys({ issuer: 'a', keys: [RSA] })
  const [key] = registry.find('a')!.keysFor('RS256', 'rsa')
  registry.setPlans([issuerPlan('a'), issuerPlan('b')])
  assert.equal(registry.find('a')!.keysFor('RS256', 'rsa')[0], key)
  assert.equal(key!.isValid, true)
  registry.setPlans([issuerPlan('a', { algorithms: ['RS256'] })])
  assert.equal(key!.isValid, false)
  assert.equal(registry.find('a')!.keysFor('RS256', 'rsa').length, 1)
})

test('keys with the same kid are told apart by their algorithms', () => {
  const registry = new IssuerRegistry()
  registry.setPlans([issuerPlan('a')])
  registry.setKeys({ issuer: 'a', keys: [RSA, { ...EC, kid: 'rsa' }] })
  assert.equal(registry.find('a')!.keysFor('ES256', 'rsa').length, 1)
})

test('at most 64 keys of an issuer are used', () => {
  const registry = new IssuerRegistry()
  registry.setPlans([issuerPlan('a')])
  registry.setKeys({ issuer: 'a', keys: Array.from({ length: 65 }, (_, i) => ({ ...ED, kid: `k${i}` })) })
  assert.equal(registry.find('a')!.keysFor('EdDSA', undefined).length, 64)
})
