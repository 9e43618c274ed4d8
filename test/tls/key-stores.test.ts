import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { test } from 'node:test'
import type { TlsIdentity } from '../../src/socket/tls.ts'
import {
  CA,
  CLIENT,
  EXPIRED,
  EXPIRED_CLIENT,
  INTERMEDIATE_CLIENT,
  OTHER_CA,
  RSA_SERVER,
  SERVER,
} from '../harness/certificates.ts'
import {
  ENCRYPTED_KEY,
  FUTURE_CERTIFICATE,
  OLD_ENCRYPTED_KEY,
  SHORT_KEY,
  SHORT_KEY_CERTIFICATE,
} from './fixtures/pem.ts'
import {
  EC_JKS,
  JAVA_P12,
  JCEKS,
  KEY_PASSWORD_P12,
  LEGACY_P12,
  MD5_P12,
  MODERN_P12,
  NO_MAC_P12,
  RC4_P12,
  RSA_JKS,
  TRUST_JKS,
  TRUST_P12,
  UMLAUT_P12,
} from './fixtures/stores.ts'
import { TlsHome } from './tls-home.ts'

const KEY_STORE = 'transport.passthru_https.listener.key_store'

function keysOf(kind: string, type: string, password: string, keyPassword = ''): Record<string, string> {
  return {
    [`listener.${kind}.file_name`]: 'store',
    [`listener.${kind}.type`]: type,
    [`listener.${kind}.password`]: password,
    [`listener.${kind}.key_password`]: keyPassword,
  }
}

/** [name, store, type, password, key password, owner of the selected key, length of the chain] */
const READABLE: readonly (readonly [string, string | Buffer, string, string, string, TlsIdentity, number])[] = [
  ['PKCS#12 of OpenSSL 3, with its chain', MODERN_P12, 'PKCS12', 'storepw', '', SERVER, 2],
  ['PKCS#12 with the key password of the store', MODERN_P12, 'PKCS12', 'storepw', 'storepw', SERVER, 2],
  ['PKCS#12 with a key password that the store does not use', MODERN_P12, 'PKCS12', 'storepw', 'x', SERVER, 2],
  ['PKCS#12 of Java, the first key by alias', JAVA_P12, 'PKCS12', 'storepw', '', SERVER, 2],
  ['PKCS#12 whose key has its own password', KEY_PASSWORD_P12, 'PKCS12', 'storepw', 'keypw', SERVER, 1],
  ['PKCS#12 with RC2-40 and 3DES', LEGACY_P12, 'PKCS12', 'storepw', '', RSA_SERVER, 1],
  ['PKCS#12 with MD5 and nothing encrypted', MD5_P12, 'PKCS12', 'storepw', '', SERVER, 1],
  ['PKCS#12 without a MAC', NO_MAC_P12, 'PKCS12', 'storepw', '', SERVER, 1],
  ['PKCS#12 with a password that is not ASCII', UMLAUT_P12, 'PKCS12', 'pässwörd', '', SERVER, 1],
  ['JKS with an RSA key and its own password', RSA_JKS, 'JKS', 'storepw', 'keypw', RSA_SERVER, 2],
  ['JKS with EC keys, the first by alias', EC_JKS, 'JKS', 'storepw', '', SERVER, 2],
  ['PEM', SERVER.key + SERVER.cert, 'PEM', '', '', SERVER, 1],
  ['PEM in any order', CA.cert + RSA_SERVER.cert + RSA_SERVER.key, 'PEM', '', '', RSA_SERVER, 2],
  [
    'PEM with an intermediate',
    INTERMEDIATE_CLIENT.cert + INTERMEDIATE_CLIENT.key,
    'PEM',
    '',
    '',
    INTERMEDIATE_CLIENT,
    2,
  ],
  ['PEM with an encrypted key', ENCRYPTED_KEY + SERVER.cert, 'PEM', '', 'keypw', SERVER, 1],
  ['PEM whose key is encrypted with the store password', ENCRYPTED_KEY + SERVER.cert, 'PEM', 'keypw', '', SERVER, 1],
  ['PEM with a key encrypted before PKCS#8', OLD_ENCRYPTED_KEY + SERVER.cert, 'PEM', '', 'keypw', SERVER, 1],
]

for (const [name, store, type, password, keyPassword, owner, certificates] of READABLE) {
  test(`a key store is read: ${name}`, async t => {
    const home = new TlsHome(t)
    home.write('security/store', store)
    const { plans } = await home.open(keysOf('key_store', type, password, keyPassword))
    const { cert, key } = plans.server!.identity
    assert.ok(createPrivateKey(key).equals(createPrivateKey(owner.key)))
    assert.ok(cert.startsWith(owner.cert.slice(0, owner.cert.indexOf('-----END'))), 'the leaf comes first')
    assert.equal(cert.match(/BEGIN CERTIFICATE/g)!.length, certificates)
  })
}

