/** Which resources a grant opens: kinds of callers, scopes, and scopes that everybody counts as having. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Resource } from '../../src/exchange/resource.ts'
import { AllowedScopes, CALLER_KIND, type Grant, ResourceNeeds } from '../../src/identity/grants.ts'

function resource(authType: Resource['authType'], scopes: readonly string[] = []): Resource {
  return { template: '/x', verb: 'GET', authType, tier: 'Unlimited', scopes }
}

const NONE = new AllowedScopes([])

function grant(needs: ResourceNeeds, callerKind: number, held: readonly string[]): Grant {
  return { kind: 'grant', caller: {} as never, callerKind, scopes: needs.bits.maskOf(held), token: null }
}

const KINDS = [
  ['None', 0, 0],
  ['Application', 0, 900905],
  ['Application User', 900905, 0],
  ['Application & Application User', 0, 0],
] as const

for (const [authType, application, user] of KINDS) {
  test(`${authType}: an application gets ${application}, a user ${user}`, () => {
    const needs = new ResourceNeeds([])
    const asked = resource(authType)
    assert.equal(needs.refusalOf(grant(needs, CALLER_KIND.APPLICATION, []), asked, NONE), application)
    assert.equal(needs.refusalOf(grant(needs, CALLER_KIND.USER, []), asked, NONE), user)
  })
}

test('any one of the scopes is enough, beyond 32 scopes of an API as well', () => {
  const names = Array.from({ length: 70 }, (_, i) => `s${i}`)
  const resources = names.map((name, i) => resource('None', [name, names[(i + 1) % 70]!]))
  const needs = new ResourceNeeds(resources)
  for (const [i, asked] of resources.entries()) {
    const opened = (held: readonly string[]) => needs.refusalOf(grant(needs, CALLER_KIND.USER, held), asked, NONE)
    assert.equal(opened([names[i]!]), 0)
    assert.equal(opened([names[(i + 1) % 70]!]), 0)
    assert.equal(opened(names.filter((_, other) => other !== i && other !== (i + 1) % 70)), 900910)
    assert.equal(opened(['unknown']), 900910)
    assert.equal(opened([]), 900910)
  }
})

test('a scope that is allowed unasked opens its resource to every caller', () => {
  const asked = resource('None', ['openid', 'other'])
  const needs = new ResourceNeeds([asked])
  assert.equal(needs.refusalOf(grant(needs, CALLER_KIND.USER, []), asked, NONE), 900910)
  const allowed = new AllowedScopes(['^device_.*', 'openid'])
  assert.equal(needs.refusalOf(grant(needs, CALLER_KIND.USER, []), asked, allowed), 0)
})
