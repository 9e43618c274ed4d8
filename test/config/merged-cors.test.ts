/** Who gets no credentials because of what `[apim.cors]` says in the place of what an API leaves out. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadApis } from '../../src/primary/api-loading.ts'
import { ApiProjects } from '../../src/config/api-definitions.ts'
import { describe } from '../../src/config/fault.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { temporaryHome } from './temporary-home.ts'

const CREDENTIALS = ', accessControlAllowCredentials: true'
const ANY = ', accessControlAllowOrigins: ["*"]'
const NAMED = ', accessControlAllowOrigins: ["https://a.example"]'
const ALL_NAMED = 'allow_origins = ["https://a.example"]\n'
const ALL_CREDENTIALS = `${ALL_NAMED}allow_credentials = true\n`

/** Keys of [apim.cors], what the API says itself, and what is left out and told; '': nothing. */
const HOMES: readonly (readonly [toml: string, own: string, leftOut: string])[] = [
  ['', CREDENTIALS, 'origins'],
  ['allow_origins = ["https://*"]\n', CREDENTIALS, 'origins'],
  // It counts for what the API leaves out also where it is off for all the others.
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

for (const [toml, own, leftOut] of HOMES) {
  test(`{${own.slice(2)}} beside ${JSON.stringify(toml)}: ${leftOut || 'nothing'} is told to be left out`, t => {
    const api = `type: api
version: v4.3.0
data:
  name: A
  context: /a
  version: "1"
  endpointConfig: {endpoint_type: http, production_endpoints: {url: "http://p"}}
  corsConfiguration: {corsConfigurationEnabled: true${own}}
`
    const home = temporaryHome(t, { 'deployment.toml': `[apim.cors]\n${toml}`, 'apis/A/api.yaml': api })
    const { configuration } = loadConfiguration(home, [])
    const { apis, faults, warnings } = loadApis(new ApiProjects(home), configuration, new Map())
    assert.deepEqual([apis.length, faults], [1, []])
    assert.equal(warnings.length, leftOut === '' ? 0 : 1)
    for (const warning of warnings) {
      const said = describe(warning)
      assert.match(said, new RegExp(`^API A 1: nobody gets credentials .*: its CORS leaves out ${leftOut}, so that`))
    }
  })
}
