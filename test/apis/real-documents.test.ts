/** Documents as their authors publish them: base paths with versions, relative servers, JSON in files called YAML. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type LoadedApis, ApiProjects } from '../../src/apis/api-projects.ts'
import { apiPaths } from '../../src/apis/api-paths.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { API_OF_BOTH_KINDS as HEAD } from './api-text.ts'

function load(
  t: TestContext,
  files: Readonly<Record<string, string>>,
): LoadedApis & { readonly said: readonly string[] } {
  const named = Object.entries(files).map(([name, text]) => [`apis/${name}`, text])
  const home = temporaryHome(t, Object.fromEntries(named))
  const loaded = new ApiProjects(home).load()
  const said = [...loaded.errors, ...loaded.warnings].map(it => formatDiagnostic(it).replaceAll(`${home}/apis/`, ''))
  return { ...loaded, said }
}

/** The document of the Swagger Petstore, shortened: its server is relative, its version that of the document. */
const PETSTORE = `openapi: 3.0.4
info:
  title: Swagger Petstore - OpenAPI 3.0
  version: 1.0.27
servers:
  - url: /api/v3
paths:
  /pet/{petId}:
    get:
      responses: {"200": {description: ok}}
`
const ENDPOINT = 'x-wso2-production-endpoints: {urls: ["http://backend:8080/api/v3"]}\n'
const ABSOLUTE = 'https://petstore.example/api/v3'

/** [what, document, path and version of the API, URL of its backend]. */
const ADDRESSES: readonly (readonly [what: string, text: string, path: string, version: string, url: string])[] = [
  ['a relative server beside an endpoint', PETSTORE + ENDPOINT, '/api/v3', 'v3', 'http://backend:8080/api/v3'],
  [
    'a relative server without a slash',
    PETSTORE.replace('/api', 'api') + ENDPOINT,
    '/api/v3',
    'v3',
    'http://backend:8080/api/v3',
  ],
  [
    'a relative server with a dot',
    PETSTORE.replace('/api', './api') + ENDPOINT,
    '/api/v3',
    'v3',
    'http://backend:8080/api/v3',
  ],
  [
    'a server without a scheme',
    PETSTORE.replace('/api', '//h/api') + ENDPOINT,
    '/api/v3',
    'v3',
    'http://backend:8080/api/v3',
  ],
  [
    'a relative server before a whole one',
    PETSTORE.replace('paths:', `  - url: ${ABSOLUTE}\npaths:`),
    '/api/v3',
    'v3',
    ABSOLUTE,
  ],
  ['a whole server', PETSTORE.replace('/api/v3', ABSOLUTE), '/api/v3', 'v3', ABSOLUTE],
  [
    'a date as version',
    PETSTORE.replace('/api/v3', 'https://h/x/2023-10-01'),
    '/x/2023-10-01',
    '2023-10-01',
    'https://h/x/2023-10-01',
  ],
  [
    'a version of parts',
    PETSTORE.replace('/api/v3', 'https://h/x/v1.2beta'),
    '/x/v1.2beta',
    'v1.2beta',
    'https://h/x/v1.2beta',
  ],
  ['a number', PETSTORE.replace('/api/v3', 'https://h/x/1.1'), '/x/1.1', '1.1', 'https://h/x/1.1'],
  ['no version', PETSTORE.replace('/api/v3', 'https://h/x/vault'), '/x/vault/1.0.27', '1.0.27', 'https://h/x/vault'],
  [
    'a version before the end',
    PETSTORE.replace('/api/v3', 'https://h/v3/x'),
    '/v3/x/1.0.27',
    '1.0.27',
    'https://h/v3/x',
  ],
  [
    'a base path of its own',
    `${PETSTORE.replace('/api/v3', 'https://h')}x-wso2-basePath: /pets/v2\n`,
    '/pets/v2',
    'v2',
    'https://h',
  ],
  [
    'a version that no path can hold, which only the document has',
    PETSTORE.replace('1.0.27', '2024-05 (draft)') + ENDPOINT,
    '/api/v3',
    'v3',
    'http://backend:8080/api/v3',
  ],
]

