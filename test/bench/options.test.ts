import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { readOptions, UsageError } from '../../bench/options.ts'
import { extraPeers } from '../../bench/peers/extra.ts'
import { freePorts } from '../../bench/program.ts'
import { SCENARIOS } from '../../bench/scenarios.ts'

const ofKind = (kind: string) => Object.keys(SCENARIOS).filter(name => SCENARIOS[name]?.kind === kind)
const OPEN = ofKind('open')
const PAIRED = ofKind('paired')

test('by default all scenarios run except the open loop, paired and other long ones', () => {
  const scenarios = readOptions([])?.scenarios ?? []
  const left = [...OPEN, ...PAIRED, ...ofKind('healthcare'), ...ofKind('deliveries')]
  assert.deepEqual(
    scenarios,
    Object.keys(SCENARIOS).filter(name => !left.includes(name)),
  )
})

test('--open-loop adds the open loop to the chosen scenarios', () => {
  assert.deepEqual(readOptions(['--scenario', 'bare', '--open-loop'])?.scenarios, ['bare', ...OPEN])
})

test('the name of a group selects its scenarios, unless a scenario has that name', () => {
  const failOver = ['fail-over-dies', 'fail-over-hangs', 'fail-over-flaps']
  assert.deepEqual(readOptions(['--scenario', 'tls,fail-over'])?.scenarios, ['tls', ...failOver])
})

test('names of groups select all paired scenarios, and --before takes the folder of another checkout', () => {
  const { scenarios, beforeFolder } = readOptions([
    '--scenario',
    'chain,secured,hot-path-network,hot-path-tokens,apis,limits,refused,mediation',
    '--before',
    '/elsewhere',
  ])!
  assert.deepEqual(scenarios, PAIRED)
  assert.equal(beforeFolder, '/elsewhere')
})

test('--quick shortens the run, and an explicit number takes precedence', () => {
  const { rounds, seconds } = readOptions(['--quick', '--seconds', '7'])!
  assert.deepEqual([rounds, seconds], [2, 7])
})

test('--help returns no options', () => {
  assert.equal(readOptions(['--help']), undefined)
})

for (const words of [['--rounds', '0'], ['--seconds', 'x'], ['--scenario', 'nonsense'], ['--unknown'], ['word']]) {
  test(`refused: ${words.join(' ')}`, () => {
    assert.throws(() => readOptions(words), UsageError)
  })
}

test('BENCH_EXTRA has one proxy per line, and commands may contain equals signs', () => {
  const names = extraPeers('one=A=1 exec one\n\n two=exec two\n').map(peer => peer.name)
  assert.deepEqual(names, ['one', 'two'])
  assert.throws(() => extraPeers('exec nothing'), /expected name=command/)
})

test('ports are free: with one that is taken the bench uses others, a hundred further on', async t => {
  const server = createServer().listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const first = await freePorts(port - 1, 3)
  assert.ok(first > port && (first - port + 1) % 100 === 0, String(first - port))
})
