import assert from 'node:assert/strict'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { TlsHome } from './tls-home.ts'

const DAY_MS = 86_400_000

test('a gateway without a key store generates a certificate for its names, and logs it', async t => {
  const home = new TlsHome(t)
  const { plans } = await home.open({}, { hostname: 'Gateway.Example' })
  const certificate = new X509Certificate(plans.server!.identity.cert)
  for (const name of ['gateway.example', 'localhost']) assert.equal(certificate.checkHost(name), name)
  for (const address of ['127.0.0.1', '::1']) assert.equal(certificate.checkIP(address), address)
  assert.ok(certificate.checkPrivateKey(createPrivateKey(plans.server!.identity.key)))
  assert.ok(certificate.verify(certificate.publicKey))
  assert.equal(certificate.publicKey.asymmetricKeyDetails!.namedCurve, 'prime256v1')
  assert.equal(certificate.ca, false)
  const days = (certificate.validToDate.getTime() - Date.now()) / DAY_MS
  assert.ok(days > 396 && days < 398, `${days}`)
  assert.ok(certificate.validFromDate.getTime() < Date.now())
  assert.equal(home.logged.length, 1)
  const key = 'transport.passthru_https.listener.key_store.file_name'
  assert.match(
    home.logged[0]!,
    new RegExp(`^info: a self-signed certificate is in use, .*; set ${key} .*"STORE":"data/lis`),
  )
})

for (const hostname of ['10.1.2.3', 'fe80::1:2', '2001:db8::', '::ffff:0:1']) {
  test(`a self-signed certificate names an address that is the host name: ${hostname}`, async t => {
    const { plans } = await new TlsHome(t).open({}, { hostname })
    assert.equal(new X509Certificate(plans.server!.identity.cert).checkIP(hostname), hostname)
  })
}

test('a self-signed certificate is kept in a file that only its owner can read', async t => {
  const home = new TlsHome(t)
  const first = await home.open({})
  const second = await home.open({})
  assert.deepEqual(second.plans.server!.identity, first.plans.server!.identity)
  assert.equal(statSync(join(home.dataDir, 'listener.pem')).mode & 0o777, 0o600)
})

test('a self-signed certificate is replaced for another host name, and if its file is damaged', async t => {
  const home = new TlsHome(t)
  const certificateFor = async (hostname: string): Promise<string> =>
    (await home.open({}, { hostname })).plans.server!.identity.cert
  const first = await certificateFor('one.example')
  const second = await certificateFor('two.example')
  assert.notEqual(second, first)
  const path = join(home.dataDir, 'listener.pem')
  writeFileSync(path, readFileSync(path, 'latin1').slice(0, 300))
  const third = await certificateFor('two.example')
  assert.notEqual(third, second)
})

test('a self-signed certificate is renewed in its last thirty days, at a start and in a running gateway', async t => {
  t.mock.timers.enable({ apis: ['Date', 'setInterval'], now: Date.UTC(2030, 0, 1) })
  const home = new TlsHome(t)
  const running = await home.open({})
  const first = running.plans.server!.identity.cert
  t.mock.timers.setTime(Date.now() + 366 * DAY_MS)
  assert.equal((await home.open({})).plans.server!.identity.cert, first)
  t.mock.timers.setTime(Date.now() + 2 * DAY_MS)
  await running.reload()
  const second = running.plans.server!.identity.cert
  assert.notEqual(second, first)
  assert.equal((await home.open({})).plans.server!.identity.cert, second)
})

test('no certificate is generated with a key store, or without a TLS listener', async t => {
  const home = new TlsHome(t)
  await home.open({}, { listens: false })
  await home.errors({ 'listener.key_store.file_name': 'nowhere.p12' })
  assert.throws(() => statSync(join(home.dataDir, 'listener.pem')), { code: 'ENOENT' })
})

test('a data folder that is not writable is an error, with a hint', async t => {
  const home = new TlsHome(t)
  // A file in its home is refused to the superuser too.
  writeFileSync(home.dataDir, '')
  chmodSync(home.dataDir, 0o400)
  const [error, ...others] = await home.errors({})
  assert.match(error!, /^data: .*key_store\.file_name: a self-signed certificate cannot be saved there \(E\w+\) \(set /)
  assert.deepEqual(others, [])
})
