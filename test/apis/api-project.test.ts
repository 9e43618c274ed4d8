/** Exported projects: operations, CORS, lifecycle, transports, documents, and deployment to gateways. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { ApiDefinition } from '../../src/apis/api-definition.ts'
import { type LoadedApis, ApiProjects } from '../../src/apis/api-projects.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { ALL_ENVIRONMENTS, type GatewayEnvironment } from '../../src/apis/gateway-environments.ts'
import { API_OF_BOTH_KINDS as HEAD } from './api-text.ts'
import { temporaryHome } from '../config/temporary-home.ts'

type Files = Readonly<Record<string, string>>

interface Loaded extends LoadedApis {
  /** Errors and warnings. */
  readonly said: readonly string[]
}

function load(t: TestContext, files: Files, place: GatewayEnvironment = ALL_ENVIRONMENTS, isThorough = false): Loaded {
  const inProject = Object.entries(files).map(([name, text]) => [`apis/A/${name}`, text])
  const home = temporaryHome(t, Object.fromEntries(inProject))
  const loaded = new ApiProjects(home, isThorough).load(undefined, undefined, place)
  const told = [...loaded.errors, ...loaded.warnings, ...loaded.skipped]
  return { ...loaded, said: told.map(it => formatDiagnostic(it).replaceAll(`${home}/apis/A/`, '')) }
}

function operationsOf({ apis }: LoadedApis): readonly string[] {
  return apis.flatMap(({ resources }) => resources.map(({ verb, template }) => `${verb} ${template}`))
}

/** [added to api.yaml, field, its value]. */
const FIELDS: readonly (readonly [yaml: string, field: keyof ApiDefinition, value: unknown])[] = [
  ['', 'lifecycle', 'PUBLISHED'],
  ['  lifeCycleStatus: Published', 'lifecycle', 'PUBLISHED'],
  ['  lifeCycleStatus: BLOCKED', 'lifecycle', 'BLOCKED'],
  ['  lifeCycleStatus: prototyped', 'lifecycle', 'PROTOTYPED'],
  ['  lifeCycleStatus: CREATED', 'lifecycle', 'CREATED'],
  ['  lifeCycleStatus: Deprecated', 'lifecycle', 'DEPRECATED'],
  ['  lifeCycleStatus: RETIRED', 'lifecycle', 'RETIRED'],
  ['', 'transports', ['http', 'https']],
  ['  transport: [https]', 'transports', ['https']],
  ['  transport: "https,http"', 'transports', ['http', 'https']],
  ['  transport: []', 'transports', ['http', 'https']],
  ['', 'escapedSlashes', 'refuse'],
  ['  escapedSlashes: pass', 'escapedSlashes', 'pass'],
  ['  escapedSlashes: Decode', 'escapedSlashes', 'decode'],
  ['', 'isAi', false],
  ['  subtypeConfiguration: {subtype: DEFAULT, _configuration: null}', 'isAi', false],
  ['  subtypeConfiguration: {subtype: AIAPI}', 'isAi', true],
  ['', 'cors', null],
  ['  corsConfiguration: {corsConfigurationEnabled: false, accessControlAllowOrigins: ["*"]}', 'cors', null],
  ['  corsConfiguration: {corsConfigurationEnabled: true}', 'cors', { enabled: true }],
  [
    '  corsConfiguration: {corsConfigurationEnabled: "True", accessControlAllowOrigins: ["*"], accessControlMaxAge: -1}',
    'cors',
    { enabled: true, origins: ['*'], maxAgeS: -1 },
  ],
]

for (const [yaml, field, value] of FIELDS) {
  test(`${field} of a project with ${JSON.stringify(yaml.trim())}`, t => {
    const { apis, said } = load(t, { 'api.yaml': `${HEAD}${yaml}\n` })
    assert.deepEqual(said, [])
    assert.deepEqual(apis[0]![field], value)
  })
}

