/** Projects of a home: what is valid, which error each invalid value gives, and which APIs clash. */
import { PLAIN_DEFINITION } from '../harness/api-plan.ts'
import assert from 'node:assert/strict'
import { resolve } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type LoadedApis, ApiProjects } from '../../src/apis/api-projects.ts'
import { apiPaths } from '../../src/apis/api-paths.ts'
import { LONE_ENDPOINT_SETTINGS } from '../../src/apis/api-definition.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { temporaryHome } from '../config/temporary-home.ts'

const GOOD = `type: api
version: v4.2.0
data:
  name: Orders
  context: /orders
  version: 1.0.0
  isDefaultVersion: true
  provider: admin
  endpointConfig:
    endpoint_type: http
    sandbox_endpoints:
      url: https://sandbox.example
    production_endpoints:
      url: http://backend.example:8080/base
  operations:
    - target: /*
      verb: GET
`

function loadApiDefinitions(home: string): LoadedApis {
  return new ApiProjects(home).load()
}

/** One endpoint with the settings of an only endpoint: tried again soon and often (D43). */
function single(url: string): object {
  const endpoints = [{ url, settings: LONE_ENDPOINT_SETTINGS }]
  return { kind: 'single', algorithm: 'round_robin', failsOver: false, endpoints }
}

/** The errors of the only project, `A`, without the folder of the projects. */
function errorsOf(t: TestContext, yaml: string): readonly string[] {
  const home = temporaryHome(t, { 'apis/A/api.yaml': yaml })
  const { apis, errors } = loadApiDefinitions(home)
  assert.equal(apis.length, errors.length === 0 ? 1 : 0)
  return errors.map(diagnostic => formatDiagnostic(diagnostic).replaceAll(`${home}/apis/`, ''))
}

test('the sample API is deployed', () => {
  const { apis, errors, warnings } = loadApiDefinitions(resolve(import.meta.dirname, '../../conf'))
  const samples = apis.filter(({ name }) => name === 'Sample')
  assert.deepEqual(
    { samples, errors, warnings },
    {
      samples: [
        {
          name: 'Sample',
          context: '/sample',
          version: '1.0.0',
          isDefaultVersion: true,
          ...PLAIN_DEFINITION,
          endpoints: single('http://127.0.0.1:8288'),
        },
      ],
      errors: [],
      warnings: [],
    },
  )
})

test('an exported project is deployed', t => {
  const { apis, errors } = loadApiDefinitions(temporaryHome(t, { 'apis/Orders/api.yaml': GOOD }))
  assert.deepEqual(errors, [])
  assert.deepEqual(apis, [
    {
      name: 'Orders',
      context: '/orders',
      version: '1.0.0',
      isDefaultVersion: true,
      ...PLAIN_DEFINITION,
      access: { ...PLAIN_DEFINITION.access, provider: 'admin' },
      resources: [
        { template: '/*', verb: 'GET', authType: 'Application & Application User', tier: 'Unlimited', scopes: [] },
      ],
      endpoints: single('http://backend.example:8080/base'),
      sandbox: single('https://sandbox.example'),
    },
  ])
})

/** [replaced text, new text, field, its value]. */
const VALID: readonly (readonly [from: string, to: string, field: string, value: unknown])[] = [
  ['version: 1.0.0', 'version: 1.10', 'version', '1.10'],
  ['version: 1.0.0', 'version: "2"', 'version', '2'],
  ['version: 1.0.0', 'version: 0x10', 'version', '0x10'],
  ['version: 1.0.0', 'version: v1-beta_2~x', 'version', 'v1-beta_2~x'],
  ['  isDefaultVersion: true\n', '', 'isDefaultVersion', false],
  ['isDefaultVersion: true', 'isDefaultVersion: "true"', 'isDefaultVersion', true],
  ['isDefaultVersion: true', 'isDefaultVersion: "false"', 'isDefaultVersion', false],
  ['context: /orders', 'context: /a/{version}/b', 'context', '/a/{version}/b'],
  ['context: /orders', 'context: &c /a', 'context', '/a'],
  ['http://backend.example:8080/base', 'http://[::1]:80/', 'endpoints', single('http://[::1]:80/')],
  ['http://backend.example:8080/base', 'https://h', 'endpoints', single('https://h')],
  ['http://backend.example:8080/base', 'wss://h/a', 'endpoints', single('wss://h/a')],
  ['endpoint_type: http', 'endpoint_type: address', 'endpoints', single('http://backend.example:8080/base')],
  ['endpoint_type: http', 'endpoint_type: ws', 'endpoints', single('http://backend.example:8080/base')],
  ['isDefaultVersion: true', 'isDefaultVersion: "True"', 'isDefaultVersion', true],
  ['http://backend.example:8080/base', 'HTTP://h/a%20b/', 'endpoints', single('HTTP://h/a%20b/')],
]

