import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explain } from '../../src/cli/explain.ts'
import { passthruHttp } from '../../src/config/catalogue/passthru-http.ts'
import { run } from './explained.ts'
import { argumentsFor, Transcript, temporaryHome } from './temporary-home.ts'

const TOML = '[transport.passthru_http]\nheader.max_bytes = 8192\nworker_pool_size_core = 300\n'

test('one key is explained with value, default, place, type, unit, range, meaning and rules', async t => {
  const home = temporaryHome(t, { 'deployment.toml': TOML })
  const { code, out, err } = await run(home, ['transport.passthru_http.header.max_bytes'])
  assert.equal(code, 0)
  assert.equal(err, '')
  assert.equal(
    out,
    `transport.passthru_http.header.max_bytes
  value       8192 bytes
  default     16384, or io_buffer_size where that is less
  set         F:2
  type        integer
  unit        bytes
  range       512 to 65536
  variable    SLUICE_SET_TRANSPORT_PASSTHRU_HTTP_HEADER_MAX_BYTES
  meaning     Largest request head, with the start line; 431 beyond.
  roles       ${passthruHttp.roles.join(', ')}
  default of  transport.passthru_https.header.max_bytes
  applies     after a restart
  acted on    yes
  rule        header.max_bytes must not exceed io_buffer_size: a head is buffered as a whole (holds)
  rule        target.max_bytes must not exceed header.max_bytes: the request target is part of the head (holds)
`,
  )
})

test('an inert key is explained with its reason', async t => {
  const toml = '[mediation]\nsynapse.command_debugger_port = 9100\n'
  const { out } = await run(temporaryHome(t, { 'deployment.toml': toml }), ['mediation.synapse.command_debugger_port'])
  assert.match(out, /acted on {4}no: not built yet: the mediation debugger\n/)
  assert.match(out, /set {9}F:2\n/)
})

test('a special value is shown with its meaning', async t => {
  const { out } = await run(temporaryHome(t, { 'deployment.toml': '' }), ['passthru_http.max_open_connections'])
  assert.match(out, /value {7}-1 \(unlimited\)\n/)
  assert.match(out, /set {9}nowhere, so the default applies\n/)
})

test('without a key, every section is listed, with a star beside keys that are set', async t => {
  const home = temporaryHome(t, { 'deployment.toml': TOML })
  const { code, out } = await run(home, [], { sets: ['logging.level=debug'] })
  assert.equal(code, 0)
  assert.match(out, /^\[server\]\n/)
  assert.match(out, /\n\[transport\.passthru_http\]\n/)
  assert.match(out, /\n\* header\.max_bytes +8192 bytes +F:2\n/)
  assert.match(out, /\n\* worker_pool_size_core +300 messages +F:3\n/)
  assert.match(out, /\n\* level +"debug" +--set\n/)
  assert.match(out, /\n {2}io_buffer_size +16384 bytes\n/)
  assert.equal(out.match(/^\* [a-z]/gm)?.length, 4)
})

test('an unknown key gets the nearest known one and exit code 2', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '' })
  assert.deepEqual(await run(home, ['ofset']), {
    code: 2,
    out: '',
    err: 'there is no key or section ofset; did you mean offset?\n',
  })
  assert.equal((await run(home, ['a', 'b'])).code, 2)
})

test('explain suspend finds the keys of suspension', async t => {
  const { code, out } = await run(temporaryHome(t, { 'deployment.toml': '' }), ['suspend'])
  const lines = out.split('\n').map(line => line.trim().replace(/ +/g, ' '))
  assert.equal(code, 0)
  for (const line of ['suspend.failures 5 failures', 'suspend.clients 2 clients', 'suspend.window 10000 ms']) {
    assert.ok(lines.includes(line), out)
  }
})

test('a configuration with errors is explained too, with exit code 78', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '[server]\noffset = "x"' })
  const { code, out, err } = await run(home, ['server.offset'])
  assert.equal(code, 78)
  assert.match(out, /value {7}0, the default, because the setting is invalid\n/)
  assert.match(out, /error {7}F:2: server\.offset = "x": expected a whole number, 0 to 64535/)
  assert.match(err, /^error {2}.*server\.offset = "x"/)
})

