import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check } from '../../src/cli/check.ts'
import { explain } from '../../src/cli/explain.ts'
import { reference } from '../../src/cli/reference.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { argumentsFor, Transcript, temporaryHome } from './temporary-home.ts'

// Digits, so that the secret is a valid number where a key expects one.
const SECRET = '4711471147114'
process.env.SLUICE_TEST_SECRET = SECRET

const PROXY_ROW = '[[transport.http.proxy_profile]]\ntarget_hosts = "*"\nproxy_host = "h"\nproxy_port = 1\n'

const FILES: readonly (readonly [name: string, toml: string, sets?: readonly string[]])[] = [
  ['a secret key', `[super_admin]\npassword = "${SECRET}"`],
  ['a secret key of a wrong type', `[super_admin]\npassword = ${SECRET}`],
  ['a secret key as a list', `[super_admin]\npassword = ["${SECRET}"]`],
  ['a secret by --set', '', [`super_admin.password=${SECRET}`]],
  ['a secret from the environment', '[super_admin]\npassword = "$env{SLUICE_TEST_SECRET}"'],
  ['a secret key of a row', `${PROXY_ROW}proxy_password = "${SECRET}"`],
  [
    'a profile as text, and of a wrong type',
    `[transport]\npassthru_http.sender.proxyProfiles = "${SECRET}"\npassthru_https.sender.proxyProfiles = ${SECRET}`,
  ],
  ['a misspelt secret key of a row', `[[transport.http.proxy_profile]]\nproxy_pasword = "${SECRET}"`],
  ['a repeated table written once', `[transport.http.proxy_profile]\nproxy_password = "${SECRET}"`],
  ['a repeated table as one value', `transport.http.proxy_profile = [{ proxy_password = "${SECRET}" }]`],
  ['a misspelt secret key', `[super_admin]\npasword = "${SECRET}"`],
  ['a secret key in an unknown section', `[somewhere]\npassword = "${SECRET}"`],
  [
    'a text that refers to a secret',
    `[super_admin]\npassword = "${SECRET}"\n[access_log]\npath = "x/$ref{super_admin.password}"`,
  ],
  [
    'a number that refers to a secret',
    `[super_admin]\npassword = "${SECRET}"\n[server]\noffset = "$ref{super_admin.password}"`,
  ],
  [
    'versions of TLS that refer to a secret',
    `super_admin.password = "${SECRET}"\n[transport]\npassthru_https.listener.protocols = "$ref{super_admin.password}"`,
  ],
  [
    'a key store whose name refers to a secret',
    `super_admin.password = "${SECRET}"\n[keystore.tls]\nfile_name = "$ref{super_admin.password}"`,
  ],
  ['a key store whose name holds credentials', `[keystore.tls]\nfile_name = "https://a:${SECRET}@h/x"`],
  ['credentials as a version of TLS', `[transport.passthru_https.listener]\nprotocols = "https://a:${SECRET}@h"`],
  [
    'a host that refers to a reference to a secret',
    `[super_admin]\npassword = "${SECRET}"\n[my]\na = "$ref{super_admin.password}"\n[server]\nhostname = "$ref{my.a} "`,
  ],
  [
    'a default that refers to a text with a secret',
    `[super_admin]\npassword = "${SECRET}"\n[server]\nhostname = "$ref{super_admin.password}"`,
  ],
  [
    'a rule about values that refer to a secret',
    `[super_admin]\npassword = "20731"\n[transport.passthru_http]\nheader.max_bytes = "$ref{super_admin.password}"`,
  ],
  ['a text with a variable whose name says that it is a secret', '[access_log]\npath = "x/$env{SLUICE_TEST_SECRET}"'],
  ['a number that is such a variable', '[server]\noffset = "$env{SLUICE_TEST_SECRET}"'],
  [
    'a property that is a secret',
    `[super_admin]\npassword = "${SECRET}"\n[access_log]\npath = "$\u{7b}admin.password}"`,
  ],
  ['a secret by its alias', `[access_log]\npath = "$secret{mine}"\n[secrets]\nmine = "[${SECRET}]"`],
  ['an encrypted secret', `[access_log]\npath = "$secret{mine}"\n[secrets]\nmine = "${SECRET}"`],
  [
    'a key of its own that is named like a secret',
    `[own]\napi_key = "${SECRET}"\n[access_log]\npath = "$ref{own.api_key}"`,
  ],
  ['a property that is named like a secret', `[user_store.properties]\nConnectionPassword = "${SECRET}"`],
  ['a property of a check that is one', `[[health_checker]]\nname = "x"\nproperties."db.password" = "${SECRET}"`],
  ['a parameter that is one', `[transport.ws]\nsender.parameter.api_key = "${SECRET}"`],
  ['such a parameter of a wrong type', `[transport.wss]\nsender.parameter.Token = ["${SECRET}"]`],
  [
    'a key of its own that cannot be resolved',
    `[own]\ntoken = "${SECRET}$ref{own.none}"\n[access_log]\npath = "$ref{own.token}"`,
  ],
  ['credentials in a URL', `[access_log]\npath = "tcp://u:${SECRET}@h:1"\n[server]\nhostname = "tcp://u:${SECRET}@h"`],
  ['credentials with any character in them', `[server]\nhostname = "tcp://u:p/@\\"${SECRET}/@h:1"`],
  ['credentials among the parameters of a URL', `[server]\nhostname = "jdbc:x://h/d?user=u&password=${SECRET}&a=b"`],
  ['a table where a secret is due', `[super_admin]\npassword = { a = "${SECRET}" }`],
  ['a date where a secret is due', '[super_admin]\npassword = 4711-11-14'],
  [
    'a list of a misspelt key of a row in one line',
    `[transport.http]\nproxy_profile = [{ proxy_pasword = "${SECRET}" }]`,
  ],
  ['a syntax error beside a secret', `[super_admin]\npassword = "${SECRET}" x`],
  ['a syntax error in a secret', `[super_admin]\npassword = "${SECRET}\nx = 1`],
  ['a --set without a key', '', [SECRET, `=${SECRET}`]],
]

