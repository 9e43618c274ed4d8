/** Issuers whose tokens are accepted, with their plans and the keys that they publish at present. */
import type { IssuerKeys, PublicJwk } from './records.ts'
import type { IssuerPlan } from './auth-plan.ts'
import { VerificationKey, importVerificationKey } from './verification-key.ts'

/** Keys of an issuer that are used. Some issuers publish old keys for long, none known has so many. */
const KEYS_MAX = 64
/** Issuers whose key sets are kept, including those that a reload may still add. */
const KEY_SETS_MAX = 1024

export class TrustedIssuer {
  readonly plan: IssuerPlan
  /** By the JSON of the JWK: a key that is published again unchanged stays the same object. */
  #keys: ReadonlyMap<string, VerificationKey> = new Map()

  constructor(plan: IssuerPlan) {
    this.plan = plan
  }

  /** The keys that fit; without a `kid`, all that fit the algorithm. */
  keysFor(algorithm: string, kid: string | undefined): readonly VerificationKey[] {
    return [...this.#keys.values()].filter(
      key => (kid === undefined || key.kid === kid) && key.algorithms.includes(algorithm),
    )
  }

  get hasKeys(): boolean {
    return this.#keys.size > 0
  }

  replaceKeys(published: readonly PublicJwk[]): void {
    const keys = new Map<string, VerificationKey>()
    for (const jwk of published.slice(0, KEYS_MAX)) {
      const text = JSON.stringify(jwk)
      const key = this.#keys.get(text) ?? importVerificationKey(jwk, this.plan.algorithms)
      // The control thread, which has fetched the key set, logs the keys that cannot be used.
      if (key instanceof VerificationKey) keys.set(text, key)
    }
    for (const [text, key] of this.#keys) key.isValid = keys.has(text)
    this.#keys = keys
  }
}

export class IssuerRegistry {
  #issuers: ReadonlyMap<string, TrustedIssuer> = new Map()
  /** Key sets by issuer: a reload may add an issuer whose key set is here already. */
  readonly #keySets = new Map<string, IssuerKeys>()

  /** At a start and a reload. An issuer with another plan gets new key objects: tokens verified before are dropped. */
  setPlans(plans: readonly IssuerPlan[]): void {
    const before = this.#issuers
    const after = new Map<string, TrustedIssuer>()
    for (const plan of plans) {
      const known = before.get(plan.issuer)
      if (known !== undefined && JSON.stringify(known.plan) === JSON.stringify(plan)) after.set(plan.issuer, known)
      else {
        const issuer = new TrustedIssuer(plan)
        issuer.replaceKeys(this.#keySets.get(plan.issuer)?.keys ?? [])
        after.set(plan.issuer, issuer)
      }
    }
    for (const [name, known] of before) if (after.get(name) !== known) known.replaceKeys([])
    this.#issuers = after
  }

  /** Replaces the whole key set of an issuer: keys that are not in it are withdrawn. */
  setKeys(keySet: IssuerKeys): void {
    if (!this.#keySets.has(keySet.issuer) && this.#keySets.size >= KEY_SETS_MAX) return
    this.#keySets.set(keySet.issuer, keySet)
    this.#issuers.get(keySet.issuer)?.replaceKeys(keySet.keys)
  }

  find(issuer: string): TrustedIssuer | undefined {
    return this.#issuers.get(issuer)
  }
}
