import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { examine } from '../../src/config/load.ts'
import type { Resolution } from '../../src/config/resolve.ts'
import { temporaryHome } from './temporary-home.ts'

const HOME = '\u{24}{home}'
const DATA = '\u{24}{data}'
const HOST = '\u{24}{host}'
const OFFSET = '\u{24}{offset}'

function resolved(t: TestContext, toml: string, home = temporaryHome(t, { 'deployment.toml': toml })): Resolution {
  return examine(home, [], join(home, 'elsewhere'))
}

/** The errors of a text, with `F` for the file. */
function errorsOf(t: TestContext, toml: string): readonly string[] {
  const home = temporaryHome(t, { 'deployment.toml': toml })
  return resolved(t, toml, home).errors.map(diagnostic =>
    formatDiagnostic(diagnostic).replaceAll(join(home, 'deployment.toml'), 'F'),
  )
}

process.env.SLUICE_TEST_TEXT = 'from outside'
process.env.SLUICE_TEST_NUMBER = '17'
process.env.SLUICE_TEST_LIST = '10.0.0.0/8,::1'
process.env.SLUICE_TEST_FLAG = 'true'
process.env.SLUICE_TEST_LEVEL = 'error'
process.env.SLUICE_TEST_PASSWORD = 'p'
process.env.SLUICE_TEST_API_KEY = 'k'

const PATHS: readonly (readonly [given: string, comesTo: string])[] = [
  ['$ref{server.hostname}', 'gw'],
  ['$conf{server.hostname}', 'gw'],
  ['a/$ref{server.hostname}/b-$ref{server.offset}', 'a/gw/b-3'],
  ['$ref{transport.passthru_http.http.headers.preserve}', 'Content-Type'],
  ['$ref{transport.passthru_http.http.headers.preserve}.log', 'Content-Type.log'],
  ['$ref{my.own.key}', 'mine'],
  ['$ref{server.offset}', '3'],
  ['$ref{transport.passthru_http.abort_on_half_close}', 'false'],
  ['$env{SLUICE_TEST_TEXT}', 'from outside'],
  [`${HOST}:${OFFSET}`, 'gw:3'],
  ['$${home}', HOME],
  ['$$ref{server.hostname} and $env{SLUICE_TEST_TEXT}', '$ref{server.hostname} and from outside'],
  ['costs $5 {x}', 'costs $5 {x}'],
]

for (const [given, comesTo] of PATHS) {
  test(`the value of ${given} is ${comesTo}`, t => {
    const toml = `[server]\nhostname = "gw"\noffset = 3\n[my]\nown.key = "mine"\n[access_log]\npath = '${given}'`
    const { configuration, errors } = resolved(t, toml)
    assert.deepEqual(errors, [])
    assert.equal(configuration.access_log.path, comesTo)
  })
}

test('home and data are the folders of the command line', t => {
  const home = temporaryHome(t, {
    'deployment.toml': `[access_log]\npath = "${DATA}/x"\n[server]\nbase_path = "${HOME}"`,
  })
  const { configuration } = resolved(t, '', home)
  assert.equal(configuration.access_log.path, join(home, 'elsewhere', 'x'))
  assert.equal(configuration.server.base_path, home)
})

test('a value that is one reference has the type of the referenced value', t => {
  const { configuration } = resolved(t, '[management]\nhealth_port = "$ref{my.port}"\n[my]\nport = 99')
  assert.equal(configuration.management.health_port, 99)
})

test('numbers and lists may come from variables', t => {
  const { configuration, errors } = resolved(
    t,
    '[server]\noffset = "$env{SLUICE_TEST_NUMBER}"\n[transport.passthru_http]\ntrusted_proxies = ["192.168.0.0/16", "$env{SLUICE_TEST_NUMBER}.0.0.0/8"]',
  )
  assert.deepEqual(errors, [])
  assert.equal(configuration.server.offset, 17)
  assert.deepEqual(configuration['transport.passthru_http'].trusted_proxies, ['192.168.0.0/16', '17.0.0.0/8'])
})

