/** The key of backend JWTs: that of a key store, or a generated one that is kept. */
import assert from 'node:assert/strict'
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { readSigningKey, createSigner } from '../../src/plan/backend-signing.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { RSA_SERVER, SERVER } from '../harness/certificates.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import type { TlsIdentity } from '../../src/socket/tls.ts'

const ON = 'enable = true\n'

async function source(t: TestContext, jwt: string, store?: TlsIdentity) {
  const own = store === undefined ? '' : '[keystore.primary]\nfile_name = "own.pem"\n'
  const files = store === undefined ? {} : { 'security/own.pem': `${store.key}${store.cert}` }
  const home = temporaryHome(t, { 'deployment.toml': `[apim.jwt]\n${jwt}${own}`, ...files })
  const { configuration } = loadConfiguration(home, [])
  return { home, data: join(home, 'data'), keySource: await readSigningKey(configuration, home) }
}

const UNSIGNED = ['enable = false\n', `${ON}signing_algorithm = "NONE"\n`, `${ON}generator_impl = "a.mjs"\n`]
for (const jwt of UNSIGNED) {
  test(`${JSON.stringify(jwt)}: nothing is signed, and no key is generated`, async t => {
    const { data, keySource } = await source(t, jwt)
    assert.deepEqual(createSigner(keySource, data), { signer: null, error: null })
    assert.equal(statSync(data, { throwIfNoEntry: false }), undefined)
  })
}

test('[keystore.primary]: its RSA key signs, with the thumbprints of its certificate', async t => {
  const { data, keySource } = await source(t, ON, RSA_SERVER)
  const { signer } = createSigner(keySource, data)
  const { n } = createPublicKey(RSA_SERVER.key).export({ format: 'jwk' })
  assert.equal(createPrivateKey(signer!.key).export({ format: 'jwk' }).n, n)
  const { fingerprint, fingerprint256 } = new X509Certificate(RSA_SERVER.cert)
  const named = [fingerprint, fingerprint256].map(text =>
    Buffer.from(text.replaceAll(':', ''), 'hex').toString('base64url'),
  )
  assert.deepEqual([signer!.x5t, signer!.x5tS256], named)
  assert.equal(statSync(data, { throwIfNoEntry: false }), undefined)
})

test('[keystore.primary]: a key other than RSA is an error of keystore.primary.file_name', async t => {
  const { keySource } = await source(t, ON, SERVER)
  assert.match(keySource.errors.map(formatDiagnostic).join(), /keystore\.primary\.file_name.*holds no RSA key/)
})

test('a key is generated once, readable by its owner alone, with a public key for backends', async t => {
  const { data, keySource } = await source(t, ON)
  const { signer, error: diagnostic } = createSigner(keySource, data)
  assert.equal(diagnostic, null)
  assert.equal(createSigner(keySource, data).signer!.kid, signer!.kid)
  const path = join(data, 'backend-jwt-key.pem')
  assert.equal(statSync(path).mode & 0o777, 0o600)
  const published = createPublicKey(readFileSync(join(data, 'backend-jwt-public.pem'), 'utf8'))
  assert.equal(published.export({ format: 'jwk' }).n, createPublicKey(signer!.key).export({ format: 'jwk' }).n)
})

const DAMAGED: readonly (readonly [what: string, spoil: (data: string) => void, said: RegExp])[] = [
  [
    'a text that is no key',
    data => writeFileSync(join(data, 'backend-jwt-key.pem'), 'planted-secret'),
    /holds no RSA key/,
  ],
  ['an EC key', data => writeFileSync(join(data, 'backend-jwt-key.pem'), SERVER.key), /holds no RSA key/],
  ['a folder in its place', data => mkdirSync(join(data, 'backend-jwt-key.pem')), /cannot be kept there \(EISDIR\)/],
]
for (const [what, spoil, said] of DAMAGED) {
  test(`${what} is an error that quotes nothing, and no other key is generated`, async t => {
    const { data, keySource } = await source(t, ON)
    mkdirSync(data)
    chmodSync(data, 0o700)
    spoil(data)
    const { signer, error: diagnostic } = createSigner(keySource, data)
    assert.equal(signer, null)
    assert.match(formatDiagnostic(diagnostic!), said)
    assert.doesNotMatch(formatDiagnostic(diagnostic!), /planted|BEGIN/)
  })
}
