/** Repeated tables, such as `[[transport.http.proxy_profile]]`. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { explain } from '../../src/cli/explain.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { examine } from '../../src/config/load.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { argumentsFor, Transcript, temporaryHome } from './temporary-home.ts'

const TABLE = 'transport.http.proxy_profile'
const ROW = `[[${TABLE}]]\ntarget_hosts = ["*"]\nproxy_host = "proxy"\nproxy_port = 3128\n`

/** Errors and unknown keys, with `F` for the file and `T` for the table. */
function errorsOf(t: TestContext, toml: string, sets: readonly string[] = []): readonly string[] {
  const home = temporaryHome(t, { 'deployment.toml': toml })
  const { errors, unknown } = examine(home, sets, join(home, 'data'))
  return [...errors, ...unknown].map(diagnostic =>
    formatDiagnostic(diagnostic).replaceAll(join(home, 'deployment.toml'), 'F').replaceAll(TABLE, 'T'),
  )
}

test('rows are a frozen list of typed values in the order of the file', t => {
  const toml = `[server]
hostname = "gw"
${ROW}
[["transport.http.secured_proxy_profile"]]
target_hosts = "a.example, b.example"
proxy_host = "$ref{${TABLE}[0].proxy_host}.$ref{server.hostname}"
proxy_port = "3129"
proxy_username = "gateway"
proxy_password = "p"
bypass_hosts = ["c.example"]
[["transport.http.secured_proxy_profile"]]
proxy_port = 1
target_hosts = ["d.example"]
proxy_host = "other"
`
  const { configuration } = loadConfiguration(temporaryHome(t, { 'deployment.toml': toml }), [])
  const none = { proxy_username: '', proxy_password: '', bypass_hosts: [] }
  assert.deepEqual(configuration[TABLE], [{ target_hosts: ['*'], proxy_host: 'proxy', proxy_port: 3128, ...none }])
  assert.deepEqual(configuration['transport.http.secured_proxy_profile'], [
    {
      target_hosts: ['a.example', 'b.example'],
      proxy_host: 'proxy.gw',
      proxy_port: 3129,
      proxy_username: 'gateway',
      proxy_password: 'p',
      bypass_hosts: ['c.example'],
    },
    { target_hosts: ['d.example'], proxy_host: 'other', proxy_port: 1, ...none },
  ])
  assert.ok(Object.isFrozen(configuration[TABLE]))
  assert.ok(Object.isFrozen(configuration[TABLE][0]))
  assert.ok(Object.isFrozen(configuration[TABLE][0]!.target_hosts))
})

test('a table without rows is an empty list', t => {
  const { configuration, warnings } = loadConfiguration(temporaryHome(t, { 'deployment.toml': '' }), [])
  assert.deepEqual(configuration[TABLE], [])
  assert.deepEqual(warnings, [])
})

const ERRORS: readonly (readonly [name: string, toml: string, ...errors: readonly string[]])[] = [
  [
    'a required key that is missing',
    `${ROW}\n[[${TABLE}]]\ntarget_hosts = ["*"]\nproxy_port = 1`,
    'F:6: T[1].proxy_host: is missing, and every row needs it (expected a host name or an IP address)',
  ],
  [
    'a row with nothing in it',
    `\n[[${TABLE}]]\n`,
    'F:2: T[0].target_hosts: is missing, and every row needs it (expected a list of texts, or one text with commas)',
    'F:2: T[0].proxy_host: is missing, and every row needs it (expected a host name or an IP address)',
    'F:2: T[0].proxy_port: is missing, and every row needs it (expected a whole number, 1 to 65535)',
  ],
  [
    'required keys that are empty, and a value of a wrong type',
    `[[${TABLE}]]\ntarget_hosts = []\nproxy_host = ""\nproxy_port = 0`,
    'F:2: T[0].target_hosts = []: expected a list of texts, or one text with commas (it has no default)',
    'F:3: T[0].proxy_host = "": expected a host name or an IP address (it has no default)',
    'F:4: T[0].proxy_port = 0: expected a whole number, 1 to 65535 (it has no default)',
  ],
  [
    'an unknown key in a row',
    `${ROW}proxy_prt = 5\n[transport.http.proxy_profile.sub]\nxyzzyplugh = 1`,
    'F:5: T[0].proxy_prt: unknown key in [[T]] (did you mean proxy_port?)',
    'F:7: T[0].sub.xyzzyplugh: unknown key in [[T]] (`explain T` lists its keys)',
  ],
  [
    'a single table',
    `[${TABLE}]\nproxy_host = "a"\nproxy_port = 1`,
    'F:1: T: is a list of rows (write [[T]] above the keys of each row)',
  ],
  [
    'a single table with nothing in it',
    `[${TABLE}]`,
    'F:1: T: is a list of rows (write [[T]] above the keys of each row)',
  ],
  [
    'a key of the table without a header',
    `${TABLE}.proxy_host = "a"`,
    'F:1: T: is a list of rows (write [[T]] above the keys of each row)',
  ],
  [
    'a list of something else than tables',
    `[transport.http]\nproxy_profile = ["proxy:1"]`,
    'F:2: T: is a list of rows (write [[T]] above the keys of each row)',
  ],
  [
    'a row in a list of inline tables',
    '[transport.http]\nproxy_profile = [\n' +
      '  { target_hosts = "*", proxy_host = "a", proxy_port = 1 },\n  { proxy_host = "a",\n    proxy_prt = 1 },\n]',
    'F:4: T[1].target_hosts: is missing, and every row needs it (expected a list of texts, or one text with commas)',
    'F:4: T[1].proxy_port: is missing, and every row needs it (expected a whole number, 1 to 65535)',
    'F:5: T[1].proxy_prt: unknown key in [[T]] (did you mean proxy_port?)',
  ],
  [
    'a table below one that is repeated against the catalogue',
    `[[transport.http]]\n[transport.http.proxy_profile]\nproxy_host = "a"`,
    'F:2: T: is a list of rows (write [[T]] above the keys of each row)',
  ],
  [
    'a misspelt table',
    `[[transport.http.proxy_profil]]\nproxy_host = "a"`,
    'F:1: transport.http.proxy_profil: unknown section (did you mean [[T]]?)',
  ],
  [
    'a reference that leads nowhere',
    ROW.replace('"proxy"', '"$ref{server.hostnam}"'),
    'F:3: T[0].proxy_host = "$ref{server.hostnam}": there is no key server.hostnam to refer to (did you mean server.hostname?)',
  ],
  [
    'a password without a name, shown to nobody',
    `${ROW}proxy_password = "s3cret"`,
    'F:5: T[0].proxy_password = (set): proxy_password needs a proxy_username: a password alone is never sent (beside it T[0].proxy_username = "" (default))',
  ],
]