for (const [what, text, path, version, url] of ADDRESSES) {
  test(`a document with ${what} is reached under ${path}`, t => {
    const { apis, said } = load(t, { 'a.yaml': text })
    assert.deepEqual(said, [])
    const [api] = apis
    assert.deepEqual(apiPaths(api!.context, api!.version, api!.isDefaultVersion), [path])
    assert.deepEqual([api!.version, api!.endpoints.endpoints.map(one => one.url)], [version, [url]])
  })
}

test('a relative server alone is an error that says where to name the backend', t => {
  const { apis, said } = load(t, { 'a.yaml': PETSTORE })
  assert.deepEqual(apis, [])
  assert.match(
    said.join(),
    /^a\.yaml:6: servers\[0\]\.url = "\/api\/v3": is relative and names no host \(.*x-wso2-prod/,
  )
})

test('a version that no path can hold is an error without a version in the base path', t => {
  const { said } = load(t, { 'a.yaml': PETSTORE.replace('1.0.27', '1.0 (draft)').replace('/api/v3', 'https://h/x') })
  assert.match(said.join(), /^a\.yaml:4: info\.version = "1\.0 \(draft\)": must be one path segment/)
})

const JSON_TEXT = JSON.stringify(
  {
    openapi: '3.0.3',
    info: { title: 'A', version: '1', description: 'tab \t, slash \\/, \u2028, \u{1f600}, \u0085' },
    servers: [{ url: 'http://h/a' }],
    paths: { '/x': { get: { responses: { 200: { description: 'ok' } } } } },
  },
  null,
  '\t',
)

test('JSON with tabs loads from a file that is called YAML, alone and beside api.yaml', t => {
  const { apis, said } = load(t, {
    'a.yaml': JSON_TEXT.replaceAll('\n', '\r\n'),
    'B/api.yaml': HEAD.replace('/a', '/b'),
    'B/Definitions/swagger.yaml': JSON_TEXT,
  })
  assert.deepEqual(
    said.filter(it => !it.includes('subscriptions to one')),
    [],
  )
  assert.deepEqual(
    apis.map(({ resources }) => resources.map(({ template }) => template)),
    [['/x'], ['/x']],
  )
})

test('a member that JSON repeats is an error, because parsers choose differently', t => {
  const { said } = load(t, { 'a.yaml': JSON_TEXT.replace('"paths"', '"paths": {},\n"paths"') })
  assert.match(said.join(), /^a\.yaml:\d+:\d+: not valid JSON: duplicated mapping key/)
})

/** Everything that a document could declare. */
const COMPLETE = `${HEAD}  operations: [{target: /x, verb: GET}]
  securityScheme: [oauth2]
  authorizationHeader: Authorization
  scopes: []
  corsConfiguration: {corsConfigurationEnabled: false}
  transport: [https]
`

for (const text of [
  '<html><body>404</body></html>',
  'a: b: c',
  'openapi: [',
  '\u0000',
  '@a',
  'openapi: 4.0.0',
  '[]',
  'text',
]) {
  test(`a swagger.yaml that is ${JSON.stringify(text)} stops no project that decides all by itself`, t => {
    const whole = load(t, { 'A/api.yaml': COMPLETE, 'A/Definitions/swagger.yaml': text })
    assert.deepEqual([whole.apis.length, whole.errors.length, whole.warnings.length], [1, 0, 1], whole.said.join('\n'))
    assert.match(whole.said[0]!, /^A\/Definitions\/swagger\.yaml:/)
    // Without one of the members the document might have decided: nothing is guessed.
    const partial = load(t, {
      'A/api.yaml': COMPLETE.replace(/ {2}scopes.*\n/, ''),
      'A/Definitions/swagger.yaml': text,
    })
    assert.deepEqual([partial.apis.length, partial.errors.length], [0, 1], partial.said.join('\n'))
  })
}
