import assert from 'node:assert/strict'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { check } from '../../src/cli/check.ts'
import { JAVA_P12 } from '../tls/fixtures/stores.ts'
import { argumentsFor, Transcript, temporaryHome } from './temporary-home.ts'

const CONF = resolve(import.meta.dirname, '../../conf')

test('the shipped configuration has no errors and no warnings', async () => {
  const output = new Transcript()
  assert.equal(await check(argumentsFor(CONF), output), 0)
  assert.match(output.text, /^valid: 0 errors, 0 warnings, \d+ APIs?\n$/)
})

const FILES = {
  'deployment.toml': '[server]\noffset = "x"\nofset = 1\n[transport.passthru_http]\nworker_pool_size_max = 500\n',
  'apis/Bad/api.yaml':
    'type: api\nversion: v4.0.0\ndata:\n  name: Bad\n  context: bad\n  version: 1.0.0\n  endpointConfig:\n    endpoint_type: http\n    production_endpoints:\n      url: http://h\n',
}

test('check lists errors of the file, unknown keys as errors, errors of APIs, and warnings', async t => {
  const home = temporaryHome(t, FILES)
  const output = new Transcript()
  assert.equal(await check(argumentsFor(home), output), 78)
  assert.deepEqual(output.text.replaceAll(`${home}/`, '').split('\n'), [
    'error    deployment.toml:2: server.offset = "x": expected a whole number, 0 to 64535 (the default is offset = 0)',
    'error    deployment.toml:3: server.ofset: unknown key in [server] (did you mean offset?)',
    'error    apis/Bad/api.yaml:5: data.context = "bad": must start with "/" (write /bad)',
    'warning  deployment.toml:5: transport.passthru_http.worker_pool_size_max = 500: worker_pool_size_max has no effect behind an unbounded queue: bound the queue or raise the core size (beside it transport.passthru_http.worker_pool_size_core = 400 (default) and transport.passthru_http.worker_pool_queue_length = -1 (default))',
    'not valid: 3 errors, 1 warning, 0 APIs',
    '',
  ])
})

test('check tells of a role that starts nothing yet', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '[server]\nserver_role = "api-publisher"\n' })
  const output = new Transcript()
  assert.equal(await check(argumentsFor(home), output), 0)
  assert.deepEqual(output.text.replaceAll(`${home}/`, '').split('\n'), [
    'warning  deployment.toml:2: server.server_role = "api-publisher": starts nothing yet, and the node never becomes ready: the publisher portal is not built yet (choose default, control-plane, api-key-manager, gateway-worker or traffic-manager)',
    'valid: 0 errors, 1 warning, 0 APIs',
    '',
  ])
})

const MIXED = `[server]
ofset = 1
offset = "x"
[nonsense]
a = 1
[[transport.http.proxy_profile]]
target_hosts = "(a|b)"
proxy_host = "p"
proxy_port = 1
[transport.passthru_https]
"sender.hostname_verifier" = "Lax"
listner.enable = true
"listener.key_store.file_name" = "none.jks"
[logging]
level = "loud"
`

test('errors come in the order of the file, then those from outside it', async t => {
  const home = temporaryHome(t, { 'deployment.toml': MIXED, 'apis/Bad/api.yaml': FILES['apis/Bad/api.yaml'] })
  for (const json of [false, true]) {
    const output = new Transcript()
    await check(argumentsFor(home, { json, sets: ['no.such=1', 'management.health_port=x'] }), output)
    const places = json
      ? JSON.parse(output.text).errors.map(({ where }: { where: string }) => where)
      : [...output.text.matchAll(/^error +(.*?): /gm)].map(([, where]) => where)
    assert.deepEqual(
      places.map((where: string) => where.replace(`${home}/`, '').replace('deployment.toml', 'F')),
      [
        'F:2',
        'F:3',
        'F:4',
        'F:7',
        'F:7',
        'F:11',
        'F:12',
        'F:15',
        '--set',
        '--set',
        'security/none.jks',
        'apis/Bad/api.yaml:5',
      ],
    )
  }
})

test('warnings come in the order of the file too', async t => {
  const toml =
    '[mediation]\nsynapse.max_threads = 200\nsynapse.threads_queue_length = -1\nsynapse.event_debugger_port = 9\n'
  const output = new Transcript()
  await check(argumentsFor(temporaryHome(t, { 'deployment.toml': toml })), output)
  assert.deepEqual(
    [...output.text.matchAll(/^warning .*deployment\.toml:(\d)/gm)].map(([, line]) => line),
    ['3', '4'],
  )
})

const SECURED = `
[transport.passthru_https]
"listener.parameters.port" = 8254
listener.parameters.SSLVerifyClient = "optional"
worker_pool_size_core = 400
io_buffer_size = 16384
[transport.passthru_https.listener.key_store]
file_name = "gateway.jks"
type = "JKS"
password = "p"
key_password = "p"
[transport.passthru_https.listener.trust_store]
key_password = "p"
`

