/** Reading the projects again: which files are read anew, and which APIs stay as deployed. */
import assert from 'node:assert/strict'
import { mkdirSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { ApiProjects } from '../../src/apis/api-projects.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { ALL_ENVIRONMENTS } from '../../src/apis/gateway-environments.ts'
import { temporaryHome } from '../config/temporary-home.ts'

function other(context: string): string {
  const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: 'http://h' } }
  const data = { name: 'A', context: `/${context}`, version: '1', endpointConfig }
  return JSON.stringify({ type: 'api', version: 'v4.0.0', data })
}

test('a project that has errors now keeps its deployed API, and a removed project does not', t => {
  const home = temporaryHome(t, { 'apis/A/api.yaml': other('a'), 'apis/B/api.yaml': other('b') })
  const projects = new ApiProjects(home)
  const before = projects.load()
  writeFileSync(join(home, 'apis/A/api.yaml'), 'type: api')
  rmSync(join(home, 'apis/B'), { recursive: true })
  const after = projects.load(undefined, before.projects)
  assert.deepEqual(after.apis, [before.apis[0]])
  assert.deepEqual(after.kept, after.apis)
  assert.ok(after.errors.length > 0)
  rmSync(join(home, 'apis/A/api.yaml'))
  assert.deepEqual(projects.load(undefined, after.projects).kept, after.apis)
  writeFileSync(join(home, 'apis/A/api.yaml'), other('c'))
  const right = projects.load(undefined, after.projects)
  assert.deepEqual([right.apis[0]!.context, right.kept, right.errors], ['/c', [], []])
})

test('an API that fails a check keeps its deployed form, unless that fails the check too', t => {
  const home = temporaryHome(t, { 'apis/A/api.yaml': other('a') })
  const projects = new ApiProjects(home)
  const { projects: active } = projects.load()
  writeFileSync(join(home, 'apis/A/api.yaml'), other('b'))
  const error = { where: 'A', key: '', given: '', expected: 'no', hint: '' }
  const loadRefusing = (...contexts: readonly string[]) =>
    projects.load(({ context }) => (contexts.includes(context) ? error : undefined), active)
  assert.deepEqual(
    loadRefusing('/b').kept.map(({ context }) => context),
    ['/a'],
  )
  assert.deepEqual(loadRefusing('/b').errors, [error])
  assert.deepEqual([loadRefusing('/a', '/b').apis, loadRefusing('/a').apis.length], [[], 1])
})

test('an unchanged file is not read again, and a replaced one is', t => {
  const home = temporaryHome(t, { 'apis/A/api.yaml': other('a') })
  const path = join(home, 'apis/A/api.yaml')
  const long = new Date(Date.now() - 60_000)
  const projects = new ApiProjects(home)
  const first = projects.load().apis[0]
  // The file is too young for its times to prove anything.
  assert.notEqual(projects.load().apis[0], first)
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 60_000 })
  const known = projects.load().apis[0]
  assert.equal(projects.load().apis[0], known)
  writeFileSync(`${path}~`, other('b'))
  utimesSync(`${path}~`, long, long)
  renameSync(`${path}~`, path)
  assert.equal(projects.load().apis[0]!.context, '/b')
})

test('if the folder of the projects cannot be read, all deployed APIs stay', t => {
  const home = temporaryHome(t, { 'apis/A/api.yaml': other('a') })
  const projects = new ApiProjects(home)
  const before = projects.load()
  rmSync(join(home, 'apis'), { recursive: true })
  writeFileSync(join(home, 'apis'), '')
  const { apis, kept, errors } = projects.load(undefined, before.projects)
  assert.deepEqual([apis, kept], [before.apis, before.apis])
  assert.match(formatDiagnostic(errors[0]!), /apis: cannot be read: ENOTDIR/)
})

