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
import { Place } from './place.ts'

const KEY_STORE = 'transport.passthru_https.listener.key_store'

function keysOf(kind: string, type: string, password: string, keyPassword = ''): Record<string, string> {
  return {
    [`listener.${kind}.file_name`]: 'store',
    [`listener.${kind}.type`]: type,
    [`listener.${kind}.password`]: password,
    [`listener.${kind}.key_password`]: keyPassword,
  }
}

/** Store, type, password, key password, whose key is taken, how many certificates are shown. */
const READABLE: readonly (readonly [string, string | Buffer, string, string, string, TlsIdentity, number])[] = [
  ['PKCS#12 of OpenSSL 3, with its chain', MODERN_P12, 'PKCS12', 'storepw', '', SERVER, 2],
  ['PKCS#12 with the key password of the store', MODERN_P12, 'PKCS12', 'storepw', 'storepw', SERVER, 2],
  ['PKCS#12 with a key password that the store does not have', MODERN_P12, 'PKCS12', 'storepw', 'x', SERVER, 2],
  ['PKCS#12 of Java, the first key by name', JAVA_P12, 'PKCS12', 'storepw', '', SERVER, 2],
  ['PKCS#12 whose key has a password of its own', KEY_PASSWORD_P12, 'PKCS12', 'storepw', 'keypw', SERVER, 1],
  ['PKCS#12 with RC2-40 and 3DES', LEGACY_P12, 'PKCS12', 'storepw', '', RSA_SERVER, 1],
  ['PKCS#12 with MD5 and nothing encrypted', MD5_P12, 'PKCS12', 'storepw', '', SERVER, 1],
  ['PKCS#12 without a MAC', NO_MAC_P12, 'PKCS12', 'storepw', '', SERVER, 1],
  ['PKCS#12 with a password beyond ASCII', UMLAUT_P12, 'PKCS12', 'pässwörd', '', SERVER, 1],
  ['JKS with an RSA key and its own password', RSA_JKS, 'JKS', 'storepw', 'keypw', RSA_SERVER, 2],
  ['JKS with EC keys, the first by name', EC_JKS, 'JKS', 'storepw', '', SERVER, 2],
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
    const place = new Place(t)
    place.write('security/store', store)
    const { plans } = await place.open(keysOf('key_store', type, password, keyPassword))
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
  [
    'the chain of a key is not trusted, what is stored as trusted is',
    EC_JKS,
    'JKS',
    'storepw',
    [EXPIRED, SERVER, OTHER_CA],
  ],
]

for (const [name, store, type, password, trusted] of TRUSTED) {
  test(`a trust store is read: ${name}`, async t => {
    const place = new Place(t)
    place.write('security/store', store)
    // Of the JKS store with keys the keys are not opened with the password of the store alone.
    const keys = keysOf('trust_store', type, password)
    const { plans } = await place.open({ ...keys, 'listener.parameters.SSLVerifyClient': 'require' })
    assert.deepEqual([...plans.server!.ca].sort(), trusted.map(({ cert }) => cert).sort())
  })
}

const CONVERT = 'convert it: openssl pkcs12 -legacy -in security/store -nodes | openssl pkcs12 -export -out new.p12'
const CONVERT_JCEKS =
  'convert it: keytool -importkeystore -srckeystore security/store -srcstoretype JCEKS -destkeystore new.p12 -deststoretype PKCS12'
const WRONG = `security/store: ${KEY_STORE}.password: wrong password for security/store (set ${KEY_STORE}.password)`
const WRONG_KEY_SAID = `wrong password for the key in security/store (set ${KEY_STORE}.key_password)`
const WRONG_KEY = `security/store: ${KEY_STORE}.key_password: ${WRONG_KEY_SAID}`
const FOLDER = 'it is looked for in the folder security of the home folder'
const PLACE = `(put it there, or set ${KEY_STORE}.file_name; ${FOLDER})`
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
    `${FILE}: is too old to be read: it is encrypted with RC4-128 (${CONVERT})`,
  ],
  ['of the third Java type', JCEKS, 'JKS', 'storepw', '', `${FILE}: is a JCEKS store (${CONVERT_JCEKS})`],
  [
    'JKS said to be PKCS12',
    RSA_JKS,
    'PKCS12',
    'storepw',
    'keypw',
    `security/store: ${KEY_STORE}.type: expected a PKCS12 store, and it is JKS (set ${KEY_STORE}.type)`,
  ],
  ['of no known type', 'hello', 'PEM', '', '', `${FILE}: is no store of a known type ${PLACE}`],
  [
    'cut short, JKS',
    RSA_JKS.subarray(0, 600),
    'JKS',
    '',
    'keypw',
    `${FILE}: is no valid JKS store: it ends too early ${PLACE}`,
  ],
  [
    'cut short, PKCS#12',
    MODERN_P12.subarray(0, 600),
    'PKCS12',
    'storepw',
    '',
    `${FILE}: is no valid PKCS12 store: its DER is broken ${PLACE}`,
  ],
  [
    'trusted certificates alone',
    TRUST_JKS,
    'JKS',
    'storepw',
    '',
    `${FILE}: there is no key in it (take a store with a key and its certificate)`,
  ],
  [
    'a key with the certificate of another',
    CLIENT.key + SERVER.cert,
    'PEM',
    '',
    '',
    `${FILE}: no certificate in it belongs to its key (put the certificate of the key, and its chain, into the store)`,
  ],
  [
    'a key too short for OpenSSL',
    SHORT_KEY + SHORT_KEY_CERTIFICATE,
    'PEM',
    '',
    '',
    `${FILE}: OpenSSL refuses it: SSL routines::ee key too small (take a newer key and certificate)`,
  ],
]

