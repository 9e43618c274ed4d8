/** Members of projects, of extensions and of applications: known, without effect (a warning), unknown (told). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { ApiProjects } from '../../src/apis/api-projects.ts'
import { readApplications, unknownReferences } from '../../src/apis/application-files.ts'
import { type Diagnostic, formatDiagnostic } from '../../src/config/diagnostics.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { API_OF_BOTH_KINDS as HEAD } from './api-text.ts'

type Files = Readonly<Record<string, string>>

/** Each diagnostic of the project `A` as `error FILE:LINE: ...`. */
function diagnosticsOf(t: TestContext, files: Files): readonly string[] {
  const named = Object.entries(files).map(([name, text]) => [`apis/${name}`, text])
  const home = temporaryHome(t, Object.fromEntries(named))
  const { errors, warnings } = new ApiProjects(home).load()
  const shown = (kind: string) => (it: Diagnostic) => `${kind} ${formatDiagnostic(it).replaceAll(`${home}/apis/`, '')}`
  return [...errors.map(shown('error')), ...warnings.map(shown('warning'))]
}

/** [what stands in line 11 and further ones of api.yaml, its diagnostic]. */
const API_MISTAKES: readonly (readonly [yaml: string, said: string])[] = [
  [
    '  securitySchema: [oauth2]',
    'error A/api.yaml:11: data.securitySchema: is not known here (did you mean securityScheme?)',
  ],
  [
    '  SecurityScheme: [oauth2]',
    'error A/api.yaml:11: data.SecurityScheme: is not known here (did you mean securityScheme?)',
  ],
  ['  operatons: []', 'error A/api.yaml:11: data.operatons: is not known here (did you mean operations?)'],
  ['operations: []', 'error A/api.yaml:11: operations: is not known here (did you mean data.operations?)'],
  ['operatons: []', 'error A/api.yaml:11: operatons: is not known here (did you mean data.operations?)'],
  ['  scope: []', 'error A/api.yaml:11: data.scope: is not known here (did you mean scopes?)'],
  [
    '  lifecycleState: BLOCKED',
    'error A/api.yaml:11: data.lifecycleState: is not known here (did you mean lifeCycleStatus?)',
  ],
  ['  transports: [https]', 'error A/api.yaml:11: data.transports: is not known here (did you mean transport?)'],
  [
    '  gatewayEnvironment: [a]',
    'error A/api.yaml:11: data.gatewayEnvironment: is not known here (did you mean gatewayEnvironments?)',
  ],
  [
    '  corsConfig: {corsConfigurationEnabled: true}',
    'error A/api.yaml:11: data.corsConfig: is not known here (did you mean corsConfiguration?)',
  ],
  [
    '  operations:\n    - {target: /a, verb: GET, authtype: None}\n    - {target: /b, verb: GET, authtype: None}',
    'error A/api.yaml:12: data.operations[0].authtype: is not known here (did you mean authType?)',
  ],
  [
    '  operations: [{target: /a, verb: GET, auth: None}]',
    'error A/api.yaml:11: data.operations[0].auth: is not known here (did you mean authType?)',
  ],
  [
    '  scopes: [{scope: {name: a, binding: [x]}}]',
    'error A/api.yaml:11: data.scopes[0].scope.binding: is not known here (did you mean bindings?)',
  ],
  ['  securityScheme: {oauth2: true}', 'error A/api.yaml:11: data.securityScheme: expected text (write one value)'],
  [
    '  corsConfiguration: {corsConfigurationEnabled: true, accessControlAllowOrigin: [x]}',
    'error A/api.yaml:11: data.corsConfiguration.accessControlAllowOrigin: is not known here (did you mean accessControlAllowOrigins?)',
  ],
  [
    '  corsConfiguration: true',
    'error A/api.yaml:11: data.corsConfiguration: expected names with their values (write name: value)',
  ],
  [
    '  corsConfiguration: [{corsConfigurationEnabled: true}]',
    'error A/api.yaml:11: data.corsConfiguration: expected names with their values (write name: value)',
  ],
  [
    '  authorizationHeader: {name: X-Token}',
    'error A/api.yaml:11: data.authorizationHeader: expected text (write one value)',
  ],
  [
    '  isDefault: true',
    'warning A/api.yaml:11: data.isDefault: is not known here and has no effect (did you mean isDefaultVersion?)',
  ],
  [
    '  somethingElse: true',
    'warning A/api.yaml:11: data.somethingElse: is not known here and has no effect (remove it)',
  ],
  ['somethingElse: true', 'warning A/api.yaml:11: somethingElse: is not known here and has no effect (remove it)'],
  [
    '  visibility: RESTRICTED',
    'warning A/api.yaml:11: data.visibility = "RESTRICTED": has no effect (every account of the developer portal sees the API)',
  ],
  [
    '  keyManagers: [idp]',
    'warning A/api.yaml:11: data.keyManagers: has no effect (tokens of every issuer of the configuration are accepted)',
  ],
  [
    '  responseCachingEnabled: true',
    'warning A/api.yaml:11: data.responseCachingEnabled: has no effect (write a sequence with a cache mediator)',
  ],
  [
    '  maxTps: {production: ten}',
    'error A/api.yaml:11: data.maxTps.production = "ten": expected a whole number from 1 to 1000000000 (leave it out for no limit)',
  ],
  [
    '  maxTps: {production: 10, productionTimeUnit: DECADE}',
    'error A/api.yaml:11: data.maxTps.productionTimeUnit = "decade": expected SECOND, MINUTE or HOUR (leave it out for SECOND)',
  ],
  [
    '  type: WEBSUB',
    'warning A/api.yaml:11: data.type = "WEBSUB": has no effect (its operations match as those of an HTTP API)',
  ],
]

