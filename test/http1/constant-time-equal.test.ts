/** Comparison of arena bytes: every byte counts, at any alignment and length. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { arena } from '../../src/http1/llhttp.ts'
import { isEqual } from '../../src/http1/constant-time-equal.ts'

const chunk = arena.acquire(4096)!
const { bytes } = arena
const A = chunk.offset
const B = chunk.offset + 2048

test('a difference at any byte is found, at any length and alignment', () => {
  for (let length = 0; length <= 70; length++) {
    for (const [a, b] of [
      [A, B],
      [A + 1, B],
      [A + 3, B + 7],
    ] as const) {
      chunk.view.fill(0)
      for (let i = 0; i < length; i++) bytes[a + i] = bytes[b + i] = (i * 37 + 11) & 255
      assert.equal(isEqual(a, b, length), true, `${length}`)
      for (let i = 0; i < length; i++) {
        for (const bit of [1, 128]) {
          bytes[b + i]! ^= bit
          assert.equal(isEqual(a, b, length), false, `${length}: ${i}`)
          bytes[b + i]! ^= bit
        }
      }
    }
  }
})

test('bytes beside the stretches do not count', () => {
  for (const length of [1, 15, 16, 17, 31, 32, 33, 600]) {
    chunk.view.fill(1)
    bytes.fill(2, A, A + length)
    bytes.fill(2, B, B + length)
    bytes[A + length] = 3
    bytes[A - 1] = 4
    assert.equal(isEqual(A, B, length), true, `${length}`)
  }
})

test.after(() => arena.release(chunk))
