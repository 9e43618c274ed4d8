/** Item 12: TLS to the database server, with PostgreSQL and MariaDB servers that this test starts. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Registry } from '../../../src/control/registry/registry.ts'
import { RegistryUnavailable } from '../../../src/control/registry/registry-errors.ts'
import type { TlsIdentity } from '../../../src/socket/tls.ts'
import {
  CA,
  CLIENT,
  EXPIRED,
  OTHER_CA,
  OTHER_CLIENT,
  SELF_SIGNED,
  SERVER,
  WILDCARD,
} from '../../harness/certificates.ts'
import { loadConfiguration } from '../../harness/configuration.ts'
import { ACCOUNT, type OwnServer, ownServer } from './own-servers.ts'
import { ENCRYPTION_KEY, ISSUER } from './real-databases.ts'

/** Of the server; null: it offers no TLS. Then properties of the URL, the account, and why not ('': it connects). */
type Row = readonly [clause: string, TlsIdentity | null, string, string, RegExp | null]

const CERTIFIED = `${ACCOUNT}_with_certificate`

/** `CA`, `OTHER_CA` and names of clients stand for paths of files. */
const ROWS: Readonly<Record<'postgre' | 'mysql', readonly Row[]>> = {
  postgre: [
    ['a verified server', SERVER, 'sslmode=verify-full&sslrootcert=CA', ACCOUNT, null],
    ['ssl=true verifies', SELF_SIGNED, 'ssl=true', ACCOUNT, /self-signed certificate/],
    [
      'an unknown authority',
      SERVER,
      'sslmode=verify-full',
      ACCOUNT,
      /self-signed certificate in.*; name the PEM file .* by sslrootcert/,
    ],
    [
      'another authority',
      SERVER,
      'sslmode=verify-ca&sslrootcert=OTHER_CA',
      ACCOUNT,
      /self-signed certificate in.*; name the PEM file .* by sslrootcert/,
    ],
    ['an expired certificate', EXPIRED, 'sslmode=verify-ca&sslrootcert=CA', ACCOUNT, /certificate has expired/],
    [
      'another host',
      WILDCARD,
      'sslmode=verify-full&sslrootcert=CA',
      ACCOUNT,
      /altnames.*localhost.* or sslmode=verify-ca$/,
    ],
    ['another host, not asked for', WILDCARD, 'sslmode=verify-ca&sslrootcert=CA', ACCOUNT, null],
    ['any certificate', SELF_SIGNED, 'sslmode=require', ACCOUNT, null],
    [
      'no plain connection in place of TLS',
      null,
      'sslmode=require',
      ACCOUNT,
      /does not support SSL.*; switch TLS on at the server, or leave sslmode out/,
    ],
    ['a plain connection to a server that asks for TLS', SERVER, '', ACCOUNT, /28000|no encryption/],
    ['a client certificate', SERVER, 'sslmode=verify-full&sslrootcert=CA&sslcert=CLIENT&sslkey=KEY', CERTIFIED, null],
    ['no client certificate', SERVER, 'sslmode=verify-full&sslrootcert=CA', CERTIFIED, /client certificate/],
    [
      'a client certificate of another authority',
      SERVER,
      'sslmode=verify-full&sslrootcert=CA&sslcert=OTHER_CLIENT&sslkey=OTHER_KEY',
      CERTIFIED,
      /alert unknown ca|client certificate|ECONNRESET|terminated/,
    ],
  ],
  mysql: [
    ['a verified server', SERVER, 'sslMode=VERIFY_IDENTITY&serverSslCert=CA', ACCOUNT, null],
    ['useSSL=true verifies', SELF_SIGNED, 'useSSL=true', ACCOUNT, /self-signed certificate/],
    [
      'an unknown authority',
      SERVER,
      'sslMode=verify-full',
      ACCOUNT,
      /self-signed certificate in.*; name the PEM file .* by serverSslCert/,
    ],
    [
      'another authority',
      SERVER,
      'sslMode=VERIFY_CA&serverSslCert=OTHER_CA',
      ACCOUNT,
      /self-signed certificate in.*; name the PEM file .* by serverSslCert/,
    ],
    ['an expired certificate', EXPIRED, 'sslMode=VERIFY_CA&serverSslCert=CA', ACCOUNT, /certificate has expired/],
    [
      'another host',
      WILDCARD,
      'sslMode=VERIFY_IDENTITY&serverSslCert=CA',
      ACCOUNT,
      /altnames.*localhost.* or sslMode=VERIFY_CA$/,
    ],
    ['another host, not asked for', WILDCARD, 'sslMode=VERIFY_CA&serverSslCert=CA', ACCOUNT, null],
    ['any certificate', SELF_SIGNED, 'sslMode=REQUIRED', ACCOUNT, null],
    [
      'no plain connection in place of TLS',
      null,
      'sslMode=REQUIRED',
      ACCOUNT,
      /does not support secure.*; switch TLS on at the server, or leave sslMode out/,
    ],
    ['a plain connection to a server that asks for TLS', SERVER, '', ACCOUNT, /Access denied/],
  ],
}