for (const [yaml, said] of API_MISTAKES) {
  test(`api.yaml with ${JSON.stringify(yaml.trim().slice(0, 60))}: one ${said.slice(0, said.indexOf(':'))}`, t => {
    assert.deepEqual(diagnosticsOf(t, { 'A/api.yaml': `${HEAD}${yaml}\n` }), [said])
  })
}

test('a misspelt member of an endpoint is a warning, because it admits nobody', t => {
  const yaml = HEAD.replace('{url: "http://p"}', '{url: "http://p", conifg: {factor: 2}}')
  assert.deepEqual(diagnosticsOf(t, { 'A/api.yaml': yaml }), [
    'warning A/api.yaml:9: data.endpointConfig.production_endpoints.conifg: is not known here and has no effect (did you mean config?)',
  ])
})

/** The key manager grants a scope without roles to every user who asks for it. */
for (const [name, hint] of [
  ['raed', 'did you mean read?'],
  ['other', 'add it to data.scopes, with its roles'],
] as const) {
  test(`a scope ${name} that an operation asks for and the API does not declare is a warning`, t => {
    const scopes = '  scopes: [{scope: {name: read, bindings: [x]}}]\n'
    const [first, second] = [
      `{target: /a, verb: GET, scopes: [read, ${name}]}`,
      `{target: /b, verb: GET, scopes: [${name}]}`,
    ]
    const yaml = `${HEAD}${scopes}  operations:\n    - ${first}\n    - ${second}\n`
    const at = `warning A/api.yaml:13: data.operations[0].scopes[1] = "${name}"`
    assert.deepEqual(diagnosticsOf(t, { 'A/api.yaml': yaml }), [
      `${at}: is no declared scope, so every user is granted it (${hint})`,
    ])
  })
}

test('a merge key is an error: operations in it would not be read', t => {
  const yaml = `${HEAD}  <<: {operations: [{target: /a, verb: GET}]}\n`
  assert.deepEqual(diagnosticsOf(t, { 'A/api.yaml': yaml }), [
    'error A/api.yaml:11: data.<<: merge keys are not supported (write the members out, or as one alias)',
  ])
})

/** Scopes that are not read would be open to every user. */
for (const [scopes, said] of [
  ['[{name: a, bindings: [x]}]', 'error A/api.yaml:11: data.scopes[0].scope.name: is missing (add it)'],
  ['{a: [x]}', 'error A/api.yaml:11: data.scopes: expected a list (begin each scope with "- scope:")'],
  [
    '[{scope: {name: a, bindings: [{}]}}]',
    'error A/api.yaml:11: data.scopes[0].scope.bindings[0]: expected text (write one value)',
  ],
] as const) {
  test(`scopes of another form are an error: ${scopes}`, t => {
    const all = diagnosticsOf(t, { 'A/api.yaml': `${HEAD}  scopes: ${scopes}\n` })
    assert.ok(all.includes(said), all.join('\n'))
  })
}

