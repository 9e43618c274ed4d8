/** Rules and alternative spellings of keys outside the transports and `[apim.*]`. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { examine } from '../../src/config/load.ts'
import { referencePage } from '../../src/config/reference-page.ts'
import type { Resolution } from '../../src/config/resolve.ts'
import { temporaryHome } from './temporary-home.ts'

function examined(t: TestContext, toml: string): Resolution {
  const home = temporaryHome(t, { 'deployment.toml': toml })
  return examine(home, [], join(home, 'data'))
}

type Rows = readonly (readonly [toml: string, must: string])[]

const ERRORS: Rows = [
  ['[mediation]\nsynapse.core_threads = 200', 'synapse.core_threads must not exceed synapse.max_threads'],
  ['[mediation]\ninbound.max_threads = 10', 'inbound.core_threads must not exceed inbound.max_threads'],
  [
    '[transport.passthru_http]\nsender.http.proxyPort = 8080',
    'sender.http.proxyHost and sender.http.proxyPort must be set together',
  ],
  ['[apim.jwt]\nheader = "Transfer-Encoding"', 'header must not be a field that frames, routes or forwards a message'],
  ['[apim.jwt]\nheader = "X-Forwarded-For"', 'header must not be a field that frames, routes or forwards a message'],
  ['[transport.wss]\nsender.enable = true', 'sender.trust_store.location is required where sender.enable is true'],
  [
    '[apim.workflow]\nservice_url = "http://engine.example/bpmn"\nenable = true',
    'service_url must be https or lead to this machine: it gets passwords',
  ],
  [
    '[apim.workflow]\ncallback_endpoint = "/oauth2/token"\nenable = true',
    'callback_endpoint must not be a path of the key manager or of SCIM',
  ],
]

for (const [toml, must] of ERRORS) {
  test(`a contradiction is an error: ${must}`, t => {
    const { errors } = examined(t, toml)
    assert.equal(errors[0]?.expected, must)
    assert.match(errors[0]!.where, /deployment\.toml:2$/)
  })
}

const WARNINGS: Rows = [
  // Keys of parts that are off.

  [
    '[mediation]\nsynapse.max_threads = 100\nsynapse.threads_queue_length = -1',
    'synapse.max_threads has no effect behind an unbounded queue: bound the queue or raise the core size',
  ],
  [
    '[transport.passthru_https]\nsender.http.nonProxyHosts = ["localhost", ".*.example.com"]',
    'has no effect unless transport.passthru_https.sender.http.proxyHost is set',
  ],
  [
    '[transport.passthru_https]\nlistener.key_store.password = "secret-1"',
    'has no effect unless transport.passthru_https.listener.key_store.file_name is set',
  ],
  ['[transport.http.properties]\nminSpareThreads = "300"', 'minSpareThreads must not exceed maxThreads'],
  [
    '[oauth.token_validation]\nrefresh_token_validity = "10m"',
    'a refresh token that expires before its access token cannot renew it',
  ],
  [
    '[oauth.token_cleanup]\nretain_access_tokens_for_auditing = true\nenable = "false"',
    'has no effect unless oauth.token_cleanup.enable is true',
  ],
  [
    '[oauth.grant_type.client_credentials]\nallow_id_token = true\nenable = false',
    'has no effect unless oauth.grant_type.client_credentials.enable is true',
  ],
  [
    '[user_store.properties]\nReadTimeout = "-1"',
    'ReadTimeout of zero or less waits for ever: set the longest wait in milliseconds',
  ],
  [
    '[user_store.properties]\nReadTimeout = -5000',
    'ReadTimeout of zero or less waits for ever: set the longest wait in milliseconds',
  ],
  [
    '[user_store.properties]\nPasswordHashMethod = "MD5"',
    'PasswordHashMethod names a hash that protects no password: choose SHA-256',
  ],
  [
    '[apim.cors]\nallow_credentials = true\nallow_origins = ["null", "https://a.example"]',
    'allow_credentials has no effect for origins that any site can match, such as "null" and "https://*"',
  ],
  [
    '[web_app.control_access]\nallow = "10.0.0.1, 10.1.0.0/16"\nenable = false',
    'has no effect unless web_app.control_access.enable is true',
  ],
]

for (const [toml, must] of WARNINGS) {
  test(`a value without effect or without a limit gives a warning: ${must}`, t => {
    const { errors, unknown, warnings } = examined(t, toml)
    assert.deepEqual([...errors, ...unknown], [])
    const said = warnings.filter(({ expected }) => expected === must)
    assert.equal(said.length, 1)
    assert.match(said[0]!.where, /deployment\.toml:2$/)
    assert.doesNotMatch(warnings.map(formatDiagnostic).join(), /secret-1/)
  })
}

test('a flag that is false gives no warning beside a flag that disables it', t => {
  const toml = '[oauth.token_cleanup]\nretain_access_tokens_for_auditing = false\nenable = false'
  assert.deepEqual(
    examined(t, toml).warnings.filter(({ expected }) => expected.includes('no effect')),
    [],
  )
})

test('a number or flag that is documented as text may be written without quotes', t => {
  const toml = `[transport.blocking_https]
request_core_thread_pool_size = 50
request_tcp_no_delay = true
thread_keepalive_time = 5`
  const { errors, configuration } = examined(t, toml)
  const { request_core_thread_pool_size: threads, request_tcp_no_delay: isPrompt } =
    configuration['transport.blocking_https']
  assert.deepEqual([errors, threads, isPrompt], [[], '50', 'true'])
})

test('the defaults keep every rule', t => {
  const { errors, unknown, warnings } = examined(t, '')
  assert.deepEqual([errors, unknown, warnings], [[], [], []])
})

const CHECKER = 'carbon_health_check.data_source_health_checker'
const HTTPS = 'transport.passthru_https'

/** [text of the file, path of the key, value] */
const SPELLINGS: readonly (readonly [toml: string, path: string, value: unknown])[] = [
  ['enabled_global_handlers = ["a", "b"]', 'enabled_global_handlers', ['a', 'b']],
  // The specification's list begins with `listener.hostname`; its other keys may belong to that group too.
  ...['blocking_http', 'blocking_https'].flatMap(side =>
    [
      'origin_server',
      'request_timeout',
      'request_tcp_no_delay',
      'request_core_thread_pool_size',
      'request_max_thread_pool_size',
      'thread_keepalive_time',
      'thread_keepalive_time_unit',
    ].map(key => [`[transport.${side}.listener]\n${key} = "5"`, `transport.${side}.${key}`, '5'] as const),
  ),
  ['[passthru_http]\n"http.socket.timeout" = "3m"', 'transport.passthru_http.http.socket.timeout', 180_000],
  ['[passthru_http]\nhttp.socket.timeout = "3m"', 'transport.passthru_http.http.socket.timeout', 180_000],
  [
    '[transport.passthru_http]\n"listener.parameters.port" = "8280"',
    'transport.passthru_http.listener.parameters.port',
    8280,
  ],
  [
    `[${HTTPS}.listener.parameters]\nHttpsProtocols = "TLSv1.2,TLSv1.3"`,
    `${HTTPS}.listener.protocols`,
    ['TLSv1.2', 'TLSv1.3'],
  ],
  [`[${HTTPS}.listener.parameters]\nPreferredCiphers = "A"`, `${HTTPS}.listener.preferred_ciphers`, ['A']],
  [`[${HTTPS}.listener]\nbind-address = "10.0.0.1"`, `${HTTPS}.listener.parameters.bind_address`, '10.0.0.1'],
  [`[${HTTPS}.listener.ssl_profile]\ninterval = "15000"`, `${HTTPS}.listener.ssl_profile_interval`, 15_000],
  [`[${HTTPS}.sender]\nssl_profile_interval = "15s"`, `${HTTPS}.sender.ssl_profile.interval`, 15_000],
  [`[${HTTPS}.sender.parameters]\nHostnameVerifier = "Strict"`, `${HTTPS}.sender.hostname_verifier`, 'Strict'],
  [`[${HTTPS}.sender]\nhttp.nonProxyHosts = ["a", "b"]`, `${HTTPS}.sender.http.nonProxyHosts`, 'a|b'],
  [
    '[carbon_health_check.data_source_health_checker]\npool_usage_limit_percentage = "90"',
    `${CHECKER}.properties.pool_usage_limit_percentage`,
    90,
  ],
  [
    '[carbon_health_check.health_checker.data_source_health_checker.properties]\npool_usage_limit_percentage = 90',
    `${CHECKER}.properties.pool_usage_limit_percentage`,
    90,
  ],
  [
    '[carbon_health_check.health_checker.data_source_health_checker.properties]\n\'monitored.datasources\' = "jdbc/A,jdbc/B"',
    `${CHECKER}.properties.monitored.datasources`,
    ['jdbc/A', 'jdbc/B'],
  ],
  ['[qpid.heartbeat]\ntimeoutFactor = 3', 'qpid.heartbeat.timeout_factor', 3],
  ['[user_store.properties]\nUserNameAttribute = "uid"', 'user_store.properties.UserNameAtribute', 'uid'],
  ['[user_store.properties]\nUserRolesCacheEnabled = "false"', 'user_store.properties.UserRoleCacheEnabled', false],
  ['[user_store.properties]\nRetryAttempts = ""', 'user_store.properties.RetryAttempts', 0],
  [
    '[user_store.properties]\n\'java.naming.ldap.attributes.binary\' = "objectGuid"',
    'user_store.properties.java.naming.ldap.attributes.binary',
    'objectGuid',
  ],
  ['[custom_keystore.signing]\ntype = "JKS"', 'custom_keystore.signing.type', 'JKS'],
  ['[oauth.grant_type.uma_ticket]\nenable = true', 'oauth.grant_type.uma_ticket.enable', true],
  ['[oauth]\ntimestamp_skew = "5m"', 'oauth.timestamp_skew', 300],
]

