/**
 * What a reactor knows of identities: keys of issuers, applications and their subscriptions, revoked tokens, and the
 * line to the authority, which tells all of it. Whoever decides anything calls `catchUp` first.
 */
import type { IdentityNews, Inquiry, InquiryResults } from './feed.ts'
import type { IdentityPlan } from './identity-plan.ts'
import { IssuerBook } from './issuer-book.ts'
import { RevokedSet } from './revoked-set.ts'
import { SubscriptionIndex } from './subscription-index.ts'

/** There is no answer, and why; never what was asked, because that may be a credential. */
export class InquiryFailed extends Error {
  override readonly name = 'InquiryFailed'
}

/** To the authority; over when its thread has died. */
export interface Line {
  /** Takes in, at once, whatever has been told until now. */
  drain(): void
  /** Rejects with InquiryFailed. */
  ask<I extends Inquiry>(inquiry: I): Promise<InquiryResults[I['kind']]>
  close(): void
}

export class IdentityState {
  /** Another one whenever anything is different from before: what was concluded of it holds no longer. */
  epoch = 1
  /** Another one whenever what users are remembered by holds no longer. */
  usersEpoch = 1
  readonly issuers = new IssuerBook()
  readonly revoked: RevokedSet
  /** Kept once the first account was complete. */
  readonly complete = Promise.withResolvers<void>()
  #subscriptions = new SubscriptionIndex()
  /** Of a thread that has begun, and has not told everything yet. */
  #coming: SubscriptionIndex | null = null
  #isComplete = false
  readonly #shared: Int32Array
  #seen: number
  #line: Line | null = null

  /** `shared`: goes up by one after all reactors were told something. */
  constructor(shared: SharedArrayBuffer, plan: IdentityPlan) {
    this.issuers.renew(plan.issuers)
    this.revoked = new RevokedSet(plan.skewMs)
    this.#shared = new Int32Array(shared)
    this.#seen = Atomics.load(this.#shared, 0)
  }

  /** Another object after the authority was replaced: not to be kept. */
  get subscriptions(): SubscriptionIndex {
    return this.#subscriptions
  }

  /** Until then nothing can be said of subscriptions: who asks is to be told of a failure, not of a refusal. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /** Takes in everything that was told before this moment. */
  catchUp(): void {
    const told = Atomics.load(this.#shared, 0)
    if (told === this.#seen) return
    this.#seen = told
    this.#line?.drain()
  }

  /** What decides is configured differently from now on. */
  renew({ issuers, skewMs }: IdentityPlan): void {
    this.issuers.renew(issuers)
    this.revoked.skewMs = skewMs
    this.epoch++
  }

  /** Of a thread that has begun. What its predecessor has told holds until this one has told everything. */
  connect(line: Line): void {
    // Its last words may be a revocation.
    this.#line?.drain()
    this.#line?.close()
    this.#line = line
    line.drain()
  }

  /** Rejects with InquiryFailed: within a bounded time, and at once where nobody could answer. */
  ask<Q extends Inquiry>(inquiry: Q): Promise<InquiryResults[Q['kind']]> {
    if (this.#line === null) return Promise.reject(new InquiryFailed('there is no line to the authority'))
    return this.#line.ask(inquiry)
  }

  take(news: IdentityNews): void {
    if (news.kind === 'keys') for (const issuer of news.issuers) this.issuers.learn(issuer)
    else if (news.kind === 'revoked') {
      // Nothing makes a revoked token good again, so this goes on from one thread to the next.
      if (!this.revoked.add(news.tokens, Date.now())) return
    } else if (news.kind === 'subscriptions') {
      ;(this.#coming ?? this.#subscriptions).apply(news.news)
      if (this.#coming !== null) return
    } else if (news.kind === 'users') {
      this.usersEpoch++
      return
    } else if (news.kind === 'anew') {
      this.#coming = new SubscriptionIndex()
      // What has changed meanwhile was told to nobody.
      this.usersEpoch++
      return
    } else this.#completed()
    this.epoch++
  }

  close(): void {
    this.#line?.close()
    this.#line = null
  }

  #completed(): void {
    if (this.#coming !== null) this.#subscriptions = this.#coming
    this.#coming = null
    this.#isComplete = true
    this.complete.resolve()
  }
}
