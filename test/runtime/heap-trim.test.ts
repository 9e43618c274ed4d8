/** The memory that a start leaves behind goes back to the system, once the thread is idle. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { getHeapStatistics } from 'node:v8'
import { trimOnceIdle } from '../../src/runtime/heap-trim.ts'

/** Leaves objects that have outlived the young generation and are garbage now. */
function leaveGarbage(): void {
  let kept: object[] = []
  for (let i = 0; i < 400_000; i++) kept.push({ i })
  kept = []
}

const heapBytes = () => getHeapStatistics().total_heap_size

for (const [name, isIdle] of [
  ['an idle thread is trimmed', true],
  ['a busy thread is not trimmed', false],
] as const) {
  test(name, t => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    trimOnceIdle(100, () => isIdle)
    leaveGarbage()
    const before = heapBytes()
    t.mock.timers.tick(2099)
    assert.equal(heapBytes() >= before, true)
    t.mock.timers.tick(1)
    assert.equal(heapBytes() < before - 8_000_000, isIdle)
  })
}
