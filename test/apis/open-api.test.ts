/** Bare OpenAPI documents in `apis/`: the API of each, and the errors with file, line and path. */
import assert from 'node:assert/strict'
import { cpSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type LoadedApis, ApiProjects } from '../../src/apis/api-projects.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { temporaryHome } from '../config/temporary-home.ts'

const FIXTURES = resolve(import.meta.dirname, 'api-fixtures')

const THREE = `openapi: 3.0.3
info:
  title: Pets
  version: 1.0.0
servers:
  - url: http://h:8080/base
paths:
  /pets:
    get:
      responses: {"200": {description: ok}}
`

const TWO = `swagger: "2.0"
info: {title: Pets, version: 1.0.0}
host: h:8080
basePath: /base
schemes: [http]
paths:
  /pets:
    get:
      responses: {"200": {description: ok}}
`

function load(t: TestContext, text: string, name = 'a.yaml'): LoadedApis & { readonly said: readonly string[] } {
  const home = temporaryHome(t, { [`apis/${name}`]: text })
  const loaded = new ApiProjects(home).load()
  const said = [...loaded.errors, ...loaded.warnings].map(it => formatDiagnostic(it).replaceAll(`${home}/apis/`, ''))
  return { ...loaded, said }
}

/** As `GET /pets None Unlimited a,b`. */
function operationsOf({ apis }: LoadedApis): readonly string[] {
  return apis.flatMap(({ resources }) =>
    resources.map(({ verb, template, authType, tier, scopes }) => {
      return [verb, template, `[${authType}]`, tier, scopes.join()].join(' ').trim()
    }),
  )
}

test('an exported project, a 3.0 document and a 2.0 document are deployed unchanged', t => {
  const home = temporaryHome(t, {})
  cpSync(FIXTURES, join(home, 'apis'), { recursive: true })
  const loaded = new ApiProjects(home, true).load()
  assert.deepEqual(loaded.errors, [])
  assert.deepEqual(
    loaded.warnings.map(({ key, hint }) => [key, hint]),
    [],
  )
  assert.deepEqual(
    loaded.apis.map(({ name, context, version, endpoints, sandbox }) => {
      return [name, context, version, ...[endpoints, sandbox].flatMap(it => it.endpoints.map(({ url }) => url))]
    }),
    [
      ['Orders', '/orders', '1.0.0', 'http://production.test:9000/shop', 'http://sandbox.test:9000'],
      ['Pet-Store', '/petstore/{version}', 'v1', 'http://production.test:9000/petstore/v1'],
      ['Stock', '/stock', '2.1', 'http://production.test:9000/stock'],
    ],
  )
  const both = '[Application & Application User]'
  assert.deepEqual(operationsOf(loaded), [
    'GET /list [None] Unlimited',
    `POST /list ${both} 10KPerMin orders:write`,
    'GET /list/{orderId} [Application User] Unlimited',
    'GET /files/{name}.{ext} [Application] Unlimited',
    'GET /menu/* [None] Unlimited',
    `GET /pets ${both} Unlimited`,
    `POST /pets ${both} 10KPerMin write:pets,admin:pets`,
    'GET /pets/{petId} [None] Unlimited',
    'DELETE /pets/{petId} [Application User] Unlimited admin:pets',
    `GET /items/{sku} ${both} Unlimited`,
  ])
})

/** [what, document, name, context and URLs of the API]. */
const DEPLOYED: readonly (readonly [
  what: string,
  text: string,
  expected: readonly [name: string, context: string, ...urls: readonly string[]],
])[] = [
  ['3.0', THREE, ['Pets', '/base', 'http://h:8080/base']],
  ['3.1', THREE.replace('3.0.3', '3.1.0'), ['Pets', '/base', 'http://h:8080/base']],
  ['2.0', TWO, ['Pets', '/base', 'http://h:8080/base']],
  ['2.0 as a number', TWO.replace('"2.0"', '2.0'), ['Pets', '/base', 'http://h:8080/base']],
  ['a version as a number', THREE.replace('1.0.0', '1.10'), ['Pets', '/base', 'http://h:8080/base']],
  ['2.0 without schemes', TWO.replace('schemes: [http]\n', ''), ['Pets', '/base', 'https://h:8080/base']],
  ['2.0 with both schemes', TWO.replace('[http]', '[http, https]'), ['Pets', '/base', 'https://h:8080/base']],
  ['2.0 without a base path', TWO.replace('basePath: /base\n', ''), ['Pets', '/pets', 'http://h:8080']],
  ['a slash at the end', THREE.replace('/base', '/base/'), ['Pets', '/base', 'http://h:8080/base']],
  ['no path', THREE.replace('8080/base', '8080/'), ['Pets', '/pets', 'http://h:8080']],
  ['a title of words', THREE.replace('Pets', '"The Pets - v3.0!"'), ['The-Pets-v3.0', '/base', 'http://h:8080/base']],
  [
    'a title of words and no path',
    THREE.replace('Pets', '"The Pets"').replace('/base', ''),
    ['The-Pets', '/the-pets', 'http://h:8080'],
  ],
  [
    'the version as last segment',
    THREE.replace('/base', '/base/1.0.0'),
    ['Pets', '/base/{version}', 'http://h:8080/base/1.0.0'],
  ],
  ['the version alone', THREE.replace('/base', '/1.0.0'), ['Pets', '/{version}', 'http://h:8080/1.0.0']],
  ['another version', THREE.replace('/base', '/base/v1'), ['Pets', '/base/{version}', 'http://h:8080/base/v1']],
  ['x-wso2-basePath', `${THREE}x-wso2-basePath: /other/1.0.0\n`, ['Pets', '/other/{version}', 'http://h:8080/base']],
  [
    'x-wso2-production-endpoints',
    `${THREE}x-wso2-production-endpoints: {urls: ["https://a", "https://b"], type: failover}\n`,
    ['Pets', '/base', 'https://a', 'https://b'],
  ],
  [
    'x-wso2-sandbox-endpoints beside production',
    `${THREE}x-wso2-production-endpoints: {urls: ["https://a"]}\nx-wso2-sandbox-endpoints: {urls: ["http://s"]}\n`,
    ['Pets', '/base', 'https://a', 'http://s'],
  ],
]

