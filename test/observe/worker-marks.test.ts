/** Delays of the event loop of a worker, whose loop stands still while it has no task. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allocateMarks, DELAY_CELLS, WorkerMarks } from '../../src/observe/worker-marks.ts'

const INTERVAL_MS = 500

function made() {
  const shared = allocateMarks()
  const cells = new Float64Array(shared)
  const delays = () => cells.subarray(0, DELAY_CELLS - 1).reduce((sum, count) => sum + count, 0)
  const milliseconds = () => Math.round(cells[DELAY_CELLS - 1]! * 1000)
  return { marks: new WorkerMarks(shared, INTERVAL_MS, 0), delays, milliseconds }
}

test('the time of a loop that stands still without a task is no delay', () => {
  const { marks, delays, milliseconds } = made()
  for (let minute = 1; minute <= 10; minute++) {
    const now = minute * 60_000
    marks.begin(now)
    marks.tick(now + 1)
    marks.end(now + 3)
  }
  assert.deepEqual([delays(), milliseconds()], [10, 10])
})

test('a task that holds the loop is a delay, whether its timer comes before the loop stands still or not', () => {
  const { marks, delays, milliseconds } = made()
  marks.begin(100)
  marks.tick(2500)
  assert.deepEqual([delays(), milliseconds()], [1, 2000])
  marks.end(2500)
  marks.begin(10_000)
  marks.end(11_000)
  assert.deepEqual([delays(), milliseconds()], [2, 3000])
})

test('short tasks and an idle timer count nothing', () => {
  const { marks, delays } = made()
  for (let now = 1; now < 400; now += 10) {
    marks.begin(now)
    marks.end(now + 5)
  }
  marks.tick(5000)
  assert.equal(delays(), 0)
})

test('of tasks that overlap the first one has woken the loop', () => {
  const { marks, delays, milliseconds } = made()
  marks.begin(1000)
  marks.begin(1100)
  marks.end(1150)
  marks.tick(1200)
  assert.deepEqual([delays(), milliseconds()], [1, 200])
})
