/** Sections of databases, tokens, environments, caches, throttling and portals: their rules, types and defaults. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { allKeys } from '../../src/config/catalogue.ts'
import type { Fault } from '../../src/config/fault.ts'
import { examine, loadConfiguration } from '../../src/config/load.ts'
import { temporaryHome } from './temporary-home.ts'

const FILE = 'deployment.toml'

/** The line, the key and what is wrong with it. */
function brief(found: readonly Fault[]): readonly string[] {
  return found.map(
    ({ where, key, expected }) => `${where.slice(where.lastIndexOf(FILE) + FILE.length)} ${key}: ${expected}`,
  )
}

function found(t: TestContext, toml: string) {
  const home = temporaryHome(t, { [FILE]: toml })
  const { faults, unknown, warnings } = examine(home, [], join(home, 'data'))
  const isAdvice = ({ expected }: Fault): boolean => !expected.endsWith('accepted and not acted on')
  return { faults: brief([...faults, ...unknown]), warnings: brief(warnings.filter(isAdvice)) }
}

const ISSUER = '[[apim.jwt.issuer]]\nname = "a"\njwks.url = "https://a/jwks"\n'
const ENVIRONMENT =
  '[[apim.gateway.environment]]\nname = "a"\nws_endpoint = "ws://a:9099"\nhttps_endpoint = "https://a/"\n'
const THROTTLING = '[apim.throttling]\nthrottle_decision_endpoints = ["tcp://a:5672"]\n'
const GROUP =
  '[[apim.throttling.url_group]]\ntraffic_manager_urls = "tcp://a:9611"\ntraffic_manager_auth_urls = "ssl://a:9711"\n'
const SERVICE = 'service_url = "https://a/"\n'
const MAIL = '[apim.notification]\nfrom_address = "a@b"\nusername = "a"\npassword = "b"\n'

const URL_OF_TYPE =
  'url must be one of the type: jdbc:mysql: or jdbc:mariadb: for mysql, jdbc:h2: for h2, jdbc:sqlserver: for mssql, jdbc:postgresql: for postgre, jdbc:oracle: for oracle, jdbc:db2: for db2'

const FAULTS: readonly (readonly [toml: string, ...faults: readonly string[]])[] = [
  [
    '[database.apim_db]\ntype = "mysql"\nurl = "jdbc:oracle:thin:@db:1521:x"',
    `:3 database.apim_db.url: ${URL_OF_TYPE}`,
  ],
  ['[database.shared_db]\nurl = "jdbc:mysql://db/x"', `:2 database.shared_db.url: ${URL_OF_TYPE}`],
  [
    '[database.apim_db]\ntype = "postgre"',
    ':2 database.apim_db.type: url or hostname is required unless type is h2, the embedded database',
  ],
  [
    '[apim.jwt]\nheader = "Content-Length"',
    ':2 apim.jwt.header: header must not be a field that frames or routes a message',
  ],
  [
    '[apim.jwt]\nenable = true\nheader = "authorization"\n[apim.oauth_config]\nenable_outbound_auth_header = true',
    ":3 apim.jwt.header: header must not be auth_header where enable_outbound_auth_header passes the client's own on",
  ],
  [`${ISSUER}${ISSUER}`, ':5 apim.jwt.issuer[1].name: no two rows may have the same name'],
  [
    `${ISSUER}[[apim.jwt.issuer.claim_mapping]]\nremote_claim = "a"`,
    ':4 apim.jwt.issuer[0].claim_mapping[0].local_claim: is missing, and every row needs it',
  ],
  [`${ENVIRONMENT}${ENVIRONMENT}`, ':6 apim.gateway.environment[1].name: no two rows may have the same name'],
  [
    `${ENVIRONMENT}[apim.gateway.environment.virtual_host]\nhttp_endpoint = "http://b"`,
    ':6 apim.gateway.environment[0].virtual_host.http_endpoint: virtual_host.https_endpoint is required where the row has a virtual host: the other addresses go by it',
  ],
  [
    '[[apim.gateway.environment]]\n',
    ':1 apim.gateway.environment[0].ws_endpoint: is missing, and every row needs it',
    ':1 apim.gateway.environment[0].https_endpoint: is missing, and every row needs it',
  ],
  [
    '[apim.cache.km_token]\nenable = true',
    ':2 apim.cache.km_token.enable: only one of the token caches may be enabled: what one still remembers the other has forgotten',
  ],
  [
    '[apim.analytics]\nevent_publisher_type = "custom"',
    ':2 apim.analytics.event_publisher_type: event_publisher_impl is required where event_publisher_type is custom',
  ],
  [
    '[[apim.analytics.url_group]]\nanalytics_url = ["tcp://a:1", "tcp://b:1"]',
    ':2 apim.analytics.url_group[0].analytics_url: analytics_url and analytics_auth_url must be as many: the nodes are named in the same order in both',
  ],
  [
    '[apim.key_manager]\npool.init_idle_capacity = 101',
    ':2 apim.key_manager.pool.init_idle_capacity: pool.init_idle_capacity must not exceed pool.max_idle',
  ],
  [
    '[apim.key_manager]\nkey_validation_handler_type = "custom"',
    ':2 apim.key_manager.key_validation_handler_type: key_validation_handler_impl is required where key_validation_handler_type is custom',
  ],
  [
    '[apim.cors]\nallow_credentials = "true"',
    ':2 apim.cors.allow_credentials: allow_origins must name its origins where allow_credentials is true: any page could act for its visitor',
  ],
  [
    '[apim.cors]\nallow_origins = "https://a,*"\nallow_credentials = true',
    ':3 apim.cors.allow_credentials: allow_origins must name its origins where allow_credentials is true: any page could act for its visitor',
  ],
  [
    '[apim.throttling]\nevent_type = "Thrift"',
    ':2 apim.throttling.throttle_decision_endpoints: is missing, and [apim.throttling] needs it',
  ],
  [
    `${THROTTLING}publisher.pool_size = 2000`,
    ':3 apim.throttling.publisher.pool_size: publisher.pool_size must not exceed publisher.max_pool_size',
  ],
  [
    `[server]\nserver_role = "gateway-worker"\n${GROUP}`,
    ':3 apim.throttling.url_group[0].service_url: service_url is required on a gateway-worker, which is no traffic manager, here or once in [apim.throttling]',
  ],
  [
    '[[apim.throttling.url_group]]\nservice_url = "https://a"',
    ':1 apim.throttling.url_group[0].traffic_manager_urls: is missing, and every row needs it',
    ':1 apim.throttling.url_group[0].traffic_manager_auth_urls: is missing, and every row needs it',
  ],
  [
    '[apim.notification]\nhostname = "mail"',
    ':2 apim.notification.from_address: is missing, and [apim.notification] needs it',
    ':2 apim.notification.username: is missing, and [apim.notification] needs it',
    ':2 apim.notification.password: is missing, and [apim.notification] needs it',
  ],
]

