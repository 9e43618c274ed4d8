/** Windows of quotas: aligned to the epoch in UTC, months by the calendar. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TimeUnit } from '../../src/throttle/policy.ts'
import { windowAt, windowStartMs } from '../../src/throttle/window.ts'
import { Random, SEED } from '../harness/random.ts'

const CASES: readonly (readonly [string, TimeUnit, number, string, string])[] = [
  ['2026-11-22T10:11:12.999Z', 'sec', 1, '2026-11-22T10:11:12Z', '2026-11-22T10:11:13Z'],
  ['2026-11-22T10:11:12.999Z', 'sec', 10, '2026-11-22T10:11:10Z', '2026-11-22T10:11:20Z'],
  ['2026-11-22T10:11:12.999Z', 'min', 1, '2026-11-22T10:11:00Z', '2026-11-22T10:12:00Z'],
  ['2026-11-22T10:11:12.999Z', 'min', 15, '2026-11-22T10:00:00Z', '2026-11-22T10:15:00Z'],
  ['2026-11-22T10:11:12.999Z', 'hour', 6, '2026-11-22T06:00:00Z', '2026-11-22T12:00:00Z'],
  ['2026-11-22T23:59:59.999Z', 'day', 1, '2026-11-22T00:00:00Z', '2026-11-23T00:00:00Z'],
  ['1970-01-08T00:00:00Z', 'day', 7, '1970-01-08T00:00:00Z', '1970-01-15T00:00:00Z'],
  ['2024-02-29T23:59:59.999Z', 'month', 1, '2024-02-01T00:00:00Z', '2024-03-01T00:00:00Z'],
  ['2026-12-31T23:59:59.999Z', 'month', 1, '2026-12-01T00:00:00Z', '2027-01-01T00:00:00Z'],
  ['2026-11-22T00:00:00Z', 'month', 3, '2026-10-01T00:00:00Z', '2027-01-01T00:00:00Z'],
  ['2026-11-22T00:00:00Z', 'month', 12, '2026-01-01T00:00:00Z', '2027-01-01T00:00:00Z'],
]

for (const [time, unit, units, start, end] of CASES) {
  test(`${time} is in the window of ${units} ${unit} from ${start}`, () => {
    const number = windowAt(Date.parse(time), unit, units)
    assert.equal(windowStartMs(number, unit, units), Date.parse(start))
    assert.equal(windowStartMs(number + 1, unit, units), Date.parse(end))
  })
}

test(`each time is in exactly one window (seed ${SEED})`, () => {
  const random = new Random(SEED)
  for (let round = 0; round < 20_000; round++) {
    const unit = random.pick(['sec', 'min', 'hour', 'day', 'month'] as const)
    const units = random.between(1, 40)
    const ms = random.next() * 1000 + random.below(1000)
    const number = windowAt(ms, unit, units)
    const [start, end] = [windowStartMs(number, unit, units), windowStartMs(number + 1, unit, units)]
    assert.ok(start <= ms && ms < end, `${ms} ${unit} ${units}`)
  }
})
