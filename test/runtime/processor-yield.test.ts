import assert from 'node:assert/strict'
import { test } from 'node:test'
import { processorYield } from '../../src/runtime/processor-yield.ts'

test('processorYield returns a call that ends, and leaves warnings of the process as they were', () => {
  const { emitWarning } = process
  const yieldProcessor = processorYield()
  for (let index = 0; index < 1000; index++) assert.equal(yieldProcessor(), undefined)
  assert.equal(process.emitWarning, emitWarning)
})

test('processorYield returns a call that does nothing where node:ffi is refused', context => {
  context.mock.method(process, 'getBuiltinModule', () => {
    throw new Error('refused')
  })
  assert.equal(processorYield()(), undefined)
})
