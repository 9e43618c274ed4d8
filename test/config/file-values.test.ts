/** `$file{PATH}`: a value from a file. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { explain } from '../../src/cli/explain.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { examine } from '../../src/config/load.ts'
import type { Resolution } from '../../src/config/resolve.ts'
import { argumentsFor, Transcript, temporaryHome } from './temporary-home.ts'

/** The configuration of a home with `access_log.path = value` and that content in `value.txt`. */
function resolved(t: TestContext, content: string | Uint8Array, value = '$file{value.txt}'): Resolution {
  const home = temporaryHome(t, { 'deployment.toml': `[access_log]\npath = '${value}'` })
  writeFileSync(join(home, 'value.txt'), content)
  return examine(home, [], join(home, 'data'))
}

const CONTENTS: readonly (readonly [what: string, content: string | Uint8Array, value: string])[] = [
  ['text', 'x', 'x'],
  ['nothing', '', ''],
  ['one line end', 'x\n', 'x'],
  ['a line end of Windows', 'x\r\n', 'x'],
  ['letters beyond ASCII', 'pä$$wörd', 'pä$$wörd'],
  ['a mark of the byte order', '\ufeffx', 'x'],
  [
    'references, which are text',
    '$env{HOME} $ref{server.hostname} \u{24}{home} $file{other}',
    '$env{HOME} $ref{server.hostname} \u{24}{home} $file{other}',
  ],
  ['64 KiB', 'x'.repeat(65_536), 'x'.repeat(65_536)],
]

for (const [what, content, value] of CONTENTS) {
  test(`a file with ${what} gives a value`, t => {
    const { configuration, errors } = resolved(t, content)
    assert.deepEqual(errors, [])
    assert.equal(configuration.access_log.path, value)
  })
}

test('only the last of two line ends is removed', t => {
  const home = temporaryHome(t, {
    'deployment.toml': '[super_admin]\npassword = "$file{value.txt}"',
    'value.txt': 'x\n\n',
  })
  assert.equal(examine(home, [], join(home, 'data')).configuration.super_admin.password, 'x\n')
})

const ERRORS: readonly (readonly [what: string, path: string, expected: string])[] = [
  [
    'is not there',
    'gone',
    'there is no file ~/gone (put it there; relative paths start from the folder of deployment.toml)',
  ],
  [
    'is below a file',
    'long/x',
    'there is no file ~/long/x (put it there; relative paths start from the folder of deployment.toml)',
  ],
  ['is nowhere on this machine', '/nowhere/x', 'there is no file /nowhere/x (put it there)'],
  ['is a folder', 'folder', '~/folder is a folder (name a file in it)'],
  ['has no name', '', '$file{} names no file (write $file{PATH})'],
  ['is longer than 64 KiB', 'long', '~/long is longer than 64 KiB (a value is at most that long)'],
  ['is not UTF-8', 'binary', '~/binary is not UTF-8 (a value is text; keep binary content in a file of its own)'],
  ['is a pipe that nobody writes to', 'pipe', '~/pipe is not a regular file (name a file)'],
  ['has no end', '/dev/zero', '/dev/zero is not a regular file (name a file)'],
]

for (const [what, path, expected] of ERRORS) {
  test(`a file that ${what} is an error`, t => {
    const home = temporaryHome(t, { 'deployment.toml': `[access_log]\npath = "$file{${path}}"` })
    mkdirSync(join(home, 'folder'))
    writeFileSync(join(home, 'long'), 'x'.repeat(65_537))
    writeFileSync(join(home, 'binary'), Uint8Array.of(0xff, 0xfe))
    execFileSync('mkfifo', [join(home, 'pipe')])
    const said = examine(home, [], join(home, 'data')).errors.map(each => formatDiagnostic(each).replaceAll(home, '~'))
    assert.deepEqual(said, [`~/deployment.toml:2: access_log.path = "$file{${path}}": ${expected}`])
  })
}

test('a file without read permission is an error', { skip: process.getuid?.() === 0 ? 'as root' : false }, t => {
  const home = temporaryHome(t, { 'deployment.toml': '[access_log]\npath = "$file{x}"', x: 'x' })
  chmodSync(join(home, 'x'), 0)
  const [diagnostic] = examine(home, [], join(home, 'data')).errors
  assert.match(diagnostic!.expected, /cannot be read: EACCES$/)
  assert.equal(diagnostic!.hint, 'let the gateway user read it')
})

test('a relative path starts from the folder of deployment.toml, and an absolute path is allowed', t => {
  const home = temporaryHome(t, {
    'repository/conf/deployment.toml': '',
    'repository/value': 'a',
    value: 'b',
  })
  const file = join(home, 'repository/conf/deployment.toml')
  writeFileSync(file, `[access_log]\npath = "$file{../value}/$file{${join(home, 'value')}}"`)
  assert.equal(examine(home, [], join(home, 'data')).configuration.access_log.path, 'a/b')
})

test('a value from a file is never shown, whatever its key', async t => {
  const SECRET = '20739'
  const toml = `[access_log]
path = "logs/$file{value.txt}"
[server]
offset = "$file{value.txt}"
hostname = "$ref{own.name}"
[own]
name = "$file{value.txt} "
[transport.passthru_http]
"header.max_bytes" = "$file{value.txt}"
`
  const home = temporaryHome(t, { 'deployment.toml': toml, 'value.txt': SECRET })
  const seen = new Transcript()
  for (const json of [false, true]) {
    for (const rest of [[], ['access_log.path'], ['server'], ['server.hostname'], ['server.base_path']]) {
      await explain(argumentsFor(home, { rest, json }), seen, seen)
    }
  }
  const { errors, warnings } = examine(home, [], join(home, 'data'))
  for (const diagnostic of [...errors, ...warnings]) seen.write(formatDiagnostic(diagnostic))
  assert.ok(errors.length >= 2)
  assert.ok(!seen.text.includes(SECRET), seen.text.split('\n').find(line => line.includes(SECRET)) ?? '')
})