test('--json prints one key or all keys as data', async t => {
  const home = temporaryHome(t, { 'deployment.toml': TOML })
  const asked = ['transport.passthru_http.header.max_bytes']
  const { rules, ...one } = JSON.parse((await run(home, asked, { json: true })).out)
  assert.deepEqual(one, {
    key: 'transport.passthru_http.header.max_bytes',
    value: 8192,
    default: 16384,
    defaultKey: '',
    changed: true,
    where: 'F:2',
    overridden: [],
    references: [],
    invalid: false,
    errors: [],
    required: false,
    secret: false,
    type: 'integer',
    unit: 'bytes',
    range: '512 to 65536',
    expects: 'a whole number of bytes, 512 to 65536',
    aliases: [],
    variable: 'SLUICE_SET_TRANSPORT_PASSTHRU_HTTP_HEADER_MAX_BYTES',
    meaning: 'Largest request head, with the start line; 431 beyond.',
    roles: passthruHttp.roles,
    appliesAfter: 'restart',
    inert: '',
    actsWhen: [
      {
        condition: 'server.server_role is default or gateway-worker',
        holds: true,
        state: 'server.server_role is "default" (default)',
        otherwise: '',
      },
    ],
    defaultOf: ['transport.passthru_https.header.max_bytes'],
    pool: null,
  })
  assert.deepEqual(rules[0], {
    rule: 'header.max_bytes must not exceed io_buffer_size: a head is buffered as a whole',
    severity: 'error',
    keys: ['transport.passthru_http.header.max_bytes', 'transport.passthru_http.io_buffer_size'],
    holds: true,
    notChecked: '',
  })
  const all = JSON.parse((await run(home, [], { json: true })).out)
  assert.ok(all.length > 500)
  assert.ok(all.some(({ key }: { key: string }) => key === 'server.hostname'))
})

const REFERRING = `[server]
hostname = "h.example"
offset = "$env{EXPLAINED_OFFSET}"
[super_admin]
username = "$ref{server.hostname}-admin"
[apim.analytics]
receiver_username = "$ref{apim.analytics.username}"
[management]
health_port = 9000
`

/** [name, key, lines of its explanation] */
const EXPLAINED: readonly (readonly [what: string, key: string, ...lines: RegExp[]])[] = [
  ['a variable', 'server.offset', /value {7}7\n/, /set {9}F:3\n/, /refers to {3}\$env\{EXPLAINED_OFFSET\}\n/],
  [
    'a key within a text',
    'super_admin.username',
    /value {7}"h\.example-admin"\n/,
    /refers to {3}\$ref\{server\.hostname\}\n/,
  ],
  [
    'a key that follows another by default',
    'apim.analytics.receiver_username',
    /default {5}same as username\n/,
    /refers to {3}\$ref\{apim\.analytics\.username\} -> \$ref\{super_admin\.username\} -> \$ref\{server\.hostname\}\n/,
  ],
  ['a reload', 'logging.level', /applies {5}after a reload or a restart\n/],
  ['a restart', 'server.offset', /applies {5}after a restart\n/],
  ['other spellings', 'apim.oauth_config.allowed_scopes', /aliases {5}white_listed_scopes\n/],
  ['roles', 'indexing.frequency', /roles {7}default, .*api-devportal, api-publisher\n/],
  ['a range', 'management.health_port', /range {7}1 to 65535, or 0 \(any free one\)\n/],
  ['keys that follow it', 'keystore.tls.alias', /default of {2}transport\.passthru_http\.listener\.key_store\.alias,/],
  ['a name that nobody has chosen', 'custom_keystore.<name>.alias', /value {7}none: no name is chosen/],
  ['a row that is not there', 'synapse_handlers.class', /value {7}none: there is no \[\[synapse_handlers\]\]\n/],
  ['rules that hold', 'management.health_port', /rule {8}two listeners must not share a port \(holds\)\n/],
  [
    'what must be set',
    'transport.http.proxy_profile.proxy_host',
    /default {5}none: it must be set\n/,
    /required {4}wherever/,
  ],
]

for (const [what, key, ...lines] of EXPLAINED) {
  test(`explain shows ${what} (${key})`, async t => {
    process.env.EXPLAINED_OFFSET = '7'
    const { code, out, err } = await run(temporaryHome(t, { 'deployment.toml': REFERRING }), [key])
    assert.deepEqual([code, err], [0, ''])
    for (const line of lines) assert.match(out, line)
  })
}

test('a circle of references is an error with a finite chain', async t => {
  const toml = '[server]\nhostname = "$ref{super_admin.username}"\n[super_admin]\nusername = "$ref{server.hostname}"\n'
  const { code, out } = await run(temporaryHome(t, { 'deployment.toml': toml }), ['server.hostname'])
  assert.equal(code, 78)
  assert.match(out, /refers to {3}\$ref\{super_admin\.username\} -> \$ref\{server\.hostname\}\n/)
})

