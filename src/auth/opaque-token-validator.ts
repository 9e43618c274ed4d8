/** Validates opaque tokens: the control thread introspects them at their authorisation server (RFC 7662). */
import { METRIC } from '../observe/metrics.ts'
import type { IntrospectionResult } from './control-protocol.ts'
import {
  audienceError,
  confirmationError,
  confirmationIn,
  digestRevocationKey,
  localClaims,
  tenantIn,
} from './jwt-claims.ts'
import type { JwtClaims } from './jwt-parser.ts'
import {
  type AcceptedToken,
  EXPIRED,
  failedValidation,
  NOT_YET,
  refusedToken,
  type TokenValidation,
  untimelyToken,
} from './token-result.ts'
import type { TokenContext } from './token-validator.ts'

/** RFC 6750 2.1. */
const FORM = /^[\w.~+/-]+=*$/

export class OpaqueTokenValidator {
  readonly #context: TokenContext

  constructor(context: TokenContext) {
    this.#context = context
  }

  validate(token: string): TokenValidation | Promise<TokenValidation> {
    if (!FORM.test(token)) return refusedToken('it has characters that RFC 6750 2.1 excludes')
    const revocationKey = digestRevocationKey(token)
    if (this.#context.state.revoked.has(revocationKey)) return refusedToken('revoked')
    return this.#introspect(token, revocationKey)
  }

  async #introspect(token: string, revocationKey: string): Promise<TokenValidation> {
    const { state, metrics, exactMs } = this.#context
    metrics.add(METRIC.tokenIntrospections, 1)
    let found: IntrospectionResult
    try {
      found = await state.call({ kind: 'introspect', token })
    } catch (error) {
      return failedValidation(`introspection failed: ${(error as Error).message}`)
    }
    if (found === null) return refusedToken('not active')
    // The clock of the server that calls it active may be another one.
    const nowMs = exactMs()
    if (found.expiresMs !== 0 && found.expiresMs <= nowMs) return untimelyToken(EXPIRED)
    if (found.notBeforeMs > nowMs) return untimelyToken(NOT_YET)
    const plan = state.issuers.find(found.issuer)?.plan
    const claims: JwtClaims = found.claims
    const error = (plan && audienceError(claims, plan)) ?? confirmationError(claims.cnf)
    if (error !== undefined) return refusedToken(error)
    const result: AcceptedToken = {
      kind: 'accepted',
      issuer: found.issuer,
      consumerKey: found.consumerKey,
      user: found.user,
      tenant: tenantIn(claims, { isOwn: plan?.isOwn === true }),
      isApplication: found.isApplication,
      scopes: new Set(found.scopes),
      notBeforeMs: found.notBeforeMs,
      expiresMs: found.expiresMs,
      revocationKey,
      confirmation: confirmationIn(claims),
      apiKey: null,
      claims: plan === undefined ? claims : localClaims(claims, plan),
    }
    return { result, key: null, isCacheable: true, alternate: '' }
  }
}