for (const [what, text, [name, context, ...urls]] of DEPLOYED) {
  test(`the API of a document with ${what}`, t => {
    const { apis, said } = load(t, text)
    assert.deepEqual(said, [])
    const { endpoints, sandbox, ...api } = apis[0]!
    assert.deepEqual([api.name, api.context, api.lifecycle], [name, context, 'PUBLISHED'])
    assert.deepEqual(
      [...endpoints.endpoints, ...sandbox.endpoints].map(({ url }) => url),
      urls,
    )
  })
}

for (const [origins, credentials] of [
  ['accessControlAllowOrigins', 'accessControlAllowCredentials'],
  ['access-control-allow-origins', 'access-control-allow-credentials'],
]) {
  test(`x-wso2-cors of a document with ${origins}`, t => {
    const cors = `{corsConfigurationEnabled: true, ${origins}: ["https://a"], ${credentials}: true}`
    const { apis, said } = load(t, `${THREE}x-wso2-cors: ${cors}\n`)
    assert.deepEqual(said, [])
    assert.deepEqual(apis[0]!.cors, { enabled: true, origins: ['https://a'], credentials: true })
  })
}

const GET = '    get:\n'
const OAUTH = 'components: {securitySchemes: {o: {type: oauth2, flows: {}}, k: {type: apiKey, name: k, in: header}}}\n'
const BOTH = '[Application & Application User]'

/** [added to the operation, added to the document, the operation]. */
const OPERATIONS: readonly (readonly [operation: string, document: string, expected: string])[] = [
  ['', '', `GET /pets ${BOTH} Unlimited`],
  ['x-auth-type: None', '', 'GET /pets [None] Unlimited'],
  ['x-auth-type: application user', '', 'GET /pets [Application User] Unlimited'],
  ['x-auth-type: Any', '', `GET /pets ${BOTH} Unlimited`],
  ['x-throttling-tier: Gold', '', `GET /pets ${BOTH} Gold`],
  ['x-scope: "a, b c"', '', `GET /pets ${BOTH} Unlimited a,b,c`],
  ['x-scope: [a]', '', `GET /pets ${BOTH} Unlimited a`],
  ['security: [{o: [x]}, {o: [y], k: []}]', OAUTH, `GET /pets ${BOTH} Unlimited x,y`],
  ['security: [{k: [z]}]', OAUTH, `GET /pets ${BOTH} Unlimited`],
  ['', `security: [{o: [x]}]\n${OAUTH}`, `GET /pets ${BOTH} Unlimited x`],
  // `security: []` removes scopes only; only the extensions open a resource.
  ['security: []', `security: [{o: [x]}]\n${OAUTH}`, `GET /pets ${BOTH} Unlimited`],
  ['x-wso2-disable-security: true', '', 'GET /pets [None] Unlimited'],
  ['', 'x-wso2-disable-security: true\n', 'GET /pets [None] Unlimited'],
  ['x-wso2-disable-security: false', 'x-wso2-disable-security: true\n', `GET /pets ${BOTH} Unlimited`],
  ['x-auth-type: Application', 'x-wso2-disable-security: true\n', 'GET /pets [Application] Unlimited'],
  // Of the two extensions the nearer one holds.
  ['x-wso2-disable-security: true', 'x-auth-type: Application\n', 'GET /pets [None] Unlimited'],
  ['', 'x-auth-type: Application\nx-wso2-disable-security: true\n', 'GET /pets [Application] Unlimited'],
  ['', 'x-throttling-tier: Gold\n', `GET /pets ${BOTH} Gold`],
  ['x-throttling-tier: Silver', 'x-throttling-tier: Gold\n', `GET /pets ${BOTH} Silver`],
]

