import assert from 'node:assert/strict'
import { once } from 'node:events'
import { renameSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { connect, createServer, type TLSSocket } from 'node:tls'
import type { TlsMaterial } from '../../src/tls/tls-material.ts'
import { CA, CLIENT, OTHER_CA, RSA_SERVER, SERVER, VIRTUAL } from '../harness/certificates.ts'
import { quiet } from '../harness/peers.ts'
import { JAVA_P12, MODERN_P12, RSA_JKS, TRUST_P12 } from './fixtures/stores.ts'
import { TlsHome } from './tls-home.ts'

const KEYS = { 'listener.key_store.file_name': 'own.pem', 'listener.key_store.type': 'PEM' }
const VERIFYING = {
  ...KEYS,
  'listener.parameters.SSLVerifyClient': 'require',
  'listener.trust_store.file_name': 'ca.pem',
  'listener.trust_store.type': 'PEM',
}
const INTERVAL_MS = 600_000
const HALF_DAY_MS = 12 * 3_600_000

/** Material from files with `SERVER` and `CA`, with mocked timers. */
async function opened(
  t: TestContext,
  keys: Record<string, string | number> = VERIFYING,
): Promise<[TlsHome, TlsMaterial]> {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const home = new TlsHome(t)
  home.write('security/own.pem', SERVER.key + SERVER.cert)
  home.write('security/ca.pem', CA.cert)
  return [home, await home.open(keys)]
}

test('plans from key stores secure a connection with a client certificate', async t => {
  const home = new TlsHome(t)
  home.write('security/server.p12', JAVA_P12)
  home.write('security/trust.p12', TRUST_P12)
  home.write('security/client.pem', CLIENT.key + CLIENT.cert)
  const { plans } = await home.open({
    'listener.key_store.file_name': 'server.p12',
    'listener.key_store.password': 'storepw',
    'listener.trust_store.file_name': 'trust.p12',
    'listener.trust_store.password': 'storepw',
    'listener.parameters.SSLVerifyClient': 'require',
    'listener.preferred_ciphers': 'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256',
    'listener.protocols': 'TLSv1.2',
    'sender.key_store.file_name': 'client.pem',
    'sender.key_store.type': 'PEM',
    'sender.trust_store.file_name': 'trust.p12',
    'sender.trust_store.password': 'storepw',
  })
  const { identity, ca, ciphers, minVersion, maxVersion, ticketKeys } = plans.server!
  const server = createServer({
    ...identity,
    ca: [...ca],
    ciphers,
    minVersion,
    maxVersion,
    ticketKeys: Buffer.from(ticketKeys),
    requestCert: true,
    rejectUnauthorized: true,
  })
  t.after(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { plan } = plans.clients.at(-1)!
  const { port } = server.address() as AddressInfo
  const socket = connect({ host: '127.0.0.1', port, ca: [...plan.ca!], ...plan.identity! })
  t.after(() => socket.destroy())
  const [accepted] = (await once(server, 'secureConnection')) as [TLSSocket]
  assert.equal(accepted.getPeerCertificate().subject.CN, 'Test Client')
  assert.equal(accepted.getCipher().name, 'ECDHE-ECDSA-AES128-GCM-SHA256')
})

test('a replaced store is active after the interval, and session tickets stay valid', async t => {
  const [home, material] = await opened(t)
  const before = material.plans
  home.write('security/new.pem', RSA_SERVER.key + RSA_SERVER.cert)
  renameSync(`${home.path}/security/new.pem`, `${home.path}/security/own.pem`)
  t.mock.timers.tick(INTERVAL_MS)
  await home.until(() => home.changes.length === 1)
  assert.equal(home.changes[0]!.server!.identity.cert, RSA_SERVER.cert)
  assert.equal(material.plans, home.changes[0])
  assert.deepEqual(material.plans.server!.ticketKeys, before.server!.ticketKeys)
})

test('unchanged files change nothing, even if they are read again', async t => {
  const [home, material] = await opened(t)
  const before = material.plans
  t.mock.timers.tick(INTERVAL_MS)
  await material.reload()
  assert.deepEqual(home.changes, [])
  assert.equal(material.plans, before)
})

test('an interval of 0 disables the checks, and a reload needs none', async t => {
  const keys = { ...VERIFYING, 'listener.ssl_profile_interval': 0, 'sender.ssl_profile.interval': 0 }
  const [home, material] = await opened(t, keys)
  home.write('security/own.pem', RSA_SERVER.key + RSA_SERVER.cert)
  t.mock.timers.tick(INTERVAL_MS)
  await material.reload()
  assert.equal(home.changes.length, 1)
})

test('the shorter of both intervals applies', async t => {
  const [home] = await opened(t, { ...VERIFYING, 'sender.ssl_profile.interval': 1000 })
  home.write('security/own.pem', RSA_SERVER.key + RSA_SERVER.cert)
  t.mock.timers.tick(1000)
  await home.until(() => home.changes.length === 1)
})

test('an error is logged once per change of the file, and the active plans stay until it is corrected', async t => {
  const [home, material] = await opened(t)
  const before = material.plans
  home.write('security/own.pem', SERVER.key + VIRTUAL.cert)
  t.mock.timers.tick(INTERVAL_MS)
  await home.until(() => home.logged.length === 1)
  t.mock.timers.tick(INTERVAL_MS)
  await quiet()
  assert.equal(home.logged.length, 1)
  rmSync(`${home.path}/security/own.pem`)
  t.mock.timers.tick(INTERVAL_MS)
  await home.until(() => home.logged.length === 2)
  assert.match(
    home.logged[0]!,
    /^error: security\/own\.pem: .*holds no certificate for its key .*; the active TLS plans stay$/,
  )
  assert.match(home.logged[1]!, /^error: security\/own\.pem: .*there is no such file/)
  assert.equal(material.plans, before)
  home.write('security/own.pem', VIRTUAL.key + VIRTUAL.cert)
  t.mock.timers.tick(INTERVAL_MS)
  await home.until(() => home.changes.length === 1)
  assert.equal(material.plans.server!.identity.cert, VIRTUAL.cert)
})

test('a changed profile file is read again, and one with errors leaves the active profiles', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const home = new TlsHome(t)
  home.write('security/shop.pem', VIRTUAL.key + VIRTUAL.cert)
  const store = '<KeyStore><Location>shop.pem</Location><Type>PEM</Type></KeyStore>'
  const write = (names: string, end: string): void =>
    void home.write('p.xml', `<parameter name="SSLProfiles"><profile>${names}${store}</profile>${end}`)
  write('', '</parameter>')
  const material = await home.open({ 'listener.ssl_profile.file_path': 'p.xml' })
  const namesNow = (): readonly (readonly string[])[] => material.plans.server!.hosts.map(({ names }) => names)
  write('<serverName>one.example</serverName>', '</parameter>')
  t.mock.timers.tick(INTERVAL_MS)
  await home.until(() => home.changes.length === 1)
  assert.deepEqual(namesNow(), [['one.example']])
  write('<serverName>two.example</serverName>', '')
  t.mock.timers.tick(INTERVAL_MS)
  await home.until(() => home.logged.some(line => line.startsWith('error: p.xml:')))
  assert.deepEqual(namesNow(), [['one.example']])
})

test('session tickets end when other certificates are trusted', async t => {
  const [home, material] = await opened(t)
  const before = material.plans
  home.write('security/ca.pem', OTHER_CA.cert)
  await material.reload()
  assert.deepEqual(material.plans.server!.ca, [OTHER_CA.cert])
  assert.notDeepEqual(material.plans.server!.ticketKeys, before.server!.ticketKeys)
})

test('session ticket keys have 48 bytes and change every twelve hours, and nothing else changes', async t => {
  const [home, material] = await opened(t)
  const before = material.plans
  assert.equal(before.server!.ticketKeys.length, 48)
  t.mock.timers.tick(HALF_DAY_MS)
  await home.until(() => home.changes.length === 1)
  const { ticketKeys, ...rest } = material.plans.server!
  assert.notDeepEqual(ticketKeys, before.server!.ticketKeys)
  assert.deepEqual({ ...rest, ticketKeys: before.server!.ticketKeys }, before.server)
})

test('plans that the receiver refuses do not prevent later ones', async t => {
  const [home, material] = await opened(t)
  home.refuses = true
  home.write('security/own.pem', RSA_SERVER.key + RSA_SERVER.cert)
  await material.reload()
  assert.deepEqual(home.logged, ['error: TLS plans could not be renewed: refused'])
  home.refuses = false
  home.write('security/own.pem', VIRTUAL.key + VIRTUAL.cert)
  await material.reload()
  assert.equal(home.changes.at(-1)!.server!.identity.cert, VIRTUAL.cert)
})

test('after stop nothing is logged and nothing changes', async t => {
  const [home, material] = await opened(t)
  home.write('security/own.pem', RSA_SERVER.key + RSA_SERVER.cert)
  const reloaded = material.reload()
  material.stop()
  t.mock.timers.tick(HALF_DAY_MS)
  await reloaded
  await material.reload()
  assert.deepEqual([home.changes, home.logged], [[], []])
})

test('after stop during a reload nothing is logged and nothing changes', async t => {
  const [home, material] = await opened(t)
  home.write('security/own.pem', RSA_SERVER.key + RSA_SERVER.cert)
  const reloaded = material.reload()
  for (let i = 0; i < 3; i++) await Promise.resolve()
  material.stop()
  await reloaded
  assert.deepEqual([home.changes, home.logged], [[], []])
})

test('without SSLVerifyClient no certificate is trusted for clients', async t => {
  const [, material] = await opened(t, { ...VERIFYING, 'listener.parameters.SSLVerifyClient': 'none' })
  assert.deepEqual(material.plans.server!.ca, [])
})

test('without a TLS listener there is no plan for it, and its stores are not read', async t => {
  const home = new TlsHome(t)
  const material = await home.open({ 'listener.key_store.file_name': 'nowhere.p12' }, { listens: false })
  assert.equal(material.plans.server, null)
  assert.deepEqual(home.logged, [])
})

test('passwords and keys appear in no message', async t => {
  const home = new TlsHome(t)
  home.write('security/modern.p12', MODERN_P12)
  home.write('security/rsa.jks', RSA_JKS)
  const opening = { 'listener.key_store.file_name': 'modern.p12', 'listener.key_store.password': 'storepw' }
  const sending = {
    'sender.key_store.file_name': 'rsa.jks',
    'sender.key_store.type': 'JKS',
    'sender.key_store.password': 'storepw',
  }
  const errors = await home.errors({ ...opening, ...sending, 'sender.key_store.key_password': 'hidden-1' })
  assert.equal(errors.length, 1)
  const password = '<Password>hidden<2</Password>'
  home.write('p.xml', `<parameter name="SSLProfiles"><profile><KeyStore>${password}</KeyStore></profile></parameter>`)
  const others = await home.errors({ ...opening, 'listener.ssl_profile.file_path': 'p.xml' })
  assert.equal(others.length, 1)
  assert.doesNotMatch([...errors, ...others, ...home.logged].join('\n'), /storepw|hidden|PRIVATE KEY/)
})
