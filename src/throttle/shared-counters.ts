/**
 * Counters of policies with `scope: redis`, which several gateways share. One per reactor; the filter awaits it only
 * for requests to which such a policy applies.
 */
import type { Quota } from './policy.ts'

/** A counter that all gateways of one Redis share. Made once per key and cached by the filter. */
export interface SharedCounter {
  /** The key of the counter on this machine too: `subscription:application-id:/echo/1.0.0:Gold`. */
  readonly key: string
  readonly quota: Quota
}

/** Decision of the shared counters on one request. */
export interface SharedVerdict {
  /** -1: the request is charged to all counters; else the index of the first that refuses, and none is charged. */
  readonly refusedBy: number
  /** Left in the current window of each counter, at least 0. */
  readonly remaining: readonly number[]
  /** End of the current window of each counter, in milliseconds since 1970. */
  readonly endsMs: readonly number[]
  /** Number of the window of each counter by the clock of Redis, for `refund`. */
  readonly windows: readonly number[]
}

export interface SharedCounters {
  /** False while Redis does not answer: `admit` resolves with null at once, and `charge` loses its amounts. */
  readonly isUp: boolean
  /**
   * Charges one request to all counters or to none, in one round trip; counters of bandwidth and of events are only
   * checked. Their keys differ; an array that is used again costs less. Never rejects, and resolves within the time
   * limit of the connection. Null: Redis has not answered, so the fail mode of each policy decides.
   */
  admit(counters: readonly SharedCounter[]): Promise<SharedVerdict | null>
  /**
   * Returns what `admit` has charged, because a counter of this machine refuses the request. `verdict`: what `admit`
   * has resolved with, because only its windows get the request back. Waits for nothing.
   */
  refund(counters: readonly SharedCounter[], verdict: SharedVerdict): void
  /**
   * Charges bytes or messages that are known late. Waits for nothing. Returns false where the window is used up, as far
   * as this gateway knows.
   */
  charge(counter: SharedCounter, amount: number): boolean
  /** The part of a quota that this gateway grants alone while Redis does not answer (fail mode `local`). */
  localShare(quota: Quota): Quota
}
