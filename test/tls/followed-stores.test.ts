/** Defaults of the stores of the transports: `keystore.tls`, then `keystore.primary`; `truststore`. */
import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { loadConfiguration } from '../harness/configuration.ts'
import type { TlsIdentity } from '../../src/socket/tls.ts'
import { CA, EXPIRED, OTHER_CA, RSA_SERVER, SERVER } from '../harness/certificates.ts'
import { EC_JKS, JAVA_P12, MODERN_P12, RSA_JKS, TRUST_JKS } from './fixtures/stores.ts'
import { TlsHome } from './tls-home.ts'

const HTTPS = 'transport.passthru_https'
/** The folder of the reference platform for stores. */
const DOCUMENTED = 'repository/resources/security'
const TLS_P12 = '[keystore.tls]\nfile_name = "tls.p12"\npassword = "storepw"\n'
const PRIMARY_JKS =
  '[keystore.primary]\nfile_name = "primary.jks"\ntype = "JKS"\npassword = "storepw"\nkey_password = "keypw"\n'
const TRUST = '[truststore]\nfile_name = "trust.jks"\ntype = "JKS"\npassword = "storepw"\n'

function homeWith(t: TestContext, toml: string): TlsHome {
  const home = new TlsHome(t)
  home.write('deployment.toml', toml)
  home.write('security/tls.p12', MODERN_P12)
  home.write('security/own.p12', JAVA_P12)
  home.write('security/ec.jks', EC_JKS)
  home.write(`${DOCUMENTED}/primary.jks`, RSA_JKS)
  home.write(`${DOCUMENTED}/trust.jks`, TRUST_JKS)
  return home
}

function isIdentityOf(identity: TlsIdentity | null | undefined, owner: TlsIdentity): boolean {
  return identity != null && createPrivateKey(identity.key).equals(createPrivateKey(owner.key))
}

const IDENTITIES: readonly (readonly [
  name: string,
  toml: string,
  towardsClients: TlsIdentity,
  towardsBackends: TlsIdentity,
])[] = [
  ['keystore.primary, if nothing else is set', PRIMARY_JKS, RSA_SERVER, RSA_SERVER],
  ['keystore.tls alone', TLS_P12, SERVER, SERVER],
  [
    'keystore.tls overrides keystore.primary',
    `${PRIMARY_JKS}${TLS_P12}type = "PKCS12"\nkey_password = "storepw"\n`,
    SERVER,
    SERVER,
  ],
  [
    'a key of the transport overrides both',
    `${TLS_P12}[${HTTPS}]\nlistener.key_store.file_name = "own.p12"\nsender.key_store.alias = "server"\n`,
    SERVER,
    SERVER,
  ],
  [
    'the key location in the templates of the reference platform',
    `${TLS_P12}[${HTTPS}.listener.key_store]\nlocation = "${DOCUMENTED}/primary.jks"\nkey_password = "keypw"\n`,
    RSA_SERVER,
    SERVER,
  ],
  [
    'the key with the alias, in any case',
    '[keystore.tls]\nfile_name = "own.p12"\npassword = "storepw"\nalias = "Zeta"\n',
    RSA_SERVER,
    RSA_SERVER,
  ],
  [
    'an alias for one side only',
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

for (const [name, toml, towardsClients, towardsBackends] of IDENTITIES) {
  test(`the certificate that is presented: ${name}`, async t => {
    const { plans } = await homeWith(t, toml).open({})
    assert.ok(isIdentityOf(plans.server!.identity, towardsClients), 'towards clients')
    assert.ok(isIdentityOf(plans.clients.at(-1)!.plan.identity, towardsBackends), 'towards backends')
    assert.ok(isIdentityOf(plans.wss.identity, towardsBackends), 'towards backends on wss')
  })
}

test('without stores clients get a generated certificate, backends none; the roots of Node are trusted', async t => {
  const { plans } = await homeWith(t, '').open({})
  assert.match(plans.server!.identity.cert, /BEGIN CERTIFICATE/)
  assert.deepEqual(
    plans.clients.map(({ plan }) => [plan.identity, plan.ca]),
    [[null, null]],
  )
})

test('truststore sets the trusted certificates of both sides, a key of the transport those of one', async t => {
  const verify = `[${HTTPS}]\nlistener.parameters.SSLVerifyClient = "require"\n`
  const { plans } = await homeWith(t, `${TRUST}${verify}`).open({})
  assert.deepEqual(plans.server!.ca, [CA.cert])
  assert.deepEqual(plans.clients.at(-1)!.plan.ca, [CA.cert])
  const home = homeWith(t, `${TRUST}${verify}sender.trust_store.file_name = "pem"\nsender.trust_store.type = "PEM"\n`)
  home.write('security/pem', OTHER_CA.cert)
  const other = await home.open({})
  assert.deepEqual(other.plans.server!.ca, [CA.cert])
  assert.deepEqual(other.plans.clients.at(-1)!.plan.ca, [OTHER_CA.cert])
})

test('the trust store of [transport.wss] defaults to truststore', t => {
  const { configuration } = loadConfiguration(homeWith(t, `${TRUST}[transport.wss]\nsender.enable = true\n`).path, [])
  const wss = configuration['transport.wss']
  assert.deepEqual([wss['sender.trust_store.location'], wss['sender.trust_store.password']], ['trust.jks', 'storepw'])
})

test('a type that is not set is detected from the store', async t => {
  const { plans } = await homeWith(t, '[keystore.tls]\nfile_name = "ec.jks"\npassword = "storepw"\n').open({})
  assert.ok(isIdentityOf(plans.server!.identity, SERVER))
})

const NO_KEY = 'holds no key with this alias'

test('an alias that none of several keys has is an error that lists the aliases', async t => {
  const home = homeWith(t, '[keystore.tls]\nfile_name = "own.p12"\npassword = "storepw"\nalias = "beta"\n')
  const errors = await home.errors({})
  assert.deepEqual(
    errors.map(error => error.replace(/(alpha, zeta|zeta, alpha)/, 'NAMES')),
    ['listener', 'sender'].map(
      side => `security/own.p12: ${HTTPS}.${side}.key_store.alias = beta: ${NO_KEY} (its keys: NAMES)`,
    ),
  )
})

test('an alias that the only key does not have is a warning', async t => {
  const home = homeWith(t, `${TLS_P12}alias = "other"\n`)
  const { plans } = await home.open({ 'sender.key_store.alias': 'server' })
  assert.ok(isIdentityOf(plans.server!.identity, SERVER))
  assert.deepEqual(home.logged, [
    `warn: security/tls.p12: ${HTTPS}.listener.key_store.alias = other: ${NO_KEY}, so its only key is used ` +
      '(its keys: server)',
  ])
})

test('an alias has no effect on PEM, which has no aliases', async t => {
  const home = homeWith(t, '[keystore.tls]\nfile_name = "pem"\nalias = "tls"\n')
  home.write('security/pem', SERVER.key + SERVER.cert)
  assert.ok(isIdentityOf((await home.open({})).plans.server!.identity, SERVER))
  assert.deepEqual(home.logged, [])
})
