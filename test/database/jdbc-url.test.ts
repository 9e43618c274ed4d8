/** JDBC URLs: the settings that each yields, and the URLs that are refused before any connection. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConfigurationErrors } from '../../src/config/diagnostics.ts'
import { databaseSettings } from '../../src/database/database-settings.ts'
import { validateRegistry } from '../../src/control/registry/registry-validation.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { check } from '../../src/cli/check.ts'
import { argumentsFor, Transcript, temporaryHome } from '../config/temporary-home.ts'

const VERIFY_FULL = { isVerified: true, isHostVerified: true, authorities: '', certificate: '', key: '' }
const VERIFY_CA = { ...VERIFY_FULL, isHostVerified: false }
const NO_VERIFICATION = { ...VERIFY_CA, isVerified: false }

/** Type, URL, host, port, database, TLS. */
const READ: readonly (readonly [string, string, string, number, string, object | null])[] = [
  ['postgre', 'jdbc:postgresql://db.example:5433/apim', 'db.example', 5433, 'apim', null],
  ['postgre', 'jdbc:postgresql://[2001:db8::1]/apim', '2001:db8::1', 5432, 'apim', null],
  ['postgre', 'jdbc:postgresql://db/apim?ssl=true', 'db', 5432, 'apim', VERIFY_FULL],
  ['postgre', 'jdbc:postgresql://db/apim?sslmode=verify-ca', 'db', 5432, 'apim', VERIFY_CA],
  ['postgre', 'jdbc:postgresql://db/apim?ssl=true&sslmode=require', 'db', 5432, 'apim', NO_VERIFICATION],
  ['postgre', 'jdbc:postgresql://db/apim?ssl=false', 'db', 5432, 'apim', null],
  ['mysql', 'jdbc:mysql://db/apim?useSSL=false&amp;autoReconnect=true', 'db', 3306, 'apim', null],
  ['mysql', 'jdbc:mysql://db/apim?useSSL=true', 'db', 3306, 'apim', VERIFY_FULL],
  [
    'mysql',
    'jdbc:mysql://db/apim?useSSL=true&requireSSL=true&verifyServerCertificate=false',
    'db',
    3306,
    'apim',
    NO_VERIFICATION,
  ],
  ['mysql', 'jdbc:mariadb://db:3307/apim?sslMode=verify-full', 'db', 3307, 'apim', VERIFY_FULL],
  ['mysql', 'jdbc:mysql://db/a%20b?sslMode=VERIFY_CA', 'db', 3306, 'a b', VERIFY_CA],
]