const TRUSTED: readonly (readonly [string, string | Buffer, string, string, readonly TlsIdentity[]])[] = [
  ['PKCS#12 of Java', TRUST_P12, 'PKCS12', 'storepw', [CA, OTHER_CA]],
  ['JKS', TRUST_JKS, 'JKS', 'storepw', [CA]],
  ['JKS without its password, as Java does', TRUST_JKS, 'JKS', '', [CA]],
  ['PEM with several certificates', OTHER_CA.cert + CA.cert, 'PEM', '', [OTHER_CA, CA]],
  ['the chain of a key is not trusted, trusted entries are', EC_JKS, 'JKS', 'storepw', [EXPIRED, SERVER, OTHER_CA]],
]

for (const [name, store, type, password, trusted] of TRUSTED) {
  test(`a trust store is read: ${name}`, async t => {
    const home = new TlsHome(t)
    home.write('security/store', store)
    // EC_JKS holds keys too, which have the password of the store.
    const keys = keysOf('trust_store', type, password)
    const { plans } = await home.open({ ...keys, 'listener.parameters.SSLVerifyClient': 'require' })
    assert.deepEqual([...plans.server!.ca].sort(), trusted.map(({ cert }) => cert).sort())
  })
}

const CONVERT = 'convert it: openssl pkcs12 -legacy -in security/store -nodes | openssl pkcs12 -export -out new.p12'
const CONVERT_JCEKS =
  'convert it: keytool -importkeystore -srckeystore security/store -srcstoretype JCEKS -destkeystore new.p12 -deststoretype PKCS12'
const WRONG = `security/store: ${KEY_STORE}.password: wrong password for security/store (set ${KEY_STORE}.password)`
const WRONG_KEY_PASSWORD = `wrong password for the key in security/store (set ${KEY_STORE}.key_password)`
const WRONG_KEY = `security/store: ${KEY_STORE}.key_password: ${WRONG_KEY_PASSWORD}`
const FILE_HINT = `(put the file into the folder security of the home, or set ${KEY_STORE}.file_name)`
const FILE = `security/store: ${KEY_STORE}.file_name`
const NONE = `${FILE}: needs a password, and none is set (set ${KEY_STORE}.password)`

const BROKEN: readonly (readonly [string, string | Buffer, string, string, string, string])[] = [
  ['PKCS#12 with the wrong password', MODERN_P12, 'PKCS12', 'secret-1', '', WRONG],
  ['PKCS#12 with nothing encrypted and the wrong password', MD5_P12, 'PKCS12', 'secret-1', '', WRONG],
  ['PKCS#12 without its password', MODERN_P12, 'PKCS12', '', '', NONE],
  ['PKCS#12 without a MAC and the wrong password', NO_MAC_P12, 'PKCS12', 'secret-1', '', WRONG],
  ['PKCS#12 with the wrong key password', KEY_PASSWORD_P12, 'PKCS12', 'storepw', 'secret-1', WRONG_KEY],
  ['JKS with the wrong password', RSA_JKS, 'JKS', 'secret-1', 'keypw', WRONG],
  ['JKS with the wrong key password', RSA_JKS, 'JKS', 'storepw', 'secret-1', WRONG_KEY],
  ['PEM with the wrong key password', ENCRYPTED_KEY + SERVER.cert, 'PEM', '', 'secret-1', WRONG_KEY],
  ['PEM with an encrypted key and no password', ENCRYPTED_KEY + SERVER.cert, 'PEM', '', '', WRONG_KEY],
  [
    'encrypted with RC4',
    RC4_P12,
    'PKCS12',
    'storepw',
    '',
    `${FILE}: uses an unsupported algorithm: encryption with RC4-128 (${CONVERT})`,
  ],
  ['JCEKS', JCEKS, 'JKS', 'storepw', '', `${FILE}: is a JCEKS store, which is not supported (${CONVERT_JCEKS})`],
  [
    'JKS configured as PKCS12',
    RSA_JKS,
    'PKCS12',
    'storepw',
    'keypw',
    `security/store: ${KEY_STORE}.type: expected a PKCS12 store, found a JKS store (set ${KEY_STORE}.type)`,
  ],
  ['of an unknown type', 'hello', 'PEM', '', '', `${FILE}: is not a key store of a known type ${FILE_HINT}`],
  [
    'truncated JKS',
    RSA_JKS.subarray(0, 600),
    'JKS',
    '',
    'keypw',
    `${FILE}: is not a valid JKS store: the file is truncated ${FILE_HINT}`,
  ],
  [
    'truncated PKCS#12',
    MODERN_P12.subarray(0, 600),
    'PKCS12',
    'storepw',
    '',
    `${FILE}: is not a valid PKCS12 store: invalid DER ${FILE_HINT}`,
  ],
  [
    'trusted certificates only',
    TRUST_JKS,
    'JKS',
    'storepw',
    '',
    `${FILE}: holds no private key (use a store with a key and its certificate)`,
  ],
  [
    'a key with the certificate of another key',
    CLIENT.key + SERVER.cert,
    'PEM',
    '',
    '',
    `${FILE}: holds no certificate for its key (add the certificate of the key, and its chain, to the store)`,
  ],
  [
    'a key too short for OpenSSL',
    SHORT_KEY + SHORT_KEY_CERTIFICATE,
    'PEM',
    '',
    '',
    `${FILE}: OpenSSL refuses the key or certificate: SSL routines::ee key too small (use a newer key and certificate)`,
  ],
]

