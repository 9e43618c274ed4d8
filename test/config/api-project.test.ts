/** Exported projects: operations, CORS, lifecycle, transports, documents beside them, and where they are deployed. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { ApiDefinition } from '../../src/config/api-definition.ts'
import { type ApiDefinitions, ApiProjects } from '../../src/config/api-definitions.ts'
import { describe } from '../../src/config/fault.ts'
import { EVERYWHERE, type GatewayPlace } from '../../src/config/gateway-environments.ts'
import { API_OF_BOTH_KINDS as HEAD } from './api-text.ts'
import { temporaryHome } from './temporary-home.ts'

type Files = Readonly<Record<string, string>>

interface Loaded extends ApiDefinitions {
  /** Faults and warnings. */
  readonly said: readonly string[]
}

function load(t: TestContext, files: Files, place: GatewayPlace = EVERYWHERE, isThorough = false): Loaded {
  const inProject = Object.entries(files).map(([name, text]) => [`apis/A/${name}`, text])
  const home = temporaryHome(t, Object.fromEntries(inProject))
  const loaded = new ApiProjects(home, isThorough).load(undefined, undefined, place)
  const told = [...loaded.faults, ...loaded.warnings, ...loaded.leftOut]
  return { ...loaded, said: told.map(it => describe(it).replaceAll(`${home}/apis/A/`, '')) }
}

function operationsOf({ apis }: ApiDefinitions): readonly string[] {
  return apis.flatMap(({ resources }) => resources.map(({ verb, template }) => `${verb} ${template}`))
}