/** Type, URL, error message. */
const REFUSED: readonly (readonly [string, string, RegExp])[] = [
  ['postgre', 'jdbc:postgresql://one:5432,two:5432/apim', /must have the form jdbc:postgresql:\/\/<host>/],
  ['postgre', 'jdbc:postgresql:apim', /must have the form jdbc:postgresql:\/\/<host>/],
  ['postgre', 'jdbc:mysql://db/apim', /must begin with jdbc:postgresql: where type is postgre \(set type to mysql/],
  ['mysql', 'jdbc:postgresql://db/apim', /must begin with jdbc:mysql: or jdbc:mariadb: .*\(set type to postgre/],
  ['mysql', 'jdbc:oracle:thin:@db:1521/x', /must begin with jdbc:mysql: .*\(write a URL of that type\)/],
  ['h2', 'jdbc:mysql://db/apim', /must begin with jdbc:h2: where type is h2 \(set type to mysql/],
  ['postgre', 'jdbc:postgresql://db:99999/apim', /port up to 65535/],
  ['postgre', 'jdbc:postgresql://db/apim?sslmode=prefer', /allows connections without TLS/],
  ['postgre', 'jdbc:postgresql://db/apim?ssl=true&sslmode=disable', /request TLS in one property and disable it/],
  [
    'postgre',
    'jdbc:postgresql://db/apim?sslfactory=org.postgresql.ssl.NonValidatingFactory',
    /must not have sslfactory/,
  ],
  ['postgre', 'jdbc:postgresql://db/apim?channelBinding=require', /must not have channelBinding.*\(use sslmode=/],
  ['postgre', 'jdbc:postgresql://db/apim?sslrootcert=/nowhere/ca.pem', /PEM file as sslrootcert/],
  ['postgre', "jdbc:postgresql://db/apim?currentSchema=a'b", /currentSchema of letters/],
  ['mysql', 'jdbc:mysql://chef:s3cret@db/apim', /must have the form jdbc:mysql:\/\/<host>/],
  ['mysql', 'jdbc:mysql://10.0.0.1/apim?sslMode=VERIFY_IDENTITY', /must name the server by its host name/],
  ['mysql', 'jdbc:mysql://db/apim?sslMode=PREFERRED', /allows connections without TLS/],
  ['mysql', 'jdbc:mysql://db/apim?useSSL=false&requireSSL=true', /request TLS in one property and disable it/],
  [
    'mysql',
    'jdbc:mysql://db/apim?trustCertificateKeyStoreUrl=file:/x',
    /must not have trustCertificateKeyStoreUrl.*\(use sslMode=/,
  ],
  ['mysql', 'jdbc:mysql://db/apim?useSSL=true&usessl=false', /must not repeat usessl/],
  ['h2', 'jdbc:h2:tcp://db/apim', /must name a file/],
  ['h2', 'jdbc:h2:./apim;CIPHER=AES', /must not request encryption/],
]

function configured(type: string, url: string, more = '') {
  return `[database.apim_db]\ntype = "${type}"\nurl = "${url}"\nusername = "chef"\npassword = "s3cret"\n${more}`
}

for (const [type, url, host, port, database, tls] of READ) {
  test(`${url} is read`, t => {
    const home = temporaryHome(t, { 'deployment.toml': configured(type, url) })
    const { server } = databaseSettings(loadConfiguration(home, []).configuration, home).apim
    assert.deepEqual([server?.host, server?.port, server?.database, server?.tls], [host, port, database, tls])
    assert.deepEqual([server?.username, server?.password], ['chef', 's3cret'])
  })
}

for (const [type, url, message] of REFUSED) {
  test(`${url} is refused`, t => {
    const home = temporaryHome(t, { 'deployment.toml': configured(type, url) })
    const { configuration } = loadConfiguration(home, [])
    assert.throws(
      () => databaseSettings(configuration, home),
      error => error instanceof ConfigurationErrors && message.test(error.message) && !error.message.includes('s3cret'),
    )
  })
}

test('the h2 URL of the reference platform means one file in the data folder for both sections', t => {
  const url = 'jdbc:h2:./repository/database/APIM_DB;DB_CLOSE_ON_EXIT=FALSE'
  const home = temporaryHome(t, { 'deployment.toml': configured('h2', url) })
  const { apim, shared } = databaseSettings(loadConfiguration(home, []).configuration, '/data')
  assert.equal(apim, shared)
  assert.equal(apim.file, '/data/registry.db')
})

test('hostname, port and name replace a URL', t => {
  const toml = '[database.apim_db]\ntype = "mysql"\nhostname = "db.example"\nport = 3310\nname = "kitchen"'
  const home = temporaryHome(t, { 'deployment.toml': toml })
  const { apim, shared, warnings } = databaseSettings(loadConfiguration(home, []).configuration, home)
  assert.equal(apim.description, 'mysql db.example:3310/kitchen')
  assert.equal(shared.dialect, 'sqlite')
  assert.deepEqual(
    warnings.map(({ key, given }) => [key, given]),
    [
      ['database.apim_db.hostname', '"db.example"'],
      ['database.shared_db.type', '"h2"'],
    ],
  )
})

test('shared_db takes hostname, port and name as apim_db does', t => {
  const toml = '[database.shared_db]\ntype = "postgre"\nhostname = "db.example"\nport = 5433\nname = "people"'
  const home = temporaryHome(t, { 'deployment.toml': toml })
  const { configuration } = loadConfiguration(home, [])
  assert.equal(databaseSettings(configuration, home).shared.description, 'postgre db.example:5433/people')
  const both = ['type=postgre', 'hostname=db.example', 'port=5433', 'name=people']
  const same = loadConfiguration(
    home,
    both.map(it => `database.apim_db.${it}`),
  )
  const { apim, shared } = databaseSettings(same.configuration, home)
  assert.equal(apim, shared)
})

for (const [type, expected] of [
  ['postgre', /must be set where type is postgre \(set url, or hostname, port and name\)/],
  ['mysql', /must be set where type is mysql \(set url, or hostname, port and name\)/],
] as const) {
  test(`a section of type ${type} without a location is one error, with the keys that give one`, async t => {
    for (const section of ['apim_db', 'shared_db']) {
      const home = temporaryHome(t, { 'deployment.toml': `[database.${section}]\ntype = "${type}"` })
      const output = new Transcript()
      assert.equal(await check(argumentsFor(home), output), 78)
      assert.match(output.text, expected)
      assert.match(output.text, /: 1 error, /)
    }
  })
}

test('hints about TLS are those of the configured type', t => {
  const hints = (type: string, rest: string): readonly string[] => {
    const home = temporaryHome(t, { 'deployment.toml': `[database.apim_db]\ntype = "${type}"\n${rest}` })
    return databaseSettings(loadConfiguration(home, []).configuration, home).warnings.map(({ hint }) => hint)
  }
  assert.match(hints('postgre', 'url = "jdbc:postgresql://db/apim"')[0]!, /^use sslmode=verify-full, and PEM files by/)
  assert.match(hints('mysql', 'url = "jdbc:mysql://db/apim"')[0]!, /^use sslMode=VERIFY_IDENTITY, and a PEM file/)
  assert.match(hints('mysql', 'hostname = "db"')[0]!, /^set url in place of hostname, and in it use sslMode=VERIFY/)
})

/** Keys that the embedded database does not act on, with a value. */
const EMBEDDED: readonly (readonly [string, string])[] = [
  ['url', '"jdbc:h2:./x"'],
  ['hostname', '"db"'],
  ['port', '3306'],
  ['name', '"x"'],
  ['username', '"u"'],
  ['password', '"p"'],
  ['validationQuery', '"SELECT 2"'],
  ['pool_options.maxActive', '3'],
  ['pool_options.testOnBorrow', 'true'],
  ['pool_options.validationInterval', '1000'],
]

for (const section of ['apim_db', 'shared_db']) {
  for (const [key, value] of EMBEDDED.slice(0, section === 'apim_db' ? EMBEDDED.length : 6)) {
    test(`check says why database.${section}.${key} has no effect on the embedded database`, async t => {
      const home = temporaryHome(t, { 'deployment.toml': `[database.${section}]\n${key} = ${value}` })
      const output = new Transcript()
      assert.equal(await check(argumentsFor(home), output), 0)
      const path = RegExp.escape(`database.${section}.${key}`)
      assert.match(output.text, new RegExp(`${path}.*has no effect .*h2.*the embedded database`))
    })
  }
}

test('keys of the pool act, and are not warned of, where either database is a server', async t => {
  const pool = 'validationQuery = "SELECT 2"\npool_options.maxActive = 3\npool_options.validationInterval = 1000'
  const server = '[database.shared_db]\ntype = "postgre"\nurl = "jdbc:postgresql://127.0.0.1/x"'
  const home = temporaryHome(t, { 'deployment.toml': `[database.apim_db]\n${pool}\n${server}` })
  const output = new Transcript()
  await check(argumentsFor(home), output)
  assert.doesNotMatch(output.text, /no effect/)
  const { maxActive, validationQuery } = databaseSettings(loadConfiguration(home, []).configuration, home).shared.pool
  assert.deepEqual([maxActive, validationQuery], [3, 'SELECT 2'])
})

test('check exits with 78 for unsupported databases and warns of properties without effect', async t => {
  const oracle = temporaryHome(t, { 'deployment.toml': configured('oracle', 'jdbc:oracle:thin:@db:1521/x') })
  const refused = new Transcript()
  assert.equal(await check(argumentsFor(oracle), refused), 78)
  assert.match(refused.text, /deployment\.toml:2.*database\.apim_db\.type.*h2 \(embedded\), postgre, or mysql/)
  const warned = new Transcript()
  const url = 'jdbc:mysql://127.0.0.1/apim?autoReconnect=true&useUnicode=true'
  const home = temporaryHome(t, { 'deployment.toml': configured('mysql', url) })
  await check(argumentsFor(home), warned)
  assert.match(warned.text, /has properties without effect: autoReconnect, useUnicode/)
  const pattern = temporaryHome(t, { 'deployment.toml': "[user_store.properties]\nPasswordJavaRegEx = '^(?i)a++$'" })
  const unknown = new Transcript()
  assert.equal(await check(argumentsFor(pattern), unknown), 78)
  assert.match(unknown.text, /PasswordJavaRegEx.*a pattern that JavaScript accepts/)
})

test('a database server without encryption.key is an error, with the command that makes one', async t => {
  const toml = configured('postgre', 'jdbc:postgresql://127.0.0.1/apim')
  const output = new Transcript()
  assert.equal(await check(argumentsFor(temporaryHome(t, { 'deployment.toml': toml })), output), 78)
  assert.match(output.text, /encryption\.key: must be set where database\.apim_db is a server.*openssl rand -hex 32/)
  const short = temporaryHome(t, { 'deployment.toml': `${toml}\n[encryption]\nkey = "too short"` })
  assert.throws(() => loadConfiguration(short, []), /encryption\.key = \(set\): .*at least 32 random characters/)
  const shared = configured('postgre', 'jdbc:postgresql://127.0.0.1/apim').replace('apim_db', 'shared_db')
  const embedded = temporaryHome(t, { 'deployment.toml': shared })
  const { errors } = validateRegistry(loadConfiguration(embedded, []).configuration)
  assert.deepEqual(errors, [])
})
