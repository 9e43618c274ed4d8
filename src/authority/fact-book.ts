/**
 * All that reactors were told and that still holds, so that one that begins can be told it too, in the order in which
 * it changes: whoever adds to the book tells reactors in the same step.
 */
import {
  type ApplicationFacts,
  type IssuerKeys,
  type KeyFacts,
  keyName,
  NOTHING_REMOVED,
  type SubscriptionFacts,
} from '../identity/facts.ts'
import type { IdentityNews } from '../identity/feed.ts'
import { RevokedSet, SKEW_MAX_MS } from '../identity/revoked-set.ts'

/** Rows of a message: so many are received in some milliseconds. */
const ROWS_PER_NEWS = 2000

export class FactBook {
  /** Everything that there is at a start has been told. */
  isComplete = false
  readonly #issuers = new Map<string, IssuerKeys>()
  readonly #applications = new Map<string, ApplicationFacts>()
  readonly #keys = new Map<string, KeyFacts>()
  readonly #subscriptions = new Map<string, SubscriptionFacts>()
  /** For as long as any reactor may accept them. */
  readonly #revoked = new RevokedSet(SKEW_MAX_MS)

  take(news: IdentityNews): void {
    if (news.kind === 'keys') for (const keys of news.issuers) this.#issuers.set(keys.issuer, keys)
    else if (news.kind === 'revoked') this.#revoked.add(news.tokens, Date.now())
    else if (news.kind === 'complete') this.isComplete = true
    else if (news.kind === 'anew') this.#forget()
    else if (news.kind === 'subscriptions') {
      const { applications, keys, subscriptions, removed } = news.news
      for (const id of removed.applications) this.#applications.delete(id)
      for (const name of removed.keys) this.#keys.delete(name)
      for (const id of removed.subscriptions) this.#subscriptions.delete(id)
      for (const application of applications) this.#applications.set(application.id, application)
      for (const key of keys) this.#keys.set(keyName(key), key)
      for (const subscription of subscriptions) this.#subscriptions.set(subscription.id, subscription)
    }
  }

  /** Tokens stay revoked, and keys are told again where they are others. */
  #forget(): void {
    this.isComplete = false
    this.#applications.clear()
    this.#keys.clear()
    this.#subscriptions.clear()
  }

  /** For a reactor that knows nothing, or what another thread has told it. */
  account(): readonly IdentityNews[] {
    const news: IdentityNews[] = [{ kind: 'anew' }, { kind: 'keys', issuers: [...this.#issuers.values()] }]
    for (const tokens of inParts(this.#revoked.entries(Date.now()))) news.push({ kind: 'revoked', tokens })
    const nothing = { applications: [], keys: [], subscriptions: [], removed: NOTHING_REMOVED }
    for (const applications of inParts([...this.#applications.values()])) {
      news.push({ kind: 'subscriptions', news: { ...nothing, applications } })
    }
    for (const keys of inParts([...this.#keys.values()])) {
      news.push({ kind: 'subscriptions', news: { ...nothing, keys } })
    }
    for (const subscriptions of inParts([...this.#subscriptions.values()])) {
      news.push({ kind: 'subscriptions', news: { ...nothing, subscriptions } })
    }
    if (this.isComplete) news.push({ kind: 'complete' })
    return news
  }
}

function inParts<T>(rows: readonly T[]): readonly (readonly T[])[] {
  const parts: (readonly T[])[] = []
  for (let at = 0; at < rows.length; at += ROWS_PER_NEWS) parts.push(rows.slice(at, at + ROWS_PER_NEWS))
  return parts
}
