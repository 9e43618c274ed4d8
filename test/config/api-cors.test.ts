/** What a project says of CORS and does not get. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type ApiDefinitions, ApiProjects } from '../../src/config/api-definitions.ts'
import { describe } from '../../src/config/fault.ts'
import { temporaryHome } from './temporary-home.ts'

/** What stands in `corsConfiguration`, and what is warned of. */
const SAID: readonly (readonly [cors: string, warnings: readonly string[]])[] = [
  ['accessControlAllowCredentials: true, accessControlAllowOrigins: ["https://a.example"]', []],
  ['accessControlAllowCredentials: false, accessControlAllowOrigins: ["*"]', []],
  ['accessControlAllowOrigins: ["*"]', []],
  [
    'accessControlAllowCredentials: true, accessControlAllowOrigins: ["https://a.example", "*"]',
    ['nobody gets credentials where the origin is "*"'],
  ],
  [
    'accessControlAllowCredentials: true, accessControlAllowOrigins: ["https://a.example", "https://*"]',
    ['nobody gets credentials where the origin is "https://*"'],
  ],
  [
    'accessControlAllowCredentials: true, accessControlAllowOrigins: ["null"]',
    ['nobody gets credentials where the origin is "null"'],
  ],
  ['accessControlAllowCredentials: true, accessControlAllowOrigins: ["https://*.example"]', []],
]

function load(t: TestContext, cors: string): ApiDefinitions {
  const api = `type: api
version: v4.3.0
data:
  name: A
  context: /a
  version: "1"
  endpointConfig: {endpoint_type: http, production_endpoints: {url: "http://p"}}
  corsConfiguration: {corsConfigurationEnabled: true, ${cors}}
`
  return new ApiProjects(temporaryHome(t, { 'apis/A/api.yaml': api })).load()
}

for (const [cors, expected] of SAID) {
  test(`{${cors}}: ${expected.join() || 'nothing is wrong with it'}`, t => {
    const { apis, faults, warnings } = load(t, cors)
    assert.deepEqual(faults, [])
    assert.equal(apis.length, 1, 'it is deployed all the same')
    assert.deepEqual(
      warnings.map(({ expected }) => expected),
      expected,
    )
    for (const warning of warnings) assert.match(describe(warning), /api\.yaml:8/)
  })
}

const AT = 'corsConfiguration\\.accessControl'
const NO_NAME = 'expected the name of a method or field'
const TOO_LONG = 'must be at most 2000 characters long'

/** The field, its value, and what is wrong with it. */
const FAULTS: readonly (readonly [field: string, value: string, said: RegExp])[] = [
  ['AllowMethods', '[GET, "PO ST"]', new RegExp(`${AT}AllowMethods\\[1\\] = "PO ST": ${NO_NAME}`)],
  ['AllowMethods', '["GET,POST"]', new RegExp(`${AT}AllowMethods\\[0\\] = "GET,POST": ${NO_NAME}`)],
  ['AllowMethods', `[${'OPTIONS, '.repeat(300)}]`, new RegExp(`${AT}AllowMethods: ${TOO_LONG}`)],
  ['AllowHeaders', '"X-A, X:B"', new RegExp(`${AT}AllowHeaders = "X:B": ${NO_NAME}`)],
  ['AllowHeaders', `["${'a'.repeat(257)}"]`, new RegExp(NO_NAME)],
  ['ExposeHeaders', '["X-A\\r\\nX-B: 1"]', new RegExp(`${AT}ExposeHeaders\\[0\\] = .*${NO_NAME}`)],
  ['ExposeHeaders', `[${'X-Name23, '.repeat(201)}]`, new RegExp(`${AT}ExposeHeaders: ${TOO_LONG}`)],
]

for (const [field, value, said] of FAULTS) {
  test(`accessControl${field}: ${value.slice(0, 30)} is a fault`, t => {
    const { apis, faults } = load(t, `accessControl${field}: ${value}`)
    assert.deepEqual([apis.length, faults.length], [0, 1])
    assert.match(describe(faults[0]!), /api\.yaml:8: /)
    assert.match(describe(faults[0]!), said)
  })
}

/** The names, and how many: as long as one line may be, and as [apim.cors] takes them. */
const NAMES: readonly (readonly [value: string, names: number])[] = [
  ['[]', 0],
  ['[" X-A ", ""]', 1],
  ['"X-A, X-B"', 2],
  [`[${'X-Name23, '.repeat(200)}]`, 200],
]

for (const [value, names] of NAMES) {
  test(`accessControlExposeHeaders: ${value.slice(0, 30)} are ${names} names`, t => {
    const { apis, faults } = load(t, `accessControlExposeHeaders: ${value}`)
    assert.deepEqual(faults, [])
    assert.equal(apis[0]!.cors!.exposedHeaders!.length, names)
  })
}
