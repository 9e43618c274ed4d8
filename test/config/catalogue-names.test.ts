/** Names of keys: names that the operator chooses, aliases, rows within rows, and keys that follow others. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { examine } from '../../src/config/load.ts'
import type { Resolution } from '../../src/config/resolve.ts'
import { temporaryHome } from './temporary-home.ts'

function resolved(t: TestContext, toml: string, sets: readonly string[] = []): Resolution {
  const home = temporaryHome(t, { 'deployment.toml': toml })
  const resolution = examine(home, sets, join(home, 'data'))
  const short = <F extends { readonly where: string; readonly hint: string }>(diagnostic: F): F => ({
    ...diagnostic,
    where: diagnostic.where.replaceAll(join(home, 'deployment.toml'), 'F'),
    hint: diagnostic.hint.replaceAll(join(home, 'deployment.toml'), 'F'),
  })
  const { errors, unknown } = resolution
  return { ...resolution, errors: errors.map(short), unknown: unknown.map(short) }
}

function said({ errors, unknown }: Resolution): readonly string[] {
  return [...errors, ...unknown].map(formatDiagnostic)
}

function valueAt({ keys }: Resolution, path: string): unknown {
  return keys.find(key => key.path === path)?.value
}

test('the operator chooses the first name of a key of [custom_keystore.<name>]', t => {
  const resolution = resolved(
    t,
    '[custom_keystore.signing]\nfile_name = "s.jks"\nkey_password = "k"\n[custom_keystore."a.b"]\nfile_name = "ab.jks"',
  )
  assert.deepEqual(said(resolution), [])
  assert.equal(valueAt(resolution, 'custom_keystore.signing.file_name'), 's.jks')
  assert.equal(valueAt(resolution, 'custom_keystore.signing.key_password'), 'k')
  assert.equal(valueAt(resolution, 'custom_keystore.a.b.file_name'), 'ab.jks')
  // A name has all its keys as soon as one of them is set.
  const names = resolution.keys.filter(({ section }) => section === 'custom_keystore').map(({ key }) => key)
  assert.deepEqual(names.filter(name => name.startsWith('signing.')).length * 2, names.length)
  assert.ok(!names.some(name => name.includes('<')))
})

test('the guess for a misspelt key below such a name contains that name', t => {
  assert.deepEqual(said(resolved(t, '[custom_keystore.signing]\nfile_name = "s"\nkey_pasword = "p"')), [
    'F:3: custom_keystore.signing.key_pasword: unknown key in [custom_keystore] (did you mean signing.key_password?)',
  ])
})

test('[oauth.grant_type.<name>] has names of the catalogue and names of the operator', t => {
  const resolution = resolved(
    t,
    '[oauth.grant_type.password]\nenable = false\n[oauth.grant_type.uma_ticket]\nenable = "true"\ngrant_handler = "h"',
  )
  assert.deepEqual(said(resolution), [])
  assert.equal(valueAt(resolution, 'oauth.grant_type.password.enable'), false)
  assert.equal(valueAt(resolution, 'oauth.grant_type.uma_ticket.enable'), true)
  assert.equal(valueAt(resolution, 'oauth.grant_type.uma_ticket.grant_handler'), 'h')
  assert.equal(resolution.keys.filter(({ path }) => path === 'oauth.grant_type.password.enable').length, 1)
})

test('a name of the catalogue does not get the keys of operator names', t => {
  assert.deepEqual(
    resolved(t, '[oauth.grant_type.password]\ngrant_validator = "v"').unknown.map(({ key }) => key),
    ['oauth.grant_type.password.grant_validator'],
  )
})

test('an error about such a key names its whole path', t => {
  assert.deepEqual(said(resolved(t, '[oauth.grant_type.uma_ticket]\nenable = "perhaps"')), [
    'F:2: oauth.grant_type.uma_ticket.enable = "perhaps": expected true or false (the default is uma_ticket.enable = false)',
  ])
})

const SCOPES = 'apim.oauth_config.allowed_scopes'
const OTHER = 'apim.oauth_config.white_listed_scopes'

test('an alias means the same key in the file, in --set and in references', t => {
  const listed = '[apim.oauth_config]\nwhite_listed_scopes = ["a"]'
  const inFile = resolved(t, listed)
  assert.deepEqual(said(inFile), [])
  assert.deepEqual(valueAt(inFile, SCOPES), ['a'])
  assert.deepEqual(valueAt(resolved(t, '', ['apim.oauth_config.white_listed_scopes=b']), SCOPES), ['b'])
  assert.deepEqual(valueAt(resolved(t, listed, [`${SCOPES}=c`]), SCOPES), ['c'])
  const referring = `[access_log]\npath = "$ref{apim.oauth_config.white_listed_scopes}"\n`
  assert.equal(resolved(t, referring + listed).configuration.access_log.path, 'a')
})

test('two spellings in one file are an error in either order, and a value of a wrong kind is one error', t => {
  assert.deepEqual(said(resolved(t, '[apim.oauth_config]\nwhite_listed_scopes = ["a"]\nallowed_scopes = ["b"]')), [
    `F:3: ${SCOPES}: set twice (it is already set as ${OTHER} (F:2); leave one of them out)`,
  ])
  assert.deepEqual(
    resolved(t, '[apim.oauth_config]\nwhite_listed_scopes = 5').errors.map(({ where, key }) => [where, key]),
    [['F:2', SCOPES]],
  )
})

test('allowed_scopes takes regular expressions of at most 256 characters', t => {
  const scopesOf = (text: string) => resolved(t, `[apim.oauth_config]\nallowed_scopes = ['${text}']`)
  for (const text of ['^device_.*', 'v\\d+', 'a{1,2},b', '(read|write)'])
    assert.deepEqual(said(scopesOf(text)), [], text)
  assert.deepEqual(valueAt(scopesOf('a{1,2}, b'), SCOPES), ['a{1,2}', 'b'])
  for (const text of ['*a', 'a**', '[', '(a', '(?=a)', 'a'.repeat(257)]) {
    assert.deepEqual(
      scopesOf(text).errors.map(({ where, key }) => [where, key]),
      [['F:2', SCOPES]],
      text,
    )
  }
})

const ISSUERS = `[[apim.jwt.issuer]]
name = "one"
jwks.url = "https://one/jwks"
[[apim.jwt.issuer.claim_mapping]]
remote_claim = "r1"
local_claim = "l1"
[[apim.jwt.issuer.claim_mapping]]
remote_claim = "r2"
local_claim = "l2"
[[apim.jwt.issuer]]
name = "two"
[apim.jwt.issuer.jwks]
url = "https://two/jwks"
[[apim.jwt.issuer.claim_mapping]]
remote_claim = "r3"
local_claim = "l3"
`
const INLINE = `[apim.jwt]
issuer = [
  { name = "one", jwks = { url = "https://one/jwks" }, claim_mapping = [
    { remote_claim = "r1", local_claim = "l1" },
    { remote_claim = "r2", local_claim = "l2" },
  ] },
  { name = "two", jwks.url = "https://two/jwks", claim_mapping = [{ remote_claim = "r3", local_claim = "l3" }] },
]
`

for (const [how, toml] of [
  ['by their headers', ISSUERS],
  ['as inline tables', INLINE],
] as const) {
  test(`rows within rows are read, written ${how}`, t => {
    const resolution = resolved(t, toml)
    assert.deepEqual(said(resolution), [])
    const set = resolution.keys.filter(({ section, where }) => section.startsWith('apim.jwt.issuer[') && where !== '')
    assert.deepEqual(
      set.map(({ path, value }) => `${path.slice('apim.jwt.issuer'.length)}=${String(value)}`),
      [
        '[0].name=one',
        '[0].jwks.url=https://one/jwks',
        '[1].name=two',
        '[1].jwks.url=https://two/jwks',
        '[0].claim_mapping[0].remote_claim=r1',
        '[0].claim_mapping[0].local_claim=l1',
        '[0].claim_mapping[1].remote_claim=r2',
        '[0].claim_mapping[1].local_claim=l2',
        '[1].claim_mapping[0].remote_claim=r3',
        '[1].claim_mapping[0].local_claim=l3',
      ],
    )
    assert.deepEqual(
      resolution.configuration['apim.jwt.issuer'].map(issuer => [
        issuer.name,
        issuer.claim_mapping.map(({ remote_claim }) => remote_claim),
      ]),
      [
        ['one', ['r1', 'r2']],
        ['two', ['r3']],
      ],
    )
  })
}

test('--set and references reach a row within a row', t => {
  const resolution = resolved(
    t,
    `${ISSUERS}[access_log]\npath = "$ref{apim.jwt.issuer[1].claim_mapping[0].local_claim}"`,
    ['apim.jwt.issuer[1].claim_mapping[0].local_claim=own'],
  )
  assert.equal(resolution.configuration.access_log.path, 'own')
})

const ROW_ERRORS: readonly (readonly [toml: string, ...said: readonly string[]])[] = [
  [
    `${ISSUERS}[[apim.jwt.issuer.claim_mapping]]\nremote_claim = "r4"`,
    'F:17: apim.jwt.issuer[1].claim_mapping[1].local_claim: is missing, and every row needs it (expected text in quotes, without control characters)',
  ],
  [
    '[[apim.jwt.issuer.claim_mapping]]\nremote_claim = "r"\nlocal_claim = "l"',
    'F:1: apim.jwt.issuer.claim_mapping: stands in no row of [[apim.jwt.issuer]] (write [[apim.jwt.issuer]] above it)',
  ],
  [
    '[[apim.jwt.issuer]]\nname = "a"\njwks.url = "https://a"\n[apim.jwt.issuer.claim_mapping]\nremote_claim = "r"',
    'F:4: apim.jwt.issuer.claim_mapping: is a list of rows (write [[apim.jwt.issuer.claim_mapping]] above the keys of each row)',
  ],
  [
    '[[apim.jwt.issuer]]\nname = "a"\n[[apim.jwt.issuer.jwks]]\nurl = "https://a"',
    'F:3: apim.jwt.issuer.jwks: cannot be repeated (write [apim.jwt.issuer.jwks], not [[apim.jwt.issuer.jwks]])',
  ],
  [
    '[[apim.jwt.issuer]]\nname = "a"\njwks.ulr = "https://a"',
    'F:3: apim.jwt.issuer[0].jwks.ulr: unknown key in [[apim.jwt.issuer]] (did you mean jwks.url?)',
  ],
]

for (const [toml, ...errors] of ROW_ERRORS) {
  test(`an error about rows within rows names the row: ${JSON.stringify(toml.slice(-70))}`, t => {
    assert.deepEqual(said(resolved(t, toml)), errors)
  })
}

test('a required key is missing where its section is used, not where a section within it is', t => {
  const missing = (toml: string): readonly string[] =>
    resolved(t, toml)
      .errors.filter(({ key }) => key === 'apim.notification.from_address')
      .map(({ where }) => where)
  assert.deepEqual(missing('[apim.notification]\nusername = "u"\npassword = "p"'), ['F:2'])
  assert.deepEqual(missing('[apim]\n'), [])
  assert.deepEqual(missing(''), [])
})

test('brokers of decisions are required where traffic managers are named, and nowhere else', t => {
  const group =
    '[[apim.throttling.url_group]]\ntraffic_manager_urls = ["ssl://h:1"]\ntraffic_manager_auth_urls = ["ssl://h:2"]'
  const missing = (toml: string): boolean =>
    said(resolved(t, toml)).some(text => text.includes('throttle_decision_endpoints is required'))
  assert.equal(missing('[apim.throttling]\nenable_policy_deploy = false'), false)
  assert.equal(missing(`[apim.throttling]\nenable_policy_deploy = true\n${group}`), true)
  assert.equal(missing(`[apim.throttling]\nenable_decision_connection = false\n${group}`), false)
})

test('a key that follows another has the value of that key until it is set', t => {
  const toml = '[super_admin]\nusername = "chief"\npassword = "geheim"\n[apim.analytics]\nusername = "analyst"'
  const resolution = resolved(t, toml)
  assert.equal(valueAt(resolution, 'apim.workflow.wf_engine_user'), 'chief')
  assert.equal(valueAt(resolution, 'apim.analytics.receiver_username'), 'analyst')
  const password = resolution.keys.find(({ path }) => path === 'apim.analytics.receiver_password')
  assert.deepEqual([password?.value, password?.secret, password?.where], ['geheim', true, ''])
})

test('an invalid value that many keys follow is one error at its line', t => {
  assert.deepEqual(said(resolved(t, '[super_admin]\nusername = "$env{SLUICE_TEST_NOT_SET}"\npassword = 5')), [
    'F:2: super_admin.username = "$env{SLUICE_TEST_NOT_SET}": there is no environment variable SLUICE_TEST_NOT_SET (set it before the start, or write the value here)',
    'F:3: super_admin.password = (set): expected text in quotes, such as "$env{NAME}" (write it in quotes)',
  ])
})

test('keys that follow each other are a circle, reported at the first key that is set', t => {
  assert.deepEqual(said(resolved(t, '[apim.analytics]\nusername = "$ref{apim.analytics.receiver_username}"')), [
    'F:2: apim.analytics.username = "$ref{apim.analytics.receiver_username}": references run in a circle: apim.analytics.username -> apim.analytics.receiver_username -> apim.analytics.username (give one of them a value)',
  ])
})
