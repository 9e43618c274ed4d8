/** Which resources a grant allows: kinds of callers, and scopes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Resource } from '../../src/proxy/exchange/resource.ts'
import { CALLER_KIND, type Grant, ResourceRequirements } from '../../src/auth/grants.ts'

function resource(authType: Resource['authType'], scopes: readonly string[] = []): Resource {
  return { template: '/x', verb: 'GET', authType, tier: 'Unlimited', scopes }
}

function grant(requirements: ResourceRequirements, callerKind: number, held: readonly string[]): Grant {
  const scopes = requirements.scopeBits.maskOf(held)
  return { kind: 'grant', caller: {} as never, callerKind, scopes, subscriptionDenial: 0, token: null }
}

const KINDS = [
  ['None', 0, 0],
  ['Application', 0, 900905],
  ['Application User', 900905, 0],
  ['Application & Application User', 0, 0],
] as const

for (const [authType, application, user] of KINDS) {
  test(`auth type ${authType}: an application gets ${application}, a user ${user}`, () => {
    const requirements = new ResourceRequirements([])
    const asked = resource(authType)
    assert.equal(requirements.denialCode(grant(requirements, CALLER_KIND.APPLICATION, []), asked), application)
    assert.equal(requirements.denialCode(grant(requirements, CALLER_KIND.USER, []), asked), user)
  })
}

test('any one of the required scopes is enough, also with more than 32 scopes in an API', () => {
  const names = Array.from({ length: 70 }, (_, i) => `s${i}`)
  const resources = names.map((name, i) => resource('None', [name, names[(i + 1) % 70]!]))
  const requirements = new ResourceRequirements(resources)
  for (const [i, asked] of resources.entries()) {
    const opened = (held: readonly string[]) =>
      requirements.denialCode(grant(requirements, CALLER_KIND.USER, held), asked)
    assert.equal(opened([names[i]!]), 0)
    assert.equal(opened([names[(i + 1) % 70]!]), 0)
    assert.equal(opened(names.filter((_, other) => other !== i && other !== (i + 1) % 70)), 900910)
    assert.equal(opened(['unknown']), 900910)
    assert.equal(opened([]), 900910)
  }
})
