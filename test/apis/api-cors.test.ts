/** CORS settings of an API: which are refused, which have no effect, and which come from `[apim.cors]`. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { loadApis } from '../../src/apis/api-loading.ts'
import { type LoadedApis, ApiProjects } from '../../src/apis/api-projects.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { loadConfiguration } from '../harness/configuration.ts'

/** `corsConfiguration` of the API, and the warnings about it. */
const WARNED: readonly (readonly [cors: string, warnings: readonly string[]])[] = [
  ['accessControlAllowCredentials: true, accessControlAllowOrigins: ["https://a.example"]', []],
  ['accessControlAllowCredentials: false, accessControlAllowOrigins: ["*"]', []],
  ['accessControlAllowOrigins: ["*"]', []],
  [
    'accessControlAllowCredentials: true, accessControlAllowOrigins: ["https://a.example", "*"]',
    ['has no effect for the origin "*", which any site can match'],
  ],
  [
    'accessControlAllowCredentials: true, accessControlAllowOrigins: ["https://a.example", "https://*"]',
    ['has no effect for the origin "https://*", which any site can match'],
  ],
  [
    'accessControlAllowCredentials: true, accessControlAllowOrigins: ["null"]',
    ['has no effect for the origin "null", which any site can match'],
  ],
  ['accessControlAllowCredentials: true, accessControlAllowOrigins: ["https://*.example"]', []],
]

function projectWith(cors: string): string {
  return `type: api
version: v4.3.0
data:
  name: A
  context: /a
  version: "1"
  endpointConfig: {endpoint_type: http, production_endpoints: {url: "http://p"}}
  corsConfiguration: {corsConfigurationEnabled: true${cors}}
`
}

function load(t: TestContext, cors: string): LoadedApis {
  return new ApiProjects(temporaryHome(t, { 'apis/A/api.yaml': projectWith(`, ${cors}`) })).load()
}

for (const [cors, expected] of WARNED) {
  test(`{${cors}}: ${expected.join() || 'no warning'}`, t => {
    const { apis, errors, warnings } = load(t, cors)
    assert.deepEqual(errors, [])
    assert.equal(apis.length, 1, 'a warning does not keep the API from being deployed')
    assert.deepEqual(
      warnings.map(({ expected }) => expected),
      expected,
    )
    for (const warning of warnings) assert.match(formatDiagnostic(warning), /api\.yaml:8/)
  })
}

const AT = 'corsConfiguration\\.accessControl'
const NO_NAME = 'expected the name of a method or field'
const TOO_LONG = 'must be at most 2000 characters long'

/** A field, its value, and the error. */
const ERRORS: readonly (readonly [field: string, value: string, error: RegExp])[] = [
  ['AllowMethods', '[GET, "PO ST"]', new RegExp(`${AT}AllowMethods\\[1\\] = "PO ST": ${NO_NAME}`)],
  ['AllowMethods', '["GET,POST"]', new RegExp(`${AT}AllowMethods\\[0\\] = "GET,POST": ${NO_NAME}`)],
  ['AllowMethods', `[${'OPTIONS, '.repeat(300)}]`, new RegExp(`${AT}AllowMethods: ${TOO_LONG}`)],
  ['AllowHeaders', '"X-A, X:B"', new RegExp(`${AT}AllowHeaders = "X:B": ${NO_NAME}`)],
  ['AllowHeaders', `["${'a'.repeat(257)}"]`, new RegExp(NO_NAME)],
  ['ExposeHeaders', '["X-A\\r\\nX-B: 1"]', new RegExp(`${AT}ExposeHeaders\\[0\\] = .*${NO_NAME}`)],
  ['ExposeHeaders', `[${'X-Name23, '.repeat(201)}]`, new RegExp(`${AT}ExposeHeaders: ${TOO_LONG}`)],
]

for (const [field, value, error] of ERRORS) {
  test(`accessControl${field}: ${value.slice(0, 30)} is an error`, t => {
    const { apis, errors } = load(t, `accessControl${field}: ${value}`)
    assert.deepEqual([apis.length, errors.length], [0, 1])
    assert.match(formatDiagnostic(errors[0]!), /api\.yaml:8: /)
    assert.match(formatDiagnostic(errors[0]!), error)
  })
}

/** A list and its number of names: up to the longest line, and in the forms that [apim.cors] takes. */
const NAMES: readonly (readonly [value: string, names: number])[] = [
  ['[]', 0],
  ['[" X-A ", ""]', 1],
  ['"X-A, X-B"', 2],
  [`[${'X-Name23, '.repeat(200)}]`, 200],
]

for (const [value, names] of NAMES) {
  test(`accessControlExposeHeaders: ${value.slice(0, 30)} has ${names} names`, t => {
    const { apis, errors } = load(t, `accessControlExposeHeaders: ${value}`)
    assert.deepEqual(errors, [])
    assert.equal(apis[0]!.cors!.exposedHeaders!.length, names)
  })
}

const CREDENTIALS = ', accessControlAllowCredentials: true'
const ANY = ', accessControlAllowOrigins: ["*"]'
const NAMED = ', accessControlAllowOrigins: ["https://a.example"]'
const ALL_NAMED = 'allow_origins = ["https://a.example"]\n'
const ALL_CREDENTIALS = `${ALL_NAMED}allow_credentials = true\n`

/** Keys of [apim.cors], settings of the API, and the omitted setting that the warning names; '': no warning. */
const MERGED: readonly (readonly [toml: string, own: string, omitted: string])[] = [
  ['', CREDENTIALS, 'origins'],
  ['allow_origins = ["https://*"]\n', CREDENTIALS, 'origins'],
  // [apim.cors] fills in what an API omits even while it is switched off for other APIs.
  ['enable = false\n', CREDENTIALS, 'origins'],
  [ALL_NAMED, CREDENTIALS, ''],
  ['', CREDENTIALS + NAMED, ''],
  ['', '', ''],
  ['', ', accessControlAllowCredentials: false', ''],
  [ALL_CREDENTIALS, '', ''],
  [ALL_CREDENTIALS, ANY, 'credentials'],
  [ALL_CREDENTIALS, NAMED, ''],
  [ALL_CREDENTIALS, `${ANY}, accessControlAllowCredentials: false`, ''],
]

for (const [toml, own, omitted] of MERGED) {
  const outcome = omitted === '' ? 'no warning' : `a warning that ${omitted} come from [apim.cors]`
  test(`{${own.slice(2)}} beside ${JSON.stringify(toml)}: ${outcome}`, async t => {
    const home = temporaryHome(t, { 'deployment.toml': `[apim.cors]\n${toml}`, 'apis/A/api.yaml': projectWith(own) })
    const { configuration } = loadConfiguration(home, [])
    const { apis, errors, warnings } = await loadApis(new ApiProjects(home), configuration, true, new Map())
    assert.deepEqual([apis.length, errors], [1, []])
    assert.equal(warnings.length, omitted === '' ? 0 : 1)
    for (const warning of warnings) {
      const text = `^API A 1: CORS grants no credentials to the origin .*; its ${omitted} come from \\[apim\\.cors\\]`
      assert.match(formatDiagnostic(warning), new RegExp(text))
    }
  })
}
