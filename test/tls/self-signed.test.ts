import assert from 'node:assert/strict'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Place } from './place.ts'

const DAY_MS = 86_400_000

test('a gateway without a key store makes a certificate that is for its names, and says so', async t => {
  const place = new Place(t)
  const { plans } = await place.open({}, { hostname: 'Gateway.Example' })
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
  assert.equal(place.said.length, 1)
  const key = 'transport.passthru_https.listener.key_store.file_name'
  assert.match(
    place.said[0]!,
    new RegExp(`^info: a self-signed certificate is in use, .*; set ${key} .*"STORE":"data/lis`),
  )
})

for (const hostname of ['10.1.2.3', 'fe80::1:2', '2001:db8::', '::ffff:0:1']) {
  test(`a self-signed certificate is for an address as host name: ${hostname}`, async t => {
    const { plans } = await new Place(t).open({}, { hostname })
    assert.equal(new X509Certificate(plans.server!.identity.cert).checkIP(hostname), hostname)
  })
}

test('a self-signed certificate is kept, for its owner alone', async t => {
  const place = new Place(t)
  const first = await place.open({})
  const second = await place.open({})
  assert.deepEqual(second.plans.server!.identity, first.plans.server!.identity)
  assert.equal(statSync(join(place.dataDir, 'listener.pem')).mode & 0o777, 0o600)
})

test('a self-signed certificate is made anew for another name, or when it is broken', async t => {
  const place = new Place(t)
  const certificateFor = async (hostname: string): Promise<string> =>
    (await place.open({}, { hostname })).plans.server!.identity.cert
  const first = await certificateFor('one.example')
  const second = await certificateFor('two.example')
  assert.notEqual(second, first)
  const path = join(place.dataDir, 'listener.pem')
  writeFileSync(path, readFileSync(path, 'latin1').slice(0, 300))
  const third = await certificateFor('two.example')
  assert.notEqual(third, second)
})

test('a self-signed certificate is made anew in its last thirty days, at start and while the gateway runs', async t => {
  t.mock.timers.enable({ apis: ['Date', 'setInterval'], now: Date.UTC(2030, 0, 1) })
  const place = new Place(t)
  const running = await place.open({})
  const first = running.plans.server!.identity.cert
  t.mock.timers.setTime(Date.now() + 366 * DAY_MS)
  assert.equal((await place.open({})).plans.server!.identity.cert, first)
  t.mock.timers.setTime(Date.now() + 2 * DAY_MS)
  await running.reload()
  const second = running.plans.server!.identity.cert
  assert.notEqual(second, first)
  assert.equal((await place.open({})).plans.server!.identity.cert, second)
})

test('no certificate is made where a key store is set, or nothing listens', async t => {
  const place = new Place(t)
  await place.open({}, { listens: false })
  await place.faults({ 'listener.key_store.file_name': 'nowhere.p12' })
  assert.throws(() => statSync(join(place.dataDir, 'listener.pem')), { code: 'ENOENT' })
})

test('a data folder that cannot be written is a fault that names what else to do', async t => {
  const place = new Place(t)
  // A file in its place is refused to the superuser too.
  writeFileSync(place.dataDir, '')
  chmodSync(place.dataDir, 0o400)
  const [fault, ...others] = await place.faults({})
  assert.match(fault!, /^data: .*key_store\.file_name: no self-signed certificate can be kept there \(E\w+\) \(set /)
  assert.deepEqual(others, [])
})
