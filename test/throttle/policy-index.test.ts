/** Issue 16, item 3: policies in force, by level and name; and deny policies. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type ApplicationPolicy,
  type CustomPolicy,
  DEFAULT_POLICIES,
  type DenyPolicy,
  type PolicySet,
  type Quota,
} from '../../src/throttle/policy.ts'
import { DenyIndex } from '../../src/throttle/deny-index.ts'
import { policyBody, readPolicy } from '../../src/throttle/policy-body.ts'
import { PolicyIndex } from '../../src/throttle/policy-index.ts'
import { NO_THROTTLING } from '../../src/throttle/throttle-plan.ts'

/** Section 5 of the facts: [level, name, requests per minute; 0 for no limit]. */
const DEFAULT_TIERS = [
  ...[['subscription', 'Gold', 5000] as const, ['subscription', 'Silver', 2000] as const],
  ...[['subscription', 'Bronze', 1000] as const, ['subscription', 'Unauthenticated', 500] as const],
  ...[['subscription', 'Unlimited', 0] as const, ['application', '50PerMin', 50] as const],
  ...[['application', '20PerMin', 20] as const, ['application', '10PerMin', 10] as const],
  ...[['application', 'Unlimited', 0] as const, ['advanced', '50KPerMin', 50_000] as const],
  ...[['advanced', '20KPerMin', 20_000] as const, ['advanced', '10KPerMin', 10_000] as const],
  ['advanced', 'Unlimited', 0] as const,
]

for (const [level, name, limit] of DEFAULT_TIERS) {
  test(`the ${level} tier ${name} is built in: ${limit} requests a minute`, () => {
    const { policy, isKnown } = new PolicyIndex()[level](name)
    const quota = { type: 'requests', limit, unit: 'min', units: 1, window: 'tumbling' }
    assert.deepEqual([isKnown, policy.name, policy.quota], [true, name, limit === 0 ? null : quota])
  })
}

test('the body of every default tier is read as the tier', () => {
  for (const policy of DEFAULT_POLICIES) {
    assert.deepEqual(readPolicy(policy.level, policyBody(policy)), { value: policy, errors: [] })
  }
})

function limited(name: string, limit: number): ApplicationPolicy {
  const quota: Quota = { type: 'requests', limit, unit: 'min', units: 1, window: 'tumbling' }
  return { level: 'application', name, quota, scope: 'node', failMode: 'local' }
}

function setOf(...policies: PolicySet['policies']): PolicySet {
  return { policies, denied: [] }
}

test('a file governs what it names, then the registry, then the built-in tier; each change is a version', () => {
  const index = new PolicyIndex()
  const limitOf = (name: string): number | undefined => index.application(name).policy.quota?.limit
  const versions = [index.version]
  index.setRegistry(setOf(limited('10PerMin', 11), limited('Own', 1)))
  versions.push(index.version)
  assert.deepEqual([limitOf('10PerMin'), limitOf('Own'), limitOf('20PerMin')], [11, 1, 20])
  index.setPlan({ ...NO_THROTTLING, files: setOf(limited('10PerMin', 12)) })
  versions.push(index.version)
  assert.deepEqual([limitOf('10PerMin'), limitOf('Own')], [12, 1])
  index.setRegistry(setOf())
  assert.deepEqual([limitOf('10PerMin'), index.application('Own').isKnown], [12, false])
  index.setPlan(NO_THROTTLING)
  assert.equal(limitOf('10PerMin'), 10)
  assert.equal(new Set(versions).size, versions.length)
})

test('D200: a name that no policy has gets the smallest default tier of its level, and is reported as unknown', () => {
  const index = new PolicyIndex()
  const found = [index.application('None'), index.subscription('None'), index.advanced('None')]
  assert.deepEqual(
    found.map(({ policy, isKnown }) => [policy.name, policy.quota?.limit, isKnown]),
    [
      ['10PerMin', 10, false],
      ['Unauthenticated', 500, false],
      ['10KPerMin', 10_000, false],
    ],
  )
})

test('without enable_unlimited_tier, applications and subscriptions have no tier Unlimited; APIs still have', () => {
  const index = new PolicyIndex()
  index.setPlan({ ...NO_THROTTLING, hasUnlimited: false })
  const known = [index.application('Unlimited'), index.subscription('Unlimited'), index.advanced('Unlimited')]
  assert.deepEqual(
    known.map(({ isKnown }) => isKnown),
    [false, false, true],
  )
})

for (const type of ['header', 'query', 'claim'] as const) {
  test(`a group with a ${type} condition applies only where its key enables it`, () => {
    const quota = { type: 'requests', limit: 1, unit: 'min', units: 1, window: 'tumbling' } as const
    const condition = { type, inverted: false, name: 'n', pattern: 'p' }
    const groups = [{ description: '', conditions: [condition], quota }]
    const policy = { level: 'advanced', name: 'G', userLevel: 'PER_API', groups, quota: null } as const
    const files = setOf({ ...policy, scope: 'node', failMode: 'local' })
    const index = new PolicyIndex()
    const groupsOf = (isEnabled: boolean): number => {
      index.setPlan({ ...NO_THROTTLING, files, conditions: { ...NO_THROTTLING.conditions, [type]: isEnabled } })
      return index.advanced('G').policy.groups.length
    }
    assert.deepEqual([groupsOf(false), groupsOf(true)], [0, 1])
  })
}

