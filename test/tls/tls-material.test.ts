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
import { Place } from './place.ts'

const KEYS = { 'listener.key_store.file_name': 'own.pem', 'listener.key_store.type': 'PEM' }
const VERIFYING = {
  ...KEYS,
  'listener.parameters.SSLVerifyClient': 'require',
  'listener.trust_store.file_name': 'ca.pem',
  'listener.trust_store.type': 'PEM',
}
const INTERVAL_MS = 600_000
const HALF_DAY_MS = 12 * 3_600_000

/** Material with `SERVER` and `CA` in its files, and time that only passes when it is told to. */
async function opened(
  t: TestContext,
  keys: Record<string, string | number> = VERIFYING,
): Promise<[Place, TlsMaterial]> {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const place = new Place(t)
  place.write('security/own.pem', SERVER.key + SERVER.cert)
  place.write('security/ca.pem', CA.cert)
  return [place, await place.open(keys)]
}

test('plans of stores secure a connection, with a client certificate', async t => {
  const place = new Place(t)
  place.write('security/server.p12', JAVA_P12)
  place.write('security/trust.p12', TRUST_P12)
  place.write('security/client.pem', CLIENT.key + CLIENT.cert)
  const { plans } = await place.open({
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

test('a store that was replaced is in force after the interval, and sessions go on', async t => {
  const [place, material] = await opened(t)
  const before = material.plans
  place.write('security/new.pem', RSA_SERVER.key + RSA_SERVER.cert)
  renameSync(`${place.home}/security/new.pem`, `${place.home}/security/own.pem`)
  t.mock.timers.tick(INTERVAL_MS)
  await place.until(() => place.changes.length === 1)
  assert.equal(place.changes[0]!.server!.identity.cert, RSA_SERVER.cert)
  assert.equal(material.plans, place.changes[0])
  assert.deepEqual(material.plans.server!.ticketKeys, before.server!.ticketKeys)
})

test('files that are as they were change nothing, read again or not', async t => {
  const [place, material] = await opened(t)
  const before = material.plans
  t.mock.timers.tick(INTERVAL_MS)
  await material.reload()
  assert.deepEqual(place.changes, [])
  assert.equal(material.plans, before)
})

test('a change on demand needs no interval, and 0 is none', async t => {
  const keys = { ...VERIFYING, 'listener.ssl_profile_interval': 0, 'sender.ssl_profile.interval': 0 }
  const [place, material] = await opened(t, keys)
  place.write('security/own.pem', RSA_SERVER.key + RSA_SERVER.cert)
  t.mock.timers.tick(INTERVAL_MS)
  await material.reload()
  assert.equal(place.changes.length, 1)
})

test('the shorter of the two intervals holds', async t => {
  const [place] = await opened(t, { ...VERIFYING, 'sender.ssl_profile.interval': 1000 })
  place.write('security/own.pem', RSA_SERVER.key + RSA_SERVER.cert)
  t.mock.timers.tick(1000)
  await place.until(() => place.changes.length === 1)
})

test('what is wrong is said once and keeps what is in force, until it is put right', async t => {
  const [place, material] = await opened(t)
  const before = material.plans
  place.write('security/own.pem', SERVER.key + VIRTUAL.cert)
  t.mock.timers.tick(INTERVAL_MS)
  await place.until(() => place.said.length === 1)
  t.mock.timers.tick(INTERVAL_MS)
  await quiet()
  assert.equal(place.said.length, 1)
  rmSync(`${place.home}/security/own.pem`)
  t.mock.timers.tick(INTERVAL_MS)
  await place.until(() => place.said.length === 2)
  assert.match(
    place.said[0]!,
    /^error: security\/own\.pem: .*no certificate in it belongs .*; what was in force stays so$/,
  )
  assert.match(place.said[1]!, /^error: security\/own\.pem: .*there is no such file/)
  assert.equal(material.plans, before)
  place.write('security/own.pem', VIRTUAL.key + VIRTUAL.cert)
  t.mock.timers.tick(INTERVAL_MS)
  await place.until(() => place.changes.length === 1)
  assert.equal(material.plans.server!.identity.cert, VIRTUAL.cert)
})

test('a profile file is read again, and what is wrong in it keeps the old profiles', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const place = new Place(t)
  place.write('security/shop.pem', VIRTUAL.key + VIRTUAL.cert)
  const store = '<KeyStore><Location>shop.pem</Location><Type>PEM</Type></KeyStore>'
  const write = (names: string, end: string): void =>
    void place.write('p.xml', `<parameter name="SSLProfiles"><profile>${names}${store}</profile>${end}`)
  write('', '</parameter>')
  const material = await place.open({ 'listener.ssl_profile.file_path': 'p.xml' })
  const namesNow = (): readonly (readonly string[])[] => material.plans.server!.hosts.map(({ names }) => names)
  write('<serverName>one.example</serverName>', '</parameter>')
  t.mock.timers.tick(INTERVAL_MS)
  await place.until(() => place.changes.length === 1)
  assert.deepEqual(namesNow(), [['one.example']])
  write('<serverName>two.example</serverName>', '')
  t.mock.timers.tick(INTERVAL_MS)
  await place.until(() => place.said.some(line => line.startsWith('error: p.xml:')))
  assert.deepEqual(namesNow(), [['one.example']])
})

test('whoever is trusted changes, session tickets end', async t => {
  const [place, material] = await opened(t)
  const before = material.plans
  place.write('security/ca.pem', OTHER_CA.cert)
  await material.reload()
  assert.deepEqual(material.plans.server!.ca, [OTHER_CA.cert])
  assert.notDeepEqual(material.plans.server!.ticketKeys, before.server!.ticketKeys)
})

test('keys of session tickets are 48 bytes and change every twelve hours, and nothing else does', async t => {
  const [place, material] = await opened(t)
  const before = material.plans
  assert.equal(before.server!.ticketKeys.length, 48)
  t.mock.timers.tick(HALF_DAY_MS)
  await place.until(() => place.changes.length === 1)
  const { ticketKeys, ...rest } = material.plans.server!
  assert.notDeepEqual(ticketKeys, before.server!.ticketKeys)
  assert.deepEqual({ ...rest, ticketKeys: before.server!.ticketKeys }, before.server)
})

test('plans that could not be handed on do not keep later ones from being made', async t => {
  const [place, material] = await opened(t)
  place.refuses = true
  place.write('security/own.pem', RSA_SERVER.key + RSA_SERVER.cert)
  await material.reload()
  assert.deepEqual(place.said, ['error: TLS stores could not be read again: refused'])
  place.refuses = false
  place.write('security/own.pem', VIRTUAL.key + VIRTUAL.cert)
  await material.reload()
  assert.equal(place.changes.at(-1)!.server!.identity.cert, VIRTUAL.cert)
})

test('once stopped, nothing is said and nothing changes', async t => {
  const [place, material] = await opened(t)
  place.write('security/own.pem', RSA_SERVER.key + RSA_SERVER.cert)
  const reloaded = material.reload()
  material.stop()
  t.mock.timers.tick(HALF_DAY_MS)
  await reloaded
  await material.reload()
  assert.deepEqual([place.changes, place.said], [[], []])
})

test('stopped in the midst of reading, nothing is said and nothing changes', async t => {
  const [place, material] = await opened(t)
  place.write('security/own.pem', RSA_SERVER.key + RSA_SERVER.cert)
  const reloaded = material.reload()
  for (let i = 0; i < 3; i++) await Promise.resolve()
  material.stop()
  await reloaded
  assert.deepEqual([place.changes, place.said], [[], []])
})

test('clients that are asked for nothing are measured by nothing', async t => {
  const [, material] = await opened(t, { ...VERIFYING, 'listener.parameters.SSLVerifyClient': 'none' })
  assert.deepEqual(material.plans.server!.ca, [])
})

test('without a listener on TLS there is no plan for one, and its stores are not read', async t => {
  const place = new Place(t)
  const material = await place.open({ 'listener.key_store.file_name': 'nowhere.p12' }, { listens: false })
  assert.equal(material.plans.server, null)
  assert.deepEqual(place.said, [])
})

test('no password and no key is ever said', async t => {
  const place = new Place(t)
  place.write('security/modern.p12', MODERN_P12)
  place.write('security/rsa.jks', RSA_JKS)
  const opening = { 'listener.key_store.file_name': 'modern.p12', 'listener.key_store.password': 'storepw' }
  const sending = {
    'sender.key_store.file_name': 'rsa.jks',
    'sender.key_store.type': 'JKS',
    'sender.key_store.password': 'storepw',
  }
  const faults = await place.faults({ ...opening, ...sending, 'sender.key_store.key_password': 'hidden-1' })
  assert.equal(faults.length, 1)
  const password = '<Password>hidden<2</Password>'
  place.write('p.xml', `<parameter name="SSLProfiles"><profile><KeyStore>${password}</KeyStore></profile></parameter>`)
  const others = await place.faults({ ...opening, 'listener.ssl_profile.file_path': 'p.xml' })
  assert.equal(others.length, 1)
  assert.doesNotMatch([...faults, ...others, ...place.said].join('\n'), /storepw|hidden|PRIVATE KEY/)
})