for (const [name, toml, ...errors] of ERRORS) {
  test(`an error about a row names its line: ${name}`, t => assert.deepEqual(errorsOf(t, toml), errors))
}

test('a rule applies to each row separately', t => {
  const home = temporaryHome(t, { 'deployment.toml': `${ROW}${ROW}proxy_username = "gateway"\n${ROW}` })
  const { errors, warnings } = examine(home, [], join(home, 'data'))
  assert.deepEqual(errors, [])
  assert.deepEqual(
    warnings.map(({ where, key, expected }) => [where.slice(where.lastIndexOf(':')), key, expected]),
    [[':9', `${TABLE}[1].proxy_username`, 'proxy_username is sent with an empty password']],
  )
})

test('--set sets a key of a row in the file, and opens no row', t => {
  const home = temporaryHome(t, { 'deployment.toml': ROW })
  const { configuration } = loadConfiguration(home, [`${TABLE}[0].proxy_host=other`])
  assert.equal(configuration[TABLE][0]!.proxy_host, 'other')
  assert.deepEqual(errorsOf(t, ROW, [`${TABLE}[1].proxy_host=other`]), [
    '--set: T[1]: there is no such row (rows are opened in the file, each by [[T]])',
  ])
  assert.deepEqual(errorsOf(t, ROW, [`${TABLE}.proxy_host=other`]), [
    '--set: T: is a list of rows (name the row: T[0] is the first)',
  ])
})

async function explained(t: TestContext, toml: string, wanted: string): Promise<string> {
  const home = temporaryHome(t, { 'deployment.toml': toml })
  const output = new Transcript()
  assert.equal(await explain(argumentsFor(home, { rest: [wanted] }), output, output), 0)
  return output.text.replaceAll(join(home, 'deployment.toml'), 'F')
}

test('explain shows all rows, one row, one key of a row, and a table without rows', async t => {
  const toml = `${ROW}${ROW.replace('3128', '3129')}proxy_username = "u"\nproxy_password = "s3cret"\n`
  const all = await explained(t, toml, TABLE)
  assert.match(all, /^\[transport\.http\.proxy_profile\[0\]\]\n\* target_hosts +\["\*"\] +F:2\n/)
  assert.match(all, /\n\[transport\.http\.proxy_profile\[1\]\]\n[\s\S]*\n\* proxy_port +3129 +F:8\n/)
  assert.match(all, /\n\* proxy_password +\(set\) +F:10\n/)
  assert.doesNotMatch(all, /s3cret/)
  const second = await explained(t, toml, `${TABLE}[1]`)
  assert.match(second, /^\[transport\.http\.proxy_profile\[1\]\]\n/)
  assert.doesNotMatch(second, /3128/)
  const key = await explained(t, toml, `${TABLE}[1].proxy_password`)
  assert.match(key, /default +none\n +set +F:10\n/)
  assert.match(key, /rule +proxy_password needs a proxy_username/)
  assert.match(await explained(t, '', TABLE), /transport\.http\.proxy_profile/)
})

test('keys of the broker in a further group of traffic managers are reported as keys without effect', t => {
  const group = (user: string): string =>
    '[[apim.throttling.url_group]]\ntraffic_manager_urls = ["tcp://a:1"]\n' +
    `traffic_manager_auth_urls = ["ssl://a:2"]\njms.username = "${user}"\n`
  const warningsOf = (...users: string[]): readonly string[] => {
    const toml = `[apim.throttling]\nthrottle_decision_endpoints = ["amqp://127.0.0.1"]\n${users.map(group).join('')}`
    const { warnings } = loadConfiguration(temporaryHome(t, { 'deployment.toml': toml }), [])
    return warnings.filter(each => each.includes('have no effect in further groups'))
  }
  assert.deepEqual(warningsOf('u', 'u'), [])
  assert.equal(warningsOf('u', 'other').length, 1)
  assert.match(warningsOf('u', 'other')[0]!, /url_group\[1\]\.jms\.username/)
})
