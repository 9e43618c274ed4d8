/** Applications, consumer keys and subscriptions: every way to a refusal, and the effect of updates. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SubscriptionUpdate, SubscriptionStatus } from '../../src/auth/records.ts'
import { consumerKeyId } from '../../src/auth/records.ts'
import { SubscriptionIndex } from '../../src/auth/subscription-index.ts'

const APPLICATION = { id: 'app-1', name: 'shop', owner: 'admin', tenant: 't', tier: 'Unlimited', attributes: {} }
const KEY = { issuer: 'https://km', consumerKey: 'ck', applicationId: 'app-1', keyType: 'PRODUCTION' } as const
const SUBSCRIPTION = { id: 's-1', applicationId: 'app-1', api: 'Pets:1', tier: 'Gold', status: 'ACTIVE' } as const

function update(changes: Partial<SubscriptionUpdate>): SubscriptionUpdate {
  const removed = { applications: [], keys: [], subscriptions: [] }
  return { applications: [], keys: [], subscriptions: [], removed, ...changes }
}

function filled(): SubscriptionIndex {
  const index = new SubscriptionIndex()
  index.apply(update({ applications: [APPLICATION], keys: [KEY], subscriptions: [SUBSCRIPTION] }))
  return index
}

function found(index: SubscriptionIndex, issuer = 'https://km', consumerKey = 'ck', api = 'Pets:1') {
  const outcome = index.forConsumerKey(issuer, consumerKey, api)
  return outcome.kind === 'subscribed' ? `${outcome.application.name} ${outcome.keyType} ${outcome.tier}` : outcome.code
}

test('a consumer key leads to its application and the tier of its subscription', () => {
  assert.equal(found(filled()), 'shop PRODUCTION Gold')
})

test('an unknown issuer, key, API, application or subscription is 900908', () => {
  const index = filled()
  assert.equal(found(index, 'https://other'), 900908)
  assert.equal(found(index, 'https://km', 'other'), 900908)
  assert.equal(found(index, 'https://km', 'ck', 'Pets:2'), 900908)
  index.apply(update({ removed: { applications: ['app-1'], keys: [], subscriptions: [] } }))
  assert.equal(found(index), 900908)
  index.apply(update({ applications: [APPLICATION], removed: { applications: [], keys: [], subscriptions: ['s-1'] } }))
  assert.equal(found(index), 900908)
  index.apply(update({ subscriptions: [SUBSCRIPTION] }))
  assert.equal(found(index), 'shop PRODUCTION Gold')
  index.apply(update({ removed: { applications: [], keys: [consumerKeyId(KEY)], subscriptions: [] } }))
  assert.equal(found(index), 900908)
})

/** [status, code with a production key, code with a sandbox key]; 0: valid. */
const STATUSES: readonly (readonly [SubscriptionStatus, number, number])[] = [
  ['ACTIVE', 0, 0],
  ['BLOCKED', 900907, 900907],
  ['PROD_ONLY_BLOCKED', 900907, 0],
  ['ON_HOLD', 900909, 900909],
  ['REJECTED', 900909, 900909],
]

for (const [status, ...codes] of STATUSES) {
  test(`a subscription that is ${status} gives ${codes.join(' and ')} for production and sandbox keys`, () => {
    const index = filled()
    index.apply(update({ subscriptions: [{ ...SUBSCRIPTION, status }] }))
    const codesFound = (['PRODUCTION', 'SANDBOX'] as const).map(keyType => {
      const outcome = index.forApplication('app-1', keyType, 'Pets:1')
      return outcome.kind === 'subscribed' ? 0 : outcome.code
    })
    assert.deepEqual(codesFound, codes)
  })
}

test('removing a replaced subscription leaves its replacement', () => {
  const index = filled()
  index.apply(update({ subscriptions: [{ ...SUBSCRIPTION, id: 's-2', tier: 'Silver' }] }))
  index.apply(update({ removed: { applications: [], keys: [], subscriptions: ['s-1'] } }))
  assert.equal(found(index), 'shop PRODUCTION Silver')
  assert.deepEqual(index.size, { applications: 1, keys: 1, subscriptions: 1 })
})
