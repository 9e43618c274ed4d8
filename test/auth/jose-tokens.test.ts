/** Tokens signed by another implementation (jose), with each supported algorithm. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SignJWT } from 'jose'
import { issuerPlan, TokenBench } from './token-bench.ts'
import { tokenSigner } from './token-maker.ts'

const ISSUER = 'https://issuer.example/'
/** Shared by all RSA algorithms, because generating a key is slow. */
const rsa = tokenSigner('RS256', 'k')

for (const alg of issuerPlan(ISSUER).algorithms) {
  test(`a token that jose has signed with ${alg} is accepted, and refused once its key has another alg`, async () => {
    const { privateKey, jwk } = /^[RP]S/.test(alg) ? rsa : tokenSigner(alg, 'k')
    const bench = new TokenBench({ issuers: [issuerPlan(ISSUER)] })
    bench.state.issuers.setKeys({ issuer: ISSUER, keys: [{ ...jwk, alg }] })
    const claims = new SignJWT({ azp: 'c', scope: 'a' }).setIssuer(ISSUER).setExpirationTime(bench.nowMs / 1000 + 60)
    const token = await claims.setProtectedHeader({ alg, kid: 'k' }).sign(privateKey)
    const result = await bench.result(token)
    assert.equal(result.kind === 'refused' ? result.description : '', '')
    bench.state.issuers.setKeys({ issuer: ISSUER, keys: [{ ...jwk, alg: other(alg) }] })
    bench.state.version++
    assert.equal((await bench.result(token)).kind, 'refused')
  })
}

function other(alg: string): string {
  return alg === 'RS256' ? 'RS512' : 'RS256'
}
