/** Credentials for backends: read, expanded, and never shown in a diagnostic. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { ApiProjects } from '../../src/apis/api-projects.ts'
import type { EndpointCredentials } from '../../src/apis/api-definition.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { backendTokenPlans, credentialPlans } from '../../src/plan/backend-planning.ts'
import { API_OF_BOTH_KINDS as HEAD } from './api-text.ts'
import { temporaryHome } from '../config/temporary-home.ts'

const SECRET = 'planted-secret'
process.env.SLUICE_TEST_BACKEND = `${SECRET}-of-env`

function load(t: TestContext, security: string, files: Readonly<Record<string, string>> = {}) {
  const operations = '  operations: [{target: /a, verb: GET}]\n'
  const yaml = `${HEAD}    endpoint_security: ${security}\n${operations}`
  const home = temporaryHome(t, { 'apis/A/api.yaml': yaml, ...files })
  const projects = new ApiProjects(home)
  const { apis, errors, warnings } = projects.load()
  return { projects, home, api: apis[0], said: [...errors, ...warnings].map(formatDiagnostic) }
}

const OAUTH = {
  kind: 'oauth2',
  tokenUrl: 'https://as.test/token',
  clientId: 'me',
  clientSecret: SECRET,
  scopes: ['a', 'b'],
  parameters: { resource: 'https://b.test' },
} as const
const OAUTH_YAML = [
  'type: OAUTH, grantType: CLIENT_CREDENTIALS, tokenUrl: "https://as.test/token", clientId: me',
  `clientSecret: ${SECRET}, scopes: [a, b]`,
].join(', ')

const READ: readonly (readonly [yaml: string, production: EndpointCredentials | null])[] = [
  ['{production: {enabled: false, type: BASIC, username: u}}', null],
  ['{production: {enabled: true, type: NONE}}', null],
  [
    `{production: {enabled: true, type: BASIC, username: u, password: ${SECRET}}}`,
    { kind: 'basic', username: 'u', password: SECRET },
  ],
  [
    '{production: {enabled: "True", type: basic, username: u, password: $env{SLUICE_TEST_BACKEND}}}'.replace(
      /(\$env\{.*?\})/,
      '"$1"',
    ),
    { kind: 'basic', username: 'u', password: `${SECRET}-of-env` },
  ],
  [
    '{production: {enabled: true, type: BASIC, username: u, password: "$file{secret.txt}"}}',
    { kind: 'basic', username: 'u', password: `${SECRET}-of-file` },
  ],
  [`{production: {enabled: true, ${OAUTH_YAML}, customParameters: {resource: "https://b.test"}}}`, OAUTH],
  [
    `{production: {enabled: true, ${OAUTH_YAML}, customParameters: '{"resource":"https://b.test","grant_type":"x"}'}}`,
    OAUTH,
  ],
]

for (const [yaml, production] of READ) {
  test(`credentials of ${yaml}`, t => {
    const { api, said } = load(t, yaml, { 'apis/A/secret.txt': `${SECRET}-of-file\n` })
    assert.deepEqual([api?.credentials, said], [{ production, sandbox: null }, []])
  })
}

const WRONG: readonly (readonly [yaml: string, said: RegExp])[] = [
  [`type: BASIC, username: "u:v", password: ${SECRET}`, /must hold no ":"/],
  ['type: BASIC, username: u, password: ""', /production\.password: is missing/],
  ['type: BASIC, username: u, password: null', /production\.password: is missing/],
  ['type: BASIC, username: u, password: "$env{SLUICE_TEST_MISSING}"', /no environment variable SLUICE_TEST_MISSING/],
  ['type: BASIC, username: u, password: "$file{gone.txt}"', /there is no file/],
  ['type: BASIC, username: u, password: "$secret{alias}"', /cannot be used in an API/],
  [OAUTH_YAML.replace('CLIENT_CREDENTIALS', 'PASSWORD'), /expected CLIENT_CREDENTIALS/],
  [OAUTH_YAML.replace('https://as.test', 'http://as.test'), /must be https/],
  [OAUTH_YAML.replace('https://as.test', `https://me:${SECRET}@as.test`), /hold no credentials/],
  [`${OAUTH_YAML}, customParameters: "{${SECRET}"`, /expected names with their values/],
  [`${OAUTH_YAML}, customParameters: {a: [${SECRET}]}`, /texts/],
  [`type: DIGEST, username: u, password: ${SECRET}`, /no such credentials/],
]

for (const [yaml, pattern] of WRONG) {
  test(`a diagnostic without the secret for ${yaml}`, t => {
    const { said } = load(t, `{production: {enabled: true, ${yaml}}}`)
    assert.match(said.join('\n'), pattern)
    assert.doesNotMatch(said.join('\n'), new RegExp(SECRET))
  })
}

test('a password from elsewhere is read again although the project has not changed', t => {
  const yaml = '{production: {enabled: true, type: BASIC, username: u, password: "$env{SLUICE_TEST_BACKEND}"}}'
  const { projects } = load(t, yaml)
  process.env.SLUICE_TEST_BACKEND = `${SECRET}-anew`
  const { credentials } = projects.load().apis[0]!
  assert.deepEqual(credentials.production, { kind: 'basic', username: 'u', password: `${SECRET}-anew` })
  process.env.SLUICE_TEST_BACKEND = `${SECRET}-of-env`
})

test('reactors get a password as a field value (RFC 7617), and of an OAuth2 client only a key', t => {
  const basic = 'enabled: true, type: BASIC, username: Aladdin, password: "open sesame"'
  const { api } = load(t, `{production: {${basic}}, sandbox: {enabled: true, ${OAUTH_YAML}}}`)
  const plans = credentialPlans(api!)
  assert.deepEqual(plans.production, { kind: 'basic', authorization: 'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==' })
  assert.deepEqual(plans.sandbox, { kind: 'oauth2', key: 'sandbox /a/1' })
  const { kind: _, ...terms } = { ...OAUTH, parameters: {} }
  assert.deepEqual(backendTokenPlans([api!]), [{ key: 'sandbox /a/1', ...terms }])
})

test('a bare document has the credentials in securityConfig of its extensions', t => {
  const config = `{enabled: true, type: Basic, username: u, password: ${SECRET}}`
  const extension = `{urls: ["http://b"], securityConfig: ${config}}`
  const document = `openapi: 3.0.3
info: {title: B, version: "1"}
paths: {/a: {get: {responses: {"200": {description: ok}}}}}
x-wso2-production-endpoints: ${extension}
`
  const { apis } = new ApiProjects(temporaryHome(t, { 'apis/b.yaml': document })).load()
  assert.deepEqual(apis[0]!.credentials.production, { kind: 'basic', username: 'u', password: SECRET })
})
