/** Which policies of the registry reach reactors, and what the operator is told of those that do not apply. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PolicyDeployment } from '../../src/control/policy-deployment.ts'
import type { PolicySet } from '../../src/throttle/policy.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { custom, quota } from '../harness/throttled-gateway.ts'

function customPolicies(prefix: string, count: number): PolicySet {
  const policies = Array.from({ length: count }, (_, at) => custom(`${prefix}${10 + at}`, '$userId', quota(1)))
  return { policies, denied: [] }
}

test('D218: custom policies of the registry beyond 24 with those of files are reported once, by name', t => {
  const { configuration } = loadConfiguration(temporaryHome(t, { 'deployment.toml': '' }), [])
  const told: (readonly string[])[] = []
  let files = customPolicies('file', 20)
  const deployment = new PolicyDeployment(configuration, {
    broadcast: () => undefined,
    read: () => Promise.resolve(null),
    failed: assert.fail,
    files: () => files,
    surplus: names => told.push(names),
  })
  deployment.setRegistry(customPolicies('own', 4))
  assert.deepEqual(told, [])
  deployment.setRegistry(customPolicies('own', 6))
  deployment.setRegistry(customPolicies('own', 6))
  assert.deepEqual(told, [['own14', 'own15']])
  files = customPolicies('file', 21)
  deployment.renew(configuration)
  assert.deepEqual(told[1], ['own13', 'own14', 'own15'])
  deployment.setRegistry(customPolicies('own', 3))
  assert.equal(told.length, 2)
  deployment.close()
})
