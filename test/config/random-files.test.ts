/** Random files: examining them never throws, and no message is repeated. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { allKeys } from '../../src/config/catalogue.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { examine } from '../../src/config/load.ts'
import { temporaryHome } from './temporary-home.ts'

/** Pseudo-random numbers from a seed, so that a failure can be repeated. */
function dice(seed: number): (sides: number) => number {
  let state = seed
  return sides => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * sides)
  }
}

type Roll = (sides: number) => number

function pick<T>(roll: Roll, from: readonly T[]): T {
  return from[roll(from.length)]!
}

const VALUES = [
  ...['0', '-1', '1.5', 'inf', 'nan', '99999999999999999999', 'true', '"true"', '"30s"', '""', "'x'", '"a,b"'],
  ...['2026-11-21', '07:32:00', '2026-11-21T07:32:00Z', '[]', '["a"]', '[["a"], 1]', '{}', '{ a = 1 }', '[{}]'],
  ...[
    '[{ name = "x", password = 5 }]',
    '{ a = [{ b = {} }] }',
    '"\\u0000"',
    '"$ref{"',
    '"$\u{7b}}"',
    '"$ref{}"',
    '"$env{}"',
  ],
  ...[
    '"$file{}"',
    '"$file{/}"',
    '"$secret{}"',
    '"$$ref{a}"',
    '"$ref{own.x}$ref{own.y}"',
    '["$ref{own.x}"]',
    '"$\u{7b}ip}"',
  ],
]
const STRANGE = [
  '__proto__',
  'constructor',
  '"a]b[0]"',
  '"[0]"',
  '""',
  '"\\u00e4"',
  '"a..b"',
  'toString',
  '"<name>"',
  'x',
]
const PATHS = allKeys().map(({ path }) => path.replaceAll('<name>', 'mine'))
const TABLES = [...new Set(allKeys().map(({ section }) => section))].filter(section => section !== '')

function line(roll: Roll): string {
  const shape = roll(8)
  if (shape === 0) return `[${pick(roll, TABLES)}]`
  if (shape === 1) return `[[${pick(roll, TABLES)}]]`
  if (shape === 2) return `[${pick(roll, TABLES)}.${pick(roll, STRANGE)}]`
  if (shape === 3) return `${pick(roll, STRANGE)}.${pick(roll, STRANGE)} = ${pick(roll, VALUES)}`
  const path = pick(roll, PATHS)
  const segments = path.split('.')
  const some = segments.slice(roll(segments.length)).join('.')
  const value = roll(4) === 0 ? `"$ref{${pick(roll, PATHS)}}"` : pick(roll, VALUES)
  return `${pick(roll, [path, some, `"${some}"`, `${some}.x`])} = ${value}`
}

const RUNS = process.env.SLUICE_LONG === undefined ? 150 : 5000

function fileOf(roll: Roll): string {
  const lines = Array.from({ length: 1 + roll(12) }, () => line(roll))
  const [headers, keys] = [lines.filter(each => each.startsWith('[')), lines.filter(each => !each.startsWith('['))]
  return [
    ...keys.slice(4),
    '[own]',
    'x = "$ref{own.y}"',
    'y = 5',
    ...headers.flatMap(each => [each, ...keys.splice(0, 2)]),
  ].join('\n')
}

test('any file is examined without an exception or a repeated message', t => {
  const home = temporaryHome(t, {})
  let judged = 0
  for (let seed = 1; seed <= RUNS; seed++) {
    const roll = dice(seed)
    const text = fileOf(roll)
    writeFileSync(join(home, 'deployment.toml'), text)
    const set = `${pick(roll, PATHS)}=${pick(roll, VALUES)}`
    const { errors, unknown, warnings } = examine(home, [set], join(home, 'data'))
    const said = [...errors, ...unknown, ...warnings].map(formatDiagnostic)
    if (!said[0]?.includes('not valid TOML')) judged++
    assert.equal(said.length, new Set(said).size, `seed ${seed}, --set ${set}:\n${text}\n${said.join('\n')}`)
  }
  assert.ok(judged > RUNS / 3, `${judged} of ${RUNS}`)
})
