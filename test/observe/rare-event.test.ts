/** Events that every batch could cause: one line at once, then sums. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RareEvent } from '../../src/observe/rare-event.ts'

test('the first of many events is reported at once, the others once a minute with their sum', () => {
  const reports: unknown[] = []
  const clock = { ms: 5 }
  const report = (_level: string, event: string, fields: object) => void reports.push([event, fields])
  const rare = new RareEvent(report, 'refused', () => clock.ms)
  for (let n = 0; n < 1000; n++) rare.happened('SPANS', 2, { CAUSE_OF_ERROR: `cause ${n}` })
  assert.deepEqual(reports.splice(0), [['refused', { CAUSE_OF_ERROR: 'cause 0', SPANS: 2 }]])
  clock.ms += 60_000
  rare.happened('SPANS', 1, { CAUSE_OF_ERROR: 'later' })
  assert.deepEqual(reports, [['refused', { CAUSE_OF_ERROR: 'later', SPANS: 999 * 2 + 1 }]])
})