/** [what is added to api.yaml, the field, the value]. */
const TAKEN: readonly (readonly [yaml: string, field: keyof ApiDefinition, value: unknown])[] = [
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

for (const [yaml, field, value] of TAKEN) {
  test(`${field} of a project with ${JSON.stringify(yaml.trim())}`, t => {
    const { apis, said } = load(t, { 'api.yaml': `${HEAD}${yaml}\n` })
    assert.deepEqual(said, [])
    assert.deepEqual(apis[0]![field], value)
  })
}

test('api.json is as good as api.yaml', t => {
  const data = { name: 'J', context: '/j', version: '1', endpointConfig: { endpoint_type: 'http' } }
  const production = { production_endpoints: { url: 'http://p' } }
  const whole = { ...data, endpointConfig: { ...data.endpointConfig, ...production } }
  const { apis, said } = load(t, {
    'api.json': JSON.stringify({ type: 'api', version: 'v4.3.0', data: whole }, null, 1),
  })
  assert.deepEqual([said, apis[0]!.name], [[], 'J'])
})

const operation = (target: string, verb = 'GET'): string => `    - {target: "${target}", verb: ${verb}}\n`

/** Templates that are the same for requests, and what no request could be for. */
const FAULTY: readonly (readonly [yaml: string, said: string])[] = [
  [
    operation('/{a}') + operation('/{b}'),
    'api.yaml:13: data.operations[1].target = "/{b}": GET /{a} is there already (names of variables make no difference; drop one)',
  ],
  [
    operation('/%7Ea') + operation('/~a', 'get'),
    'api.yaml:13: data.operations[1].target = "/~a": GET /%7Ea is there already (names of variables make no difference; drop one)',
  ],
  [operation('a'), 'api.yaml:12: data.operations[0].target = "a": must start with "/" (write /a)'],
  [
    operation('/a//b'),
    'api.yaml:12: data.operations[0].target = "/a//b": must not hold "//" (drop one of the slashes)',
  ],
  [
    operation('/a', 'TRACE'),
    'api.yaml:12: data.operations[0].verb = "TRACE": expected GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS, * (a gateway answers TRACE itself or not at all: drop it)',
  ],
  ['    - {verb: GET}\n', 'api.yaml:12: data.operations[0].target: is missing (add it)'],
  [
    '    - {target: /a, verb: GET, authType: Somebody}\n',
    'api.yaml:12: data.operations[0].authType = "Somebody": expected None, Application, Application User or Application & Application User (leave it out for the last)',
  ],
]

for (const [yaml, said] of FAULTY) {
  test(`an operation is refused: ${said.slice(0, 90)}`, t => {
    const loaded = load(t, { 'api.yaml': `${HEAD}  operations:\n${yaml}` })
    assert.deepEqual([loaded.apis, loaded.said], [[], [said]])
  })
}

/** Of templates that requests cannot tell apart, and of those that nothing could ever match. */
const TEMPLATES: readonly (readonly [template: string, isTaken: boolean])[] = [
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

for (const [template, isTaken] of TEMPLATES) {
  test(`the template ${template} is ${isTaken ? 'taken' : 'refused'}`, t => {
    const { apis, faults } = load(t, { 'api.yaml': `${HEAD}  operations:\n${operation(template)}` })
    assert.deepEqual([apis.length, faults.length], isTaken ? [1, 0] : [0, 1])
  })
}

test('a template is written as it is written first', t => {
  const loaded = load(t, { 'api.yaml': `${HEAD}  operations:\n${operation('/{a}')}${operation('/{b}', 'POST')}` })
  assert.deepEqual(operationsOf(loaded), ['GET /{a}', 'POST /{a}'])
})

test('more operations than anybody has are refused in a moment', t => {
  const many = Array.from({ length: 60_000 }, (_, i) => operation(`/${i}`)).join('')
  const { said } = load(t, { 'api.yaml': `${HEAD}  operations:\n${many}` })
  const at = 'data.operations[20000].target'
  assert.deepEqual(said, [
    `api.yaml:20012: ${at}: is more than 20000 operations (use a template with variables, or /*)`,
  ])
})

test('topics and fields are no operations, which is said once', t => {
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

/** [what it is, api.yaml, the document, the operations, what is said at a start, and what a thorough reader says]. */
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
    'a document that breaks the schema, and is not acted on',
    WITH_X,
    DOCUMENT.replace('description', 'summary'),
    ['GET /x'],
    [],
    /must have required property 'description'/,
  ],
  [
    'a document that breaks the schema, and is acted on',
    HEAD,
    DOCUMENT.replace('description', 'summary'),
    [],
    [/must have required property 'description'/],
  ],
  ['a document that cannot be read', WITH_X, 'openapi: [', [], [/swagger\.yaml:1:11: not valid YAML/]],
  ['a document that leads elsewhere', WITH_X, `${DOCUMENT}x: {$ref: "http://h"}\n`, [], [/leads out of the document/]],
]

for (const [what, api, document, operations, said, more] of BESIDE) {
  test(`a document beside the project: ${what}`, t => {
    const files = { 'api.yaml': api, [SWAGGER]: document }
    const loaded = load(t, files)
    assert.deepEqual(operationsOf(loaded), operations)
    assert.equal(loaded.said.length, said.length, loaded.said.join('\n'))
    for (const [i, pattern] of said.entries()) assert.match(loaded.said[i]!, pattern)
    const thorough = load(t, files, EVERYWHERE, true)
    if (more === undefined) assert.deepEqual(thorough.said, loaded.said)
    else assert.match(thorough.said.join('\n'), more)
    assert.equal(thorough.apis.length, loaded.apis.length)
  })
}

test('endpoints and CORS of the document stand in where the project says nothing', t => {
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
const here = (changes: Partial<GatewayPlace> = {}): GatewayPlace => ({
  ...EVERYWHERE,
  labels: new Set(['Default', 'Europe']),
  ...changes,
})
const ONE = deployed('deploymentEnvironment: Default, deploymentVhost: a.example')
const HOSTS = new Set(['a.example', 'b.example'])

/** [what it is, further fields of api.yaml, the deployments, the gateway, hosts; null: left out; what is said]. */
const PLACES: readonly (readonly [
  what: string,
  api: string,
  deployments: string | null,
  place: GatewayPlace,
  hosts: readonly string[] | null,
  said: readonly RegExp[],
])[] = [
  ['no label', '', null, here(), [], []],
  ['a label of ours', '  gatewayEnvironments: [Default]', null, here(), [], []],
  ['a label in another list', '  labels: [Europe]', null, here(), [], []],
  [
    'labels of others',
    '  gatewayEnvironments: [Asia]',
    null,
    here(),
    null,
    [/none of Asia is a label of this gateway/],
  ],
  [
    'labels that are no texts: not everywhere',
    '  gatewayEnvironments: [{name: Default}]',
    null,
    here(),
    null,
    [/data\.gatewayEnvironments\[0\]: expected text/],
  ],
  ['an environment of ours', '', ONE, here({ hosts: HOSTS }), ['a.example'], []],
  ['a host where no environment is configured', '', ONE, here(), [], []],
  ['an environment of others', '', ONE.replace('Default', 'Asia'), here(), null, [/none of Asia/]],
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
    'a host that nobody knows',
    '',
    ONE.replace('a.example', 'x.example'),
    here({ hosts: HOSTS }),
    ['x.example'],
    [/deployment_environments\.yaml:4: deploymentVhost = x\.example: is a host of no environment/],
  ],
  ['a host that is none', '', ONE.replace('a.example', '"a b"'), here(), null, [/expected the name of a host/]],
  [
    'a port and no host',
    '',
    ONE.replace('a.example', '":8253"'),
    here(),
    null,
    [/= ":8253": expected the name of a host/],
  ],
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

/** [type of the gateway, api.yaml, production, sandbox, what a request counts as; null: a fault]. */
const TYPES: readonly (readonly [
  takes: GatewayPlace['takes'],
  yaml: string,
  expected: readonly [production: number, sandbox: number, keyType: string] | null,
])[] = [
  [EVERYWHERE.takes, HEAD, [1, 1, 'PRODUCTION']],
  [EVERYWHERE.takes, HEAD.replace(PRODUCTION, ''), [0, 1, 'PRODUCTION']],
  [ONLY.production, HEAD, [1, 0, 'PRODUCTION']],
  [ONLY.sandbox, HEAD, [0, 1, 'SANDBOX']],
  [ONLY.production, HEAD.replace(PRODUCTION, ''), null],
  [ONLY.sandbox, HEAD.replace(SANDBOX, ''), null],
]

for (const [takes, yaml, expected] of TYPES) {
  test(`endpoints on a gateway that takes ${JSON.stringify(takes)}: ${expected ?? 'none'}`, t => {
    const { apis, faults } = load(t, { 'api.yaml': yaml }, here({ takes }))
    const [api] = apis
    const found = api && [api.endpoints.endpoints.length, api.sandbox.endpoints.length, api.keyType]
    assert.deepEqual(found ?? null, expected)
    assert.equal(faults.length, expected === null ? 1 : 0)
  })
}

test('an API with no endpoint of any kind is a fault', t => {
  const { apis, said } = load(t, { 'api.yaml': HEAD.replace(PRODUCTION, '').replace(SANDBOX, '') })
  assert.deepEqual(
    [apis, said],
    [[], ['api.yaml:7: data.endpointConfig.production_endpoints.url: is missing (add it)']],
  )
})

/** Of two APIs with one path, their hosts and how many are deployed. */
const CLASHES: readonly (readonly [one: string, other: string, apis: number])[] = [
  ['a.example', 'b.example', 2],
  ['a.example', 'a.example', 1],
  // The host of its own goes first.
  ['a.example', '""', 2],
  ['""', '""', 1],
]

for (const [one, other, count] of CLASHES) {
  test(`APIs of one path on the hosts ${one} and ${other}: ${count}`, t => {
    const of = (host: string): string => deployed(`deploymentEnvironment: Default, deploymentVhost: ${host}`)
    const home = temporaryHome(t, {
      'apis/A/api.yaml': HEAD,
      'apis/A/deployment_environments.yaml': of(one),
      'apis/B/api.yaml': HEAD,
      'apis/B/deployment_environments.yaml': of(other),
    })
    const { apis, faults } = new ApiProjects(home).load(undefined, undefined, here({ hosts: HOSTS }))
    assert.deepEqual([apis.length, faults.length], [count, 2 - count])
  })
}