test('escapedSlashes comes from the document if the project does not say it', t => {
  const document = `${DOCUMENT}x-sluice-escaped-slashes: pass\n`
  const said = (api: string) => load(t, { 'api.yaml': api, [SWAGGER]: document }).apis[0]!.escapedSlashes
  assert.deepEqual([said(WITH_X), said(`${WITH_X}  escapedSlashes: refuse\n`)], ['pass', 'refuse'])
  const wrong = load(t, { 'api.yaml': `${HEAD}  escapedSlashes: keep\n` })
  assert.deepEqual(wrong.said, [
    'api.yaml:11: data.escapedSlashes = "keep": expected refuse, pass, decode (leave it out for refuse)',
  ])
})

test('of two APIs at the root one is deployed', t => {
  const root = HEAD.replace('/a', '/').replace('version: "1"', 'version: "1"\n  isDefaultVersion: true')
  const files = { 'apis/A/api.yaml': root, 'apis/B/api.yaml': root.replaceAll('"1"', '"2"') }
  const { apis, errors } = new ApiProjects(temporaryHome(t, files)).load()
  assert.deepEqual([apis.map(({ version }) => version), errors.length], [['1'], 1])
  assert.match(formatDiagnostic(errors[0]!), /data\.context = "\/": \/ is already a path of A 1/)
})

test('api.json is read like api.yaml', t => {
  const data = { name: 'J', context: '/j', version: '1', endpointConfig: { endpoint_type: 'http' } }
  const production = { production_endpoints: { url: 'http://p' } }
  const whole = { ...data, endpointConfig: { ...data.endpointConfig, ...production } }
  const { apis, said } = load(t, {
    'api.json': JSON.stringify({ type: 'api', version: 'v4.3.0', data: whole }, null, 1),
  })
  assert.deepEqual([said, apis[0]!.name], [[], 'J'])
})

const operation = (target: string, verb = 'GET'): string => `    - {target: "${target}", verb: ${verb}}\n`

/** Invalid operations and their errors. */
const INVALID: readonly (readonly [yaml: string, said: string])[] = [
  [
    operation('/{a}') + operation('/{b}'),
    'api.yaml:13: data.operations[1].target = "/{b}": GET /{a} is declared already (variable names make no difference; remove one)',
  ],
  [
    operation('/%7Ea') + operation('/~a', 'get'),
    'api.yaml:13: data.operations[1].target = "/~a": GET /%7Ea is declared already (variable names make no difference; remove one)',
  ],
  [operation('a'), 'api.yaml:12: data.operations[0].target = "a": must start with "/" (write /a)'],
  [
    operation('/a//b'),
    'api.yaml:12: data.operations[0].target = "/a//b": must not hold "//" (remove one of the slashes)',
  ],
  [
    operation('/a', 'TRACE'),
    'api.yaml:12: data.operations[0].verb = "TRACE": expected GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS, * (remove it: the gateway never forwards TRACE)',
  ],
  ['    - {verb: GET}\n', 'api.yaml:12: data.operations[0].target: is missing (add it)'],
  [
    '    - {target: /a, verb: GET, authType: Somebody}\n',
    'api.yaml:12: data.operations[0].authType = "Somebody": expected None, Application, Application User or Application & Application User (leave it out for the last)',
  ],
]

for (const [yaml, said] of INVALID) {
  test(`an invalid operation: ${said.slice(0, 90)}`, t => {
    const loaded = load(t, { 'api.yaml': `${HEAD}  operations:\n${yaml}` })
    assert.deepEqual([loaded.apis, loaded.said], [[], [said]])
  })
}

/** Templates, and whether they are valid. */
const TEMPLATES: readonly (readonly [template: string, isValid: boolean])[] = [
  ['/', true],
  ['/*', true],
  ['/menu/*', true],
  ['/files/{name}.{ext}', true],
  ['/v{major}/x', true],
  ['/caf\u00e9', true],
  ['/a%20b', true],
  ['/a?b=c', false],
  ['/a;b', false],
  ['/a\\\\b', false],
  ['/a/./b', false],
  ['/a/../b', false],
  ['/a/%2e%2e/b', false],
  ['/a%2fb', false],
  ['/a%5cb', false],
  ['/a%zz', false],
  ['/a/*/b', false],
  ['/a*', false],
  ['/{a}{b}', false],
  ['/{a', false],
  ['/a}', false],
  ['/{}', false],
]

