/** The position finder sees exactly the keys that the parser sees, in random TOML texts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse, TomlDate } from 'smol-toml'
import { findPositions } from '../../src/config/key-positions.ts'

/** Pseudo-random numbers from a seed, so that a failure can be repeated. */
function dice(seed: number): (sides: number) => number {
  let state = seed
  return sides => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * sides)
  }
}

const SCALARS = [
  '1',
  '-0.5e3',
  '0xff',
  'true',
  '1979-05-27 07:32:00',
  '1979-05-27T07:32:00Z',
  '"a # = [ { \\" b"',
  "'c:\\'",
  '""',
  "''",
  '"""\nx = 1\n\\"""" # ""\n"""""',
  "'''\n[y]\n''''",
  '""""""',
  'inf',
]
const KEYS = ['a', 'b-c', '"d.e"', "'f g'", 'h . i', '"\\u0041\\t"', '1', '"#"']
const GAPS = ['', ' ', '\t', ' # note ] } "\n', '\n', '\r\n  ']

function pick<T>(roll: (sides: number) => number, from: readonly T[]): T {
  return from[roll(from.length)]!
}

function value(roll: (sides: number) => number, depth: number): string {
  const kind = roll(4)
  if (depth === 0 || kind === 0) return pick(roll, SCALARS)
  const gap = (): string => pick(roll, GAPS)
  const inner = Array.from({ length: roll(3) }, () => value(roll, depth - 1))
  if (kind === 1) return `[${gap()}${inner.map(item => `${item}${gap()}`).join(`,${gap()}`)}]`
  if (kind === 2) return `{${gap()}${inner.map((item, index) => `k${index} = ${item}${gap()}`).join(`,${gap()}`)}}`
  return pick(roll, SCALARS)
}

function documentOf(roll: (sides: number) => number): string {
  const lines = Array.from({ length: 1 + roll(8) }, (_, index) => {
    const shape = roll(6)
    if (shape === 0) return `[t${index}.${pick(roll, KEYS)}]`
    if (shape === 1) return `[[ r${roll(2)} ]] # [[x]]`
    return `  ${pick(roll, KEYS)}.n${index} = ${value(roll, 3)} ${pick(roll, ['', '# note', '\r'])}`
  })
  return lines.join('\n')
}

type Path = readonly (string | number)[]

/** Paths of everything but tables with content. `isRows`: whether an array is an array of tables. */
function leaves(
  node: unknown,
  isRows: (list: readonly unknown[], path: Path) => boolean,
  path: Path = [],
): readonly string[] {
  const within = Array.isArray(node) ? isRows(node, path) : isTable(node)
  const inner = within ? Object.entries(node as object) : []
  if (inner.length === 0) return path.length === 0 || isHeaderOnly(node, path) ? [] : [JSON.stringify(path)]
  return inner.flatMap(([key, item]) => leaves(item, isRows, [...path, Array.isArray(node) ? Number(key) : key]))
}

function isTable(node: unknown): boolean {
  return typeof node === 'object' && node !== null && !Array.isArray(node) && !(node instanceof TomlDate)
}

/** A header without keys; this test writes empty inline tables only below an `n` or a `k`. */
function isHeaderOnly(node: unknown, path: Path): boolean {
  return isTable(node) && !/^[nk]\d$/.test(String(path.at(-1)))
}

const RUNS = process.env.SLUICE_LONG === undefined ? 2000 : 200_000

/** Only arrays with `[[r0]]` headers are arrays of tables. */
function areHeaded(_: readonly unknown[], path: Path): boolean {
  return path.length === 1 && /^r\d$/.test(String(path[0]))
}

function areTables(list: readonly unknown[]): boolean {
  return list.length > 0 && list.every(isTable)
}

const READINGS = [
  ['lists of inline tables as values', areHeaded],
  [
    'lists of inline tables as rows',
    (list: readonly unknown[], path: Path) => areHeaded(list, path) || areTables(list),
  ],
] as const

for (const [reading, isRows] of READINGS) {
  test(`the position finder finds the keys of the parser, each on a line that holds it, with ${reading}`, () => {
    let compared = 0
    for (let seed = 1; seed <= RUNS; seed++) {
      const source = documentOf(dice(seed))
      const tree = parsed(source)
      if (tree === undefined) continue // a key was drawn twice
      compared++
      const found = findPositions(source, path => {
        const value = valueAt(tree, path)
        return Array.isArray(value) && isRows(value, path)
      }).keys
      assert.deepEqual(
        found.map(({ path }) => JSON.stringify(path)).sort(),
        [...leaves(tree, isRows)].sort(),
        `seed ${seed}:\n${source}`,
      )
      const lines = source.split('\n')
      for (const { path, line } of found) assert.ok(lines[line - 1]?.includes(String(path.at(-1))), `seed ${seed}`)
    }
    assert.ok(compared > RUNS / 2)
  })
}

function parsed(source: string): unknown {
  try {
    return parse(source)
  } catch {
    return undefined
  }
}

function valueAt(tree: unknown, path: Path): unknown {
  return path.reduce((node, name) => (node as Record<string | number, unknown>)[name], tree)
}
