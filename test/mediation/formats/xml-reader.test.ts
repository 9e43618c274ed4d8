/** XML bodies that take long to read. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseXmlText } from '../../../src/mediation/formats/xml-reader.ts'
import { watchLife } from '../../../src/runtime/signs-of-life.ts'

const ANY = 1e9
const UNLIMITED = { items: ANY, depth: ANY, nameLength: ANY, textLength: ANY, decodedSize: ANY, codingRatio: ANY }

test('a long body shows signs of life while it blocks its thread, as a thread with little processor time needs', t => {
  let signs = 0
  watchLife(() => signs++)
  t.after(() => watchLife(() => undefined))
  parseXmlText(`<r>${'<a b="c"/>'.repeat(30_000)}</r>`, UNLIMITED)
  assert.equal(signs, 7)
})

test('so does a long body without elements, of which the pieces may end anywhere', t => {
  let signs = 0
  watchLife(() => signs++)
  t.after(() => watchLife(() => undefined))
  const text = '\u{1f600}\r\n&amp;<!-- -->'.repeat(300_000)
  const root = parseXmlText(`<r>${text}</r>`, UNLIMITED)
  assert.equal(signs, 4)
  assert.equal(root.children.join(''), '\u{1f600}\n&'.repeat(300_000))
})
