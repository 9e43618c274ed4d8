/** Merge patches (RFC 7396) of the server, applied by the page. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mergePatch } from '../../../src/control/dashboard/merge-patch.ts'
import { applyPatch } from '../../../src/control/dashboard/page/merge-patch.js'
import type { Tree } from '../../../src/plan/dashboard-messages.ts'

const CASES: readonly (readonly [title: string, before: Tree, after: Tree, patch: object | null])[] = [
  ['equal trees', { a: 1, b: { c: 'x' } }, { a: 1, b: { c: 'x' } }, null],
  ['a changed leaf', { a: 1, b: { c: 1, d: 2 } }, { a: 1, b: { c: 1, d: 3 } }, { b: { d: 3 } }],
  ['a new row', { rows: {} }, { rows: { x: { n: 1 } } }, { rows: { x: { n: 1 } } }],
  ['a removed row', { rows: { x: { n: 1 }, y: { n: 2 } } }, { rows: { y: { n: 2 } } }, { rows: { x: null } }],
  ['a leaf that becomes a tree', { a: 1 }, { a: { b: 2 } }, { a: { b: 2 } }],
  ['a tree that becomes a leaf', { a: { b: 2 } }, { a: 1 }, { a: 1 }],
  ['0, false and the empty text', { a: 1, b: true, c: 'x' }, { a: 0, b: false, c: '' }, { a: 0, b: false, c: '' }],
]

for (const [title, before, after, patch] of CASES) {
  test(title, () => {
    assert.deepEqual(mergePatch(before, after), patch)
    assert.deepEqual(plain(applyPatch(applyPatch(Object.create(null), before), patch ?? {})), after)
  })
}

test('a name like __proto__ is a name', () => {
  const after = JSON.parse('{"rows":{"__proto__":{"n":1},"constructor":{"n":2}}}') as Tree
  const text = JSON.stringify(mergePatch({ rows: {} }, after))
  const tree = applyPatch(Object.create(null), JSON.parse(text))
  assert.equal(JSON.stringify(tree), JSON.stringify(after))
  assert.equal(({} as { n?: number }).n, undefined)
})

function plain(tree: unknown): unknown {
  return JSON.parse(JSON.stringify(tree))
}