test('a list in one text may come from a variable', t => {
  const { configuration } = resolved(t, '[transport.passthru_http]\ntrusted_proxies = "$env{SLUICE_TEST_LIST}"')
  assert.deepEqual(configuration['transport.passthru_http'].trusted_proxies, ['10.0.0.0/8', '::1/128'])
})

test('a default may refer to another key', t => {
  assert.equal(resolved(t, '[server]\nhostname = "gw"').configuration.server.base_path, 'https://gw:9443')
})

const OWN = `[own]
port = 99
flag = true
seconds = "45s"
list = ["a.example", "b.example"]
text = "10.0.0.0/8, ::1"
number = "17"
name = "gw"
`
const PASSTHRU = '[transport.passthru_http]\n'

const KINDS: readonly (readonly [toml: string, path: string, value: unknown, sets?: readonly string[]])[] = [
  [`${OWN}[management]\nhealth_port = "$ref{own.port}"`, 'management.health_port', 99],
  [`${OWN}[management]\nhealth_port = "$ref{own.number}"`, 'management.health_port', 17],
  [`${OWN}[server]\noffset = "1$ref{own.number}"`, 'server.offset', 117],
  [`${OWN}[qpid.heartbeat]\ntimeout_factor = "$ref{own.number}.5"`, 'qpid.heartbeat.timeout_factor', 17.5],
  [`${OWN}${PASSTHRU}abort_on_half_close = "$ref{own.flag}"`, 'transport.passthru_http.abort_on_half_close', true],
  [
    `${OWN}${PASSTHRU}abort_on_half_close = "$env{SLUICE_TEST_FLAG}"`,
    'transport.passthru_http.abort_on_half_close',
    true,
  ],
  [`${OWN}${PASSTHRU}keepalive.timeout = "$ref{own.seconds}"`, 'transport.passthru_http.keepalive.timeout', 45_000],
  [`${OWN}${PASSTHRU}keepalive.timeout = "$ref{own.number}s"`, 'transport.passthru_http.keepalive.timeout', 17_000],
  [`${OWN}[logging]\nlevel = "$env{SLUICE_TEST_LEVEL}"`, 'logging.level', 'error'],
  [
    `${OWN}${PASSTHRU}trusted_proxies = "$ref{own.text}"`,
    'transport.passthru_http.trusted_proxies',
    ['10.0.0.0/8', '::1/128'],
  ],
  [
    `${OWN}[apim.sync_runtime_artifacts.gateway]\ngateway_labels = "$ref{own.list}"`,
    'apim.sync_runtime_artifacts.gateway.gateway_labels',
    ['a.example', 'b.example'],
  ],
  // An item that refers to a list becomes the items of that list.
  [
    `${OWN}[apim.sync_runtime_artifacts.gateway]\ngateway_labels = ["x", "$ref{own.list}", "$ref{own.name}-1"]`,
    'apim.sync_runtime_artifacts.gateway.gateway_labels',
    ['x', 'a.example', 'b.example', 'gw-1'],
  ],
  [`${OWN}access_log = { path = "$ref{own.name}.log" }`.replace(OWN, ''), 'access_log.path', 'gw.log', ['own.name=gw']],
  [
    `${OWN}[[transport.http.proxy_profile]]\ntarget_hosts = ["$ref{own.list}"]\n` +
      'proxy_host = "$ref{own.name}"\nproxy_port = "$ref{own.number}"',
    'transport.http.proxy_profile[0].proxy_port',
    17,
  ],
  [
    `[transport.http]\nproxy_profile = [{ target_hosts = "*", proxy_host = "$ref{server.hostname}", proxy_port = 1 }]`,
    'transport.http.proxy_profile[0].proxy_host',
    'localhost',
  ],
  [OWN, 'access_log.path', 'gw/17', ['access_log.path=$ref{own.name}/$ref{own.number}']],
  [OWN, 'server.offset', 17, ['server.offset=$ref{own.number}']],
  // An alias, and a row.
  [
    '[apim.oauth_config]\nallowed_scopes = ["s"]\n[access_log]\npath = "$ref{apim.oauth_config.white_listed_scopes}"',
    'apim.oauth_config.allowed_scopes',
    ['s'],
  ],
]

