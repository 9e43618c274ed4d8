/** Deliveries as callers of the outbox see them. */

/** One sender configuration of a tenant. */
export interface SenderId {
  readonly tenant: string
  /** `email`, `sms`: at most 16 characters. */
  readonly channel: string
  readonly name: string
}

export type DeliveryState = 'waiting' | 'sending' | 'delivered' | 'dead'

/** An event for one sender. */
interface NewDelivery {
  readonly sender: SenderId
  /** JSON text; the outbox does not look into it. */
  readonly event: string
}

/** Events that are stored together or not at all. */
export interface AcceptOrder {
  readonly tenant: string
  /** Idempotency key of the client, 1 to 255 characters; null for none. */
  readonly key: string | null
  /** The content that requests with one key have in common; left out: the deliveries. */
  readonly content?: string
  /** All of the tenant. */
  readonly deliveries: readonly NewDelivery[]
}

/** Why events are not stored. */
export type AcceptRefusal =
  /** An event has more bytes than `limit`. */
  | 'event-bytes'
  /** The order has more than `limit` deliveries. */
  | 'order-deliveries'
  /** Already `limit` events of the sender wait. */
  | 'sender-waiting'
  /** Already `limit` events of the tenant wait. */
  | 'tenant-waiting'
  /** Already `limit` events wait in all. */
  | 'all-waiting'
  /** The key belongs to another event. */
  | 'key-reused'
  /** Already `limit` orders wait for the database on this thread. */
  | 'busy'

export type Acceptance =
  /** Durable. In the order of the deliveries; `isRepeated`: those of the first order with the key. */
  | {
      readonly kind: 'accepted'
      readonly ids: readonly string[]
      readonly senders: readonly SenderId[]
      readonly isRepeated: boolean
    }
  /** The deliveries are not stored. `limit`: 0 for `key-reused`. */
  | { readonly kind: 'refused'; readonly reason: AcceptRefusal; readonly limit: number }

export interface Delivery {
  /** UUID, in the order of acceptance within about a second. */
  readonly id: string
  readonly sender: SenderId
  readonly state: DeliveryState
  /** Attempts whose result is known, since the last replay. */
  readonly attempts: number
  /** Times in milliseconds since 1970, by the clock of the database. */
  readonly acceptedMs: number
  /** Waiting: next attempt. Sending: end of the claim. Delivered, dead: when that happened. */
  readonly atMs: number
  /** JSON text, as it was accepted; '' where it is encrypted with another key. */
  readonly event: string
  /** Outcome of the last attempt, such as 'HTTP 202' or why it failed; '' before the first one. */
  readonly cause: string
}

/** Deliveries of one tenant. */
export interface DeliveryFilter {
  readonly tenant: string
  readonly channel?: string
  readonly name?: string
  readonly state?: DeliveryState
}

export interface DeliveryPage {
  /** Newest first. */
  readonly deliveries: readonly Delivery[]
  /** `before` of the next page; null on the last one. */
  readonly next: string | null
}

/** Dead letters: those with the ids, or all that match; at most 1,000 in one call, the oldest first. */
export type DeadLetters = { readonly tenant: string; readonly ids: readonly string[] } | Omit<DeliveryFilter, 'state'>

/** Counts of one sender. `waiting` to `dead`: rows that are stored now; the others since the first event. */
export interface SenderCounts {
  readonly sender: SenderId
  /** Includes those that are being sent. */
  readonly waiting: number
  readonly delivered: number
  readonly dead: number
  readonly acceptedTotal: number
  readonly deliveredTotal: number
  readonly deadTotal: number
  /** Attempts that failed and were put off. */
  readonly retriedTotal: number
  readonly replayedTotal: number
  /** Dead letters that were dropped by a caller. */
  readonly droppedTotal: number
  /** Deliveries that retention has removed. */
  readonly expiredTotal: number
  /** Orders that a limit has refused. */
  readonly refusedTotal: number
}