test('a misspelt endpointConfig is two errors: the name, and the member that is missing', t => {
  const said = diagnosticsOf(t, { 'A/api.yaml': HEAD.replace('endpointConfig', 'endpointconfig') })
  assert.deepEqual(said, [
    'error A/api.yaml:7: data.endpointconfig: is not known here (did you mean endpointConfig?)',
    'error A/api.yaml:3: data.endpointConfig: is missing (add it)',
  ])
})

/** Every member that exports of releases 4.0 to 4.5 have, with the values of an API that nobody has configured. */
const EXPORTED = {
  type: 'api',
  version: 'v4.5.0',
  data: {
    ...{ id: 'f', name: 'A', displayName: 'A', description: 'd', context: '/a', version: '1', provider: 'admin' },
    ...{ lifeCycleStatus: 'PUBLISHED', responseCachingEnabled: false, cacheTimeout: 300, hasThumbnail: false },
    ...{
      isDefaultVersion: false,
      isRevision: true,
      revisionedApiId: 'f',
      revisionId: 1,
      enableSchemaValidation: false,
    },
    ...{ enableSubscriberVerification: false, type: 'HTTP', audience: 'PUBLIC', audiences: ['all'] },
    ...{ transport: ['http', 'https'], tags: ['t'], policies: ['Gold', 'Unlimited'], organizationPolicies: [] },
    ...{ apiThrottlingPolicy: 'Unlimited', authorizationHeader: 'Authorization', apiKeyHeader: 'ApiKey' },
    ...{
      securityScheme: ['oauth2', 'oauth_basic_auth_api_key_mandatory'],
      maxTps: { production: null, sandbox: null },
    },
    ...{ visibility: 'PUBLIC', visibleRoles: [], visibleTenants: [], visibleOrganizations: [], mediationPolicies: [] },
    apiPolicies: { request: [], response: [], fault: [] },
    ...{ subscriptionAvailability: 'CURRENT_TENANT', subscriptionAvailableTenants: [], additionalProperties: [] },
    ...{ additionalPropertiesMap: { a: { name: 'a', value: 'b', display: false } }, accessControl: 'NONE' },
    ...{ accessControlRoles: [], businessInformation: { businessOwner: 'x' }, workflowStatus: null },
    corsConfiguration: {
      ...{ corsConfigurationEnabled: false, accessControlAllowOrigins: ['*'], accessControlAllowCredentials: false },
      ...{ accessControlAllowHeaders: ['authorization'], accessControlAllowMethods: ['GET'] },
    },
    websubSubscriptionConfiguration: { enable: false, secret: '', signingAlgorithm: 'SHA1', signatureHeader: 'x-hub' },
    ...{ createdTime: '1', lastUpdatedTimestamp: '1', lastUpdatedTime: '1', endpointImplementationType: 'ENDPOINT' },
    endpointConfig: {
      endpoint_type: 'http',
      failOver: 'False',
      production_endpoints: {
        url: 'http://p',
        template_not_supported: false,
        config: {
          ...{ actionDuration: '30000', actionSelect: 'fault', factor: '', retryDelay: '', retryErroCode: [] },
          ...{ retryTimeOut: '', suspendDuration: '', suspendErrorCode: [], suspendMaxDuration: '' },
          ...{ format: 'leave-as-is', optimize: 'leave-as-is' },
        },
      },
      endpoint_security: {
        production: {
          ...{ enabled: false, type: 'NONE', username: null, password: null, grantType: null, tokenUrl: null },
          ...{ clientId: null, clientSecret: null, customParameters: '{}', connectionTimeoutDuration: -1 },
          ...{ connectionRequestTimeoutDuration: -1, socketTimeoutDuration: -1, proxyConfigs: { proxyEnabled: false } },
        },
      },
      ...{ production_failovers: [], sandbox_failovers: [], sessionManagement: '', sessionTimeOut: '' },
      ...{ algoCombo: 'org.apache.synapse.endpoints.algorithms.RoundRobin', algoClassName: '' },
    },
    subtypeConfiguration: { subtype: 'DEFAULT', _configuration: null },
    scopes: [
      {
        scope: { id: null, name: 's', displayName: 's', description: '', bindings: ['a'], usageCount: null },
        shared: false,
      },
    ],
    scopePrefix: null,
    operations: [
      {
        ...{ id: '', target: '/a', verb: 'GET', authType: 'Any', throttlingPolicy: 'Unlimited', scopes: [] },
        ...{ usedProductIds: [], amznResourceName: null, amznResourceTimeout: null, amznResourceContentEncode: null },
        ...{ payloadSchema: null, uriMapping: null, operationPolicies: { request: [], response: [], fault: [] } },
      },
    ],
    ...{ threatProtectionPolicies: null, categories: [], keyManagers: ['all'], monetization: { enabled: false } },
    serviceInfo: { key: 'k', name: 'n', version: '1', outdated: false },
    advertiseInfo: {
      ...{ advertised: false, apiExternalProductionEndpoint: null, apiExternalSandboxEndpoint: null },
      ...{ originalDevPortalUrl: null, apiOwner: 'admin', vendor: 'WSO2' },
    },
    ...{ gatewayVendor: 'wso2', gatewayType: 'wso2/synapse', asyncTransportProtocols: [], egress: 0 },
    ...{ initiatedFromGateway: false, primaryProductionEndpointId: null, primarySandboxEndpointId: null },
    ...{ wsdlInfo: null, wsdlUrl: null, wsUriMapping: null, testKey: null, organizationId: 'carbon.super' },
  },
}

