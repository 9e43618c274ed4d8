import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ConfigurationErrors } from '../../src/config/diagnostics.ts'
import { type Loaded, loadConfiguration } from '../harness/configuration.ts'
import { temporaryHome } from './temporary-home.ts'

function load(t: TestContext, toml: string, sets: readonly string[] = []): Loaded {
  return loadConfiguration(temporaryHome(t, { 'deployment.toml': toml }), sets)
}

/** Every error as one line, with `F` for the file. */
function errorsOf(t: TestContext, toml: string, sets: readonly string[] = []): readonly string[] {
  const home = temporaryHome(t, { 'deployment.toml': toml })
  try {
    loadConfiguration(home, sets)
  } catch (error) {
    assert.ok(error instanceof ConfigurationErrors)
    return error.message.replaceAll(join(home, 'deployment.toml'), 'F').split('\n')
  }
  return []
}

test('nested and quoted keys have the same values', t => {
  const nested = load(t, '[transport.passthru_http]\nhttp.socket.timeout = 5\nlistener.parameters.port = 1')
  const quoted = load(t, '["transport.passthru_http"]\n"http.socket.timeout" = 5\n"listener.parameters.port" = 1')
  const tables = load(
    t,
    '[transport.passthru_http.http.socket]\ntimeout = 5\n[transport.passthru_http.listener.parameters]\nport = 1',
  )
  assert.equal(nested.configuration['transport.passthru_http']['http.socket.timeout'], 5)
  assert.deepEqual(nested.configuration, quoted.configuration)
  assert.deepEqual(nested.configuration, tables.configuration)
})

test('the file overrides the default, --set the file, and the last --set the others', t => {
  const { configuration, resolved } = load(t, '[server]\noffset = 1\n[logging]\nlevel = "warn"', [
    'logging.level="debug"',
    'logging.level=error',
  ])
  assert.equal(configuration.server.offset, 1)
  assert.equal(configuration.logging.level, 'error')
  const where = new Map(resolved.map(key => [key.path, key.where]))
  assert.match(where.get('server.offset')!, /deployment\.toml:2$/)
  assert.equal(where.get('logging.level'), '--set')
  assert.equal(where.get('server.hostname'), '')
})

const SETS: readonly (readonly [
  argument: string,
  section: 'server' | 'access_log' | 'transport.passthru_http',
  key: string,
  value: unknown,
])[] = [
  ['server.offset=7', 'server', 'offset', 7],
  ['server.hostname=gw.example', 'server', 'hostname', 'gw.example'],
  ['server.hostname="gw.example"', 'server', 'hostname', 'gw.example'],
  ['access_log.path=2026-01-01', 'access_log', 'path', '2026-01-01'],
  ['access_log.path=5', 'access_log', 'path', '5'],
  ['access_log.path=true', 'access_log', 'path', 'true'],
  ['access_log.path=a=b', 'access_log', 'path', 'a=b'],
  ['access_log.path=', 'access_log', 'path', ''],
  [
    'transport.passthru_http.trusted_proxies=10.0.0.0/8,::1',
    'transport.passthru_http',
    'trusted_proxies',
    ['10.0.0.0/8', '::1/128'],
  ],
  [
    'transport.passthru_http.trusted_proxies=["10.0.0.0/8"]',
    'transport.passthru_http',
    'trusted_proxies',
    ['10.0.0.0/8'],
  ],
  ['transport.passthru_http.keepalive.timeout=5s', 'transport.passthru_http', 'keepalive.timeout', 5000],
  ['transport.passthru_http."keepalive.timeout"=6', 'transport.passthru_http', 'keepalive.timeout', 6],
  ['\'transport.passthru_http\'.keepalive."timeout" = 7', 'transport.passthru_http', 'keepalive.timeout', 7],
]

for (const [argument, section, key, value] of SETS) {
  test(`--set sets a value: ${argument}`, t => {
    const { configuration } = load(t, '', [argument])
    assert.deepEqual((configuration[section] as Readonly<Record<string, unknown>>)[key], value)
  })
}

test('--set with a line end sets no second key', t => {
  assert.deepEqual(errorsOf(t, '', ['server.offset=1\n"server.hostname"="x"']).length, 1)
})

test('--set without a key is an error that does not show its text', t => {
  const expected = '--set: expected section.key=value (for example --set server.offset=1)'
  assert.deepEqual(errorsOf(t, '', ['geheim', '=geheim']), [expected, expected])
})

