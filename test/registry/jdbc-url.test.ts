/** JDBC URLs: what each leads to, and which are refused before anything is connected. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConfigurationFaults } from '../../src/config/fault.ts'
import { databasePlan } from '../../src/registry/database-plan.ts'
import { judgeRegistry } from '../../src/registry/judgement.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { check } from '../../src/cli/check.ts'
import { argumentsFor, Transcript, temporaryHome } from '../config/temporary-home.ts'

const FULL = { isVerified: true, isHostVerified: true, authorities: '', certificate: '', key: '' }
const CHAIN = { ...FULL, isHostVerified: false }
const BLIND = { ...CHAIN, isVerified: false }

/** Type, URL, host, port, database, TLS. */
const READ: readonly (readonly [string, string, string, number, string, object | null])[] = [
  ['postgre', 'jdbc:postgresql://db.example:5433/apim', 'db.example', 5433, 'apim', null],
  ['postgre', 'jdbc:postgresql://[2001:db8::1]/apim', '2001:db8::1', 5432, 'apim', null],
  ['postgre', 'jdbc:postgresql://db/apim?ssl=true', 'db', 5432, 'apim', FULL],
  ['postgre', 'jdbc:postgresql://db/apim?sslmode=verify-ca', 'db', 5432, 'apim', CHAIN],
  ['postgre', 'jdbc:postgresql://db/apim?ssl=true&sslmode=require', 'db', 5432, 'apim', BLIND],
  ['postgre', 'jdbc:postgresql://db/apim?ssl=false', 'db', 5432, 'apim', null],
  ['mysql', 'jdbc:mysql://db/apim?useSSL=false&amp;autoReconnect=true', 'db', 3306, 'apim', null],
  ['mysql', 'jdbc:mysql://db/apim?useSSL=true', 'db', 3306, 'apim', FULL],
  [
    'mysql',
    'jdbc:mysql://db/apim?useSSL=true&requireSSL=true&verifyServerCertificate=false',
    'db',
    3306,
    'apim',
    BLIND,
  ],
  ['mysql', 'jdbc:mariadb://db:3307/apim?sslMode=verify-full', 'db', 3307, 'apim', FULL],
  ['mysql', 'jdbc:mysql://db/a%20b?sslMode=VERIFY_CA', 'db', 3306, 'a b', CHAIN],
]

/** Type, URL, what the fault says. */
const REFUSED: readonly (readonly [string, string, RegExp])[] = [
  ['postgre', 'jdbc:postgresql://one:5432,two:5432/apim', /must be jdbc:/],
  ['postgre', 'jdbc:postgresql:apim', /must be jdbc:/],
  ['postgre', 'jdbc:postgresql://db:99999/apim', /port up to 65535/],
  ['postgre', 'jdbc:postgresql://db/apim?sslmode=prefer', /may end in a connection in the clear/],
  ['postgre', 'jdbc:postgresql://db/apim?ssl=true&sslmode=disable', /ask for TLS in one property and refuse it/],
  [
    'postgre',
    'jdbc:postgresql://db/apim?sslfactory=org.postgresql.ssl.NonValidatingFactory',
    /must not have sslfactory/,
  ],
  ['postgre', 'jdbc:postgresql://db/apim?channelBinding=require', /must not have channelBinding/],
  ['postgre', 'jdbc:postgresql://db/apim?sslrootcert=/nowhere/ca.pem', /PEM file as sslrootcert/],
  ['postgre', "jdbc:postgresql://db/apim?currentSchema=a'b", /plain currentSchema/],
  ['mysql', 'jdbc:mysql://chef:s3cret@db/apim', /must be jdbc:/],
  ['mysql', 'jdbc:mysql://db/apim?sslMode=PREFERRED', /may end in a connection in the clear/],
  ['mysql', 'jdbc:mysql://db/apim?useSSL=false&requireSSL=true', /ask for TLS in one property and refuse it/],
  ['mysql', 'jdbc:mysql://db/apim?trustCertificateKeyStoreUrl=file:/x', /must not have trustCertificateKeyStoreUrl/],
  ['mysql', 'jdbc:mysql://db/apim?useSSL=true&usessl=false', /must not name usessl twice/],
  ['h2', 'jdbc:h2:tcp://db/apim', /must be a file/],
  ['h2', 'jdbc:h2:./apim;CIPHER=AES', /must not ask for encryption/],
]