for (const [template, isValid] of TEMPLATES) {
  test(`the template ${template} is ${isValid ? 'valid' : 'invalid'}`, t => {
    const { apis, errors } = load(t, { 'api.yaml': `${HEAD}  operations:\n${operation(template)}` })
    assert.deepEqual([apis.length, errors.length], isValid ? [1, 0] : [0, 1])
  })
}

test('templates of one shape keep the spelling of the first', t => {
  const loaded = load(t, { 'api.yaml': `${HEAD}  operations:\n${operation('/{a}')}${operation('/{b}', 'POST')}` })
  assert.deepEqual(operationsOf(loaded), ['GET /{a}', 'POST /{a}'])
})

test('more than 20,000 operations are one error, found quickly', t => {
  const many = Array.from({ length: 60_000 }, (_, i) => operation(`/${i}`)).join('')
  const { said } = load(t, { 'api.yaml': `${HEAD}  operations:\n${many}` })
  const at = 'data.operations[20000].target'
  assert.deepEqual(said, [
    `api.yaml:20012: ${at}: is more than 20000 operations (use a template with variables, or /*)`,
  ])
})

test('WebSocket topics are no operations, with one warning for all', t => {
  const yaml = operation('/*', 'SUBSCRIBE') + operation('/*', 'PUBLISH')
  const { apis, said } = load(t, { 'api.yaml': `${HEAD}  operations:\n${yaml}` })
  assert.deepEqual(apis[0]!.resources, [])
  assert.equal(said.length, 1)
})

const DOCUMENT = `openapi: 3.0.3
info: {title: A, version: "1"}
paths:
  /x:
    get: {responses: {"200": {description: ok}}}
`
const WITH_X = `${HEAD}  operations:\n${operation('/x')}`
const SWAGGER = 'Definitions/swagger.yaml'

/** [what, api.yaml, document, operations, diagnostics of a start, further diagnostics of a thorough reading]. */
const BESIDE: readonly (readonly [
  what: string,
  api: string,
  document: string,
  operations: readonly string[],
  said: readonly RegExp[],
  more?: RegExp,
])[] = [
  ['the same', WITH_X, DOCUMENT, ['GET /x'], []],
  ['operations of the document alone', HEAD, DOCUMENT, ['GET /x'], []],
  [
    'further operations in the document',
    WITH_X,
    `${DOCUMENT}  /y:\n    get: {responses: {"200": {description: ok}}}\n`,
    ['GET /x'],
    [
      /^Definitions\/swagger\.yaml:3: paths: GET \/y: not among the operations of the project \(they are not deployed\)$/,
    ],
  ],
  [
    'further operations in the project',
    WITH_X + operation('/y'),
    DOCUMENT,
    ['GET /x', 'GET /y'],
    [/GET \/y: not in the document/],
  ],
  ['every path in the project', WITH_X.replace('/x', '/*'), DOCUMENT, ['GET /*'], [/GET \/\*: not in the document/]],
  [
    'a document that violates the schema and has no effect',
    WITH_X,
    DOCUMENT.replace('description', 'summary'),
    ['GET /x'],
    [],
    /must have required property 'description'/,
  ],
  [
    'a document that violates the schema and decides',
    HEAD,
    DOCUMENT.replace('description', 'summary'),
    [],
    [/must have required property 'description'/],
  ],
  ['a document that cannot be read', WITH_X, 'openapi: [', [], [/swagger\.yaml:1:11: not valid YAML/]],
  [
    'a document that refers to another file',
    WITH_X,
    `${DOCUMENT}x: {$ref: "http://h"}\n`,
    [],
    [/refers to another file/],
  ],
]

for (const [what, api, document, operations, said, more] of BESIDE) {
  test(`a document beside api.yaml: ${what}`, t => {
    const files = { 'api.yaml': api, [SWAGGER]: document }
    const loaded = load(t, files)
    assert.deepEqual(operationsOf(loaded), operations)
    assert.equal(loaded.said.length, said.length, loaded.said.join('\n'))
    for (const [i, pattern] of said.entries()) assert.match(loaded.said[i]!, pattern)
    const thorough = load(t, files, ALL_ENVIRONMENTS, true)
    if (more === undefined) assert.deepEqual(thorough.said, loaded.said)
    else assert.match(thorough.said.join('\n'), more)
    assert.equal(thorough.apis.length, loaded.apis.length)
  })
}

