/** Single flight: which callers share a call. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SingleFlight } from '../../src/runtime/single-flight.ts'

test('concurrent callers of a key share one call, and a later caller starts a new one', async () => {
  const calls = new SingleFlight<number>()
  let started = 0
  const start = async () => ++started
  const [first, second, other] = [calls.run('a', start), calls.run('a', start), calls.run('b', start)]
  assert.deepEqual([calls.size, calls.has('a'), calls.has('c')], [2, true, false])
  assert.deepEqual(await Promise.all([first, second, other]), [1, 1, 2])
  assert.equal(calls.size, 0)
  assert.equal(await calls.run('a', start), 3)
})

test('a failure rejects for all callers that share the call, and is not kept', async () => {
  const calls = new SingleFlight<number>()
  const fail = () => Promise.reject(new Error('none'))
  const settled = await Promise.allSettled([calls.run('a', fail), calls.run('a', async () => 1)])
  assert.deepEqual(
    settled.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  assert.equal(await calls.run('a', async () => 2), 2)
})

test('a call from before clear() settles, and does not remove the call that follows it', async () => {
  const calls = new SingleFlight<number>()
  const before = Promise.withResolvers<number>()
  const after = Promise.withResolvers<number>()
  const old = calls.run('a', () => before.promise)
  calls.clear()
  const fresh = calls.run('a', () => after.promise)
  before.resolve(1)
  assert.equal(await old, 1)
  assert.equal(calls.has('a'), true)
  after.resolve(2)
  assert.equal(await fresh, 2)
})
