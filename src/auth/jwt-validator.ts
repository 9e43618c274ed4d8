/**
 * Validates JSON Web Tokens. The cheap checks come first: form, issuer, algorithm, dates, audience, revocation, key.
 * Only a token that passes them all has its signature verified, on another thread.
 */
import { METRIC } from '../observe/metrics.ts'
import type { TrustedIssuer } from './issuers.ts'
import { acceptedToken, timeError, validityError } from './jwt-claims.ts'
import { type ParsedJwt, parseJwt } from './jwt-parser.ts'
import { alternateSignature, signatureError, VerificationQueue, verifyParameters } from './jwt-signature.ts'
import { isString } from './strict-json.ts'
import {
  type AcceptedToken,
  failedValidation,
  refusedToken,
  type TokenValidation,
  untimelyToken,
} from './token-result.ts'
import type { TokenContext } from './token-validator.ts'
import type { VerificationKey } from './verification-key.ts'

/** Least time between two calls for unknown keys of one issuer. The control thread has a limit of its own. */
const KEY_CALL_INTERVAL_MS = 10_000

/** A call to the control thread for an unknown key. */
interface KeyCall {
  readonly startedMs: number
  /** Reason of a failure; '' once the key set was fetched. Never rejects. */
  readonly failure: Promise<string>
}

export class JwtValidator {
  readonly #context: TokenContext
  readonly #queue: VerificationQueue
  /** The last call of each issuer; dropped with the issuer at a reload. */
  readonly #keyCalls = new WeakMap<TrustedIssuer, KeyCall>()
  /** Accepted difference between the clocks of issuers and the local one. */
  skewMs = 0

  constructor(context: TokenContext) {
    this.#context = context
    this.#queue = new VerificationQueue(context.reactors)
  }

  /** Synchronous where nothing has to be waited for. */
  validate(text: string): TokenValidation | Promise<TokenValidation> {
    const jwt = parseJwt(text)
    if (isString(jwt)) return refusedToken(jwt)
    const { claims, algorithm } = jwt
    const { state, exactMs } = this.#context
    const issuer = state.issuers.find(claims.iss ?? '')
    if (issuer === undefined) return refusedToken('unknown issuer')
    if (!issuer.plan.algorithms.includes(algorithm)) return refusedToken('algorithm not accepted for its issuer')
    const error = validityError(jwt, issuer.plan)
    if (error !== undefined) return refusedToken(error)
    const untimely = timeError(claims, exactMs(), this.skewMs)
    if (untimely !== undefined) return untimelyToken(untimely)
    const accepted = acceptedToken(jwt, issuer.plan)
    if (isString(accepted)) return refusedToken(accepted)
    if (state.revoked.has(accepted.revocationKey)) return refusedToken('revoked')
    const keys = issuer.keysFor(algorithm, jwt.kid)
    return keys.length === 0 ? this.#fetchKey(jwt, issuer, accepted) : this.#checkSignature(jwt, issuer, keys, accepted)
  }

  #checkSignature(
    jwt: ParsedJwt,
    { plan }: TrustedIssuer,
    keys: readonly VerificationKey[],
    accepted: AcceptedToken,
  ): TokenValidation | Promise<TokenValidation> {
    const key = keys[0]!
    if (keys.length > 1) return refusedToken('it names no key, and several keys of its issuer fit')
    const error = signatureError(jwt.algorithm, key, jwt.signature, plan.lowS)
    if (error !== undefined) return refusedToken(error)
    if (this.#queue.isFull) return failedValidation('too many signatures wait to be verified')
    return this.#verify(jwt, key, accepted)
  }

  async #verify({ algorithm, signedPart, signature }: ParsedJwt, key: VerificationKey, accepted: AcceptedToken) {
    this.#context.metrics.add(METRIC.tokenVerifications, 1)
    try {
      const isGenuine = await this.#queue.verify(verifyParameters(algorithm, key), signedPart, signature)
      if (!isGenuine) return refusedToken('wrong signature')
    } catch (error) {
      return failedValidation(`its signature could not be verified: ${(error as Error).message}`)
    }
    const other = alternateSignature(algorithm, signature)
    const alternate = other && `${signedPart.toString('latin1')}.${other}`
    return { result: accepted, key, isCacheable: true, alternate }
  }

  /** Fetches the issuer's keys. A refusal for an unknown key is not cached: the issuer may publish the key later. */
  async #fetchKey(jwt: ParsedJwt, issuer: TrustedIssuer, accepted: AcceptedToken): Promise<TokenValidation> {
    const failure = await this.#callForKey(issuer, jwt.kid ?? '')
    if (failure !== '') return failedValidation(failure)
    const { state } = this.#context
    state.catchUp()
    const current = state.issuers.find(issuer.plan.issuer)
    const keys = current?.keysFor(jwt.algorithm, jwt.kid) ?? []
    if (current?.hasKeys !== true) return failedValidation('its issuer has no usable keys')
    if (keys.length > 0) return this.#checkSignature(jwt, current, keys, accepted)
    return { ...refusedToken('signed with an unknown key'), isCacheable: false }
  }

  /** One call for all tokens within the interval. */
  #callForKey(issuer: TrustedIssuer, kid: string): Promise<string> {
    const nowMs = this.#context.tickMs()
    const last = this.#keyCalls.get(issuer)
    if (last !== undefined && nowMs - last.startedMs < KEY_CALL_INTERVAL_MS) return last.failure
    const called = this.#context.state.call({ kind: 'key', issuer: issuer.plan.issuer, kid })
    const failure = called.then(
      () => '',
      (error: Error) => `the keys of its issuer could not be fetched: ${error.message}`,
    )
    this.#keyCalls.set(issuer, { startedMs: nowMs, failure })
    return failure
  }
}
