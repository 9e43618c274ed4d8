/** Stores of the transports follow `keystore.tls`, which follows `keystore.primary`, and `truststore`. */
import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { loadConfiguration } from '../harness/configuration.ts'
import type { TlsIdentity } from '../../src/socket/tls.ts'
import { CA, EXPIRED, OTHER_CA, RSA_SERVER, SERVER } from '../harness/certificates.ts'
import { EC_JKS, JAVA_P12, MODERN_P12, RSA_JKS, TRUST_JKS } from './fixtures/stores.ts'
import { Place } from './place.ts'

const HTTPS = 'transport.passthru_https'
/** Where the reference platform keeps stores. */
const DOCUMENTED = 'repository/resources/security'
const TLS_P12 = '[keystore.tls]\nfile_name = "tls.p12"\npassword = "storepw"\n'
const PRIMARY_JKS =
  '[keystore.primary]\nfile_name = "primary.jks"\ntype = "JKS"\npassword = "storepw"\nkey_password = "keypw"\n'
const TRUST = '[truststore]\nfile_name = "trust.jks"\ntype = "JKS"\npassword = "storepw"\n'

function placeWith(t: TestContext, toml: string): Place {
  const place = new Place(t)
  place.write('deployment.toml', toml)
  place.write('security/tls.p12', MODERN_P12)
  place.write('security/own.p12', JAVA_P12)
  place.write('security/ec.jks', EC_JKS)
  place.write(`${DOCUMENTED}/primary.jks`, RSA_JKS)
  place.write(`${DOCUMENTED}/trust.jks`, TRUST_JKS)
  return place
}

function isOf(identity: TlsIdentity | null | undefined, owner: TlsIdentity): boolean {
  return identity != null && createPrivateKey(identity.key).equals(createPrivateKey(owner.key))
}

const SHOWN: readonly (readonly [
  name: string,
  toml: string,
  towardsClients: TlsIdentity,
  towardsBackends: TlsIdentity,
])[] = [
  ['keystore.primary, where nothing else is set', PRIMARY_JKS, RSA_SERVER, RSA_SERVER],
  ['keystore.tls alone', TLS_P12, SERVER, SERVER],
  [
    'keystore.tls before keystore.primary',
    `${PRIMARY_JKS}${TLS_P12}type = "PKCS12"\nkey_password = "storepw"\n`,
    SERVER,
    SERVER,
  ],
  [
    'a key of the transport before both',
    `${TLS_P12}[${HTTPS}]\nlistener.key_store.file_name = "own.p12"\nsender.key_store.alias = "server"\n`,
    SERVER,
    SERVER,
  ],
  [
    'the location of the templates of the reference platform',
    `${TLS_P12}[${HTTPS}.listener.key_store]\nlocation = "${DOCUMENTED}/primary.jks"\nkey_password = "keypw"\n`,
    RSA_SERVER,
    SERVER,
  ],
  [
    'the key of the alias, in any case',
    '[keystore.tls]\nfile_name = "own.p12"\npassword = "storepw"\nalias = "Zeta"\n',
    RSA_SERVER,
    RSA_SERVER,
  ],
  [
    'an alias for one side alone',
    `[keystore.tls]\nfile_name = "own.p12"\npassword = "storepw"\n[${HTTPS}]\nsender.key_store.alias = "zeta"\n`,
    SERVER,
    RSA_SERVER,
  ],
  [
    'an alias in a JKS store',
    '[keystore.tls]\nfile_name = "ec.jks"\npassword = "storepw"\nalias = "zeta"\n',
    EXPIRED,
    EXPIRED,
  ],
]

for (const [name, toml, towardsClients, towardsBackends] of SHOWN) {
  test(`what is shown: ${name}`, async t => {
    const { plans } = await placeWith(t, toml).open({})
    assert.ok(isOf(plans.server!.identity, towardsClients), 'towards clients')
    assert.ok(isOf(plans.clients.at(-1)!.plan.identity, towardsBackends), 'towards backends')
    assert.ok(isOf(plans.wss.identity, towardsBackends), 'towards backends on wss')
  })
}

test('without any store clients see one that is made, backends none, and the well-known are trusted', async t => {
  const { plans } = await placeWith(t, '').open({})
  assert.match(plans.server!.identity.cert, /BEGIN CERTIFICATE/)
  assert.deepEqual(
    plans.clients.map(({ plan }) => [plan.identity, plan.ca]),
    [[null, null]],
  )
})

test('truststore says who is trusted on both sides, and a key of the transport says it for one', async t => {
  const verify = `[${HTTPS}]\nlistener.parameters.SSLVerifyClient = "require"\n`
  const { plans } = await placeWith(t, `${TRUST}${verify}`).open({})
  assert.deepEqual(plans.server!.ca, [CA.cert])
  assert.deepEqual(plans.clients.at(-1)!.plan.ca, [CA.cert])
  const place = placeWith(t, `${TRUST}${verify}sender.trust_store.file_name = "pem"\nsender.trust_store.type = "PEM"\n`)
  place.write('security/pem', OTHER_CA.cert)
  const other = await place.open({})
  assert.deepEqual(other.plans.server!.ca, [CA.cert])
  assert.deepEqual(other.plans.clients.at(-1)!.plan.ca, [OTHER_CA.cert])
})

test('[transport.wss] follows truststore, so that with one its keys need not be set', t => {
  const { configuration } = loadConfiguration(placeWith(t, `${TRUST}[transport.wss]\nsender.enable = true\n`).home, [])
  const wss = configuration['transport.wss']
  assert.deepEqual([wss['sender.trust_store.location'], wss['sender.trust_store.password']], ['trust.jks', 'storepw'])
})

test('a type that is not set is what the store says itself', async t => {
  const { plans } = await placeWith(t, '[keystore.tls]\nfile_name = "ec.jks"\npassword = "storepw"\n').open({})
  assert.ok(isOf(plans.server!.identity, SERVER))
})

const NO_KEY = 'there is no key of that name in it'
const IN_IT = '(in it there is server)'

test('an alias that none of several keys has is a fault that lists their names', async t => {
  const place = placeWith(t, '[keystore.tls]\nfile_name = "own.p12"\npassword = "storepw"\nalias = "beta"\n')
  const faults = await place.faults({})
  assert.deepEqual(
    faults.map(fault => fault.replace(/(alpha, zeta|zeta, alpha)/, 'NAMES')),
    ['listener', 'sender'].map(
      side => `security/own.p12: ${HTTPS}.${side}.key_store.alias = beta: ${NO_KEY} (in it there is NAMES)`,
    ),
  )
})

test('an alias that the only key does not have is a warning', async t => {
  const place = placeWith(t, `${TLS_P12}alias = "other"\n`)
  const { plans } = await place.open({ 'sender.key_store.alias': 'server' })
  assert.ok(isOf(plans.server!.identity, SERVER))
  assert.deepEqual(place.said, [
    `warn: security/tls.p12: ${HTTPS}.listener.key_store.alias = other: ${NO_KEY}, so the only one is used ${IN_IT}`,
  ])
})

test('PEM has no names, so that an alias chooses nothing there', async t => {
  const place = placeWith(t, '[keystore.tls]\nfile_name = "pem"\nalias = "tls"\n')
  place.write('security/pem', SERVER.key + SERVER.cert)
  assert.ok(isOf((await place.open({})).plans.server!.identity, SERVER))
  assert.deepEqual(place.said, [])
})
