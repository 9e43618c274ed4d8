import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explain } from '../../src/cli/explain.ts'
import { passthruHttp } from '../../src/config/catalogue/passthru-http.ts'
import { run } from './explained.ts'
import { argumentsFor, Transcript, temporaryHome } from './temporary-home.ts'

const TOML = '[transport.passthru_http]\nheader.max_bytes = 8192\nworker_pool_size_core = 300\n'

const HTTP_READERS = passthruHttp.readBy.map(file => `src/${file}`).join(', ')

test('one key: value, default, place, type, unit, range, meaning, rules', async t => {
  const home = temporaryHome(t, { 'deployment.toml': TOML })
  const { code, out, err } = await run(home, ['transport.passthru_http.header.max_bytes'])
  assert.equal(code, 0)
  assert.equal(err, '')
  assert.equal(
    out,
    `transport.passthru_http.header.max_bytes
  value     8192 bytes
  default   16384, or io_buffer_size where that is less
  set       F:2
  type      integer
  unit      bytes
  range     512 to 65536
  variable  SLUICE_SET_TRANSPORT_PASSTHRU_HTTP_HEADER_MAX_BYTES
  meaning   Longest head of a request, start line included; 431 beyond.
  roles     ${passthruHttp.roles.join(', ')}
  read by   ${HTTP_READERS}
  effect    at a restart
  acted on  yes
  rule      header.max_bytes must not exceed io_buffer_size: a head is buffered whole (holds)
  rule      target.max_bytes must not exceed header.max_bytes: the request target is part of the head (holds)
`,
  )
})

test('one key that is not acted on says why', async t => {
  const { out } = await run(temporaryHome(t, { 'deployment.toml': TOML }), ['passthru_http.worker_pool_size_core'])
  assert.match(out, /acted on {2}no: not built yet: the worker pool comes with mediation\n/)
  assert.match(out, /set {7}F:3\n/)
})

test('a value with a name is shown with it', async t => {
  const { out } = await run(temporaryHome(t, { 'deployment.toml': '' }), ['passthru_http.max_open_connections'])
  assert.match(out, /value {5}-1 \(unlimited\)\n/)
  assert.match(out, /set {7}nowhere, so the default holds\n/)
})

test('without a key: every section, and a star beside what was set', async t => {
  const home = temporaryHome(t, { 'deployment.toml': TOML })
  const { code, out } = await run(home, [], { sets: ['logging.level=debug'] })
  assert.equal(code, 0)
  assert.match(out, /^\[server\]\n/)
  assert.match(out, /\n\[transport\.passthru_http\]\n/)
  assert.match(out, /\n\* header\.max_bytes +8192 bytes +F:2\n/)
  assert.match(out, /\n\* worker_pool_size_core +300 messages +F:3 \(inert\)\n/)
  assert.match(out, /\n\* level +"debug" +--set\n/)
  assert.match(out, /\n {2}io_buffer_size +16384 bytes\n/)
  assert.equal(out.match(/^\* [a-z]/gm)?.length, 4)
})

test('what is no key is answered with the nearest and exit code 2', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '' })
  assert.deepEqual(await run(home, ['ofset']), {
    code: 2,
    out: '',
    err: 'there is no key or section ofset; did you mean offset?\n',
  })
  assert.equal((await run(home, ['a', 'b'])).code, 2)
})

test('a faulty configuration is explained all the same, and answered with exit code 78', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '[server]\noffset = "x"' })
  const { code, out, err } = await run(home, ['server.offset'])
  assert.equal(code, 78)
  assert.match(out, /value {5}0, the default: what was set is faulty\n/)
  assert.match(out, /fault {5}F:2: server\.offset = "x": expected a whole number, 0 to 64535/)
  assert.match(err, /^fault {2}.*server\.offset = "x"/)
})

