/**
 * Secrets that were right a moment ago, so that each request for a token does not cost an argon2. What is kept is a
 * keyed hash of owner, stored hash and secret: nothing can be read out of it, and a secret that was changed, on this
 * node or another one, is not in it.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { METRIC } from '../observe/metrics.ts'
import { verifyPassword } from './password-hash.ts'
import { growingTo } from '../structure/growing-cache.ts'

const ENTRIES_MAX = 10_000
const KEPT_MS = 60_000

export interface SecretMetrics {
  add(cell: number, by: number): void
}

export class VerifiedSecrets {
  readonly #metrics: SecretMetrics
  readonly #key = randomBytes(32)
  readonly #kept = new LRUCache<string, true>({ ...growingTo(ENTRIES_MAX), ttl: KEPT_MS })

  constructor(metrics: SecretMetrics) {
    this.#metrics = metrics
  }

  /** `phc`: '' for nobody, which takes as long. Throws RegistryUnavailable. */
  async verify(owner: string, secret: string, phc: string): Promise<{ isRight: boolean; isOld: boolean }> {
    const known = this.#nameOf(owner, secret, phc)
    const isKept = phc !== '' && this.#kept.has(known)
    this.#metrics.add(isKept ? METRIC.verifiedSecretHits : METRIC.verifiedSecretMisses, 1)
    if (isKept) return { isRight: true, isOld: false }
    const verdict = await verifyPassword(secret, phc)
    if (verdict.isRight) this.#kept.set(known, true)
    return verdict
  }

  #nameOf(owner: string, secret: string, phc: string): string {
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([owner, phc, secret]))
      .digest('base64')
  }
}
