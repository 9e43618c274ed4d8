import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OneAtATime } from '../../src/structure/one-at-a-time.ts'

test('one run goes on and one waits, which all who ask meanwhile share', async () => {
  const runs: PromiseWithResolvers<void>[] = []
  const work = new OneAtATime(() => {
    runs.push(Promise.withResolvers())
    return runs.at(-1)!.promise
  })
  const first = work.run()
  await Promise.resolve()
  const second = work.run()
  assert.equal(work.run(), second)
  assert.equal(runs.length, 1)
  runs[0]!.reject(new Error('it failed'))
  await assert.rejects(first, /it failed/)
  await new Promise(setImmediate)
  assert.equal(runs.length, 2)
  runs[1]!.resolve()
  await second
})
