/** Tokens that say nothing by themselves: whoever has given them is asked (RFC 7662). */
import { METRIC } from '../observe/metrics.ts'
import type { Introspection } from './feed.ts'
import { audienceFault, confirmationFault, confirmationIn, digestKey, localClaims, tenantIn } from './jwt-claims.ts'
import { type Finding, refused, unknown } from './jwt-verifier.ts'
import type { JwtClaims } from './strict-jwt.ts'
import type { AcceptedToken } from './token-verdict.ts'
import type { TokenSurroundings } from './tokens.ts'

/** RFC 6750 2.1. */
const FORM = /^[\w.~+/-]+=*$/

export class IntrospectedTokens {
  readonly #around: TokenSurroundings

  constructor(around: TokenSurroundings) {
    this.#around = around
  }

  introspect(token: string): Finding | Promise<Finding> {
    if (!FORM.test(token)) return refused('of characters that no token has')
    const revocationKey = digestKey(token)
    if (this.#around.sources.revoked.has(revocationKey)) return refused('revoked')
    return this.#asked(token, revocationKey)
  }

  async #asked(token: string, revocationKey: string): Promise<Finding> {
    const { sources, metrics, wallMs } = this.#around
    metrics.add(METRIC.tokenIntrospections, 1)
    let answer: Introspection
    try {
      answer = await sources.ask({ kind: 'introspect', token })
    } catch (error) {
      return unknown(`it could not be introspected: ${(error as Error).message}`)
    }
    if (answer === null) return refused('not active')
    // Said to be active by a server whose clock is another one.
    if (answer.expiresMs !== 0 && answer.expiresMs <= wallMs()) return refused('expired')
    const plan = sources.issuers.find(answer.issuer)?.plan
    const claims: JwtClaims = answer.claims
    const fault = (plan && audienceFault(claims, plan)) ?? confirmationFault(claims.cnf)
    if (fault !== undefined) return refused(fault)
    const verdict: AcceptedToken = {
      kind: 'accepted',
      issuer: answer.issuer,
      consumerKey: answer.consumerKey,
      user: answer.user,
      tenant: tenantIn(claims, { isOwn: plan?.isOwn === true }),
      isApplication: answer.isApplication,
      scopes: new Set(answer.scopes),
      expiresMs: answer.expiresMs,
      revocationKey,
      confirmation: confirmationIn(claims),
      apiKey: null,
      claims: plan === undefined ? claims : localClaims(claims, plan),
    }
    return { verdict, key: null, isLasting: true, twin: '' }
  }
}
