/** What a key store holds, whatever its type, and why one cannot be read. */
import type { KeyObject, X509Certificate } from 'node:crypto'

export interface StoredKey {
  /** '' where the store gives it no name. */
  readonly alias: string
  readonly key: KeyObject
}

export interface StoredCertificate {
  readonly alias: string
  readonly certificate: X509Certificate
  /** Stored as one that is trusted, not as part of a key's chain. */
  readonly isTrusted: boolean
}

export interface StoreContents {
  readonly keys: readonly StoredKey[]
  readonly certificates: readonly StoredCertificate[]
  /** Algorithms that protect it and no longer do so well. */
  readonly outdated: readonly string[]
}

/** `outdated`: protected in a way that even the library does not read. */
export type StoreProblemKind = 'store password' | 'key password' | 'outdated' | 'unreadable'

/** Never with a password or a key in its message. */
export class StoreProblem extends Error {
  override readonly name = 'StoreProblem'
  readonly kind: StoreProblemKind

  constructor(kind: StoreProblemKind, detail: string) {
    super(detail)
    this.kind = kind
  }
}