for (const [from, to, field, value] of VALID) {
  test(`valid: ${JSON.stringify(to)}`, t => {
    const { apis, errors } = loadApiDefinitions(temporaryHome(t, { 'apis/A/api.yaml': GOOD.replace(from, to) }))
    assert.deepEqual(errors, [])
    assert.deepEqual((apis[0] as unknown as Readonly<Record<string, unknown>>)[field], value)
  })
}

/** [replaced text, new text, the only error]. */
const INVALID: readonly (readonly [from: string, to: string, error: string])[] = [
  [
    'type: api\n',
    'type: api_product\n',
    'A/api.yaml:1: type = "api_product": expected api (other project types are not supported yet)',
  ],
  ['type: api\n', '', 'A/api.yaml:1: type: is missing (add it)'],
  [
    'version: v4.2.0',
    'version: v3',
    'A/api.yaml:2: version = "v3": expected v4, v4.1 and so on (export the project again from a 4.x release)',
  ],
  ['  name: Orders\n', '', 'A/api.yaml:3: data.name: is missing (add it)'],
  ['name: Orders', 'name: ""', 'A/api.yaml:4: data.name = "": expected a name (give the API one)'],
  [
    'name: Orders',
    `name: ${'n'.repeat(256)}`,
    `A/api.yaml:4: data.name = "${'n'.repeat(59)}...: expected at most 255 characters (give it a shorter name)`,
  ],
  ['name: Orders', 'name: [a]', 'A/api.yaml:4: data.name: expected text (write one value)'],
  ['name: Orders', 'name:', 'A/api.yaml:4: data.name: is missing (add it)'],
  ['context: /orders', 'context: orders', 'A/api.yaml:5: data.context = "orders": must start with "/" (write /orders)'],
  ['context: /orders', 'context: /a//', 'A/api.yaml:5: data.context = "/a//": must not end with "/" (write /a)'],
  ['context: /orders', 'context: //a///b', 'A/api.yaml:5: data.context = "//a///b": must not hold "//" (write /a/b)'],
  [
    'context: /orders',
    'context: /a/%2e',
    'A/api.yaml:5: data.context = "/a/%2e": must not hold percent escapes (use letters that need none)',
  ],
  [
    'context: /orders',
    'context: /a/../b',
    'A/api.yaml:5: data.context = "/a/../b": must not hold dot segments (write the path they lead to)',
  ],
  [
    'context: /orders',
    'context: /./b',
    'A/api.yaml:5: data.context = "/./b": must not hold dot segments (write the path they lead to)',
  ],
  [
    'context: /orders',
    'context: "/a b"',
    'A/api.yaml:5: data.context = "/a b": the segment "a b" holds a character that is not allowed (use letters, digits and -._~!$&\'()*+,=:@, or the segments {version} and {name})',
  ],
  [
    'context: /orders',
    'context: /v{version}',
    'A/api.yaml:5: data.context = "/v{version}": the segment "v{version}" holds a character that is not allowed (use letters, digits and -._~!$&\'()*+,=:@, or the segments {version} and {name})',
  ],
  [
    'context: /orders',
    'context: /{version}/{version}',
    'A/api.yaml:5: data.context = "/{version}/{version}": must hold {version} only once (remove the others)',
  ],
  // The limit of the router, which matches no longer path.
  [
    'context: /orders',
    `context: ${'/a'.repeat(128)}`,
    `A/api.yaml:5: data.context = "${'/a'.repeat(29)}/...: must have at most 127 segments (shorten it)`,
  ],
  [
    'context: /orders',
    `context: /${'c'.repeat(2048)}`,
    `A/api.yaml:5: data.context = "/${'c'.repeat(58)}...: must have at most 2048 characters (shorten it)`,
  ],
  [
    'version: 1.0.0',
    'version: 1/0',
    'A/api.yaml:6: data.version = "1/0": must be one path segment of letters, digits and "-._~" (for example 1.0.0)',
  ],
  [
    'version: 1.0.0',
    'version: ".."',
    'A/api.yaml:6: data.version = "..": must be one path segment of letters, digits and "-._~" (for example 1.0.0)',
  ],
  [
    'isDefaultVersion: true',
    'isDefaultVersion: yes',
    'A/api.yaml:7: data.isDefaultVersion = "yes": expected true or false (leave it out for false)',
  ],
  [
    'endpoint_type: http',
    'endpoint_type: aws',
    'A/api.yaml:10: data.endpointConfig.endpoint_type = "aws": expected http, address, ws, failover, load_balance, default, sequence_backend, mounted (other endpoint types are not supported yet)',
  ],
  ['    endpoint_type: http\n', '', 'A/api.yaml:9: data.endpointConfig.endpoint_type: is missing (add it)'],
  [
    'url: http://backend.example:8080/base\n',
    'uri: http://backend.example:8080/base\n',
    'A/api.yaml:13: data.endpointConfig.production_endpoints.url: is missing (add it)',
  ],
  [
    '\n      url: http://backend.example:8080/base',
    '\n      - url: http://h',
    'A/api.yaml:13: data.endpointConfig.production_endpoints: expected one endpoint (write endpoint_type: load_balance or failover)',
  ],
  [
    'url: http://backend.example:8080/base',
    'url: 5',
    'A/api.yaml:14: data.endpointConfig.production_endpoints.url = "5": must be an http, https, ws or wss URL (for example http://backend.example:8080/base)',
  ],
]

