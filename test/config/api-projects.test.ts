/** API projects that are read again: what has changed, what goes on as it was, what is read anew. */
import assert from 'node:assert/strict'
import { mkdirSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { ApiProjects } from '../../src/config/api-definitions.ts'
import { describe } from '../../src/config/fault.ts'
import { EVERYWHERE } from '../../src/config/gateway-environments.ts'
import { temporaryHome } from './temporary-home.ts'

function other(context: string): string {
  const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: 'http://h' } }
  const data = { name: 'A', context: `/${context}`, version: '1', endpointConfig }
  return JSON.stringify({ type: 'api', version: 'v4.0.0', data })
}

test('a project that is faulty now goes on as it was, and one that is gone does not', t => {
  const home = temporaryHome(t, { 'apis/A/api.yaml': other('a'), 'apis/B/api.yaml': other('b') })
  const projects = new ApiProjects(home)
  const before = projects.load()
  writeFileSync(join(home, 'apis/A/api.yaml'), 'type: api')
  rmSync(join(home, 'apis/B'), { recursive: true })
  const after = projects.load(undefined, before.projects)
  assert.deepEqual(after.apis, [before.apis[0]])
  assert.deepEqual(after.kept, after.apis)
  assert.ok(after.faults.length > 0)
  rmSync(join(home, 'apis/A/api.yaml'))
  assert.deepEqual(projects.load(undefined, after.projects).kept, after.apis)
  writeFileSync(join(home, 'apis/A/api.yaml'), other('c'))
  const right = projects.load(undefined, after.projects)
  assert.deepEqual([right.apis[0]!.context, right.kept, right.faults], ['/c', [], []])
})

test('an API that is objected to goes on as it was, unless that is objected to as well', t => {
  const home = temporaryHome(t, { 'apis/A/api.yaml': other('a') })
  const projects = new ApiProjects(home)
  const { projects: inForce } = projects.load()
  writeFileSync(join(home, 'apis/A/api.yaml'), other('b'))
  const fault = { where: 'A', key: '', given: '', expected: 'no', remedy: '' }
  const objectTo = (...contexts: readonly string[]) =>
    projects.load(({ context }) => (contexts.includes(context) ? fault : undefined), inForce)
  assert.deepEqual(
    objectTo('/b').kept.map(({ context }) => context),
    ['/a'],
  )
  assert.deepEqual(objectTo('/b').faults, [fault])
  assert.deepEqual([objectTo('/a', '/b').apis, objectTo('/a').apis.length], [[], 1])
})

test('a file that has not changed is not read again, and one that was replaced is', t => {
  const home = temporaryHome(t, { 'apis/A/api.yaml': other('a') })
  const path = join(home, 'apis/A/api.yaml')
  const long = new Date(Date.now() - 60_000)
  const projects = new ApiProjects(home)
  const first = projects.load().apis[0]
  // Too young for its times to be trusted.
  assert.notEqual(projects.load().apis[0], first)
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 60_000 })
  const known = projects.load().apis[0]
  assert.equal(projects.load().apis[0], known)
  writeFileSync(`${path}~`, other('b'))
  utimesSync(`${path}~`, long, long)
  renameSync(`${path}~`, path)
  assert.equal(projects.load().apis[0]!.context, '/b')
})

test('where the folder of the projects cannot be read all of them go on', t => {
  const home = temporaryHome(t, { 'apis/A/api.yaml': other('a') })
  const projects = new ApiProjects(home)
  const before = projects.load()
  rmSync(join(home, 'apis'), { recursive: true })
  writeFileSync(join(home, 'apis'), '')
  const { apis, kept, faults } = projects.load(undefined, before.projects)
  assert.deepEqual([apis, kept], [before.apis, before.apis])
  assert.match(describe(faults[0]!), /apis: cannot be read: ENOTDIR/)
})

const DOCUMENT = `openapi: 3.0.3
info: {title: A, version: "1"}
servers: [{url: "http://h"}]
paths:
  /a:
    get: {responses: {"200": {description: ok}}}
`

const TITLED = DOCUMENT.replace('title: A', 'title: B')

/** Files of a project -> another content, and what it makes of the project. */
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
  const change = before === null ? 'comes' : after === null ? 'goes' : `becomes ${JSON.stringify(after.slice(0, 12))}`
  test(`projects are read again when ${path} ${change}`, t => {
    const files = { 'apis/A/api.yaml': other('a'), ...(before === null ? {} : { [path]: before }) }
    const home = temporaryHome(t, files)
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 60_000 })
    const projects = new ApiProjects(home)
    const place = { ...EVERYWHERE, labels: new Set(['A']) }
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
    // What is faulty now goes on as it was.
    assert.equal(isSame, after?.endsWith('[') === true)
    assert.deepEqual([now.kept.length, now.faults.length], isSame ? [1, 1] : [0, 0])
  })
}

test('an API that is for other gateways now is gone, and one that is faulty now goes on where it may', t => {
  const labelled = (label: string): string => other('a').replace('"name"', `"labels":["${label}"],"name"`)
  const home = temporaryHome(t, { 'apis/A/api.yaml': labelled('A') })
  const projects = new ApiProjects(home)
  const at = (...labels: readonly string[]) => ({ ...EVERYWHERE, labels: new Set(labels) })
  const first = projects.load(undefined, undefined, at('A'))
  assert.equal(first.apis.length, 1)
  assert.deepEqual(projects.load(undefined, first.projects, at('B')).apis, [])
  writeFileSync(join(home, 'apis/A/api.yaml'), 'type: api')
  assert.deepEqual(projects.load(undefined, first.projects, at('A')).kept, first.apis)
  assert.deepEqual(projects.load(undefined, first.projects, at('B')).apis, [])
})