for (const [operation, document, expected] of OPERATIONS) {
  test(`an operation with ${JSON.stringify(operation)} in a document with ${JSON.stringify(document)}`, t => {
    const line = operation === '' ? '' : `      ${operation}\n`
    const loaded = load(t, THREE.replace(GET, GET + line) + document)
    assert.deepEqual(loaded.said, [])
    assert.deepEqual(operationsOf(loaded), [expected])
  })
}

test('a path item may be a reference, and every method is read', t => {
  const item = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch'].map(
    method => `      ${method}: {responses: {"200": {description: ok}}, x-auth-type: None}\n`,
  )
  const text = THREE.replace('3.0.3', '3.1.0').replace(/ {4}get:[\s\S]*/, '    $ref: "#/components/pathItems/P"\n')
  const loaded = load(t, `${text}components:\n  pathItems:\n    P:\n${item.join('')}`)
  assert.deepEqual(loaded.said, [])
  assert.deepEqual(
    operationsOf(loaded).map(operation => operation.split(' ')[0]),
    ['GET', 'PUT', 'POST', 'DELETE', 'OPTIONS', 'HEAD', 'PATCH'],
  )
})

const EMPTY = '{responses: {"200": {description: ok}}}'
const WHOLE = 'write a whole URL'
const NO_BACKEND = 'name the backend in x-wso2-production-endpoints: {urls: [https://backend.example]}'

/** [document, the error]. */
const INVALID: readonly (readonly [text: string, said: string])[] = [
  ['a: 1\n', 'a.yaml:1: is no OpenAPI document (begin it with openapi: 3.0.3)'],
  ['type: api\ndata: {a: 1}\n', 'a.yaml:1: is no OpenAPI document (put it into a folder of its own)'],
  [
    THREE.replace('3.0.3', '3.2.0'),
    'a.yaml:1: openapi = "3.2.0": expected OpenAPI 2.0, 3.0.x or 3.1.x (convert it to one of them)',
  ],
  [
    THREE.replace('responses: {"200": {description: ok}}', 'summary: no responses'),
    "a.yaml:9: paths./pets.get: must have required property 'responses' (OpenAPI 3.0) (see the specification, OpenAPI 3.0)",
  ],
  [
    THREE.replace('{description: ok}', '{description: 5}'),
    'a.yaml:10: paths./pets.get.responses.200.description: must be string (OpenAPI 3.0) (see the specification, OpenAPI 3.0)',
  ],
  [
    THREE.replace('{description: ok}', '{$ref: "https://h/r.yaml#/R"}'),
    'a.yaml:10: paths./pets.get.responses.200.$ref = "https://h/r.yaml#/R": refers to another file (copy the referenced object into the document)',
  ],
  [
    THREE.replace('{description: ok}', '{$ref: "../../etc/passwd"}'),
    'a.yaml:10: paths./pets.get.responses.200.$ref = "../../etc/passwd": refers to another file (copy the referenced object into the document)',
  ],
  [
    THREE.replace('{description: ok}', '{$ref: "#/components/responses/R"}'),
    'a.yaml:10: paths./pets.get.responses.200.$ref = "#/components/responses/R": refers to nothing (name an object of the document)',
  ],
  [
    THREE.replace('http://h:8080/base', '/base'),
    `a.yaml:6: servers[0].url = "/base": is relative and names no host (${WHOLE}, or ${NO_BACKEND})`,
  ],
  [
    THREE.replace('servers:\n  - url: http://h:8080/base\n', ''),
    `a.yaml:1: servers: there is no backend (${NO_BACKEND})`,
  ],
  [TWO.replace('host: h:8080\n', ''), `a.yaml:1: host: there is no backend (${NO_BACKEND})`],
  [
    THREE.replace(/paths:[\s\S]*/, 'paths: {}\n'),
    'a.yaml:7: paths: there is no operation in it (add one; /* is every path)',
  ],
  [
    THREE.replace('  /pets:', '  /pets/../x:'),
    'a.yaml:8: paths./pets/../x = "/pets/../x": must not hold dot segments (write the path they lead to)',
  ],
  [
    THREE.replace(GET, '    trace:\n'),
    'a.yaml:9: paths./pets.trace = "trace": expected GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS, * (remove it: the gateway never forwards TRACE)',
  ],
  [
    `${THREE}  /{a}: {get: ${EMPTY}}\n\n  /{b}: {get: ${EMPTY}}\n`,
    'a.yaml:13: paths./{b} = "/{b}": GET /{a} is declared already (variable names make no difference; remove one)',
  ],
  [
    THREE.replace(GET, `${GET}      x-auth-type: Some\n`),
    'a.yaml:10: paths./pets.get.x-auth-type = "Some": expected None, Application, Application User or Application & Application User (leave it out for the last)',
  ],
  [
    THREE.replace('1.0.0', '1/0'),
    'a.yaml:4: info.version = "1/0": must be one path segment of letters, digits and "-._~" (for example 1.0.0)',
  ],
  [
    `${THREE}x-wso2-basePath: a\n`,
    'a.yaml:11: x-wso2-basePath = "a": must start with "/" (write /a, or set x-wso2-basePath)',
  ],
  [
    THREE.replace('http://h:8080', 'http://u:geheim@h'),
    'a.yaml:6: servers[0].url = "http://(set)@h/base": must not hold a user or password (remove what stands before the "@")',
  ],
  [
    `${THREE}x-wso2-production-endpoints: {urls: []}\n`,
    'a.yaml:11: x-wso2-production-endpoints.urls: expected a list of at least one URL (write urls: [https://backend.example])',
  ],
]

