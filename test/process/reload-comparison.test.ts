/** What another configuration means for one that runs, key by key. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { examine } from '../../src/config/load.ts'
import type { Resolution } from '../../src/config/resolve.ts'
import { compare } from '../../src/primary/reload-comparison.ts'
import { temporaryHome } from '../config/temporary-home.ts'

function configured(t: TestContext, text: string): Resolution {
  const home = temporaryHome(t, { 'deployment.toml': text })
  const resolution = examine(home, [], `${home}/data`)
  assert.deepEqual(resolution.faults, [])
  return resolution
}

const HTTP = 'transport.passthru_http.'
const PROXY = '[[transport.http.proxy_profile]]\ntarget_hosts = "*"\nproxy_host = "p"\nproxy_port = 1\n'
const SET = '[transport.passthru_http]\n'
const STORES = 'sender.enable = true\nsender.trust_store.location = "t"\nsender.trust_store.password = '

/**
 * What runs, what is set now, and what is changed or waits for a restart: key, running value, wanted value. Null is not
 * there.
 */
const CASES: readonly (readonly [
  name: string,
  running: string,
  next: string,
  changed: readonly (readonly [string, unknown, unknown])[],
  restart: readonly (readonly [string, unknown, unknown])[],
])[] = [
  ['nothing', '[server]\noffset = 1', '[server]\noffset = 1', [], []],
  ['a live key', '', `${SET}"http.socket.timeout" = 5`, [[`${HTTP}http.socket.timeout`, 180_000, 5]], []],
  ['another spelling', `${SET}"http.socket.timeout" = 5000`, `${SET}"http.socket.timeout" = "5s"`, [], []],
  ['a key that takes a restart', '', '[server]\noffset = 1', [], [['server.offset', 0, 1]]],
  ['back to a default', '[server]\noffset = 1', '', [], [['server.offset', 1, 0]]],
  ['an inert key', '', `${SET}worker_pool_size_core = 300`, [], []],
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
  test(`compared: ${name}`, t => {
    const [running, next] = [configured(t, before), configured(t, after)]
    const { faults, ...found } = compare(running, next)
    const told = (changes: typeof found.changed) => changes.map(({ key, running: was, wanted }) => [key, was, wanted])
    assert.deepEqual([told(found.changed), told(found.restart), faults], [changed, restart, []])
    assert.deepEqual(
      [...found.changed, ...found.restart].map(({ secret }) => secret),
      [...changed, ...restart].map(([, , wanted]) => wanted === '(set)'),
    )
    // What waits goes on being different, and nothing else is.
    const again = compare(found, next)
    assert.deepEqual([again.changed, again.restart], [[], found.restart])
    if (restart.length === 0) assert.deepEqual(again.configuration, next.configuration)
    assert.deepEqual(compare(found, running).restart, [])
  })
}

test('the mixture has the running values of what waits and the new ones of the rest', t => {
  const running = configured(t, `${SET}io_buffer_size = 8192\n[access_log]\nformat = "json"`)
  const next = configured(t, `${SET}io_buffer_size = 9000\n"body.max_bytes" = 7\n[access_log]\nformat = "combined"`)
  const { configuration } = compare(running, next)
  const http = configuration['transport.passthru_http']
  assert.deepEqual([http.io_buffer_size, http['body.max_bytes'], http['pipeline.max_bytes']], [8192, 7, 8192])
  assert.equal(configuration.access_log.format, 'json')
})

test('a mixture that breaks a rule of the catalogue names both sides of it', t => {
  const running = configured(t, '')
  const next = configured(t, `${SET}io_buffer_size = 40000\n"pipeline.max_bytes" = 30000`)
  const { faults } = compare(running, next)
  assert.equal(faults.length, 1)
  const { where, key, given, expected, remedy } = faults[0]!
  assert.match(where, /deployment\.toml:3$/)
  assert.deepEqual([key, given], [`${HTTP}pipeline.max_bytes`, '30000'])
  assert.match(expected, /must not exceed io_buffer_size/)
  assert.equal(remedy, `it takes a restart: beside it runs ${HTTP}io_buffer_size = 16384, and 40000 after a restart`)
})