for (const [toml, path, value, sets = []] of KINDS) {
  test(`a reference works in every kind of value: ${path} = ${JSON.stringify(value)}`, t => {
    const home = temporaryHome(t, { 'deployment.toml': toml })
    const { keys, errors } = examine(home, sets, join(home, 'data'))
    const [diagnostic] = errors.filter(each => each.key === path)
    assert.equal(diagnostic === undefined ? '' : formatDiagnostic(diagnostic), '')
    assert.deepEqual(keys.find(key => key.path === path)?.value, value)
  })
}

const SECRETS: readonly (readonly [given: string, isSecret: boolean])[] = [
  ['$env{SLUICE_TEST_TEXT}', false],
  ['$env{SLUICE_TEST_PASSWORD}', true],
  ['x-$env{SLUICE_TEST_API_KEY}', true],
  ['$ref{own.label}', false],
  ['$ref{own.client_secret}', true],
  ['$ref{own.copy}', true],
  ['$ref{super_admin.password}', true],
  ['$secret{alias}', true],
  ['$ref{secrets.alias}', true],
]

for (const [given, isSecret] of SECRETS) {
  test(`${given} is ${isSecret ? 'secret' : 'not secret'}`, t => {
    const own = '[own]\nlabel = "a"\nclient_secret = "b"\ncopy = "$ref{own.client_secret}"\n'
    const toml = `[access_log]\npath = "${given}"\n${own}[super_admin]\npassword = "c"\n[secrets]\nalias = "[d]"`
    const { keys, errors } = resolved(t, toml)
    assert.deepEqual(errors, [])
    assert.equal(keys.find(key => key.path === 'access_log.path')?.secret, isSecret)
  })
}

test('an unknown key that references read gives no warning', t => {
  const toml = '[access_log]\npath = "$ref{own.a}$secret{alias}"\n[own]\na = "a"\n[secrets]\nalias = "[d]"'
  assert.deepEqual(resolved(t, toml).unknown, [])
  const { unknown } = resolved(t, `${toml}\nunused = "[e]"`)
  assert.deepEqual(
    unknown.map(({ key }) => key),
    ['secrets'],
  )
})

test('references that double at every step are an error before they fill the memory', t => {
  const steps = Array.from({ length: 40 }, (_, at) => `t${at} = "$ref{own.t${at + 1}}$ref{own.t${at + 1}}"`)
  const toml = `[access_log]\npath = "$ref{own.t0}"\n[own]\n${steps.join('\n')}\nt40 = "x"`
  const { errors } = resolved(t, toml)
  assert.equal(errors.length, 1)
  assert.match(errors[0]!.expected, /^comes to more than a value may be/)
})

test('too long a chain of references is one error of bounded length', t => {
  const steps = Array.from({ length: 5000 }, (_, at) => `t${at} = "$ref{own.t${at + 1}}"`)
  const { errors } = resolved(t, `[access_log]\npath = "$ref{own.t0}"\n[own]\n${steps.join('\n')}\nt5000 = "x"`)
  assert.equal(errors.length, 1)
  assert.match(errors[0]!.expected, /^references go on for too long: access_log\.path -> own\.t0 .* -> \.\.\. -> /)
  assert.ok(formatDiagnostic(errors[0]!).length < 2000)
})

