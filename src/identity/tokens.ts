/** Verdicts of tokens in a reactor: remembered ones at once, others by verification or introspection. */
import { arena } from '../http1/llhttp.ts'
import { METRIC } from '../observe/metrics.ts'
import type { Inquiry, InquiryResults } from './feed.ts'
import type { IdentityPlan } from './identity-plan.ts'
import { IntrospectedTokens } from './introspected-tokens.ts'
import type { IssuerBook } from './issuer-book.ts'
import { type Finding, JwtVerifier, refused, unknown } from './jwt-verifier.ts'
import { isJose, TOKEN_BYTES_MAX } from './strict-jwt.ts'
import { hashOf, KnownToken, TokenTable } from './token-table.ts'
import type { AcceptedToken, TokenChecks, TokenEntry } from './token-verdict.ts'

/** What verdicts are made of; IdentityState is one. */
export interface TokenSources {
  /** Changes with anything that a verdict or a grant may have been made of. */
  readonly epoch: number
  /** Takes in what has been told since. */
  catchUp(): void
  readonly issuers: IssuerBook
  readonly revoked: { has(revocationKey: string): boolean }
  /** Rejects with the cause where there is no answer. */
  ask<Q extends Inquiry>(inquiry: Q): Promise<InquiryResults[Q['kind']]>
}

/** What a reactor lends to it. */
export interface TokenSurroundings {
  readonly sources: TokenSources
  readonly metrics: { add(cell: number, by: number): void }
  /** Reactors of the gateway, which share the threads that verify. */
  readonly reactors: number
  /** Milliseconds since 1970, as of the last tick. */
  wallMs(): number
  /** The same of now: a token that was made a moment ago must not be early. */
  exactMs(): number
}

/** All that verdicts rest on. The rest of the plan holds a secret, and is none of theirs. */
type TokenPlan = Pick<IdentityPlan, 'issuers' | 'skewMs' | 'verdictMs'>

const ENTRIES_MAX = 8192
const BYTES_MAX = 21 << 20
/** Refused tokens have a table of their own: a flood of them drives no good one out. */
const REFUSED_MAX = 1024
const REFUSED_BYTES_MAX = 5 << 19
const REFUSED_MS = 10_000
/** Tokens that are being found out about. */
const UNDER_WAY_MAX = 2048

const TOO_LONG: Finding['verdict'] = { kind: 'refused', code: 900901, description: 'longer than a token may be' }

export class Tokens<G> implements TokenChecks<G> {
  readonly #around: TokenSurroundings
  readonly #jwts: JwtVerifier
  readonly #opaque: IntrospectedTokens
  readonly #accepted = new TokenTable<G>(ENTRIES_MAX, BYTES_MAX)
  readonly #refused = new TokenTable<G>(REFUSED_MAX, REFUSED_BYTES_MAX)
  /** One answer for all who bring the same token at the same time. */
  readonly #underWay = new Map<string, Promise<TokenEntry<G>>>()
  #verdictMs = 0
  #skewMs = 0
  /** On which terms verdicts were made. */
  #terms = ''

  constructor(around: TokenSurroundings, plan: TokenPlan) {
    this.#around = around
    this.#jwts = new JwtVerifier(around)
    this.#opaque = new IntrospectedTokens(around)
    this.renew(plan)
  }