for (const [toml, ...faults] of FAULTS) {
  test(`at fault: ${JSON.stringify(toml)}`, t => assert.deepEqual(found(t, toml).faults, faults))
}

const SECONDS = 'expiry_time counts seconds where it has no unit: for minutes write "15m"'

const WARNINGS: readonly (readonly [toml: string, ...warnings: readonly string[]])[] = [
  [
    '[database.apim_db]\ntype = "mysql"\nhostname = "db"\nport = "3306"\nurl = "jdbc:mysql://db/x"',
    ':3 database.apim_db.hostname: hostname has no effect beside url, which wins',
    ':4 database.apim_db.port: port has no effect beside url, which wins',
  ],
  [
    '[database.apim_db]\nhostname = "db"',
    ':2 database.apim_db.hostname: hostname has no effect where type is h2, the embedded database',
  ],
  [
    '[database.apim_db]\npool_options.testOnBorrow = "false"\npool_options.validationInterval = 5',
    ':3 database.apim_db.pool_options.validationInterval: pool_options.validationInterval has no effect while pool_options.testOnBorrow is false',
  ],
  [
    '[database.shared_db]\ntype = "mysql"',
    ':2 database.shared_db.type: url is required unless type is h2, the embedded database',
  ],
  [
    '[apim.jwt]\nencoding = "base64url"\ngenerator_impl = "A"\nclaims_extractor_impl = "B"',
    ':2 apim.jwt.encoding: encoding has no effect beside generator_impl, which wins',
    ':4 apim.jwt.claims_extractor_impl: claims_extractor_impl has no effect while enable_user_claims is false',
  ],
  [
    '[apim.jwt]\nsigning_algorithm = "NONE"',
    ':2 apim.jwt.signing_algorithm: signing_algorithm NONE lets anybody who reaches the backend make such a token: sign it',
  ],
  [
    '[[apim.jwt.issuer]]\nname = "a"',
    ':2 apim.jwt.issuer[0].name: an issuer without jwks.url has no keys, so that none of its tokens can be accepted',
  ],
  [
    '[[apim.jwt.issuer]]\nname = "a"\njwks.url = "http://localhost.evil/jwks"',
    ':3 apim.jwt.issuer[0].jwks.url: jwks.url must be https, or lead to this machine: who can change the keys can make tokens',
  ],
  ['[[apim.jwt.issuer]]\nname = "a"\njwks.url = "http://127.0.0.1:8/jwks"'],
  ['[[apim.jwt.issuer]]\nname = "a"\njwks.url = "http://localhost/jwks"'],
  ['[apim.cache.gateway_token]\nexpiry_time = 15', `:2 apim.cache.gateway_token.expiry_time: ${SECONDS}`],
  ['[apim.cache.resource]\nexpiry_time = "15m"'],
  ['[apim.cache.jwt_claim]\nexpiry_time = 0'],
  [
    '[apim.analytics]\nevent_publisher_impl = "A"',
    ':2 apim.analytics.event_publisher_impl: event_publisher_impl has no effect unless event_publisher_type is custom',
  ],
  [
    '[apim.key_manager]\nkey_validation_handler_impl = "A"',
    ':2 apim.key_manager.key_validation_handler_impl: key_validation_handler_impl has no effect unless key_validation_handler_type is custom',
  ],
  [
    '[apim.http_client]\ndefault_max_per_route = 200',
    ':2 apim.http_client.default_max_per_route: default_max_per_route has no effect beyond max_total',
  ],
  [
    '[apim.devportal]\nenable_application_sharing = true\napplication_sharing_type = "saml"\napplication_sharing_impl = "A"',
    ':3 apim.devportal.application_sharing_type: application_sharing_type has no effect beside application_sharing_impl, which wins',
  ],
  [
    '[apim.devportal]\napplication_sharing_claim = "urn:organization"',
    ':2 apim.devportal.application_sharing_claim: application_sharing_claim has no effect while enable_application_sharing is false',
  ],
  [
    '[apim.cors]\nallow_origins = ["https://a", "https://b/"]',
    ':2 apim.cors.allow_origins: an origin is a scheme, a host and perhaps a port: with a slash behind it, it equals none',
  ],
  [
    `${MAIL}enable_authentication = true`,
    ':5 apim.notification.enable_authentication: enable_authentication sends the password unprotected unless enable_start_tls is true',
  ],
  [
    '[apim.token.revocation]\npersistent_notifier.password = "p"',
    ':2 apim.token.revocation.persistent_notifier.password: persistent_notifier.password has no effect without persistent_notifier.username',
  ],
  [
    '[apim.open_tracer]\nremote_tracer.name = "zipkin"',
    ':2 apim.open_tracer.remote_tracer.name: remote_tracer.name has no effect while remote_tracer.enable is false',
  ],
]

