/** What a project says of CORS and does not get. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiProjects } from '../../src/config/api-definitions.ts'
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

for (const [cors, expected] of SAID) {
  test(`{${cors}}: ${expected.join() || 'nothing is wrong with it'}`, t => {
    const api = `type: api
version: v4.3.0
data:
  name: A
  context: /a
  version: "1"
  endpointConfig: {endpoint_type: http, production_endpoints: {url: "http://p"}}
  corsConfiguration: {corsConfigurationEnabled: true, ${cors}}
`
    const { apis, faults, warnings } = new ApiProjects(temporaryHome(t, { 'apis/A/api.yaml': api })).load()
    assert.deepEqual(faults, [])
    assert.equal(apis.length, 1, 'it is deployed all the same')
    assert.deepEqual(
      warnings.map(({ expected }) => expected),
      expected,
    )
    for (const warning of warnings) assert.match(describe(warning), /api\.yaml:8/)
  })
}