test('an export with every member of the platform gives no diagnostic', t => {
  const files = {
    'A/api.json': JSON.stringify(EXPORTED, null, 2),
    'A/api_meta.yaml': 'name: A\nversion: "1"\n',
    'A/deployment_environments.yaml':
      'type: deployment_environments\nversion: v4.5.0\ndata: [{displayOnDevportal: true, deploymentEnvironment: Default, deploymentVhost: a.example}]\n',
    'A/Docs/doc.txt': 'text',
    'A/Policies/p.j2': '',
  }
  assert.deepEqual(diagnosticsOf(t, files), [])
})

test('a misspelt host of deployment_environments.yaml is an error: the API would be on every host', t => {
  const rows =
    'type: deployment_environments\nversion: v4.3.0\ndata:\n  - {deploymentEnvironment: a, deploymentVHosts: b}\n'
  assert.deepEqual(diagnosticsOf(t, { 'A/api.yaml': HEAD, 'A/deployment_environments.yaml': rows }), [
    'error A/deployment_environments.yaml:4: data[0].deploymentVHosts: is not known here (did you mean deploymentVhost?)',
  ])
})

test('unknown members of client_certificates.yaml are reported', t => {
  const list = 'type: client_certificates\nversion: v4.3.0\ndata:\n  - {alias: a, certficate: one.crt, tier: Gold}\n'
  assert.deepEqual(diagnosticsOf(t, { 'A/api.yaml': HEAD, 'A/Client-certificates/client_certificates.yaml': list }), [
    'error A/Client-certificates/client_certificates.yaml:4: data[0].certficate: is not known here (did you mean certificate?)',
    'error A/Client-certificates/client_certificates.yaml:4: data[0].certificate: is missing (add it)',
    'warning A/Client-certificates/client_certificates.yaml:4: data[0].tier: is not known here and has no effect (did you mean tierName?)',
  ])
})

const DOCUMENT = `openapi: 3.0.3
info: {title: A, version: "1"}
servers: [{url: "http://h/a"}]
paths:
  /x:
    get: {responses: {"200": {description: ok}}}
`
const GET = 'get: {'
const FLOW = '{authorizationUrl: "http://i", scopes: {}, x-scope-bindings: {}}'