const WITHOUT_EFFECT = [
  'warning  F:13: transport.passthru_https.listener.trust_store.key_password: is accepted and not acted on (only the certificates of a trust store are used, not its keys)',
]
/** [listeners, beginnings of the warnings beside WITHOUT_EFFECT] */
const LISTENER_CASES: readonly (readonly [on: boolean, further: readonly string[]])[] = [
  [true, []],
  [
    false,
    [
      'warning  F:3: transport.passthru_https.listener.parameters.port: has no effect unless ',
      'warning  F:4: transport.passthru_https.listener.parameters.SSLVerifyClient: has no effect unless ',
      'warning  F:8: transport.passthru_https: listener.key_store.file_name, listener.key_store.type, ',
    ],
  ],
]
for (const [on, further] of LISTENER_CASES) {
  const how = on ? 'with' : 'without'
  test(`[transport.passthru_https] acts ${how} a listener, but for trust stores`, async t => {
    const output = new Transcript()
    const home = temporaryHome(t, { 'deployment.toml': SECURED })
    const listeners = ['transport.passthru_https.listener', 'transport.wss.listener', 'management']
    // The key store does not exist, and is opened for a listener alone.
    const sets = listeners.map(listener => `${listener}.enable=${on}`)
    assert.equal(await check(argumentsFor(home, { sets }), output), on ? 78 : 0, output.text)
    const lines = output.text.replaceAll(join(home, 'deployment.toml'), 'F').split('\n')
    const warnings = lines.filter(line => line.startsWith('warning'))
    assert.deepEqual(
      warnings.filter(warning => !further.some(start => warning.startsWith(start))),
      WITHOUT_EFFECT,
    )
    assert.equal(warnings.length, WITHOUT_EFFECT.length + further.length, output.text)
  })
}

test('check --json prints one object, and check refuses further words', async t => {
  const home = temporaryHome(t, FILES)
  const output = new Transcript()
  assert.equal(await check(argumentsFor(home, { json: true }), output), 78)
  const { valid, errors, warnings, apis } = JSON.parse(output.text)
  assert.deepEqual([valid, errors.length, warnings.length, apis], [false, 3, 1, 0])
  assert.equal(errors[0].key, 'server.offset')
  assert.equal(await check(argumentsFor(home, { rest: ['x'] }), output), 2)
})

const LISTENING = '[transport.passthru_https]\n"listener.enable" = true\n'
const DEAF =
  '[management]\nenable = false\n[transport.passthru_https]\n"listener.enable" = false\n[transport.wss]\n"listener.enable" = false\n'
const STORE = `${LISTENING}[transport.passthru_https.listener.key_store]\nfile_name = "own.p12"\npassword = `
const API = (url: string): string =>
  'type: api\nversion: v4.0.0\ndata:\n  name: A\n  context: /a\n  version: 1.0.0\n  endpointConfig:\n' +
  `    endpoint_type: http\n    production_endpoints:\n      url: ${url}\n`

/** [name, settings, endpoint, expected error] */
const TLS_FILES: readonly (readonly [string, string, string, RegExp | null])[] = [
  [
    'a wrong password of the listener',
    `${STORE}"other"`,
    '',
    /^error .*wrong password for .*own\.p12.*key_store\.password/m,
  ],
  ['the right one', `${STORE}"storepw"`, '', null],
  ['no key store: a start makes one', LISTENING, '', null],
  [
    'a profile that is missing',
    `${LISTENING}[transport.passthru_https.listener]\n"ssl_profile.file_path" = "gone.xml"`,
    '',
    /^error .*gone\.xml.*listener\.ssl_profile\.file_path/m,
  ],
  [
    'a profile for back ends that is missing',
    `${DEAF}[transport.passthru_https.sender]\n"ssl_profile.file_path" = "gone.xml"`,
    'https://h',
    /^error .*gone\.xml.*sender\.ssl_profile\.file_path/m,
  ],
  [
    'a profile for back ends of which none is secured',
    `${DEAF}[transport.passthru_https.sender]\n"ssl_profile.file_path" = "gone.xml"`,
    'http://h',
    null,
  ],
]

for (const [what, text, url, error] of TLS_FILES) {
  test(`check opens key stores and TLS profiles: ${what}`, async t => {
    const home = temporaryHome(t, {
      'deployment.toml': text,
      ...(url === '' ? {} : { 'apis/A/api.yaml': API(url) }),
    })
    mkdirSync(join(home, 'security'))
    writeFileSync(join(home, 'security/own.p12'), JAVA_P12)
    const output = new Transcript()
    assert.equal(await check(argumentsFor(home), output), error === null ? 0 : 78, output.text)
    if (error !== null) assert.match(output.text, error)
    assert.doesNotMatch(output.text, /"other"/)
    assert.equal(existsSync(join(home, 'data')), false, 'nothing is written')
  })
}