test('a lower io_buffer_size lowers only the defaults that it caps', t => {
  const passthru = load(t, '[transport.passthru_http]\nio_buffer_size = 8000').configuration['transport.passthru_http']
  assert.equal(passthru['header.max_bytes'], 8000)
  assert.equal(passthru['response.header.max_bytes'], 8000)
  assert.equal(passthru['pipeline.max_bytes'], 8000)
  assert.equal(passthru['trailer.max_bytes'], 8000)
  assert.equal(passthru['target.max_bytes'], 8000)
  const raised = load(t, '[transport.passthru_http]\nio_buffer_size = 65536').configuration['transport.passthru_http']
  assert.equal(raised['header.max_bytes'], 16384)
})

const RULES: readonly (readonly [toml: string, expected: string])[] = [
  [
    '[transport.passthru_http]\nheader.max_bytes = 20000',
    'F:2: transport.passthru_http.header.max_bytes = 20000: header.max_bytes must not exceed io_buffer_size: a head is buffered as a whole (beside it transport.passthru_http.io_buffer_size = 16384 (default))',
  ],
  [
    '[transport.passthru_http]\nresponse.header.max_bytes = 20000\nio_buffer_size = 19999',
    'F:2: transport.passthru_http.response.header.max_bytes = 20000: response.header.max_bytes must not exceed io_buffer_size: a head is buffered as a whole (beside it transport.passthru_http.io_buffer_size = 19999 (F:3))',
  ],
  [
    '[transport.passthru_http]\npipeline.max_bytes = 20000',
    'F:2: transport.passthru_http.pipeline.max_bytes = 20000: pipeline.max_bytes must not exceed io_buffer_size, the buffer of a connection (beside it transport.passthru_http.io_buffer_size = 16384 (default))',
  ],
  [
    '[transport.passthru_http]\ntrailer.max_bytes = 20000',
    'F:2: transport.passthru_http.trailer.max_bytes = 20000: trailer.max_bytes must not exceed io_buffer_size, the buffer of a connection (beside it transport.passthru_http.io_buffer_size = 16384 (default))',
  ],
  [
    '[transport.passthru_http]\nheader.max_bytes = 1000\ntarget.max_bytes = 1001',
    'F:3: transport.passthru_http.target.max_bytes = 1001: target.max_bytes must not exceed header.max_bytes: the request target is part of the head (beside it transport.passthru_http.header.max_bytes = 1000 (F:2))',
  ],
  [
    '[transport.passthru_http]\nworker_pool_size_core = 401',
    'F:2: transport.passthru_http.worker_pool_size_core = 401: worker_pool_size_core must not exceed worker_pool_size_max (beside it transport.passthru_http.worker_pool_size_max = 400 (default))',
  ],
  [
    '[transport.passthru_http]\ncorrelation.header = "content-LENGTH"',
    'F:2: transport.passthru_http.correlation.header = "content-LENGTH": correlation.header must not be a field that frames, routes or forwards a message (choose another value)',
  ],
  [
    '[server]\noffset = 60000',
    'F:2: server.offset = 60000: listener.parameters.port and server.offset must add up to 65535 at most (beside it transport.passthru_http.listener.parameters.port = 8290 (default))',
  ],
  [
    '[management]\nhealth_port = 8290',
    'F:2: management.health_port = 8290: two listeners must not share a port (beside it transport.passthru_http.listener.parameters.port = 8290 (default))',
  ],
  [
    '[transport.ws]\nlistener.parameters.port = 8253',
    'F:2: transport.ws.listener.parameters.port = 8253: two listeners must not share a port (beside it transport.passthru_https.listener.parameters.port = 8253 (default))',
  ],
  [
    '[transport.wss]\nlistener.parameters.port = 65535\n[server]\noffset = 1',
    'F:2: transport.wss.listener.parameters.port = 65535: listener.parameters.port and server.offset must add up to 65535 at most (beside it server.offset = 1 (F:4))',
  ],
  [
    '[transport.passthru_http]\nsender.http.proxyHost = "proxy"',
    'F:2: transport.passthru_http.sender.http.proxyHost = "proxy": sender.http.proxyHost and sender.http.proxyPort must be set together (beside it transport.passthru_http.sender.http.proxyPort = 0 (default))',
  ],
  [
    '[transport.passthru_https]\nsender.http.proxyPort = "3128"',
    'F:2: transport.passthru_https.sender.http.proxyPort = 3128: sender.http.proxyHost and sender.http.proxyPort must be set together (beside it transport.passthru_https.sender.http.proxyHost = "" (default))',
  ],
  [
    '[transport.wss]\nsender.enable = true\nsender.trust_store.password = "p"',
    'F:2: transport.wss.sender.enable = true: sender.trust_store.location is required where sender.enable is true (beside it transport.wss.sender.trust_store.location = "" (default))',
  ],
  [
    '[transport.wss]\nsender.enable = true\nsender.trust_store.location = "s"',
    'F:2: transport.wss.sender.enable = true: sender.trust_store.password is required where sender.enable is true (beside it transport.wss.sender.trust_store.password = (not set) (default))',
  ],
]

