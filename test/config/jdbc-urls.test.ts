/** Database URLs hold credentials in several places, and no output of the gateway shows any of them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check } from '../../src/cli/check.ts'
import { explain } from '../../src/cli/explain.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { argumentsFor, Transcript, temporaryHome } from './temporary-home.ts'

const PASSWORD = 'Tr0ub4dor-and-3'

const URLS: readonly (readonly [place: string, type: string, url: string])[] = [
  ['in front of the host', 'mysql', `jdbc:mysql://apim:${PASSWORD}@db.example.com:3306/apim_db?useSSL=false`],
  ['in front of the host, with its signs', 'mysql', `jdbc:mysql://apim:p@ss/${PASSWORD}@db.example.com:3306/apim_db`],
  ['within the address', 'mysql', `jdbc:mysql://(host=db,user=apim,password=${PASSWORD})/apim_db`],
  [
    'a parameter, escaped for XML',
    'mysql',
    `jdbc:mysql://db/apim_db?user=apim&amp;password=${PASSWORD}&amp;useSSL=false`,
  ],
  ['of a store', 'mysql', `jdbc:mysql://db/apim_db?trustCertificateKeyStorePassword=${PASSWORD}`],
  ['of a key', 'postgre', `jdbc:postgresql://db/apim?user=apim&sslpassword=${PASSWORD}`],
  ['in braces', 'mssql', `jdbc:sqlserver://db:1433;databaseName=apim;user=apim;password={a;${PASSWORD}};encrypt=true`],
  ['of a store', 'mssql', `jdbc:sqlserver://db:1433;trustStorePassword=${PASSWORD}`],
  ['behind a slash', 'oracle', `jdbc:oracle:thin:apim/${PASSWORD}@db.example.com:1521:orcl`],
  ['quoted', 'oracle', `jdbc:oracle:thin:apim/"${PASSWORD}"@//db.example.com:1521/orcl`],
  ['a property', 'db2', `jdbc:db2://db:50000/apim:user=apim;password=${PASSWORD};`],
  ['in capitals', 'h2', `jdbc:h2:./apim;CIPHER=AES;PASSWORD=${PASSWORD}`],
]
const SLASHED = URLS.find(([place]) => place === 'behind a slash')!

/** Files that contain the URL, at a valid place or not. */
const FILES: readonly (readonly [name: string, write: (type: string, url: string) => string])[] = [
  ['where it belongs', (type, url) => `[database.apim_db]\ntype = "${type}"\nurl = '${url}'`],
  ['in the shared database', (type, url) => `[database.shared_db]\ntype = "${type}"\nurl = '${url}'`],
  ['of another type', (type, url) => `[database.apim_db]\ntype = "${type === 'h2' ? 'db2' : 'h2'}"\nurl = '${url}'`],
  ['beside a host', (type, url) => `[database.apim_db]\ntype = "${type}"\nurl = '${url}'\nhostname = "h"\nport = 1`],
  ['in a list', (type, url) => `[database.apim_db]\ntype = "${type}"\nurl = ['${url}']`],
  ['without its beginning', (_, url) => `[database.apim_db]\nurl = '${url.replace('jdbc:', '')}'`],
  [
    'referred to by text',
    (type, url) =>
      `[database.apim_db]\ntype = "${type}"\nurl = '${url}'\n[access_log]\npath = "$ref{database.apim_db.url}"`,
  ],
  [
    'referred to by a number',
    (type, url) =>
      `[database.apim_db]\ntype = "${type}"\nurl = '${url}'\n[server]\noffset = "$ref{database.apim_db.url}"`,
  ],
]

const ASKED: readonly (readonly string[])[] = [[], ['database.apim_db'], ['database.apim_db.url'], ['access_log.path']]

const BELONGS = FILES[0]!

const CASES: readonly (readonly [name: string, toml: string])[] = [
  ...URLS.map(([place, type, url]) => [`${type}, ${place}`, BELONGS[1](type, url)] as const),
  ...FILES.map(([name, write]) => [`of a URL ${name}`, write(SLASHED[1], SLASHED[2])] as const),
]

for (const [name, toml] of CASES) {
  test(`no output shows a password: ${name}`, async t => {
    const home = temporaryHome(t, { 'deployment.toml': toml })
    const seen = new Transcript()
    for (const json of [false, true]) {
      for (const rest of ASKED) await explain(argumentsFor(home, { json, rest }), seen, seen)
      await check(argumentsFor(home, { json }), seen)
    }
    try {
      for (const warning of loadConfiguration(home, []).warnings) seen.write(warning)
    } catch (error) {
      seen.write(String(error))
    }
    assert.ok(seen.text.length > 1000)
    const lines = seen.text.split('\n').filter(line => line.includes(PASSWORD))
    assert.deepEqual(lines, [])
  })
}

test('the configuration has the URL of a database unchanged', t => {
  const [, , url] = URLS[0]!
  const home = temporaryHome(t, { 'deployment.toml': `[database.apim_db]\ntype = "mysql"\nurl = '${url}'` })
  assert.equal(loadConfiguration(home, []).configuration['database.apim_db'].url, url)
})
