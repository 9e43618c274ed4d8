/** YamlFile: the line of a value, whatever way leads to it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { YamlFile } from '../../src/apis/yaml-file.ts'

const TEXT = `a: &a
  b: 1
  list:
    - x
    -
    - {c: 2,
       d: 3}
e: *a
loop: &l
  - [*l]

"f": 5
`

const LINES: readonly (readonly [path: readonly (string | number)[], line: number])[] = [
  [[], 1],
  [['a'], 1],
  [['a', 'b'], 2],
  [['a', 'list', 0], 4],
  [['a', 'list', 2, 'd'], 7],
  // An empty item has no position of its own.
  [['a', 'list', 1], 3],
  // Missing values have the line of the value around them.
  [['a', 'list', 9], 3],
  [['a', 'list', 2, 'gone', 'x'], 6],
  [['e'], 8],
  [['e', 'list', 2, 'd'], 7],
  [['e', 'gone'], 8],
  [['loop', 0, 0, 0, 0], 10],
  [['f'], 12],
  [['constructor'], 1],
]

for (const [path, line] of LINES) {
  test(`${JSON.stringify(path)} is in line ${line}`, () => {
    const file = new YamlFile('f', TEXT)
    assert.deepEqual([file.errors, file.where(path)], [[], `f:${line}`])
  })
}

for (const text of ['', '# nothing\n', 'a: [\n', 'a: 1\na: 2\n']) {
  test(`a path in ${JSON.stringify(text)} has a line`, () => {
    assert.match(new YamlFile('f', text).where(['b', 0]), /^f:\d$/)
  })
}

test('diagnostics are cut after 50', () => {
  const file = new YamlFile('f', 'a: 1\n')
  for (let i = 0; i < 60; i++) file.error(['a'], i, 'is wrong', 'correct it')
  assert.deepEqual([file.errors.length, file.errors.at(-1)!.expected], [51, 'holds more errors than are shown'])
})