test('--json of one key and of all', async t => {
  const home = temporaryHome(t, { 'deployment.toml': TOML })
  const asked = ['transport.passthru_http.header.max_bytes']
  const { rules, readBy, ...one } = JSON.parse((await run(home, asked, { json: true })).out)
  assert.deepEqual(one, {
    key: 'transport.passthru_http.header.max_bytes',
    value: 8192,
    default: 16384,
    sameAs: '',
    changed: true,
    where: 'F:2',
    overrode: [],
    through: [],
    faulty: false,
    faults: [],
    required: false,
    secret: false,
    type: 'integer',
    unit: 'bytes',
    range: '512 to 65536',
    expects: 'a whole number of bytes, 512 to 65536',
    aliases: [],
    variable: 'SLUICE_SET_TRANSPORT_PASSTHRU_HTTP_HEADER_MAX_BYTES',
    meaning: 'Longest head of a request, start line included; 431 beyond.',
    roles: passthruHttp.roles,
    effect: 'restart',
    inert: '',
    followedBy: [],
    pool: null,
  })
  assert.ok(readBy.includes('reactor/settings.ts'))
  assert.deepEqual(rules[0], {
    must: 'header.max_bytes must not exceed io_buffer_size: a head is buffered whole',
    severity: 'fault',
    keys: ['transport.passthru_http.header.max_bytes', 'transport.passthru_http.io_buffer_size'],
    holds: true,
    unjudged: '',
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

/** [what, key, lines of its explanation]. */
const EXPLAINED: readonly (readonly [what: string, key: string, ...lines: RegExp[]])[] = [
  ['a variable', 'server.offset', /value {5}7\n/, /set {7}F:3\n/, /through {3}\$env\{EXPLAINED_OFFSET\}\n/],
  [
    'a key within a text',
    'super_admin.username',
    /value {5}"h\.example-admin"\n/,
    /through {3}\$ref\{server\.hostname\}\n/,
  ],
  [
    'a key that follows another by default',
    'apim.analytics.receiver_username',
    /default {3}same as username\n/,
    /through {3}\$ref\{apim\.analytics\.username\} -> \$ref\{super_admin\.username\} -> \$ref\{server\.hostname\}\n/,
  ],
  ['a reload', 'logging.level', /effect {4}at a reload or a restart\n/],
  ['a restart', 'server.offset', /effect {4}at a restart\n/],
  ['other spellings', 'apim.oauth_config.allowed_scopes', /spelled {3}white_listed_scopes as well\n/],
  ['roles', 'indexing.frequency', /roles {5}default, .*api-devportal, api-publisher\n/],
  ['a range', 'management.health_port', /range {5}1 to 65535, or 0 \(any free one\)\n/],
  ['keys that follow it', 'keystore.tls.alias', /followed {2}by transport\.passthru_http\.listener\.key_store\.alias,/],
  ['a name that nobody has chosen', 'custom_keystore.<name>.alias', /value {5}none: nobody has chosen a name/],
  ['a row that is not there', 'synapse_handlers.class', /value {5}none: there is no \[\[synapse_handlers\]\]\n/],
  ['rules that hold', 'management.health_port', /rule {6}two listeners must not share a port \(holds\)\n/],
  [
    'what must be set',
    'transport.http.proxy_profile.proxy_host',
    /default {3}none: it must be set\n/,
    /required {2}wherever/,
  ],
]

for (const [what, key, ...lines] of EXPLAINED) {
  test(`explained: ${what} (${key})`, async t => {
    process.env.EXPLAINED_OFFSET = '7'
    const { code, out, err } = await run(temporaryHome(t, { 'deployment.toml': REFERRING }), [key])
    assert.deepEqual([code, err], [0, ''])
    for (const line of lines) assert.match(out, line)
  })
}

test('a circle of references is a fault, and its chain comes to an end', async t => {
  const toml = '[server]\nhostname = "$ref{super_admin.username}"\n[super_admin]\nusername = "$ref{server.hostname}"\n'
  const { code, out } = await run(temporaryHome(t, { 'deployment.toml': toml }), ['server.hostname'])
  assert.equal(code, 78)
  assert.match(out, /through {3}\$ref\{super_admin\.username\} -> \$ref\{server\.hostname\}\n/)
})

test('what was overridden: the environment wins over the file, and --set over both', async t => {
  process.env.SLUICE_SET_SERVER_OFFSET = '2'
  t.after(() => delete process.env.SLUICE_SET_SERVER_OFFSET)
  const home = temporaryHome(t, { 'deployment.toml': '[server]\noffset = 1' })
  const { out } = await run(home, ['server.offset'], { sets: ['server.offset=3'] })
  assert.match(out, /set {7}--set\n {2}overrode {2}environment SLUICE_SET_SERVER_OFFSET: 2\n {2}overrode {2}F:2: 1\n/)
  const json = JSON.parse((await run(home, ['server.offset'], { json: true })).out)
  assert.deepEqual([json.where, json.overrode], ['environment SLUICE_SET_SERVER_OFFSET', [{ where: 'F:2', value: 1 }]])
})

test('secrets and credentials in URLs show neither as values, nor overridden, nor in --json', async t => {
  const toml = '[super_admin]\npassword = "hush1"\n[apim.analytics]\nstore_api_url = "https://u:hush2@h.example/"\n'
  const home = temporaryHome(t, { 'deployment.toml': toml })
  const sets = ['super_admin.password=hush3', 'apim.analytics.store_api_url="https://u:hush4@h.example/"']
  for (const key of ['', 'super_admin.password', 'apim.analytics.store_api_url', 'apim.analytics']) {
    for (const json of [false, true]) {
      const { out, err } = await run(home, key === '' ? [] : [key], { sets, json })
      assert.doesNotMatch(out + err, /hush/)
    }
  }
  assert.match((await run(home, ['super_admin.password'], { sets })).out, /overrode {2}F:2: \(set\)\n/)
})

test('a pool whose size is a secret has no sum', async t => {
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

test('a rule that is broken says so, and how grave that is', async t => {
  const warned = '[transport.passthru_http]\nworker_pool_size_max = 500'
  const asked = ['transport.passthru_http.worker_pool_size_max']
  const { code, out: one } = await run(temporaryHome(t, { 'deployment.toml': warned }), asked)
  assert.equal(code, 0)
  assert.match(one, /bound the queue or raise the core size \(broken, a warning\)\n/)
  const faulty = '[transport.passthru_http]\nworker_pool_size_max = 300'
  const { code: failed, out: other } = await run(temporaryHome(t, { 'deployment.toml': faulty }), asked)
  assert.equal(failed, 78)
  assert.match(other, /worker_pool_size_core must not exceed worker_pool_size_max \(broken, a fault\)\n/)
})

test('rules of rows are judged row by row', async t => {
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
  assert.match(out, /rule {6}proxy_username goes out with an empty password \(not judged: there is no row\)\n/)
})

const CLAIMS = 'apim.jwt.claims_extractor_impl'
const UNJUDGED: readonly (readonly [toml: string, unjudged: string, said: string])[] = [
  ['', 'not set', 'only warned of where it is set'],
  ['[apim.jwt]\nclaims_extractor_impl = "a"\n', '', 'broken, a warning'],
  ['[apim.jwt]\nclaims_extractor_impl = 5\n', 'faulty', 'not judged: a value is faulty'],
]

for (const [toml, unjudged, verdict] of UNJUDGED) {
  test(`a rule that only warns: ${verdict}`, async t => {
    const home = temporaryHome(t, { 'deployment.toml': toml })
    const must = 'claims_extractor_impl has no effect while enable_user_claims is false'
    assert.ok((await run(home, [CLAIMS])).out.includes(`  rule      ${must} (${verdict})\n`))
    const { rules } = JSON.parse((await run(home, [CLAIMS], { json: true })).out)
    const { holds, unjudged: why } = rules.find((rule: { must: string }) => rule.must === must)
    assert.deepEqual([holds, why], [unjudged === '' ? false : null, unjudged])
  })
}

test('a node that does not read a key is told', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '[server]\nserver_role = "gateway-worker"' })
  assert.match((await run(home, ['indexing.frequency'])).out, /roles {5}.*; not this node, which is gateway-worker\n/)
})

test('--changed lists what differs from its default, and only that', async t => {
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

test('a section of which nothing is acted on says so once', async t => {
  const { out } = await run(temporaryHome(t, { 'deployment.toml': '' }), ['transport.blocking_http'])
  assert.match(out, /^\[transport\.blocking_http\] {2}Not acted on: there is no blocking transport/)
  assert.doesNotMatch(out, /inert/)
})

test('a burst is a number', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '' })
  for (const burst of ['0', 'x', '-1', '1e3']) {
    await assert.rejects(run(home, [], {}, { changed: false, burst }), /--burst is a whole number/)
  }
  const asked = ['transport.passthru_http.worker_pool_size_core']
  const { out } = await run(home, asked, {}, { changed: false, burst: '500' })
  assert.match(out, /sum {7}when built: a burst of 500 messages: 400 run, 100 wait, 0 are refused\n/)
  assert.match((await run(home, asked)).out, /a burst of 1000 messages: 400 run, 600 wait, 0 are refused\n/)
})

test('colours only on a terminal, and there not with NO_COLOR', async t => {
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

test('one key has its value whole, a list of keys the beginning of it', async t => {
  const origins = Array.from({ length: 9 }, (_, index) => `https://host-${index}.example.com`)
  const home = temporaryHome(t, { 'deployment.toml': `[apim.cors]\nallow_origins = ${JSON.stringify(origins)}` })
  const { out } = await run(home, ['apim.cors.allow_origins'])
  assert.ok(out.includes(`  value     ${JSON.stringify(origins)}\n`))
  assert.match((await run(home, ['apim.cors'])).out, /allow_origins .*\.\.\. /)
})
