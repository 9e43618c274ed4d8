/** What projects say of who may use an API, and of what is not built: told, and no reason not to deploy it. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { AccessTerms, ApiDefinition } from '../../src/config/api-definition.ts'
import { ApiProjects } from '../../src/config/api-definitions.ts'
import { describe } from '../../src/config/fault.ts'
import { API_OF_BOTH_KINDS as HEAD } from './api-text.ts'
import { accessPlan } from '../../src/primary/identity-planning.ts'
import { temporaryHome } from './temporary-home.ts'

const DOCUMENT = `openapi: 3.0.3
info: {title: A, version: "1"}
paths: {/a: {get: {responses: {"200": {description: ok}}}}}
`
const OPERATIONS = '  operations: [{target: /a, verb: GET}]\n'
const NOTHING_SAID: AccessTerms = {
  provider: '',
  plans: [],
  tier: '',
  authHeader: '',
  securitySchemes: [],
  scopeRoles: {},
}

function load(
  t: TestContext,
  yaml: string,
  document?: string,
): { readonly api: ApiDefinition; readonly said: readonly string[] } {
  const more = document === undefined ? {} : { 'apis/A/Definitions/swagger.yaml': document }
  const home = temporaryHome(t, { 'apis/A/api.yaml': yaml, ...more })
  const { apis, faults, warnings } = new ApiProjects(home).load()
  assert.deepEqual(faults, [])
  return { api: apis[0]!, said: warnings.map(it => describe(it).replaceAll(`${home}/apis/A/`, '')) }
}

/** [what is added to api.yaml, what is known of it]. */
const TERMS: readonly (readonly [yaml: string, terms: AccessTerms])[] = [
  ['', NOTHING_SAID],
  [
    '  provider: admin\n  policies: [Gold, "10", {odd: 1}]\n  apiThrottlingPolicy: 50KPerMin',
    { ...NOTHING_SAID, provider: 'admin', plans: ['Gold', '10'], tier: '50KPerMin' },
  ],
  [
    '  provider: null\n  policies: null\n  authorizationHeader: Authorization\n  securityScheme: [oauth2]',
    { ...NOTHING_SAID, authHeader: 'Authorization', securitySchemes: ['oauth2'] },
  ],
  ['  securityScheme: [none]', { ...NOTHING_SAID, securitySchemes: ['none'] }],
]

for (const [yaml, terms] of TERMS) {
  test(`${JSON.stringify(yaml.trim())}: terms of access`, t => {
    const { api, said } = load(t, `${HEAD}${yaml}\n`)
    assert.deepEqual([api.access, said], [terms, []])
  })
}

/** [what is added to api.yaml, what is named as not acted on; '' for nothing]. */
const UNHEEDED: readonly (readonly [yaml: string, named: string])[] = [
  ['maxTps: {production: 100, sandbox: null}', 'data.maxTps'],
  ['maxTps: {production: null}', ''],
  ['enableSchemaValidation: true', 'data.enableSchemaValidation'],
  ['enableSchemaValidation: "False"', ''],
  ['threatProtectionPolicies: {list: []}', ''],
  ['mediationPolicies: [{name: log}]', 'data.mediationPolicies'],
  ['apiPolicies: {request: [{policyName: addHeader}], response: []}', 'data.apiPolicies'],
  [
    'operations: [{target: /a, verb: GET}, {target: /b, verb: GET, operationPolicies: {request: [{policyName: x}]}}]',
    'data.operations[1].operationPolicies',
  ],
  ['operations: [{target: /a, verb: GET, operationPolicies: {request: [], response: [], fault: []}}]', ''],
]

for (const [yaml, named] of UNHEEDED) {
  test(`{${yaml}}: ${named === '' ? 'nothing to be told' : 'told that nothing acts on it, and deployed'}`, t => {
    const { said } = load(t, `${HEAD}  ${yaml}\n`)
    const told = said.map(text => text.replace(/^api\.yaml:11: (.*): is accepted and not acted on \(.*\)$/, '$1'))
    assert.deepEqual(told, named === '' ? [] : [named])
  })
}

test('what the project says of credentials goes before what its document says, and is told once', t => {
  const more = 'x-wso2-auth-header: X-Doc\nx-wso2-application-security: {security-types: [api_key]}\n'
  const own = '  authorizationHeader: X-Own\n'
  const { api, said } = load(t, HEAD + own + OPERATIONS, DOCUMENT + more)
  assert.deepEqual(api.access, { ...NOTHING_SAID, authHeader: 'X-Own', securitySchemes: ['api_key'] })
  assert.deepEqual(said, [])
})