for (const [name, store, type, password, keyPassword, error] of BROKEN) {
  test(`a key store with an error is refused, with a hint: ${name}`, async t => {
    const home = new TlsHome(t)
    home.write('security/store', store)
    assert.deepEqual(await home.errors(keysOf('key_store', type, password, keyPassword)), [error])
  })
}

/** Indefinite lengths and segmented strings (X.690 8.1.3.6 and 8.7.3) in the outer parts of a store. */
function asBer(der: Buffer): Buffer {
  const [type] = der
  const long = der[1]! >= 0x80 ? der[1]! & 0x7f : 0
  const start = 2 + long
  const length = long === 0 ? der[1]! : der.readUIntBE(2, long)
  const content = der.subarray(start, start + length)
  const end = Buffer.of(0, 0)
  if (type === 0x04 && length > 200) {
    const pieces = [content.subarray(0, 100), content.subarray(100, 200)].map(piece => [Buffer.of(0x04, 100), piece])
    const rest = [Buffer.of(0x04, 0x82, (length - 200) >> 8, (length - 200) & 0xff), content.subarray(200)]
    return Buffer.concat([Buffer.of(0x24, 0x80), ...pieces.flat(), ...rest, end, asBerAfter(der, start + length)])
  }
  const inner = (type! & 0x20) === 0 ? der.subarray(0, start + length) : undefined
  const whole = inner ?? Buffer.concat([Buffer.of(type!, 0x80), asBerAfter(content, 0), end])
  return Buffer.concat([whole, asBerAfter(der, start + length)])
}

function asBerAfter(der: Buffer, at: number): Buffer {
  return at === der.length ? Buffer.alloc(0) : asBer(der.subarray(at))
}

test('PKCS#12 in BER with indefinite lengths, as older tools write it, is read', async t => {
  const home = new TlsHome(t)
  const ber = asBer(MODERN_P12)
  assert.notDeepEqual(ber, MODERN_P12)
  home.write('security/store', ber)
  const { plans } = await home.open(keysOf('key_store', 'PKCS12', 'storepw'))
  assert.ok(createPrivateKey(plans.server!.identity.key).equals(createPrivateKey(SERVER.key)))
})

test('a store that is damaged anywhere is read, or refused with an error that names it', async t => {
  const home = new TlsHome(t)
  for (const [store, type] of [
    [MODERN_P12, 'PKCS12'],
    [NO_MAC_P12, 'PKCS12'],
    [LEGACY_P12, 'PKCS12'],
    [EC_JKS, 'JKS'],
  ] as const) {
    for (let at = 0; at < store.length; at += 23) {
      const damaged = Buffer.from(store)
      damaged[at]! ^= 0x55
      home.write('security/store', damaged)
      const errors = await home.errors({ ...keysOf('key_store', type, 'storepw') })
      for (const error of errors) assert.match(error, /^security\/store: /, `byte ${at} of ${type}`)
    }
  }
})

