/** Issuers whose tokens are accepted: the built-in key manager and `[[apim.jwt.issuer]]`. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { join } from 'node:path'
import { examine } from '../../src/config/load.ts'
import { authPlan } from '../../src/plan/auth-planning.ts'
import { temporaryHome } from '../config/temporary-home.ts'

function planOf(t: TestContext, toml: string) {
  const home = temporaryHome(t, { 'deployment.toml': toml })
  const { configuration, errors } = examine(home, [], join(home, 'data'))
  return { plan: authPlan(configuration), errors }
}

const OWN = '[oauth.oidc.id_token]\nissuer = "https://own/oauth2/token"\n'

test('the built-in key manager is an issuer whose access tokens have to say so', t => {
  const { plan } = planOf(t, OWN)
  assert.deepEqual(
    plan.issuers.map(({ issuer, isOwn }) => [issuer, isOwn]),
    [['https://own/oauth2/token', true]],
  )
})

test('each issuer has the claims that are mapped below it', t => {
  const { plan, errors } = planOf(
    t,
    `${OWN}
[[apim.jwt.issuer]]
name = "one"
jwks.url = "https://one/jwks"
algorithms = ["ES256"]
audiences = "a,b"
[[apim.jwt.issuer.claim_mapping]]
remote_claim = "r1"
local_claim = "l1"
[[apim.jwt.issuer]]
name = "two"
jwks.url = "https://two/jwks"
low_s = true
scopes_claim = "scp"
[[apim.jwt.issuer.claim_mapping]]
remote_claim = "r2"
local_claim = "l2"
`,
  )
  assert.deepEqual(errors, [])
  assert.deepEqual(
    plan.issuers.slice(1).map(({ issuer, isOwn, algorithms, audiences, claims, scopesClaim, lowS }) => {
      return [issuer, isOwn, algorithms.length, audiences, claims, scopesClaim, lowS]
    }),
    [
      ['one', false, 1, ['a', 'b'], [{ remote: 'r1', local: 'l1' }], 'scope', false],
      ['two', false, 10, [], [{ remote: 'r2', local: 'l2' }], 'scp', true],
    ],
  )
})

test('a row that names the built-in key manager says on which terms', t => {
  const { plan } = planOf(t, `${OWN}[[apim.jwt.issuer]]\nname = "https://own/oauth2/token"\naudiences = ["a"]`)
  assert.deepEqual(
    plan.issuers.map(({ isOwn, audiences }) => [isOwn, audiences]),
    [[true, ['a']]],
  )
})

for (const algorithms of ['["HS256"]', '["none"]', '["RS256", "rs256"]', '[]']) {
  test(`algorithms = ${algorithms} is refused`, t => {
    const { errors } = planOf(t, `[[apim.jwt.issuer]]\nname = "one"\nalgorithms = ${algorithms}`)
    assert.deepEqual(
      errors.map(({ key }) => key),
      ['apim.jwt.issuer[0].algorithms'],
    )
  })
}

test('without [apim.cache.gateway_token] nothing is remembered', t => {
  assert.equal(planOf(t, '').plan.tokenCacheMs, 900_000)
  assert.equal(planOf(t, '[apim.cache.gateway_token]\nexpiry_time = 60').plan.tokenCacheMs, 60_000)
  assert.equal(planOf(t, '[apim.cache.gateway_token]\nenable = false').plan.tokenCacheMs, 0)
})
