/**
 * Runs test files, whose paths from the root are the lines of `SLUICE_TEST_FILES`, in one process and in turn. Each is
 * a suite, so that its hooks run for its own tests, and it loads when the one before has ended.
 */
import { tracingChannel } from 'node:diagnostics_channel'
import { resolve } from 'node:path'
import './cheap-hashes.ts'
import { processorMs } from './processor-time.ts'
import { withTestContexts } from './test-contexts.ts'
import { report } from './test-process.ts'

const { describe } = await withTestContexts(() => import('node:test'))
const ROOT = resolve(import.meta.dirname, '../..')
/** The longest wait of a timer. */
const TIMER_MAX_MS = 2 ** 31 - 1

let left = process.env.SLUICE_TEST_FILES?.split('\n') ?? []
process.once('exit', () => {
  // A test that ends the process must not hide the tests after it in its file.
  if (left.length > 0) process.exitCode ||= 1
})
// The runner waits likewise for a test that has nothing in the event loop, but for no file after it.
const alive = setInterval(() => {}, TIMER_MAX_MS)
tracingChannel('node.test').start.subscribe(event => {
  const { name, type } = event as { name: string; type: string }
  // The root begins when all files have ended.
  if (type === 'test' && left.length > 0) report({ file: left[0]!, test: name })
})
let takenMs = 0
for (const file of left) {
  report({ file })
  await describe(file, async () => {
    await import(resolve(ROOT, file))
  })
  // The first file has the start of the process.
  const nowMs = processorMs()
  report({ file, processorMs: Math.round(nowMs - takenMs) })
  takenMs = nowMs
  left = left.slice(1)
}
clearInterval(alive)
