/** Files in the style of the reference platform load, with few warnings about inert keys. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { examine } from '../../src/config/load.ts'
import type { Resolution } from '../../src/config/resolve.ts'
import { temporaryHome } from './temporary-home.ts'

const FOLDER = join(import.meta.dirname, 'reference-homes')
const CONF = 'repository/conf'

process.env.NODE_IP = '10.0.1.11'
process.env.ADMIN_PASSWORD = 'admin-pw'
process.env.PROXY_PASSWORD = 'proxy-pw'

/** A sample file in the layout of the platform. */
function resolved(t: TestContext, name: string): Resolution & { readonly home: string } {
  const text = readFileSync(join(FOLDER, `${name}.toml`), 'utf8')
  const home = temporaryHome(t, { [`${CONF}/deployment.toml`]: text, [`${CONF}/shared-db-password`]: 'db-pw\n' })
  return { ...examine(home, [], join(home, 'data')), home }
}

const FILES: readonly (readonly [name: string, unknown: readonly string[], warnings: number])[] = [
  [
    'all-in-one',
    [
      'apim.gateway.environment[0].gateway_type',
      'apim.gateway.environment[0].wss_endpoint',
      'apim.analytics.auth_token',
      'apim.key_manager.enable_lightweight_apikey_generation',
      'event_handler',
      'service_provider',
      'database.local',
      'event_listener',
      'event_listener.properties',
    ],
    24,
  ],
  ['gateway-worker', [], 32],
]

for (const [name, strangers, most] of FILES) {
  test(`a file in the style of the reference platform loads: ${name}`, t => {
    const { errors, unknown, warnings, home } = resolved(t, name)
    assert.deepEqual(errors.map(formatDiagnostic), [])
    // Unknown keys by name; an unknown section is one warning.
    assert.deepEqual(
      unknown.map(({ key }) => key),
      strangers,
    )
    assert.ok(warnings.length <= most, `${warnings.length} lines of warnings`)
    for (const { where } of [...unknown, ...warnings]) assert.ok(where.startsWith(join(home, CONF, 'deployment.toml:')))
  })
}

/** Forms of a key: quoted with dots, nested, below its own header, in single quotes, as a row. */
const VALUES: readonly (readonly [file: string, path: string, value: unknown])[] = [
  ['all-in-one', 'server.base_path', 'https://localhost:9443'],
  ['all-in-one', 'keystore.tls.file_name', 'gateway.jks'],
  ['all-in-one', 'apim.gateway.environment[0].service_url', 'https://localhost:9443/services/'],
  ['all-in-one', 'apim.gateway.environment[0].username', 'admin'],
  ['all-in-one', 'apim.gateway.environment[0].password', 'changeme'],
  ['all-in-one', 'apim.gateway.environment[0].http_endpoint', 'http://localhost:8290'],
  ['all-in-one', 'apim.oauth_config.revoke_endpoint', 'https://localhost:8253/revoke'],
  ['all-in-one', 'apim.oauth_config.allowed_scopes', ['^device_.*', 'openid']],
  ['all-in-one', 'apim.jwt.issuer[0].claim_mapping[1].local_claim', 'http://example.com/claims/org'],
  ['all-in-one', 'apim.jwt.issuer[1].jwks.url', 'https://other.example.com/jwks'],
  ['all-in-one', 'apim.key_manager.pool.max_idle', 100],
  ['all-in-one', 'apim.notification.port', 587],
  ['all-in-one', 'custom_keystore.signing.file_name', 'signing.jks'],
  ['gateway-worker', 'enabled_global_handlers', ['access_logger', 'call_logger']],
  ['gateway-worker', 'synapse_handlers[1].class', 'com.example.gateway.CallLogHandler'],
  ['gateway-worker', 'server.node_ip', '10.0.1.11'],
  ['gateway-worker', 'super_admin.create_admin_account', true],
  ['gateway-worker', 'database.shared_db.password', 'db-pw'],
  ['gateway-worker', 'transport.passthru_http.listener.parameters.port', 8280],
  ['gateway-worker', 'transport.passthru_http.http.socket.timeout', 180_000],
  ['gateway-worker', 'transport.passthru_http.http.user.agent.preserve', true],
  ['gateway-worker', 'transport.passthru_http.http.headers.preserve', ['Content-Type', 'Date']],
  ['gateway-worker', 'transport.passthru_https.listener.parameters.port', 8243],
  ['gateway-worker', 'transport.passthru_https.listener.key_store.password', 'geheim'],
  ['gateway-worker', 'transport.passthru_https.sender.ssl_profile.interval', 600_000],
  ['gateway-worker', 'transport.http.proxy_profile[0].proxy_port', 8080],
  ['gateway-worker', 'transport.http.proxy_profile[0].proxy_password', 'proxy-pw'],
  ['gateway-worker', 'transport.http.secured_proxy_profile[0].target_hosts', ['*']],
  ['gateway-worker', 'transport.ws.sender.enable', true],
  ['gateway-worker', 'transport.ws.sender.parameter.customParameter', 'x'],
  ['gateway-worker', 'transport.wss.sender.trust_store.location', 'client-truststore.jks'],
  ['gateway-worker', 'mediation.synapse.global_timeout_interval', 120_000],
  ['gateway-worker', 'apim.cache.resource.enable', true],
  ['gateway-worker', 'apim.throttling.service_url', 'https://tm.example.com:9444/services/'],
  [
    'gateway-worker',
    'apim.throttling.url_group[1].traffic_manager_urls',
    ['tcp://tm2.example.com:9611', 'tcp://tm3.example.com:9611'],
  ],
  ['gateway-worker', 'qpid.heartbeat.timeout_factor', 3],
]

for (const [file, path, value] of VALUES) {
  test(`a value is read from ${file}: ${path}`, t => {
    const key = resolved(t, file).keys.find(each => each.path === path)
    assert.deepEqual(key?.value, value)
    assert.match(key!.where, /deployment\.toml:\d+$/)
  })
}

test('the file in the home folder is read, and a second one in repository/conf gives a warning', t => {
  const home = temporaryHome(t, {
    'deployment.toml': '[server]\noffset = 1',
    [`${CONF}/deployment.toml`]: '[server]\noffset = 2',
  })
  const { configuration, errors, warnings } = examine(home, [], join(home, 'data'))
  assert.deepEqual(errors, [])
  assert.equal(configuration.server.offset, 1)
  assert.deepEqual(
    warnings.map(warning => formatDiagnostic(warning).replaceAll(home, '~')),
    [`~/${CONF}/deployment.toml: is not read (~/deployment.toml is; keep one of them)`],
  )
})

test('an unreadable file is one error that names it', t => {
  const binary = temporaryHome(t, {})
  writeFileSync(join(binary, 'deployment.toml'), Uint8Array.of(0xff))
  const folder = temporaryHome(t, {})
  mkdirSync(join(folder, 'deployment.toml'))
  const said = [binary, folder].map(home =>
    examine(home, ['nothing', 'no.such=1'], join(home, 'data')).errors.map(diagnostic =>
      formatDiagnostic(diagnostic).replaceAll(home, '~'),
    ),
  )
  assert.deepEqual(said, [
    ['~/deployment.toml: cannot be read: it is not UTF-8 (save it as UTF-8)'],
    ['~/deployment.toml: cannot be read: it is a folder (put a file there)'],
  ])
})