for (const [toml, expected] of RULES) {
  test(`a rule is enforced: ${toml.split('\n').slice(1).join(', ')}`, t => {
    assert.ok(errorsOf(t, toml).includes(expected), errorsOf(t, toml).join('\n'))
  })
}

const LISTENERS = [
  'transport.passthru_http.listener.parameters.port',
  'transport.passthru_https.listener.parameters.port',
  'transport.ws.listener.parameters.port',
  'transport.wss.listener.parameters.port',
  'management.port',
  'management.health_port',
]

test('two listeners on one port are an error', t => {
  for (const [index, one] of LISTENERS.entries()) {
    for (const other of LISTENERS.slice(0, index)) {
      const errors = errorsOf(t, '', [`${one}=7777`, `${other}=7777`])
      assert.equal(errors.length, 1, `${one} and ${other}`)
      assert.match(errors[0]!, /two listeners must not share a port/)
    }
  }
})

test('a port with the offset above 65535 is an error', t => {
  for (const path of LISTENERS) {
    assert.deepEqual(errorsOf(t, '[server]\noffset = 2', [`${path}=65533`]), [])
    assert.match(errorsOf(t, '[server]\noffset = 2', [`${path}=65534`]).join('\n'), /^--set: .* must add up to 65535/)
  }
})

test('every listener may use a free port, at any offset', t => {
  assert.deepEqual(
    errorsOf(
      t,
      '[server]\noffset = 64000',
      LISTENERS.map(path => `${path}=0`),
    ),
    [],
  )
})

test('the port of a disabled listener conflicts with no other', t => {
  const shared = ['transport.ws.listener.parameters.port=8290', 'transport.ws.listener.enable=false']
  assert.deepEqual(errorsOf(t, '', shared), [])
})

test('a key with a free name accepts any name but an empty one', t => {
  const { warnings, resolved } = load(
    t,
    '[transport.ws]\nsender.parameter.Own-Name = 5\nsender.parameter."a.b" = "x"\nsender.parametre.c = 1',
  )
  assert.deepEqual(
    warnings.map(warning => warning.replace(/^.*?:(?=\d)/, '')),
    [
      '4: transport.ws.sender.parametre.c: unknown key in [transport.ws] (did you mean sender.parameter.c?); it has no effect',
      '2: transport.ws.sender.parameter.Own-Name: is accepted and not acted on (there are no custom sender parameters)',
      '3: transport.ws.sender.parameter.a.b: is accepted and not acted on (there are no custom sender parameters)',
    ],
  )
  const values = resolved.filter(key => key.path.includes('.sender.parameter.')).map(key => key.value)
  assert.deepEqual(values, ['5', 'x'])
})

test('a larger pool gives a warning only behind an unbounded queue', t => {
  const toml = '[transport.passthru_http]\nworker_pool_size_max = 500'
  const about = (loaded: Loaded): readonly string[] =>
    loaded.warnings.filter(warning => warning.includes('no effect behind'))
  assert.equal(about(load(t, toml)).length, 1)
  assert.equal(about(load(t, toml, ['transport.passthru_http.worker_pool_queue_length=10'])).length, 0)
})

test('an inert key gives one warning with the reason where it is set', t => {
  const { warnings } = load(t, '[mediation]\nsynapse.event_debugger_port = 300')
  const inert = warnings.filter(warning => warning.includes('not acted on'))
  assert.equal(inert.length, 1)
  assert.match(
    inert[0]!,
    /deployment\.toml:2: mediation\.synapse\.event_debugger_port: is accepted and not acted on \(not built yet: the mediation debugger\)$/,
  )
  assert.deepEqual(load(t, '').warnings, [])
})

const UNKNOWN: readonly (readonly [toml: string, warning: RegExp])[] = [
  ['[server]\nofset = 1', /:2: server\.ofset: unknown key in \[server\] \(did you mean offset\?\); it has no effect$/],
  ['[transport.passthru_http]\n"http.soket.timeout" = 1', /:2: .*did you mean http\.socket\.timeout\?/],
  ['[transport.passthru_http]\nport = 1', /did you mean listener\.parameters\.port\?/],
  ['[transport.passthru_http]\nshutdown.wait.sec = 1', /did you mean transport\.listener\.shutdown\.wait\.sec\?/],
  [
    '[transport.passthru_htp]\nreactors = 1\nport = 2',
    /:1: transport\.passthru_htp: unknown section \(did you mean \[transport\.passthru_http\]\?\)/,
  ],
  ['[totally.different]\na = 1', /:1: totally\.different: unknown section \(`explain` lists the sections\)/],
  ['[server]\nxyzzyplugh = 1', /unknown key in \[server\] \(`explain server` lists its keys\)/],
  ['offset = 1', /:1: offset: unknown key \(did you mean server\.offset\? It belongs below \[server\]\)/],
  ['[[apim.issuer]]\nname = "a"\n[[apim.issuer]]\nname = "b"', /:1: apim\.issuer: unknown section/],
]

