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
const NOTHING_SAID: AccessTerms = { provider: '', plans: [], tier: '', authHeader: '', securitySchemes: [] }

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
  ['authorizationHeader: X-Auth', 'data.authorizationHeader = "X-Auth"'],
  ['securityScheme: [oauth2, mutualssl]', 'data.securityScheme = "mutualssl"'],
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

test('credentials for a back end that nobody sends are told of', t => {
  const security = '    endpoint_security: {production: {enabled: true, type: BASIC}, sandbox: {enabled: false}}\n'
  const { said } = load(t, HEAD + security)
  assert.match(said.join(), /^api\.yaml:11: data\.endpointConfig\.endpoint_security\.production\.enabled: is accepted/)
})

test('what the project says of credentials goes before what its document says, and is told once', t => {
  const more = 'x-wso2-auth-header: X-Doc\nx-wso2-application-security: {security-types: [api_key]}\n'
  const own = '  authorizationHeader: X-Own\n'
  const { api, said } = load(t, HEAD + own + OPERATIONS, DOCUMENT + more)
  assert.deepEqual(api.access, { ...NOTHING_SAID, authHeader: 'X-Own', securitySchemes: ['api_key'] })
  assert.equal(said.filter(text => text.includes('not acted on')).length, 2, said.join('\n'))
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
