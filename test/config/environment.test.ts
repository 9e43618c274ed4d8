/** Settings from environment variables, which override the file and not `--set`. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { allKeys } from '../../src/config/catalogue.ts'
import { variableName } from '../../src/config/environment.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { FREE_NAME } from '../../src/config/key.ts'
import { examine } from '../../src/config/load.ts'
import type { Resolution } from '../../src/config/resolve.ts'
import { temporaryHome } from './temporary-home.ts'

type Variables = Readonly<Record<string, string>>

function resolved(t: TestContext, toml: string, variables: Variables, sets: readonly string[] = []): Resolution {
  const home = temporaryHome(t, { 'deployment.toml': toml })
  Object.assign(process.env, variables)
  try {
    return examine(home, sets, join(home, 'data'))
  } finally {
    for (const name of Object.keys(variables)) delete process.env[name]
  }
}

const ROW = '[[transport.http.proxy_profile]]\ntarget_hosts = ["*"]\nproxy_host = "a"\nproxy_port = 1\n'

const VALUES: readonly (readonly [variable: string, text: string, path: string, value: unknown, toml?: string])[] = [
  ['SLUICE_SET_SERVER_OFFSET', '10', 'server.offset', 10],
  ['SLUICE_SET_SERVER_HOSTNAME', 'gw.example', 'server.hostname', 'gw.example'],
  ['SLUICE_SET_SERVER_HOSTNAME', '"gw.example"', 'server.hostname', 'gw.example'],
  ['SLUICE_SET_ACCESS_LOG_PATH', '5', 'access_log.path', '5'],
  ['SLUICE_SET_ACCESS_LOG_PATH', '', 'access_log.path', ''],
  ['SLUICE_SET_ACCESS_LOG_PATH', 'x/$ref{server.hostname}', 'access_log.path', 'x/localhost'],
  ['SLUICE_SET_TRANSPORT_PASSTHRU_HTTP_KEEPALIVE_TIMEOUT', '5s', 'transport.passthru_http.keepalive.timeout', 5000],
  [
    'SLUICE_SET_TRANSPORT_PASSTHRU_HTTP_TRUSTED_PROXIES',
    '["10.0.0.0/8"]',
    'transport.passthru_http.trusted_proxies',
    ['10.0.0.0/8'],
  ],
  [
    'SLUICE_SET_TRANSPORT_HTTP_PROXY_PROFILE_0_PROXY_PASSWORD',
    '4711',
    'transport.http.proxy_profile[0].proxy_password',
    '4711',
    `${ROW}proxy_username = "u"`,
  ],
  [
    'SLUICE_SET_TRANSPORT_WS_SENDER_PARAMETER_OWN_NAME',
    'b',
    'transport.ws.sender.parameter.own-name',
    'b',
    '[transport.ws]\nsender.parameter.own-name = "a"',
  ],
  [
    'SLUICE_SET_APIM_OAUTH_CONFIG_WHITE_LISTED_SCOPES',
    'openid',
    'apim.oauth_config.allowed_scopes',
    ['openid'],
    '[apim.oauth_config]\nallowed_scopes = ["a"]',
  ],
]

for (const [variable, text, path, value, toml = ''] of VALUES) {
  test(`a variable sets its key: ${variable}=${text}`, t => {
    const { keys, errors, unknown } = resolved(t, toml, { [variable]: text })
    assert.deepEqual([...errors, ...unknown].map(formatDiagnostic), [])
    const key = keys.find(each => each.path === path)
    assert.deepEqual(key?.value, value)
    assert.equal(key?.where, `environment ${variable}`)
  })
}

test('variables override the file, and --set overrides variables', t => {
  const toml = '[server]\noffset = 1\n[logging]\nlevel = "warn"\n[access_log]\npath = "a"'
  const variables = { SLUICE_SET_LOGGING_LEVEL: 'error', SLUICE_SET_ACCESS_LOG_PATH: 'b' }
  const { configuration } = resolved(t, toml, variables, ['access_log.path=c'])
  assert.equal(configuration.server.offset, 1)
  assert.equal(configuration.logging.level, 'error')
  assert.equal(configuration.access_log.path, 'c')
})

test('a variable sets a custom key that references read', t => {
  const toml = '[own]\nsuffix = "a"\n[access_log]\npath = "x.$ref{own.suffix}"'
  assert.equal(resolved(t, toml, { SLUICE_SET_OWN_SUFFIX: 'b' }).configuration.access_log.path, 'x.b')
})

const SAID: readonly (readonly [variable: string, text: string, said: string, toml?: string])[] = [
  [
    'SLUICE_SET_SERVER_OFSET',
    '10',
    'environment SLUICE_SET_SERVER_OFSET: names no key (did you mean SLUICE_SET_SERVER_OFFSET?)',
  ],
  ['SLUICE_SET_XYZZY', 'geheim', 'environment SLUICE_SET_XYZZY: names no key (`explain` lists the keys)'],
  [
    'SLUICE_SET_TRANSPORT_HTTP_PROXY_PROFILE_0_PROXY_HOST',
    'geheim',
    'environment SLUICE_SET_TRANSPORT_HTTP_PROXY_PROFILE_0_PROXY_HOST: names no key (rows are opened in the file, and numbered from 0)',
  ],
  [
    'SLUICE_SET_SERVER_OFFSET',
    'ten',
    'environment SLUICE_SET_SERVER_OFFSET: server.offset = "ten": expected a whole number, 0 to 64535 (the default is offset = 0)',
  ],
  [
    'SLUICE_SET_TRANSPORT_WSS_SENDER_TRUST_STORE_PASSWORD',
    '$env{SLUICE_TEST_NOT_SET}',
    'environment SLUICE_SET_TRANSPORT_WSS_SENDER_TRUST_STORE_PASSWORD: transport.wss.sender.trust_store.password = (set): there is no environment variable SLUICE_TEST_NOT_SET (set it before the start, or write the value here)',
  ],
  [
    'SLUICE_SET_OWN_A_B',
    'geheim',
    'environment SLUICE_SET_OWN_A_B: names both own.a-b and own.a.b (set them by --set)',
    '[own]\na-b = 1\na.b = 1\n[access_log]\npath = "$ref{own.a-b}$ref{own.a.b}"',
  ],
]

for (const [variable, text, said, toml = ''] of SAID) {
  test(`an invalid variable is reported, an unknown one without its value: ${variable}`, t => {
    const { errors, unknown } = resolved(t, toml, { [variable]: text })
    assert.deepEqual([...errors, ...unknown].map(formatDiagnostic), [said])
  })
}

test('no two keys share a variable', () => {
  const spellings = allKeys().flatMap(({ section, path, definition }) => [
    { path, variable: variableName(path) },
    ...definition.aliases.map(alias => ({ path, variable: variableName(`${section}.${alias}`) })),
  ])
  const named = spellings.filter(({ path }) => !path.includes(FREE_NAME))
  const clashes = [...Map.groupBy(named, ({ variable }) => variable).values()].filter(
    listed => new Set(listed.map(({ path }) => path)).size > 1,
  )
  assert.deepEqual(clashes, [])
})