test('explain shows overridden settings: the environment overrides the file, and --set both', async t => {
  process.env.SLUICE_SET_SERVER_OFFSET = '2'
  t.after(() => delete process.env.SLUICE_SET_SERVER_OFFSET)
  const home = temporaryHome(t, { 'deployment.toml': '[server]\noffset = 1' })
  const { out } = await run(home, ['server.offset'], { sets: ['server.offset=3'] })
  assert.match(out, /set {9}--set\n {2}overrides {3}environment SLUICE_SET_SERVER_OFFSET: 2\n {2}overrides {3}F:2: 1\n/)
  const json = JSON.parse((await run(home, ['server.offset'], { json: true })).out)
  assert.deepEqual(
    [json.where, json.overridden],
    ['environment SLUICE_SET_SERVER_OFFSET', [{ where: 'F:2', value: 1 }]],
  )
})

test('secrets and credentials in URLs are never shown: as values, overridden, or in --json', async t => {
  const toml = '[super_admin]\npassword = "hush1"\n[apim.analytics]\nstore_api_url = "https://u:hush2@h.example/"\n'
  const home = temporaryHome(t, { 'deployment.toml': toml })
  const sets = ['super_admin.password=hush3', 'apim.analytics.store_api_url="https://u:hush4@h.example/"']
  for (const key of ['', 'super_admin.password', 'apim.analytics.store_api_url', 'apim.analytics']) {
    for (const json of [false, true]) {
      const { out, err } = await run(home, key === '' ? [] : [key], { sets, json })
      assert.doesNotMatch(out + err, /hush/)
    }
  }
  assert.match((await run(home, ['super_admin.password'], { sets })).out, /overrides {3}F:2: \(set\)\n/)
})

test('a pool with a secret size has no calculation', async t => {
  process.env.EXPLAINED_SECRET = '7654'
  const toml =
    '[transport.passthru_http]\nworker_pool_size_max = "$env{EXPLAINED_SECRET}"\nworker_pool_queue_length = 0\n'
  const home = temporaryHome(t, { 'deployment.toml': toml })
  for (const key of ['worker_pool_size_max', 'worker_pool_size_core', 'worker_pool_queue_length']) {
    const { out } = await run(home, [`transport.passthru_http.${key}`])
    assert.match(out, /acted on/)
    assert.doesNotMatch(out, /7654|burst/)
  }
})

test('a broken rule is shown with its severity', async t => {
  const warned = '[transport.passthru_http]\nworker_pool_size_max = 500'
  const asked = ['transport.passthru_http.worker_pool_size_max']
  const { code, out: one } = await run(temporaryHome(t, { 'deployment.toml': warned }), asked)
  assert.equal(code, 0)
  assert.match(one, /bound the queue or raise the core size \(violated, a warning\)\n/)
  const broken = '[transport.passthru_http]\nworker_pool_size_max = 300'
  const { code: failed, out: other } = await run(temporaryHome(t, { 'deployment.toml': broken }), asked)
  assert.equal(failed, 78)
  assert.match(other, /worker_pool_size_core must not exceed worker_pool_size_max \(violated, an error\)\n/)
})

test('rules of rows are checked row by row', async t => {
  const row = '[[transport.http.proxy_profile]]\ntarget_hosts = "*"\nproxy_host = "p"\nproxy_port = 1\n'
  const home = temporaryHome(t, { 'deployment.toml': `${row}${row}proxy_username = "u"\n` })
  const verdictsOf = async (key: string): Promise<readonly unknown[]> => {
    const { out } = await run(home, [`transport.http.proxy_profile${key}.proxy_username`], { json: true })
    return JSON.parse(out).rules.map(({ holds }: { holds: unknown }) => holds)
  }
  assert.deepEqual(await verdictsOf('[0]'), [true, true])
  assert.deepEqual(await verdictsOf('[1]'), [true, false])
  const empty = temporaryHome(t, { 'deployment.toml': '' })
  const { out } = await run(empty, ['transport.http.proxy_profile.proxy_username'])
  assert.match(out, /rule {8}proxy_username is sent with an empty password \(not checked: there is no row\)\n/)
})

