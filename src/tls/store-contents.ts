/** Contents of a key store, the same for every type of store, and the errors of reading one. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'

export interface StoredKey {
  /** '' in a store without aliases. */
  readonly alias: string
  readonly key: KeyObject
}

export interface StoredCertificate {
  readonly alias: string
  readonly certificate: X509Certificate
  /** A trusted certificate entry, not part of the chain of a key. */
  readonly isTrusted: boolean
}

export interface StoreContents {
  readonly keys: readonly StoredKey[]
  readonly certificates: readonly StoredCertificate[]
  /** Names of the insecure algorithms that protect the store. */
  readonly weakAlgorithms: readonly string[]
}

export type StoreErrorKind = 'store password' | 'key password' | 'unsupported' | 'malformed'

/** The message never contains a password or a key. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly kind: StoreErrorKind

  constructor(kind: StoreErrorKind, detail: string) {
    super(detail)
    this.kind = kind
  }
}

/** `onFailure`: the error if the bytes are no PKCS#8 key; a wrong password decrypts to such bytes. */
export function parseKey(pkcs8: Buffer, onFailure: StoreErrorKind): KeyObject {
  try {
    return createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })
  } catch {
    throw new StoreError(onFailure, 'a key cannot be read')
  }
}

/** Takes DER or PEM. */
export function parseCertificate(bytes: Buffer | string): X509Certificate {
  try {
    return new X509Certificate(bytes)
  } catch {
    throw new StoreError('malformed', 'a certificate cannot be read')
  }
}
