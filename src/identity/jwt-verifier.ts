/**
 * Whether a JSON Web Token is genuine, and what it says. What costs little is asked first: form, issuer, algorithm,
 * dates, audience, revocation, key. Only what stands all of that is calculated, on another thread.
 */
import { METRIC } from '../observe/metrics.ts'
import type { KnownIssuer } from './issuer-book.ts'
import { acceptedToken, NOT_YET, termsFault } from './jwt-claims.ts'
import { signatureCheck, signatureFault, twinOf } from './jwt-signature.ts'
import { readJwt, type StrictJwt } from './strict-jwt.ts'
import { isText } from '../structure/strict-json.ts'
import type { AcceptedToken, RefusedToken } from './token-verdict.ts'
import type { TokenSurroundings } from './tokens.ts'
import type { VerificationKey } from './verification-key.ts'
import { VerificationQueue } from './verification-queue.ts'

/** Between two questions for a key of an issuer that nobody knows. The authority has a limit of its own. */
const ASKED_EVERY_MS = 10_000

/** A verdict, and on what it rests. */
export interface Finding {
  readonly verdict: AcceptedToken | RefusedToken
  /** Null where no key has proved it. */
  readonly key: VerificationKey | null
  /** It will be the same when it is asked again. */
  readonly isLasting: boolean
  /** The same token with the other of two signatures that are one; '' where there is only one. */
  readonly twin: string
}

interface KeySearch {
  readonly startedMs: number
  /** What went wrong; '' where the key set was looked at. Never rejected. */
  readonly found: Promise<string>
}

export class JwtVerifier {
  readonly #around: TokenSurroundings
  readonly #queue: VerificationQueue
  /** They go with what a reload makes of their issuer. */
  readonly #searches = new WeakMap<KnownIssuer, KeySearch>()
  /** By how much the clocks of issuers may differ from ours. */
  skewMs = 0

  constructor(around: TokenSurroundings) {
    this.#around = around
    this.#queue = new VerificationQueue(around.reactors)
  }

  /** Answers at once where nothing has to be waited for. */
  verify(text: string): Finding | Promise<Finding> {
    const jwt = readJwt(text)
    if (isText(jwt)) return refused(jwt)
    const { claims, algorithm } = jwt
    const issuer = this.#around.sources.issuers.find(claims.iss ?? '')
    if (issuer === undefined) return refused('of an issuer that is not known')
    if (!issuer.plan.algorithms.includes(algorithm)) return refused('signed with an algorithm that is not accepted')
    const fault = termsFault(jwt, issuer.plan, this.#around.exactMs(), this.skewMs)
    if (fault !== undefined) return { ...refused(fault), isLasting: fault !== NOT_YET }
    const accepted = acceptedToken(jwt, issuer.plan)
    if (isText(accepted)) return refused(accepted)
    if (this.#around.sources.revoked.has(accepted.revocationKey)) return refused('revoked')
    const keys = issuer.keysFor(algorithm, jwt.kid)
    return keys.length === 0 ? this.#searched(jwt, issuer, accepted) : this.#calculated(jwt, issuer, keys, accepted)
  }

  #calculated(
    jwt: StrictJwt,
    { plan }: KnownIssuer,
    keys: readonly VerificationKey[],
    accepted: AcceptedToken,
  ): Finding | Promise<Finding> {
    const key = keys[0]!
    if (keys.length > 1) return refused('more than one key fits, and it names none')
    const fault = signatureFault(jwt.algorithm, key, jwt.signature, plan.lowS)
    if (fault !== undefined) return refused(fault)
    if (this.#queue.isFull) return unknown('too many tokens wait to be verified')
    return this.#verified(jwt, key, accepted)
  }

  async #verified({ algorithm, signedPart, signature }: StrictJwt, key: VerificationKey, accepted: AcceptedToken) {
    this.#around.metrics.add(METRIC.tokenVerifications, 1)
    try {
      const isGenuine = await this.#queue.verify(signatureCheck(algorithm, key), signedPart, signature)
      if (!isGenuine) return refused('its signature is not that of its issuer')
    } catch (error) {
      return unknown(`it could not be verified: ${(error as Error).message}`)
    }
    const twin = twinOf(algorithm, signature)
    return { verdict: accepted, key, isLasting: true, twin: twin && `${signedPart.toString('latin1')}.${twin}` }
  }

  /** No key fits: it may be a new one. What comes of it is not remembered, because it may come yet. */
  async #searched(jwt: StrictJwt, issuer: KnownIssuer, accepted: AcceptedToken): Promise<Finding> {
    const cause = await this.#search(issuer, jwt.kid ?? '')
    if (cause !== '') return unknown(cause)
    const { sources } = this.#around
    sources.catchUp()
    const current = sources.issuers.find(issuer.plan.issuer)
    const keys = current?.keysFor(jwt.algorithm, jwt.kid) ?? []
    if (current?.hasKeys !== true) return unknown('its issuer has no keys that can be used')
    if (keys.length > 0) return this.#calculated(jwt, current, keys, accepted)
    return { ...refused('signed with a key that is not known'), isLasting: false }
  }

  /** One question for all who ask at the same time, and none again within the interval. */
  #search(issuer: KnownIssuer, kid: string): Promise<string> {
    const nowMs = this.#around.wallMs()
    const last = this.#searches.get(issuer)
    if (last !== undefined && Math.abs(nowMs - last.startedMs) < ASKED_EVERY_MS) return last.found
    const asked = this.#around.sources.ask({ kind: 'key', issuer: issuer.plan.issuer, kid })
    const found = asked.then(
      () => '',
      (error: Error) => `the keys of the issuer could not be asked for: ${error.message}`,
    )
    this.#searches.set(issuer, { startedMs: nowMs, found })
    return found
  }
}

export function refused(description: string): Finding {
  return { verdict: { kind: 'refused', code: 900901, description }, key: null, isLasting: true, twin: '' }
}

/** Nobody is refused for what could not be found out. */
export function unknown(cause: string): Finding {
  return { verdict: { kind: 'refused', code: 900900, description: cause }, key: null, isLasting: false, twin: '' }
}
