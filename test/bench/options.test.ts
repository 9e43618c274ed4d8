import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readOptions, UsageError } from '../../bench/options.ts'
import { extraPeers } from '../../bench/peers/extra.ts'
import { SCENARIOS } from '../../bench/scenarios.ts'

const ofKind = (kind: string) => Object.keys(SCENARIOS).filter(name => SCENARIOS[name]?.kind === kind)
const OPEN = ofKind('open')
const CONTESTS = ofKind('contest')

test('without options every scenario runs but the open loop and the contests', () => {
  const scenarios = readOptions([])?.scenarios ?? []
  assert.deepEqual(
    scenarios,
    Object.keys(SCENARIOS).filter(name => !OPEN.includes(name) && !CONTESTS.includes(name)),
  )
})

test('--open-loop adds to what was chosen', () => {
  assert.deepEqual(readOptions(['--scenario', 'bare', '--open-loop'])?.scenarios, ['bare', ...OPEN])
})

test('a name may stand for all scenarios whose names begin so, unless it is one itself', () => {
  const failOver = ['fail-over-dies', 'fail-over-hangs', 'fail-over-flaps']
  assert.deepEqual(readOptions(['--scenario', 'tls,fail-over'])?.scenarios, ['tls', ...failOver])
})

test('contests run by the name of their kind, and another state of the repository is named by its folder', () => {
  const { scenarios, beforeFolder } = readOptions(['--scenario', 'chain,secured,apis', '--before', '/elsewhere'])!
  assert.deepEqual(scenarios, CONTESTS)
  assert.equal(beforeFolder, '/elsewhere')
})

test('--quick shortens, and an explicit number wins over it', () => {
  const { rounds, seconds } = readOptions(['--quick', '--seconds', '7'])!
  assert.deepEqual([rounds, seconds], [2, 7])
})

test('help is no set of options', () => {
  assert.equal(readOptions(['--help']), undefined)
})

for (const words of [['--rounds', '0'], ['--seconds', 'x'], ['--scenario', 'nonsense'], ['--unknown'], ['word']]) {
  test(`refused: ${words.join(' ')}`, () => {
    assert.throws(() => readOptions(words), UsageError)
  })
}

test('BENCH_EXTRA names one proxy a line, and its command may hold equals signs', () => {
  const names = extraPeers('one=A=1 exec one\n\n two=exec two\n').map(peer => peer.name)
  assert.deepEqual(names, ['one', 'two'])
  assert.throws(() => extraPeers('exec nothing'), /expected name=command/)
})
