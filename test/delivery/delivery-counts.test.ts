/** What the metrics of a node say about deliveries agrees with the rows of the database. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AttemptResult } from '../../src/delivery/attempt.ts'
import type { SenderCounts } from '../../src/delivery/delivery.ts'
import { DeliveryCounts } from '../../src/observe/delivery-counts.ts'
import { KINDS } from '../control/registry/real-databases.ts'
import {
  acceptAll,
  DELIVERED,
  MAIL,
  numbered,
  outboxDatabase,
  readCountsOf,
  RETRY,
  runDue,
  runOf,
  SMS,
  TENANT,
  TestClock,
} from './outbox-databases.ts'

/** Counted event -> total of the row of a sender. */
const TOTALS = {
  ...{ accepted: 'acceptedTotal', delivered: 'deliveredTotal', retried: 'retriedTotal', dead: 'deadTotal' },
  ...{ replayed: 'replayedTotal', dropped: 'droppedTotal', expired: 'expiredTotal' },
} as const satisfies Record<string, keyof SenderCounts>

for (const kind of KINDS) {
  test(`events, refusals and states of deliveries in ${kind} are counted by channel`, async t => {
    const fixture = await outboxDatabase(kind)
    if (typeof fixture === 'string') return t.skip(fixture)
    t.after(() => fixture.remove())
    const [counts, clock] = [new DeliveryCounts(), new TestClock()]
    const retention = { deliveredMs: 60_000 }
    const limits = { senderWaitingMax: 20, eventBytesMax: 100 }
    const outbox = await fixture.open({ counts, clock, limits, retention })
    await acceptAll(outbox, numbered(9))
    await acceptAll(outbox, numbered(4), MAIL)
    const key = { tenant: TENANT, key: 'key', deliveries: [{ sender: SMS, event: '{}' }] }
    await outbox.accept(key)
    await outbox.accept(key)
    await assert.rejects(acceptAll(outbox, numbered(12)), /sender-waiting/)
    await assert.rejects(acceptAll(outbox, ['x'.repeat(100)], MAIL), /event-bytes/)
    const results: AttemptResult[] = [RETRY, RETRY, { kind: 'failed', cause: 'HTTP 400' }]
    const run = runOf(outbox, async ({ sender }) => (sender.channel === 'sms' ? results.shift() : null) ?? DELIVERED)
    await runDue(run)
    clock.ms += 2000
    await runDue(run)
    assert.equal(await outbox.replay({ tenant: TENANT }), 1)
    assert.equal(await outbox.senderDeleted(SMS), 1)
    assert.equal(await outbox.drop({ tenant: TENANT }), 1)
    await acceptAll(outbox, ['waits'], MAIL)
    clock.ms += 60_001
    await outbox.expire()
    // What another thread had claimed when it died.
    await outbox.connection.db.updateTable('delivery_messages').set({ state: 'sending', term: 0 }).execute()
    await runOf(outbox, async () => DELIVERED).due()
    for (const [sender, recovered] of [[SMS, 0] as const, [MAIL, 1] as const]) {
      const totals = await readCountsOf(outbox, sender)
      const sample = counts.sample(sender.channel as 'sms')
      for (const [event, total] of Object.entries(TOTALS)) {
        assert.equal(sample.events[event as keyof typeof TOTALS], totals[total] ?? 0, `${sender.channel} ${event}`)
      }
      assert.equal(sample.events.recovered, recovered)
      const { waiting = 0, delivered = 0, dead = 0 } = totals
      assert.deepEqual(sample.stored, { waiting, delivered, dead })
      const refusals = Object.values(sample.refused).reduce((sum, count) => sum + count, 0)
      assert.equal(refusals, totals.refusedTotal ?? 0)
      const durations = [sample.durations.attempt, sample.durations.delivery].map(({ buckets }) =>
        buckets.reduce((sum, count) => sum + count, 0),
      )
      assert.deepEqual(durations, sender === SMS ? [12, 9] : [4, 4])
    }
    const { durations, refused } = counts.sample('sms')
    assert.equal(durations.delivery.sumSeconds, 4, 'two deliveries came after two seconds')
    assert.deepEqual([refused['sender-waiting'], counts.sample('email').refused['event-bytes']], [1, 1])
  })
}