/** [document, its diagnostic]. */
const EXTENSION_MISTAKES: readonly (readonly [document: string, said: string])[] = [
  [
    DOCUMENT.replace(GET, 'get: {x-auth-typ: None, '),
    'error a.yaml:6: paths./x.get.x-auth-typ: is not known here (did you mean x-auth-type?)',
  ],
  [
    DOCUMENT.replace(GET, 'get: {x-scopes: a, '),
    'error a.yaml:6: paths./x.get.x-scopes: is not known here (did you mean x-scope?)',
  ],
  [
    DOCUMENT.replace(GET, 'x-wso2-disabled-security: true\n    get: {'),
    'error a.yaml:6: paths./x.x-wso2-disabled-security: is not known here (did you mean x-wso2-disable-security?)',
  ],
  [
    DOCUMENT.replace(GET, 'get: {x-wso2-cors: {corsConfigurationEnabled: true}, '),
    'warning a.yaml:6: paths./x.get.x-wso2-cors: has no effect (write it at the root of the document)',
  ],
  [
    DOCUMENT.replace(GET, 'get: {x-wso2-throttling-tier: Gold, '),
    'warning a.yaml:6: paths./x.get.x-wso2-throttling-tier = "Gold": has no effect (name a policy as x-throttling-tier instead)',
  ],
  [
    `${DOCUMENT}x-wso2-basepath: /b\n`,
    'error a.yaml:7: x-wso2-basepath: is not known here (did you mean x-wso2-basePath?)',
  ],
  [
    `${DOCUMENT}x-wso2-something: /b\n`,
    'warning a.yaml:7: x-wso2-something: is not known here and has no effect (remove it)',
  ],
  [
    `${DOCUMENT}x-wso2-mutual-ssl: mandatory\n`,
    'warning a.yaml:7: x-wso2-mutual-ssl = "mandatory": has no effect (name mutualssl in x-wso2-application-security)',
  ],
  [
    `${DOCUMENT}x-wso2-application-security: {security-type: [api_key]}\n`,
    'error a.yaml:7: x-wso2-application-security.security-type: is not known here (did you mean security-types?)',
  ],
  [
    `${DOCUMENT}x-wso2-application-security: [mutualssl]\n`,
    'error a.yaml:7: x-wso2-application-security: expected names with their values (write name: value)',
  ],
  [
    `${DOCUMENT}x-wso2-cors: true\n`,
    'error a.yaml:7: x-wso2-cors: expected names with their values (write name: value)',
  ],
  [`${DOCUMENT}x-wso2-auth-header: [X-Token]\n`, 'error a.yaml:7: x-wso2-auth-header: expected text (write one value)'],
  [
    `${DOCUMENT}x-wso2-cors: {corsConfigurationEnabled: true, access-control-allow-origin: [x]}\n`,
    'error a.yaml:7: x-wso2-cors.access-control-allow-origin: is not known here (did you mean access-control-allow-origins?)',
  ],
  [
    `${DOCUMENT}components: {securitySchemes: {o: {type: oauth2, flows: {implicit: ${FLOW}}}}}\n`,
    'error a.yaml:7: components.securitySchemes.o.flows.implicit.x-scope-bindings: is not known here (did you mean x-scopes-bindings?)',
  ],
]

for (const [document, said] of EXTENSION_MISTAKES) {
  test(`an extension: ${said.slice(0, 110)}`, t => assert.deepEqual(diagnosticsOf(t, { 'a.yaml': document }), [said]))
}

test('extensions of other tools are ignored', t => {
  const others = 'x-amazon-apigateway-auth: {type: none}, x-ms-examples: {}, x-internal: true, x-tags: [a], '
  const root = 'x-logo: {url: a}\nx-tagGroups: []\nx-ms-paths: {}\nx-google-backend: {address: "http://b"}\n'
  assert.deepEqual(diagnosticsOf(t, { 'a.yaml': DOCUMENT.replace(GET, `${GET}${others}`) + root }), [])
})

test('x-wso2-transports names the listeners of the API of a document', t => {
  const home = temporaryHome(t, { 'apis/a.yaml': `${DOCUMENT}x-wso2-transports: [https]\n` })
  assert.deepEqual(new ApiProjects(home).load().apis[0]!.transports, ['https'])
})

test('a misspelt extension beside operations of the project is a warning', t => {
  const api = `${HEAD}  operations: [{target: /x, verb: GET}]\n`
  const document = `${DOCUMENT}x-wso2-basepath: /b\n`
  assert.deepEqual(diagnosticsOf(t, { 'A/api.yaml': api, 'A/Definitions/swagger.yaml': document }), [
    'warning A/Definitions/swagger.yaml:7: x-wso2-basepath: is not known here (did you mean x-wso2-basePath?)',
  ])
})