test('all expired certificates of a trust store give one warning', async t => {
  const home = new TlsHome(t)
  home.write('security/store', EXPIRED_CLIENT.cert + CA.cert + EXPIRED.cert)
  await home.open({ 'sender.trust_store.file_name': 'store', 'sender.trust_store.type': 'PEM' }, { listens: false })
  assert.equal(home.logged.length, 1)
  assert.match(
    home.logged[0]!,
    /^warn: .*CN=Expired Client has expired on .* 2021 GMT; 1 more of 3 are not valid now \(/,
  )
})

test('a key store that is not a regular file is refused', async t => {
  const home = new TlsHome(t)
  const [error] = await home.errors({ 'listener.key_store.file_name': home.path })
  assert.match(error!, /file_name: cannot be read: it is not a regular file/)
})

test('a missing store is an error, and the errors of all stores are reported at once', async t => {
  const home = new TlsHome(t)
  home.write('security/trust', TRUST_JKS)
  const errors = await home.errors({
    ...keysOf('key_store', 'PKCS12', 'storepw'),
    'listener.trust_store.file_name': 'trust',
    'listener.trust_store.type': 'JKS',
    'listener.trust_store.password': 'secret-2',
    'listener.parameters.SSLVerifyClient': 'require',
    'sender.trust_store.file_name': '/nowhere/trust.p12',
  })
  assert.equal(errors.length, 3)
  assert.match(errors[0]!, /^security\/store: .*key_store\.file_name: cannot be read: there is no such file/)
  assert.match(errors[1]!, /^security\/trust: .*trust_store\.password: wrong password for security\/trust/)
  assert.match(errors[2]!, /^\/nowhere\/trust\.p12: .*sender\.trust_store\.file_name: cannot be read/)
  assert.doesNotMatch(errors.join(), /secret-2/)
})

test('a store is found in the security folder, by its documented path, and by an absolute path', async t => {
  const home = new TlsHome(t)
  const pem = SERVER.key + SERVER.cert
  home.write('repository/resources/security/there.pem', pem)
  home.write('security/here.pem', pem)
  const absolute = home.write('elsewhere/store.pem', pem)
  for (const name of ['there.pem', 'repository/resources/security/there.pem', 'here.pem', absolute]) {
    const keys = { 'listener.key_store.file_name': name, 'listener.key_store.type': 'PEM' }
    assert.deepEqual(await home.errors(keys), [], name)
  }
})

const WITH_WARNINGS: readonly (readonly [string, string | Buffer, string, string, RegExp])[] = [
  [
    'expired',
    EXPIRED.key + EXPIRED.cert,
    'PEM',
    '',
    /^warn: .*CN=localhost has expired on Jan {2}1 .* 2021 GMT \(renew it, /,
  ],
  [
    'not valid yet',
    SERVER.key + FUTURE_CERTIFICATE,
    'PEM',
    '',
    /^warn: .*CN=localhost is not valid before Jan {2}1 .* 2055 GMT/,
  ],
  [
    'protected by weak ciphers',
    LEGACY_P12,
    'PKCS12',
    'storepw',
    /^warn: .*is protected by RC2-40 and 3DES, which is insecure .*openssl pkcs12 -legacy/,
  ],
  ['with an MD5 MAC', MD5_P12, 'PKCS12', 'storepw', /^warn: .*is protected by MD5, which is insecure/],
  [
    'with several keys',
    JAVA_P12,
    'PKCS12',
    'storepw',
    /^info: a key store holds several keys.*"KEY":"alpha","KEYS":"zeta, alpha"/,
  ],
]

for (const [name, store, type, password, line] of WITH_WARNINGS) {
  test(`a store is used, with one line in the log: ${name}`, async t => {
    const home = new TlsHome(t)
    home.write('security/store', store)
    const { plans } = await home.open(keysOf('key_store', type, password))
    assert.ok(plans.server)
    assert.equal(home.logged.length, 1)
    assert.match(home.logged[0]!, line)
  })
}

const URL_WITH_PASSWORD = 'https://user:planted@host.example/store.jks'
const URL_STORE = `<KeyStore><Location>${URL_WITH_PASSWORD}</Location><Password>x</Password></KeyStore>`

for (const [what, keys] of [
  ['a key store', { 'listener.key_store.file_name': URL_WITH_PASSWORD }],
  ['a trust store', { 'sender.trust_store.file_name': URL_WITH_PASSWORD }],
  ['a file of profiles', { 'listener.ssl_profile.file_path': URL_WITH_PASSWORD }],
  ['a store of a profile', { 'listener.ssl_profile.file_path': 'profiles.xml' }],
] as const) {
  test(`a URL as ${what} is refused, and the message hides it`, async t => {
    const home = new TlsHome(t)
    home.write('profiles.xml', `<parameter name="SSLProfiles"><profile>${URL_STORE}</profile></parameter>`)
    const errors = await home.errors(keys)
    assert.ok(
      errors.some(error => error.includes('is a URL, and a file is expected')),
      errors.join('\n'),
    )
    assert.doesNotMatch(errors.join('\n'), /planted/)
  })
}
