/** Loading the APIs of a home: gateway environments and labels, and senders for WebSocket backends. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_ENDPOINT_SETTINGS, NO_ENDPOINTS } from '../../src/apis/api-definition.ts'
import { loadApis, missingSender } from '../../src/apis/api-loading.ts'
import { ApiProjects } from '../../src/apis/api-projects.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { PLAIN_DEFINITION } from '../harness/api-plan.ts'
import { API_OF_BOTH_KINDS as API } from './api-text.ts'
import { temporaryHome } from '../config/temporary-home.ts'

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

/** [deployment.toml, production endpoints, sandbox endpoints, key type of a request without a key, hosts, warnings]. */
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
  // The addresses of an environment belong together, and so do the four of a virtual host.
  [environment('Default', 'sandbox').replace('Gw.', 'V.'), 0, 1, 'SANDBOX', 'v.example,w.example', 0],
  [
    `${environment('Default', 'sandbox') + VIRTUAL}http_endpoint = "http://plain.v.example"\n` +
      'ws_endpoint = "ws://ws.v.example:9099"\nwss_endpoint = "wss://v.example:8099"\n',
    ...([0, 1, 'SANDBOX', 'v.example,plain.v.example,ws.v.example', 0] as const),
  ],
  [
    `${environment('Default', 'sandbox') + VIRTUAL + environment('Other', 'production')}${labels('Default', 'Other')}`,
    ...([1, 1, 'PRODUCTION', 'v.example', 0] as const),
  ],
  [environment('Default', 'sandbox') + VIRTUAL + environment('Other', 'production'), 0, 1, 'SANDBOX', 'v.example', 0],
  // The labels name no environment, so all environments count.
  [environment('Other', 'sandbox') + VIRTUAL, 0, 1, 'SANDBOX', 'v.example', 0],
]

/** [address of the virtual host, whether its path is warned of]. */
const CONTEXTS: readonly (readonly [address: string, hasWarning: boolean])[] = [
  ['https://v.example', false],
  ['https://v.example:8253/', false],
  ['https://v.example:8253/base', true],
]

for (const [address, hasWarning] of CONTEXTS) {
  test(`a virtual host at ${address} gives ${hasWarning ? 'a' : 'no'} warning of a path that APIs do not get`, t => {
    const toml = environment('Default', 'hybrid') + VIRTUAL.replace('https://v.example:8253/base', address)
    const { warnings } = loadConfiguration(temporaryHome(t, { 'deployment.toml': toml }), [])
    assert.equal(warnings.length, hasWarning ? 1 : 0, warnings.join())
    if (hasWarning) assert.match(warnings[0]!, /virtual_host\[0\]\.https_endpoint = .*the load balancer in front/)
  })
}

for (const [toml, production, sandbox, keyType, hosts, warnings] of HOMES) {
  test(`hosts and endpoints of an API with ${JSON.stringify(toml)}`, async t => {
    const home = temporaryHome(t, {
      'deployment.toml': toml,
      'apis/A/api.yaml': API,
      'apis/A/deployment_environments.yaml': DEPLOYED,
    })
    const { configuration } = loadConfiguration(home, [])
    const loaded = await loadApis(new ApiProjects(home), configuration, true, new Map())
    const [api] = loaded.apis
    assert.deepEqual(
      [api?.endpoints.endpoints.length, api?.sandbox.endpoints.length, api?.keyType, api?.hosts.join()],
      [production, sandbox, keyType, hosts],
    )
    assert.deepEqual([loaded.errors, loaded.warnings.length], [[], warnings])
  })
}

test('an API whose host no address of an environment has is an error, and not served', async t => {
  const home = temporaryHome(t, {
    'deployment.toml': environment('Default', 'hybrid'),
    'apis/A/api.yaml': API,
    'apis/A/deployment_environments.yaml': DEPLOYED,
  })
  const loaded = await loadApis(new ApiProjects(home), loadConfiguration(home, []).configuration, true, new Map())
  assert.deepEqual([loaded.apis, loaded.warnings], [[], []])
  assert.match(JSON.stringify(loaded.errors), /deploymentVhost.*v\.example.*is the host of no address/)
})

const WSS = ['wss.sender.enable=true', 'wss.sender.trust_store.location=t.p12', 'wss.sender.trust_store.password=x']

for (const [url, enabled, missing] of [
  ['http://a', [], ''],
  ['https://a', [], ''],
  ['ws://a', [], 'transport.ws'],
  ['ws://a', ['ws.sender.enable=true'], ''],
  ['ws://a', WSS, 'transport.ws'],
  ['wss://a', ['ws.sender.enable=true'], 'transport.wss'],
  ['wss://a', WSS, ''],
] as const) {
  const outcome = missing === '' ? 'deployed' : 'not deployed'
  test(`an API with a backend at ${url} and ${enabled[0] ?? 'no sender'} is ${outcome}`, t => {
    const sets = enabled.map(set => `transport.${set}`)
    const { configuration } = loadConfiguration(temporaryHome(t, { 'deployment.toml': '' }), sets)
    const endpoints = [{ url, settings: DEFAULT_ENDPOINT_SETTINGS }]
    const api = {
      name: 'A',
      context: '/a',
      version: '1',
      isDefaultVersion: false,
      ...PLAIN_DEFINITION,
      endpoints: NO_ENDPOINTS,
    } as const
    const group = { kind: 'single', algorithm: 'round_robin', failsOver: false, endpoints } as const
    for (const both of [{ endpoints: group }, { sandbox: group }]) {
      const diagnostic = missingSender({ ...api, ...both }, configuration)
      const expected = missing === '' ? [undefined, undefined] : ['API A 1', `set ${missing}.sender.enable = true`]
      assert.deepEqual([diagnostic?.where, diagnostic?.hint], expected)
    }
  })
}
