/** Copies within the arena: every length and alignment, and nothing beside the stretch. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { putBytes } from '../../src/http1/arena-copy.ts'
import { arena } from '../../src/http1/llhttp.ts'

const chunk = arena.acquire(16_384)!
const { bytes } = arena
const FROM = chunk.offset
const TO = chunk.offset + 8192
for (let i = 0; i < 8192; i++) bytes[FROM + i] = ((i * 37 + 11) & 127) + 1

const LENGTHS = [...Array.from({ length: 100 }, (_, length) => length), 1023, 1024, 1025, 1040, 4000]

test('every byte of the stretch is copied, and no other', () => {
  for (const length of LENGTHS) {
    for (const [from, to] of [
      [FROM, TO + 16],
      [FROM + 1, TO + 16],
      [FROM + 7, TO + 19],
    ] as const) {
      bytes.fill(0, TO, TO + 8192)
      assert.equal(putBytes(bytes, to, from, from + length), to + length)
      assert.ok(bytes.subarray(to, to + length).equals(bytes.subarray(from, from + length)), `${length}`)
      assert.ok(
        bytes.subarray(TO, to).every(byte => byte === 0),
        `in front of ${length}`,
      )
      assert.ok(
        bytes.subarray(to + length, TO + 8192).every(byte => byte === 0),
        `behind ${length}`,
      )
    }
  }
})
