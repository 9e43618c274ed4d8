/** How projects declare mounted APIs: module, settings, and every fault of them. */
import assert from 'node:assert/strict'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ApiProjects } from '../../src/apis/api-projects.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { temporaryHome } from '../config/temporary-home.ts'

function project(endpointConfig: object): string {
  const data = { name: 'Notes', context: '/notes', version: '1', endpointConfig }
  return JSON.stringify({ type: 'api', version: 'v4.0.0', data }, null, 1)
}

function homeWith(t: TestContext, endpointConfig: object): string {
  const files = { 'apis/Notes/api.yaml': project(endpointConfig), 'apis/Notes/notes.mjs': '', 'modules/own.js': '' }
  return temporaryHome(t, files)
}

test('a mounted API has a module of its project and its settings, and no endpoint', t => {
  const settings = { folder: 'a', deep: { list: ['1'] } }
  const home = homeWith(t, { endpoint_type: 'mounted', module: 'notes.mjs', settings })
  const { apis, errors, warnings } = new ApiProjects(home).load()
  assert.deepEqual([errors, warnings], [[], []])
  const [{ mounted, endpoints, sandbox }] = apis as [(typeof apis)[0]]
  assert.deepEqual([endpoints.endpoints, sandbox.endpoints, mounted!.settings], [[], [], settings])
  assert.ok(mounted!.module.endsWith('/apis/Notes/notes.mjs'))
})

test('a changed module is a changed API, and a module elsewhere in the home may be shared', t => {
  const home = homeWith(t, { endpoint_type: 'mounted', module: '../../modules/own.js' })
  const projects = new ApiProjects(home)
  const digestOf = () => projects.load().apis[0]!.mounted!.digest
  const before = digestOf()
  assert.equal(digestOf(), before)
  writeFileSync(join(home, 'modules/own.js'), 'export const open = 1')
  assert.notEqual(digestOf(), before)
})

test('a name of the gateway stands for its own module', t => {
  const { apis } = new ApiProjects(homeWith(t, { endpoint_type: 'mounted', module: 'sluice:sample' })).load()
  assert.deepEqual([apis[0]!.mounted!.module, apis[0]!.mounted!.digest], ['sluice:sample', ''])
})

const MOUNTED = { endpoint_type: 'mounted', module: 'notes.mjs' }
const WORK: readonly (readonly [module: string, work: unknown, start: string])[] = [
  ['notes.mjs', undefined, 'none'],
  ['notes.mjs', true, 'start'],
  ['notes.mjs', false, 'off'],
  ['sluice:notification-senders', undefined, 'use'],
  ['sluice:notification-senders', true, 'start'],
  ['sluice:notification-senders', false, 'off'],
]
for (const [module, work, start] of WORK) {
  test(`work of ${module} with work: ${work} has the start "${start}"`, t => {
    const { apis } = new ApiProjects(homeWith(t, { ...MOUNTED, module, work })).load()
    assert.equal(apis[0]!.mounted!.work, start)
  })
}

const FAULTS: readonly (readonly [config: object, error: RegExp])[] = [
  [{ endpoint_type: 'mounted' }, /endpointConfig\.module: is missing/],
  [{ ...MOUNTED, module: 'gone.mjs' }, /module = "gone\.mjs": cannot be read \(ENOENT\)/],
  [{ ...MOUNTED, module: '/etc/passwd.js' }, /must be a path from the folder of the project on/],
  [{ ...MOUNTED, module: '../../../x.js' }, /cannot be read \(ENOENT\)/],
  [{ ...MOUNTED, module: 'link.mjs' }, /is outside of the configuration folder/],
  [{ ...MOUNTED, module: 'api.yaml' }, /must be an ES module/],
  [
    { ...MOUNTED, module: 'sluice:none' },
    /there is no such module \(the gateway has sluice:healthcare, sluice:notification-senders, sluice:sample\)/,
  ],
  [{ ...MOUNTED, work: 'daily' }, /work = "?daily"?: expected true or false/],
  [{ ...MOUNTED, settings: ['a'] }, /settings: expected names with their values/],
  [{ ...MOUNTED, production_endpoints: { url: 'http://b' } }, /production_endpoints: a mounted API has no endpoints/],
  [{ ...MOUNTED, modul: 'x' }, /modul: is not known here \(did you mean module\?\)/],
  [
    { endpoint_type: 'http', production_endpoints: { url: 'http://b' }, module: 'notes.mjs' },
    /module: belongs to the type mounted/,
  ],
]

for (const [config, error] of FAULTS) {
  test(`${JSON.stringify(config)} is refused`, t => {
    const home = homeWith(t, config)
    symlinkSync(process.execPath, join(home, 'apis/Notes/link.mjs'))
    const { apis, errors } = new ApiProjects(home).load()
    assert.equal(apis.length, 0)
    assert.match(errors.map(formatDiagnostic).join('\n'), error)
  })
}
