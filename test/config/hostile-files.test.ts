/** Hostile files: reading them ends soon, and messages about them are printable. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { explain } from '../../src/cli/explain.ts'
import { ApiProjects } from '../../src/apis/api-projects.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { examine } from '../../src/config/load.ts'
import { argumentsFor, Transcript, temporaryHome } from './temporary-home.ts'

const MEBIBYTE = 2 ** 20

/** [what is in place of the file, how it is made, the message] */
const INSTEAD: readonly (readonly [what: string, make: (path: string) => void, said: string])[] = [
  ['a pipe', path => execFileSync('mkfifo', [path]), 'it is not a regular file (put a file there)'],
  ['a device', path => symlinkSync('/dev/zero', path), 'it is not a regular file (put a file there)'],
  ['a folder', path => mkdirSync(path), 'it is a folder (put a file there)'],
  ['itself', path => symlinkSync(path, path), 'ELOOP (let the gateway user read it)'],
  [
    'more than anybody writes',
    path => writeFileSync(path, '#'.repeat(4 * MEBIBYTE + 1)),
    'it is longer than 4 MiB (leave out what is not needed)',
  ],
]

for (const [what, make, said] of INSTEAD) {
  test(`${what} in place of a file is an error, and reading does not block`, t => {
    const home = temporaryHome(t, {})
    make(join(home, 'deployment.toml'))
    mkdirSync(join(home, 'apis', 'A'), { recursive: true })
    make(join(home, 'apis', 'A', 'api.yaml'))
    const errors = [...examine(home, [], join(home, 'data')).errors, ...new ApiProjects(home).load().errors]
    assert.deepEqual(
      errors.map(diagnostic => formatDiagnostic(diagnostic).replaceAll(home, '~')),
      [`~/deployment.toml: cannot be read: ${said}`, `~/apis/A/api.yaml: cannot be read: ${said}`],
    )
  })
}

test('a message with names from a file is one printable line of bounded length', t => {
  const long = 'x'.repeat(100_000)
  const home = temporaryHome(t, {
    'deployment.toml': `"a\\nb" = 1\n"\\u001b[31mred" = 1\n${long} = 1\n[super_admin]\nusername = "$file{${long}}"\n`,
  })
  const { errors, unknown } = examine(home, [], join(home, 'data'))
  const said = [...unknown, ...errors].map(formatDiagnostic)
  assert.equal(said.length, 4)
  for (const line of said) assert.doesNotMatch(line, /[\u0000-\u001f\u007f]/)
  for (const line of said) assert.ok(line.length < 5000, line.slice(0, 100))
  assert.match(said[0]!, /: a\\u000ab: unknown key/)
})

test('explain escapes control characters of names', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '[custom_keystore."\\u001b[31m\\nx"]\nalias = "a"\n' })
  const key = 'custom_keystore.\u001b[31m\nx.alias'
  for (const rest of [[], ['custom_keystore'], [key], ['\u001b[31mnone']]) {
    const [out, err] = [new Transcript(), new Transcript()]
    await explain(argumentsFor(home, { rest }), out, err)
    assert.doesNotMatch(out.text + err.text, /[\u0000-\u0009\u000b-\u001f\u007f]/)
  }
})

test('a project of many keys is validated in linear time, and a duplicate key is found', t => {
  const keys = Array.from({ length: 50_000 }, (_, i) => `k${i}: 1`)
  const home = temporaryHome(t, { 'apis/A/api.yaml': [...keys, 'more:', '  k0: 1', '  k0: 2', 'k0: 1'].join('\n') })
  const said = new ApiProjects(home).load().errors.map(formatDiagnostic)
  assert.deepEqual(
    said.map(line => line.replace(/^.*apis/, 'apis')),
    ['apis/A/api.yaml:50003:3: not valid YAML: duplicated mapping key (keep one of them)'],
  )
})

function project(name: string, context: string): string {
  const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: 'http://127.0.0.1:1' } }
  const data = { name, context, version: '1.0.0', endpointConfig }
  return JSON.stringify({ type: 'api', version: 'v4', data })
}

/** After A has /a and B has /b: new contexts of Aaa, A and B (undefined: invalid project), and the resulting ones. */
const CLASHES: readonly (readonly [string, readonly (string | undefined)[], Readonly<Record<string, string>>])[] = [
  ['one that comes', ['/b', '/a', '/b'], { A: '/a', B: '/b' }],
  ['one that changes', [undefined, '/b', '/b'], { A: '/a', B: '/b' }],
  ['one that comes where the other is broken', ['/b', '/a', 'no'], { A: '/a', B: '/b' }],
  ['nobody: both change', [undefined, '/b', '/a'], { A: '/b', B: '/a' }],
  ['nobody: the other has left', ['/b', '/a', '/c'], { Aaa: '/b', A: '/a', B: '/c' }],
]

for (const [who, contexts, expected] of CLASHES) {
  test(`an API keeps its path in a reload and loses it to: ${who}`, t => {
    const home = temporaryHome(t, { 'apis/A/api.yaml': project('A', '/a'), 'apis/B/api.yaml': project('B', '/b') })
    const projects = new ApiProjects(home)
    const before = projects.load()
    for (const [i, name] of ['Aaa', 'A', 'B'].entries()) {
      const context = contexts[i]
      if (context === undefined) continue
      mkdirSync(join(home, 'apis', name), { recursive: true })
      writeFileSync(join(home, 'apis', name, 'api.yaml'), project(name, context))
    }
    const { projects: after } = projects.load(undefined, before.projects)
    assert.deepEqual(Object.fromEntries([...after].map(([name, { api }]) => [name, api.context])), expected)
  })
}
