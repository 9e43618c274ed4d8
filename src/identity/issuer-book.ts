/** The issuers whose tokens are accepted, their terms, and the keys that they sign with at present. */
import type { IssuerKeys, PublicJwk } from './facts.ts'
import type { IssuerPlan } from './identity-plan.ts'
import { VerificationKey, verificationKey } from './verification-key.ts'

/** Keys of an issuer that are looked at. Some publish old ones for long; none that is known has so many. */
const KEYS_MAX = 64
/** Issuers that keys are kept of, also of those that a reload has not named yet. */
const TOLD_MAX = 1024

export class KnownIssuer {
  readonly plan: IssuerPlan
  /** Each under the text of its JWK: a key that is told again unchanged stays the same one. */
  #keys: ReadonlyMap<string, VerificationKey> = new Map()

  constructor(plan: IssuerPlan) {
    this.plan = plan
  }

  /** The keys that fit; where a token names no key, all that fit its algorithm. */
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
      const key = this.#keys.get(text) ?? verificationKey(jwk, this.plan.algorithms)
      // Those that are not used are told by who fetched them.
      if (key instanceof VerificationKey) keys.set(text, key)
    }
    for (const [text, key] of this.#keys) key.isCurrent = keys.has(text)
    this.#keys = keys
  }
}

export class IssuerBook {
  #issuers: ReadonlyMap<string, KnownIssuer> = new Map()
  /** What was told of keys: a reload may bring an issuer after its keys. */
  readonly #told = new Map<string, IssuerKeys>()

  /** At a start and a reload. What keys have proved under other terms is proved no longer. */
  renew(plans: readonly IssuerPlan[]): void {
    const before = this.#issuers
    const after = new Map<string, KnownIssuer>()
    for (const plan of plans) {
      const known = before.get(plan.issuer)
      if (known !== undefined && JSON.stringify(known.plan) === JSON.stringify(plan)) after.set(plan.issuer, known)
      else {
        const issuer = new KnownIssuer(plan)
        issuer.replaceKeys(this.#told.get(plan.issuer)?.keys ?? [])
        after.set(plan.issuer, issuer)
      }
    }
    for (const [name, known] of before) if (after.get(name) !== known) known.replaceKeys([])
    this.#issuers = after
  }

  /** All keys of an issuer: those that are not among them are withdrawn. */
  learn(told: IssuerKeys): void {
    if (!this.#told.has(told.issuer) && this.#told.size >= TOLD_MAX) return
    this.#told.set(told.issuer, told)
    this.#issuers.get(told.issuer)?.replaceKeys(told.keys)
  }

  find(issuer: string): KnownIssuer | undefined {
    return this.#issuers.get(issuer)
  }
}
