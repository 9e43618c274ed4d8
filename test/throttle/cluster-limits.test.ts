/** Sums that a reactor reports, and the decisions that it obeys. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ClusterLimits, type UsageRow } from '../../src/throttle/cluster-limits.ts'
import { Decisions } from '../../src/throttle/decisions.ts'
import type { Quota } from '../../src/throttle/policy.ts'

const DAILY: Quota = { type: 'requests', limit: 10, unit: 'day', units: 1, window: 'tumbling' }

const limit = (key: string, more = {}) => ({ key, quota: DAILY, level: 'api', shared: null, cluster: null, ...more })

test('a reactor adds up what passes, and reports one sum per key at a time', async () => {
  const sent: (readonly UsageRow[])[] = []
  const waiting: (() => void)[] = []
  const limits = new ClusterLimits(
    new Decisions(),
    rows => {
      sent.push(rows)
      return new Promise<void>(resolve => waiting.push(resolve))
    },
    () => assert.fail(),
  )
  const [a, b] = [limit('a'), limit('b', { quota: { ...DAILY, type: 'bandwidth' } })]
  const [hard, redis] = [limit('hard', { level: 'hard' }), limit('redis', { shared: {} })]
  limits.report()
  for (let n = 0; n < 3; n++) limits.addRequest([a, b, hard, redis])
  limits.add(b, 500)
  limits.report()
  limits.addRequest([a])
  limits.report()
  assert.equal(sent.length, 1)
  waiting[0]!()
  await Promise.resolve()
  limits.report()
  assert.deepEqual(
    sent.map(rows => rows.map(({ key, amount }) => [key, amount])),
    [
      [
        ['a', 3],
        ['b', 500],
      ],
      [['a', 1]],
    ],
  )
})

test('rows that the control thread does not get are counted as lost, and the next report goes on', async () => {
  let lost = 0
  const limits = new ClusterLimits(
    new Decisions(),
    () => Promise.reject(new Error('busy')),
    rows => {
      lost += rows
    },
  )
  for (let n = 1; n <= 2; n++) {
    limits.addRequest([limit('a')])
    limits.report()
    await new Promise(resolve => setImmediate(resolve))
    assert.equal(lost, n)
  }
})

test('a decision refuses its key until the end of the window, and a withdrawn one does not', () => {
  const decisions = new Decisions()
  const limits = new ClusterLimits(
    decisions,
    async () => {},
    () => assert.fail(),
  )
  const [a, b] = [limit('a'), limit('b')]
  assert.equal(limits.refusing([a, b], 50), null)
  decisions.apply([{ key: 'b', isThrottled: true, untilMs: 100 }], 50)
  assert.equal(limits.refusing([a, b], 50), b)
  assert.equal(limits.refusing([a, b], 100), null)
  decisions.apply([{ key: 'b', isThrottled: false, untilMs: 100 }], 50)
  assert.equal(limits.refusing([a, b], 50), null)
})

test('decisions are bounded: those that are over go first, then the oldest', () => {
  const decisions = new Decisions(3)
  const throttle = (key: string, untilMs: number, nowMs: number): void =>
    decisions.apply([{ key, isThrottled: true, untilMs }], nowMs)
  for (const [key, untilMs] of [
    ['a', 100],
    ['over', 10],
    ['b', 100],
  ] as const)
    throttle(key, untilMs, 0)
  throttle('c', 100, 50)
  throttle('d', 100, 50)
  assert.deepEqual(
    decisions.entries(50).map(({ key }) => key),
    ['b', 'c', 'd'],
  )
  throttle('past', 40, 50)
  assert.equal(decisions.isThrottled('past', 30), false)
})
