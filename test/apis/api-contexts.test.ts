/** Contexts with variables, and APIs without a version in their path: what is valid, and which paths clash. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiProjects } from '../../src/apis/api-projects.ts'
import { apiPaths, contextVariables, contextViolation } from '../../src/apis/api-paths.ts'
import { temporaryHome } from '../config/temporary-home.ts'

function project(context: string, data: object = {}): string {
  const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: 'http://h' } }
  const all = { name: context.replaceAll('/', ''), context, version: '1', endpointConfig, ...data }
  return JSON.stringify({ type: 'api', version: 'v4.0.0', data: all })
}

function load(t: Parameters<typeof temporaryHome>[0], ...projects: readonly string[]) {
  const files = projects.map((text, at) => [`apis/P${at}/api.yaml`, text] as const)
  return new ApiProjects(temporaryHome(t, Object.fromEntries(files))).load()
}

const VIOLATIONS: readonly (readonly [context: string, expected: string])[] = [
  ['/t/{tenant}/api', ''],
  ['/t/{tenant}/{unit}/{version}', ''],
  ['/{tenant}', ''],
  ['/t/{tenant}/{tenant}', 'must hold {tenant} only once'],
  ['/a/{version}/{version}', 'must hold {version} only once'],
  ['/a/{Version}', '{Version} is a variable, not the version'],
  ['/a/{version}/{tenant}', 'must not hold {tenant} behind {version}'],
  ['/t/{ten ant}', 'the segment "{ten ant}" holds a character that is not allowed'],
  ['/t/{}', 'the segment "{}" holds a character that is not allowed'],
  ['/t/{a}-x', 'the segment "{a}-x" holds a character that is not allowed'],
]

for (const [context, expected] of VIOLATIONS) {
  test(`the context ${context} ${expected === '' ? 'is valid' : expected}`, () => {
    assert.equal(contextViolation(context)?.[0] ?? '', expected)
  })
}

test('an unversioned API is reached under its context alone, whatever its version', () => {
  assert.deepEqual(apiPaths('/t/{tenant}/api', '1', false, true), ['/t/{tenant}/api'])
  assert.deepEqual(apiPaths('/h', '1', true, true), ['/h'])
})

test('variables of a context have the index of their segment, and the version is none once it has its value', () => {
  assert.deepEqual(contextVariables(apiPaths('/t/{tenant}/{unit}/{version}', '1', false)[0]!), [
    [1, 'tenant'],
    [2, 'unit'],
  ])
  assert.deepEqual(contextVariables('/a/1'), [])
})

test('an unversioned API keeps that in its definition, and refuses {version} in its context', t => {
  const { apis, errors } = load(t, project('/t/{tenant}/api', { isUnversioned: true }))
  assert.deepEqual([apis[0]!.context, apis[0]!.isUnversioned, errors], ['/t/{tenant}/api', true, []])
  const wrong = load(t, project('/a/{version}', { isUnversioned: true }))
  assert.deepEqual(
    wrong.errors.map(({ expected }) => expected),
    ['has {version}, although the API is unversioned'],
  )
})

const UNVERSIONED = { isUnversioned: true }
const CLASHES: readonly (readonly [first: string, second: string, path: string])[] = [
  [project('/t/{a}/x'), project('/t/{b}/x'), '/t/{}/x/1'],
  [project('/h', UNVERSIONED), project('/h', { isDefaultVersion: true }), '/h'],
  [project('/h', UNVERSIONED), project('/h', { ...UNVERSIONED, version: '2' }), '/h'],
]

for (const [first, second, path] of CLASHES) {
  test(`of two APIs under ${path} the second is not deployed, whatever their variables are called`, t => {
    const { apis, errors } = load(t, first, second)
    assert.equal(apis.length, 1)
    assert.match(errors[0]!.expected, new RegExp(`^${RegExp.escape(path)} is already a path of `))
  })
}

test('a context with a variable and one with a literal in its place are both deployed', t => {
  assert.equal(load(t, project('/t/{a}/x'), project('/t/acme/x')).apis.length, 2)
})
