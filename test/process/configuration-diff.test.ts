/** A new configuration compared with the running one, key by key. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { examine } from '../../src/config/load.ts'
import type { Resolution } from '../../src/config/resolve.ts'
import { diffConfigurations } from '../../src/primary/configuration-diff.ts'
import { temporaryHome } from '../config/temporary-home.ts'

function configured(t: TestContext, text: string): Resolution {
  const home = temporaryHome(t, { 'deployment.toml': text })
  const resolution = examine(home, [], `${home}/data`)
  assert.deepEqual(resolution.errors, [])
  return resolution
}

const HTTP = 'transport.passthru_http.'
const PROXY = '[[transport.http.proxy_profile]]\ntarget_hosts = "*"\nproxy_host = "p"\nproxy_port = 1\n'
const SET = '[transport.passthru_http]\n'
const STORES = 'sender.enable = true\nsender.trust_store.location = "t"\nsender.trust_store.password = '

/** Its default has the port of the management listener. */
const ISSUER = [
  'oauth.oidc.id_token.issuer',
  'https://localhost:9443/oauth2/token',
  'https://localhost:9444/oauth2/token',
] as const

/**
 * [case, running file, new file, changed keys, keys for a restart]; a key with its running and wanted value, null:
 * none.
 */
const CASES: readonly (readonly [
  name: string,
  running: string,
  next: string,
  changed: readonly (readonly [string, unknown, unknown])[],
  restart: readonly (readonly [string, unknown, unknown])[],
])[] = [
  ['no change', '[server]\noffset = 1', '[server]\noffset = 1', [], []],
  ['a live key', '', `${SET}"http.socket.timeout" = 5`, [[`${HTTP}http.socket.timeout`, 180_000, 5]], []],
  ['another spelling of a value', `${SET}"http.socket.timeout" = 5000`, `${SET}"http.socket.timeout" = "5s"`, [], []],
  [
    'a key that takes a restart, with what follows it',
    '',
    '[server]\noffset = 1',
    [],
    [['server.offset', 0, 1], ISSUER],
  ],
  [
    'a key that goes back to its default',
    '[server]\noffset = 1',
    '',
    [],
    [
      ['server.offset', 1, 0],
      [ISSUER[0], ISSUER[2], ISSUER[1]],
    ],
  ],
  ['an inert key', '', `${SET}listener.parameters.WSDLEPRPrefix = "x"`, [], []],
  [
    'a list',
    `${SET}trusted_proxies = "::1"`,
    `${SET}trusted_proxies = ["::1", "10.0.0.0/8"]`,
    [[`${HTTP}trusted_proxies`, ['::1/128'], ['::1/128', '10.0.0.0/8']]],
    [],
  ],
  [
    'a secret',
    `[transport.wss]\n${STORES}"a"`,
    `[transport.wss]\n${STORES}"b"`,
    [['transport.wss.sender.trust_store.password', '(set)', '(set)']],
    [],
  ],
  [
    'a row of a live table',
    '',
    PROXY,
    [
      ['transport.http.proxy_profile[0].target_hosts', null, ['*']],
      ['transport.http.proxy_profile[0].proxy_host', null, 'p'],
      ['transport.http.proxy_profile[0].proxy_port', null, 1],
    ],
    [],
  ],
  [
    'defaults that follow a live key',
    '',
    '[truststore]\nfile_name = "t.p12"',
    [['truststore.file_name', '', 't.p12']],
    [],
  ],
  [
    'defaults that follow what takes a restart',
    `${SET}io_buffer_size = 8192`,
    `${SET}io_buffer_size = 9000`,
    [],
    [[`${HTTP}io_buffer_size`, 8192, 9000]],
  ],
]

for (const [name, before, after, changed, restart] of CASES) {
  test(`difference: ${name}`, t => {
    const [running, next] = [configured(t, before), configured(t, after)]
    const { errors, ...found } = diffConfigurations(running, next)
    const told = (changes: typeof found.changed) => changes.map(({ key, running: was, wanted }) => [key, was, wanted])
    assert.deepEqual([told(found.changed), told(found.restart), errors], [changed, restart, []])
    assert.deepEqual(
      [...found.changed, ...found.restart].map(({ secret }) => secret),
      [...changed, ...restart].map(([, , wanted]) => wanted === '(set)'),
    )
    // A second comparison finds only the keys that wait for a restart.
    const again = diffConfigurations(found, next)
    assert.deepEqual([again.changed, again.restart], [[], found.restart])
    if (restart.length === 0) assert.deepEqual(again.configuration, next.configuration)
    assert.deepEqual(diffConfigurations(found, running).restart, [])
  })
}

test('the merged configuration has the running values of keys that wait, and the new values of others', t => {
  const running = configured(t, `${SET}io_buffer_size = 8192\n[access_log]\nformat = "json"`)
  const next = configured(t, `${SET}io_buffer_size = 9000\n"body.max_bytes" = 7\n[access_log]\nformat = "combined"`)
  const { configuration } = diffConfigurations(running, next)
  const http = configuration['transport.passthru_http']
  assert.deepEqual([http.io_buffer_size, http['body.max_bytes'], http['pipeline.max_bytes']], [8192, 7, 8192])
  assert.equal(configuration.access_log.format, 'json')
})

test('a merged configuration that breaks a rule names both keys', t => {
  const running = configured(t, '')
  const next = configured(t, `${SET}io_buffer_size = 40000\n"pipeline.max_bytes" = 30000`)
  const { errors } = diffConfigurations(running, next)
  assert.equal(errors.length, 1)
  const { where, key, given, expected, hint } = errors[0]!
  assert.match(where, /deployment\.toml:3$/)
  assert.deepEqual([key, given], [`${HTTP}pipeline.max_bytes`, '30000'])
  assert.match(expected, /must not exceed io_buffer_size/)
  assert.equal(hint, `it takes a restart: beside it runs ${HTTP}io_buffer_size = 16384, and 40000 after a restart`)
})
