/** A correlation id is the same as text and as bytes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CorrelationId } from '../../../src/proxy/exchange/correlation-id.ts'

const COUNTS = [1, 9, 10, 31, 32, 33, 1023, 1024, 32_767, 32_768, 1_048_576, 0x7fffffff, 0x80000000, 2 ** 40, 2 ** 52]

test('a generated id is its prefix and its count, as text and as bytes', () => {
  const id = new CorrelationId('prefix-')
  const bytes = Buffer.alloc(64)
  for (const count of COUNTS) {
    id.generate(count)
    const end = id.put(bytes, 3)
    assert.equal(bytes.latin1Slice(3, end), `prefix-${count.toString(32)}`)
    assert.equal(id.text, bytes.latin1Slice(3, end))
  }
})

test('an id of the client passes unchanged; without an id nothing is written', () => {
  const id = new CorrelationId('prefix-')
  const bytes = Buffer.alloc(64)
  assert.equal(id.put(bytes, 5), 5)
  id.take('of-the-client')
  assert.equal(bytes.latin1Slice(5, id.put(bytes, 5)), 'of-the-client')
  id.clear()
  assert.equal(id.isSet, false)
})
