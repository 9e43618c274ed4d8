/** One file with frequent mistakes: all are found in one run, each with line and hint. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { examine } from '../../src/config/load.ts'
import { temporaryHome } from './temporary-home.ts'

/** [line of the file, message about it] */
const LINES: readonly (readonly [line: string, message?: string])[] = [
  ['hostname = "gw.example.com"', 'hostname: unknown key (did you mean server.hostname? It belongs below [server])'],
  ['[server]'],
  ['offset = 2000'],
  ['mode = "HA"', 'server.mode = "HA": expected one of "single", "ha" (did you mean "ha"?)'],
  ['hostnme = "gw.example.com"', 'server.hostnme: unknown key in [server] (did you mean hostname?)'],
  [
    'health_port = 9000',
    'server.health_port: unknown key in [server] (did you mean management.health_port? It belongs in [management])',
  ],
  [
    'base_path = 2026-11-21',
    'server.base_path = 2026-11-21: expected text in quotes, without control characters (write it in quotes: "2026-11-21")',
  ],
  ['[super_admin]'],
  [
    'username = 4711',
    'super_admin.username = 4711: expected text in quotes, without control characters (write it in quotes: "4711")',
  ],
  ['create_admin_account = "yes"', 'super_admin.create_admin_account = "yes": expected true or false (write true)'],
  ['[transport.passthru_http]'],
  [
    'io_buffer_size = 1024',
    'transport.passthru_http.io_buffer_size = 1024: expected a whole number of bytes, 4096 to 65536 (the default is io_buffer_size = 16384)',
  ],
  [
    'max_open_connections = "5k"',
    'transport.passthru_http.max_open_connections = "5k": expected a whole number of connections, 1 to 10000000, or -1 (unlimited) (the default is max_open_connections = -1)',
  ],
  [
    '"http.socket.timeout" = "three minutes"',
    'transport.passthru_http.http.socket.timeout = "three minutes": expected a whole number of milliseconds, 1 to 86400000, or text such as "30s" (the default is http.socket.timeout = 180000)',
  ],
  [
    'listener = 8280',
    'transport.passthru_http.listener = a value: is a group of keys (write [transport.passthru_http.listener] above its keys)',
  ],
  [
    'keepalive.timeout = { seconds = 5 }',
    'transport.passthru_http.keepalive.timeout = a table: expected a whole number of milliseconds, 1 to 86400000, or text such as "30s" (write one value after an equals sign)',
  ],
  [
    'worker_pool_size_core = 500',
    'transport.passthru_http.worker_pool_size_core = 500: worker_pool_size_core must not exceed worker_pool_size_max (beside it transport.passthru_http.worker_pool_size_max = 400 (default))',
  ],
  [
    '"http.headers.preserve" = [["Date"], ["Server"]]',
    'transport.passthru_http.http.headers.preserve = [["Date"],["Server"]]: expected names of header fields, a list or one text with commas (write one list, without lists in it)',
  ],
  [
    '"correlation.header" = "request id"',
    'transport.passthru_http.correlation.header = "request id": expected the name of a header field (the default is correlation.header = "activityid")',
  ],
  ['[transport.passthru_https]'],
  [
    'listener.parameters.port = 64000',
    'transport.passthru_https.listener.parameters.port = 64000: listener.parameters.port and server.offset must add up to 65535 at most (beside it server.offset = 2000 (F:3))',
  ],
  ['listener.enable = true'],
  [
    '"listener.enable" = true',
    'transport.passthru_https.listener.enable: set twice (it is already set on line 22; quoted and nested spellings name the same key)',
  ],
  ['[transport.ws]'],
  [
    'listener.parameters.port = 8290',
    'transport.ws.listener.parameters.port = 8290: two listeners must not share a port (beside it transport.passthru_http.listener.parameters.port = 8290 (default))',
  ],
  ['[transport.wss]'],
  [
    'sender.enable = true',
    'transport.wss.sender.enable = true: sender.trust_store.password is required where sender.enable is true (beside it transport.wss.sender.trust_store.password = (not set) (default))',
  ],
  ['sender.trust_store.location = "client-truststore.jks"'],
  ['[[logging]]', 'logging: cannot be repeated (write [logging], not [[logging]])'],
  ['level = "debug"'],
  [
    '[transport.http.proxy_profile]',
    'transport.http.proxy_profile: is a list of rows (write [[transport.http.proxy_profile]] above the keys of each row)',
  ],
  [
    '[[transport.http.secured_proxy_profile]]',
    'transport.http.secured_proxy_profile[0].proxy_port: is missing, and every row needs it (expected a whole number, 1 to 65535)',
  ],
  ['target_hosts = ["*"]'],
  ['proxy_host = "proxy.example.com"'],
  ['[access_log]'],
  [
    'path = "$ref{server.hostnam}.log"',
    'access_log.path = "$ref{server.hostnam}.log": there is no key server.hostnam to refer to (did you mean server.hostname?)',
  ],
  ['[management]'],
  [
    'bind_address = "$ref{gateway.address}"',
    'management.bind_address = "$ref{gateway.address}": references run in a circle: management.bind_address -> gateway.address (F:40) -> gateway.host (F:41) -> gateway.address (give one of them a value)',
  ],
  ['[gateway]'],
  ['address = "$ref{gateway.host}"'],
  ['host = "$ref{gateway.address}"'],
  ['[apim.key_manager]'],
  [
    'username = "$env{SLUICE_TEST_NOT_SET}"',
    'apim.key_manager.username = "$env{SLUICE_TEST_NOT_SET}": there is no environment variable SLUICE_TEST_NOT_SET (set it before the start, or write the value here)',
  ],
  [
    'password = "$file{no-such-password}"',
    'apim.key_manager.password = (set): there is no file ~/no-such-password (put it there; relative paths start from the folder of deployment.toml)',
  ],
  ['[apim.oauth_config]'],
  ['allowed_scopes = ["openid"]'],
  [
    'white_listed_scopes = ["^device_.*"]',
    'apim.oauth_config.white_listed_scopes: set twice (it is already set as apim.oauth_config.allowed_scopes (F:46); leave one of them out)',
  ],
  ['[apim.throtling]', 'apim.throtling: unknown section (did you mean [apim.throttling]?)'],
  ['enable_policy_deploy = true'],
]