/** [what securityScheme says, what is asked, whether of a certificate, whether of something besides it]. */
const SCHEMES: readonly (readonly [string, readonly string[], boolean, boolean])[] = [
  ['[oauth2]', ['oauth2'], false, false],
  ['[api_key, basic_auth, OAuth2, mutualssl]', ['mutual_tls', 'oauth2', 'basic', 'api_key'], false, false],
  ['[oauth2, oauth_basic_auth_api_key_mandatory]', ['oauth2'], false, false],
  ['[mutualssl, mutualssl_mandatory, oauth2]', ['mutual_tls', 'oauth2'], true, false],
  ['[mutualssl, oauth2, oauth_basic_auth_api_key_mandatory]', ['mutual_tls', 'oauth2'], false, true],
  ['[mutualssl_mandatory, oauth2]', ['oauth2'], false, false],
  ['[]', ['oauth2'], false, false],
  ['null', ['oauth2'], false, false],
]

for (const [written, schemes, needsCertificate, needsOther] of SCHEMES) {
  test(`securityScheme: ${written} asks for ${schemes.join(', ')}`, t => {
    const { api, said } = load(t, `${HEAD}  securityScheme: ${written}\n`)
    const access = accessPlan(api)
    assert.deepEqual(
      [access.schemes, access.needsCertificate, access.needsOther],
      [schemes, needsCertificate, needsOther],
    )
    assert.deepEqual(said, [])
  })
}

test('a scheme that nobody knows lets nobody in: beside others it is told, alone it is a fault', t => {
  const { api, said } = load(t, `${HEAD}  securityScheme: [oauth2, magic]\n`)
  assert.deepEqual(accessPlan(api).schemes, ['oauth2'])
  assert.match(said.join(), /data\.securityScheme = "magic": lets nobody in/)
  const home = temporaryHome(t, { 'apis/A/api.yaml': `${HEAD}  securityScheme: [magic]\n` })
  const { apis, faults } = new ApiProjects(home).load()
  assert.deepEqual(apis, [])
  assert.match(describe(faults[0]!), /expected oauth2, basic_auth, api_key, mutualssl/)
})

test('a field for credentials has a name of its own', t => {
  for (const name of ['Host', 'X Auth', '"X-Auth\\r\\nA"', 'Content-Length']) {
    const home = temporaryHome(t, { 'apis/A/api.yaml': `${HEAD}  authorizationHeader: ${name}\n` })
    const { apis, faults } = new ApiProjects(home).load()
    assert.deepEqual([apis.length, faults.length], [0, 1], name)
  }
})

test('roles of scopes come from the project, else from the flows of its document', t => {
  const scope = '{scope: {name: read, bindings: [clerk, boss]}, shared: false}'
  const own = `  scopes: [${scope}, {scope: {name: open, bindings: []}}, {scope: {}}]\n`
  assert.deepEqual(accessPlan(load(t, HEAD + own).api).scopeRoles, { read: ['clerk', 'boss'], open: [] })
  const flows =
    '{implicit: {authorizationUrl: "https://a.example", scopes: {}, x-scopes-bindings: {read: "clerk,boss"}}}'
  const schemes = `components: {securitySchemes: {default: {type: oauth2, flows: ${flows}}}}\n`
  assert.deepEqual(accessPlan(load(t, HEAD + OPERATIONS, DOCUMENT + schemes).api).scopeRoles, {
    read: ['clerk', 'boss'],
  })
})

test('an API is open on purpose with securityScheme [none] alone; beside another scheme it is a fault', t => {
  const { api } = load(t, `${HEAD}  securityScheme: [none]\n`)
  assert.deepEqual(accessPlan(api).schemes, [])
  assert.deepEqual(accessPlan(load(t, HEAD).api).schemes, ['oauth2'])
  const home = temporaryHome(t, { 'apis/A/api.yaml': `${HEAD}  securityScheme: [oauth2, none]\n` })
  const { apis, faults } = new ApiProjects(home).load()
  assert.deepEqual(apis, [])
  assert.match(describe(faults[0]!), /data\.securityScheme = "none": stands for no scheme at all, and others are named/)
})