for (const [toml, path, value] of SPELLINGS) {
  test(`a spelling is accepted: ${JSON.stringify(toml)}`, t => {
    const { errors, unknown, keys } = examined(t, toml)
    assert.deepEqual([...errors, ...unknown], [])
    assert.deepEqual(keys.find(key => key.path === path)?.value, value)
  })
}

test('a key that is set under both names of a section is an error', t => {
  const { errors } = examined(t, '[passthru_http]\nreactors = 1\n[transport.passthru_http]\nreactors = 2\n')
  assert.deepEqual(
    errors.map(({ key, expected }) => [key, expected]),
    [['transport.passthru_http.reactors', 'set twice']],
  )
})

test('an unknown key under the alternative name of a section is unknown in that section', t => {
  const { unknown } = examined(t, '[passthru_http]\nreactor = 1\n')
  assert.match(unknown[0]!.hint, /did you mean reactors\?/)
})

test('a header without keys requires nothing, and the reference page says so', t => {
  for (const toml of ['[web_app.listener]\n', '[apim.notification]\n[apim.throttling]\n', 'web_app.listener = {}\n']) {
    const { errors, unknown } = examined(t, toml)
    assert.deepEqual([...errors, ...unknown], [], toml)
  }
  assert.match(referencePage(), /a header alone\srequires nothing/)
})

test('class_name of [web_app.listener] is required where the section is used', t => {
  assert.equal(examined(t, '[web_app.listener]\nclass_name = "com.example.L"\n').errors.length, 0)
  assert.match(examined(t, '[web_app.listener]\nclass_name = ""\n').errors[0]!.expected, /^expected text/)
})

const TOP_LEVEL: readonly (readonly [name: string, toml: string, hint: string])[] = [
  ['misspelt there', 'enabled_global_handler = ["a"]', 'did you mean enabled_global_handlers?'],
  [
    'below a header',
    '[server]\nenabled_global_handlers = ["a"]',
    'did you mean enabled_global_handlers? It belongs in the part above every header',
  ],
]

for (const [name, toml, hint] of TOP_LEVEL) {
  test(`a top-level key is unknown ${name}, with a hint`, t => {
    const { errors, unknown } = examined(t, toml)
    assert.deepEqual(errors, [])
    assert.deepEqual(
      unknown.map(diagnostic => diagnostic.hint),
      [hint],
    )
  })
}
