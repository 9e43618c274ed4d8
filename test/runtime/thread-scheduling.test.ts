import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { getPriority } from 'node:os'
import { test } from 'node:test'
import { processorWaitMs, setTimeSlice, systemThreadId } from '../../src/runtime/thread-scheduling.ts'

const isTold = existsSync('/proc/self/schedstat')

test('systemThreadId of the main thread is that of the process', { skip: !isTold && 'not Linux' }, () => {
  assert.equal(systemThreadId(), process.pid)
})

test('processorWaitMs never falls, and is 0 for a thread that does not exist', { skip: !isTold && 'not told' }, () => {
  const before = processorWaitMs(process.pid)
  for (let turns = 0; turns < 1000; turns++) process.hrtime()
  assert.ok(before >= 0)
  assert.ok(processorWaitMs(process.pid) >= before)
  assert.equal(processorWaitMs(0), 0)
})

test('setTimeSlice is accepted, and the nice value stays', {
  skip: !/^(?:x64|arm64)$/.test(process.arch) || process.platform !== 'linux' ? 'not Linux on x64 or arm64' : false,
}, () => {
  const before = getPriority()
  assert.deepEqual([setTimeSlice('short'), setTimeSlice('default')], [true, true])
  assert.equal(getPriority(), before)
})

test('setTimeSlice is not accepted where node:ffi is refused', context => {
  context.mock.method(process, 'getBuiltinModule', () => {
    throw new Error('refused')
  })
  assert.equal(setTimeSlice('short'), false)
})