for (const [from, to, error] of INVALID) {
  test(`invalid: ${JSON.stringify(to === '' ? `no ${from}` : to)}`, t => {
    assert.ok(GOOD.includes(from))
    assert.deepEqual(errorsOf(t, GOOD.replace(from, to)), [error])
  })
}

const NO_HOST = 'must name a host, and a port from 1 to 65535 if any (for example http://backend.example:8080/base)'

const IN_SEQUENCE =
  '(write endpoint_type: default, and <send> with <http uri-template="…"> in a sequence of the request flow)'
/** [URL, the error, how the error shows the URL if it differs]. */
const URLS: readonly (readonly [url: string, error: string, shown?: string])[] = [
  ['ftp://h/', 'must be an http, https, ws or wss URL (for example http://backend.example:8080/base)'],
  ['h:80', 'must be an http, https, ws or wss URL (for example http://backend.example:8080/base)'],
  ['http:/h', 'must be an http, https, ws or wss URL (for example http://backend.example:8080/base)'],
  ['http://u:geheim@h/', 'must not hold a user or password (remove what stands before the "@")', 'http://(set)@h/'],
  ['wss://u:geheim@h/', 'must not hold a user or password (remove what stands before the "@")', 'wss://(set)@h/'],
  ['http://h/{+uri.var.id}/b', `has a variable that endpoints of APIs do not take ${IN_SEQUENCE}`],
  ['http://h/a#b', 'must not hold a fragment (remove the "#" and what follows)'],
  [
    'http://h/a?key=geheim',
    'must not hold a query (the query of each request is passed on unchanged)',
    'http://h/a?(set)',
  ],
  ['http://', NO_HOST],
  ['http:///a', NO_HOST],
  ['http://:80/', NO_HOST],
  ['http://h:0/', NO_HOST],
  ['http://h:65536/', NO_HOST],
  ['http://h:/', NO_HOST],
  ['http://h:8o/', NO_HOST],
  ['http://a b/', NO_HOST],
  ['http://h/\\ta', NO_HOST],
  ['http://[::1/', NO_HOST],
  ['http://{host}:80/', NO_HOST],
  ['http://$HOST/a', NO_HOST],
  ['http://a"b/', NO_HOST],
  ['http://a;b/', NO_HOST],
  ['http://h/a/../b', 'its path would be read differently by different parties (write http://h/b)'],
  ['http://h/a/%2e%2E/b', 'its path would be read differently by different parties (write http://h/b)'],
  ['http://h/é', 'its path would be read differently by different parties (write http://h/%C3%A9)'],
]

for (const [url, error, shown] of URLS) {
  test(`invalid as an endpoint: ${url}`, t => {
    const yaml = GOOD.replace('http://backend.example:8080/base', JSON.stringify(url))
    const where = `A/api.yaml:14: data.endpointConfig.production_endpoints.url = ${JSON.stringify(shown ?? url)}`
    assert.deepEqual(errorsOf(t, yaml), [`${where}: ${error}`])
  })
}

test('invalid as an endpoint: a URL that is longer than 2048 characters', t => {
  const [error = ''] = errorsOf(t, GOOD.replace('8080/base', `8080/${'a'.repeat(2048)}`))
  assert.match(error, /^A\/api\.yaml:14: .*: must be at most 2048 characters long \(shorten its path\)$/)
})

