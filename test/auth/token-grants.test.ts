/** Grants of tokens for APIs: which one a known token finds, and how long. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AuthenticationResult, denial } from '../../src/auth/authenticator.ts'
import { ResourceRequirements } from '../../src/auth/grants.ts'
import type { ReactorAuth } from '../../src/auth/reactor-auth.ts'
import { TokenGrants } from '../../src/auth/token-grants.ts'
import { arena } from '../../src/http1/llhttp.ts'
import { TokenMemo } from '../../src/proxy/exchange/caller.ts'
import type { Exchange } from '../../src/proxy/exchange/exchange.ts'
import { issuerPlan, TokenBench } from './token-bench.ts'
import { signedToken, tokenSigner } from './token-maker.ts'

const ISSUER = 'https://issuer.example/'
const NOW_S = 1_700_000_000
const SIGNER = tokenSigner('ES256', 'key-1')
const ADMITS_BEARERS = { admitsBearers: true, denialOf: () => undefined }
const CLAIMS = { iss: ISSUER, sub: 'alice', azp: 'c', exp: NOW_S + 3600 }

function benchAndApis(): { readonly made: TokenBench; readonly apis: readonly TokenGrants[] } {
  const made = new TokenBench({ issuers: [issuerPlan(ISSUER)] })
  made.state.issuers.setKeys({ issuer: ISSUER, keys: [SIGNER.jwk] })
  const subscriptions = { forConsumerKey: () => ({ kind: 'unsubscribed', keyType: 'PRODUCTION', code: 900908 }) }
  const state = { hasSnapshot: true, subscriptions }
  const auth = { tokens: made.tokens, state, report: () => {} } as unknown as ReactorAuth
  const requirements = new ResourceRequirements([])
  return { made, apis: ['one:1', 'other:1'].map(api => new TokenGrants(auth, requirements, api)) }
}

/** Asks for the grants of a token as a client does that repeats its fields, the token among them. */
function clientOf(text: string): (grants: TokenGrants) => ReturnType<TokenGrants['authenticate']> {
  const { offset } = arena.acquire(8192)!
  arena.bytes.latin1Write(text, offset)
  const exchange = { tokenMemo: new TokenMemo(), head: { fieldsAt: offset }, api: { keyType: 'PRODUCTION' } }
  return grants => grants.authenticate(exchange as unknown as Exchange, offset, text.length, ADMITS_BEARERS)
}

test('the row of a token has the grant for the API that was asked for last, also when an API returns', async () => {
  const { made, apis } = benchAndApis()
  const text = signedToken(SIGNER, CLAIMS)
  const ask = clientOf(text)
  const grants: AuthenticationResult[] = []
  for (const api of apis) grants.push(await ask(api))
  const { row } = await made.validate(text)
  for (const turn of [0, 1, 0]) {
    assert.equal(ask(apis[turn]!), grants[turn])
    assert.equal(made.tokens.grantAt(row, apis[turn]!), grants[turn])
    assert.equal(made.tokens.grantAt(row, apis[1 - turn]!), null)
  }
})

test('a client that repeats its token loses it with the revocation, without a new validation before', async () => {
  const { made, apis } = benchAndApis()
  const ask = clientOf(signedToken(SIGNER, { ...CLAIMS, jti: 'revoked' }))
  const granted = await ask(apis[0]!)
  for (let repeat = 0; repeat < 3; repeat++) assert.equal(ask(apis[0]!), granted)
  assert.deepEqual([granted?.kind, made.count('tokenVerifications'), made.count('tokenHits')], ['grant', 1, 3])
  made.state.revoke('revoked')
  assert.deepEqual(await ask(apis[0]!), denial(900901))
})

for (const [name, change] of [
  ['is evicted', made => made.tokens.clear()],
  ['has left its cache time', made => (made.nowMs += 900_000)],
] as const satisfies readonly (readonly [string, (made: TokenBench) => void])[]) {
  test(`a repeated token that ${name} is validated again`, async () => {
    const { made, apis } = benchAndApis()
    const ask = clientOf(signedToken(SIGNER, CLAIMS))
    await ask(apis[0]!)
    assert.ok(!(ask(apis[0]!) instanceof Promise))
    change(made)
    const again = ask(apis[0]!)
    assert.ok(again instanceof Promise)
    await again
  })
}