test('endpoints and CORS come from the document if the project has none', t => {
  const api = HEAD.replace(/ {2}endpointConfig[\s\S]*/, '')
  const cors = 'x-wso2-cors: {corsConfigurationEnabled: true, access-control-allow-origins: ["*"]}'
  const document = `${DOCUMENT}x-wso2-production-endpoints: {urls: ["http://d"]}\n${cors}\n`
  const { apis, said } = load(t, { 'api.yaml': api, [SWAGGER]: document })
  assert.deepEqual(said, [])
  assert.equal(apis[0]!.endpoints.endpoints[0]!.url, 'http://d')
  assert.deepEqual(apis[0]!.cors, { enabled: true, origins: ['*'] })
})

const deployed = (...rows: readonly string[]): string =>
  `type: deployment_environments\nversion: v4.3.0\ndata:\n${rows.map(row => `  - {${row}}\n`).join('')}`
const here = (changes: Partial<GatewayEnvironment> = {}): GatewayEnvironment => ({
  ...ALL_ENVIRONMENTS,
  labels: new Set(['Default', 'Europe']),
  ...changes,
})
const ONE = deployed('deploymentEnvironment: Default, deploymentVhost: a.example')
/** The last two are addresses of one virtual host. */
const HOSTS: ReadonlyMap<string, readonly string[]> = new Map([
  ['a.example', ['a.example']],
  ['b.example', ['b.example']],
  ['c.example', ['c.example', 'plain.c.example']],
  ['plain.c.example', ['c.example', 'plain.c.example']],
])

/** [what, added to api.yaml, deployments, gateway, hosts (null: not deployed), diagnostics]. */
const PLACES: readonly (readonly [
  what: string,
  api: string,
  deployments: string | null,
  place: GatewayEnvironment,
  hosts: readonly string[] | null,
  said: readonly RegExp[],
])[] = [
  ['no label', '', null, here(), [], []],
  ['a label of this gateway', '  gatewayEnvironments: [Default]', null, here(), [], []],
  ['a label in another list', '  labels: [Europe]', null, here(), [], []],
  [
    'labels of other gateways',
    '  gatewayEnvironments: [Asia]',
    null,
    here(),
    null,
    [/none of Asia is a label of this gateway/],
  ],
  [
    'labels that are no texts, which must not deploy it everywhere',
    '  gatewayEnvironments: [{name: Default}]',
    null,
    here(),
    null,
    [/data\.gatewayEnvironments\[0\]: expected text/],
  ],
  ['an environment of this gateway', '', ONE, here({ hosts: HOSTS }), ['a.example'], []],
  ['a host although no environment is configured', '', ONE, here(), [], []],
  ['an environment of other gateways', '', ONE.replace('Default', 'Asia'), here(), null, [/none of Asia/]],
  [
    'several environments',
    '',
    deployed(
      'deploymentEnvironment: Default, deploymentVhost: "A.Example:8253"',
      'deploymentEnvironment: Europe, deploymentVhost: b.example',
      'deploymentEnvironment: Asia, deploymentVhost: c.example',
    ),
    here({ hosts: HOSTS }),
    ['a.example', 'b.example'],
    [],
  ],
  ['no host', '', deployed('deploymentEnvironment: Default'), here({ hosts: HOSTS }), [], []],
  [
    'one of the hosts of a virtual host: clients may use its other addresses too',
    '',
    ONE.replace('a.example', 'plain.c.example'),
    here({ hosts: HOSTS }),
    ['c.example', 'plain.c.example'],
    [],
  ],
  [
    'a host that no address has',
    '',
    ONE.replace('a.example', 'x.example'),
    here({ hosts: HOSTS }),
    null,
    [/deployment_environments\.yaml:4: deploymentVhost = x\.example: is the host of no address of a configured/],
  ],
  [
    'a host that no address has beside another one',
    '',
    deployed(
      'deploymentEnvironment: Default, deploymentVhost: x.example',
      'deploymentEnvironment: Europe, deploymentVhost: b.example',
    ),
    here({ hosts: HOSTS }),
    ['b.example'],
    [/deployment_environments\.yaml:\d: deploymentVhost = x\.example: is the host of no address of a configured/],
  ],
  ['an invalid host', '', ONE.replace('a.example', '"a b"'), here(), null, [/expected a host name/]],
  ['a port without a host', '', ONE.replace('a.example', '":8253"'), here(), null, [/= ":8253": expected a host name/]],
]