const MISSING: readonly (readonly [toml: string, ...errors: readonly string[]])[] = [
  [
    '[access_log]\npath = "$ref{server.hostnam}"',
    'F:2: access_log.path = "$ref{server.hostnam}": there is no key server.hostnam to refer to (did you mean server.hostname?)',
  ],
  [
    '[access_log]\npath = "$env{SLUICE_TEST_ABSENT}"',
    'F:2: access_log.path = "$env{SLUICE_TEST_ABSENT}": there is no environment variable SLUICE_TEST_ABSENT (set it before the start, or write the value here)',
  ],
  [
    `[access_log]\npath = "\u{24}{carbon}"`,
    'F:2: access_log.path = "\u{24}{carbon}": there is no property carbon (conf/reference.md lists the properties; another key is $ref{section.key})',
  ],
  [
    '[server]\noffset = "$env{SLUICE_TEST_TEXT}"',
    'F:2: server.offset = "$env{SLUICE_TEST_TEXT}": expected a whole number, 0 to 64535, and it comes to "from outside" (the default is offset = 0)',
  ],
  [
    '[access_log]\npath = "$ref{access_log.path}"',
    'F:2: access_log.path = "$ref{access_log.path}": references run in a circle: access_log.path -> access_log.path (give one of them a value)',
  ],
  [
    '[access_log]\npath = "x$ref{my.a}"\n[my]\na = "$ref{my.b}"\nb = "$ref{my.a}"',
    'F:2: access_log.path = "x$ref{my.a}": references run in a circle: access_log.path -> my.a (F:4) -> my.b (F:5) -> my.a (give one of them a value)',
  ],
  [
    '[access_log]\npath = "$ref{own.a}"\n[own]\na = "$ref{own.b}"\nb = "x$ref{own.none}"',
    'F:2: access_log.path = "$ref{own.a}": there is no key own.none to refer to: access_log.path -> own.a (F:4) -> own.b (F:5) -> own.none (write section.key)',
  ],
  // The default of base_path refers to the host name: the chain begins at the key that is set.
  [
    '[server]\nhostname = "$ref{own.a}"\n[own]\na = "$env{SLUICE_TEST_ABSENT}"',
    'F:2: server.hostname = "$ref{own.a}": there is no environment variable SLUICE_TEST_ABSENT: server.hostname -> own.a (F:4) -> $env{SLUICE_TEST_ABSENT} (set it before the start, or write the value here)',
  ],
  [
    '[access_log]\npath = "$ref{own.a}"\n[management]\nbind_address = "$ref{own.a}"\n[own]\na = "$ref{own.a}"',
    'F:2: access_log.path = "$ref{own.a}": references run in a circle: access_log.path -> own.a (F:6) -> own.a (give one of them a value)',
  ],
  [
    '[own]\npassword = "geheim$ref{own.none}"\n[super_admin]\nusername = "$ref{own.password}"',
    'F:4: super_admin.username = "$ref{own.password}": there is no key own.none to refer to: super_admin.username -> own.password (F:2) -> own.none (write section.key)',
  ],
  [
    '[super_admin]\npassword = "$secret{none}"\nusername = "$secret{kept}"\n[secrets]\nkept = "a8f5=="',
    'F:2: super_admin.password = (set): [secrets] has no none (there is no vault here: write $env{NAME} or $file{PATH})',
    'F:3: super_admin.username = "$secret{kept}": secrets.kept is not plain text in brackets (there is no vault here: write $env{NAME} or $file{PATH})',
  ],
  [
    '[access_log]\npath = "$sys{log.path}"',
    'F:2: access_log.path = "$sys{log.path}": there are no system properties here (write $env{NAME} instead)',
  ],
  [
    '[access_log]\npath = "$env{SLUICE_TEST_ABSENT:default}"',
    'F:2: access_log.path = "$env{SLUICE_TEST_ABSENT:default}": there is no environment variable SLUICE_TEST_ABSENT:default (a default cannot be given here: write $env{SLUICE_TEST_ABSENT}, and set the variable before the start)',
  ],
  [
    '[access_log]\npath = "$env{toString}"',
    'F:2: access_log.path = "$env{toString}": there is no environment variable toString (set it before the start, or write the value here)',
  ],
  // A value that refers to an invalid one is no further error.
  [
    '[server]\nhostname = 5\n[access_log]\npath = "$ref{server.hostname}"',
    'F:2: server.hostname = 5: expected a host name or an IP address (write it in quotes: "5")',
  ],
]

for (const [toml, ...errors] of MISSING) {
  test(`an unresolved reference is one error: ${JSON.stringify(toml)}`, t => {
    assert.deepEqual(errorsOf(t, toml), errors)
  })
}
