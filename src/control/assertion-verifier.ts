/**
 * Verifies JWTs of other issuers that clients present as assertions (RFC 7523): issuer and signature only. The grant
 * validates the claims.
 */
import { verify } from 'node:crypto'
import { promisify } from 'node:util'
import type { IssuerKeys } from '../auth/records.ts'
import type { IssuerPlan } from '../auth/auth-plan.ts'
import { IssuerRegistry } from '../auth/issuers.ts'
import { verifyParameters, signatureError } from '../auth/jwt-signature.ts'
import type { VerifiedAssertion } from './oauth/key-manager.ts'
import { parseJwt } from '../auth/jwt-parser.ts'

const verifySignature = promisify(
  (
    ...given: [string | null, Buffer, Parameters<typeof verify>[2], Buffer, (error: Error | null, is: boolean) => void]
  ) => verify(...given),
)

export class AssertionVerifier {
  readonly #issuers = new IssuerRegistry()
  /** Fetches the key set of an issuer whose key is unknown. Rejects with ControlCallFailed. */
  readonly #fetchKeys: (issuer: string) => Promise<void>

  constructor(fetchKeys: (issuer: string) => Promise<void>) {
    this.#fetchKeys = fetchKeys
  }

  renew(issuers: readonly IssuerPlan[]): void {
    // Tokens of the own key manager are no assertions.
    this.#issuers.setPlans(issuers.filter(({ isOwn }) => !isOwn))
  }

  setKeys(keys: IssuerKeys): void {
    this.#issuers.setKeys(keys)
  }

  /** Null: no trusted issuer has signed it. Rejects with ControlCallFailed where the keys cannot be fetched. */
  async verify(assertion: string): Promise<VerifiedAssertion | null> {
    const jwt = parseJwt(assertion)
    if (typeof jwt === 'string') return null
    const { claims, algorithm, kid, signature, signedPart } = jwt
    const issuer = this.#issuers.find(claims.iss ?? '')
    if (issuer === undefined || !issuer.plan.algorithms.includes(algorithm)) return null
    if (issuer.keysFor(algorithm, kid).length === 0) await this.#fetchKeys(issuer.plan.issuer)
    const [key, other] = issuer.keysFor(algorithm, kid)
    if (key === undefined || other !== undefined) return null
    if (signatureError(algorithm, key, signature, issuer.plan.lowS) !== undefined) return null
    const check = verifyParameters(algorithm, key)
    const isGenuine = await verifySignature(check.digest, Buffer.from(signedPart), check.key, signature)
    return isGenuine ? { issuer: issuer.plan.issuer, claims } : null
  }
}