const FILE = LINES.map(([line]) => line).join('\n')

test('a file with 20 semantic errors gives 20 messages, each with line and hint', t => {
  const home = temporaryHome(t, { 'deployment.toml': FILE })
  const { errors, unknown } = examine(home, [], join(home, 'data'))
  const said = [...errors, ...unknown].map(diagnostic => ({
    line: Number(diagnostic.where.split(':').at(-1)),
    error: diagnostic,
  }))
  const messages = said
    .sort((one, other) => one.line - other.line)
    .map(({ error: diagnostic }) =>
      formatDiagnostic(diagnostic).replaceAll(join(home, 'deployment.toml'), 'F').replaceAll(home, '~'),
    )
  const expected = LINES.flatMap(([, message], index) => (message === undefined ? [] : [`F:${index + 1}: ${message}`]))
  assert.ok(expected.length >= 20)
  assert.deepEqual(messages, expected)
  for (const { hint } of errors) assert.notEqual(hint, '')
})

test('errors come in the order of the file', t => {
  const home = temporaryHome(t, { 'deployment.toml': FILE })
  const { errors, unknown } = examine(home, ['logging.level=loud'], join(home, 'data'))
  for (const listed of [errors, unknown]) {
    const lines = listed.map(({ where }) => (where === '--set' ? LINES.length + 1 : Number(where.split(':').at(-1))))
    assert.deepEqual(
      lines,
      [...lines].sort((one, other) => one - other),
    )
  }
  assert.equal(errors.at(-1)!.where, '--set')
})

const SYNTAX_ERROR = 'not valid TOML: incomplete key-value: cannot find end of key'

test('a syntax error is the only error', t => {
  const home = temporaryHome(t, { 'deployment.toml': `${FILE}\n[server` })
  const { errors, unknown } = examine(home, ['logging.level=loud', 'no.such=1', 'nothing'], join(home, 'data'))
  assert.deepEqual(
    [...errors, ...unknown].map(diagnostic =>
      formatDiagnostic(diagnostic).replaceAll(join(home, 'deployment.toml'), 'F'),
    ),
    [`F:${LINES.length + 1}:2: ${SYNTAX_ERROR} (write KEY = VALUE, and end a header with ]; nothing else was checked)`],
  )
})
