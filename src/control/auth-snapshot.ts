/**
 * The state that updates have built up in the reactors, for a reactor that starts. `ReactorChannels` applies each
 * update.
 */
import {
  type ApplicationRecord,
  type IssuerKeys,
  type ConsumerKeyRecord,
  consumerKeyId,
  NOTHING_REMOVED,
  type SubscriptionRecord,
} from '../auth/records.ts'
import type { AuthUpdate } from '../auth/control-protocol.ts'
import { Decisions } from '../throttle/decisions.ts'
import type { PolicySet } from '../throttle/policy.ts'
import { RevokedTokens, SKEW_MAX_MS } from '../auth/revoked-tokens.ts'

/** A reactor receives so many records in some milliseconds. */
const RECORDS_PER_UPDATE = 2000

export class AuthSnapshot {
  /** The state of the start is complete. */
  isComplete = false
  readonly #issuers = new Map<string, IssuerKeys>()
  readonly #applications = new Map<string, ApplicationRecord>()
  readonly #keys = new Map<string, ConsumerKeyRecord>()
  readonly #subscriptions = new Map<string, SubscriptionRecord>()
  #policies: PolicySet | null = null
  readonly #decisions = new Decisions()
  /** Until no reactor accepts the token any more. */
  readonly #revoked = new RevokedTokens(SKEW_MAX_MS)

  apply(update: AuthUpdate): void {
    if (update.kind === 'keys') for (const keys of update.issuers) this.#issuers.set(keys.issuer, keys)
    else if (update.kind === 'revoked') this.#revoked.add(update.tokens, Date.now())
    else if (update.kind === 'decisions') this.#decisions.apply(update.decisions, Date.now())
    else if (update.kind === 'policies') this.#policies = update.set
    else if (update.kind === 'complete') this.isComplete = true
    else if (update.kind === 'reset') this.#reset()
    else if (update.kind === 'subscriptions') {
      const { applications, keys, subscriptions, removed } = update.update
      for (const id of removed.applications) this.#applications.delete(id)
      for (const name of removed.keys) this.#keys.delete(name)
      for (const id of removed.subscriptions) this.#subscriptions.delete(id)
      for (const application of applications) this.#applications.set(application.id, application)
      for (const key of keys) this.#keys.set(consumerKeyId(key), key)
      for (const subscription of subscriptions) this.#subscriptions.set(subscription.id, subscription)
    }
  }

  /** Revocations, policies and keys of issuers stay: a later update replaces policies and keys. */
  #reset(): void {
    this.isComplete = false
    this.#applications.clear()
    this.#keys.clear()
    this.#subscriptions.clear()
  }

  /** The updates that give a reactor this state, whatever it knew before. */
  updates(): readonly AuthUpdate[] {
    const updates: AuthUpdate[] = [{ kind: 'reset' }, { kind: 'keys', issuers: [...this.#issuers.values()] }]
    for (const tokens of inParts(this.#revoked.entries(Date.now()))) updates.push({ kind: 'revoked', tokens })
    const nothing = { applications: [], keys: [], subscriptions: [], removed: NOTHING_REMOVED }
    for (const applications of inParts([...this.#applications.values()])) {
      updates.push({ kind: 'subscriptions', update: { ...nothing, applications } })
    }
    for (const keys of inParts([...this.#keys.values()])) {
      updates.push({ kind: 'subscriptions', update: { ...nothing, keys } })
    }
    for (const subscriptions of inParts([...this.#subscriptions.values()])) {
      updates.push({ kind: 'subscriptions', update: { ...nothing, subscriptions } })
    }
    if (this.#policies !== null) updates.push({ kind: 'policies', set: this.#policies })
    for (const decisions of inParts(this.#decisions.entries(Date.now()))) updates.push({ kind: 'decisions', decisions })
    if (this.isComplete) updates.push({ kind: 'complete' })
    return updates
  }
}

function inParts<T>(rows: readonly T[]): readonly (readonly T[])[] {
  const parts: (readonly T[])[] = []
  for (let at = 0; at < rows.length; at += RECORDS_PER_UPDATE) parts.push(rows.slice(at, at + RECORDS_PER_UPDATE))
  return parts
}