for (const [toml, ...warnings] of WARNINGS) {
  test(`${warnings.length === 0 ? 'no advice' : 'advice'}: ${JSON.stringify(toml)}`, t => {
    assert.deepEqual(found(t, toml), { faults: [], warnings })
  })
}

const FREE: readonly (readonly [name: string, toml: string])[] = [
  ['a group of traffic managers on a node that is one', GROUP],
  ['a gateway whose groups have their own services', `[server]\nserver_role = "gateway-worker"\n${GROUP}${SERVICE}`],
  ['a gateway with one for all', `[server]\nserver_role = "gateway-worker"\n${THROTTLING}${SERVICE}${GROUP}`],
  ['one token cache on, the other off', '[apim.cache]\nkm_token.enable = true\ngateway_token.enable = "false"'],
  ['credentials for origins by name', '[apim.cors]\nallow_credentials = true\nallow_origins = "https://a"'],
  ['a URL in capitals', '[database.apim_db]\ntype = "mysql"\nurl = "JDBC:MariaDB://db/x"'],
]

for (const [name, toml] of FREE) {
  test(`nothing to say of ${name}`, t => assert.deepEqual(found(t, toml), { faults: [], warnings: [] }))
}

const VALUES: readonly (readonly [path: string, given: unknown, value: unknown])[] = [
  ['database.apim_db.port', '3306', 3306],
  ['database.apim_db.pool_options.maxActive', '150', 150],
  ['database.apim_db.pool_options.maxWait', '1m', 60_000],
  ['database.apim_db.url', 'jdbc:h2:./repository/database/X;DB_CLOSE_ON_EXIT=FALSE', undefined],
  ['apim.jwt.enable', 'true', true],
  ['apim.cache.gateway_token.expiry_time', '900s', 900],
  ['apim.cache.km_token.expiry_time', '15m', 900],
  ['apim.cache.tags.expiry_time', '2m', 120_000],
  ['apim.oauth_config.allowed_scopes', ['^device_.*,openid'], ['^device_.*', 'openid']],
  ['apim.oauth_config.allowed_scopes', '^a{1,2}$, openid', ['^a{1,2}$', 'openid']],
  ['apim.cors.allow_methods', 'GET,PUT', ['GET', 'PUT']],
  ['apim.throttling.publisher.keep_alive_time', '200s', 200],
  ['apim.throttling.url_group.blacklist_condition.start_delay', '5m', 300_000],
  ['apim.throttling.blacklist_condition.period', '1h', 3_600_000],
  ['apim.workflow.token_endpoint', 'https://a/token', 'https://a/token'],
  ['apim.workflow.token_endpoint', '/token', '/token'],
  ['apim.open_tracer.remote_tracer.properties.port', '9411', 9411],
  ['indexing.bach_size', '40', 40],
]

