/**
 * The key that signs backend JWTs: that of `[keystore.primary]`, or one that is generated when first needed and kept in
 * the data folder. It is never the key of the key manager, so no holder of it can sign tokens that a gateway accepts.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  X509Certificate,
} from 'node:crypto'
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Configuration } from '../config/catalogue.ts'
import { type Diagnostic, Diagnostics } from '../config/diagnostics.ts'
import { labelOf } from '../config/source-file.ts'
import { readIfPresent } from '../runtime/atomic-file.ts'
import type { BackendSigner } from '../auth/auth-plan.ts'
import type { StoreSettings } from '../tls/key-store.ts'

/** In PEM. */
interface KeyPair {
  readonly cert: string
  readonly key: string
}

/** Where the signing key comes from; nothing is written yet. */
export interface SigningKeySource {
  /** False if reactors sign nothing. */
  readonly isNeeded: boolean
  /** The key of the key store; null for a generated key. */
  readonly identity: KeyPair | null
  readonly errors: readonly Diagnostic[]
}

export const NO_SIGNING: SigningKeySource = { isNeeded: false, identity: null, errors: [] }

const STORE_KEY = 'keystore.primary.file_name'
const PRIVATE = 'backend-jwt-key.pem'
/** The public key, with which backends verify. */
const PUBLIC = 'backend-jwt-public.pem'
const MODULUS_BITS = 2048

/** Reads the key store and writes nothing. `home`: the folder that holds the security folder. */
export async function readSigningKey(configuration: Configuration, home: string): Promise<SigningKeySource> {
  const jwt = configuration['apim.jwt']
  if (!jwt.enable || jwt.signing_algorithm === 'NONE' || jwt.generator_impl !== '') return NO_SIGNING
  const store = configuration['keystore.primary']
  if (store.file_name === '') return { isNeeded: true, identity: null, errors: [] }
  const { TlsPlanContext } = await import('../tls/tls-plan-context.ts')
  const { WatchedFiles } = await import('../tls/watched-files.ts')
  const findings = new Diagnostics()
  const identity = await new TlsPlanContext(home, new WatchedFiles(), findings).identity(settingOf(store))
  const { errors } = findings
  const isRsa = identity !== undefined && createPrivateKey(identity.key).asymmetricKeyType === 'rsa'
  if (identity === undefined || isRsa) return { isNeeded: true, identity: identity ?? null, errors }
  const hint = 'set apim.jwt.signing_algorithm to NONE, or use a key store with an RSA key'
  const expected = 'holds no RSA key, which SHA256withRSA needs to sign backend JWTs'
  return { isNeeded: true, identity: null, errors: [{ where: '', key: STORE_KEY, given: '', expected, hint }] }
}

function settingOf(store: Configuration['keystore.primary']): StoreSettings {
  const names = { fileName: STORE_KEY, type: nameOf('type'), password: nameOf('password') }
  const setting = {
    fileName: store.file_name,
    type: store.type,
    password: store.password,
    keyPassword: store.key_password,
    names: { ...names, keyPassword: nameOf('key_password') },
  }
  return store.alias === '' ? setting : { ...setting, alias: { wanted: store.alias, name: nameOf('alias') } }
}

function nameOf(key: string): string {
  return `keystore.primary.${key}`
}

/** The signer is null if reactors sign nothing, or with an error. */
export interface SigningResult {
  readonly signer: BackendSigner | null
  readonly error: Diagnostic | null
}

/** Generates the key in the data folder if there is none. */
export function createSigner({ isNeeded, identity }: SigningKeySource, dataDir: string): SigningResult {
  if (!isNeeded) return { signer: null, error: null }
  if (identity !== null) {
    return { signer: signer(createPrivateKey(identity.key), new X509Certificate(identity.cert)), error: null }
  }
  const path = join(dataDir, PRIVATE)
  try {
    const key = createPrivateKey(readIfPresent(path) ?? newKey(dataDir, path))
    if (key.asymmetricKeyType === 'rsa') return { signer: signer(key, null), error: null }
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException
    if (syscall !== undefined) return failed(path, `cannot be kept there (${code})`, 'make the data folder writable')
  }
  // The cause is not shown, because it could quote the file.
  return failed(
    path,
    'holds no RSA key',
    'restore it, or remove it for a new key, and give backends the new public key',
  )
}

function failed(path: string, expected: string, hint: string): SigningResult {
  return { signer: null, error: { where: labelOf(path), key: '', given: '', expected, hint } }
}

function signer(key: KeyObject, certificate: X509Certificate | null): BackendSigner {
  const { n, e } = createPublicKey(key).export({ format: 'jwk' })
  // RFC 7638.
  const kid = createHash('sha256')
    .update(JSON.stringify({ e, kty: 'RSA', n }))
    .digest('base64url')
  const x5t = (algorithm: string) => {
    return certificate === null ? '' : createHash(algorithm).update(certificate.raw).digest('base64url')
  }
  return { key: String(key.export({ type: 'pkcs8', format: 'pem' })), kid, x5t: x5t('sha1'), x5tS256: x5t('sha256') }
}

function newKey(dataDir: string, path: string): string {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', {
    modulusLength: MODULUS_BITS,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  mkdirSync(dataDir, { recursive: true })
  const fresh = `${path}.${process.pid}.new`
  writeFileSync(fresh, privateKey, { mode: 0o600, flag: 'wx' })
  writeFileSync(join(dataDir, PUBLIC), publicKey)
  renameSync(fresh, path)
  return privateKey
}