/** [files of the project, its diagnostics]. */
const FOLDERS: readonly (readonly [files: Files, said: readonly string[]])[] = [
  [
    { 'Endpoint-certificates/a.crt': '' },
    [
      'warning A/Endpoint-certificates: has no effect (put the certificates of backends into the trust store of transport.passthru_https)',
    ],
  ],
  [
    { 'Sequence-Backend/a.xml': '' },
    [
      'warning A/Sequence-Backend: has no effect (move the sequence to Sequences/, and name it as data.endpointConfig.sequence)',
    ],
  ],
  [
    { 'deployment_environment.yaml': '' },
    ['error A/deployment_environment.yaml: is not read (rename it to deployment_environments.yaml)'],
  ],
  [{ 'client-certificate/a.yaml': '' }, ['error A/client-certificate: is not read (rename it to Client-certificates)']],
  [{ 'Definitions/openapi.yaml': '' }, ['error A/Definitions/openapi.yaml: is not read (rename it to swagger.yaml)']],
  [{ 'Definitions/asyncapi.yaml': '' }, []],
  [{ 'notes.md': '', '.gitignore': '' }, []],
]

for (const [files, said] of FOLDERS) {
  test(`a project with ${Object.keys(files).join()}: ${said[0] ?? 'no diagnostic'}`, t => {
    const inProject = Object.entries(files).map(([name, text]) => [`A/${name}`, text])
    assert.deepEqual(diagnosticsOf(t, { 'A/api.yaml': HEAD, ...Object.fromEntries(inProject) }), said)
  })
}

const OLDER =
  'an export of a release 3.x is not read (export the API from a release 4.x, or write an api.yaml: sluice help apis)'
/** A part of `Meta-information/api.yaml` of an export. */
const FLAT = `id:
  providerName: admin
  apiName: A
  version: 1.0.0
type: HTTP
context: /a/1.0.0
contextTemplate: /a/{version}
endpointConfig: '{"endpoint_type":"http","production_endpoints":{"url":"http://backend.example"}}'
`

test('an export of a release 3.x is one error, with a remedy that works', t => {
  assert.deepEqual(diagnosticsOf(t, { 'A/Meta-information/api.yaml': FLAT }), [`error A: ${OLDER}`])
  assert.deepEqual(diagnosticsOf(t, { 'A/Meta-information/api.json': '{}' }), [`error A: ${OLDER}`])
  assert.deepEqual(diagnosticsOf(t, { 'A/api.yaml': FLAT }), [`error A/api.yaml:1: id: ${OLDER}`])
  assert.deepEqual(diagnosticsOf(t, { 'A/api.yaml': HEAD, 'A/Meta-information/api.yaml': FLAT }), [])
})

/** [file, text, diagnostic]. */
const BROKEN: readonly (readonly [file: string, text: string, said: RegExp])[] = [
  ['A/api.json', '{"type": "api", ', /^error A\/api\.json:1:\d+: not valid JSON: /],
  [
    'a.json',
    '{"openapi": "3.0.3",\n"info": {',
    /^error a\.json:2:10: not valid JSON: Expected property name or '\}' \(correct the file there\)$/,
  ],
  [
    'a.json',
    '{"openapi": ',
    /^error a\.json:1:13: not valid JSON: Unexpected end of JSON input \(correct the file there\)$/,
  ],
  [
    'a.json',
    '{"openapi": "3.0.3"\n "info": {}}',
    /^error a\.json:2:2: not valid JSON: Expected ',' or '\}' after property value \(correct the file there\)$/,
  ],
  [
    'a.json',
    '{"openapi": #a\n}]',
    /^error a\.json:\d+:\d+: not valid JSON: Unexpected token '#' \(correct the file there\)$/,
  ],
  [
    'a.yaml',
    '{"openapi": "3.0.3"',
    /^error a\.yaml:1:20: not valid JSON: Expected ',' or '\}' after property value \(correct the file there\)$/,
  ],
  ['a.yaml', 'openapi: [', /^error a\.yaml:1:\d+: not valid YAML: /],
  ['a.yaml', '{openapi: ', /^error a\.yaml:1:\d+: not valid YAML: /],
]