for (const [text, said] of INVALID) {
  test(`invalid: ${said.slice(0, 100)}`, t => {
    const loaded = load(t, text)
    assert.deepEqual([loaded.apis, loaded.said], [[], [said]])
  })
}

/** [document, the warning]. */
const WARNED: readonly (readonly [text: string, said: string])[] = [
  [
    THREE.replace(GET, `${GET}      servers: [{url: "http://other"}]\n`),
    `a.yaml:10: paths./pets.get.servers: has no effect (every operation goes to the endpoints of the API)`,
  ],
]

for (const [text, said] of WARNED) {
  test(`warning: ${said}`, t => {
    const loaded = load(t, text)
    assert.deepEqual([loaded.apis.length, loaded.said], [1, [said]])
  })
}

const deep = (levels: number): string => `${'{x: '.repeat(levels)}1${'}'.repeat(levels)}`
const bomb = Array.from({ length: 12 }, (_, i) => `  b${i + 1}: &b${i + 1} [${Array(12).fill(`*b${i}`).join()}]`)

/** Hostile documents and their errors. */
const HOSTILE: readonly (readonly [what: string, text: string, said: RegExp])[] = [
  ['deep nesting', `${THREE}x-a: ${deep(5000)}\n`, /not valid YAML: nesting exceeded maxDepth/],
  ['a list in itself', `${THREE}x-a: &a [*a]\n`, /a\.yaml:1: is nested more than 100 deep/],
  [
    'aliases of aliases',
    `${THREE}x-a:\n  b0: &b0 [1,2]\n${bomb.join('\n')}\n`,
    /a\.yaml:1: holds more than 4000000 values/,
  ],
  ['no text', '\u0000\u0001', /a\.yaml:1:\d+: not valid YAML/],
  [
    'a reference to itself',
    THREE.replace(/ {4}get:[\s\S]*/, '    $ref: "#/paths/~1pets"\n'),
    /paths: there is no operation in it/,
  ],
  ['an escape in a reference', THREE.replace('{description: ok}', '{$ref: "#/%"}'), /refers to nothing/],
  ['a prototype', `${THREE}__proto__: {a: 1}\nconstructor: {b: 1}\n`, /must NOT have additional properties/],
]

for (const [what, text, said] of HOSTILE) {
  test(`a document with ${what} is refused quickly`, t => {
    const loaded = load(t, text)
    assert.match(loaded.said.join('\n'), said)
  })
}

test('names of the prototype of objects have no special meaning', t => {
  const { said, apis } = load(
    t,
    THREE.replace('/pets', '/constructor').replace(GET, `${GET}      x-auth-type: constructor\n`),
  )
  assert.equal(apis.length, 0)
  assert.match(said.join(), /x-auth-type = "constructor": expected None/)
})

const PATHS = { '/a': { get: { responses: { 200: { description: 'ok' } } } } }

test('one broken document stops no other, and only .yaml, .yml and .json files are read', t => {
  const home = temporaryHome(t, {
    'apis/a.yaml': 'openapi: 3.0.0\n',
    'apis/b.yml': THREE,
    'apis/c.json': JSON.stringify({ swagger: '2.0', info: { title: 'C', version: '1' }, host: 'h', paths: PATHS }),
    'apis/d.txt': THREE,
    'apis/.e.yaml': THREE,
  })
  const { apis, errors } = new ApiProjects(home).load()
  assert.deepEqual(
    apis.map(({ name }) => name),
    ['Pets', 'C'],
  )
  assert.match(errors.map(formatDiagnostic).join('\n'), /^[^\n]*a\.yaml:1: [^\n]*$/m)
})