function configured(type: string, url: string, more = '') {
  return `[database.apim_db]\ntype = "${type}"\nurl = "${url}"\nusername = "chef"\npassword = "s3cret"\n${more}`
}

for (const [type, url, host, port, database, tls] of READ) {
  test(`${url} is read`, t => {
    const home = temporaryHome(t, { 'deployment.toml': configured(type, url) })
    const { server } = databasePlan(loadConfiguration(home, []).configuration, home).apim
    assert.deepEqual([server?.host, server?.port, server?.database, server?.tls], [host, port, database, tls])
    assert.deepEqual([server?.username, server?.password], ['chef', 's3cret'])
  })
}

for (const [type, url, said] of REFUSED) {
  test(`${url} is refused`, t => {
    const home = temporaryHome(t, { 'deployment.toml': configured(type, url) })
    const { configuration } = loadConfiguration(home, [])
    assert.throws(
      () => databasePlan(configuration, home),
      error => error instanceof ConfigurationFaults && said.test(error.message) && !error.message.includes('s3cret'),
    )
  })
}

test('the URL of the reference platform for its embedded database is the file in the data folder, for both', t => {
  const url = 'jdbc:h2:./repository/database/APIM_DB;DB_CLOSE_ON_EXIT=FALSE'
  const home = temporaryHome(t, { 'deployment.toml': configured('h2', url) })
  const { apim, shared } = databasePlan(loadConfiguration(home, []).configuration, '/data')
  assert.equal(apim, shared)
  assert.equal(apim.file, '/data/registry.db')
})

test('hostname, port and name lead to a server without a URL', t => {
  const toml = '[database.apim_db]\ntype = "mysql"\nhostname = "db.example"\nport = 3310\nname = "kitchen"'
  const home = temporaryHome(t, { 'deployment.toml': toml })
  const { apim, shared, warnings } = databasePlan(loadConfiguration(home, []).configuration, home)
  assert.equal(apim.place, 'mysql db.example:3310/kitchen')
  assert.equal(shared.flavour, 'sqlite')
  assert.deepEqual(
    warnings.map(({ key }) => key),
    ['database.apim_db.url', 'database.shared_db.type'],
  )
})

test('check refuses databases without a driver with 78, and names properties that nothing reads', async t => {
  const oracle = temporaryHome(t, { 'deployment.toml': configured('oracle', 'jdbc:oracle:thin:@db:1521/x') })
  const refused = new Transcript()
  assert.equal(await check(argumentsFor(oracle), refused), 78)
  assert.match(refused.text, /deployment\.toml:2.*database\.apim_db\.type.*h2 \(embedded\), postgre, or mysql/)
  const warned = new Transcript()
  const url = 'jdbc:mysql://127.0.0.1/apim?autoReconnect=true&useUnicode=true'
  const home = temporaryHome(t, { 'deployment.toml': configured('mysql', url) })
  await check(argumentsFor(home), warned)
  assert.match(warned.text, /has properties that nothing acts on: autoReconnect, useUnicode/)
  const pattern = temporaryHome(t, { 'deployment.toml': "[user_store.properties]\nPasswordJavaRegEx = '^(?i)a++$'" })
  const unknown = new Transcript()
  assert.equal(await check(argumentsFor(pattern), unknown), 78)
  assert.match(unknown.text, /PasswordJavaRegEx.*a pattern that JavaScript knows/)
})

test('a signing key that each node replaces by itself is warned of where nodes may share a database', t => {
  const warned = (sets: readonly string[]) => {
    const home = temporaryHome(t, { 'deployment.toml': '' })
    const { configuration } = loadConfiguration(home, ['oauth.signing_key.lifetime=30d', ...sets])
    return judgeRegistry(configuration).warnings.some(({ key }) => key === 'oauth.signing_key.lifetime')
  }
  const server = ['database.apim_db.type=postgre', 'database.apim_db.url=jdbc:postgresql://127.0.0.1/apim']
  assert.deepEqual([warned([]), warned(server)], [false, true])
  assert.equal(warned([...server, 'oauth.signing_key.lifetime=-1']), false)
})
