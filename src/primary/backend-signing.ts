/**
 * What the tokens for backends are signed with: the key of `[keystore.primary]` where one is set, else one that is made
 * when it is first needed and kept in the data folder. It is not the key manager's: whoever has it makes no token that
 * a gateway accepts.
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
import type { Fault } from '../config/fault.ts'
import { Findings } from '../config/findings.ts'
import { labelOf } from '../config/source-file.ts'
import { readKept } from '../store/kept-file.ts'
import type { BackendSigner } from '../identity/identity-plan.ts'
import type { StoreSetting } from '../tls/store-file.ts'

/** A key of a key store, in PEM. */
interface StoredIdentity {
  readonly cert: string
  readonly key: string
}

/** What was found, before anything is written. */
export interface SigningDraft {
  /** Nothing is signed; with `identity` null a key of its own does it. */
  readonly isNeeded: boolean
  readonly identity: StoredIdentity | null
  readonly faults: readonly Fault[]
}

export const NOTHING_SIGNED: SigningDraft = { isNeeded: false, identity: null, faults: [] }

const STORE_KEY = 'keystore.primary.file_name'
const PRIVATE = 'backend-jwt-key.pem'
/** For backends: what they verify with. */
const PUBLIC = 'backend-jwt-public.pem'
const MODULUS_BITS = 2048

/** Reads the key store; writes nothing. `home`: folder that the security folder is in. */
export async function draftSigning(configuration: Configuration, home: string): Promise<SigningDraft> {
  const jwt = configuration['apim.jwt']
  if (!jwt.enable || jwt.signing_algorithm === 'NONE' || jwt.generator_impl !== '') return NOTHING_SIGNED
  const store = configuration['keystore.primary']
  if (store.file_name === '') return { isNeeded: true, identity: null, faults: [] }
  const { Surroundings } = await import('../tls/surroundings.ts')
  const { WatchedFiles } = await import('../tls/watched-files.ts')
  const findings = new Findings()
  const identity = await new Surroundings(home, new WatchedFiles(), findings).identity(settingOf(store))
  const { faults } = findings
  const isRsa = identity !== undefined && createPrivateKey(identity.key).asymmetricKeyType === 'rsa'
  if (identity === undefined || isRsa) return { isNeeded: true, identity: identity ?? null, faults }
  const remedy = 'set apim.jwt.signing_algorithm to NONE, or take a store with an RSA key'
  const expected = 'the key in it signs no token for backends: SHA256withRSA takes an RSA key'
  return { isNeeded: true, identity: null, faults: [{ where: '', key: STORE_KEY, given: '', expected, remedy }] }
}

function settingOf(store: Configuration['keystore.primary']): StoreSetting {
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

/** For the reactors; null where nothing is signed. With a fault there is none. */
export interface Signing {
  readonly signer: BackendSigner | null
  readonly fault: Fault | null
}

/** Makes the key of its own where there is none yet. */
export function signerOf({ isNeeded, identity }: SigningDraft, dataDir: string): Signing {
  if (!isNeeded) return { signer: null, fault: null }
  if (identity !== null) {
    return { signer: signer(createPrivateKey(identity.key), new X509Certificate(identity.cert)), fault: null }
  }
  const path = join(dataDir, PRIVATE)
  try {
    const key = createPrivateKey(readKept(path) ?? newKey(dataDir, path))
    if (key.asymmetricKeyType === 'rsa') return { signer: signer(key, null), fault: null }
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException
    if (syscall !== undefined) return faulty(path, `cannot be kept there (${code})`, 'make the data folder writable')
  }
  // The cause could quote the file.
  return faulty(
    path,
    'holds no RSA key',
    'restore it, or remove it: then another one is made, and backends are to be told',
  )
}

function faulty(path: string, expected: string, remedy: string): Signing {
  return { signer: null, fault: { where: labelOf(path), key: '', given: '', expected, remedy } }
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
