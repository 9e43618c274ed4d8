/** The memory that a start leaves behind goes back to the system, once the thread is idle. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { getHeapStatistics } from 'node:v8'
import { collectGarbage, trimOnceIdle, trimProcessWhenIdle } from '../../src/runtime/heap-trim.ts'

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

/** Below the size from which glibc maps memory for one allocation alone. */
const BLOCK_BYTES = 32_768
const BLOCKS = 8000
const FREED_BYTES = BLOCKS * BLOCK_BYTES
const isGlibc = (process.report.getReport() as { header: { glibcVersionRuntime?: string } }).header.glibcVersionRuntime

/** Frees memory between blocks that stay, which glibc keeps then. */
async function grow(): Promise<readonly Buffer[]> {
  const blocks = Array.from({ length: BLOCKS }, () => Buffer.alloc(BLOCK_BYTES, 1))
  const kept = blocks.splice(0).filter((_, index) => index % 64 === 0)
  collectGarbage('regular')
  // V8 frees buffers beside the thread that collects.
  for (let i = 0; i < 100 && process.memoryUsage().arrayBuffers > FREED_BYTES / 4; i++) await sleep(20)
  return kept
}

test('a process without traffic returns the memory of a peak, and one with traffic keeps it', {
  skip: !isGlibc && 'not glibc',
}, async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  let requests = 0
  trimProcessWhenIdle(() => requests)
  const look = (): void => t.mock.timers.tick(10_000)
  look()
  const kept = await grow()
  const before = process.memoryUsage.rss()
  const returned = (): boolean => before - process.memoryUsage.rss() > FREED_BYTES / 2
  for (let at = 0; at < 4; at++) {
    requests += 1 - (at % 2)
    look()
  }
  assert.equal(returned(), false)
  look()
  assert.equal(returned(), true)
  assert.equal(kept.length, BLOCKS / 64)
})