const KEYS = new Map(allKeys().map(({ path, definition }) => [path, definition]))

for (const [path, given, value = given] of VALUES) {
  test(`${path} takes ${JSON.stringify(given)}`, () => assert.deepEqual(KEYS.get(path)?.read(given), value))
}

const REFUSED: readonly (readonly [path: string, ...given: readonly unknown[]])[] = [
  ['database.apim_db.type', 'postgresql', 'H2', ''],
  ['database.apim_db.url', 'db.example.com', 'jdbc:', 'jdbc:h2:', 'jdbc:h2:a\nb', 5],
  ['database.apim_db.port', 65_536, -1, 'x'],
  ['apim.jwt.signing_algorithm', 'RS256', 'none'],
  ['apim.jwt.header', 'X JWT', ''],
  ['apim.gateway.environment.type', 'Production'],
  ['apim.gateway.environment.https_endpoint', '', 'http://a', 'a:8243'],
  ['apim.gateway.environment.ws_endpoint', '', 'https://a'],
  ['apim.cache.resource.expiry_time', 0, '15 m', '2d', -1],
  ['apim.analytics.url_group.analytics_url', ['localhost:7612'], 7612],
  ['apim.analytics.url_group.type', 'round_robin'],
  ['apim.cors.allow_methods', ['GET POST'], 'GET\r\nX'],
  ['apim.cors.allow_headers', 'X A'],
  ['apim.throttling.throttle_decision_endpoints', [], '', 'localhost'],
  ['apim.throttling.url_group.decision_connection_type', 'kafka'],
  ['apim.workflow.token_endpoint', 'token', '/', '//evil', 'ftp://a'],
  ['apim.notification.from_address', ''],
]

for (const [path, ...given] of REFUSED) {
  for (const value of given) {
    test(`${path} refuses ${JSON.stringify(value)}`, () => assert.equal(KEYS.get(path)!.read(value), undefined))
  }
}

test('credentials that nobody sets are those of the first account, row by row', t => {
  const toml = `[super_admin]\nusername = "first"\npassword = "word"
${THROTTLING}username = "traffic"\n${SERVICE}${GROUP}receiver_username = "own"
[apim.analytics]\nusername = "events"\n${ENVIRONMENT}`
  const { configuration } = loadConfiguration(temporaryHome(t, { [FILE]: toml }), [])
  const [group] = configuration['apim.throttling.url_group']
  const [environment] = configuration['apim.gateway.environment']
  const { 'apim.analytics': analytics, 'apim.key_manager': keyManager } = configuration
  assert.deepEqual(
    [group!.username, group!.password, group!.receiver_username, group!['jms.username'], group!.service_url],
    ['traffic', 'word', 'own', 'first', 'https://a/'],
  )
  assert.deepEqual([environment!.username, environment!.password], ['first', 'word'])
  assert.deepEqual([keyManager.username, keyManager.password], ['first', 'word'])
  assert.deepEqual(
    [analytics.receiver_username, analytics.store_api_username, analytics.receiver_password],
    ['events', 'events', 'word'],
  )
})

test('lowering the size of a pool never takes a second key', t => {
  const pools = 'publisher.max_idle = 7\npublisher.max_pool_size = 6'
  const toml = `[apim.key_manager]\npool.max_idle = 10\n${THROTTLING}${pools}`
  const { configuration } = loadConfiguration(temporaryHome(t, { [FILE]: toml }), [])
  const { 'apim.key_manager': keyManager, 'apim.throttling': throttling } = configuration
  assert.equal(keyManager['pool.init_idle_capacity'], 10)
  assert.deepEqual([throttling['publisher.init_idle_size'], throttling['publisher.pool_size']], [7, 6])
})
