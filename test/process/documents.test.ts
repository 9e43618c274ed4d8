/** Runs every command and every example of the README and the guide as a reader would. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, test } from 'node:test'
import { blocksOf, patternOf, runPage } from '../harness/documents.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const README_LINES_MAX = 120
const GUIDE = 'conf/guide'
const PAGES = ['README.md', ...readdirSync(join(ROOT, GUIDE)).map(file => `${GUIDE}/${file}`)]

describe('pages do what they say', { concurrency: 2 }, () => {
  for (const page of PAGES) test(page, () => runPage(page))
})

test(`the README has at most ${README_LINES_MAX} lines`, () => {
  const lines = readFileSync(join(ROOT, 'README.md'), 'utf8').split('\n').length - 1
  assert.ok(lines <= README_LINES_MAX, `${lines} lines`)
})

test('the README links to every page of the guide', () => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  const missing = PAGES.slice(1).filter(page => !readme.includes(`](${page})`))
  assert.deepEqual(missing, [])
})

const OUTPUTS: readonly (readonly [what: string, expected: readonly string[], output: string, isSame: boolean])[] = [
  ['the same lines', ['a', 'b'], 'a\nb\n', true],
  ['one line more', ['a'], 'a\nb\n', false],
  ['dots within a line', ['a ... c'], 'a b c\n', true],
  ['dots do not stand for a line break', ['a ... c'], 'a b\nc\n', false],
  ['a line of dots stands for no line', ['...', 'a'], 'a\n', true],
  ['a line of dots stands for many lines', ['a', '...', 'd'], 'a\nb\nc\nd\n', true],
  ['a different end', ['a', '...', 'd'], 'a\nb\n', false],
  ['nothing expected', [], 'anything\n', true],
]
for (const [what, expected, output, isSame] of OUTPUTS) {
  test(`expected output, ${what}: ${isSame ? 'matches' : 'differs'}`, () => {
    assert.equal(patternOf(expected).test(output), isSame)
  })
}

test('blocks are found with kind, file and line', () => {
  const blocks = blocksOf('text\n```yaml conf/a.yaml\na: 1\n```\n\n```console\n$ ls\n```\n')
  const found = blocks.map(({ kind, file, line }) => [kind, file, line])
  assert.deepEqual(found, [
    ['yaml', 'conf/a.yaml', 3],
    ['console', '', 7],
  ])
})
