/** Forged tokens are refused, whether or not the genuine token is cached, and are never cached as accepted. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { type ForgeryInput, forgedTokens } from './forged-tokens.ts'
import { issuerPlan, TokenBench } from './token-bench.ts'
import { base64url, ecdsaNumbers, signedToken, tokenSigner } from './token-maker.ts'

const ISSUER = 'https://issuer.example/oauth2/token'
const OTHER = 'https://other.example/'
const NOW_MS = 1_700_000_000_000

const CLAIMS = {
  iss: ISSUER,
  sub: 'alice',
  aud: ['gateway', 'else'],
  azp: 'client-1',
  scope: 'read write',
  iat: NOW_MS / 1000,
  nbf: NOW_MS / 1000,
  exp: NOW_MS / 1000 + 3600,
  jti: 'jti-1',
}

/** Algorithms with all tests; the others are of the same kinds, and slower. */
const THOROUGH = ['RS256', 'ES256']

async function eachIsRefused(bench: TokenBench, input: ForgeryInput): Promise<void> {
  for (const { name, token } of forgedTokens(input)) {
    const result = await bench.result(token)
    assert.deepEqual([result.kind, result.kind === 'refused' && result.code], ['refused', 900901], name)
  }
}

for (const algorithm of ['RS256', 'PS384', 'ES256', 'ES384', 'ES512', 'EdDSA']) {
  describe(`tokens of an issuer that signs with ${algorithm}`, () => {
    const signer = tokenSigner(algorithm, 'key-1')
    const otherSigner = tokenSigner(algorithm, 'key-2')
    const input: ForgeryInput = {
      claims: CLAIMS,
      signer,
      otherSigner,
      otherIssuer: OTHER,
      hasAudience: true,
      lowS: true,
      nowMs: NOW_MS,
    }
    const issuers = [issuerPlan(ISSUER, { audiences: ['gateway'], lowS: true }), issuerPlan(OTHER)]
    const bench = new TokenBench({ issuers })
    bench.state.issuers.setKeys({ issuer: ISSUER, keys: [signer.jwk] })
    bench.state.issuers.setKeys({ issuer: OTHER, keys: [otherSigner.jwk] })
    const genuine = signedToken(signer, CLAIMS)

    after(() => bench.tokens.clear())

    test('every forged token is refused with 900901 while nothing is cached', () => eachIsRefused(bench, input))

    if (!THOROUGH.includes(algorithm)) return
    test('every forged token is refused twice while the genuine one is cached', async () => {
      assert.equal((await bench.result(genuine)).kind, 'accepted')
      await eachIsRefused(bench, input)
      await eachIsRefused(bench, input)
      assert.ok(!(bench.validate(genuine) instanceof Promise), 'the genuine token was evicted')
    })

    test('every change of a single byte of the cached token is refused', async () => {
      assert.equal((await bench.result(genuine)).kind, 'accepted')
      for (let at = 0; at < genuine.length; at++) {
        const byte = genuine.charCodeAt(at)
        for (const other of [byte ^ 1, byte ^ 0x20, byte ^ 0x80]) {
          const changed = `${genuine.slice(0, at)}${String.fromCharCode(other)}${genuine.slice(at + 1)}`
          assert.equal((await bench.result(changed)).kind, 'refused', `byte ${at}: ${byte} -> ${other}`)
        }
      }
      assert.ok(!(bench.validate(genuine) instanceof Promise), 'the genuine token was evicted')
    })
  })
}

test('without low_s either ECDSA signature is accepted, but not both for one token', async () => {
  const signer = tokenSigner('ES256', 'key-1')
  const genuine = signedToken(signer, CLAIMS)
  const end = genuine.lastIndexOf('.') + 1
  const numbers = ecdsaNumbers('ES256', Buffer.from(genuine.slice(end), 'base64url'), false)
  const other = `${genuine.slice(0, end)}${base64url(Buffer.concat(numbers))}`
  assert.notEqual(other, genuine)
  for (const [first, second] of [
    [genuine, other],
    [other, genuine],
  ] as const) {
    const bench = new TokenBench({ issuers: [issuerPlan(ISSUER)] })
    bench.state.issuers.setKeys({ issuer: ISSUER, keys: [signer.jwk] })
    for (const [token, kind] of [
      [first, 'accepted'],
      [second, 'refused'],
      [first, 'accepted'],
    ] as const) {
      assert.equal((await bench.result(token)).kind, kind)
    }
    // One revocation ends both spellings.
    bench.state.revoke('jti-1')
    for (const token of [first, second]) assert.equal((await bench.result(token)).kind, 'refused')
    bench.tokens.clear()
  }
})