const home = mkdtempSync(join(tmpdir(), 'sluice-tls-'))
const FILES: Readonly<Record<string, string>> = {
  ...{ CA: CA.cert, OTHER_CA: OTHER_CA.cert, CLIENT: CLIENT.cert, KEY: CLIENT.key },
  ...{ OTHER_CLIENT: OTHER_CLIENT.cert, OTHER_KEY: OTHER_CLIENT.key },
}
for (const [name, text] of Object.entries(FILES)) writeFileSync(join(home, name), text)
after(() => rmSync(home, { recursive: true }))

for (const kind of ['postgre', 'mysql'] as const) {
  describe(`TLS to ${kind}`, () => {
    let server: OwnServer | string = ''
    before(async () => {
      server = await ownServer(kind)
    })
    after(async () => {
      if (typeof server !== 'string') await server.end()
    })
    for (const [clause, identity, properties, account, why] of ROWS[kind]) {
      test(`${clause} is ${why === null ? 'connected to' : 'refused'}`, async t => {
        if (typeof server === 'string') return t.skip(server)
        await server.present(identity)
        const start = kind === 'postgre' ? 'jdbc:postgresql' : 'jdbc:mariadb'
        const opening = open(kind, `${start}://localhost:${server.port}/kitchen?${withPaths(properties)}`, account)
        if (why === null) await (await opening).close()
        else await assert.rejects(opening, error => isRefusal(error, why))
      })
    }
  })
}

function withPaths(properties: string): string {
  return properties.replace(/=([A-Z_]+)(?=&|$)/g, (all, name) => (name in FILES ? `=${join(home, name)}` : all))
}

function open(type: string, url: string, username: string): Promise<Registry> {
  const keys = `type = "${type}"\nurl = "${url}"\nusername = "${username}"\n`
  const sections = ['apim_db', 'shared_db'].map(name => `[database.${name}]\n${keys}`).join('')
  writeFileSync(join(home, 'deployment.toml'), `[encryption]\nkey = "${ENCRYPTION_KEY}"\n${sections}`)
  const dataDir = join(home, 'data')
  mkdirSync(dataDir, { recursive: true })
  const { configuration } = loadConfiguration(home, [], dataDir)
  return Registry.open({ configuration, dataDir, issuer: ISSUER })
}

/** `--wait` is for servers that are down: a wrong certificate is told at once. */
function isRefusal(error: unknown, why: RegExp): boolean {
  assert.ok(error instanceof RegistryUnavailable, String(error))
  assert.match(error.message, why)
  assert.match(error.message, /^(?:postgre|mysql) localhost:\d+\/kitchen: /)
  assert.equal(error.isUnreachable, false, error.message)
  return true
}
