/** Kinds of names as texts are those of names in heads, and names are found in heads whatever their case. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FieldKinds, type Kind } from '../../src/http1/field-kinds.ts'
import { Head } from '../../src/http1/head.ts'
import { FieldNames } from '../../src/http1/rewrite.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'

const NAMES = [
  ...['Host', 'TE', 'Via', 'Cookie', 'Content-Length', 'X-Forwarded-', 'X-Forwarded-Port', 'X-Forwarded-For'],
  ...['X-Real-IP', 'X-Original-URL'],
  ...['Client-Cert', 'X_SSL_Client_DN', 'x-jwt-assertion', 'activityid', 'X-Own', 'X_Own', 'Proxy-Authorization'],
  ...['Accept', 'SOAPAction', 'Access-Control-Allow-Origin', 'x', `x-${'y'.repeat(80)}`],
]

/** The kind of a name that is the only one of a head. */
function kindInHead(kinds: FieldKinds, name: string): number {
  const bytes = Buffer.from(`${name}: value`, 'latin1')
  const head = new Head(1)
  head.count = 1
  head.spans.set([0, name.length, name.length + 2, 5])
  kinds.classify(bytes, head)
  return head.kinds[0]!
}

/** The name with one change of case, hyphen or letter. */
function variant(random: Random, name: string): string {
  const at = random.below(name.length)
  const letter = name[at]!
  const changed = random.pick([letter.toUpperCase(), letter.toLowerCase(), '-', '_', 'q'])
  return name.slice(0, at) + changed + name.slice(at + 1)
}

test(`a name has the same kind as text and in a head, seed ${SEED}`, () => {
  const random = new Random(SEED)
  const kinds = new FieldKinds('activityid')
  kinds.strip(['X-Own'])
  kinds.capture(['x-captured'])
  for (let turn = 0; turn < (IS_LONG ? 1_000_000 : 20_000); turn++) {
    const name = variant(random, variant(random, random.pick(NAMES)))
    const kind: Kind = kinds.kindOf(name)
    assert.equal(kind, kindInHead(kinds, name), name)
  }
})

test('a list of names includes them in any case, and no other name of the same length', () => {
  const names = new FieldNames(['x-a', 'cookie', `x-${'y'.repeat(40)}`])
  const includes = (name: string) => names.include(Buffer.from(`__${name}__`), 2, name.length)
  for (const name of ['x-a', 'X-A', 'Cookie', `X-${'Y'.repeat(40)}`]) assert.ok(includes(name), name)
  for (const name of ['x-b', 'x_a', 'x', 'cookies', 'cookiE2', '', 'x'.repeat(35)]) assert.ok(!includes(name), name)
})
