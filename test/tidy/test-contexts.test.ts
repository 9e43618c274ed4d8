/** What happens later belongs to the test that has begun it (`test/harness/test-contexts.ts`). */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { GUARD_MS } from '../harness/peers.ts'
import { ENTRY } from '../harness/test-files.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-contexts-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** Code of a test, and whether it passes. */
const CASES: readonly (readonly [name: string, code: string, passes: boolean])[] = [
  ['passes', `await sleep(1)`, true],
  ['a timer throws', `setTimeout(() => { throw new Error('late') }, 1); await sleep(20)`, false],
  [
    'a server throws',
    `const server = createServer(socket => { socket.destroy(); throw new Error('late') }).listen(0)
     await once(server, 'listening')
     const client = connect(server.address().port).on('error', () => {})
     await new Promise(closed => client.on('close', closed))
     server.close()`,
    false,
  ],
  ['a promise rejects', `void Promise.reject(new Error('nobody waits')); await sleep(1)`, false],
  ['a test within it fails', `await sleep(1); await test('inner', () => assert.fail())`, false],
  ['an assertion fails', `await sleep(1); assert.fail()`, false],
]
const IMPORTS = `import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'`

/** Runs files with these texts in one process. Returns the tests, each with its depth and whether it passed. */
function ran(...texts: readonly string[]): readonly (readonly [name: string, passes: boolean])[] {
  const files = texts.map((text, at) => {
    const file = join(folder, `${at}.mjs`)
    writeFileSync(file, `${IMPORTS}\n${text}`)
    return file
  })
  const { NODE_TEST_CONTEXT: _, ...others } = process.env
  const env = { ...others, SLUICE_TEST_FILES: files.join('\n') }
  const { stdout } = spawnSync(process.execPath, ['--test-reporter=tap', ENTRY], {
    env,
    encoding: 'utf8',
    timeout: GUARD_MS,
  })
  // A level of suites is four blanks.
  return [...stdout.matchAll(/^( +)(not )?ok \d+ - (.*)$/gm)].map(([, blanks, not, name]) => {
    return [`${blanks!.length / 4} ${name}`, not === undefined] as const
  })
}

test('what a test has begun fails this test, and no other one', () => {
  const text = CASES.map(([name, code]) => `test(${JSON.stringify(name)}, async () => { ${code} })\n`).join('')
  const found = ran(text).filter(([name]) => name !== '2 inner')
  assert.deepEqual(
    found,
    CASES.map(([name, , passes]) => [`1 ${name}`, passes]),
  )
})

test('tests of a suite that run at once keep apart, and hooks of a file run before the next one begins', () => {
  const suite = `globalThis.ended = []
    after(() => ended.push('first file'))
    describe('together', { concurrency: 2 }, () => {
      test('one', async () => { await sleep(5); setTimeout(() => { throw new Error('late') }, 1); await sleep(20) })
      test('other', async () => { await sleep(40) })
    })`
  const second = `test('second file', () => assert.deepEqual(ended, ['first file']))`
  assert.deepEqual(ran(suite, second), [
    ['2 one', false],
    ['2 other', true],
    ['1 together', false],
    ['1 second file', true],
  ])
})
