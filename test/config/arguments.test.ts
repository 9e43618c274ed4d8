import assert from 'node:assert/strict'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { parseArguments, UsageError, usage } from '../../src/cli/arguments.ts'

test('a command line with everything', () => {
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
        ...{ changed: false, burst: '', watch: false, sunset: '', management: {} },
      },
    },
  )
})

test('the home is conf/ of the package, and the data folder lies in the home', () => {
  const { command, args } = parseArguments([])
  assert.equal(command, '')
  assert.equal(args.home, resolve(import.meta.dirname, '../../conf'))
  assert.equal(args.dataDir, join(args.home, 'data'))
  assert.equal(parseArguments(['start', '--home', 'x']).args.dataDir, resolve('x', 'data'))
})

test('options of one command', () => {
  const walk = parseArguments(['walk', '/t', '-X', 'PUT', '-H', 'a: b', '-H', 'c: d', '-d', ''])
  assert.deepEqual(walk.args.rest, ['/t'])
  assert.deepEqual(walk.options.headers, ['a: b', 'c: d'])
  assert.deepEqual([walk.options.method, walk.options.body], ['PUT', ''])
  const { options } = parseArguments(['connections', '--side', 'source', '--state=CLOSING', '--limit', '5'])
  assert.deepEqual([options.side, options.state, options.limit], ['source', 'CLOSING', '5'])
})

for (const argv of [['--hme', 'x'], ['--home'], ['--json=1'], ['--set'], ['check', '--sample'], ['why', '-X', 'GET']]) {
  test(`a wrong command line: ${argv.join(' ')}`, () => {
    assert.throws(() => parseArguments(argv), UsageError)
  })
}

test('help is about one command, or about all', () => {
  assert.match(usage('check'), /^Usage:\n {2}sluice check [\s\S]*--home DIR/)
  assert.doesNotMatch(usage('check'), /sluice explain/)
  assert.match(usage('nonsense'), /sluice start[\s\S]*sluice reference/)
  assert.match(usage('walk'), /sluice walk URL [\s\S]*-H, --header[\s\S]*--home DIR/)
})
