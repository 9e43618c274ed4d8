import assert from 'node:assert/strict'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { parseArguments, UsageError, usage } from '../../src/cli/arguments.ts'

test('a command line with everything', () => {
  assert.deepEqual(
    parseArguments([
      'explain',
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
      command: 'explain',
      help: true,
      sample: true,
      args: { home: '/h', dataDir: '/d', sets: ['a.b=1', 'c=d=e'], json: true, rest: ['key'] },
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

for (const argv of [['--hme', 'x'], ['--home'], ['--json=1'], ['--set']]) {
  test(`a wrong command line: ${argv.join(' ')}`, () => {
    assert.throws(() => parseArguments(argv), UsageError)
  })
}

test('help is about one command, or about all', () => {
  assert.match(usage('check'), /^Usage:\n {2}sluice check [\s\S]*--home DIR/)
  assert.doesNotMatch(usage('check'), /sluice explain/)
  assert.match(usage('nonsense'), /sluice start[\s\S]*sluice reference/)
})
