/** Access settings of projects and documents, and warnings for policies that have no effect. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type ApiAccess, type ApiDefinition, type HardLimits, NO_HARD_LIMITS } from '../../src/apis/api-definition.ts'
import { ApiProjects } from '../../src/apis/api-projects.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { API_OF_BOTH_KINDS as HEAD } from './api-text.ts'
import { accessPlan } from '../../src/plan/auth-planning.ts'
import { temporaryHome } from '../config/temporary-home.ts'

const DOCUMENT = `openapi: 3.0.3
info: {title: A, version: "1"}
paths: {/a: {get: {responses: {"200": {description: ok}}}}}
`
const OPERATIONS = '  operations: [{target: /a, verb: GET}]\n'
const NO_ACCESS_KEYS: ApiAccess = {
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
  const { apis, errors, warnings } = new ApiProjects(home).load()
  assert.deepEqual(errors, [])
  return { api: apis[0]!, said: warnings.map(it => formatDiagnostic(it).replaceAll(`${home}/apis/A/`, '')) }
}

/** [added to api.yaml, access settings]. */
const ACCESS: readonly (readonly [yaml: string, access: ApiAccess])[] = [
  ['', NO_ACCESS_KEYS],
  [
    '  provider: admin\n  policies: [Gold, "10", {odd: 1}]\n  apiThrottlingPolicy: 50KPerMin',
    { ...NO_ACCESS_KEYS, provider: 'admin', plans: ['Gold', '10'], tier: '50KPerMin' },
  ],
  [
    '  provider: null\n  policies: null\n  authorizationHeader: Authorization\n  securityScheme: [oauth2]',
    { ...NO_ACCESS_KEYS, authHeader: 'Authorization', securitySchemes: ['oauth2'] },
  ],
  ['  securityScheme: [none]', { ...NO_ACCESS_KEYS, securitySchemes: ['none'] }],
]

for (const [yaml, access] of ACCESS) {
  test(`access settings of a project with ${JSON.stringify(yaml.trim())}`, t => {
    const { api, said } = load(t, `${HEAD}${yaml}\n`)
    assert.deepEqual(api.access, access)
    assert.deepEqual(said, [])
  })
}

/** [maxTps of api.yaml, the hard limits]. */
const HARD_LIMITS: readonly (readonly [maxTps: string, limits: HardLimits])[] = [
  ['{production: 100, sandbox: null}', { production: { limit: 100, unit: 'sec' }, sandbox: null }],
  ['{production: -1, sandbox: 0}', NO_HARD_LIMITS],
  [
    '{production: 5, productionTimeUnit: MINUTE, sandbox: "7", sandboxTimeUnit: hours}',
    { production: { limit: 5, unit: 'min' }, sandbox: { limit: 7, unit: 'hour' } },
  ],
]

for (const [maxTps, limits] of HARD_LIMITS) {
  test(`issue 16: maxTps ${maxTps} is the hard limit of a key type`, t => {
    const { api, said } = load(t, `${HEAD}  maxTps: ${maxTps}\n`)
    assert.deepEqual([api.hardLimits, said], [limits, []])
  })
}

/** [added to api.yaml, the key that a warning names; '' for no warning]. */
const WITHOUT_EFFECT: readonly (readonly [yaml: string, key: string])[] = [
  ['maxTps: {production: 100, sandbox: null}', ''],
  ['maxBackendTps: 100', 'data.maxBackendTps = "100"'],
  ['maxTps: {production: null}', ''],
  ['enableSchemaValidation: "False"', ''],
  ['threatProtectionPolicies: {list: []}', ''],
  ['apiPolicies: {request: [], response: []}', ''],
  ['operations: [{target: /a, verb: GET, operationPolicies: {request: [], response: [], fault: []}}]', ''],
]

for (const [yaml, key] of WITHOUT_EFFECT) {
  test(`{${yaml}} is deployed ${key === '' ? 'without' : 'with'} a warning`, t => {
    const { said } = load(t, `${HEAD}  ${yaml}\n`)
    const keys = said.map(text => text.replace(/^api\.yaml:11: (.*): has no effect \(.*\)$/, '$1'))
    assert.deepEqual(keys, key === '' ? [] : [key])
  })
}

