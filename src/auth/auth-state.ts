/**
 * State of a reactor that the control thread feeds: keys of issuers, applications, subscriptions, revoked tokens.
 * Every decision calls `catchUp` first: then it rests on all updates that were posted before it.
 */
import { type AuthUpdate, type ControlCall, ControlCallFailed, type ControlCallResults } from './control-protocol.ts'
import type { AuthPlan } from './auth-plan.ts'
import { IssuerRegistry } from './issuers.ts'
import { RevokedTokens } from './revoked-tokens.ts'
import { Decisions } from '../throttle/decisions.ts'
import { PolicyIndex } from '../throttle/policy-index.ts'
import { SubscriptionIndex } from './subscription-index.ts'

/** A channel to one control thread; closed when that thread has died. */
export interface ControlChannel {
  /** Applies, synchronously, all updates that were posted before. */
  drain(): void
  /** Rejects with ControlCallFailed. */
  call<One extends ControlCall>(call: One): Promise<ControlCallResults[One['kind']]>
  close(): void
}

export class AuthState {
  /** Changes with every update that a cached result or grant may rest on. */
  version = 1
  /** Changes with every update of users: cached passwords hold for one version. */
  usersVersion = 1
  readonly issuers = new IssuerRegistry()
  readonly revoked: RevokedTokens
  /** Throttling policies, with a version of their own: no grant rests on them. */
  readonly policies = new PolicyIndex()
  /** Keys that a traffic manager has throttled. */
  readonly decisions = new Decisions()
  /** Resolves with the first complete snapshot. */
  readonly firstSnapshot = Promise.withResolvers<void>()
  #subscriptions = new SubscriptionIndex()
  /** The snapshot of a new control thread, until it is complete; null: none is under way. */
  #incoming: SubscriptionIndex | null = null
  #hasSnapshot = false
  readonly #sharedVersion: Int32Array
  #seenVersion: number
  #channel: ControlChannel | null = null

  /** `sharedVersion`: one cell, which the control thread adds one to after it has posted an update to all reactors. */
  constructor(sharedVersion: SharedArrayBuffer, plan: AuthPlan) {
    this.issuers.setPlans(plan.issuers)
    this.revoked = new RevokedTokens(plan.skewMs)
    this.#sharedVersion = new Int32Array(sharedVersion)
    this.#seenVersion = Atomics.load(this.#sharedVersion, 0)
  }

  /** Not to be kept: a new control thread replaces the object. */
  get subscriptions(): SubscriptionIndex {
    return this.#subscriptions
  }

  /** False until the first snapshot: a missing subscription is then a failure (900900) and no refusal. */
  get hasSnapshot(): boolean {
    return this.#hasSnapshot
  }

  /** Applies every update that was posted before this moment. */
  catchUp(): void {
    const shared = Atomics.load(this.#sharedVersion, 0)
    if (shared === this.#seenVersion) return
    this.#seenVersion = shared
    this.#channel?.drain()
  }

  /** At a reload. */
  updatePlan({ issuers, skewMs }: AuthPlan): void {
    this.issuers.setPlans(issuers)
    this.revoked.skewMs = skewMs
    this.version++
  }

  /** Switches to a new control thread. The state from its predecessor holds until the new snapshot is complete. */
  attach(channel: ControlChannel): void {
    // The last update of the old thread may be a revocation.
    this.#channel?.drain()
    this.#channel?.close()
    this.#channel = channel
    channel.drain()
  }

  /** Rejects with ControlCallFailed: within a bounded time, and at once where there is no control thread. */
  call<One extends ControlCall>(call: One): Promise<ControlCallResults[One['kind']]> {
    if (this.#channel === null)
      return Promise.reject(new ControlCallFailed('there is no channel to the control thread'))
    return this.#channel.call(call)
  }

  apply(update: AuthUpdate): void {
    if (update.kind === 'keys') for (const keySet of update.issuers) this.issuers.setKeys(keySet)
    else if (update.kind === 'revoked') {
      // No update makes a revoked token valid again, so the set outlives the control thread.
      if (!this.revoked.add(update.tokens, Date.now())) return
    } else if (update.kind === 'subscriptions') {
      ;(this.#incoming ?? this.#subscriptions).apply(update.update)
      if (this.#incoming !== null) return
    } else if (update.kind === 'policies') {
      this.policies.setRegistry(update.set)
      return
    } else if (update.kind === 'decisions') {
      this.decisions.apply(update.decisions, Date.now())
      return
    } else if (update.kind === 'users') {
      this.usersVersion++
      return
    } else if (update.kind === 'reset') {
      this.#incoming = new SubscriptionIndex()
      // Users may have changed while there was no control thread.
      this.usersVersion++
      return
    } else this.#complete()
    this.version++
  }

  close(): void {
    this.#channel?.close()
    this.#channel = null
  }

  #complete(): void {
    if (this.#incoming !== null) this.#subscriptions = this.#incoming
    this.#incoming = null
    this.#hasSnapshot = true
    this.firstSnapshot.resolve()
  }
}