for (const [toml, warning] of UNKNOWN) {
  test(`an unknown key or section is one warning with a guess: ${JSON.stringify(toml)}`, t => {
    const { warnings } = load(t, toml)
    assert.equal(warnings.length, 1, warnings.join('\n'))
    assert.match(warnings[0]!, warning)
  })
}

test('a section that is written as a list is one error and no warning', t => {
  assert.deepEqual(errorsOf(t, '[[management]]\nhealth_port = 1'), [
    'F:1: management: cannot be repeated (write [management], not [[management]])',
  ])
})

test('all errors are found in one run, in the order of the file, with line, value and hint', t => {
  const toml = `[server]
hostname = "a b"
offset = "one"
mode = "triple"
[transport.passthru_http]
http.socket.timeout = -1
io_buffer_size = " 16384"
http.max.connection.per.host.port = 0
http.user.agent.preserve = "yes"
listener.parameters.port = 65536
max_open_connections = 0
trusted_proxies = ["10.0.0.1/8"]
"correlation.header" = "a b"
body.max_bytes = 99999999999999999999
keepalive.timeout = { s = 5 }
[management]
bind_address = 5
[logging]
level = ["info"]
[access_log]
path = "$ref{logging.levle}"
`
  assert.deepEqual(errorsOf(t, toml, ['access_log.format=xml']), [
    'F:2: server.hostname = "a b": expected a host name or an IP address (the default is hostname = "localhost")',
    'F:3: server.offset = "one": expected a whole number, 0 to 64535 (the default is offset = 0)',
    'F:4: server.mode = "triple": expected one of "single", "ha" (the default is mode = "single")',
    'F:6: transport.passthru_http.http.socket.timeout = -1: expected a whole number of milliseconds, 1 to 86400000, or text such as "30s" (the default is http.socket.timeout = 180000)',
    'F:7: transport.passthru_http.io_buffer_size = " 16384": expected a whole number of bytes, 4096 to 65536 (write it without quotes: 16384)',
    'F:8: transport.passthru_http.http.max.connection.per.host.port = 0: expected a whole number of connections, 1 to 1000000 (the default is http.max.connection.per.host.port = 32767)',
    'F:9: transport.passthru_http.http.user.agent.preserve = "yes": expected true or false (write true)',
    'F:10: transport.passthru_http.listener.parameters.port = 65536: expected a whole number, 1 to 65535, or 0 (any free one) (the default is listener.parameters.port = 8290)',
    'F:11: transport.passthru_http.max_open_connections = 0: expected a whole number of connections, 1 to 10000000, or -1 (unlimited) (the default is max_open_connections = -1)',
    'F:12: transport.passthru_http.trusted_proxies = ["10.0.0.1/8"]: expected networks such as "10.0.0.0/8" or "::1", a list or one text with commas, no bits set after the prefix (the default is trusted_proxies = [])',
    'F:13: transport.passthru_http.correlation.header = "a b": expected the name of a header field (the default is correlation.header = "activityid")',
    'F:14: transport.passthru_http.body.max_bytes = 100000000000000000000: expected a whole number of bytes, 0 or more, or -1 (unlimited) (the default is body.max_bytes = -1)',
    'F:15: transport.passthru_http.keepalive.timeout = a table: expected a whole number of milliseconds, 1 to 86400000, or text such as "30s" (write one value after an equals sign)',
    'F:17: management.bind_address = 5: expected a host name or an IP address (write it in quotes: "5")',
    'F:19: logging.level = ["info"]: expected one of "trace", "debug", "info", "warn", "error", "fatal", "silent" (write it without brackets)',
    'F:21: access_log.path = "$ref{logging.levle}": there is no key logging.levle to refer to (did you mean logging.level?)',
    '--set: access_log.format = "xml": expected one of "json", "combined", "template" (the default is format = "json")',
  ])
})

test('a missing file and an unreadable file are errors, and repository/conf is searched too', t => {
  const none = temporaryHome(t, {})
  assert.throws(
    () => loadConfiguration(none, []),
    /there is no deployment\.toml in it, nor in repository.conf below it/,
  )
  const platform = temporaryHome(t, { 'repository/conf/deployment.toml': '[server]\noffset = 3' })
  assert.equal(loadConfiguration(platform, []).configuration.server.offset, 3)
  assert.deepEqual(errorsOf(t, '\u0000'), [
    'F:1:1: not valid TOML: illegal character in key (end a header with ] on its line, and write a name with other characters in quotation marks; nothing else was checked)',
  ])
})