const ASKED: readonly (readonly string[])[] = [
  [],
  ['super_admin'],
  ['super_admin.password'],
  ['access_log.path'],
  ['server.base_path'],
  ['server.hostname'],
]

for (const [name, toml, sets = []] of FILES) {
  test(`no command and no message shows the secret of ${name}`, async t => {
    const home = temporaryHome(t, { 'deployment.toml': toml })
    const seen = new Transcript()
    for (const rest of ASKED) await explain(argumentsFor(home, { sets, rest }), seen, seen)
    for (const json of [false, true]) {
      // The whole output as JSON contains that of each key.
      if (json) await explain(argumentsFor(home, { sets, json, rest: [] }), seen, seen)
      await check(argumentsFor(home, { sets, json }), seen)
      await reference(argumentsFor(home, { json }), seen)
    }
    try {
      for (const warning of loadConfiguration(home, sets).warnings) seen.write(warning)
    } catch (error) {
      seen.write(String(error))
    }
    assert.ok(seen.text.length > 1000)
    assert.ok(!seen.text.includes(SECRET), seen.text.split('\n').find(line => line.includes(SECRET)) ?? '')
    assert.ok(!seen.text.includes('4711-11-14'))
    // A range error must not show it either, so the secret here is a number of another length.
    assert.ok(!/\b20731\b/.test(seen.text))
  })
}

test('no command and no message shows a secret from a variable', async t => {
  const home = temporaryHome(t, { 'deployment.toml': '' })
  const variables = { SLUICE_SET_SUPER_ADMIN_PASSWORD: SECRET, SLUICE_SET_SUPER_ADMIN_PASWORD: SECRET }
  Object.assign(process.env, variables)
  t.after(() => {
    for (const name of Object.keys(variables)) delete process.env[name]
  })
  const seen = new Transcript()
  for (const rest of ASKED) await explain(argumentsFor(home, { rest }), seen, seen)
  assert.equal(await check(argumentsFor(home), seen), 78)
  assert.match(seen.text, /environment SLUICE_SET_SUPER_ADMIN_PASWORD: names no key/)
  assert.ok(!seen.text.includes(SECRET))
})

test('explain shows a secret as set or not set', async t => {
  const home = temporaryHome(t, { 'deployment.toml': `[super_admin]\npassword = "${SECRET}"` })
  const output = new Transcript()
  assert.equal(await explain(argumentsFor(home, { rest: ['super_admin.password'] }), output, output), 0)
  assert.match(output.text, /value {7}\(set\)\n/)
  const unset = new Transcript()
  await explain(
    argumentsFor(temporaryHome(t, { 'deployment.toml': '' }), { rest: ['super_admin.password'] }),
    unset,
    unset,
  )
  assert.match(unset.text, /value {7}\(not set\)\n/)
})
