/** What tokens for backends are signed with: a key store's key, or one that is made and kept. */
import assert from 'node:assert/strict'
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { describe } from '../../src/config/fault.ts'
import { draftSigning, signerOf } from '../../src/primary/backend-signing.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { RSA_SERVER, SERVER } from '../harness/certificates.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import type { TlsIdentity } from '../../src/socket/tls.ts'

const ON = 'enable = true\n'

async function draft(t: TestContext, jwt: string, store?: TlsIdentity) {
  const own = store === undefined ? '' : '[keystore.primary]\nfile_name = "own.pem"\n'
  const files = store === undefined ? {} : { 'security/own.pem': `${store.key}${store.cert}` }
  const home = temporaryHome(t, { 'deployment.toml': `[apim.jwt]\n${jwt}${own}`, ...files })
  const { configuration } = loadConfiguration(home, [])
  return { home, data: join(home, 'data'), made: await draftSigning(configuration, home) }
}

const UNSIGNED = ['enable = false\n', `${ON}signing_algorithm = "NONE"\n`, `${ON}generator_impl = "a.mjs"\n`]
for (const jwt of UNSIGNED) {
  test(`${JSON.stringify(jwt)}: nothing is signed, and no key is made`, async t => {
    const { data, made } = await draft(t, jwt)
    assert.deepEqual(signerOf(made, data), { signer: null, fault: null })
    assert.equal(statSync(data, { throwIfNoEntry: false }), undefined)
  })
}

test('[keystore.primary]: its RSA key signs, named by the thumbprints of its certificate', async t => {
  const { data, made } = await draft(t, ON, RSA_SERVER)
  const { signer } = signerOf(made, data)
  const { n } = createPublicKey(RSA_SERVER.key).export({ format: 'jwk' })
  assert.equal(createPrivateKey(signer!.key).export({ format: 'jwk' }).n, n)
  const { fingerprint, fingerprint256 } = new X509Certificate(RSA_SERVER.cert)
  const named = [fingerprint, fingerprint256].map(text =>
    Buffer.from(text.replaceAll(':', ''), 'hex').toString('base64url'),
  )
  assert.deepEqual([signer!.x5t, signer!.x5tS256], named)
  assert.equal(statSync(data, { throwIfNoEntry: false }), undefined)
})

test('[keystore.primary]: a key that is no RSA key is a fault of its key', async t => {
  const { made } = await draft(t, ON, SERVER)
  assert.match(made.faults.map(describe).join(), /keystore\.primary\.file_name.*takes an RSA key/)
})

test('a key of its own is made once, for its owner alone, with a public half for backends', async t => {
  const { data, made } = await draft(t, ON)
  const { signer, fault } = signerOf(made, data)
  assert.equal(fault, null)
  assert.equal(signerOf(made, data).signer!.kid, signer!.kid)
  const path = join(data, 'backend-jwt-key.pem')
  assert.equal(statSync(path).mode & 0o777, 0o600)
  const published = createPublicKey(readFileSync(join(data, 'backend-jwt-public.pem'), 'utf8'))
  assert.equal(published.export({ format: 'jwk' }).n, createPublicKey(signer!.key).export({ format: 'jwk' }).n)
})

const DAMAGED: readonly (readonly [what: string, spoil: (data: string) => void, said: RegExp])[] = [
  ['text that is none', data => writeFileSync(join(data, 'backend-jwt-key.pem'), 'planted-secret'), /holds no RSA key/],
  ['an EC key', data => writeFileSync(join(data, 'backend-jwt-key.pem'), SERVER.key), /holds no RSA key/],
  ['a folder in its place', data => mkdirSync(join(data, 'backend-jwt-key.pem')), /cannot be kept there \(EISDIR\)/],
]
for (const [what, spoil, said] of DAMAGED) {
  test(`${what}: a fault that quotes nothing, and no other key is made`, async t => {
    const { data, made } = await draft(t, ON)
    mkdirSync(data)
    chmodSync(data, 0o700)
    spoil(data)
    const { signer, fault } = signerOf(made, data)
    assert.equal(signer, null)
    assert.match(describe(fault!), said)
    assert.doesNotMatch(describe(fault!), /planted|BEGIN/)
  })
}
