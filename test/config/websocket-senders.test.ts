/** WebSocket backends and the senders that they need. */
import { PLAIN_DEFINITION } from '../harness/api-plan.ts'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NO_ENDPOINTS } from '../../src/config/api-definition.ts'
import { DEFAULT_SETTINGS } from '../../src/config/endpoint-settings.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { missingSender } from '../../src/config/websocket-senders.ts'
import { temporaryHome } from './temporary-home.ts'

const WSS = ['wss.sender.enable=true', 'wss.sender.trust_store.location=t.p12', 'wss.sender.trust_store.password=x']

for (const [url, on, left] of [
  ['http://a', [], ''],
  ['https://a', [], ''],
  ['ws://a', [], 'transport.ws'],
  ['ws://a', ['ws.sender.enable=true'], ''],
  ['ws://a', WSS, 'transport.ws'],
  ['wss://a', ['ws.sender.enable=true'], 'transport.wss'],
  ['wss://a', WSS, ''],
] as const) {
  test(`an API with a backend at ${url} and ${on[0] ?? 'no sender on'} is ${left === '' ? '' : 'not '}deployed`, t => {
    const sets = on.map(set => `transport.${set}`)
    const { configuration } = loadConfiguration(temporaryHome(t, { 'deployment.toml': '' }), sets)
    const endpoints = [{ url, settings: DEFAULT_SETTINGS }]
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
      const fault = missingSender({ ...api, ...both }, configuration)
      const expected = left === '' ? [undefined, undefined] : ['API A 1', `set ${left}.sender.enable = true`]
      assert.deepEqual([fault?.where, fault?.remedy], expected)
    }
  })
}
