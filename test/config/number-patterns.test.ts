/** Patterns match the texts of numbers in a range, and no others. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { numeralPattern, suffixedPattern } from '../../src/config/number-patterns.ts'

const RANGES: readonly (readonly [from: number, to: number])[] = [
  ...[0, 1, 2, 9, 10, 11, 99, 100, 409, 512, 999].flatMap(from =>
    [0, 1, 9, 10, 25, 98, 100, 750, 1000, 1099, 4096].map(to => [from, to] as const),
  ),
].filter(([from, to]) => from <= to)

test('a numeral matches where its number is in the range, with or without leading zeros', () => {
  for (const [from, to] of RANGES) {
    const pattern = new RegExp(numeralPattern(from, to))
    for (let number = 0; number <= 4200; number++) {
      const isIn = number >= from && number <= to
      assert.equal(pattern.test(String(number)), isIn, `${number} in ${from} to ${to}`)
      assert.equal(pattern.test(`00${number}`), isIn, `00${number} in ${from} to ${to}`)
    }
    for (const text of ['', '-1', '1.5', ' 1', '1 ', 'x', '1\n']) assert.ok(!pattern.test(text), JSON.stringify(text))
  }
})

/** [range, the last below, the first, the last, the first above] */
const WIDE: readonly (readonly [from: number, to: number, ...texts: readonly [string, string, string, string]])[] = [
  [1, 65_535, '0', '1', '65535', '65536'],
  [4096, 65_536, '4095', '4096', '65536', '65537'],
  [512, 86_400_000, '511', '512', '86400000', '86400001'],
  [1, Number.MAX_SAFE_INTEGER, '0', '1', '999999999999999', '1000000000000000'],
]

for (const [from, to, below, first, last, above] of WIDE) {
  test(`the bounds of ${from} to ${to} match, and their neighbours outside do not`, () => {
    const pattern = new RegExp(numeralPattern(from, to))
    assert.deepEqual(
      [below, first, last, above].map(text => pattern.test(text)),
      [false, true, true, false],
    )
  })
}

test('a suffix multiplies, and a suffix without a number in the range is left out', () => {
  const pattern = new RegExp(suffixedPattern(0, 86_400, { '': 1, s: 1, h: 3600, y: 31_622_400 }))
  const texts = ['0', '86400', '86400s', '86401s', '24h', '25h', '0h', '024h', '1y', '0y', '1x', 'h']
  assert.deepEqual(
    texts.filter(text => pattern.test(text)),
    ['0', '86400', '86400s', '24h', '0h', '024h', '0y'],
  )
})
