/** A required key is missing only on nodes whose role reads the section. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { examine } from '../../src/config/load.ts'
import { temporaryHome } from './temporary-home.ts'

const ROW = '[[apim.gateway.environment]]\nname = "a"\n'
const MISSING = ['apim.gateway.environment[0].ws_endpoint', 'apim.gateway.environment[0].https_endpoint']

/** [value of `server.server_role`, keys with errors] */
const CASES: readonly (readonly [role: string, invalid: readonly string[]])[] = [
  ['default', MISSING],
  ['gateway-worker', MISSING],
  ['api-publisher', MISSING],
  ['control-plane', MISSING],
  // Its REST APIs show the environments.
  ['api-key-manager', MISSING],
  ['traffic-manager', []],
  ['no-such-role', ['server.server_role', ...MISSING]],
  ['$ref{apim.gateway.environment[0].name}', ['server.server_role', ...MISSING]],
  ['$ref{apim.gateway.environment[0].ws_endpoint}', [MISSING[0]!, MISSING[1]!]],
]

for (const [role, invalid] of CASES) {
  test(`required keys of a row of [[apim.gateway.environment]] on a node of the role ${role}`, t => {
    const home = temporaryHome(t, { 'deployment.toml': `[server]\nserver_role = "${role}"\n${ROW}` })
    assert.deepEqual(
      examine(home, [], home).errors.map(({ key }) => key),
      invalid,
    )
  })
}
