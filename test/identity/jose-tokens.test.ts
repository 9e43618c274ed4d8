/** Tokens that another implementation has signed, with each algorithm that is accepted. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SignJWT } from 'jose'
import { issuerPlan, TokenBench } from './told-sources.ts'
import { tokenSigner } from './token-maker.ts'

const ISSUER = 'https://issuer.example/'
/** One for all algorithms of RSA: making one takes its time. */
const rsa = tokenSigner('RS256', 'k')

for (const alg of issuerPlan(ISSUER).algorithms) {
  test(`${alg} of another implementation is accepted, and no other algorithm for its key`, async () => {
    const { privateKey, jwk } = /^[RP]S/.test(alg) ? rsa : tokenSigner(alg, 'k')
    const bench = new TokenBench({ issuers: [issuerPlan(ISSUER)] })
    bench.sources.issuers.learn({ issuer: ISSUER, keys: [{ ...jwk, alg }] })
    const claims = new SignJWT({ azp: 'c', scope: 'a' }).setIssuer(ISSUER).setExpirationTime(bench.nowMs / 1000 + 60)
    const token = await claims.setProtectedHeader({ alg, kid: 'k' }).sign(privateKey)
    const verdict = await bench.verdict(token)
    assert.equal(verdict.kind === 'refused' ? verdict.description : '', '')
    bench.sources.issuers.learn({ issuer: ISSUER, keys: [{ ...jwk, alg: other(alg) }] })
    bench.sources.epoch++
    assert.equal((await bench.verdict(token)).kind, 'refused')
  })
}

function other(alg: string): string {
  return alg === 'RS256' ? 'RS512' : 'RS256'
}
