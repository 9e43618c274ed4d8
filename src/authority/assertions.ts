/**
 * JWTs of other issuers, shown to get a token for (RFC 7523): whether an issuer that is trusted has signed them. What
 * else they say is judged by whoever gives the token.
 */
import { verify } from 'node:crypto'
import { promisify } from 'node:util'
import type { IssuerKeys } from '../identity/facts.ts'
import type { IssuerPlan } from '../identity/identity-plan.ts'
import { IssuerBook } from '../identity/issuer-book.ts'
import { signatureCheck, signatureFault } from '../identity/jwt-signature.ts'
import type { VerifiedAssertion } from '../keymanager/key-manager.ts'
import { readJwt } from '../identity/strict-jwt.ts'

const verifySignature = promisify(
  (
    ...given: [string | null, Buffer, Parameters<typeof verify>[2], Buffer, (error: Error | null, is: boolean) => void]
  ) => verify(...given),
)

export class Assertions {
  readonly #issuers = new IssuerBook()
  /** Has keys fetched that nobody knows. Rejects with InquiryFailed. */
  readonly #look: (issuer: string) => Promise<void>

  constructor(look: (issuer: string) => Promise<void>) {
    this.#look = look
  }

  renew(issuers: readonly IssuerPlan[]): void {
    // Tokens of one's own are no assertions.
    this.#issuers.renew(issuers.filter(({ isOwn }) => !isOwn))
  }

  learn(keys: IssuerKeys): void {
    this.#issuers.learn(keys)
  }

  /** Null: none of the issuers has signed it. Rejects with InquiryFailed where that cannot be known. */
  async verify(assertion: string): Promise<VerifiedAssertion | null> {
    const jwt = readJwt(assertion)
    if (typeof jwt === 'string') return null
    const { claims, algorithm, kid, signature, signedPart } = jwt
    const issuer = this.#issuers.find(claims.iss ?? '')
    if (issuer === undefined || !issuer.plan.algorithms.includes(algorithm)) return null
    if (issuer.keysFor(algorithm, kid).length === 0) await this.#look(issuer.plan.issuer)
    const [key, other] = issuer.keysFor(algorithm, kid)
    if (key === undefined || other !== undefined) return null
    if (signatureFault(algorithm, key, signature, issuer.plan.lowS) !== undefined) return null
    const check = signatureCheck(algorithm, key)
    const isGenuine = await verifySignature(check.digest, Buffer.from(signedPart), check.key, signature)
    return isGenuine ? { issuer: issuer.plan.issuer, claims } : null
  }
}
