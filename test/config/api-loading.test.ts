/** What `[[apim.gateway.environment]]` and `gateway_labels` make of the APIs of a home. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadApis } from '../../src/primary/api-loading.ts'
import { ApiProjects } from '../../src/config/api-definitions.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { API_OF_BOTH_KINDS as API } from './api-text.ts'
import { temporaryHome } from './temporary-home.ts'

const DEPLOYED = `type: deployment_environments
data:
  - {deploymentEnvironment: Default, deploymentVhost: v.example}
`

const environment = (name: string, type: string): string => `[[apim.gateway.environment]]
name = "${name}"
type = "${type}"
ws_endpoint = "ws://w.example:9099"
https_endpoint = "https://Gw.example:8253/"
`
const VIRTUAL = `[[apim.gateway.environment.virtual_host]]
https_endpoint = "https://v.example:8253/base"
`
const labels = (...names: readonly string[]): string =>
  `[apim.sync_runtime_artifacts.gateway]\ngateway_labels = ${JSON.stringify(names)}\n`

/** [deployment.toml, production endpoints, sandbox endpoints, what a request counts as, hosts, warnings]. */
const HOMES: readonly (readonly [
  toml: string,
  production: number,
  sandbox: number,
  keyType: string,
  hosts: string,
  warnings: number,
])[] = [
  ['', 1, 1, 'PRODUCTION', '', 0],
  [environment('Default', 'hybrid') + VIRTUAL, 1, 1, 'PRODUCTION', 'v.example', 0],
  [environment('Default', 'production') + VIRTUAL, 1, 0, 'PRODUCTION', 'v.example', 0],
  [environment('Default', 'sandbox') + VIRTUAL, 0, 1, 'SANDBOX', 'v.example', 0],
  [environment('Default', 'sandbox'), 0, 1, 'SANDBOX', 'v.example', 1],
  [environment('Default', 'sandbox').replace('Gw.', 'V.'), 0, 1, 'SANDBOX', 'v.example', 0],
  [
    `${environment('Default', 'sandbox') + VIRTUAL + environment('Other', 'production')}${labels('Default', 'Other')}`,
    ...([1, 1, 'PRODUCTION', 'v.example', 0] as const),
  ],
  [environment('Default', 'sandbox') + VIRTUAL + environment('Other', 'production'), 0, 1, 'SANDBOX', 'v.example', 0],
  // The labels name no environment.
  [environment('Other', 'sandbox') + VIRTUAL, 0, 1, 'SANDBOX', 'v.example', 0],
]

/** [address of the virtual host, whether something is to be said of its path]. */
const CONTEXTS: readonly (readonly [address: string, isTold: boolean])[] = [
  ['https://v.example', false],
  ['https://v.example:8253/', false],
  ['https://v.example:8253/base', true],
]

for (const [address, isTold] of CONTEXTS) {
  test(`${address}: a path there is no part of the paths of APIs${isTold ? ', and that is told' : ''}`, t => {
    const toml = environment('Default', 'hybrid') + VIRTUAL.replace('https://v.example:8253/base', address)
    const { warnings } = loadConfiguration(temporaryHome(t, { 'deployment.toml': toml }), [])
    assert.equal(warnings.length, isTold ? 1 : 0, warnings.join())
    if (isTold) assert.match(warnings[0]!, /virtual_host\[0\]\.https_endpoint = .*whoever stands in front/)
  })
}

for (const [toml, production, sandbox, keyType, hosts, warnings] of HOMES) {
  test(`an API on the gateway of ${JSON.stringify(toml)}`, t => {
    const home = temporaryHome(t, {
      'deployment.toml': toml,
      'apis/A/api.yaml': API,
      'apis/A/deployment_environments.yaml': DEPLOYED,
    })
    const { configuration } = loadConfiguration(home, [])
    const loaded = loadApis(new ApiProjects(home), configuration, new Map())
    const [api] = loaded.apis
    assert.deepEqual(
      [api?.endpoints.endpoints.length, api?.sandbox.endpoints.length, api?.keyType, api?.hosts.join()],
      [production, sandbox, keyType, hosts],
    )
    assert.deepEqual([loaded.faults, loaded.warnings.length], [[], warnings])
  })
}