const WAIT = 'user_store.properties.ReadTimeout'
const NOT_CHECKED: readonly (readonly [toml: string, notChecked: string, text: string])[] = [
  ['', 'not set', 'checked only if it is set'],
  ['[user_store.properties]\nReadTimeout = -1\n', '', 'violated, a warning'],
  ['[user_store.properties]\nReadTimeout = "x"\n', 'invalid', 'not checked: a value is invalid'],
]

for (const [toml, notChecked, verdict] of NOT_CHECKED) {
  test(`a warning rule is shown as: ${verdict}`, async t => {
    const home = temporaryHome(t, { 'deployment.toml': toml })
    const must = 'ReadTimeout of zero or less waits for ever: set the longest wait in milliseconds'
    assert.ok((await run(home, [WAIT])).out.includes(`  rule        ${must} (${verdict})\n`))
    const { rules } = JSON.parse((await run(home, [WAIT], { json: true })).out)
    const result = rules.find(({ rule }: { rule: string }) => rule === must)
    assert.deepEqual([result.holds, result.notChecked], [notChecked === '' ? false : null, notChecked])
  })
}

test('a key that this node does not read is shown as such', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '[server]\nserver_role = "gateway-worker"' })
  assert.match(
    (await run(home, ['indexing.frequency'])).out,
    /roles {7}.*; not this node, whose role is gateway-worker\n/,
  )
})

test('--changed lists only keys that differ from their default', async t => {
  const same = 'health_port = 9763\n[server]\nbase_path = "https://localhost:9443"\n'
  const home = temporaryHome(t, { 'deployment.toml': `${TOML}[management]\n${same}` })
  const { out } = await run(home, [], {}, { changed: true, burst: '' })
  assert.deepEqual(out.match(/^. \w\S+/gm)?.sort(), ['* differs', '* header.max_bytes', '* worker_pool_size_core'])
  assert.match((await run(home, ['management'])).out, /\n= health_port +9763 +F:5\n/)
  const nothing = temporaryHome(t, { 'deployment.toml': `[management]\n${same}` })
  assert.equal((await run(nothing, [], {}, { changed: true, burst: '' })).out, 'nothing differs from the defaults\n')
  const asJson = async (asked: readonly string[]): Promise<unknown> =>
    JSON.parse((await run(nothing, asked, { json: true }, { changed: true, burst: '' })).out)
  assert.deepEqual([await asJson([]), await asJson(['management.health_port'])], [[], null])
})

test('a section of inert keys gives the reason once', async t => {
  const { out } = await run(temporaryHome(t, { 'deployment.toml': '' }), ['transport.http.properties'])
  assert.match(out, /^\[transport\.http\.properties\] {2}Not acted on: there is no servlet container/)
  assert.doesNotMatch(out, /inert/)
})

test('a burst must be a number', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '' })
  for (const burst of ['0', 'x', '-1', '1e3']) {
    await assert.rejects(run(home, [], {}, { changed: false, burst }), /--burst is a whole number/)
  }
  const asked = ['transport.passthru_http.worker_pool_size_core']
  const { out } = await run(home, asked, {}, { changed: false, burst: '500' })
  assert.match(out, /pool {8}a burst of 500 messages: 400 run, 100 wait, 0 are refused\n/)
  assert.match((await run(home, asked)).out, /a burst of 1000 messages: 400 run, 600 wait, 0 are refused\n/)
})

test('output has colours only on a terminal without NO_COLOR', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '' })
  const coloured = new Transcript(true)
  const before = process.env.NO_COLOR
  delete process.env.NO_COLOR
  await explain(argumentsFor(home, { rest: ['offset'] }), coloured, coloured)
  process.env.NO_COLOR = '1'
  const plain = new Transcript(true)
  await explain(argumentsFor(home, { rest: ['offset'] }), plain, plain)
  if (before === undefined) delete process.env.NO_COLOR
  else process.env.NO_COLOR = before
  assert.ok(coloured.text.includes('\u001b['))
  assert.ok(!plain.text.includes('\u001b['))
  assert.ok(!(await run(home, ['offset'])).out.includes('\u001b['))
})

test('one key is shown with its whole value, a list of keys with the beginning', async t => {
  const origins = Array.from({ length: 9 }, (_, index) => `https://host-${index}.example.com`)
  const home = temporaryHome(t, { 'deployment.toml': `[apim.cors]\nallow_origins = ${JSON.stringify(origins)}` })
  const { out } = await run(home, ['apim.cors.allow_origins'])
  assert.ok(out.includes(`  value       ${JSON.stringify(origins)}\n`))
  assert.match((await run(home, ['apim.cors'])).out, /allow_origins .*\.\.\. /)
})
