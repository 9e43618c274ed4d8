/** SlotAllocator: who owns a slot, and when a freed slot may go to another owner. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SlotAllocator } from '../../src/plan/slot-allocator.ts'

function allocator(slots: number, busy: ReadonlySet<number> = new Set()): SlotAllocator {
  return new SlotAllocator(1, 1 + slots, slot => !busy.has(slot))
}

function allocate(from: SlotAllocator, ...owners: readonly string[]): readonly (number | undefined)[] {
  return owners.map(owner => from.allocate(owner))
}

test('an owner keeps its slot, and slots before the first are never allocated', () => {
  const slots = allocator(3)
  assert.deepEqual(allocate(slots, 'a', 'b'), [1, 2])
  slots.retain(new Set(['b']))
  assert.deepEqual([slots.slotOf('a'), slots.slotOf('b')], [undefined, 2])
})

test('fresh slots are allocated first, then those freed longest ago', () => {
  const slots = allocator(4)
  allocate(slots, 'a', 'b', 'c')
  slots.retain(new Set(['a', 'c']))
  slots.retain(new Set(['c']))
  assert.deepEqual(allocate(slots, 'd', 'e', 'f', 'g'), [4, 2, 1, undefined])
})

test('a freed slot with activity is skipped until the activity has ended', () => {
  const busy = new Set([1])
  const slots = allocator(2, busy)
  allocate(slots, 'a', 'b')
  slots.retain(new Set())
  assert.deepEqual(allocate(slots, 'c', 'd'), [2, undefined])
  busy.clear()
  assert.deepEqual(allocate(slots, 'd'), [1])
})
