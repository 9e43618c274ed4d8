/** Which application a key stands for, and what it may use: every way to a refusal, and what becomes of changes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SubscriptionNews, SubscriptionStatus } from '../../src/identity/facts.ts'
import { keyName } from '../../src/identity/facts.ts'
import { SubscriptionIndex } from '../../src/identity/subscription-index.ts'

const APPLICATION = { id: 'app-1', name: 'shop', owner: 'admin', tenant: 't', tier: 'Unlimited', attributes: {} }
const KEY = { issuer: 'https://km', consumerKey: 'ck', applicationId: 'app-1', keyType: 'PRODUCTION' } as const
const SUBSCRIPTION = { id: 's-1', applicationId: 'app-1', api: 'Pets:1', tier: 'Gold', status: 'ACTIVE' } as const

function news(changes: Partial<SubscriptionNews>): SubscriptionNews {
  const removed = { applications: [], keys: [], subscriptions: [] }
  return { applications: [], keys: [], subscriptions: [], removed, ...changes }
}

function filled(): SubscriptionIndex {
  const index = new SubscriptionIndex()
  index.apply(news({ applications: [APPLICATION], keys: [KEY], subscriptions: [SUBSCRIPTION] }))
  return index
}

function found(index: SubscriptionIndex, issuer = 'https://km', consumerKey = 'ck', api = 'Pets:1') {
  const outcome = index.ofKey(issuer, consumerKey, api)
  return outcome.kind === 'subscribed' ? `${outcome.application.name} ${outcome.keyType} ${outcome.tier}` : outcome.code
}

test('a key finds its application and the tier of its subscription', () => {
  assert.equal(found(filled()), 'shop PRODUCTION Gold')
})

test('any miss is 900908: issuer, key, API, application, subscription', () => {
  const index = filled()
  assert.equal(found(index, 'https://other'), 900908)
  assert.equal(found(index, 'https://km', 'other'), 900908)
  assert.equal(found(index, 'https://km', 'ck', 'Pets:2'), 900908)
  index.apply(news({ removed: { applications: ['app-1'], keys: [], subscriptions: [] } }))
  assert.equal(found(index), 900908)
  index.apply(news({ applications: [APPLICATION], removed: { applications: [], keys: [], subscriptions: ['s-1'] } }))
  assert.equal(found(index), 900908)
  index.apply(news({ subscriptions: [SUBSCRIPTION] }))
  assert.equal(found(index), 'shop PRODUCTION Gold')
  index.apply(news({ removed: { applications: [], keys: [keyName(KEY)], subscriptions: [] } }))
  assert.equal(found(index), 900908)
})

/** [status, with a production key, with a sandbox key]; 0: it holds. */
const STATUSES: readonly (readonly [SubscriptionStatus, number, number])[] = [
  ['ACTIVE', 0, 0],
  ['BLOCKED', 900907, 900907],
  ['PROD_ONLY_BLOCKED', 900907, 0],
  ['ON_HOLD', 900909, 900909],
  ['REJECTED', 900909, 900909],
]

for (const [status, ...codes] of STATUSES) {
  test(`a subscription that is ${status} answers ${codes.join(' and ')}`, () => {
    const index = filled()
    index.apply(news({ subscriptions: [{ ...SUBSCRIPTION, status }] }))
    const said = (['PRODUCTION', 'SANDBOX'] as const).map(keyType => {
      const outcome = index.ofApplication('app-1', keyType, 'Pets:1')
      return outcome.kind === 'subscribed' ? 0 : outcome.code
    })
    assert.deepEqual(said, codes)
  })
}

test('a subscription that another one has replaced takes nothing along when it is removed', () => {
  const index = filled()
  index.apply(news({ subscriptions: [{ ...SUBSCRIPTION, id: 's-2', tier: 'Silver' }] }))
  index.apply(news({ removed: { applications: [], keys: [], subscriptions: ['s-1'] } }))
  assert.equal(found(index), 'shop PRODUCTION Silver')
  assert.deepEqual(index.size, { applications: 1, keys: 1, subscriptions: 1 })
})
