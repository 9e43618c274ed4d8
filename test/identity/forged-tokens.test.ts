/** Forged tokens are refused, whether or not the genuine one is known already, and are never remembered as good. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { type ForgersWorld, forgedTokens } from './forged-tokens.ts'
import { issuerPlan, TokenBench } from './told-sources.ts'
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

/** Where it pays to try everything: the others are as these, and slower. */
const WHOLE = ['RS256', 'ES256']

async function eachIsRefused(bench: TokenBench, world: ForgersWorld): Promise<void> {
  for (const { name, token } of forgedTokens(world)) {
    const verdict = await bench.verdict(token)
    assert.deepEqual([verdict.kind, verdict.kind === 'refused' && verdict.code], ['refused', 900901], name)
  }
}

for (const algorithm of ['RS256', 'PS384', 'ES256', 'ES384', 'ES512', 'EdDSA']) {
  describe(`of an issuer that signs with ${algorithm}`, () => {
    const signer = tokenSigner(algorithm, 'key-1')
    const otherSigner = tokenSigner(algorithm, 'key-2')
    const world: ForgersWorld = {
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
    bench.sources.issuers.learn({ issuer: ISSUER, keys: [signer.jwk] })
    bench.sources.issuers.learn({ issuer: OTHER, keys: [otherSigner.jwk] })
    const genuine = signedToken(signer, CLAIMS)

    after(() => bench.tokens.forget())

    test('each is refused with 900901 while nothing is known', () => eachIsRefused(bench, world))

    if (!WHOLE.includes(algorithm)) return
    test('each is refused when the genuine one is warm, and when it comes again itself', async () => {
      assert.equal((await bench.verdict(genuine)).kind, 'accepted')
      await eachIsRefused(bench, world)
      await eachIsRefused(bench, world)
      assert.ok(!(bench.check(genuine) instanceof Promise), 'the genuine one was driven out')
    })

    test('every change of a single byte of the warm token is refused', async () => {
      assert.equal((await bench.verdict(genuine)).kind, 'accepted')
      for (let at = 0; at < genuine.length; at++) {
        const byte = genuine.charCodeAt(at)
        for (const other of [byte ^ 1, byte ^ 0x20, byte ^ 0x80]) {
          const changed = `${genuine.slice(0, at)}${String.fromCharCode(other)}${genuine.slice(at + 1)}`
          assert.equal((await bench.verdict(changed)).kind, 'refused', `byte ${at}: ${byte} -> ${other}`)
        }
      }
      assert.ok(!(bench.check(genuine) instanceof Promise), 'the genuine one was driven out')
    })
  })
}

test('of an issuer whose signatures may have either s, one is good, and beside it the other is not', async () => {
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
    bench.sources.issuers.learn({ issuer: ISSUER, keys: [signer.jwk] })
    for (const [token, kind] of [
      [first, 'accepted'],
      [second, 'refused'],
      [first, 'accepted'],
    ] as const) {
      assert.equal((await bench.verdict(token)).kind, kind)
    }
    // They are one token, which one revocation ends.
    bench.sources.revoke('jti-1')
    for (const token of [first, second]) assert.equal((await bench.verdict(token)).kind, 'refused')
    bench.tokens.forget()
  }
})
