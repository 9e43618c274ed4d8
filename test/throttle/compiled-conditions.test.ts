/** Compiled conditions of advanced policies outlive changes of other policies. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CounterTable } from '../../src/throttle/counter-table.ts'
import type { AdvancedPolicy, PolicySet } from '../../src/throttle/policy.ts'
import { PolicyIndex } from '../../src/throttle/policy-index.ts'
import { Throttle } from '../../src/throttle/throttle.ts'
import { NO_THROTTLING } from '../../src/throttle/throttle-plan.ts'
import { quotaOf } from './counting.ts'

const LIMIT = quotaOf(5)

function conditional(name: string, pattern: string, limit = 5): AdvancedPolicy {
  const conditions = [{ type: 'header', inverted: false, name: 'x-a', pattern }] as const
  const groups = [{ description: '', conditions, quota: { ...LIMIT, limit } }]
  return { level: 'advanced', name, userLevel: 'PER_API', groups, quota: null, scope: 'node', failMode: 'local' }
}

function throttleOf(policies: PolicyIndex): Throttle {
  const auth = { state: { policies } } as unknown as Throttle['auth']
  const table = new CounterTable(CounterTable.allocate(16), Date.now, 1)
  return new Throttle({ auth, table, shared: null, metrics: { add: () => {} }, report: () => {}, wallMs: Date.now })
}

const DENIED: PolicySet['denied'] = [{ id: '1', type: 'USER', value: 'anne', inverted: false, enabled: true }]
const CHANGES: readonly (readonly [string, PolicySet, boolean])[] = [
  ['a deny policy is added', { policies: [conditional('A', 'x+')], denied: DENIED }, true],
  ['another policy is added', { policies: [conditional('A', 'x+'), conditional('B', 'y+')], denied: [] }, true],
  ['the limit of the group changes', { policies: [conditional('A', 'x+', 9)], denied: [] }, true],
  ['a pattern of the policy changes', { policies: [conditional('A', 'z+')], denied: [] }, false],
]
for (const [change, set, isKept] of CHANGES) {
  test(`when ${change} the patterns of a policy are ${isKept ? 'kept' : 'compiled anew'}`, () => {
    const policies = new PolicyIndex()
    policies.setPlan({ ...NO_THROTTLING, conditions: { header: true, claim: true, query: true } })
    const throttle = throttleOf(policies)
    policies.setRegistry({ policies: [conditional('A', 'x+')], denied: [] })
    const before = throttle.groupsOf(policies.advanced('A').policy)
    policies.setRegistry(structuredClone(set))
    const after = throttle.groupsOf(policies.advanced('A').policy)
    assert.ok(before !== null && after !== null)
    assert.equal(after === before, isKept)
  })
}
