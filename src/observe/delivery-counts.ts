/**
 * Counts of deliveries in shared memory: events that become messages of tenants, and the platform's own mails. Worker
 * threads and the control thread count in the same cells, whole numbers with atomic additions, because worker threads
 * come and go. A delivery costs some ten additions. `delivery-metrics.ts` renders the counts.
 */
import { processMemory, shareMemory } from '../runtime/process-memory.ts'

const MEMORY = 'counts of deliveries'

/** `platform`: mails of `[apim.notification]`. `other`: channels that have no row. */
export const CHANNELS = ['sms', 'email', 'platform', 'other'] as const
export type DeliveryChannel = (typeof CHANNELS)[number]

export const EVENTS = [
  'accepted',
  'delivered',
  'retried',
  'dead',
  'replayed',
  'dropped',
  'expired',
  'recovered',
] as const
/** `retried`: attempts that were put off. `recovered`: claims without a result, which may be sent once more. */
export type DeliveryEvent = (typeof EVENTS)[number]

/** As `AcceptRefusal` of the outbox. */
export const REASONS = [
  ...(['event-bytes', 'order-deliveries', 'sender-waiting', 'tenant-waiting', 'all-waiting'] as const),
  ...(['key-reused', 'busy'] as const),
]
export type DeliveryRefusal = (typeof REASONS)[number]

/** `waiting` includes what is being sent. */
export const STATES = ['waiting', 'delivered', 'dead'] as const
export type StoredDeliveries = Readonly<Record<(typeof STATES)[number], number>>

/** Upper bounds in seconds, inclusive; one more bucket holds longer times. */
const ATTEMPT_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const
const DELIVERY_BOUNDS = [0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 1800, 7200, 43_200] as const
/** `attempt`: of one message. `delivery`: from the acceptance to the delivery. */
export const DELIVERY_DURATIONS = { attempt: ATTEMPT_BOUNDS, delivery: DELIVERY_BOUNDS } as const
type Duration = keyof typeof DELIVERY_DURATIONS

/** Cells of a channel: events, refusals, states, and for each duration its buckets and its sum in microseconds. */
const REFUSED = EVENTS.length
const STORED = REFUSED + REASONS.length
const FIRST_DURATION = STORED + STATES.length
const DURATION_AT = {
  attempt: FIRST_DURATION,
  delivery: FIRST_DURATION + ATTEMPT_BOUNDS.length + 2,
} as const satisfies Record<Duration, number>
const CHANNEL_CELLS = DURATION_AT.delivery + DELIVERY_BOUNDS.length + 2
const BYTES = CHANNELS.length * CHANNEL_CELLS * BigInt64Array.BYTES_PER_ELEMENT

/** In the main thread, before it starts others: all threads of the process count in the same memory. */
export function shareDeliveryCounts(): void {
  shareMemory(MEMORY, BYTES)
}

interface DeliverySample {
  readonly events: Readonly<Record<DeliveryEvent, number>>
  readonly refused: Readonly<Record<DeliveryRefusal, number>>
  readonly stored: StoredDeliveries
  /** `buckets`: not cumulative. */
  readonly durations: Readonly<Record<Duration, { readonly buckets: readonly number[]; readonly sumSeconds: number }>>
}

export class DeliveryCounts {
  readonly #cells: BigInt64Array

  constructor(shared: SharedArrayBuffer = new SharedArrayBuffer(BYTES)) {
    this.#cells = new BigInt64Array(shared)
  }

  /** Returns the counts of the process. */
  static ofProcess(): DeliveryCounts {
    return new DeliveryCounts(processMemory(MEMORY, BYTES))
  }

  count(channel: string, event: DeliveryEvent, deliveries: number): void {
    this.#add(channel, EVENTS.indexOf(event), deliveries)
  }

  /** Orders that nothing of was stored. */
  countRefused(channel: string, reason: DeliveryRefusal, orders: number): void {
    this.#add(channel, REFUSED + REASONS.indexOf(reason), orders)
  }

  countDuration(channel: string, duration: Duration, seconds: number): void {
    const bounds: readonly number[] = DELIVERY_DURATIONS[duration]
    const bucket = bounds.findIndex(bound => seconds <= bound)
    const at = DURATION_AT[duration]
    this.#add(channel, at + (bucket === -1 ? bounds.length : bucket), 1)
    this.#add(channel, at + bounds.length + 1, Math.round(Math.max(0, seconds) * 1e6))
  }

  /** Rows of the database by channel, at this moment. Channels of `all` without rows have none. */
  setStored(all: readonly DeliveryChannel[], stored: ReadonlyMap<string, StoredDeliveries>): void {
    const sums = new Map(all.map(channel => [channel, [0, 0, 0]]))
    for (const [channel, counts] of stored) {
      const sum = sums.get(channelOf(channel))
      if (sum !== undefined) for (const [at, state] of STATES.entries()) sum[at]! += counts[state]
    }
    for (const [channel, sum] of sums) {
      const row = rowOf(channel) + STORED
      for (const [at, value] of sum.entries()) Atomics.store(this.#cells, row + at, BigInt(value))
    }
  }

  sample(channel: DeliveryChannel): DeliverySample {
    const first = rowOf(channel)
    const read = (at: number): number => Number(Atomics.load(this.#cells, first + at))
    const all = <Name extends string>(names: readonly Name[], at: number) =>
      Object.fromEntries(names.map((name, index) => [name, read(at + index)])) as Record<Name, number>
    const duration = (of: Duration) => {
      const buckets = Array.from({ length: DELIVERY_DURATIONS[of].length + 1 }, (_, at) => read(DURATION_AT[of] + at))
      return { buckets, sumSeconds: read(DURATION_AT[of] + buckets.length) / 1e6 }
    }
    return {
      events: all(EVENTS, 0),
      refused: all(REASONS, REFUSED),
      stored: all(STATES, STORED),
      durations: { attempt: duration('attempt'), delivery: duration('delivery') },
    }
  }

  #add(channel: string, cell: number, by: number): void {
    Atomics.add(this.#cells, rowOf(channelOf(channel)) + cell, BigInt(by))
  }
}

function channelOf(channel: string): DeliveryChannel {
  return CHANNELS.find(known => known === channel) ?? 'other'
}

function rowOf(channel: DeliveryChannel): number {
  return CHANNELS.indexOf(channel) * CHANNEL_CELLS
}