for (const [name, store, type, password, keyPassword, fault] of BROKEN) {
  test(`what is wrong with a key store is said with its remedy: ${name}`, async t => {
    const place = new Place(t)
    place.write('security/store', store)
    assert.deepEqual(await place.faults(keysOf('key_store', type, password, keyPassword)), [fault])
  })
}

/** Lengths known only at the end, and content in pieces (X.690 8.1.3.6 and 8.7.3), in the outer parts of a store. */
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

test('PKCS#12 with lengths that are not known in advance is read, as older tools write it', async t => {
  const place = new Place(t)
  const ber = asBer(MODERN_P12)
  assert.notDeepEqual(ber, MODERN_P12)
  place.write('security/store', ber)
  const { plans } = await place.open(keysOf('key_store', 'PKCS12', 'storepw'))
  assert.ok(createPrivateKey(plans.server!.identity.key).equals(createPrivateKey(SERVER.key)))
})

test('a store that is damaged anywhere is read or refused, and what is wrong names it', async t => {
  const place = new Place(t)
  for (const [store, type] of [
    [MODERN_P12, 'PKCS12'],
    [NO_MAC_P12, 'PKCS12'],
    [LEGACY_P12, 'PKCS12'],
    [EC_JKS, 'JKS'],
  ] as const) {
    for (let at = 0; at < store.length; at += 23) {
      const damaged = Buffer.from(store)
      damaged[at]! ^= 0x55
      place.write('security/store', damaged)
      const faults = await place.faults({ ...keysOf('key_store', type, 'storepw') })
      for (const fault of faults) assert.match(fault, /^security\/store: /, `byte ${at} of ${type}`)
    }
  }
})

test('certificates of a trust store that have expired are named together', async t => {
  const place = new Place(t)
  place.write('security/store', EXPIRED_CLIENT.cert + CA.cert + EXPIRED.cert)
  await place.open({ 'sender.trust_store.file_name': 'store', 'sender.trust_store.type': 'PEM' }, { listens: false })
  assert.equal(place.said.length, 1)
  assert.match(place.said[0]!, /^warn: .*CN=Expired Client has expired on .* 2021 GMT, and so with 1 more of 3 \(/)
})

test('what is no file is not waited for', async t => {
  const place = new Place(t)
  const [fault] = await place.faults({ 'listener.key_store.file_name': place.home })
  assert.match(fault!, /file_name: cannot be read: it is no file/)
})

test('a store that is not there is a fault, and so are all the others at once', async t => {
  const place = new Place(t)
  place.write('security/trust', TRUST_JKS)
  const faults = await place.faults({
    ...keysOf('key_store', 'PKCS12', 'storepw'),
    'listener.trust_store.file_name': 'trust',
    'listener.trust_store.type': 'JKS',
    'listener.trust_store.password': 'secret-2',
    'listener.parameters.SSLVerifyClient': 'require',
    'sender.trust_store.file_name': '/nowhere/trust.p12',
  })
  assert.equal(faults.length, 3)
  assert.match(faults[0]!, /^security\/store: .*key_store\.file_name: cannot be read: there is no such file/)
  assert.match(faults[1]!, /^security\/trust: .*trust_store\.password: wrong password for security\/trust/)
  assert.match(faults[2]!, /^\/nowhere\/trust\.p12: .*sender\.trust_store\.file_name: cannot be read/)
  assert.doesNotMatch(faults.join(), /secret-2/)
})

test('a store is found where documented files have it, and as an absolute path', async t => {
  const place = new Place(t)
  const pem = SERVER.key + SERVER.cert
  place.write('repository/resources/security/there.pem', pem)
  place.write('security/here.pem', pem)
  const absolute = place.write('elsewhere/store.pem', pem)
  for (const name of ['there.pem', 'repository/resources/security/there.pem', 'here.pem', absolute]) {
    const keys = { 'listener.key_store.file_name': name, 'listener.key_store.type': 'PEM' }
    assert.deepEqual(await place.faults(keys), [], name)
  }
})

const DUBIOUS: readonly (readonly [string, string | Buffer, string, string, RegExp])[] = [
  [
    'expired',
    EXPIRED.key + EXPIRED.cert,
    'PEM',
    '',
    /^warn: .*CN=localhost has expired on Jan {2}1 .* 2021 GMT \(renew it; /,
  ],
  [
    'not valid yet',
    SERVER.key + FUTURE_CERTIFICATE,
    'PEM',
    '',
    /^warn: .*CN=localhost is valid from Jan {2}1 .* 2055 GMT only/,
  ],
  [
    'protected by old ciphers',
    LEGACY_P12,
    'PKCS12',
    'storepw',
    /^warn: .*is protected by RC2-40 and 3DES, .*openssl pkcs12 -legacy/,
  ],
  ['behind an MD5 MAC', MD5_P12, 'PKCS12', 'storepw', /^warn: .*is protected by MD5, which no longer protects it/],
  ['with several keys', JAVA_P12, 'PKCS12', 'storepw', /^info: of several keys .*"KEY":"alpha","KEYS":"zeta, alpha"/],
]

for (const [name, store, type, password, line] of DUBIOUS) {
  test(`a store is used and something is said of it: ${name}`, async t => {
    const place = new Place(t)
    place.write('security/store', store)
    const { plans } = await place.open(keysOf('key_store', type, password))
    assert.ok(plans.server)
    assert.equal(place.said.length, 1)
    assert.match(place.said[0]!, line)
  })
}