for (const [file, text, said] of BROKEN) {
  test(`a broken document is called by its language: ${file} with ${text}`, t => {
    const [first, ...others] = diagnosticsOf(t, { [file]: text })
    assert.match(first!, said)
    assert.deepEqual(others, [])
  })
}

/** Files of one home folder `applications`, and what is said of `a.yaml`. */
const APPLICATIONS: readonly (readonly [yaml: string, said: string])[] = [
  ['name: A\nkey: [{consumerKey: k}]', 'error a.yaml:2: key: is not known here (did you mean keys?)'],
  [
    'name: A\nsubscription: [{api: "a:1"}]',
    'error a.yaml:2: subscription: is not known here (did you mean subscriptions?)',
  ],
  [
    'name: A\nkeys:\n  - {consumerkey: k, consumerKey: l}',
    'error a.yaml:3: keys[0].consumerkey: is not known here (did you mean consumerKey?)',
  ],
  [
    'name: A\nkeys:\n  - {consumerKey: l, secret: s}',
    'error a.yaml:3: keys[0].secret: is not known here (secrets stay with the issuer of the tokens)',
  ],
  [
    'name: A\nsubscriptions:\n  - {api: "a:1", state: BLOCKED}',
    'error a.yaml:3: subscriptions[0].state: is not known here (remove it)',
  ],
  ['name: A\ntiers: Gold', 'warning a.yaml:2: tiers: is not known here and has no effect (did you mean tier?)'],
  ['name: A\ncolour: red', 'error a.yaml:2: colour: is not known here (remove it)'],
  ['- name: A', 'error a.yaml:1: name: is missing (add it)'],
]

for (const [yaml, said] of APPLICATIONS) {
  test(`applications/a.yaml: ${said}`, async t => {
    const home = temporaryHome(t, { 'applications/a.yaml': yaml })
    const { errors, warnings } = await readApplications(home)
    const all = [
      ...errors.map(it => `error ${formatDiagnostic(it)}`),
      ...warnings.map(it => `warning ${formatDiagnostic(it)}`),
    ]
    assert.equal(
      all.map(it => it.replaceAll(`${home}/applications/`, '')).find(it => it === said),
      said,
      all.join('\n'),
    )
  })
}

test('APIs and issuers that applications name and that do not exist are reported with file and line', async t => {
  const yaml = `name: A
keys:
  - {consumerKey: k}
  - {consumerKey: l, issuer: "https://idp.exampel"}
  - {consumerKey: m, issuer: "https://idp.example"}
subscriptions:
  - {api: "Orders:1.0.0"}
  - {api: "Order:1.0.0"}
  - {api: "Bills:2.0.0"}
`
  const home = temporaryHome(t, { 'applications/a.yaml': yaml })
  const { applications } = await readApplications(home)
  const told = (apis: readonly string[] | null): readonly string[] => {
    const known = apis === null ? null : new Set(apis)
    const all = unknownReferences(applications, known, new Set(['https://idp.example']))
    return all.map(it => formatDiagnostic(it).replaceAll(`${home}/applications/`, ''))
  }
  const issuer =
    'a.yaml:4: keys.issuer = "https://idp.exampel": is no issuer of this configuration (did you mean https://idp.example?)'
  assert.deepEqual(told(['Orders:1.0.0']), [
    issuer,
    'a.yaml:8: subscriptions.api = "Order:1.0.0": is no API of this home (did you mean Orders:1.0.0?)',
    'a.yaml:9: subscriptions.api = "Bills:2.0.0": is no API of this home (correct the name, or add the API)',
  ])
  assert.deepEqual(told(null), [issuer])
})

test('thousands of unknown names are reported in bounded time and number', t => {
  const names = Array.from({ length: 40_000 }, (_, i) => `  operatons${i}: 1\n`).join('')
  const startMs = performance.now()
  const said = diagnosticsOf(t, { 'A/api.yaml': HEAD + names })
  assert.ok(said.length <= 52, String(said.length))
  assert.ok(performance.now() - startMs < 20_000)
})