for (const [what, api, deployments, place, hosts, said] of PLACES) {
  test(`deployed with ${what}`, t => {
    const files = { 'api.yaml': `${HEAD}${api}\n`, 'deployment_environments.yaml': deployments ?? '' }
    const { 'api.yaml': alone } = files
    const loaded = load(t, deployments === null ? { 'api.yaml': alone } : files, place)
    assert.deepEqual(loaded.apis[0]?.hosts ?? null, hosts)
    assert.equal(loaded.said.length, said.length, loaded.said.join('\n'))
    for (const [i, pattern] of said.entries()) assert.match(loaded.said[i]!, pattern)
  })
}

const ONLY = { production: { production: true, sandbox: false }, sandbox: { production: false, sandbox: true } }
const PRODUCTION = '    production_endpoints: {url: "http://p"}\n'
const SANDBOX = '    sandbox_endpoints: {url: "http://s"}\n'

/** [key types of the gateway, api.yaml, endpoints and key type of the API; null: an error]. */
const TYPES: readonly (readonly [
  keyTypes: GatewayEnvironment['keyTypes'],
  yaml: string,
  expected: readonly [production: number, sandbox: number, keyType: string] | null,
])[] = [
  [ALL_ENVIRONMENTS.keyTypes, HEAD, [1, 1, 'PRODUCTION']],
  [ALL_ENVIRONMENTS.keyTypes, HEAD.replace(PRODUCTION, ''), [0, 1, 'PRODUCTION']],
  [ONLY.production, HEAD, [1, 0, 'PRODUCTION']],
  [ONLY.sandbox, HEAD, [0, 1, 'SANDBOX']],
  [ONLY.production, HEAD.replace(PRODUCTION, ''), null],
  [ONLY.sandbox, HEAD.replace(SANDBOX, ''), null],
]

for (const [keyTypes, yaml, expected] of TYPES) {
  test(`endpoints on a gateway for ${JSON.stringify(keyTypes)}: ${expected ?? 'none'}`, t => {
    const { apis, errors } = load(t, { 'api.yaml': yaml }, here({ keyTypes }))
    const [api] = apis
    const found = api && [api.endpoints.endpoints.length, api.sandbox.endpoints.length, api.keyType]
    assert.deepEqual(found ?? null, expected)
    assert.equal(errors.length, expected === null ? 1 : 0)
  })
}

test('an API without any endpoint is an error', t => {
  const { apis, said } = load(t, { 'api.yaml': HEAD.replace(PRODUCTION, '').replace(SANDBOX, '') })
  assert.deepEqual(
    [apis, said],
    [[], ['api.yaml:7: data.endpointConfig.production_endpoints.url: is missing (add it)']],
  )
})

/** Hosts of two APIs with one path, and how many of them are deployed. */
const CLASHES: readonly (readonly [one: string, other: string, apis: number])[] = [
  ['a.example', 'b.example', 2],
  ['a.example', 'a.example', 1],
  // The API with a host of its own wins for that host.
  ['a.example', '""', 2],
  ['""', '""', 1],
]

for (const [one, other, count] of CLASHES) {
  test(`of two APIs with one path on the hosts ${one} and ${other}, ${count} are deployed`, t => {
    const of = (host: string): string => deployed(`deploymentEnvironment: Default, deploymentVhost: ${host}`)
    const home = temporaryHome(t, {
      'apis/A/api.yaml': HEAD,
      'apis/A/deployment_environments.yaml': of(one),
      'apis/B/api.yaml': HEAD,
      'apis/B/deployment_environments.yaml': of(other),
    })
    const { apis, errors } = new ApiProjects(home).load(undefined, undefined, here({ hosts: HOSTS }))
    assert.deepEqual([apis.length, errors.length], [count, 2 - count])
  })
}