const BROKEN: readonly (readonly [name: string, yaml: string, error: RegExp])[] = [
  ['no YAML', 'type: api\ndata: [\n', /^A\/api\.yaml:3:1: not valid YAML: /],
  [
    'a key twice',
    'type: api\ntype: api\n',
    /^A\/api\.yaml:2:1: not valid YAML: duplicated mapping key \(keep one of them\)$/,
  ],
  [
    'a piece of a secret',
    'password: |geheim\n  x\n',
    /^A\/api\.yaml:1:12: not valid YAML: a line break is expected \(/,
  ],
  ['two documents', 'type: api\n---\ntype: api\n', /^A\/api\.yaml:3:1: not valid YAML: there is a second/],
  ['an unknown alias', 'type: *nobody\n', /^A\/api\.yaml:1/],
  ['a list', '- a\n', /^A\/api\.yaml:1: type: is missing/],
  ['nothing', '', /^A\/api\.yaml:1: type: is missing/],
]

for (const [name, yaml, error] of BROKEN) {
  test(`a broken file: ${name}`, t => {
    const errors = errorsOf(t, yaml)
    assert.match(errors[0]!, error)
    assert.ok(!errors.join('\n').includes('geheim'))
  })
}

test('every error of a file is reported, and one broken API stops no other', t => {
  const bad = GOOD.replace('name: Orders', 'name: ""')
    .replace('context: /orders', 'context: x')
    .replace('http://b', 'ftp://b')
  const home = temporaryHome(t, {
    'apis/A/api.yaml': bad,
    'apis/B/api.yaml': GOOD,
    'apis/C/readme.txt': '',
    'apis/D.zip': '',
    'apis/.hidden/x': '',
    'apis/readme.txt': '',
  })
  const { apis, errors } = loadApiDefinitions(home)
  assert.deepEqual(
    apis.map(api => api.name),
    ['Orders'],
  )
  assert.deepEqual(
    errors.map(diagnostic => diagnostic.where.replace(`${home}/apis/`, '')),
    ['A/api.yaml:4', 'A/api.yaml:5', 'A/api.yaml:14', 'C', 'D.zip'],
  )
})

test('a home without APIs has none', t => {
  const { apis, errors, warnings } = loadApiDefinitions(temporaryHome(t, {}))
  assert.deepEqual([apis, errors, warnings], [[], [], []])
})

const api = (context: string, version: string, isDefault: boolean): string =>
  GOOD.replace('/orders', context).replace('1.0.0', version).replace('true', String(isDefault))

/** Two APIs that share a path, and that path. */
const CLASHES: readonly (readonly [first: string, second: string, path: string])[] = [
  [api('/a', '1', false), api('/a', '1', false), '/a/1'],
  [api('/a', '1', true), api('/a', '2', true), '/a'],
  [api('/a', '1', false), api('/a/1', '2', true), '/a/1'],
  [api('/a/{version}', '1', false), api('/a', '1', false), '/a/1'],
]

test('two APIs of one name and version give a warning, because subscriptions are valid for both', t => {
  const files = { 'apis/A/api.yaml': api('/a', '1', false), 'apis/B/api.yaml': api('/b', '1', false) }
  const home = temporaryHome(t, { ...files, 'apis/C/api.yaml': api('/c', '2', false) })
  const { apis, errors, warnings } = loadApiDefinitions(home)
  assert.deepEqual([apis.length, errors], [3, []])
  const shared = `${home}/apis/A/api.yaml:5 is Orders:1 as well, and subscriptions to one are valid for both`
  assert.deepEqual(
    warnings.map(({ where, expected }) => [where, expected]),
    [[`${home}/apis/B/api.yaml:5`, shared]],
  )
})

for (const [first, second, path] of CLASHES) {
  test(`of two APIs under ${path} the second is not deployed`, t => {
    const home = temporaryHome(t, { 'apis/A/api.yaml': first, 'apis/B/api.yaml': second })
    const { apis, errors } = loadApiDefinitions(home)
    assert.equal(apis.length, 1)
    assert.equal(errors.length, 1)
    const { where, expected } = errors[0]!
    assert.equal(where, `${home}/apis/B/api.yaml:5`)
    assert.equal(expected, `${path} is already a path of Orders 1 (${home}/apis/A/api.yaml:5)`)
  })
}

test('two versions of one context are both deployed', t => {
  const home = temporaryHome(t, { 'apis/A/api.yaml': api('/a', '1', false), 'apis/B/api.yaml': api('/a', '2', true) })
  assert.equal(loadApiDefinitions(home).apis.length, 2)
})

const PATHS: readonly (readonly [context: string, version: string, isDefault: boolean, ...paths: readonly string[]])[] =
  [
    ['/a', '1', false, '/a/1'],
    ['/a', '1', true, '/a/1', '/a'],
    ['/a/{version}', '1', true, '/a/1', '/a'],
    ['/a/{version}/b', '1', true, '/a/1/b', '/a/b'],
    ['/{version}/b', '1.0', false, '/1.0/b'],
    ['/', '1', false, '/1'],
    ['/', '1', true, '/1', '/'],
    ['/{version}', '1', true, '/1', '/'],
  ]

for (const [context, version, isDefault, ...paths] of PATHS) {
  const title = `${context} in version ${version}${isDefault ? ', the default,' : ''}`
  test(`${title} is reached under ${paths.join(' and ')}`, () => {
    assert.deepEqual(apiPaths(context, version, isDefault), paths)
  })
}