  /** At a reload. Issuers renew themselves: IssuerBook. */
  renew({ issuers, skewMs, verdictMs }: TokenPlan): void {
    const terms = JSON.stringify([issuers, skewMs, verdictMs])
    if (terms === this.#terms) return
    this.#terms = terms
    this.#verdictMs = verdictMs
    this.#skewMs = skewMs
    this.#jwts.skewMs = skewMs
    this.forget()
  }

  /** Gives back what it holds of the arena. */
  forget(): void {
    this.#accepted.clear()
    this.#refused.clear()
  }

  check(at: number, length: number): TokenEntry<G> | Promise<TokenEntry<G>> {
    const { sources, metrics } = this.#around
    sources.catchUp()
    if (length > TOKEN_BYTES_MAX) return this.#passing(TOO_LONG, length)
    const nowMs = this.#around.wallMs()
    const hash = hashOf(at, length)
    const known = this.#current(this.#accepted, this.#accepted.find(hash, at, length), nowMs)
    if (known !== null) {
      metrics.add(METRIC.tokenHits, 1)
      return known
    }
    const bad = this.#current(this.#refused, this.#refused.find(hash, at, length), nowMs)
    if (bad !== null) {
      metrics.add(METRIC.tokenRefusedHits, 1)
      return bad
    }
    metrics.add(METRIC.tokenMisses, 1)
    return this.#findOut(arena.bytes.latin1Slice(at, at + length))
  }

  /** Null also where it holds no longer. */
  #current(table: TokenTable<G>, entry: KnownToken<G> | null, nowMs: number): KnownToken<G> | null {
    if (entry === null) return null
    const { epoch } = this.#around.sources
    if (nowMs < entry.untilMs) {
      if (entry.epoch === epoch) return entry
      if (entry.verdict.kind === 'accepted' && this.#holds(entry.verdict, entry.key)) {
        entry.holdsAt(epoch)
        return entry
      }
    }
    table.remove(entry)
    return null
  }

  #holds({ revocationKey }: AcceptedToken, key: Finding['key']): boolean {
    return key?.isCurrent !== false && !this.#around.sources.revoked.has(revocationKey)
  }

  #findOut(token: string): TokenEntry<G> | Promise<TokenEntry<G>> {
    const known = this.#underWay.get(token)
    if (known !== undefined) return known
    const finding = this.#begin(token)
    if (!(finding instanceof Promise)) return this.#kept(token, finding)
    const entry = finding
      .catch((error: unknown) => unknown(`it could not be found out: ${String(error)}`))
      .then(found => {
        this.#underWay.delete(token)
        return this.#kept(token, this.#asOfNow(found))
      })
    this.#underWay.set(token, entry)
    return entry
  }

  #begin(token: string): Finding | Promise<Finding> {
    if (this.#underWay.size >= UNDER_WAY_MAX) return unknown('too many tokens are being found out about')
    return isJose(token) ? this.#jwts.verify(token) : this.#opaque.introspect(token)
  }

  /** What was told while an answer was waited for. */
  #asOfNow(found: Finding): Finding {
    const { sources } = this.#around
    sources.catchUp()
    if (found.verdict.kind !== 'accepted') return found
    if (!this.#holds(found.verdict, found.key)) return { ...refused('revoked'), isLasting: false }
    // Anybody can make the one of the other: of a token that is known its other signature is somebody else's.
    const isTwin = found.twin !== '' && this.#accepted.has(found.twin)
    return isTwin ? { ...refused('known with the other of its two signatures'), isLasting: false } : found
  }

  #kept(token: string, { verdict, key, isLasting }: Finding): KnownToken<G> {
    const { length } = token
    const lastsMs = this.#verdictMs
    if (!isLasting || lastsMs === 0) return this.#passing(verdict, length)
    const nowMs = this.#around.wallMs()
    const { epoch } = this.#around.sources
    if (verdict.kind === 'refused') {
      const entry = new KnownToken<G>(verdict, key, nowMs + Math.min(REFUSED_MS, lastsMs), epoch, length)
      this.#refused.add(token, entry)
      return entry
    }
    // What has no end of its own is asked about again.
    const endsMs = verdict.expiresMs === 0 ? Infinity : verdict.expiresMs + (key === null ? 0 : this.#skewMs)
    const entry = new KnownToken<G>(verdict, key, Math.min(endsMs, nowMs + lastsMs), epoch, length)
    this.#accepted.add(token, entry)
    return entry
  }

  /** For this request alone. */
  #passing(verdict: Finding['verdict'], length: number): KnownToken<G> {
    return new KnownToken<G>(verdict, null, 0, this.#around.sources.epoch, length)
  }
}