test('access settings of the project win over those of its document', t => {
  const more = 'x-wso2-auth-header: X-Doc\nx-wso2-application-security: {security-types: [api_key]}\n'
  const own = '  authorizationHeader: X-Own\n'
  const { api, said } = load(t, HEAD + own + OPERATIONS, DOCUMENT + more)
  assert.deepEqual(api.access, { ...NO_ACCESS_KEYS, authHeader: 'X-Own', securitySchemes: ['api_key'] })
  assert.deepEqual(said, [])
})

/** [securityScheme, schemes, whether a certificate is required, whether another scheme is required]. */
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

for (const [written, schemes, requiresCertificate, requiresOther] of SCHEMES) {
  test(`securityScheme: ${written} means ${schemes.join(', ')}`, t => {
    const { api, said } = load(t, `${HEAD}  securityScheme: ${written}\n`)
    const access = accessPlan(api)
    assert.deepEqual(
      [access.schemes, access.requiresCertificate, access.requiresOther],
      [schemes, requiresCertificate, requiresOther],
    )
    assert.deepEqual(said, [])
  })
}

test('an unknown scheme is a warning beside a known one, and an error alone', t => {
  const { api, said } = load(t, `${HEAD}  securityScheme: [oauth2, magic]\n`)
  assert.deepEqual(accessPlan(api).schemes, ['oauth2'])
  assert.match(said.join(), /data\.securityScheme = "magic": is no known scheme and admits no client/)
  const home = temporaryHome(t, { 'apis/A/api.yaml': `${HEAD}  securityScheme: [magic]\n` })
  const { apis, errors } = new ApiProjects(home).load()
  assert.deepEqual(apis, [])
  assert.match(formatDiagnostic(errors[0]!), /expected oauth2, basic_auth, api_key, mutualssl/)
})

test('a header for credentials cannot be one that has another meaning', t => {
  for (const name of ['Host', 'X Auth', '"X-Auth\\r\\nA"', 'Content-Length']) {
    const home = temporaryHome(t, { 'apis/A/api.yaml': `${HEAD}  authorizationHeader: ${name}\n` })
    const { apis, errors } = new ApiProjects(home).load()
    assert.deepEqual([apis.length, errors.length], [0, 1], name)
  }
})

test('roles of scopes come from the project, or else from the OAuth2 flows of its document', t => {
  const scope = '{scope: {name: read, bindings: [clerk, boss]}, shared: false}'
  const own = `  scopes: [${scope}, {scope: {name: open, bindings: []}}]\n`
  assert.deepEqual(accessPlan(load(t, HEAD + own).api).scopeRoles, { read: ['clerk', 'boss'], open: [] })
  const flows =
    '{implicit: {authorizationUrl: "https://a.example", scopes: {}, x-scopes-bindings: {read: "clerk,boss"}}}'
  const schemes = `components: {securitySchemes: {default: {type: oauth2, flows: ${flows}}}}\n`
  assert.deepEqual(accessPlan(load(t, HEAD + OPERATIONS, DOCUMENT + schemes).api).scopeRoles, {
    read: ['clerk', 'boss'],
  })
})

test('securityScheme [none] opens an API; beside another scheme it is an error', t => {
  const { api } = load(t, `${HEAD}  securityScheme: [none]\n`)
  assert.deepEqual(accessPlan(api).schemes, [])
  assert.deepEqual(accessPlan(load(t, HEAD).api).schemes, ['oauth2'])
  const home = temporaryHome(t, { 'apis/A/api.yaml': `${HEAD}  securityScheme: [oauth2, none]\n` })
  const { apis, errors } = new ApiProjects(home).load()
  assert.deepEqual(apis, [])
  assert.match(
    formatDiagnostic(errors[0]!),
    /data\.securityScheme = "none": means that no scheme is asked for, and others are named/,
  )
})
