/** Serial queue: one run at a time, one that waits. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SerialQueue } from '../../src/runtime/serial-queue.ts'

test('calls during a run share the one run that follows, even after a failure', async () => {
  const runs: PromiseWithResolvers<void>[] = []
  const queue = new SerialQueue(() => {
    runs.push(Promise.withResolvers())
    return runs.at(-1)!.promise
  })
  const first = queue.run()
  await Promise.resolve()
  const second = queue.run()
  assert.equal(queue.run(), second)
  assert.equal(runs.length, 1)
  runs[0]!.reject(new Error('it failed'))
  await assert.rejects(first, /it failed/)
  await new Promise(setImmediate)
  assert.equal(runs.length, 2)
  runs[1]!.resolve()
  await second
})
