/** Whose row is whose, and how long one rests before it is somebody else's. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RowBook } from '../../src/primary/row-book.ts'

function book(rows: number, busy: ReadonlySet<number> = new Set()): RowBook {
  return new RowBook(1, 1 + rows, row => !busy.has(row))
}

function taken(from: RowBook, ...owners: readonly string[]): readonly (number | undefined)[] {
  return owners.map(owner => from.take(owner))
}

test('an owner keeps its row, and rows before the first are nobody’s', () => {
  const rows = book(3)
  assert.deepEqual(taken(rows, 'a', 'b'), [1, 2])
  rows.free('a')
  assert.deepEqual([rows.rowOf('a'), rows.rowOf('b')], [undefined, 2])
  assert.deepEqual([...rows.owners], ['b'])
})

test('fresh rows go first, then those freed longest ago', () => {
  const rows = book(4)
  taken(rows, 'a', 'b', 'c')
  for (const owner of ['b', 'a']) rows.free(owner)
  assert.deepEqual(taken(rows, 'd', 'e', 'f', 'g'), [4, 2, 1, undefined])
})

test('a row in which something is under way is passed over until that has ended', () => {
  const busy = new Set([1])
  const rows = book(2, busy)
  taken(rows, 'a', 'b')
  for (const owner of ['a', 'b']) rows.free(owner)
  assert.deepEqual(taken(rows, 'c', 'd'), [2, undefined])
  busy.clear()
  assert.deepEqual(taken(rows, 'd'), [1])
})

test('freeing what nobody has is nothing', () => {
  const rows = book(1)
  rows.free('a')
  assert.deepEqual(taken(rows, 'a', 'b'), [1, undefined])
})