function denied(type: DenyPolicy['type'], value: string, inverted = false, enabled = true): DenyPolicy {
  return { id: `${type} ${value}`, type, value, inverted, enabled }
}

/** [deny policies, addresses that are denied, addresses that are not]. */
const ADDRESSES: readonly (readonly [readonly DenyPolicy[], readonly string[], readonly string[]])[] = [
  [[denied('IP', '192.0.2.7')], ['192.0.2.7', '::ffff:192.0.2.7'], ['192.0.2.8', '::1', 'nonsense']],
  [[denied('IP', '192.0.2.0/24')], ['192.0.2.0', '192.0.2.255'], ['192.0.1.255', '192.0.3.0']],
  [[denied('IPRANGE', '192.0.2.4-192.0.2.9')], ['192.0.2.4', '192.0.2.9'], ['192.0.2.3', '192.0.2.10']],
  [[denied('IPRANGE', '2001:db8::1-2001:db8::ff')], ['2001:db8::80'], ['2001:db8::100', '2001:db8::', '32.1.13.184']],
  [[denied('IP', '192.0.2.7', true)], ['192.0.2.8', '0.0.0.0', '255.255.255.255', '::1'], ['192.0.2.7']],
  [[denied('IPRANGE', '10.0.0.0-10.0.0.9', true)], ['10.0.0.10', '9.255.255.255'], ['10.0.0.0', '10.0.0.9']],
  [[denied('IP', '192.0.2.7', false, false)], [], ['192.0.2.7']],
  [
    [denied('IPRANGE', '10.0.0.0-10.0.0.9'), denied('IPRANGE', '10.0.0.5-10.0.0.20'), denied('IP', '10.0.0.21')],
    ['10.0.0.0', '10.0.0.15', '10.0.0.21'],
    ['10.0.0.22'],
  ],
]

for (const [policies, refused, passing] of ADDRESSES) {
  const shown = policies.map(
    ({ type, value, inverted, enabled }) => `${type} ${inverted ? 'not ' : ''}${value} ${enabled}`,
  )
  test(`addresses under ${shown.join(', ')}`, () => {
    const index = new DenyIndex(policies)
    assert.deepEqual(
      [...refused, ...passing].filter(each => index.deniesAddress(each)),
      refused,
    )
    // Remembered results are the same.
    assert.deepEqual(
      [...refused, ...passing].filter(each => index.deniesAddress(each)),
      refused,
    )
  })
}

test('ten thousand ranges are one binary search: every address is found as by a linear scan', () => {
  const ranges = Array.from({ length: 10_000 }, (_, at) => `10.${at >> 8}.${at & 255}.16-10.${at >> 8}.${at & 255}.31`)
  const index = new DenyIndex(ranges.map(range => denied('IPRANGE', range)))
  for (let at = 0; at < 10_000; at += 7) {
    const network = `10.${at >> 8}.${at & 255}`
    const found = [15, 16, 31, 32].map(byte => index.deniesAddress(`${network}.${byte}`))
    assert.deepEqual(found, [false, true, true, false])
  }
})

test('exact deny policies deny their value alone, and none where blocking is off', () => {
  const set = { policies: [], denied: [denied('USER', 'mallory'), denied('API', '/orders/1.0.0')] }
  const index = new PolicyIndex()
  index.setRegistry(set)
  const found = () => [
    index.denied.denies('USER', 'mallory'),
    index.denied.denies('USER', 'alice'),
    index.denied.denies('API', '/orders/1.0.0'),
    index.denied.denies('APPLICATION', 'mallory'),
  ]
  assert.deepEqual(found(), [true, false, true, false])
  index.setPlan({ ...NO_THROTTLING, denies: false })
  assert.deepEqual(found(), [false, false, false, false])
})

test('D218: 24 custom policies apply at most: those of files first, each kind by name', () => {
  const { quota } = limited('', 1)
  const custom = (name: string): CustomPolicy => {
    return { level: 'custom', name, keyTemplate: '$userId', quota: quota!, scope: 'node', failMode: 'local' }
  }
  const numbered = (prefix: string, count: number) => Array.from({ length: count }, (_, at) => `${prefix}${10 + at}`)
  const index = new PolicyIndex()
  index.setRegistry(setOf(...numbered('a', 20).map(custom).reverse(), custom('z11')))
  index.setPlan({ ...NO_THROTTLING, hasUnlimited: false, files: setOf(...numbered('z', 6).map(custom).reverse()) })
  const expected = [...numbered('z', 6), ...numbered('a', 18)]
  assert.deepEqual(
    index.custom.map(({ name }) => name),
    expected,
  )
  index.setPlan({ ...NO_THROTTLING, hasUnlimited: false, files: setOf(custom('Unlimited')) })
  assert.equal(index.custom[0]!.name, 'Unlimited')
})
