/** Memory that was freed below memory in use goes back to the system. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { collectGarbage } from '../../src/runtime/heap-trim.ts'
import { trimMalloc } from '../../src/runtime/malloc-trim.ts'

/** Below the size from which glibc maps memory for one allocation alone. */
const BLOCK_BYTES = 32_768
const BLOCKS = 4000
/** One of so many blocks stays: glibc alone can give back nothing below it. */
const KEPT = 64
const FREED_BYTES = BLOCKS * BLOCK_BYTES

const isGlibc = (process.report.getReport() as { header: { glibcVersionRuntime?: string } }).header.glibcVersionRuntime

/** Fills memory, then frees all but a block here and there, which is returned. */
function fragments(): Buffer[] {
  const blocks = Array.from({ length: BLOCKS }, () => Buffer.alloc(BLOCK_BYTES, 1))
  return blocks.filter((_, index) => index % KEPT === 0)
}

test('what malloc keeps goes back to the system', { skip: !isGlibc && 'not glibc' }, async () => {
  const kept = fragments()
  collectGarbage('regular')
  // V8 frees buffers beside the thread that collects.
  for (let i = 0; i < 100; i++) {
    if (process.memoryUsage().arrayBuffers < FREED_BYTES / 4) break
    await sleep(20)
  }
  const before = process.memoryUsage.rss()
  assert.equal(trimMalloc(), true)
  assert.equal(before - process.memoryUsage.rss() > FREED_BYTES / 2, true)
  assert.equal(
    kept.every(block => block[0] === 1),
    true,
  )
})

test('Node warns of nothing', async () => {
  const warning = once(process, 'warning', { signal: AbortSignal.timeout(100) })
  trimMalloc()
  await assert.rejects(warning, { name: 'AbortError' })
})
