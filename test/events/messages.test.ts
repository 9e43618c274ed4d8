/** Bodies of the broker's messages, in the shape of the reference platform. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  decisionMessage,
  denyMessage,
  readDecision,
  readDeny,
  readNotification,
  readRevocation,
  revocationMessage,
} from '../../src/events/messages.ts'
import type { DenyPolicy } from '../../src/throttle/policy.ts'

const payload = (payloadData: object): object => ({ event: { payloadData } })

test('decisions and revocations have the members of the platform, and are the same when read', () => {
  const decision = { key: 'api:/a/1', isThrottled: true, untilMs: 1_800_000_000_000 }
  const told = { throttleKey: 'api:/a/1', isThrottled: true, expiryTimeStamp: 1_800_000_000_000 }
  assert.deepEqual(decisionMessage(decision), payload(told))
  assert.deepEqual(readDecision(decisionMessage(decision)), decision)
  const token = { key: 'jti', expiresMs: 1_800_000_000_000 }
  assert.deepEqual(revocationMessage(token, 'id', 5000), {
    event: {
      payloadData: {
        ...{ eventId: 'id', revokedToken: 'jti', ttl: '5000', expiryTime: 1_800_000_000_000 },
        ...{ type: 'DEFAULT', tenantId: -1234 },
      },
    },
  })
  assert.deepEqual(readRevocation(revocationMessage(token, 'id', 5000)), token)
})

test('every type of deny policy is the same when read', () => {
  const values: Readonly<Record<DenyPolicy['type'], string>> = {
    API: '/a/1',
    APPLICATION: 'anna:app',
    USER: 'anna',
    SUBSCRIPTION: '/a/1:anna:app',
    IP: '10.0.0.1',
    IPRANGE: '10.0.0.1-10.0.0.9',
  }
  for (const [type, value] of Object.entries(values) as [DenyPolicy['type'], string][]) {
    for (const enabled of [true, false]) {
      const policy = { id: '1', type, value, inverted: type.startsWith('IP'), enabled }
      assert.deepEqual(readDeny(denyMessage(policy)), { policy, isRemoved: false })
    }
  }
  const policy = { id: '1', type: 'USER', value: 'anna', inverted: false, enabled: true } as const
  assert.equal(readDeny(denyMessage(policy, 'delete'))!.isRemoved, true)
})

test('text in place of a boolean or a number is understood, as the platform sends it', () => {
  const told = { throttleKey: 'a', isThrottled: 'true', expiryTimeStamp: '1800000000000' }
  assert.deepEqual(readDecision(payload(told)), { key: 'a', isThrottled: true, untilMs: 1_800_000_000_000 })
})

test('what has another shape is an error', () => {
  const wrong: readonly (() => unknown)[] = [
    ...[null, 1, 'a', []].flatMap(body => [() => readDecision(body), () => readDeny(body), () => readRevocation(body)]),
    () => readDecision(payload({ throttleKey: 5, isThrottled: true, expiryTimeStamp: 1 })),
    () => readDecision(payload({ throttleKey: 'a', isThrottled: true, expiryTimeStamp: 'soon' })),
    () => readDeny(payload({ blockingCondition: 'PLANET', conditionValue: 'earth', state: 'true' })),
    () => readDeny(payload({ blockingCondition: 'IP', conditionValue: '{"fixedIp":5}', state: 'true' })),
    () => readRevocation(payload({ revokedToken: '', expiryTime: 1 })),
    () => readRevocation(payload({ revokedToken: 'a', expiryTime: -1 })),
    () => readNotification({ type: 'SOMETHING' }),
    () => readNotification({ type: 'SUBSCRIPTIONS', update: { applications: [] } }),
    () => readNotification({ type: 'POLICIES', set: { policies: 1, denied: [] } }),
    () => readNotification({ type: 'REVOCATIONS', tokens: [{ key: 'a' }] }),
  ]
  for (const read of wrong) assert.throws(read)
})
