/** Transitions of deliveries, retries, and the rate of a sender: tables without a database. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AttemptResult } from '../../src/delivery/attempt.ts'
import type { DeliveryState } from '../../src/delivery/delivery.ts'
import { countChanges, type DeliveryEvent, stateAfter } from '../../src/delivery/delivery-states.ts'
import { type RetrySchedule, verdictOf } from '../../src/delivery/retry-schedule.ts'
import { senderKey, senderOf } from '../../src/delivery/sender-rows.ts'
import { TokenBucket } from '../../src/delivery/token-bucket.ts'

const EVENTS: readonly DeliveryEvent[] = [
  ...(['claim', 'succeed', 'postpone', 'release', 'recover', 'fail', 'orphan', 'replay', 'drop', 'expire'] as const),
]

/** Every transition; what is not here is refused. */
const TRANSITIONS: readonly (readonly [DeliveryState, DeliveryEvent, string, string])[] = [
  ['waiting', 'claim', 'sending', ''],
  ['waiting', 'orphan', 'dead', 'waiting -1, dead +1, dead_total +1'],
  ['sending', 'succeed', 'delivered', 'waiting -1, delivered +1, delivered_total +1'],
  ['sending', 'postpone', 'waiting', 'retried_total +1'],
  ['sending', 'release', 'waiting', ''],
  ['sending', 'recover', 'waiting', ''],
  ['sending', 'fail', 'dead', 'waiting -1, dead +1, dead_total +1'],
  ['delivered', 'expire', 'gone', 'delivered -1, expired_total +1'],
  ['dead', 'replay', 'waiting', 'dead -1, waiting +1, replayed_total +1'],
  ['dead', 'drop', 'gone', 'dead -1, dropped_total +1'],
  ['dead', 'expire', 'gone', 'dead -1, expired_total +1'],
]

test('the transition table moves deliveries and their counts, and refuses everything else', () => {
  for (const from of ['waiting', 'sending', 'delivered', 'dead'] as const) {
    for (const event of EVENTS) {
      const row = TRANSITIONS.find(([state, name]) => state === from && name === event)
      if (row === undefined) {
        assert.throws(() => stateAfter(from, event), {
          message: `a delivery that is ${from} has no transition ${event}`,
        })
        continue
      }
      assert.equal(stateAfter(from, event), row[2])
      const changes = [...countChanges(from, event)].map(([count, by]) => `${count} ${by > 0 ? '+' : ''}${by}`)
      assert.equal(changes.join(', '), row[3])
    }
  }
})

const SCHEDULE: RetrySchedule = { delayMs: 100, delayMsMax: 1000, attemptsMax: 6, ageMsMax: 5000, askedMsMax: 2000 }
const DELIVERED: AttemptResult = { kind: 'delivered', detail: 'ok' }
const FAILED: AttemptResult = { kind: 'failed', cause: 'no' }
const RETRY: AttemptResult = { kind: 'retry', cause: 'later', afterMs: null }
const after = (afterMs: number): AttemptResult => ({ kind: 'retry', cause: 'later', afterMs })

/** Result, attempts before, age, random part, and the verdict; times are since now. */
const VERDICTS: readonly (readonly [AttemptResult, number, number, number, string])[] = [
  [DELIVERED, 5, 9000, 1, 'succeed ok'],
  [FAILED, 0, 0, 1, 'fail no'],
  [RETRY, 0, 0, 1, 'postpone later 100'],
  [RETRY, 0, 0, 0.5, 'postpone later 50'],
  [RETRY, 0, 0, 0, 'postpone later 0'],
  [RETRY, 1, 0, 1, 'postpone later 200'],
  [RETRY, 3, 0, 1, 'postpone later 800'],
  [RETRY, 4, 0, 1, 'postpone later 1000'],
  [RETRY, 5, 0, 1, 'fail given up after 6 attempts: later'],
  [RETRY, 0, 4900, 1, 'postpone later 100'],
  [RETRY, 0, 4901, 1, 'fail given up after 5 s: later'],
  [after(1500), 0, 0, 0, 'postpone later 1500'],
  [after(99_000), 0, 0, 0, 'postpone later 2000'],
  [after(-5), 0, 0, 1, 'postpone later 0'],
  [after(1500), 0, 3600, 0, 'fail given up after 5 s: later'],
  [after(1500), 5, 0, 0, 'fail given up after 6 attempts: later'],
]

test('attempts are repeated with exponential backoff and full jitter, or as the receiver asks, within limits', () => {
  const nowMs = 1_000_000
  for (const [result, attempts, ageMs, random, expected] of VERDICTS) {
    const tried = { attempts, sinceMs: nowMs - ageMs }
    const verdict = verdictOf(result, tried, nowMs, SCHEDULE, { random, isAged: true })
    const at = 'atMs' in verdict ? ` ${verdict.atMs - nowMs}` : ''
    assert.equal(`${verdict.event} ${verdict.cause}${at}`, expected)
  }
  const untrusted = verdictOf(RETRY, { attempts: 0, sinceMs: 0 }, nowMs, SCHEDULE, { random: 1, isAged: false })
  assert.equal(untrusted.event, 'postpone')
})

/** Rate, times at which a token is asked for, and the waits. */
const RATES: readonly (readonly [number | null, readonly number[], readonly number[]])[] = [
  [null, [0, 0, 0], [0, 0, 0]],
  [10, [0, 0, 50, 100, 150], [0, 100, 50, 0, 50]],
  [50, [0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 20, 20]],
  [0.5, [0, 1, 2000, 2000], [0, 1999, 0, 2000]],
]

test('the rate of a sender is a token bucket with a tenth of a second of tokens', () => {
  for (const [perSecond, times, waits] of RATES) {
    const bucket = new TokenBucket(perSecond, 0)
    assert.deepEqual(
      times.map(time => bucket.take(time)),
      waits,
      `${perSecond} per second`,
    )
  }
})

test('the key of a sender keeps every name apart', () => {
  const names = ['a', 'a/b', 'a%2Fb', 'ä “1”', '']
  const senders = names.flatMap(tenant => names.map(name => ({ tenant, channel: 'sms', name })))
  assert.equal(new Set(senders.map(senderKey)).size, senders.length)
  for (const sender of senders) assert.deepEqual(senderOf(senderKey(sender)), sender)
  assert.equal(senderOf('a/b'), undefined)
  assert.equal(senderOf('a/b/c/d'), undefined)
})
