/** States of a delivery. Nothing but this table moves one; statements take both ends of a change from it. */
import type { DeliveryState } from './delivery.ts'

export type DeliveryEvent =
  /** A run takes it. */
  | 'claim'
  /** The receiver has taken the message. */
  | 'succeed'
  /** An attempt failed, and a later one may succeed. */
  | 'postpone'
  /** The run ends before an attempt, or interrupts it. */
  | 'release'
  /** The claim has ended without a result: its thread or node is gone. */
  | 'recover'
  /** No later attempt can succeed, or none is left. */
  | 'fail'
  /** The sender was deleted. */
  | 'orphan'
  | 'replay'
  | 'drop'
  /** Retention. */
  | 'expire'

/** Counts in the row of a sender: deliveries that are stored now, and events since the first one. */
export type StoredCount = 'waiting' | 'delivered' | 'dead'
export type TotalCount = `${'delivered' | 'retried' | 'dead' | 'replayed' | 'dropped' | 'expired'}_total`

interface Transition {
  readonly from: readonly DeliveryState[]
  /** `gone`: the row is deleted. */
  readonly to: DeliveryState | 'gone'
  readonly total: TotalCount | null
}

const TRANSITIONS: Readonly<Record<DeliveryEvent, Transition>> = {
  claim: { from: ['waiting'], to: 'sending', total: null },
  succeed: { from: ['sending'], to: 'delivered', total: 'delivered_total' },
  postpone: { from: ['sending'], to: 'waiting', total: 'retried_total' },
  release: { from: ['sending'], to: 'waiting', total: null },
  recover: { from: ['sending'], to: 'waiting', total: null },
  fail: { from: ['sending'], to: 'dead', total: 'dead_total' },
  orphan: { from: ['waiting'], to: 'dead', total: 'dead_total' },
  replay: { from: ['dead'], to: 'waiting', total: 'replayed_total' },
  drop: { from: ['dead'], to: 'gone', total: 'dropped_total' },
  expire: { from: ['delivered', 'dead'], to: 'gone', total: 'expired_total' },
}

/** In which count a delivery of each state stands. */
const COUNTED: Readonly<Record<DeliveryState, StoredCount>> = {
  waiting: 'waiting',
  sending: 'waiting',
  delivered: 'delivered',
  dead: 'dead',
}

/** The state after an event. Throws where the table has no such transition. */
export function stateAfter(from: DeliveryState, event: DeliveryEvent): DeliveryState | 'gone' {
  const transition = TRANSITIONS[event]
  if (!transition.from.includes(from)) throw new Error(`a delivery that is ${from} has no transition ${event}`)
  return transition.to
}

/** How the counts of a sender change when the event happens to a delivery: one entry per count. */
export function countChanges(from: DeliveryState, event: DeliveryEvent): ReadonlyMap<StoredCount | TotalCount, number> {
  const to = stateAfter(from, event)
  const changes = new Map<StoredCount | TotalCount, number>()
  const add = (count: StoredCount, by: number): void => {
    changes.set(count, (changes.get(count) ?? 0) + by)
  }
  add(COUNTED[from], -1)
  if (to !== 'gone') add(COUNTED[to], 1)
  const { total } = TRANSITIONS[event]
  if (total !== null) changes.set(total, 1)
  for (const [count, by] of changes) if (by === 0) changes.delete(count)
  return changes
}
