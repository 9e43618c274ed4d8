import assert from 'node:assert/strict'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { parseArguments, UsageError } from '../../src/cli/arguments.ts'
import { usage } from '../../src/cli/help.ts'

test('a command line with every option is parsed', () => {
  assert.deepEqual(
    parseArguments([
      'start',
      '--home',
      '/h',
      '--set',
      'a.b=1',
      '--json',
      'key',
      '--set=c=d=e',
      '--data',
      '/d',
      '--sample',
      '-h',
    ]),
    {
      command: 'start',
      help: true,
      args: { home: '/h', dataDir: '/d', sets: ['a.b=1', 'c=d=e'], json: true, rest: ['key'] },
      options: {
        ...{ sample: true, method: '', headers: [], body: null, state: '', side: '', limit: '' },
        ...{ api: '', code: '', status: '', since: '', follow: false, har: false },
        ...{ changed: false, burst: '', by: '', watch: false, waitS: 0, sunset: '', tuning: {}, management: {} },
      },
    },
  )
})

test('the home defaults to conf/ of the working directory, and the data folder to data/ in the home', () => {
  const { command, args } = parseArguments([])
  assert.equal(command, '')
  assert.equal(args.home, resolve('conf'))
  assert.equal(args.dataDir, join(args.home, 'data'))
  assert.equal(parseArguments(['start', '--home', 'x']).args.dataDir, resolve('x', 'data'))
})

test('a command has options of its own', () => {
  const walk = parseArguments(['walk', '/t', '-X', 'PUT', '-H', 'a: b', '-H', 'c: d', '-d', ''])
  assert.deepEqual(walk.args.rest, ['/t'])
  assert.deepEqual(walk.options.headers, ['a: b', 'c: d'])
  assert.deepEqual([walk.options.method, walk.options.body], ['PUT', ''])
  const { options } = parseArguments(['connections', '--side', 'source', '--state=CLOSING', '--limit', '5'])
  assert.deepEqual([options.side, options.state, options.limit], ['source', 'CLOSING', '5'])
})

test('start --wait takes seconds, at most an hour', () => {
  assert.equal(parseArguments(['start', '--wait', '30']).options.waitS, 30)
  for (const given of ['-1', '3601', '5s', '']) {
    assert.throws(() => parseArguments(['start', `--wait=${given}`]), /--wait is a whole number of seconds, 0 to 3600/)
  }
})

for (const argv of [
  ['--hme', 'x'],
  ['--home'],
  ['--json=1'],
  ['--set'],
  ['check', '--sample'],
  ['why', '-X', 'GET'],
  ['check', '--wait', '1'],
]) {
  test(`an invalid command line is refused: ${argv.join(' ')}`, () => {
    assert.throws(() => parseArguments(argv), UsageError)
  })
}

test('help describes one command or all commands', () => {
  assert.match(usage('check'), /^Usage:\n {2}sluice check [\s\S]*--home DIR/)
  assert.doesNotMatch(usage('check'), /sluice explain/)
  assert.match(usage('nonsense'), /sluice start[\s\S]*sluice reference/)
  assert.match(usage('walk'), /sluice walk URL [\s\S]*-H, --header[\s\S]*--home DIR/)
})