test('if the folder of the projects is gone at a reload, all deployed APIs stay, with an error', t => {
  const home = temporaryHome(t, { 'apis/A/api.yaml': other('a') })
  const projects = new ApiProjects(home)
  const before = projects.load()
  renameSync(join(home, 'apis'), join(home, 'mount'))
  const gone = projects.load(undefined, before.projects)
  assert.deepEqual([gone.apis, gone.kept, gone.errors.length], [before.apis, before.apis, 1])
  assert.match(formatDiagnostic(gone.errors[0]!), /apis: is gone; its APIs stay deployed \(bring it back; an empty/)
  mkdirSync(join(home, 'apis'))
  const empty = projects.load(undefined, gone.projects)
  assert.deepEqual([empty.apis, empty.errors], [[], []])
  // A home that has no APIs needs no folder.
  rmSync(join(home, 'apis'), { recursive: true })
  assert.deepEqual(projects.load(undefined, empty.projects).errors, [])
})

const DOCUMENT = `openapi: 3.0.3
info: {title: A, version: "1"}
servers: [{url: "http://h"}]
paths:
  /a:
    get: {responses: {"200": {description: ok}}}
`

const TITLED = DOCUMENT.replace('title: A', 'title: B')

/** [file, content before, content after; null: no file]. */
const FILES: readonly (readonly [path: string, before: string | null, after: string | null])[] = [
  ['apis/A/api.yaml', other('a'), other('b')],
  ['apis/A/Definitions/swagger.yaml', DOCUMENT, DOCUMENT.replace('/a', '/b')],
  ['apis/A/Definitions/swagger.yaml', null, DOCUMENT],
  ['apis/A/Definitions/swagger.yaml', DOCUMENT, null],
  ['apis/A/Definitions/swagger.yaml', DOCUMENT, 'openapi: ['],
  ['apis/A/deployment_environments.yaml', null, 'type: deployment_environments\ndata: [{deploymentEnvironment: B}]'],
  ['apis/b.yaml', TITLED, TITLED.replace('/a', '/b')],
]

for (const [path, before, after] of FILES) {
  const change =
    before === null ? 'is added' : after === null ? 'is removed' : `becomes ${JSON.stringify(after.slice(0, 12))}`
  test(`projects are read again when ${path} ${change}`, t => {
    const files = { 'apis/A/api.yaml': other('a'), ...(before === null ? {} : { [path]: before }) }
    const home = temporaryHome(t, files)
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 60_000 })
    const projects = new ApiProjects(home)
    const place = { ...ALL_ENVIRONMENTS, labels: new Set(['A']) }
    const first = projects.load(undefined, undefined, place)
    assert.equal(first.apis.length, path === 'apis/b.yaml' ? 2 : 1)
    const again = projects.load(undefined, first.projects, place)
    for (const [i, known] of first.apis.entries()) assert.equal(again.apis[i], known)
    if (after === null) rmSync(join(home, path))
    else {
      mkdirSync(dirname(join(home, path)), { recursive: true })
      writeFileSync(join(home, path), after)
    }
    const now = projects.load(undefined, first.projects, place)
    const isSame = now.apis.length === first.apis.length && now.apis.every((api, i) => api === first.apis[i])
    // A project with errors keeps its deployed API.
    assert.equal(isSame, after?.endsWith('[') === true)
    assert.deepEqual([now.kept.length, now.errors.length], isSame ? [1, 1] : [0, 0])
  })
}

test('an API that belongs to other gateways now is removed, even if its project has errors', t => {
  const labelled = (label: string): string => other('a').replace('"name"', `"labels":["${label}"],"name"`)
  const home = temporaryHome(t, { 'apis/A/api.yaml': labelled('A') })
  const projects = new ApiProjects(home)
  const at = (...labels: readonly string[]) => ({ ...ALL_ENVIRONMENTS, labels: new Set(labels) })
  const first = projects.load(undefined, undefined, at('A'))
  assert.equal(first.apis.length, 1)
  assert.deepEqual(projects.load(undefined, first.projects, at('B')).apis, [])
  writeFileSync(join(home, 'apis/A/api.yaml'), 'type: api')
  assert.deepEqual(projects.load(undefined, first.projects, at('A')).kept, first.apis)
  assert.deepEqual(projects.load(undefined, first.projects, at('B')).apis, [])
})
