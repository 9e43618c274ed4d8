import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { cFunction, mapLargeBlocks, processorYield, trimMalloc } from '../../src/runtime/c-functions.ts'
import { collectGarbage } from '../../src/runtime/heap-trim.ts'

test('cFunction calls the C library, and leaves warnings of the process as they were', () => {
  const { emitWarning } = process
  const absolute = cFunction('abs', { arguments: ['i32'], return: 'i32' })
  assert.equal(absolute?.(-7), 7)
  assert.equal(process.emitWarning, emitWarning)
})

test('cFunction is undefined for a name that the C library does not have', () => {
  assert.equal(cFunction('no_such_function', { arguments: [], return: 'i32' }), undefined)
})

test('sched_yield succeeds on Linux', {
  skip: process.platform !== 'linux' && 'sched_yield is called on Linux alone',
}, () => {
  assert.equal(cFunction('sched_yield', { arguments: [], return: 'i32' })?.(), 0)
})

test('processorYield returns a call that does nothing where node:ffi is refused', context => {
  context.mock.method(process, 'getBuiltinModule', () => {
    throw new Error('refused')
  })
  assert.equal(processorYield()(), undefined)
})

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

/** Collects garbage until few buffers are left. */
async function collectBuffers(bytesMax: number): Promise<void> {
  collectGarbage('regular')
  // V8 frees buffers beside the thread that collects.
  for (let i = 0; i < 100; i++) {
    if (process.memoryUsage().arrayBuffers < bytesMax) break
    await sleep(20)
  }
}

const LARGE_BYTES = 8 * 1_048_576
/** glibc takes it from the same memory as the large ones. */
const BETWEEN_BYTES = 1_000_000

/** Frees large blocks, between each two of which a small one stays. */
function largeBlocks(count: number): Buffer[] {
  return Array.from({ length: count }, () => [Buffer.alloc(LARGE_BYTES, 1), Buffer.alloc(BETWEEN_BYTES, 1)][1]!)
}

test('mapLargeBlocks returns large blocks to the system once they are freed, after a larger one too (D913)', {
  skip: !isGlibc && 'not glibc',
}, async () => {
  mapLargeBlocks()
  Buffer.alloc(3 * LARGE_BYTES, 1)
  await collectBuffers(LARGE_BYTES)
  const before = process.memoryUsage.rss()
  const kept = largeBlocks(20)
  await collectBuffers(4 * LARGE_BYTES)
  assert.ok(process.memoryUsage.rss() - before < 8 * LARGE_BYTES)
  assert.equal(kept.length, 20)
})

test('trimMalloc returns freed memory below memory in use to the system', {
  skip: !isGlibc && 'not glibc',
}, async () => {
  const kept = fragments()
  await collectBuffers(FREED_BYTES / 4)
  const before = process.memoryUsage.rss()
  assert.equal(trimMalloc(), true)
  assert.equal(before - process.memoryUsage.rss() > FREED_BYTES / 2, true)
  assert.equal(
    kept.every(block => block[0] === 1),
    true,
  )
})

test('a call by node:ffi makes Node warn of nothing', async () => {
  const warning = once(process, 'warning', { signal: AbortSignal.timeout(100) })
  trimMalloc()
  await assert.rejects(warning, { name: 'AbortError' })
})
